/**
 * What is wrong with data from outside, as data. Whoever decodes such data returns a {@link Result} (`decodeX`), whoever judges a value
 * a list of faults; `parseX` throws. A finding is more: it has its place in a ledger, its severity and its words (`finding/`).
 */

/** One thing wrong with data from outside. What is given of its place depends on what the data is. */
export interface Fault<Code extends string = string> {
  readonly code: Code;
  /** RFC 6901, from the root of the value. A missing member has the pointer that it would have; `''` is the whole value. */
  readonly pointer?: string;
  /** Byte offset into what was looked at. */
  readonly offset?: number;
  /** In a few words, for people. */
  readonly expected: string;
  /** What is there: a printable excerpt, or `absent`. */
  readonly actual: string;
}

/** A fault of a value: which of its members is meant is always known. */
export interface ValueFault<Code extends string = string> extends Fault<Code> {
  readonly pointer: string;
}

/** A fault of a file among several. */
export interface FileFault<Code extends string = string> extends Fault<Code> {
  readonly file: string;
}

/** What decoding data from outside gives: the value, or why there is none. */
export type Result<T, F extends Fault = Fault> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: F };

/** The result that has a value. */
export function succeed<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** The result that has none. */
export function fail<F extends Fault>(fault: F): { readonly ok: false; readonly fault: F } {
  return { ok: false, fault };
}
