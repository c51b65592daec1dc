/**
 * A verification whose state is kept in an index: what it remembers of single events is read when a line asks for it, so that going on
 * with a ledger costs what the new lines cost.
 *
 * Keys: `h` the head · `e:ID` events · `g:N` grants, `G:ID` their numbers, `p:PRINCIPAL` whose they are, `t:N:LIMIT:NODE` their
 * timelines · `a:N:ID` actions that are open, `d:N:ID` those that were denied, by the number of their record · `s:ID` starts · `b:ID`
 * until when actions may be begun that were not yet · `w:ID` links that wait · `c:ID` checkpoints · `u:N` unsealed groups · `n:KEYID`
 * signers · `f:CAUSE` the findings under which later ones fold, and `F:RANK` the first of each rank · `k:KEYID` keys, `K:N` their order,
 * `l:LINE` the lines of notes that name them. What is kept of each record beside the state is `record-entries.ts`'.
 */

import { isDeepStrictEqual } from 'node:util';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { VERSION } from '../../base/version.js';
import { type Finding, rankOf, RANKS, withoutFolded } from '../../format/finding/finding.js';
import type { ExaminedLine, WellFormedLine } from '../../format/record/examine-line.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import { hashToBase64url, rangeRoot } from '../../format/tree/compact-range.js';
import type { OpenStart } from '../../rules/bounds/started.js';
import {
  Keyring,
  type KeySource,
  listNoteLines,
  type NoteLine,
  type RingKey,
  type SavedKey,
} from '../../rules/trust/keyring.js';
import { touchUnsealed } from '../../rules/verify/checkpoints.js';
import type { LineKnowledge } from '../../rules/verify/line-knowledge.js';
import type { LineResult, SegmentName, SignatureOutcome } from '../../rules/verify/line-result.js';
import type { Links, PendingLink, RequestEntry } from '../../rules/verify/links.js';
import type { KnownCheckpoint, UnsealedRecords } from '../../rules/verify/seals.js';
import { validOutcomes } from '../../rules/verify/signatures.js';
import { type HeadForm, restoreHead, saveHead } from '../../rules/verify/state-form.js';
import {
  type FoldRoots,
  type SignerTally,
  startVerification,
  type VerifyState,
} from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';
import type { FileSystem } from '../fs/file-system.js';
import type { FileNames } from './codec.js';
import { DamagedEntry, type EntryChange, type EntryStore, IndexFault } from './entry-store.js';
import { IndexedActions } from './indexed-actions.js';
import { IndexedEvents } from './indexed-events.js';
import { RecordEntries } from './record-entries.js';
import { RecordReader } from './record-reader.js';
import {
  CountedTable,
  Entries,
  EntryTable,
  IndexedGrants,
  isCount,
  keyNumber,
  NumberedMap,
  TrackedMap,
} from './tables.js';

const FORMAT = 'northroot-index 6';
const FORMAT_NAME = /^.{0,64}\{"format":"(northroot-index \d{1,9})"/;

/** More events than these are not kept in memory from one writing to the next. */
const MAX_LOADED = 20_000;

/** The place of the last line that an index knows: what it is held against the ledger by. */
export interface LastLine {
  readonly file: string;
  /** In bytes, without its `\n`. */
  readonly offset: number;
  readonly length: number;
}

interface IndexHead {
  readonly format: string;
  readonly version: string;
  readonly state: HeadForm;
  /** Of the tree, base64url. */
  readonly root: string;
  readonly last: LastLine | undefined;
  readonly files: string;
  readonly stamp: string | undefined;
  readonly hasAuthority: boolean;
  readonly events: number;
  readonly grants: number;
  readonly keys: number;
  readonly groups: number;
  readonly folds: number;
  readonly pending: number;
}

/** The findings under which later ones fold. Their causes may be any text, and are named by its hash. */
class IndexedFolds implements FoldRoots {
  readonly #table: EntryTable<Finding>;
  #size: number;

  constructor(entries: Entries, size: number) {
    this.#table = new EntryTable(entries, 'f:', decodeFinding);
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  get(cause: string): Finding | undefined {
    return this.#table.get(keyOf(cause));
  }

  has(cause: string): boolean {
    return this.get(cause) !== undefined;
  }

  set(cause: string, finding: Finding): void {
    if (!this.has(cause)) this.#size += 1;
    this.#table.set(keyOf(cause), finding);
  }

  delete(cause: string): boolean {
    const was = this.#table.delete(keyOf(cause));
    if (was) this.#size -= 1;
    return was;
  }

  /** Once they are loaded; in no order. */
  values(): Iterable<Finding> {
    return this.#table.values();
  }

  takeChanges(): EntryChange[] {
    return this.#table.takeChanges();
  }
}

function keyOf(cause: string): string {
  return sha256Base64url(Buffer.from(cause));
}

function decodeFinding(form: unknown): Finding {
  const { code, at, context } = form as Partial<Finding>;
  if (typeof code !== 'string' || typeof at !== 'object' || typeof context !== 'object')
    throw new IndexFault('the entry of a finding is malformed');
  return form as Finding;
}

/** What is found at a scannable line. */
const NO_FINDINGS_OWN = { own: [], waiting: undefined } as const;

/** See the head of this file. */
export class IndexedState {
  readonly state: VerifyState;
  /** Where the last line of the state stands; undefined before the first. */
  last: LastLine | undefined;
  /** In which file which line came first: the digest of those before and of the last one. */
  files: string;
  /** What the store said of itself when all that the state has seen was there; undefined where nobody can tell. */
  stamp: string | undefined;
  /** Whether the stamp is to be kept though nothing else is new. */
  isStampNew = false;
  readonly #entries: Entries;
  readonly #actions: IndexedActions;
  readonly #events: IndexedEvents;
  readonly #grants: IndexedGrants;
  readonly #starts = new TrackedMap<Map<string, OpenStart>>();
  readonly #expiring = new TrackedMap<string>();
  readonly #requests: EntryTable<RequestEntry>;
  readonly #pending: CountedTable<PendingLink>;
  readonly #checkpoints: EntryTable<KnownCheckpoint>;
  readonly #unsealed: NumberedMap<UnsealedRecords>;
  readonly #signers: EntryTable<SignerTally>;
  readonly #folds: IndexedFolds;
  /** The first finding of each rank. */
  readonly #first: EntryTable<Finding>;
  #records: RecordEntries | undefined;

  private constructor(
    entries: Entries,
    head: IndexHead | undefined,
    policy: TrustPolicy | undefined,
    backend: SignatureBackend,
  ) {
    this.#entries = entries;
    this.#events = new IndexedEvents(entries, head?.events ?? 0);
    this.#grants = new IndexedGrants(entries, head?.grants ?? 0);
    this.#actions = new IndexedActions(entries, this.#grants, this.#events);
    this.#pending = new CountedTable(entries, 'w:', (form) => form as PendingLink, head?.pending ?? 0);
    this.#requests = new EntryTable(entries, 'q:', toRequest);
    this.#checkpoints = new EntryTable(entries, 'c:', (form) => form as KnownCheckpoint);
    this.#signers = new EntryTable(entries, 'n:', (form) => form as SignerTally);
    this.#folds = new IndexedFolds(entries, head?.folds ?? 0);
    this.#first = new EntryTable(entries, 'F:', decodeFinding);
    this.#unsealed = new NumberedMap(head?.groups ?? 0);
    this.last = head?.last;
    this.files = head?.files ?? '';
    this.stamp = head?.stamp;
    const fresh = startVerification(head === undefined ? policy : undefined, backend);
    const links: Links = {
      grants: this.#grants,
      actions: this.#actions,
      starts: this.#starts,
      expiring: this.#expiring,
      requests: this.#requests,
      pending: this.#pending,
      latest: undefined,
    };
    const keyring = new Keyring(backend, keySource(entries, head));
    if (head === undefined) for (const key of policy?.keys ?? []) keyring.add(key);
    this.state = {
      ...fresh,
      policy,
      requirements:
        policy === undefined ? fresh.requirements : startVerification(policy, backend).requirements,
      ...(head === undefined && policy !== undefined ? { mode: 'policy' } : {}),
      keyring,
      events: this.#events,
      links,
      signers: this.#signers,
      foldRoots: this.#folds,
      seals: { ...fresh.seals, known: this.#checkpoints, unsealed: this.#unsealed },
    };
  }

  /**
   * The state that an index keeps, or that before the first line where it keeps none.
   *
   * @param policy - The trust policy by which lines are verified; an index has one view for each.
   * @throws IndexFault when what is stored is no state of this version
   */
  static async open(
    store: EntryStore,
    view: string,
    names: FileNames,
    backend: SignatureBackend,
    policy?: TrustPolicy,
  ): Promise<IndexedState> {
    const entries = new Entries(store, view, names);
    const head = readHead(entries);
    const indexed = new IndexedState(entries, head, policy, backend);
    await indexed.#read(head);
    indexed.#observe();
    return indexed;
  }

  /** What is read whole: it is little, and asked for as a whole. */
  async #read(head: IndexHead | undefined): Promise<void> {
    if (head === undefined) return;
    for await (const [key, open] of this.#entries.list('s:')) {
      if (!(open instanceof Map)) throw new IndexFault('the entry of a start is malformed');
      this.#starts.set(key.slice('s:'.length), open as Map<string, OpenStart>);
    }
    for await (const [key, until] of this.#entries.list('b:')) {
      if (typeof until !== 'string') throw new IndexFault('the entry of an expiry is malformed');
      this.#expiring.set(key.slice('b:'.length), until);
    }
    for await (const [key, entry] of this.#entries.list('u:')) {
      const { name, group } = entry as { readonly name: string; readonly group: UnsealedRecords };
      this.#unsealed.restore(name, Number(key.slice('u:'.length)), group);
    }
    this.#starts.takeChanged();
    this.#expiring.takeChanged();
    this.#unsealed.takeChanged();
    restoreHead(this.state, head.state);
    const { state } = this;
    if (hashToBase64url(rangeRoot(state.tree)) !== head.root)
      throw new IndexFault('the tree does not have its root');
  }

  /** Every line that the state is told of is kept, whoever steps it. */
  #observe(): void {
    const records = new RecordEntries(this.#entries, this.state);
    this.#records = records;
    this.state.observer = {
      beforeLine: (examined) => records.beforeLine(examined),
      afterLine: (line, segment, result) => {
        records.afterLine(line, segment, result);
        this.#noteFindings(result);
        if (line.length > 0 && line.terminated) this.#noteLast(line, segment);
      },
      afterFastLine: (line, segment, examined, verdict) => {
        for (const grant of records.above) this.#grants.touch(grant);
        const signatures = this.#noteSigners(examined);
        records.afterLine(line, segment, { examined, signatures, verdict, ...NO_FINDINGS_OWN });
        this.#noteLast(line, segment);
      },
    };
  }

  #noteLast({ offset, length }: RawLine, { file }: SegmentName): void {
    if (file !== this.last?.file) this.files = this.addFile(this.files, file, this.state.records - 1);
    this.last = { file, offset, length };
  }

  /** {@link IndexedState.files} with one more: a file, and the number of its first record. */
  addFile(files: string, file: string, ordinal: number): string {
    return sha256Base64url(Buffer.from(`${files}\n${ordinal} ${this.#entries.names.toIndex(file)}`));
  }

  /** What became of the signatures of a scannable line, of which each is valid and by a key that signed before. */
  #noteSigners(examined: WellFormedLine): readonly SignatureOutcome[] {
    const { signers, seals } = this.state;
    const outcomes = validOutcomes(this.state, examined);
    if (outcomes.length === 0) return outcomes;
    const keyids = outcomes.map(({ keyid }) => keyid);
    for (const keyid of keyids) signers.set(keyid, signers.get(keyid) as SignerTally);
    touchUnsealed(seals, keyids);
    return outcomes;
  }

  /** Verifies the next line of the ledger and keeps what is said of it, as `verifyLine` with {@link IndexedState.state} does. */
  step(line: RawLine, segment: SegmentName, given?: ExaminedLine, known?: LineKnowledge): LineResult {
    return verifyLine(this.state, line, segment, given, known);
  }

  /** Of each rank the first finding, but for what only the end of the ledger shows. */
  firstFindings(): Finding[] {
    return RANKS.map((rank) => this.#first.get(rank)).filter((finding) => finding !== undefined);
  }

  /** The records, as far as they were written to the index. To be closed. */
  records(fileSystem: FileSystem): RecordReader {
    return new RecordReader(this.#entries, this.state, fileSystem);
  }

  /** Reads the tables that are listed as a whole: open actions, links that wait, and signers. */
  async loadAll(): Promise<void> {
    await this.#actions.load();
    await this.#pending.load();
    await this.#signers.load();
  }

  /** What was changed since the state was opened, or since this was asked before: to be written in one step. */
  takeChanges(): EntryChange[] {
    const { state } = this;
    const changes = [
      ...this.#events.takeChanges(),
      ...this.#grants.takeChanges(),
      ...this.#actions.takeChanges(),
      ...this.#requests.takeChanges(),
      ...this.#pending.takeChanges(),
      ...this.#checkpoints.takeChanges(),
      ...this.#signers.takeChanges(),
      ...this.#folds.takeChanges(),
      ...this.#first.takeChanges(),
      ...this.#starts.takeChanged().map((id) => {
        const open = this.#starts.get(id);
        return this.#entries.change(`s:${id}`, open?.size === 0 ? undefined : open);
      }),
      ...this.#expiring.takeChanged().map((id) => this.#entries.change(`b:${id}`, this.#expiring.get(id))),
      ...this.#unsealed.takeGone().map((number) => this.#entries.change(`u:${keyNumber(number)}`, undefined)),
      ...this.#unsealed.takeChanged().flatMap((name) => this.#changeGroup(name)),
      ...state.keyring.takeChanges().flatMap((changed) => this.#changeKey(changed)),
      ...(this.#records?.takeChanges() ?? []),
    ];
    changes.push(this.#entries.change('h', this.#head()));
    return changes;
  }

  /**
   * Lets go of what is written, where it is much. To be called when all changes are.
   *
   * @param most - So many events may stay in memory.
   */
  trim(most = MAX_LOADED): void {
    // Actions lie in rows by the numbers of their events: both go together.
    if (this.#events.loaded > most) {
      this.#actions.clear();
      this.#events.clear();
    }
    this.#requests.trim();
    this.#records?.trim();
  }

  #noteFindings({ findings, folded }: LineResult): void {
    for (const finding of findings) {
      const rank = rankOf(finding);
      if (!this.#first.has(rank)) this.#first.set(rank, finding);
    }
    for (const { root, waits = false } of folded) {
      const first = waits ? undefined : this.#first.get(rankOf(root));
      if (first === undefined || !isDeepStrictEqual(withoutFolded(first), withoutFolded(root))) continue;
      this.#first.set(rankOf(root), root);
    }
  }

  #head(): IndexHead {
    const { state } = this;
    return {
      format: FORMAT,
      version: VERSION,
      state: saveHead(state),
      root: hashToBase64url(rangeRoot(state.tree)),
      last: this.last,
      files: this.files,
      stamp: this.stamp,
      hasAuthority: state.keyring.hasAuthority,
      events: this.#events.size,
      grants: this.#grants.size,
      keys: state.keyring.size,
      groups: this.#unsealed.count,
      folds: this.#folds.size,
      pending: this.#pending.size,
    };
  }

  #changeGroup(name: string): EntryChange[] {
    const group = this.#unsealed.get(name);
    if (group === undefined) return [];
    return [this.#entries.change(`u:${keyNumber(this.#unsealed.numberOf(name))}`, { name, group })];
  }

  #changeKey({ index, saved }: { readonly index: number; readonly saved: SavedKey }): EntryChange[] {
    const { keyid } = saved.key;
    const changes = [
      this.#entries.change(`k:${keyid}`, { index, saved }),
      this.#entries.change(`K:${keyNumber(index)}`, { keyid }),
    ];
    const { origin, keyring } = this.state;
    if (origin === undefined) return changes;
    for (const { line, as } of listNoteLines(origin, keyring.find(keyid) as RingKey)) {
      // The first key that a line names is the one that it names.
      const key = `l:${line}`;
      if (this.#entries.get(key) === undefined && !changes.some((change) => change.key.endsWith(key)))
        changes.push(this.#entries.change(key, { keyid, as }));
    }
    return changes;
  }
}

function keySource(entries: Entries, head: IndexHead | undefined): KeySource {
  const find = (keyid: string): { readonly index: number; readonly saved: SavedKey } | undefined =>
    entries.get(`k:${keyid}`) as { readonly index: number; readonly saved: SavedKey } | undefined;
  return {
    size: head?.keys ?? 0,
    hasAuthority: head?.hasAuthority ?? false,
    origin: head?.state.origin,
    get: (keyid) => find(keyid)?.saved,
    at: (index) => {
      const entry = entries.get(`K:${keyNumber(index)}`) as { readonly keyid: string } | undefined;
      if (entry === undefined) throw new IndexFault('the entry of a key is missing');
      return entry.keyid;
    },
    indexOf: (keyid) => find(keyid)?.index ?? -1,
    findLine: (line) => entries.get(`l:${line}`) as NoteLine | undefined,
  };
}

/** @throws IndexFault where it is none of this version */
function readHead(entries: Entries): IndexHead | undefined {
  let head: IndexHead | undefined;
  try {
    head = entries.get('h') as IndexHead | undefined;
  } catch (error) {
    // Other forms have other checksums, but begin with their name.
    const named = error instanceof DamagedEntry ? FORMAT_NAME.exec(error.found)?.[1] : undefined;
    throw named === undefined || named === FORMAT ? error : ofAnotherVersion();
  }
  if (head !== undefined) assertHead(head);
  return head;
}

function ofAnotherVersion(): IndexFault {
  return new IndexFault('it was made by another version');
}

function assertHead(head: Partial<IndexHead>): void {
  const { format, version, state, events, grants, keys, groups, folds, pending } = head;
  if (format !== FORMAT || version !== VERSION) throw ofAnotherVersion();
  const { records, bytes, end, chain, tree, seals } = (state ?? {}) as Partial<HeadForm>;
  const isWhole =
    [events, grants, keys, groups, folds, pending, records, bytes].every(isCount) &&
    typeof end?.file === 'string' &&
    isCount(end.byteOffset) &&
    typeof chain?.prev === 'string' &&
    Array.isArray(tree?.hashes) &&
    Array.isArray(seals?.tallies);
  if (!isWhole) throw new IndexFault('its head is malformed');
}

function toRequest(form: unknown): RequestEntry {
  const { id, asked } = (form ?? {}) as Partial<RequestEntry>;
  if (typeof id === 'string' && typeof asked === 'string') return { id, asked };
  throw new IndexFault('the entry of a request key is malformed');
}
