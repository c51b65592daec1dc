/** docs/hosts/clasper.md names every code that the host can give. */

import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it('every code stands in the documentation', () => {
  const root = new URL('../../../', import.meta.url);
  const folder = new URL('src/hosts/clasper/', root);
  const sources = [
    ...readdirSync(folder)
      .filter((name) => name.endsWith('.ts'))
      .map((name) => new URL(name, folder)),
    new URL('src/hosts/shared/archive.ts', root),
  ];
  const documentation = readFileSync(new URL('docs/hosts/clasper.md', root), 'utf8');
  const codes = sources.flatMap((source) =>
    [...readFileSync(source, 'utf8').matchAll(/'([A-Z]+(?:_[A-Z0-9]+)+)'/g)].map(([, code]) => code),
  );
  // Codes of events and checks are the host's own words; the last one is Node's.
  const others = new Set([
    'POLICY_DENIED',
    'APPROVAL_REQUIRED',
    'ROLE_NOT_STATED',
    'TOOL_FAILED',
    'ERR_BUFFER_TOO_LARGE',
  ]);
  expect(codes.length).toBeGreaterThan(80);
  expect([...new Set(codes)].filter((code) => !others.has(code) && !documentation.includes(code))).toEqual(
    [],
  );
});
