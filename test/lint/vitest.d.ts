/**
 * vitest as the linter sees it: what `expect` gives has no type parameters. Nearly every statement of a test begins with it, and the rules
 * about promises ask for the type of each. The compiler checks tests with vitest's own types.
 */

export * from '../../node_modules/vitest/dist/index.js';

export declare const expect: Expect;

interface Expect {
  (actual: unknown, message?: string): Assertion;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly [member: string]: any;
}

interface Assertion {
  (...expected: unknown[]): void;
  readonly resolves: Promised;
  readonly rejects: Promised;
  readonly [matcher: string]: Assertion;
}

interface Promised {
  (...expected: unknown[]): Promise<void>;
  readonly [matcher: string]: Promised;
}
