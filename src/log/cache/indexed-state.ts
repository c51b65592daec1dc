/**
 * A verification state kept in an index: single events are read on demand, so continuing a ledger costs only its new lines.
 * Keys: `h` head · `e:ID` events · `g:N` grants, `G:ID` their numbers, `p:PRINCIPAL` their principals, `t:N:LIMIT:NODE` their timelines ·
 * `a:N:ID` open actions, `d:N:ID` denied ones, N being the record's number · `s:ID` starts · `b:ID` expiry of actions not begun · `w:ID`
 * waiting links · `q:NAME` request keys · `S:NAME` slices that grants spend · `v:ID` approvals, `V:CALL` rejects, `Y:CALL` what was said of a call, `W:CALL` requests for approval, `m:ID` the approvals of open actions, `z:N` revocations, `U:ID` calls whose end is unknown ·
 * `c:ID` checkpoints · `u:N` unsealed groups · `n:KEYID` signers · `f:CAUSE` roots of folded findings, `F:RANK` the first
 * of each rank · `k:KEYID` keys, `K:N` their order, `l:LINE` their note lines. Records are in `record-entries.ts`.
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
import type { Approval } from '../../rules/bounds/approval.js';
import type { Approved, EventPlace } from '../../rules/bounds/grant.js';
import type { Revocation } from '../../rules/bounds/withdrawal.js';
import {
  Keyring,
  type KeySource,
  listNoteLines,
  type NoteLine,
  type RingKey,
  type SavedKey,
} from '../../rules/trust/keyring.js';
import type { CallEntry, RejectEntry, RequestedApproval } from '../../rules/verify/approval-tables.js';
import { touchUnsealed } from '../../rules/verify/checkpoints.js';
import type { LineKnowledge } from '../../rules/verify/line-knowledge.js';
import type { LineResult, SegmentName, SignatureOutcome } from '../../rules/verify/line-result.js';
import type { Links, PendingLink, RequestEntry, RevocationList } from '../../rules/verify/links.js';
import type { LostCall } from '../../rules/verify/lost-calls.js';
import type { KnownCheckpoint, UnsealedRecords } from '../../rules/verify/seals.js';
import { validOutcomes } from '../../rules/verify/signatures.js';
import { type OpenStarts, StartTable } from '../../rules/verify/start-table.js';
import { type HeadForm, restoreHead, saveHead } from '../../rules/verify/state-form.js';
import { type SignerTally, startVerification, type VerifyState } from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';
import type { FileNames } from './codec.js';
import { DamagedEntry, type EntryChange, type EntryStore, IndexFault } from './entry-store.js';
import { IndexedActions } from './indexed-actions.js';
import { IndexedEvents } from './indexed-events.js';
import { RecordEntries } from './record-entries.js';
import { type LineReader, RecordReader } from './record-reader.js';
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

const FORMAT = 'northroot-index 12';
const FORMAT_NAME = /^.{0,64}\{"format":"(northroot-index \d{1,9})"/;

/** The most events kept in memory between writes. */
const MAX_LOADED = 20_000;

interface LastLine {
  readonly file: string;
  /** In bytes; the length is without `\n`. */
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
  readonly approvals: number;
  readonly approved: number;
  readonly revocations: number;
}

/** The cause of a finding may be any text. */
function keyOf(cause: string): string {
  return sha256Base64url(Buffer.from(cause));
}

function decodeFinding(form: unknown): Finding {
  const { code, at, context } = form as Partial<Finding>;
  if (typeof code !== 'string' || typeof at !== 'object' || typeof context !== 'object')
    throw new IndexFault('the entry of a finding is malformed');
  return form as Finding;
}

class IndexedRevocations extends CountedTable<Revocation> implements RevocationList {
  push(revocation: Revocation): void {
    this.set(keyNumber(this.size), revocation);
  }

  /** Load first. */
  [Symbol.iterator](): Iterator<Revocation> {
    return this.values();
  }
}

/** A verification state over an index; see the head of this file. */
export class IndexedState {
  readonly state: VerifyState;
  last: LastLine | undefined;
  /** A chained digest of each file name with its first record's number. */
  files: string;
  /** The store's stamp when all that the state covers was there, if known. */
  stamp: string | undefined;
  /** Whether the stamp must be saved though nothing else is new. */
  isStampNew = false;
  readonly #entries: Entries;
  readonly #actions: IndexedActions;
  readonly #events: IndexedEvents;
  readonly #grants: IndexedGrants;
  /** All that tells its changes itself. */
  readonly #tables: readonly { takeChanges(): EntryChange[] }[];
  readonly #starts = new StartTable();
  readonly #changedStarts = new Set<string>();
  readonly #expiring = new TrackedMap<string>();
  readonly #requests: EntryTable<RequestEntry>;
  readonly #approvals: CountedTable<Approval>;
  readonly #approved: CountedTable<Approved>;
  readonly #revocations: IndexedRevocations;
  readonly #pending: CountedTable<PendingLink>;
  readonly #unsealed: NumberedMap<UnsealedRecords>;
  readonly #signers: EntryTable<SignerTally>;
  /** Roots of folded findings, by cause. */
  readonly #folds: CountedTable<Finding>;
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
    this.#pending = new CountedTable(head?.pending ?? 0, entries, 'w:', (form) => form as PendingLink);
    this.#requests = new EntryTable(entries, 'q:', toRequest);
    const slices = new EntryTable(entries, 'S:', (form) => form as EventPlace);
    this.#approvals = new CountedTable(head?.approvals ?? 0, entries, 'v:', (form) => form as Approval);
    this.#approved = new CountedTable(head?.approved ?? 0, entries, 'm:', (form) => form as Approved);
    const rejects = new EntryTable(entries, 'V:', (form) => form as RejectEntry, keyOf);
    const calls = new EntryTable(entries, 'Y:', (form) => form as CallEntry, keyOf);
    const awaiting = new EntryTable(entries, 'W:', (form) => form as RequestedApproval, keyOf);
    const lost = new EntryTable(entries, 'U:', (form) => form as LostCall);
    this.#revocations = new IndexedRevocations(
      head?.revocations ?? 0,
      entries,
      'z:',
      (form) => form as Revocation,
    );
    const checkpoints = new EntryTable(entries, 'c:', (form) => form as KnownCheckpoint);
    this.#signers = new EntryTable(entries, 'n:', (form) => form as SignerTally);
    this.#folds = new CountedTable(head?.folds ?? 0, entries, 'f:', decodeFinding, keyOf);
    this.#first = new EntryTable(entries, 'F:', decodeFinding);
    this.#unsealed = new NumberedMap(head?.groups ?? 0);
    this.#tables = [
      ...[this.#events, this.#grants, this.#actions, this.#requests, this.#approvals, this.#approved],
      ...[
        slices,
        rejects,
        calls,
        awaiting,
        lost,
        this.#revocations,
        this.#pending,
        checkpoints,
        this.#signers,
      ],
      ...[this.#folds, this.#first],
    ];
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
      slices,
      pending: this.#pending,
      approvals: this.#approvals,
      approved: this.#approved,
      rejects,
      revocations: this.#revocations,
      calls,
      awaiting,
      lost,
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
      seals: { ...fresh.seals, known: checkpoints, unsealed: this.#unsealed },
    };
  }

  /**
   * Loads the state, or starts one if the index has none.
   * @param policy - The trust policy to verify by; each has its own view
   * @throws IndexFault for a state of another version or form
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

  /** Loads the tables that are always read whole. */
  async #read(head: IndexHead | undefined): Promise<void> {
    if (head === undefined) return;
    for await (const [key, open] of this.#entries.list('s:')) {
      if (!(open instanceof Map)) throw new IndexFault('the entry of a start is malformed');
      this.#starts.set(key.slice('s:'.length), open as OpenStarts);
    }
    for await (const [key, until] of this.#entries.list('b:')) {
      if (typeof until !== 'string') throw new IndexFault('the entry of an expiry is malformed');
      this.#expiring.set(key.slice('b:'.length), until);
    }
    for await (const [key, entry] of this.#entries.list('u:')) {
      const { name, group } = entry as { readonly name: string; readonly group: UnsealedRecords };
      this.#unsealed.restore(name, Number(key.slice('u:'.length)), group);
    }
    this.#expiring.takeChanged();
    this.#unsealed.takeChanged();
    restoreHead(this.state, head.state);
    const { state } = this;
    if (hashToBase64url(rangeRoot(state.tree)) !== head.root)
      throw new IndexFault('the tree does not have its root');
  }

  /** Records every line applied to the state, by any caller, and all starts that change. */
  #observe(): void {
    this.#starts.watch((id) => this.#changedStarts.add(id));
    const records = new RecordEntries(this.#entries, this.state);
    this.#records = records;
    this.state.observer = {
      beforeLine: (examined) => records.beforeLine(examined),
      afterLine: (line, segment, result) => {
        records.afterLine(line, segment, result);
        this.#noteFindings(result);
        if (line.length > 0 && line.terminated) this.#noteLast(line, segment);
      },
      afterFastLine: (line, segment, examined, { verdict, own, folded }) => {
        for (const grant of records.above) this.#grants.touch(grant);
        const signatures = this.#noteSigners(examined);
        records.afterLine(line, segment, { examined, signatures, verdict, own, waiting: undefined });
        this.#noteFindings({ findings: [], folded });
        this.#noteLast(line, segment);
      },
    };
  }

  #noteLast({ offset, length }: RawLine, { file }: SegmentName): void {
    if (file !== this.last?.file) this.files = this.addFile(this.files, file, this.state.records - 1);
    this.last = { file, offset, length };
  }

  /** {@link IndexedState.files} extended by a file and its first record's number. */
  addFile(files: string, file: string, ordinal: number): string {
    return sha256Base64url(Buffer.from(`${files}\n${ordinal} ${this.#entries.names.toIndex(file)}`));
  }

  /** The outcomes of a scannable line, all valid and by known signers. */
  #noteSigners(examined: WellFormedLine): readonly SignatureOutcome[] {
    const { signers, seals } = this.state;
    const outcomes = validOutcomes(this.state, examined);
    if (outcomes.length === 0) return outcomes;
    const keyids = outcomes.map(({ keyid }) => keyid);
    for (const keyid of keyids) signers.set(keyid, signers.get(keyid) as SignerTally);
    touchUnsealed(seals, keyids);
    return outcomes;
  }

  /** As `verifyLine`; the index records the result. */
  step(line: RawLine, segment: SegmentName, given?: ExaminedLine, known?: LineKnowledge): LineResult {
    return verifyLine(this.state, line, segment, given, known);
  }

  /** The first finding of each rank, without those that only the ledger's end shows. */
  firstFindings(): Finding[] {
    return RANKS.map((rank) => this.#first.get(rank)).filter((finding) => finding !== undefined);
  }

  /** The written records, whose lines are read from the store. */
  records(lines: LineReader): RecordReader {
    return new RecordReader(this.#entries, this.state, lines);
  }

  /** Loads open actions, waiting links, approvals, revocations and signers. */
  async loadAll(): Promise<void> {
    await this.#actions.load();
    await this.#pending.load();
    await this.#approvals.load((a, b) => a.place.seq - b.place.seq);
    await this.#revocations.load();
    await this.#signers.load();
  }

  /** The changes since the last call, to be written in one batch. */
  takeChanges(): EntryChange[] {
    const { state } = this;
    const changes = [
      ...this.#tables.flatMap((table) => table.takeChanges()),
      ...[...this.#changedStarts].map((id) => {
        const open = this.#starts.get(id);
        return this.#entries.change(`s:${id}`, open?.size === 0 ? undefined : open);
      }),
      ...this.#expiring.takeChanged().map((id) => this.#entries.change(`b:${id}`, this.#expiring.get(id))),
      ...this.#unsealed.takeGone().map((number) => this.#entries.change(`u:${keyNumber(number)}`, undefined)),
      ...this.#unsealed.takeChanged().flatMap((name) => this.#changeGroup(name)),
      ...state.keyring.takeChanges().flatMap((changed) => this.#changeKey(changed)),
      ...(this.#records?.takeChanges() ?? []),
    ];
    this.#changedStarts.clear();
    changes.push(this.#entries.change('h', this.#head()));
    return changes;
  }

  /** Drops cached entries above `most` events. All changes MUST be written. */
  trim(most = MAX_LOADED): void {
    // Actions are stored by event number: both go together.
    if (this.#events.loaded > most) {
      this.#actions.clear();
      this.#events.clear();
    }
    this.#requests.trim();
    this.#approvals.trim();
    this.#approved.trim();
    this.#records?.trim();
  }

  #noteFindings({ findings, folded }: Pick<LineResult, 'findings' | 'folded'>): void {
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
      approvals: this.#approvals.size,
      approved: this.#approved.size,
      revocations: this.#revocations.size,
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
      // The first key that claims a line keeps it.
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

/** @throws IndexFault for a head of another version */
function readHead(entries: Entries): IndexHead | undefined {
  let head: IndexHead | undefined;
  try {
    head = entries.get('h') as IndexHead | undefined;
  } catch (error) {
    // Other versions have other checksums, but begin with their name.
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
  const { approvals, approved, revocations } = head;
  if (format !== FORMAT || version !== VERSION) throw ofAnotherVersion();
  const { records, bytes, end, chain, tree, seals } = (state ?? {}) as Partial<HeadForm>;
  const isWhole =
    [events, grants, keys, groups, folds, pending, records, bytes].every(isCount) &&
    [approvals, approved, revocations].every(isCount) &&
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
