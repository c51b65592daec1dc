/** apm2's files as entries: what each line, member or artifact is, before anything is checked against anything. */

import { finding } from './rules.js';
import { tryDecodeHex } from '../../base/bytes/encoding.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { decodeUtf8, encodeUtf8 } from '../../base/bytes/text.js';
import type { Fault } from '../../base/fault.js';
import { decodeSourceJson, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { findingOf } from '../shared/findings.js';
import { blake3Hex, decodeCacSource } from '../shared/forms/cac.js';
import type { HostFile, HostPlace } from '../shared/host.js';
import { compactJson, MAX_ITEM_BYTES, type ReadingBuilder, splitLines } from '../shared/reading.js';
import { textAt } from '../shared/values.js';
import { Fields, type KernelEvent, kernelEventOf, kindOf } from './events.js';
import { type LedgerRow, ledgerRowOf } from './ledger-rows.js';
import { checkAdapterProfile, PROFILE_SCHEMA, type ProfileReading } from './profile.js';
import {
  INDEX_SCHEMA,
  readToolLogIndex,
  readToolReceipt,
  RECEIPT_SCHEMA,
  receiptSigningBytes,
  type ToolLogIndex,
  type ToolReceipt,
} from './receipt.js';
import {
  frameOf,
  MAX_ARGS_SIZE,
  MAX_INTENT_LINE_BYTES,
  parseToolIntent,
  parseToolResponse,
} from './tool-intent.js';
import type { ProfileCode } from './checked.js';
import { escapePointer } from '../../base/json/pointer.js';

export type Said =
  | { readonly kind: 'event'; readonly event: KernelEvent }
  | { readonly kind: 'receipt'; readonly receipt: ToolReceipt }
  | { readonly kind: 'index'; readonly index: ToolLogIndex }
  | { readonly kind: 'profile'; readonly profile: ProfileReading }
  | {
      readonly kind: 'budget';
      readonly episode: string | undefined;
      readonly caps: ReadonlyMap<string, string>;
    }
  | { readonly kind: 'line'; readonly tag: 'TI1' | 'TR1'; readonly text: string };

/** One item that says something. */
export interface Entry {
  readonly at: HostPlace;
  readonly bytes: Uint8Array;
  readonly type: string;
  readonly said: Said;
  readonly row?: LedgerRow | undefined;
}

const EPISODE_BUDGET: Readonly<Record<string, string>> = {
  tokens: 'tokens',
  tool_calls: 'calls',
  wall_ms: 'time.ms',
  cpu_ms: 'time.cpu.ms',
  bytes_io: 'bytes.io',
  evidence_bytes: 'bytes.evidence',
};

/** How many lines are looked at to tell what a file is. */
const LOOKED_AT = 64;

/** Whether a file looks like one of apm2's. */
export function looksLikeApm2(file: HostFile): boolean {
  let looked = 0;
  for (const { bytes } of splitLines(file)) {
    if (frameOfBytes(bytes) !== undefined) return true;
    const decoded = bytes.length > MAX_ITEM_BYTES ? undefined : decodeSourceJson(bytes);
    if (decoded?.ok === true && isKnown(decoded.value)) return true;
    if (decoded?.ok !== true && looked === 0 && startsAsJson(file)) {
      const whole = file.bytes.length > MAX_ITEM_BYTES ? undefined : decodeSourceJson(file.bytes);
      if (whole?.ok === true) return members(whole.value).some(isKnown);
    }
    if (++looked > LOOKED_AT) return false;
  }
  return false;
}

function members(value: SourceValue): readonly SourceValue[] {
  if (Array.isArray(value)) return (value as readonly SourceValue[]).slice(0, LOOKED_AT);
  if (!(value instanceof SourceObject)) return [];
  const inner = value
    .entries()
    .flatMap(([, member]) =>
      Array.isArray(member) ? (member as readonly SourceValue[]).slice(0, 1) : [member],
    );
  return [value, ...(inner as readonly SourceValue[])];
}

function isKnown(value: SourceValue): boolean {
  if (!(value instanceof SourceObject)) return false;
  const schema = textAt(value, 'schema');
  if (schema === RECEIPT_SCHEMA || schema === INDEX_SCHEMA || schema === PROFILE_SCHEMA) return true;
  if (value.has('cas_json') || (ledgerRowOf(value) !== undefined && value.has('timestamp_ns'))) return true;
  const event = kernelEventOf(value);
  return event !== undefined && event.kind !== 'other';
}

/** A captured log may begin with a bracket too: `[INFO] …`. */
function startsAsJson({ bytes }: HostFile): boolean {
  const start = bytes.findIndex((byte) => byte > 0x20);
  const head = decodeUtf8(bytes, Math.max(start, 0), Math.min(bytes.length, start + 256));
  return start >= 0 && /^(?:\{\s*["}]|\[\s*[[{"\]])/.test(head);
}

/** Only as much of a line is decoded as its beginning needs. */
function frameOfBytes(bytes: Uint8Array): 'TI1' | 'TR1' | undefined {
  return frameOf(decodeUtf8(bytes, 0, Math.min(bytes.length, 512)));
}

/** All entries. What is none of them is accounted for where it is read. */
export type Entries = Pick<Reader, 'entries' | 'keys' | 'stored' | 'endings'>;

/** Reads files. Nothing in them makes it throw. */
export function readEntries(files: readonly HostFile[], builder: ReadingBuilder): Entries {
  const reader = new Reader(builder);
  const seenFiles = new Set<string>();
  for (const file of files) {
    const digest = sha256Base64url(file.bytes);
    reader.read(file, seenFiles.has(digest));
    seenFiles.add(digest);
  }
  return reader;
}

class Reader {
  readonly entries: Entry[] = [];
  /** Public keys that the files name as those of the signer. */
  readonly keys = new Set<string>();
  /** BLAKE3 of files that are named by it. */
  readonly stored = new Set<string>();
  /** The last line of each captured log that is not a frame, with what follows it, where it is JSON. */
  readonly endings = new Map<string, SourceObject | undefined>();
  readonly #builder: ReadingBuilder;
  /** Digests of items of the files before this one: what stands in several files is read once. */
  readonly #seen = new Set<string>();
  #seenHere: string[] = [];
  #isRepeated = false;
  /** Whether the file is one of the content-addressed store, and whole. */
  #isStored = false;

  constructor(builder: ReadingBuilder) {
    this.#builder = builder;
  }

  read(file: HostFile, isRepeated: boolean): void {
    this.#isRepeated = isRepeated;
    this.#seenHere = [];
    this.#isStored = false;
    this.#checkName(file);
    const isLog = this.#isLog(file);
    if (isLog) this.#readLog(file);
    else this.#readJson(file);
    for (const digest of this.#seenHere) this.#seen.add(digest);
  }

  /** A file that is named by 64 hexadecimal digits is one of the content-addressed store. */
  #checkName(file: HostFile): void {
    const name = /(?:^|[/\\!])([0-9a-f]{64})(?:\.[A-Za-z0-9]{1,8})?$/.exec(file.name)?.[1];
    if (name === undefined) return;
    const hash = blake3Hex(file.bytes);
    this.stored.add(hash);
    this.#isStored = hash === name;
    if (this.#isStored) return;
    this.#find('AP-9', 'STORED_CONTENT_MISMATCH', { file: file.name }, `the content of ${name}`, hash);
  }

  #isLog(file: HostFile): boolean {
    let looked = 0;
    let hasKnown = false;
    for (const { bytes } of splitLines(file)) {
      if (frameOfBytes(bytes) !== undefined) return true;
      if (looked++ < LOOKED_AT && !hasKnown && bytes.length <= MAX_ITEM_BYTES && bytes[0] === 0x7b) {
        const decoded = decodeSourceJson(bytes);
        hasKnown = decoded.ok && isKnown(decoded.value);
      }
    }
    return !hasKnown && !startsAsJson(file);
  }

  #readLog(file: HostFile): void {
    let lastFrame = 0;
    for (const { at, bytes, isTorn } of splitLines(file)) {
      const tag = frameOfBytes(bytes);
      if (isTorn && tag !== undefined && !isWholeFrame(tag, bytes)) {
        // The kernel takes no line before its end either.
        this.#find('INPUT', 'LINE_TORN', at, 'a line feed at the end', 'the file ends');
        this.#builder.drop(at, tag === 'TI1' ? 'tool_intent' : 'tool_response', 'LINE_TORN');
      } else if (bytes.length > MAX_INTENT_LINE_BYTES) {
        const isFrame = tag !== undefined;
        this.#builder.find(
          finding('LINE_TOO_LONG', at, {
            expected: `at most ${MAX_INTENT_LINE_BYTES} bytes`,
            actual: `${bytes.length} bytes`,
            weight: isFrame ? 'violation' : 'warning',
          }),
        );
        this.#builder.drop(at, isFrame ? 'tool_intent' : 'output', 'LINE_TOO_LONG');
      } else if (tag === undefined) {
        const text = decodeUtf8(bytes);
        this.#builder.drop(at, 'output', isVendorCall(text) ? 'VENDOR_TOOL_CALL' : 'OPAQUE_OUTPUT');
      } else {
        if (tag === 'TR1') lastFrame = at.line ?? 0;
        const type = tag === 'TI1' ? 'tool_intent' : 'tool_response';
        this.#add({ at, bytes, type, said: { kind: 'line', tag, text: decodeUtf8(bytes) } });
      }
    }
    this.endings.set(file.name, endingOf(file, lastFrame));
  }

  #readJson(file: HostFile): void {
    if (file.bytes.length <= MAX_ITEM_BYTES) {
      const whole = decodeSourceJson(file.bytes);
      if (whole.ok) {
        this.#document(whole.value, { file: file.name, line: firstLineOf(file) }, file.bytes);
        return;
      }
    }
    for (const { value, at, bytes } of this.#builder.lines(file)) this.#value(value, at, bytes);
  }

  /** A file that is one JSON value: an item, an array of items, or an object whose members are items. */
  #document(value: SourceValue, at: HostPlace, bytes: Uint8Array): void {
    const own = trimmed(bytes);
    if (Array.isArray(value)) {
      this.#list(value as readonly SourceValue[], at, '');
      return;
    }
    if (!(value instanceof SourceObject) || this.#isStored || this.#isItem(value)) {
      this.#value(value, at, own);
      return;
    }
    for (const [name, member] of value.entries()) {
      const pointer = `/${escapePointer(name.slice(0, 256))}`;
      const place = { file: at.file, pointer };
      if (Array.isArray(member)) this.#list(member as readonly SourceValue[], at, pointer);
      else if (member instanceof SourceObject) this.#value(member, place, encodeUtf8(compactJson(member)));
      else this.#builder.drop(place, 'remark', 'NOT_AN_EVENT');
    }
  }

  #list(list: readonly SourceValue[], { file }: HostPlace, pointer: string): void {
    for (const [i, element] of list.entries())
      this.#value(element, { file, pointer: `${pointer}/${i}` }, encodeUtf8(compactJson(element)));
  }

  #isItem(value: SourceObject): boolean {
    return (
      isKnown(value) ||
      looksLikeArtifact(value) ||
      budgetOf(value) !== undefined ||
      kernelEventOf(value) !== undefined
    );
  }

  #value(value: SourceValue, at: HostPlace, bytes: Uint8Array): void {
    if (!(value instanceof SourceObject)) {
      this.#unknown(at);
      return;
    }
    const wrapped = textAt(value, 'cas_json');
    if (wrapped !== undefined) this.#stored(value, wrapped, at);
    else if (looksLikeArtifact(value)) this.#artifact(value, at, bytes);
    else this.#event(value, at, bytes);
  }

  /** An artifact as a text, beside the hash that it is stored under. */
  #stored(value: SourceObject, text: string, at: HostPlace): void {
    const bytes = encodeUtf8(text);
    const decoded = decodeCacSource(bytes);
    if (!decoded.ok || !(decoded.value instanceof SourceObject)) {
      this.#find('INPUT', 'NOT_JSON', at, 'an artifact as JSON', 'something else');
      this.#builder.drop(at, 'artifact', 'NOT_JSON');
      return;
    }
    const hash = blake3Hex(bytes);
    const stated = textAt(value, 'cas_blake3') ?? textAt(value, 'cas_hash');
    const rule = ruleOf(decoded.value);
    this.stored.add(hash);
    if (stated !== undefined && stated !== hash)
      this.#find(rule, 'STORED_CONTENT_MISMATCH', at, stated, hash);
    const before = this.entries.length;
    this.#artifact(decoded.value, at, bytes);
    const said = this.entries.length > before ? this.entries[before]!.said : undefined;
    if (said?.kind !== 'receipt') return;
    const signing = tryDecodeHex(textAt(value, 'signing_bytes_hex') ?? '');
    if (signing !== undefined && signing.length > 0) {
      const own = receiptSigningBytes(said.receipt);
      if (own.length !== signing.length || own.some((byte, i) => byte !== signing[i]))
        this.#find('AP-4', 'RECEIPT_BYTES_MISMATCH', at, 'the bytes that its fields give', 'others');
    }
  }

  #artifact(value: SourceObject, at: HostPlace, bytes: Uint8Array): void {
    const rule = ruleOf(value);
    if (rule === 'AP-9') {
      const profile = checkAdapterProfile(value);
      this.#add({ at, bytes, type: 'adapter_profile', said: { kind: 'profile', profile } });
      return;
    }
    const isReceipt = rule === 'AP-4';
    const type = isReceipt ? 'tool_execution_receipt' : 'tool_log_index';
    const malformed = (fault: Fault<ProfileCode>): void => {
      const code = isReceipt ? 'RECEIPT_MALFORMED' : 'INDEX_MALFORMED';
      this.#find(rule, code, at, fault.expected, fault.actual, textAt(value, 'request_id'));
      this.#builder.drop(at, type, code);
    };
    if (isReceipt) {
      const receipt = readToolReceipt(value);
      if (!receipt.ok) malformed(receipt.fault);
      else this.#add({ at, bytes, type, said: { kind: 'receipt', receipt: receipt.value } });
    } else {
      const index = readToolLogIndex(value);
      if (!index.ok) malformed(index.fault);
      else this.#add({ at, bytes, type, said: { kind: 'index', index: index.value } });
    }
  }

  #event(value: SourceObject, at: HostPlace, bytes: Uint8Array): void {
    const row = ledgerRowOf(value);
    if (row !== undefined) {
      this.#add({
        at,
        bytes,
        type: row.eventType,
        said: { kind: 'event', event: eventOfRow(row, value) },
        row,
      });
      return;
    }
    const event = kernelEventOf(value);
    if (event !== undefined) {
      this.#add({ at, bytes, type: event.type, said: { kind: 'event', event } });
      return;
    }
    const caps = budgetOf(value);
    if (caps !== undefined) {
      const episode = textAt(value, 'episode_id');
      this.#add({ at, bytes, type: 'episode_budget', said: { kind: 'budget', episode, caps } });
      return;
    }
    const key = textAt(value, 'public_hex') ?? textAt(value, 'public_key');
    if (key !== undefined && /^[0-9a-f]{64}$/.test(key)) {
      this.keys.add(key);
      this.#builder.drop(at, 'signer', 'KEY');
      return;
    }
    this.#unknown(at);
  }

  #add(entry: Entry): void {
    const digest = sha256Base64url(entry.bytes);
    if (this.#isRepeated || this.#seen.has(digest)) {
      this.#builder.repeat(entry.at, entry.type, 'SAME_BYTES');
      return;
    }
    this.#seenHere.push(digest);
    this.entries.push(entry);
  }

  #unknown(at: HostPlace): void {
    if (this.#isStored) {
      this.#builder.drop(at, 'artifact', 'STORED_CONTENT');
      return;
    }
    this.#builder.find(finding('UNKNOWN_SHAPE', at));
    this.#builder.drop(at, 'unknown', 'UNKNOWN_SHAPE');
  }

  #find(rule: string, code: string, at: HostPlace, expected: string, actual: string, about?: string): void {
    this.#builder.find(findingOf(rule, 'invalid', code, at, { about, expected, actual }));
  }
}

/** Whether a frame that the file ends in may be all of it. */
function isWholeFrame(tag: 'TI1' | 'TR1', bytes: Uint8Array): boolean {
  if (bytes.length > MAX_INTENT_LINE_BYTES) return true;
  const text = decodeUtf8(bytes);
  const frame =
    tag === 'TI1' ? parseToolIntent(text, { maxArgsSize: MAX_ARGS_SIZE }) : parseToolResponse(text);
  return frame.ok;
}

function looksLikeArtifact(value: SourceObject): boolean {
  const schema = textAt(value, 'schema');
  if (schema === RECEIPT_SCHEMA || schema === INDEX_SCHEMA || schema === PROFILE_SCHEMA) return true;
  if (value.has('event_type')) return false;
  return (
    value.has('tool_execution_receipt_hashes') ||
    (value.has('signer_identity') && value.has('args_hash')) ||
    (value.has('adapter_mode') && value.has('profile_id'))
  );
}

function ruleOf(value: SourceObject): 'AP-4' | 'AP-5' | 'AP-9' {
  const schema = textAt(value, 'schema');
  if (schema === INDEX_SCHEMA || value.has('tool_execution_receipt_hashes')) return 'AP-5';
  return schema === PROFILE_SCHEMA || value.has('adapter_mode') ? 'AP-9' : 'AP-4';
}

function budgetOf(value: SourceObject): ReadonlyMap<string, string> | undefined {
  const inner = value.get('budget') ?? value.get('episode_budget');
  const fields = new Fields(inner instanceof SourceObject ? [inner] : [value]);
  if (fields.count('tokens') === undefined || fields.count('tool_calls') === undefined) return undefined;
  const caps = new Map<string, string>();
  for (const [name, unit] of Object.entries(EPISODE_BUDGET)) {
    const count = fields.count(name);
    if (count !== undefined) caps.set(unit, count);
  }
  return caps;
}

/** What a row's payload says, under the row's type. The daemon's session events have their own payload in hexadecimal. */
function eventOfRow(row: LedgerRow, value: SourceObject): KernelEvent {
  const { content } = row;
  const outer = value.without('payload');
  if (content === undefined) return { kind: 'other', type: row.eventType, fields: new Fields([outer]) };
  const hex = textAt(content, 'payload');
  const bytes = hex === undefined ? undefined : tryDecodeHex(hex);
  const inner = bytes === undefined ? undefined : decodeSourceJson(bytes);
  const layers = inner?.ok === true && inner.value instanceof SourceObject ? [inner.value] : [];
  const kind = kindOf(row.eventType);
  const nested = kernelEventOf(content);
  if (kind === 'other' && nested !== undefined && nested.kind !== 'other')
    return { ...nested, fields: nested.fields.with(layers, [outer]) };
  return {
    kind,
    type: row.eventType,
    fields:
      nested === undefined
        ? new Fields([...layers, content, outer])
        : nested.fields.with(layers, [content, outer]),
  };
}

/** How an agent writes its own tool calls: no id, no nonce, so nothing that the kernel takes. */
function isVendorCall(text: string): boolean {
  return /^\s*\{"tool"\s*:\s*"/.test(text);
}

const MAX_ENDING_BYTES = 64 * 1024;
const MAX_ENDING_LINES = 64;

/** The JSON object that a log ends with, on one line or on several; after line `after`. */
function endingOf(file: HostFile, after: number): SourceObject | undefined {
  const lines = [...splitLines(file)].slice(-MAX_ENDING_LINES);
  const ending: string[] = [];
  let size = 0;
  for (const { at, bytes } of lines.reverse()) {
    size += bytes.length;
    if ((at.line ?? 0) <= after || size > MAX_ENDING_BYTES) return undefined;
    ending.unshift(decodeUtf8(bytes));
    if (bytes[0] !== 0x7b) continue;
    const decoded = decodeSourceJson(encodeUtf8(ending.join('\n')));
    if (decoded.ok && decoded.value instanceof SourceObject) return decoded.value;
  }
  return undefined;
}

function firstLineOf(file: HostFile): number | undefined {
  for (const { at } of splitLines(file)) return at.line;
  return undefined;
}

function trimmed(bytes: Uint8Array): Uint8Array {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1]! <= 0x20) end--;
  let start = 0;
  while (start < end && bytes[start]! <= 0x20) start++;
  return bytes.subarray(start, end);
}
