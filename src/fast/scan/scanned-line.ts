/**
 * A scannable record: a row of numbers ({@link scanRecord}) and the bytes that they are offsets into. Texts are decoded on request, and
 * the event is parsed only on request.
 */

import { isTextAt } from '../../base/bytes/compare.js';
import { allocateScratch } from '../../base/bytes/concat.js';
import { decodeLatin1, decodeUtf8 } from '../../base/bytes/text.js';
import type { JsonObject } from '../../base/json/value.js';
import { toRational } from '../../base/value/quantity.js';
import { type Rational, rationalOfDecimal } from '../../base/value/rational.js';
import {
  type ActionOutline,
  type AdjustmentOutline,
  type AuthorizationTerms,
  estimatedUnits,
  type ExecutionOutline,
  type OutlineOf,
  type UnitAmount,
} from '../../format/event/outline.js';
import type { EventTypes, TypeName } from '../../format/event/typed-event.js';
import type { Span } from '../../format/record/event-bytes.js';
import type { ExaminedLine, ScannedFacts, SignatureEntry } from '../../format/record/examine-line.js';
import type { MeterBasisByUnit, ResourceRef } from '../../format/schema/generated/types.js';
import { hasTrueIdentity } from './identity.js';
import { slotOf } from './relate.js';
import * as row from './scan.js';
import { B64_LENGTH, BEFORE_KEYID, REMEMBERED } from './tables.js';

const { ROW_WIDTH, scanRecord } = row;

/** How many signatures a record has. */
export function signatureCountOf(rows: Int32Array, at: number): number {
  return rows[at * ROW_WIDTH + row.SIGNATURE_COUNT]!;
}

/** The keyid of signature `index` of a record. */
export function keyidOf(bytes: Uint8Array, rows: Int32Array, at: number, index: number): string {
  const keyid = keyidAt(bytes, rows, at * ROW_WIDTH, index);
  return recallText(bytes, keyid, keyid + B64_LENGTH);
}

/** The offset of signature `index` of a record, base64url. */
export function signatureAt(bytes: Uint8Array, rows: Int32Array, at: number, index: number): number {
  return keyidAt(bytes, rows, at * ROW_WIDTH, index) + SIG_AFTER_KEYID;
}

/** The keyid and `","sig":"`. */
const SIG_AFTER_KEYID = B64_LENGTH + 9;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ZERO = 0x30;

/** The offset of the keyid of signature `index`. @param base - The beginning of the row. */
export function keyidAt(bytes: Uint8Array, rows: Int32Array, base: number, index: number): number {
  let keyid = rows[base + row.SIGNATURES]! + BEFORE_KEYID;
  // `"},` and the next one.
  for (let i = 0; i < index; i += 1) keyid = closingQuote(bytes, keyid + SIG_AFTER_KEYID) + 3 + BEFORE_KEYID;
  return keyid;
}

/** The offset of the quote after a text without escapes. */
export function closingQuote(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] !== QUOTE) at += 1;
  return at;
}

/*
 * A cache of repeated texts (principals, tools, units, ids of grants and of the ledger): comparing and looking up the same string is
 * faster. A text has one place, and replaces the one there.
 */
const MAX_REMEMBERED_LENGTH = 128;
const texts: string[] = new Array<string>(REMEMBERED).fill('');
const digestTexts: string[] = new Array<string>(REMEMBERED).fill('');
const SHA256_PREFIX = 'sha-256:';

/** A text of the bytes, the same string as at the last call where cached. */
export function recallText(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start;
  if (length > MAX_REMEMBERED_LENGTH) return decodeLatin1(bytes, start, end);
  const slot = slotOf(bytes, start, end);
  const known = texts[slot]!;
  if (known.length === length && isTextAt(bytes, start, known)) return known;
  return (texts[slot] = decodeLatin1(bytes, start, end));
}

/** The text, `alg:b64`, of the digest at `at`. */
export function digestTextAt(bytes: Uint8Array, at: number): string {
  // `{"alg":"`
  const alg = at + 8;
  const algEnd = closingQuote(bytes, alg);
  // `","b64":"`
  const b64 = algEnd + 9;
  const end = closingQuote(bytes, b64);
  if (end - b64 !== B64_LENGTH || !isTextAt(bytes, alg, 'sha-256"'))
    return `${decodeLatin1(bytes, alg, algEnd)}:${decodeLatin1(bytes, b64, end)}`;
  const slot = slotOf(bytes, b64, end);
  const known = digestTexts[slot]!;
  if (known.length !== 0 && isTextAt(bytes, b64, known, SHA256_PREFIX.length)) return known;
  return (digestTexts[slot] = `${SHA256_PREFIX}${decodeLatin1(bytes, b64, end)}`);
}

/** Reads the meters of a scannable record, in order. */
export class MeterReader {
  /** The current meter: its unit, the offsets of its digits, and how many of them are after the point. */
  unit = '';
  start = 0;
  end = 0;
  scale = 0;
  #bytes: Uint8Array = new Uint8Array();
  #left = 0;
  #at = 0;

  /** @param base - The beginning of the row. */
  begin(bytes: Uint8Array, rows: Int32Array, base: number): void {
    this.#bytes = bytes;
    this.#left = rows[base + row.METER_COUNT]!;
    this.#at = rows[base + row.METERS]!;
  }

  /** Reads the next one; false where there is none. */
  next(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    const bytes = this.#bytes;
    const at = this.#at;
    // `{"amount":{`, then `"t":"int","v":"` or `"m":"`.
    const isInteger = bytes[at + 12] === 0x74;
    const start = at + (isInteger ? 26 : 16);
    const end = closingQuote(bytes, start);
    // `"},"unit":"`, or `","s":` and a number and `,"t":"dec"},"unit":"`.
    let scale = 0;
    let unit = end + 11;
    if (!isInteger) {
      let s = end + 6;
      for (; bytes[s] !== 0x2c; s += 1) scale = scale * 10 + bytes[s]! - ZERO;
      unit = s + 20;
    }
    const unitEnd = closingQuote(bytes, unit);
    this.unit = recallText(bytes, unit, unitEnd);
    this.start = start;
    this.end = end;
    this.scale = scale;
    // `"},`
    this.#at = unitEnd + 3;
    return true;
  }
}

/** Used again for each line. */
const meters = new MeterReader();

const NO_FAULTS: readonly never[] = [];
const NO_RESOURCES: readonly ResourceRef[] = [];
const TYPE_NAMES: readonly TypeName[] = [
  'other',
  'authorization',
  'execution',
  'adjustment',
  'other',
  'other',
];

/**
 * An examined line without faults, over a row of {@link scanRecord} whose ids are right ({@link hasTrueIdentity}). Bytes and row MUST NOT
 * change while it is in use.
 */
export class ScannedLine {
  readonly layout = 'records';
  readonly wellFormed = true;
  readonly faults: readonly never[] = NO_FAULTS;
  readonly type: TypeName;
  readonly #bytes: Uint8Array;
  readonly #rows: Int32Array;
  readonly #base: number;
  #eventId: string | undefined;
  #occurredAt: string | undefined;
  #signatures: readonly SignatureEntry[] | undefined;
  #event: JsonObject | undefined;
  #outline: OutlineOf<TypeName>;

  constructor(bytes: Uint8Array, rows: Int32Array, at: number) {
    this.#bytes = bytes;
    this.#rows = rows;
    this.#base = at * ROW_WIDTH;
    this.type = TYPE_NAMES[rows[this.#base + row.TYPE]!]!;
  }

  get seq(): number {
    return this.#get(row.SEQ_HIGH) * 2 ** 30 + this.#get(row.SEQ_LOW);
  }

  get prev(): string {
    return this.#cut(this.#get(row.PREV), B64_LENGTH);
  }

  get eventId(): string {
    return (this.#eventId ??= this.#cut(this.#get(row.EVENT_ID), B64_LENGTH));
  }

  get ledgerId(): string | undefined {
    return this.#recall43(row.LEDGER_ID);
  }

  get previousId(): string | undefined {
    return this.#cut43(row.PREVIOUS_ID);
  }

  get eventType(): string {
    return this.type === 'other' ? this.#recall(row.EVENT_TYPE) : this.type;
  }

  get occurredAt(): string {
    return (this.#occurredAt ??= this.#textAt(row.OCCURRED_AT));
  }

  get principalId(): string {
    return this.#recall(row.PRINCIPAL);
  }

  get toolName(): string | undefined {
    if (this.#get(row.TOOL) === 0) return undefined;
    return this.type === 'other' ? this.#anyText(row.TOOL) : this.#recall(row.TOOL);
  }

  get signatures(): readonly SignatureEntry[] {
    return (this.#signatures ??= this.#readSignatures());
  }

  get span(): Span {
    const start = this.#get(row.LINE_START);
    return { start: this.#get(row.EVENT_START) - start, end: this.#get(row.EVENT_END) - start };
  }

  json(): JsonObject {
    const text = (): string => decodeUtf8(this.#bytes, this.#get(row.EVENT_START), this.#get(row.EVENT_END));
    return (this.#event ??= JSON.parse(text()) as JsonObject);
  }

  event(): EventTypes[TypeName] {
    return this.json() as object as EventTypes[TypeName];
  }

  outline(): OutlineOf<TypeName> {
    return (this.#outline ??= this.#readOutline());
  }

  terms(): AuthorizationTerms | undefined {
    return this.type === 'authorization' ? this.#readTerms() : undefined;
  }

  #readOutline(): OutlineOf<TypeName> {
    switch (this.#get(row.TYPE)) {
      case row.AUTHORIZATION:
        return this.#readAction();
      case row.EXECUTION:
        return this.#readExecution();
      case row.ADJUSTMENT:
        return this.#readAdjustment();
      default:
        return undefined;
    }
  }

  #readTerms(): Pick<ActionOutline, 'kind' | 'decision' | 'grantId'> {
    return {
      kind: 'action',
      decision: (this.#get(row.FLAGS) & row.IS_DENY) === 0 ? 'allow' : 'deny',
      grantId: this.#recall43(row.LINK),
    };
  }

  #readAction(): ActionOutline {
    const { kind, decision, grantId } = this.#readTerms();
    return {
      kind,
      decision,
      grantId,
      hasDoubts: (this.#get(row.FLAGS) & row.HAS_FAILED_CHECK) !== 0,
      principalId: this.principalId,
      occurredAt: this.occurredAt,
      intent: digestTextAt(this.#bytes, this.#get(row.INTENT)),
      userIntent: this.#digest(row.USER_INTENT),
      toolName: this.#recall(row.TOOL),
      params: digestTextAt(this.#bytes, this.#get(row.PARAMS)),
      reservation: this.#readAmounts(),
      expiresAt: this.#maybeText(row.EXPIRES_AT),
      requestKey: this.#maybeText(row.REQUEST_KEY),
      // Events with these members are not scannable.
      approvalIds: [],
      system: undefined,
      firstDouble: -1,
    };
  }

  #readExecution(): ExecutionOutline {
    const flags = this.#get(row.FLAGS);
    return {
      principalId: this.principalId,
      occurredAt: this.occurredAt,
      startedAt: this.#maybeText(row.STARTED_AT),
      endedAt: this.#maybeText(row.ENDED_AT),
      authorizationId: this.#cut(this.#get(row.LINK), B64_LENGTH),
      previousId: this.previousId,
      intent: digestTextAt(this.#bytes, this.#get(row.INTENT)),
      toolName: this.#recall(row.TOOL),
      params: this.#digest(row.PARAMS),
      used: this.#readAmounts(),
      firstDouble: -1,
      isEstimated: (flags & row.IS_ESTIMATED) !== 0,
      isUnitEstimated:
        (flags & row.HAS_UNIT_BASES) === 0
          ? undefined
          : estimatedUnits(this.json()['meter_basis_by_unit'] as object as MeterBasisByUnit),
      isFailure: (flags & row.IS_FAILURE) !== 0,
      isUnknown: (flags & (row.IS_FAILURE | row.IS_SUCCESS)) === 0,
      isAbandoned: (flags & row.IS_ABANDONED) !== 0,
      hasOutputDigest: (flags & row.HAS_OUTPUT_DIGEST) !== 0,
      hasOutputRef: (flags & row.HAS_OUTPUT_REF) !== 0,
      resources:
        (flags & row.HAS_RESOURCES) === 0
          ? NO_RESOURCES
          : (this.json()['resources_touched'] as readonly object[] as readonly ResourceRef[]),
    };
  }

  #readAdjustment(): AdjustmentOutline {
    const flags = this.#get(row.FLAGS);
    return {
      principalId: this.principalId,
      direction: (flags & row.IS_CREDIT) === 0 ? 'debit' : 'credit',
      grantId: this.#recall43(row.LINK) as string,
      executionId: this.#cut43(row.EXECUTION_ID),
      amounts: this.#readAmounts(),
      system: undefined,
      firstDouble: -1,
      isEstimated: (flags & row.IS_ESTIMATED) !== 0,
    };
  }

  #readAmounts(): readonly UnitAmount[] {
    const bytes = this.#bytes;
    const amounts: UnitAmount[] = [];
    meters.begin(bytes, this.#rows, this.#base);
    while (meters.next()) {
      const { unit, start, end, scale } = meters;
      amounts.push({ unit, amount: readDecimal(bytes, start, end, scale) });
    }
    return amounts;
  }

  #readSignatures(): readonly SignatureEntry[] {
    const count = this.#get(row.SIGNATURE_COUNT);
    const entries: SignatureEntry[] = [];
    for (let i = 0, at = this.#get(row.SIGNATURES); i < count; i += 1) {
      const keyid = at + BEFORE_KEYID;
      const sig = keyid + SIG_AFTER_KEYID;
      const end = closingQuote(this.#bytes, sig);
      entries.push({
        keyid: recallText(this.#bytes, keyid, keyid + B64_LENGTH),
        sig: decodeLatin1(this.#bytes, sig, end),
      });
      at = end + 3;
    }
    return entries;
  }

  #get(place: number): number {
    return this.#rows[this.#base + place]!;
  }

  #cut(at: number, length: number): string {
    return decodeLatin1(this.#bytes, at, at + length);
  }

  #cut43(place: number): string | undefined {
    const at = this.#get(place);
    return at === 0 ? undefined : this.#cut(at, B64_LENGTH);
  }

  #recall43(place: number): string | undefined {
    const at = this.#get(place);
    return at === 0 ? undefined : recallText(this.#bytes, at, at + B64_LENGTH);
  }

  #recall(place: number): string {
    return recallText(this.#bytes, this.#get(place), this.#get(place + 1));
  }

  #textAt(place: number): string {
    return decodeLatin1(this.#bytes, this.#get(place), this.#get(place + 1));
  }

  #maybeText(place: number): string | undefined {
    return this.#get(place) === 0 ? undefined : this.#textAt(place);
  }

  #digest(place: number): string | undefined {
    const at = this.#get(place);
    return at === 0 ? undefined : digestTextAt(this.#bytes, at);
  }

  /** With its escapes undone. */
  #anyText(place: number): string {
    const start = this.#get(place);
    const end = this.#get(place + 1);
    for (let i = start; i < end; i += 1) {
      const byte = this.#bytes[i]!;
      if (byte >= 0x80 || byte === BACKSLASH)
        return JSON.parse(decodeUtf8(this.#bytes, start - 1, end + 1)) as string;
    }
    return decodeLatin1(this.#bytes, start, end);
  }
}

let isOn = true;

/** Whether the fast path is on; tests compare both paths. */
export function useFastPath(on: boolean): void {
  isOn = on;
}

/** Whether the fast path is on. */
export function isFastPathOn(): boolean {
  return isOn;
}

/** Used again for each line: lines that live longer are copies. */
const briefly = new Int32Array(ROW_WIDTH);

/**
 * The line where it is a scannable record whose ids are right. It is valid until the next call, and until the bytes change.
 */
export function glanceAt(line: Uint8Array): ScannedLine | undefined {
  return isOn ? scanLine(line, briefly) : undefined;
}

/** The same as a copy. */
export function readScannedLine(line: Uint8Array): ScannedLine | undefined {
  if (!isOn) return undefined;
  const known = scanLine(line, briefly);
  if (known === undefined) return undefined;
  const bytes = allocateScratch(line.length);
  bytes.set(line);
  return new ScannedLine(bytes, briefly.slice(), 0);
}

/** The event's bytes in the record of a row. */
export function eventOf(bytes: Uint8Array, rows: Int32Array, at: number): Uint8Array {
  const base = at * ROW_WIDTH;
  return bytes.subarray(rows[base + row.EVENT_START], rows[base + row.EVENT_END]);
}

/** The line of a row as a copy, which does not keep the surrounding bytes alive. */
function copyScannedLine(bytes: Uint8Array, rows: Int32Array, at: number): ScannedLine {
  const copy = rows.slice(at * ROW_WIDTH, (at + 1) * ROW_WIDTH);
  const start = copy[row.LINE_START]!;
  const length = copy[row.LINE_END]! - start;
  const line = allocateScratch(length);
  line.set(bytes.subarray(start, start + length));
  for (let place = row.LINE_START; place < row.PLACES_END; place += 1) {
    const isCount = place === row.SIGNATURE_COUNT || place === row.METER_COUNT;
    if (!isCount && copy[place] !== 0) copy[place] = copy[place]! - start;
  }
  return new ScannedLine(line, copy, 0);
}

/**
 * The line of a scannable record that was scanned.
 *
 * @param bytes - The bytes of row `at`.
 * @param isBrief - Whether bytes and rows stay unchanged while the line is in use: it is not copied then.
 */
export function scannedLineOf(
  bytes: Uint8Array,
  rows: Int32Array,
  at: number,
  isBrief: boolean,
): ExaminedLine {
  const line: ScannedFacts = isBrief ? new ScannedLine(bytes, rows, at) : copyScannedLine(bytes, rows, at);
  return line as ExaminedLine;
}

function scanLine(line: Uint8Array, rows: Int32Array): ScannedLine | undefined {
  if (!scanRecord(line, 0, line.length, rows, 0)) return undefined;
  return hasTrueIdentity(line, rows, 0) ? new ScannedLine(line, rows, 0) : undefined;
}

/** Digits of a safe integer are read without a text. */
const MAX_SAFE_DIGITS = 15;

function readDecimal(bytes: Uint8Array, start: number, end: number, scale: number): Rational {
  if (end - start > MAX_SAFE_DIGITS) {
    const digits = decodeLatin1(bytes, start, end);
    return toRational(scale === 0 ? { t: 'int', v: digits } : { t: 'dec', m: digits, s: scale });
  }
  return rationalOfDecimal(readDigits(bytes, start, end), scale);
}

/** The number of the digits; NaN where there are too many for a safe integer. */
export function readDigits(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > MAX_SAFE_DIGITS) return NaN;
  let number = 0;
  for (let i = start; i < end; i += 1) number = number * 10 + bytes[i]! - ZERO;
  return number;
}
