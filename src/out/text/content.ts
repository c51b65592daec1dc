/**
 * A content for people to read: JSON laid out, other text by its lines, anything else by its size. Every line is made printable, and a line
 * of the content cannot be taken for one of the text around it.
 */

import { printable } from '../../base/bytes/printable.js';
import type { JsonValue } from '../../base/json/value.js';
import { readableContent } from '../../log/contents/readable-content.js';

/** The most lines of a content that are shown, and characters of each. */
export const MAX_CONTENT_LINES = 40;
export const MAX_CONTENT_LINE_LENGTH = 200;

interface ShownContent {
  readonly lines: readonly string[];
  /** Whether some of it is not in the lines. */
  readonly isCut: boolean;
}

/** The first lines of a content. */
export function showContent(bytes: Uint8Array): ShownContent {
  const readable = readableContent(bytes);
  if ('bytes' in readable) return { lines: [], isCut: true };
  const all = 'json' in readable ? linesOfJson(readable.json, '', '') : readable.text.split('\n');
  const lines: string[] = [];
  let isCut = false;
  for (const line of all) {
    if (lines.length === MAX_CONTENT_LINES) return { lines, isCut: true };
    isCut ||= line.length > MAX_CONTENT_LINE_LENGTH;
    lines.push(printable(line, MAX_CONTENT_LINE_LENGTH));
  }
  return { lines, isCut };
}

/** As `JSON.stringify` with two spaces, line by line: of a large value only the lines that are asked for are made. */
function* linesOfJson(value: JsonValue, indent: string, before: string, after = ''): Generator<string> {
  const isList = Array.isArray(value);
  const members =
    isList || (typeof value === 'object' && value !== null)
      ? Object.entries(value as Readonly<Record<string, JsonValue>>)
      : [];
  if (members.length === 0) {
    yield `${indent}${before}${JSON.stringify(value)}${after}`;
    return;
  }
  yield `${indent}${before}${isList ? '[' : '{'}`;
  for (const [index, [name, member]] of members.entries())
    yield* linesOfJson(
      member,
      `${indent}  `,
      isList ? '' : `${JSON.stringify(name)}: `,
      index < members.length - 1 ? ',' : '',
    );
  yield `${indent}${isList ? ']' : '}'}${after}`;
}
