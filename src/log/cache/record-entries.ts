/**
 * What an index keeps of each record: its place and outcome, so that one record can be shown, explained and proven without reading those
 * before it. `record-reader.ts` reads it.
 * Keys: `r:N` records from 16 N on, one per line · `T:LEVEL:N` hashes of full subtrees of 256^LEVEL leaves, 256 per entry · `x:ID` the
 * number of executions that name an authorization, `x:ID:N` the Nth · `y:ID`, `y:ID:N` adjustments of a grant likewise · `z:ID` the
 * furthest anchor of another ledger · `R` the head.
 */

import { defined } from '../../base/defined.js';
import type { Rational } from '../../base/value/rational.js';
import type { Finding } from '../../format/finding/finding.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import { hashToBase64url, nodeHash } from '../../format/tree/compact-range.js';
import { type Account, type Grant, grantChain } from '../../rules/bounds/grant.js';
import { findGrantAbove, findNamed, readEventId } from '../../rules/verify/grant-above.js';
import type {
  EventVerdict,
  LineResult,
  SegmentName,
  SignatureOutcome,
} from '../../rules/verify/line-result.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { ANCHOR_TYPE, readAnchor } from '../fleet/anchor-event.js';
import { CheckpointTracker, mayBeCheckpoint, type TrackedCheckpoint } from '../read/find-checkpoint.js';
import { decodeValue, encodeRational, encodeText, encodeValue, type FileNames } from './codec.js';
import { type EntryChange, IndexFault } from './entry-store.js';
import { type Entries, EntryTable, isCount, keyNumber } from './tables.js';

export const HASHES_PER_ENTRY = 256;
const LEVELS_PER_ENTRY = 8;

/** The most executions or adjustments listed per event. */
export const MAX_LISTED = 100;

/** Records with more or longer accounts are explained from the ledger. */
const MAX_ACCOUNTS = 64;
const MAX_ACCOUNTS_LENGTH = 4_096;
/** Likewise records with more findings. */
const MAX_FINDINGS = 64;

const DIGEST = /^sha-256:([A-Za-z0-9_-]{43})$/;

/** A finding on a record, without what the record says itself. */
export interface FindingForm extends Pick<
  Finding,
  'code' | 'severity' | 'class' | 'expected' | 'actual' | 'related' | 'lineDigest'
> {
  readonly pointer?: string | undefined;
  /** The place in the line in bytes, unless it is the whole line. */
  readonly part?: readonly [offset: number, length: number];
}

/** A grant's number, then each account's text before the event, and after it if changed. */
export type AccountsForm = readonly [
  grant: number,
  ...accounts: (readonly [before: string, after?: string])[],
];

export interface RecordForm {
  readonly file: string;
  /** The line's number, if it is not the record's number plus 1. */
  readonly l?: number;
  /** Offset and length in bytes, without `\n`. */
  readonly o: number;
  readonly b: number;
  /** The event's id, base64url. */
  readonly i?: string;
  /** Leaf hash, base64url. */
  readonly h: string;
  /** Absent for `ok`. */
  readonly v?: EventVerdict;
  /** Signature outcomes, without keyids; 0: signatures were assumed. */
  readonly s?: readonly Omit<SignatureOutcome, 'keyid'>[] | 0;
  /** 0: more than are kept. */
  readonly f?: readonly FindingForm[] | 0;
  /** A finding that depends on an event still to come. */
  readonly w?: FindingForm;
  /** 0 likewise. */
  readonly g?: readonly AccountsForm[] | 0;
}

/** How many events name another one, and the first one's ordinal. */
export interface NamingForm {
  readonly n: number;
  readonly first: number;
}

/** The furthest anchor of another ledger: how many records of it, and the ordinal of the record. */
export interface AnchorForm {
  readonly size: number;
  readonly at: number;
}

interface RecordsHead {
  /** Whether every readable record's number is its ordinal, and its id unique. */
  readonly isRegular: boolean;
  readonly isReadable: boolean;
  readonly checkpoint: TrackedCheckpoint | undefined;
}

type RecordResult = Pick<LineResult, 'examined' | 'verdict' | 'signatures' | 'own' | 'waiting'>;

type Kept = readonly [account: Account, used: Rational, estimated: Rational, reserved: Rational];

/** Keeps the outcome of each line; see the head of this file. */
export class RecordEntries {
  readonly #entries: Entries;
  readonly #state: VerifyState;
  readonly #changes = new Map<string, unknown>();
  readonly #texts = new Map<string, string>();
  /** The last, incomplete entry, and whether it has unsaved records. */
  #begun: string[] = [];
  #isBegun = false;
  readonly #executions: EntryTable<NamingForm>;
  readonly #adjustments: EntryTable<NamingForm>;
  readonly #anchors: EntryTable<AnchorForm>;
  readonly #checkpoint: CheckpointTracker;
  /** The incomplete entry of each tree level. */
  readonly #hashes: (string[] | undefined)[] = [];
  readonly #changedLevels = new Set<number>();
  #isRegular: boolean;
  #isReadable: boolean;
  #isHeadChanged = false;
  /** The subtrees before the line that completes 256 leaves. */
  #subtrees: readonly string[] = [];
  #above: readonly (readonly [Grant, readonly Kept[]])[] | undefined;

  /** @param state - As the entries have it. */
  constructor(entries: Entries, state: VerifyState) {
    this.#entries = entries;
    this.#state = state;
    const decode = (form: unknown): NamingForm => {
      const { n, first } = form as Partial<NamingForm>;
      if (!isCount(n) || !isCount(first)) throw new IndexFault('the entry of a link is malformed');
      return { n, first };
    };
    this.#executions = new EntryTable(entries, 'x:', decode);
    this.#adjustments = new EntryTable(entries, 'y:', decode);
    this.#anchors = new EntryTable(entries, 'z:', decodeAnchor);
    const head = state.records === 0 ? undefined : readRecordsHead(entries);
    this.#isRegular = head?.isRegular ?? true;
    this.#isReadable = head?.isReadable ?? true;
    this.#checkpoint = new CheckpointTracker(head?.checkpoint);
    this.#isHeadChanged = head === undefined;
  }

  beforeLine(examined: ExaminedLine | undefined): void {
    const { tree } = this.#state;
    if (tree.size % HASHES_PER_ENTRY === HASHES_PER_ENTRY - 1) this.#subtrees = [...tree.hashes];
    const above = examined && findGrantAbove(this.#state, examined);
    this.#above = above && [...grantChain(above)].map((grant) => [grant, keepAccounts(grant)] as const);
  }

  get above(): readonly Grant[] {
    return this.#above?.map(([grant]) => grant) ?? [];
  }

  afterLine(line: RawLine, { file }: SegmentName, result: RecordResult): void {
    if (line.length === 0 || !line.terminated) {
      this.#setUnreadable();
      return;
    }
    const { examined, verdict, signatures, own, waiting } = result;
    const ordinal = this.#state.records - 1;
    const isAssumed = this.#state.assumedSignatures === 'ordinary';
    const findings = own.length > MAX_FINDINGS ? 0 : own.map((finding) => toForm(finding, line));
    const accounts = this.#above && textOfAccounts(this.#above);
    const { names } = this.#entries;
    // What `encodeValue` would write, without building the object.
    let text = `{"file":${encodeText(names.toIndex(file))},"o":${line.offset},"b":${line.length}`;
    if (line.number !== ordinal + 1) text += `,"l":${line.number}`;
    if (examined?.eventId !== undefined && holdsEvent(examined)) text += `,"i":"${examined.eventId}"`;
    text += `,"h":"${this.#state.chain.prev}"`;
    if (signatures.length > 0) text += `,"s":${isAssumed ? '0' : textOfOutcomes(signatures, names)}`;
    if (accounts !== undefined) text += `,"g":${accounts}`;
    if (verdict !== 'ok') text += `,"v":"${verdict}"`;
    if (findings === 0 || findings.length > 0) text += `,"f":${encodeValue(findings, names)}`;
    if (waiting !== undefined) text += `,"w":${encodeValue(toForm(waiting, line), names)}`;
    this.#keep(ordinal, `${text}}`);
    this.#noteHash(ordinal);
    if (examined === undefined) this.#noteUnread(line);
    else this.#noteEvent(examined, line, ordinal, own);
    this.#above = undefined;
  }

  takeChanges(): EntryChange[] {
    if (this.#isBegun) this.#texts.set(recordsKey(this.#state.records - 1), this.#begun.join(LINE_END));
    this.#isBegun = false;
    if (this.#isHeadChanged) {
      const checkpoint = this.#checkpoint.found();
      const head: RecordsHead = { isRegular: this.#isRegular, isReadable: this.#isReadable, checkpoint };
      this.#changes.set('R', head);
      this.#isHeadChanged = false;
    }
    for (const level of this.#changedLevels) {
      const hashes = this.#hashes[level];
      if (hashes === undefined) continue;
      const last = Math.floor(this.#state.records / HASHES_PER_ENTRY ** level) - 1;
      this.#changes.set(hashKey(level, Math.floor(last / HASHES_PER_ENTRY)), hashes);
    }
    this.#changedLevels.clear();
    const changes = [...this.#changes].map(([key, value]) => this.#entries.change(key, value));
    this.#changes.clear();
    for (const [key, text] of this.#texts) changes.push(this.#entries.changeText(key, text));
    this.#texts.clear();
    return [
      ...changes,
      ...this.#executions.takeChanges(),
      ...this.#adjustments.takeChanges(),
      ...this.#anchors.takeChanges(),
    ];
  }

  trim(): void {
    this.#executions.trim();
    this.#adjustments.trim();
    this.#anchors.trim();
  }

  /** Appends a record to the incomplete entry. */
  #keep(ordinal: number, text: string): void {
    const at = ordinal % RECORDS_PER_ENTRY;
    const isOther = this.#begun.length !== at;
    if (isOther) this.#begun = at === 0 ? [] : this.#readBegun(ordinal - 1);
    this.#begun.push(text);
    this.#isBegun = at < RECORDS_PER_ENTRY - 1;
    if (!this.#isBegun) this.#texts.set(recordsKey(ordinal), this.#begun.join(LINE_END));
  }

  #readBegun(last: number): string[] {
    const texts = readRecords(this.#entries, last);
    if (texts === undefined) throw new IndexFault('the entry of a record is missing');
    return texts;
  }

  #noteEvent(examined: ExaminedLine, line: RawLine, ordinal: number, own: readonly Finding[]): void {
    const { eventId, seq = ordinal, eventType: type } = examined;
    if (!holdsEvent(examined) || eventId === undefined) {
      this.#noteUnread(line);
      return;
    }
    if (seq !== ordinal || own.some(({ code }) => code === 'EVENT_DUPLICATE')) this.#setIrregular();
    if (type === 'execution')
      this.#noteNamed(this.#executions, 'x', findNamedBy(examined, 'auth_event_id'), ordinal);
    else if (type === 'adjustment')
      this.#noteNamed(this.#adjustments, 'y', findNamedBy(examined, 'grant_event_id'), ordinal);
    else if (type === ANCHOR_TYPE) this.#noteAnchor(examined, ordinal);
    else if (this.#checkpoint.take(examined, ordinal)) this.#isHeadChanged = true;
  }

  #noteAnchor(examined: ExaminedLine, at: number): void {
    const event = examined.json();
    const { childId, treeSize: size } = (event && readAnchor(event)) ?? {};
    const [, id] = DIGEST.exec(childId ?? '') ?? [];
    if (id === undefined || size === undefined) return;
    const { size: furthest = 0 } = this.#anchors.get(id) ?? {};
    if (size >= furthest) this.#anchors.set(id, { size, at });
  }

  #noteNamed(table: EntryTable<NamingForm>, prefix: string, named: string | undefined, at: number): void {
    const [, id] = DIGEST.exec(named ?? '') ?? [];
    if (id === undefined) return;
    const known = table.get(id);
    const n = (known?.n ?? 0) + 1;
    table.set(id, { n, first: known?.first ?? at });
    if (n > 1 && n <= MAX_LISTED) this.#changes.set(namingKey(prefix, id, n), { at });
  }

  /** On its own the line might be read as an event. */
  #noteUnread({ bytes }: RawLine): void {
    this.#setUnreadable();
    if (mayBeCheckpoint(bytes)) this.#setIrregular();
  }

  #setUnreadable(): void {
    if (this.#isReadable) this.#isHeadChanged = true;
    this.#isReadable = false;
  }

  #setIrregular(): void {
    if (this.#isRegular) this.#isHeadChanged = true;
    this.#isRegular = false;
  }

  /** Stores the root of each full subtree of 256, 256^2, … leaves that the line completes. */
  #noteHash(ordinal: number): void {
    const size = ordinal + 1;
    if (size % HASHES_PER_ENTRY !== 0) return;
    let hash = Buffer.from(this.#state.chain.prev, 'base64url').toString('latin1');
    let last = this.#subtrees.length;
    for (let level = 1, width = HASHES_PER_ENTRY; size % width === 0; level += 1, width *= HASHES_PER_ENTRY) {
      for (let depth = 0; depth < LEVELS_PER_ENTRY; depth += 1) {
        last -= 1;
        hash = nodeHash(this.#subtrees[last] as string, hash);
      }
      this.#push(level, size / width - 1, hashToBase64url(hash));
    }
  }

  #push(level: number, index: number, hash: string): void {
    const at = index % HASHES_PER_ENTRY;
    const key = hashKey(level, Math.floor(index / HASHES_PER_ENTRY));
    const hashes = at === 0 ? [] : (this.#hashes[level] ?? readHashes(this.#entries, key, at));
    hashes.push(hash);
    this.#changedLevels.add(level);
    if (hashes.length < HASHES_PER_ENTRY) {
      this.#hashes[level] = hashes;
      return;
    }
    this.#changes.set(key, hashes);
    this.#hashes[level] = undefined;
  }
}

/** @throws IndexFault when malformed */
export function decodeAnchor(form: unknown): AnchorForm {
  const { size, at } = (form ?? {}) as Partial<AnchorForm>;
  if (!isCount(size) || !isCount(at)) throw new IndexFault('the entry of an anchor is malformed');
  return { size, at };
}

/** @throws IndexFault when missing or malformed */
export function readRecordsHead(entries: Entries): RecordsHead {
  const head = entries.get('R') as Partial<RecordsHead> | undefined;
  const { isRegular, isReadable, checkpoint } = head ?? {};
  const isWhole =
    checkpoint === undefined ||
    (typeof checkpoint.note === 'string' && isCount(checkpoint.seq) && isCount(checkpoint.attestations));
  if (typeof isRegular !== 'boolean' || typeof isReadable !== 'boolean' || !isWhole)
    throw new IndexFault('what it has of all records is missing or malformed');
  return { isRegular, isReadable, checkpoint };
}

/** The first hashes of a tree entry, base64url. @throws IndexFault for fewer than `least` */
export function readHashes(entries: Entries, key: string, least: number, most = least): string[] {
  const hashes = entries.get(key);
  if (!Array.isArray(hashes) || hashes.length < least) throw new IndexFault('the tree has holes');
  return hashes.slice(0, most) as string[];
}

export function hashKey(level: number, index: number): string {
  return `T:${level}:${keyNumber(index)}`;
}

/** The key of the `n`th event that names another one. */
export function namingKey(prefix: string, id: string, n: number): string {
  return `${prefix}:${id}:${keyNumber(n)}`;
}

/** Well-formed lines are not parsed. */
function holdsEvent(examined: ExaminedLine): boolean {
  return examined.wellFormed || examined.json() !== undefined;
}

function findNamedBy(examined: ExaminedLine, member: string): string | undefined {
  return examined.wellFormed ? findNamed(examined) : readEventId(examined.json()?.[member]);
}

function withoutKey({ outcome, code, roles, copyOf }: SignatureOutcome): Omit<SignatureOutcome, 'keyid'> {
  return { outcome, ...defined({ code, roles, copyOf }) };
}

function toForm(finding: Finding, { offset, length }: RawLine): FindingForm {
  const { code, severity, class: of, expected, actual, related, lineDigest, at } = finding;
  const isWhole = at.byteOffset === offset && at.byteLength === length;
  return {
    code,
    severity,
    class: of,
    ...defined({
      pointer: at.pointer,
      part: isWhole ? undefined : ([at.byteOffset - offset, at.byteLength] as const),
      expected,
      actual,
      related: related?.map(({ file, line, seq, eventId }) => ({ file, line, seq, eventId })),
      lineDigest,
    }),
  };
}

function keepAccounts({ accounts }: Grant): Kept[] {
  return [...accounts.values()].map(
    (account) => [account, account.used, account.estimated, account.reserved] as const,
  );
}

/** {@link AccountsForm} of each grant, as `encodeValue` would write it. */
function textOfAccounts(above: readonly (readonly [Grant, readonly Kept[]])[]): string {
  if (above.reduce((sum, [, kept]) => sum + kept.length, 0) > MAX_ACCOUNTS) return '0';
  let length = 0;
  let forms = '';
  for (const [{ index }, kept] of above) {
    forms += `${forms === '' ? '' : ','}[${index}`;
    for (const [account, ...held] of kept) {
      const before = textOf(account, held);
      length += before.length;
      const { used, estimated, reserved } = account;
      const after = textOf(account, [used, estimated, reserved]);
      if (after === before) {
        forms += `,["${before}"]`;
        continue;
      }
      length += after.length;
      forms += `,["${before}","${after}"]`;
    }
    forms += ']';
  }
  return length > MAX_ACCOUNTS_LENGTH ? '0' : `[${forms}]`;
}

/** The common case, one counted signature, skips the generic encoding. */
function textOfOutcomes(signatures: readonly SignatureOutcome[], names: FileNames): string {
  const [only] = signatures;
  if (
    signatures.length === 1 &&
    only?.outcome === 'valid' &&
    only.code === undefined &&
    only.roles !== undefined
  )
    return `[{"outcome":"valid","roles":[${only.roles.map((role) => `"${role}"`).join(',')}]}]`;
  return encodeValue(signatures.map(withoutKey), names);
}

/** An account's last text: its state before an event is its state after the previous one. */
const texts = new WeakMap<Account, { readonly held: readonly Rational[]; readonly text: string }>();

function textOf(account: Account, held: readonly Rational[]): string {
  const known = texts.get(account);
  if (known !== undefined && held.every((amount, i) => amount === known.held[i])) return known.text;
  const text = held.map(encodeRational).join(' ');
  texts.set(account, { held, text });
  return text;
}

/** Few, since an incomplete entry is rewritten with each group. */
const RECORDS_PER_ENTRY = 16;
/** Canonical JSON never contains it. */
const LINE_END = '\n';

function recordsKey(ordinal: number): string {
  return `r:${keyNumber(Math.floor(ordinal / RECORDS_PER_ENTRY))}`;
}

/** An entry's records up to `ordinal`; undefined if there are fewer. */
export function readRecords(entries: Entries, ordinal: number): string[] | undefined {
  const texts = entries.getText(recordsKey(ordinal))?.split(LINE_END) ?? [];
  const count = (ordinal % RECORDS_PER_ENTRY) + 1;
  return texts.length < count ? undefined : texts.slice(0, count);
}

/** A record's form, unchecked; undefined if there is none. @throws IndexFault when malformed */
export function readRecordForm(entries: Entries, ordinal: number): unknown {
  const text = readRecords(entries, ordinal)?.at(-1);
  return text === undefined ? undefined : decodeValue(text, entries.names);
}
