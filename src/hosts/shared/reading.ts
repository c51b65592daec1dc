/** What a host puts its reading together with: items that are all accounted for, findings, claims, the times of items that state none. */

import type {
  Claim,
  HostFile,
  HostFinding,
  HostItem,
  HostOptions,
  HostPlace,
  HostReading,
  LeftOut,
  Observation,
  SourceItem,
} from './host.js';
import { decodeLatin1, encodeUtf8 } from '../../base/bytes/text.js';
import {
  decodeSourceJson,
  type SourceJsonOptions,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../base/json/source-json.js';
import { byteOrderMarkLength, findInvalidUtf8 } from '../../base/json/utf8.js';
import { isArchive } from './archive.js';
import { printable } from '../../base/bytes/printable.js';
import { checkOptions } from '../../base/options.js';

/**
 * Checks what a host or a checker is called with.
 *
 * @param aids - Those that it takes, by name.
 * @throws TypeError, RangeError for options that are not known or of the wrong type, for an aid that is none of `aids`, and for
 *   `unverified` where there are no receipts
 */
export function checkReadOptions(
  where: string,
  options: HostOptions,
  aids: Readonly<Record<string, string>> = {},
  { hasReceipts = false }: { readonly hasReceipts?: boolean } = {},
): void {
  checkOptions(where, options, { occurredAt: 'string', aids: 'object', unverified: 'boolean' });
  if (options.unverified === true && !hasReceipts) throw new RangeError(`${where}: it has no receipts`);
  const known = Object.keys(aids);
  const other = Object.keys(options.aids ?? {}).find((name) => !known.includes(name));
  if (other === undefined) return;
  const there = known.length === 0 ? 'it takes none' : `there are ${known.join(', ')}`;
  throw new RangeError(`${where}: there is no aid ${printable(other, 80)}; ${there}`);
}

/** The longest line that is read, in bytes: the largest frame that any of the hosts writes, and more than any event. */
export const MAX_ITEM_BYTES = 16 * 1024 * 1024;

/** The longest text that holds many items: a response with a list of rows is one line, whatever it holds. In bytes. */
const MAX_DOCUMENT_BYTES = 64 * 1024 * 1024;

/** Collects a {@link HostReading}. */
export class ReadingBuilder {
  readonly #items: HostItem[] = [];
  readonly #claims: Claim[] = [];
  readonly #observations: Observation[] = [];
  readonly #findings: HostFinding[] = [];
  readonly #leftOut: LeftOut[] = [];
  readonly #times = new Map<string, string>();
  readonly #options: HostOptions;

  constructor(options: HostOptions = {}) {
    this.#options = options;
  }

  /** Says what became of an item. Each item is said once. */
  item(item: HostItem): void {
    this.#items.push(item);
  }

  /** An item of which nothing is kept. */
  drop(at: HostPlace, type: string, reason: string): void {
    this.#items.push({ at, type, fate: 'dropped', reason });
  }

  /** An item that says what another said before it. */
  repeat(at: HostPlace, type: string, reason: string): void {
    this.#items.push({ at, type, fate: 'repeated', reason });
  }

  claim(claim: Claim): void {
    this.#claims.push(claim);
  }

  observe(observation: Observation): void {
    this.#observations.push(observation);
  }

  find(finding: HostFinding): void {
    this.#findings.push(finding);
  }

  /** Usage that is counted nowhere, where there is any; a finding is to report it too. */
  leaveOut(leftOut: LeftOut): void {
    if (leftOut.meters.length > 0) this.#leftOut.push(leftOut);
  }

  /**
   * The time of an item: the one that it states; else the last that an item before it in its file stated, else the one that the user
   * gave, with a finding in both cases. Undefined where there is none: the item is to be dropped with `TIME_NOT_STATED`.
   */
  timeOf(stated: string | undefined, at: HostPlace, about?: string): string | undefined {
    if (stated !== undefined) {
      this.#times.set(at.file, stated);
      return stated;
    }
    const time = this.#times.get(at.file) ?? this.#options.occurredAt;
    this.find({
      rule: 'INPUT',
      code: 'TIME_NOT_STATED',
      severity: 'warning',
      class: 'none',
      at,
      about,
      expected: 'a date and time',
      actual: time === undefined ? 'none' : `none; ${time}, of what is before it, stands for it`,
    });
    return time;
  }

  /**
   * The lines of a file, each one JSON text. What is not is dropped, with a finding. Blank lines are no items; a file that is not text
   * is one, whatever looks like lines in it. A file that is one JSON text over several lines is one item, or of an array its elements.
   */
  *lines(
    file: HostFile,
    options?: SourceJsonOptions,
    maxBytes = MAX_ITEM_BYTES,
  ): Generator<SourceItem, void, void> {
    if (!isText(file.bytes)) {
      const actual = isArchive(file.bytes) ? 'an archive, which is to be unpacked first' : 'a binary file';
      this.#refuse({ file: file.name }, 'NOT_TEXT', 'lines of JSON in UTF-8', actual);
      return;
    }
    if (this.refuseTable(file)) return;
    const document = readDocument(file, options);
    if (document !== undefined) {
      const actual = 'JSON over several lines that is not one value';
      if (document.length === 0)
        this.#refuse({ file: file.name }, 'NOT_LINES', 'one JSON value a line', actual);
      yield* document;
      return;
    }
    for (const { at, bytes, isTorn } of splitLines(file)) {
      const item = this.json({ at, bytes }, options, isTorn, maxBytes);
      if (item !== undefined) yield item;
    }
  }

  /** Drops a file that is a table, as one item with a finding. Returns whether it is one. */
  refuseTable(file: HostFile): boolean {
    const separator = isArchive(file.bytes) ? undefined : separatorOf(file);
    if (separator === undefined) return false;
    const kind = separator === '\t' ? 'a table with tabs (TSV)' : 'a table in CSV';
    this.#refuse(
      { file: file.name },
      'TABLE',
      'JSON: the same export as JSON, one row a line or a list',
      kind,
    );
    return true;
  }

  /** A text that is one JSON value. What is not is dropped, with a finding. */
  json(
    { at, bytes: marked }: Omit<SourceItem, 'value'>,
    options?: SourceJsonOptions,
    isTorn = false,
    maxBytes = MAX_ITEM_BYTES,
  ): SourceItem | undefined {
    const bytes = withoutMark(marked);
    if (bytes.length > maxBytes) {
      this.#refuse(at, 'LINE_TOO_LONG', `at most ${maxBytes} bytes`, `${bytes.length} bytes`);
      return undefined;
    }
    const decoded = decodeSourceJson(bytes, options);
    if (decoded.ok) return { at, bytes, value: decoded.value };
    const { code, expected, actual } = decoded.fault;
    this.#refuse(at, isTorn && code === 'NOT_JSON' ? 'LINE_TORN' : code, expected, actual);
    return undefined;
  }

  finish(): HostReading {
    return {
      items: this.#items,
      claims: this.#claims,
      observations: this.#observations,
      findings: this.#findings,
      leftOut: this.#leftOut,
    };
  }

  #refuse(at: HostPlace, code: string, expected: string, actual: string): void {
    this.find({ rule: 'INPUT', code, severity: 'error', class: 'invalid', at, expected, actual });
    this.drop(at, 'unknown', code);
  }
}

/** Whether one of the first items of a file that are JSON is a host's own, of at most `most` lines. */
export function hasOwnLine(file: HostFile, most: number, isOwn: (item: SourceItem) => boolean): boolean {
  const document = readDocument(file);
  if (document !== undefined) return document.slice(0, most).some(isOwn);
  let left = most;
  for (const { at, bytes } of splitLines(file)) {
    if (left-- === 0) return false;
    const value = jsonIn(bytes);
    if (value !== undefined && isOwn({ at, bytes, value })) return true;
  }
  return false;
}

/** The value of JSON text; undefined of any other, and of one that is longer than {@link MAX_ITEM_BYTES}. */
export function jsonIn(bytes: Uint8Array, options?: SourceJsonOptions): SourceValue | undefined {
  const decoded = bytes.length > MAX_ITEM_BYTES ? undefined : decodeSourceJson(bytes, options);
  return decoded?.ok === true ? decoded.value : undefined;
}

/** The lines of a file that are not blank; of the last one whether its line feed is missing. */
export function* splitLines(
  file: HostFile,
): Generator<{ readonly at: HostPlace; readonly bytes: Uint8Array; readonly isTorn: boolean }, void, void> {
  const bytes = withoutMark(file.bytes);
  for (let from = 0, line = 1; from < bytes.length; line++) {
    const end = bytes.indexOf(0x0a, from);
    const isTorn = end < 0;
    const to = isTorn ? bytes.length : end;
    const text = bytes.subarray(from, to > from && bytes[to - 1] === 0x0d ? to - 1 : to);
    if (text.some((byte) => byte !== 0x20 && byte !== 0x09))
      yield { at: { file: file.name, line }, bytes: text, isTorn };
    from = to + 1;
  }
}

/**
 * The items of a file that is one JSON text over several lines: it, or the elements of an array. None where it is neither one text nor
 * lines; undefined where it is lines.
 */
function readDocument(file: HostFile, options?: SourceJsonOptions): readonly SourceItem[] | undefined {
  const lines = splitLines(file);
  const first = lines.next();
  const second = lines.next();
  if (first.done === true || second.done === true) return undefined;
  if (!isBeginning(first.value.bytes, second.value.bytes)) return undefined;
  const bytes = withoutMark(file.bytes);
  const decoded = bytes.length > MAX_DOCUMENT_BYTES ? undefined : decodeSourceJson(bytes, options);
  const at = { file: file.name };
  if (decoded?.ok !== true) {
    // A log whose first line is torn continues in whole ones.
    if (first.value.bytes[0] !== 0x5b) for (const line of lines) if (isWhole(line.bytes)) return undefined;
    return [];
  }
  const { value } = decoded;
  const list = Array.isArray(value) ? (value as readonly SourceValue[]) : undefined;
  return list === undefined || list.length === 0 ? [{ at, bytes, value }] : [...membersOf(at, '', list)];
}

/** Whether a text begins that continues in the next line: a bracket alone, or a line that the next one, which is indented, belongs to. */
function isBeginning(first: Uint8Array, second: Uint8Array): boolean {
  const text = decodeLatin1(first, 0, Math.min(first.length, HEAD_BYTES)).trim();
  if (/^\[\s*\{?$/.test(text)) return true;
  if (text === '{') return !isWhole(second);
  return /^[[{]/.test(text) && !isWhole(first) && (second[0] === 0x20 || second[0] === 0x09);
}

/** Whether a line begins and ends as an object of a log does. */
function isWhole(line: Uint8Array): boolean {
  const last = line.findLast((byte) => byte !== 0x20 && byte !== 0x09);
  return line[0] === 0x7b && line.length > 1 && last === 0x7d;
}

/** A byte order mark is no part of what it stands before. */
function withoutMark(bytes: Uint8Array): Uint8Array {
  const length = byteOrderMarkLength(bytes, 0, bytes.length);
  return length === 0 ? bytes : bytes.subarray(length);
}

/** So much of a file's beginning shows whether it is text. */
const HEAD_BYTES = 4096;
/** One line in so many begins as JSON in what is a log all the same. */
const FEW_LINES = 16;

const COLUMNS =
  /^(?:"[^"\n]*"|[^\n",;\t{}[\]]+)([,;\t])(?:"[^"\n]*"|[^\n",;\t{}[\]]*)(?:\1(?:"[^"\n]*"|[^\n",;\t{}[\]]*))*\r?(?:\n(?!\{)|$)/;

/** What stands between the columns of a file that is a table; undefined where it is none. */
export function separatorOf({ bytes }: HostFile): ',' | ';' | '\t' | undefined {
  const text = withoutMark(bytes);
  const head = decodeLatin1(text, 0, Math.min(text.length, HEAD_BYTES));
  const [, separator] = COLUMNS.exec(head) ?? [];
  return separator as ',' | ';' | '\t' | undefined;
}

/** Whether a file is text, however damaged: it begins as text does, or has lines that begin as JSON. */
function isText(bytes: Uint8Array): boolean {
  if (isArchive(bytes)) return false;
  const text = withoutMark(bytes);
  const head = text.subarray(0, HEAD_BYTES);
  const first = head.find((byte) => byte > 0x20);
  if (first === 0x7b || first === 0x5b || first === 0x22) return !hasNul(head, 4);
  const invalid = findInvalidUtf8(head, 0, head.length);
  // The last character of the head may be cut.
  const isUtf8 = invalid < 0 || (head.length === HEAD_BYTES && invalid > HEAD_BYTES - 4);
  if (isUtf8 && !hasNul(head, head.length)) return true;
  let [lines, objects] = [0, 0];
  for (let at = text.indexOf(0x0a); at >= 0; at = text.indexOf(0x0a, at + 1)) {
    lines += 1;
    if (text[at + 1] === 0x7b && text[at + 2] === 0x22) objects += 1;
  }
  return objects * FEW_LINES > lines;
}

function hasNul(bytes: Uint8Array, length: number): boolean {
  return bytes.subarray(0, length).includes(0);
}

/**
 * The JSON texts of a file: one for each line where the first line is one by itself, else the file as a whole. What cannot be read is an
 * item that is dropped, with a finding.
 */
export function* documentsOf(reading: ReadingBuilder, file: HostFile): Generator<SourceItem, void, void> {
  if (reading.refuseTable(file)) return;
  if (isOneDocument(file)) {
    const item = reading.json(
      { at: { file: file.name }, bytes: file.bytes },
      undefined,
      false,
      MAX_DOCUMENT_BYTES,
    );
    if (item !== undefined) yield item;
  } else {
    yield* reading.lines(file, undefined, MAX_DOCUMENT_BYTES);
  }
}

/** The JSON texts of a file that can be read, for looking at what it is. */
export function peekDocuments(file: HostFile): Generator<SourceItem, void, void> {
  return documentsOf(new ReadingBuilder(), file);
}

/** A line of its own ends as it began. A first line that is torn, at its end or at its beginning, leaves the second as it was. */
function isOneDocument(file: HostFile): boolean {
  const [first, second] = splitLines(file);
  if (first === undefined || second === undefined) return false;
  return !isClosed(first.bytes) && !(first.bytes[0] !== OPEN_ARRAY && isClosed(second.bytes));
}

const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];

function isClosed(line: Uint8Array): boolean {
  const last = line.findLast((byte) => byte !== 0x20 && byte !== 0x09);
  return (
    (line[0] === OPEN_OBJECT && last === CLOSE_OBJECT) || (line[0] === OPEN_ARRAY && last === CLOSE_ARRAY)
  );
}

/** Members of a list in a text, each an item of its own whose bytes are its compact form. */
export function* membersOf(
  at: HostPlace,
  pointer: string,
  list: readonly SourceValue[],
): Generator<SourceItem, void, void> {
  for (const [index, value] of list.entries())
    yield {
      at: { ...at, pointer: `${pointer}/${index}` },
      bytes: encodeUtf8(compactJson(value)),
      value,
    };
}

/** The value as JSON text without white space, its members in their own order and its numbers as they were written. */
export function compactJson(value: SourceValue): string {
  if (value instanceof SourceNumber) return value.text;
  if (value instanceof SourceObject) {
    const members = value.entries().map(([name, member]) => `${JSON.stringify(name)}:${compactJson(member)}`);
    return `{${members.join(',')}}`;
  }
  if (Array.isArray(value)) return `[${(value as readonly SourceValue[]).map(compactJson).join(',')}]`;
  return JSON.stringify(value);
}
