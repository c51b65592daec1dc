/**
 * Pieces of a streamed answer that are as one before them but for their text: nothing of them needs to be parsed but how long that is.
 *
 * A piece is learnt from an event that was read in full and did nothing but add text. Later events that have the same bytes around their text
 * are the same JSON with another text, and have the same effect: the text has no quote, so no byte of it can be part of anything else. All
 * other events are read in full, those that could state usage, an end or an error among them.
 */

import { isUtf8 } from 'node:buffer';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
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
/** The longest event that is told by its likeness, in bytes. */
const MAX_PIECE_BYTES = 64 * 1024;
const MAX_TEMPLATES = 4;
/** How often it is tried to learn until an event is like one before. */
const MAX_TRIES = 64;
/** Members of events besides their text that differ and mean nothing here. */
const OTHERS: readonly (readonly [name: string, kind: HoleKind])[] = [
  ['obfuscation', 'padding'],
  ['sequence_number', 'number'],
];
const PROBES: Readonly<Record<HoleKind, string>> = {
  text: 'probe a',
  padding: 'probe b',
  number: '1029384756',
};

/** The templates of one answer. */
export class PieceTemplates {
  readonly #textOf: (data: JsonObject) => TextPath | undefined;
  readonly #templates: PieceTemplate[] = [];
  #tries = 0;

  /** @param textOf - The path of the text of an event that does nothing but add text, however often it comes */
  constructor(textOf: (data: JsonObject) => TextPath | undefined) {
    this.#textOf = textOf;
  }

  /**
   * How many bytes of text the event at `from` adds, where it is like one before.
   * @returns Undefined where it must be read
   */
  match(bytes: Buffer, from: number): { readonly end: number; readonly output: number } | undefined {
    for (const [index, template] of this.#templates.entries()) {
      const found = template.match(bytes, from);
      if (found === undefined) continue;
      this.#tries = 0;
      if (index > 0) this.#templates.unshift(...this.#templates.splice(index, 1));
      return found;
    }
    return undefined;
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
    this.#templates.unshift(new PieceTemplate(literals, holes, output - Buffer.byteLength(text)));
    this.#templates.splice(MAX_TEMPLATES);
  }
}

class PieceTemplate {
  readonly #first: Buffer;
  readonly #rest: readonly (readonly [kind: HoleKind, after: Buffer])[];
  /** Bytes of text that are the same in all. */
  readonly #constant: number;
  /** Of the text that was skipped last. Each is one byte. */
  #escapes = 0;

  constructor([first, ...rest]: readonly Buffer[], holes: readonly Hole[], constant: number) {
    this.#first = first ?? Buffer.alloc(0);
    this.#rest = rest.map((after, index) => [holes[index]?.kind ?? 'padding', after]);
    this.#constant = constant;
  }

  match(bytes: Buffer, from: number): { readonly end: number; readonly output: number } | undefined {
    const last = Math.min(bytes.length, from + MAX_PIECE_BYTES);
    let at = from + this.#first.length;
    if (at > last || this.#first.compare(bytes, from, at) !== 0) return undefined;
    let output = this.#constant;
    for (const [kind, after] of this.#rest) {
      const end = kind === 'number' ? skipNumber(bytes, at, last) : this.#skipText(bytes, at, last);
      if (end < 0) return undefined;
      if (kind === 'text') output += end - at - this.#escapes;
      at = end + after.length;
      if (at > last || after.compare(bytes, end, at) !== 0) return undefined;
    }
    return { end: at, output };
  }

  /** The place of the quote that ends a text; negative where it is no text that is plain. */
  #skipText(bytes: Buffer, from: number, last: number): number {
    this.#escapes = 0;
    let isAscii = true;
    let at = from;
    for (; at < last; at += 1) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) break;
      if (byte < 0x20) return -1;
      if (byte >= 0x80) isAscii = false;
      else if (byte === BACKSLASH) {
        // Of other escapes, only their digits say how many bytes they are.
        if (!SHORT_ESCAPES.has(bytes[at + 1] ?? 0)) return -1;
        this.#escapes += 1;
        at += 1;
      }
    }
    if (at >= last) return -1;
    return isAscii || isUtf8(bytes.subarray(from, at)) ? at : -1;
  }
}

/** The place after a whole number as JSON has them. */
function skipNumber(bytes: Buffer, from: number, last: number): number {
  let at = from;
  while (at < last && isDigit(bytes[at] as number)) at += 1;
  const length = at - from;
  const isPlain = length === 1 || (length > 1 && length <= 15 && bytes[from] !== ZERO);
  return isPlain ? at : -1;
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

function tryParse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 0x39;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
/** `"`, `\`, `/`, `b`, `f`, `n`, `r`, `t`. */
const SHORT_ESCAPES: ReadonlySet<number> = new Set([0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74]);
