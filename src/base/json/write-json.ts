/** Streams JSON: a report may be longer than a string can be, or than memory should hold. */

import type { ByteSink } from '../bytes/byte-sink.js';

/** Characters per write, or a little more. */
const BATCH = 64 * 1024;
/** The limit of JSON.stringify. */
const MAX_INDENT = 10;

/**
 * Writes a value as JSON, lists element by element. Every iterable is a list and is read while it is written; the text is that of
 * JSON.stringify with arrays instead.
 *
 * @param indent - Spaces per level, 0 to 10; 0, the default, writes one line.
 * @throws RangeError for another `indent`; what `sink` and the lists throw.
 */
export async function writeJson(sink: ByteSink, value: unknown, indent = 0): Promise<void> {
  if (!Number.isInteger(indent) || indent < 0 || indent > MAX_INDENT)
    throw new RangeError(`indent must be an integer from 0 to ${MAX_INDENT}`);
  let batch = '';
  for (const piece of piecesOf(value, indent, indent === 0 ? '' : '\n')) {
    batch += piece;
    if (batch.length < BATCH) continue;
    const room = sink.write(batch);
    batch = '';
    if (room !== undefined) await room;
  }
  await sink.write(batch);
}

/** @param margin - The text before a closing bracket. */
function* piecesOf(value: unknown, indent: number, margin: string): Generator<string, void, void> {
  if (!holdsList(value)) {
    const text = JSON.stringify(value ?? null, undefined, indent);
    yield indent === 0 ? text : text.replaceAll('\n', margin);
    return;
  }
  const inner = `${margin}${' '.repeat(indent)}`;
  const isOfMany = isList(value);
  let separator = inner;
  yield isOfMany ? '[' : '{';
  for (const [name, member] of isOfMany ? unnamed(value) : Object.entries(value)) {
    if (name !== undefined && member === undefined) continue;
    yield name === undefined ? separator : `${separator}${JSON.stringify(name)}:${indent === 0 ? '' : ' '}`;
    yield* piecesOf(member, indent, inner);
    separator = `,${inner}`;
  }
  const isEmpty = separator === inner;
  yield `${isEmpty ? '' : margin}${isOfMany ? ']' : '}'}`;
}

function* unnamed(list: Iterable<unknown>): Generator<[undefined, unknown], void, void> {
  for (const each of list) yield [undefined, each];
}

function isList(value: object): value is Iterable<unknown> {
  return Symbol.iterator in value;
}

function holdsList(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  return isList(value) || Object.values(value).some(holdsList);
}
