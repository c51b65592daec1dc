/**
 * Pieces of a streamed answer that are as one before them but for their text: nothing of them needs to be parsed but how long that is.
 *
 * A piece is learnt from an event that was read in full and did nothing but add text. Later events that have the same bytes around their text
 * are the same JSON with another text, and have the same effect: the text has no quote, so no byte of it can be part of anything else. All
 * other events are read in full, those that could state usage, an end or an error among them.
 */

import { isUtf8 } from 'node:buffer';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { isJsonObject, type JsonObject, type JsonValue, tryParse } from '../../base/json/value.js';
import { EventStreamReader, type ServerSentEvent } from '../proxy/event-stream.js';

/** Where the text of a piece is: names of members and places in arrays. */
export type TextPath = readonly (string | number)[];

/** What may differ: the text that counts, a text that does not, or a whole number. */
type HoleKind = 'text' | 'padding' | 'number';

interface Hole {
  readonly kind: HoleKind;
  readonly path: TextPath;
  readonly from: number;
  readonly to: number;
}

/** The longest event that is learnt from, in bytes. */
const MAX_LEARNT_BYTES = 4_096;
const MAX_TEMPLATES = 4;
/** The most bytes of all templates: each has up to four literals, filled up, and what goes with them. */
export const MAX_TEMPLATES_BYTES = MAX_TEMPLATES * (MAX_LEARNT_BYTES + 256);
/** How often it is tried to learn until an event is like one before. */
const MAX_TRIES = 64;
/** Members of events besides their text that differ and mean nothing here. */
const OTHERS: readonly (readonly [name: string, kind: HoleKind])[] = [
  ['obfuscation', 'padding'],
  ['sequence_number', 'number'],
];
/** As `assembly/pieces.ts` has them. */
const KINDS: Readonly<Record<HoleKind, number>> = { number: 1, text: 2, padding: 3 };
/** What is compared at once, in bytes. */
const BLOCK = 16;
const PROBES: Readonly<Record<HoleKind, string>> = {
  text: 'probe a',
  padding: 'probe b',
  number: '1029384756',
};

/** The templates of one answer, as `assembly/pieces.ts` reads them. */
export class PieceTemplates {
  readonly #textOf: (data: JsonObject) => TextPath | undefined;
  /** The one that was learnt last is the first. */
  readonly #each: Uint8Array[] = [];
  #encoded: Uint8Array = new Uint8Array();
  #tries = 0;

  /** @param textOf - The path of the text of an event that does nothing but add text, however often it comes */
  constructor(textOf: (data: JsonObject) => TextPath | undefined) {
    this.#textOf = textOf;
  }

  /** All of them; others are other bytes. */
  get encoded(): Uint8Array {
    return this.#encoded;
  }

  get count(): number {
    return this.#each.length;
  }

  /** An event was like one before. */
  noteMatch(): void {
    this.#tries = 0;
  }

  /**
   * @param raw - All of one event, with the empty line that ends it, after another event
   * @param output - How many bytes of text it added
   */
  learn(raw: Buffer, { event, data }: ServerSentEvent, output: number): void {
    if (this.#tries >= MAX_TRIES) return;
    if (raw.length > MAX_LEARNT_BYTES || raw.includes(BACKSLASH) || !isUtf8(raw)) return;
    this.#tries += 1;
    const value = tryParse(decodeUtf8(data));
    const path = isJsonObject(value) ? this.#textOf(value) : undefined;
    const text = path === undefined ? undefined : valueAt(value, path);
    if (value === undefined || path === undefined || typeof text !== 'string') return;
    const paths: [TextPath, HoleKind][] = [[path, 'text']];
    for (const [name, kind] of OTHERS) if (valueAt(value, [name]) !== undefined) paths.push([[name], kind]);
    const holes: Hole[] = [];
    for (const [each, kind] of paths) {
      const hole = findHole(raw, each, kind, valueAt(value, each));
      if (hole === undefined) return;
      holes.push(hole);
    }
    holes.sort((a, b) => a.from - b.from);
    const literals = literalsOf(raw, holes);
    if (!isAlike(literals, holes, { event, value })) return;
    this.#each.unshift(encode(literals, holes, output - Buffer.byteLength(text)));
    this.#each.splice(MAX_TEMPLATES);
    this.#encoded = Buffer.concat(this.#each);
  }
}

/** @param constant - Bytes of text that are the same in all */
function encode(literals: readonly Buffer[], holes: readonly Hole[], constant: number): Uint8Array {
  const parts = literals.map((literal, index) => {
    const kind = holes[index - 1]?.kind;
    const blocks = Math.max(1, Math.ceil(literal.length / BLOCK));
    const part = Buffer.alloc((2 + blocks) * BLOCK);
    part.writeInt32LE(kind === undefined ? 0 : KINDS[kind], 0);
    part.writeInt32LE(literal.length, 4);
    part.fill(0xff, BLOCK, BLOCK + literal.length - (blocks - 1) * BLOCK);
    part.set(literal, 2 * BLOCK);
    return part;
  });
  const head = Buffer.alloc(BLOCK);
  head.writeInt32LE(BLOCK + parts.reduce((sum, { length }) => sum + length, 0), 0);
  head.writeInt32LE(constant, 4);
  head.writeInt32LE(parts.length, 8);
  return Buffer.concat([head, ...parts]);
}

/** Where a value stands in an event. It is only supposed to be that one. */
function findHole(
  raw: Buffer,
  path: TextPath,
  kind: HoleKind,
  value: JsonValue | undefined,
): Hole | undefined {
  const written = textOf(value);
  if (written === undefined || (typeof value === 'number') !== (kind === 'number')) return undefined;
  for (const colon of [':', ': ']) {
    const before = `"${path.at(-1)}"${colon}${kind === 'number' ? '' : '"'}`;
    const at = raw.indexOf(`${before}${written}${kind === 'number' ? '' : '"'}`);
    if (at < 0) continue;
    const from = at + Buffer.byteLength(before);
    return { kind, path, from, to: from + Buffer.byteLength(written) };
  }
  return undefined;
}

/** As it is written without its quotes, if no escapes are needed. */
function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'number' ? JSON.stringify(value) : typeof value === 'string' ? value : undefined;
}

function literalsOf(raw: Buffer, holes: readonly Hole[]): Buffer[] {
  const literals: Buffer[] = [];
  let from = 0;
  for (const hole of holes) {
    literals.push(Buffer.from(raw.subarray(from, hole.from)));
    from = hole.to;
  }
  return [...literals, Buffer.from(raw.subarray(from))];
}

/** Whether an event with other values there is the same event with other values where they are meant to be. */
function isAlike(
  literals: readonly Buffer[],
  holes: readonly Hole[],
  { event, value }: { readonly event: string; readonly value: JsonValue },
): boolean {
  const parts = literals.flatMap((literal, index) => {
    const hole = holes[index];
    return hole === undefined ? [literal] : [literal, Buffer.from(PROBES[hole.kind])];
  });
  const reader = new EventStreamReader();
  // What is learnt from comes after another event.
  const [probed, ...more] = [...reader.push(Buffer.from('\n')), ...reader.push(Buffer.concat(parts))];
  if (probed === undefined || more.length > 0 || probed.event !== event || !reader.isBetween) return false;
  const other = tryParse(decodeUtf8(probed.data));
  for (const { kind, path } of holes) {
    if (textOf(valueAt(other, path)) !== PROBES[kind]) return false;
    setAt(other, path, valueAt(value, path));
  }
  return JSON.stringify(other) === JSON.stringify(value);
}

function valueAt(value: JsonValue | undefined, path: TextPath): JsonValue | undefined {
  let at = value;
  for (const step of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined;
    at = (at as Record<string | number, JsonValue>)[step];
  }
  return at;
}

function setAt(value: JsonValue | undefined, path: TextPath, to: JsonValue | undefined): void {
  const parent = valueAt(value, path.slice(0, -1)) as Record<string | number, JsonValue | undefined>;
  parent[path.at(-1) ?? ''] = to;
}

const BACKSLASH = 0x5c;
