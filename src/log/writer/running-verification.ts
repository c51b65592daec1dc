/**
 * The verification of an open ledger: reads the store once, catches up with other writers, and applies each own record. It knows findings,
 * keys, the clock, and whether the ledger may be sealed; it uses only a store and a state cache.
 */

import { BlockSteps, type FastEvent, type LineSteps, WriterFastPath } from '#fast/step';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { JsonObject } from '../../base/json/value.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Finding } from '../../format/finding/finding.js';
import { type ExaminedLine, examineLine, type WellFormedLine } from '../../format/record/examine-line.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import type { GenesisEvent, TrustPolicy } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import type { LineKnowledge } from '../../rules/verify/line-knowledge.js';
import type { EventVerdict, Judged, SegmentName } from '../../rules/verify/line-result.js';
import { startVerification, type VerifyState } from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';
import { IndexFault } from '../cache/entry-store.js';
import { isTailSound, noteStored, positionOf } from '../store/position.js';
import type { LedgerStore, NextPlace, SavedTail, StorePosition } from '../store/ledger-store.js';
import { misplacedSegment } from '../store/segments.js';
import type { ChainTip, NextLink } from './checkpoint.js';
import { assertGenesisKeys, isStartOfGenesis, notALedger, parseGenesis } from './genesis.js';
import type { SignatureDepth, StateCache, StateView } from './state-cache.js';

/** A record's line with its `\n`, and what `examineLine` returns for it. */
export interface MadeLine {
  readonly bytes: Uint8Array;
  readonly examined: WellFormedLine;
  /** For a scannable record. */
  readonly fast?: FastEvent | undefined;
}

/** Another writer's record. */
export interface OtherRecord {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
  readonly event: JsonObject;
  /** By the ledger's own keys; undefined if another process verified it, and kept only the state. */
  readonly verdict: EventVerdict | undefined;
  readonly findings: readonly Finding[];
}

interface Listeners {
  /** Each record of other writers since opening, in order. */
  readonly onOther?: (record: OtherRecord) => void;
  readonly onTornTail?: (saved: SavedTail) => void;
  /** The number of lines that are no records. */
  readonly onDamage?: (lines: number) => void;
}

interface RunningOptions extends Listeners {
  readonly depth: SignatureDepth;
  /** A policy for decisions, verified separately with every signature. */
  readonly trust: TrustPolicy | undefined;
  readonly cache: StateCache;
  readonly signal: AbortSignal | undefined;
}

/** The ledger's own state, or the trust policy's. */
interface View {
  readonly isOwn: boolean;
  trust: TrustPolicy | undefined;
  state: VerifyState;
  /** Whether the state has applied lines that are not stored. */
  isStale: boolean;
  /** The lines of the state when it was last saved, or loaded. */
  savedLines: number;
}

/** The verification of an open ledger; see the head of this file. */
export class RunningVerification {
  depth: SignatureDepth;
  readonly #store: LedgerStore;
  readonly #options: RunningOptions;
  readonly #own: View;
  readonly #deciding: View;
  #genesis: GenesisEvent | undefined;
  #size = 0;
  /** Lines reported by `onDamage`. */
  #damaged = 0;
  /** What follows the last whole line. */
  #torn: { readonly start: Uint8Array } | undefined;
  /** Lines that are our own, or were reported by `onOther`; undefined during opening. */
  #toldSize: number | undefined;
  /** A position at or before that. */
  #toldAt: StorePosition | undefined;
  /** The acknowledged end, whose records MUST stay. */
  #acknowledged: StorePosition | undefined;
  /** Fast steps over our own records, if possible. */
  #fastPath: WriterFastPath | undefined;
  /** Where our next record goes. */
  #next: NextPlace = { file: '', line: 1, byteOffset: 0 };

  constructor(store: LedgerStore, options: RunningOptions) {
    this.#store = store;
    this.#options = options;
    this.depth = options.depth;
    this.#own = freshView(true, undefined);
    this.#deciding = options.trust === undefined ? this.#own : freshView(false, options.trust);
  }

  /** The verification by the ledger's own keys; another object may replace it under the next lock. */
  get state(): VerifyState {
    this.#fastPath?.flush();
    return this.#own.state;
  }

  /** The same, with amounts, times and tip possibly as before the group: keys, ids, grants and the clock are current. */
  get stateOfIds(): VerifyState {
    return this.#own.state;
  }

  /** The state that decisions rest on: by the trust policy, if there is one. */
  get deciding(): VerifyState {
    this.#fastPath?.flush();
    return this.#deciding.state;
  }

  /** @throws TypeError before there is one */
  get genesis(): GenesisEvent {
    if (this.#genesis === undefined) throw new TypeError('the ledger is not open');
    return this.#genesis;
  }

  get tip(): ChainTip {
    const { chain, tipEventId, tree, lastCheckpoint: checkpoint } = this.state;
    return { seq: chain.seq, prev: chain.prev, eventId: tipEventId, tree, checkpoint };
  }

  get nextLink(): NextLink {
    const { chain } = this.#own.state;
    return { seq: chain.seq, prev: this.#fastPath?.prev ?? chain.prev };
  }

  /** Records known to be on disk, and so the next one's `seq`. */
  get size(): number {
    return this.#size;
  }

  get position(): StorePosition {
    return positionOf(this.state);
  }

  /** Reads ahead without the write lock. Errors are left to {@link catchUp}, which begins again. */
  async readAhead(): Promise<void> {
    try {
      const { cache } = this.#options;
      for (const view of this.#views()) {
        const isPrepared = await cache.prepare?.(this.#viewOf(view));
        if (isPrepared !== true) await this.#follow(view);
      }
    } catch (error) {
      if (this.#options.signal?.aborted === true) throw error;
      this.reset();
    }
  }

  /**
   * Reads what other writers added, without the write lock: the next group has less to read. Errors are left to {@link catchUp}, which begins
   * again only where something was read.
   */
  async readMore(): Promise<void> {
    // Where the lock is kept, what its groups left unsaved: the cache is released here.
    await this.save();
    const before = this.#views().map(({ state }) => state.lines);
    try {
      for (const view of this.#views()) {
        const isPrepared = await this.#options.cache.prepare?.(this.#viewOf(view));
        if (isPrepared !== true && !view.isStale) await this.#follow(view);
      }
    } catch {
      if (this.#views().some(({ state }, index) => state.lines !== before[index])) this.reset();
    }
  }

  /**
   * Under the write lock: reads what is new, as at opening; saves and cuts a torn tail.
   * @returns How many lines other writers added since the last time
   * @throws NorthrootError `NOT_A_LEDGER`, `LEDGER_TAIL_INVALID`, `SEGMENT_MISSING`, `SEGMENT_MISPLACED`; `LEDGER_CONFLICT`, `FILE_CHANGED`
   *   when known lines are gone, `LEDGER_ROLLED_BACK` when acknowledged ones are; as the store does
   */
  async catchUp(mayBeginAgain = false): Promise<number> {
    const before = this.#toldSize ?? 0;
    const [own, deciding] = [this.#own, this.#deciding].map(({ state, isStale }) =>
      isStale ? undefined : state,
    );
    try {
      await this.#readOn();
    } catch (error) {
      const isMisled = error instanceof IndexFault;
      if (isConflict(error)) await this.assertStands();
      if (!mayBeginAgain || !(isMisled || isConflict(error))) throw error;
      if (isMisled) await this.#options.cache.discard?.(error.message).catch(() => undefined);
      this.reset();
      await this.#readOn();
    }
    // Reading on compares our own state with the store. A state read anew or by another process may be of another history.
    if (this.#own.state !== own || this.#deciding.state !== deciding) await this.assertStands();
    await this.#settle();
    this.#toldAt = this.position;
    this.#toldSize = Math.max(before, this.#toldAt.size);
    this.#size = this.tip.seq;
    return this.#toldSize - before;
  }

  acknowledge(): void {
    this.#acknowledged = this.position;
  }

  /**
   * Checks that the acknowledged records are still stored.
   * @param position - Becomes the acknowledged end. Default: that of the last commit
   * @param keptIn - The file that says so, for the hint
   * @throws NorthrootError `LEDGER_ROLLED_BACK`; as the store does
   */
  async assertStands(position = this.#acknowledged, keptIn?: string): Promise<void> {
    if (position === undefined) return;
    this.#acknowledged = position;
    try {
      for await (const stored of this.#store.read(position)) if (stored.kind === 'lines') break;
    } catch (error) {
      if (!isConflict(error)) throw error;
      const name = printable(this.#store.name);
      const { size } = position;
      throw new NorthrootError(
        'LEDGER_ROLLED_BACK',
        `${name} does not have the ${size} records that were acknowledged any more`,
        {
          cause: error,
          hint: `restore the records before seq ${size} from where they still are${
            keptIn === undefined
              ? ''
              : `; where the ledger was put back on purpose, remove ${printable(keptIn)}`
          }`,
        },
      );
    }
  }

  /** Verifies every signature, stored ones included. */
  async deepen(): Promise<void> {
    if (this.depth === 'all') return;
    this.depth = 'all';
    this.reset();
    await this.catchUp();
  }

  /** Discards states with lines that are not stored; the next catch-up loads or restarts them. */
  reset(): void {
    for (const view of this.#views()) view.isStale = true;
  }

  /** Applies the line of a record about to be appended. */
  add({ bytes: line, examined, fast }: MadeLine): Judged {
    const bytes = line.subarray(0, -1);
    const { file, line: number, byteOffset: offset } = this.#next;
    this.#next = { file, line: number + 1, byteOffset: offset + line.length };
    const raw = { bytes, length: bytes.length, offset, number, terminated: true, longLeafHash: undefined };
    const judged = fast && this.#fastPath?.tryApply(fast, raw, file);
    if (judged !== undefined) return judged;
    const segment = { file, firstSeq: undefined };
    if (this.#deciding !== this.#own) this.#step(this.#deciding, raw, segment, examined);
    // Reports what a folded finding or a waiting link would leave to other records.
    const { own, waiting, verdict } = this.#step(this.#own, raw, segment, examined);
    return { findings: waiting === undefined ? own : [...own, waiting], verdict };
  }

  /** Under the write lock: prefetches ids, base64url. */
  async lookAhead(ids: readonly string[]): Promise<void> {
    await this.#own.state.events.lookAhead?.(ids);
  }

  /** Under the write lock, after catching up: prepares for own records. */
  async begin(): Promise<void> {
    const { state } = this.#own;
    // Other writers may have changed what it caches.
    this.#fastPath?.leave();
    if (this.#fastPath?.state !== state)
      this.#fastPath = this.#deciding === this.#own ? WriterFastPath.of(state) : undefined;
    this.#next = await this.#store.nextPlace(state.chain.seq);
  }

  /** Added lines are written, and not yet on disk. Never rejects. */
  async noteWritten(): Promise<void> {
    const { cache } = this.#options;
    for (const view of this.#views())
      if (!view.isStale) await cache.noteWritten?.(this.#viewOf(view), view.state);
  }

  /**
   * Added lines are on disk.
   * @param isAhead - Whether another added line is not: the state is discarded
   */
  async committed(lines: number, isAhead: boolean): Promise<void> {
    this.#toldSize = (this.#toldSize ?? 0) + lines;
    if (isAhead) {
      this.reset();
      await this.catchUp();
    }
    this.#toldAt = this.position;
    this.#acknowledged = this.#toldAt;
    this.#size = this.tip.seq;
  }

  /** Lines that the state has applied since it was last saved. */
  get unsavedLines(): number {
    const { state, savedLines } = this.#own;
    return state.lines - savedLines;
  }

  /** Saves what was committed, for the next reading. Never rejects. */
  async save(): Promise<void> {
    for (const view of this.#views()) {
      const { lines } = view.state;
      if (view.isStale || lines === view.savedLines) continue;
      try {
        await this.#options.cache.save(this.#viewOf(view), view.state);
        view.savedLines = lines;
      } catch {
        // A failed cache costs a reading, not a record; what it saved is unknown.
        view.isStale = true;
      }
    }
  }

  adopt(genesis: GenesisEvent): void {
    this.#genesis = genesis;
  }

  /** @throws NorthrootError `LEDGER_INVALID` for broken or missing evidence */
  assertSound(): void {
    if (!this.state.hasInvalid) return;
    const name = printable(this.#store.name);
    throw new NorthrootError('LEDGER_INVALID', `${name} does not verify, and was not sealed`, {
      hint: 'verify it: its findings say what is wrong',
    });
  }

  /** @throws NorthrootError `LEDGER_INVALID` */
  assertDecidable(): void {
    if (!this.deciding.hasInvalid) return;
    const name = printable(this.#store.name);
    throw new NorthrootError('LEDGER_INVALID', `${name} is not valid: nothing can be decided upon it`, {
      hint: 'verify it: its findings say what is wrong',
    });
  }

  #views(): readonly View[] {
    return this.#deciding === this.#own ? [this.#own] : [this.#own, this.#deciding];
  }

  #viewOf({ isOwn, trust }: View): StateView {
    return { trust, depth: isOwn ? this.depth : 'all' };
  }

  async #readOn(): Promise<void> {
    await this.#load();
    for (const view of this.#views()) await this.#follow(view);
  }

  /** Loads cached states that are further along. */
  async #load(): Promise<void> {
    const { cache, signal } = this.#options;
    for (const view of this.#views()) {
      const current = view.isStale ? undefined : view.state;
      let loaded: VerifyState | undefined;
      try {
        loaded = await cache.load(this.#viewOf(view), current);
      } catch (error) {
        // Errors of the ledger and of damaged entries; a cache that fails otherwise costs a reading, not a record.
        if (signal?.aborted === true || error instanceof NorthrootError || error instanceof IndexFault)
          throw error;
        view.isStale = true;
      }
      if (loaded === undefined || loaded === view.state) continue;
      view.state = loaded;
      view.isStale = false;
      view.savedLines = loaded.lines;
      if (view.isOwn) await this.#takeOver(loaded);
    }
  }

  /** Completes a loaded state by what no state keeps. */
  async #takeOver(state: VerifyState): Promise<void> {
    this.#assertInOrder(state);
    this.#genesis ??= await this.#readGenesis();
    await this.#tellSkipped(positionOf(state));
  }

  /** Applies stored lines beyond a view's state. */
  async #follow(view: View): Promise<void> {
    if (view.isStale) {
      view.state = startVerification(view.trust, defaultBackend);
      view.isStale = false;
      view.savedLines = 0;
    }
    const { state } = view;
    const { signal } = this.#options;
    // Cached states are shared, so they need every signature.
    const isDeep = !view.isOwn || this.depth === 'all' || state.observer !== undefined;
    state.assumedSignatures = isDeep ? 'none' : 'ordinary';
    if (view.isOwn) this.#torn = undefined;
    this.#fastPath?.leave();
    const steps = new BlockSteps(this.#stepsOf(view));
    for await (const stored of this.#store.read(positionOf(state))) {
      signal?.throwIfAborted();
      if (stored.kind === 'lines') {
        const { file, firstSeq } = stored;
        for (const line of stored.lines) {
          signal?.throwIfAborted();
          await steps.apply(line, { file, firstSeq });
        }
        continue;
      }
      await steps.flush();
      noteStored(state, stored);
      if (view.isOwn) this.#assertInOrder(state);
      if (view.isOwn && stored.kind === 'torn' && stored.isLast) this.#torn = stored;
    }
    await steps.flush();
    // Our own records were verified on admission.
    state.assumedSignatures = 'all';
  }

  #stepsOf(view: View): LineSteps {
    const { state, isOwn } = view;
    return {
      state,
      step: (line, segment, examined, known) => {
        const ordinal = state.lines;
        const step = this.#step(view, line, segment, examined, known);
        if (isOwn) this.#noteStored(line, ordinal, step);
      },
      afterFast: (line, examined, judged) => {
        if (!isOwn) return;
        const eventId = toDigestText(examined.eventId);
        this.#noteStored(line, state.lines - 1, { examined, eventId, ...judged });
      },
    };
  }

  /** Notes what the state does not keep of a stored line. */
  #noteStored(line: RawLine, ordinal: number, { examined, verdict, findings, eventId }: Stored): void {
    if (ordinal === 0) this.#genesis = parseGenesis(this.#store.name, line.bytes);
    if (this.#toldSize === undefined || ordinal < this.#toldSize) return;
    const event = examined?.json();
    const seq = examined?.seq;
    if (event === undefined || seq === undefined || eventId === undefined) return;
    this.#options.onOther?.({ seq, eventId, event, verdict, findings });
  }

  /** @throws NorthrootError `SEGMENT_MISSING`, `SEGMENT_MISPLACED` */
  #assertInOrder({ damage: { segment } }: VerifyState): void {
    if (segment === undefined) return;
    // A corrected order is read again.
    this.reset();
    throw misplacedSegment(segment.file, segment.expected);
  }

  /** Refuses a ledger that cannot be built on, after saving a torn tail. */
  async #settle(): Promise<void> {
    const { state } = this;
    const { lines, files } = state.damage;
    const { name } = this.#store;
    const isEmpty = state.lines === 0;
    const torn = this.#torn;
    if (torn !== undefined) {
      if (isEmpty && !isStartOfGenesis(torn.start))
        throw notALedger(name, 'it does not begin with a genesis');
      const saved = await this.#store.settleTornTail();
      this.#torn = undefined;
      if (saved !== undefined) this.#options.onTornTail?.(saved);
    }
    if (isEmpty) return;
    if (!isTailSound(state))
      throw new NorthrootError('LEDGER_TAIL_INVALID', `the last record of ${printable(name)} is not valid`, {
        hint: 'verify it: its findings say what is wrong',
      });
    if (this.#toldSize === undefined) assertGenesisKeys(this.genesis);
    const broken = lines + files;
    if (broken > this.#damaged) this.#options.onDamage?.(broken);
    this.#damaged = broken;
  }

  async #readGenesis(): Promise<GenesisEvent | undefined> {
    for await (const stored of this.#store.read()) {
      if (stored.kind !== 'lines') continue;
      for (const { bytes } of stored.lines) return parseGenesis(this.#store.name, bytes);
    }
    return undefined;
  }

  /** Reports other writers' records that a loaded state skips. */
  async #tellSkipped(to: StorePosition): Promise<void> {
    const { onOther } = this.#options;
    const told = this.#toldSize;
    if (onOther === undefined || this.#toldAt === undefined || told === undefined || to.size <= told) return;
    let ordinal = this.#toldAt.size;
    for await (const stored of this.#store.read(this.#toldAt)) {
      if (stored.kind !== 'lines') continue;
      for (const { bytes } of stored.lines) {
        ordinal += 1;
        if (ordinal <= told || ordinal > to.size) continue;
        const examined = examineLine(bytes, 'records');
        const { seq, eventId } = examined;
        const event = examined.json();
        if (event === undefined || seq === undefined || eventId === undefined) continue;
        onOther({ seq, eventId: toDigestText(eventId), event, verdict: undefined, findings: [] });
      }
    }
    this.#toldSize = to.size;
  }

  #step(view: View, line: RawLine, segment: SegmentName, given?: ExaminedLine, known?: LineKnowledge): Step {
    this.#fastPath?.leave();
    const { findings, own, waiting, examined, verdict } = verifyLine(view.state, line, segment, given, known);
    const eventId = examined?.eventId === undefined ? undefined : toDigestText(examined.eventId);
    return { findings, own, waiting, verdict, eventId, examined };
  }
}

interface Stored extends Judged {
  readonly eventId: string | undefined;
  readonly examined: ExaminedLine | undefined;
}

interface Step extends Stored {
  readonly own: readonly Finding[];
  readonly waiting: Finding | undefined;
}

function freshView(isOwn: boolean, trust: TrustPolicy | undefined): View {
  return { isOwn, trust, state: startVerification(trust, defaultBackend), isStale: false, savedLines: 0 };
}

/** Whether known lines are no longer stored. */
function isConflict(error: unknown): boolean {
  return (
    error instanceof NorthrootError && (error.code === 'LEDGER_CONFLICT' || error.code === 'FILE_CHANGED')
  );
}
