/**
 * Faults of outside data, as data. `decodeX` returns a {@link Result}, `checkX` a list of faults; `parseX` throws. A finding adds a
 * place in a ledger, a severity and words (`finding/`).
 */

export interface Fault<Code extends string = string> {
  readonly code: Code;
  /** RFC 6901, from the root of the value; a missing member has the pointer it would have. */
  readonly pointer?: string;
  /** Byte offset into the input. */
  readonly offset?: number;
  /** In a few words, for people. */
  readonly expected: string;
  /** A printable excerpt, or `absent`. */
  readonly actual: string;
}

export interface ValueFault<Code extends string = string> extends Fault<Code> {
  readonly pointer: string;
}

export interface FileFault<Code extends string = string> extends Fault<Code> {
  readonly file: string;
}

export type Result<T, F extends Fault = Fault> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly fault: F };

export function succeed<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function fail<F extends Fault>(fault: F): { readonly ok: false; readonly fault: F } {
  return { ok: false, fault };
}
