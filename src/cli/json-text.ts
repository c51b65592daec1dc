/**
 * JSON as commands write it. What could move a terminal's cursor or reorder its text is written as a JSON escape: the
 * value stays the same, and text of a ledger cannot disguise itself.
 */

import type { ByteSink } from '../base/bytes/byte-sink.js';
import { jsonEscape } from '../out/export/telemetry/safe-json.js';

/** What `printable` escapes, but for the newlines of the layout. */
const UNSAFE = /[^\n\P{C}]|[\p{Zl}\p{Zp}\p{DI}]|(?! )\p{Zs}|#(?=#\[)/gu;

/** `value` as JSON on one line, or indented by `indent` spaces; without a final newline. */
export function jsonText(value: unknown, indent?: number): string {
  return escapeUnsafe(JSON.stringify(value, undefined, indent));
}

/** Where JSON goes that is written in pieces, none of which ends within a text of the JSON: as {@link jsonText} would give it. */
export function safeSink(sink: ByteSink): ByteSink {
  return { write: (piece) => sink.write(typeof piece === 'string' ? escapeUnsafe(piece) : piece) };
}

/** Text in which none of that can be: most is. */
const PLAIN = /^[\n -"$-~]*$/;

function escapeUnsafe(json: string): string {
  if (PLAIN.test(json)) return json;
  return json.replace(UNSAFE, jsonEscape);
}
