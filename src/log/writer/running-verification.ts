/**
 * The verification of a ledger that is being written. It reads what is stored once, catches up on what others add, and goes one step
 * further with each record of our own. It tells what every record gives, which keys count, what the clock is, and whether the ledger
 * may be sealed. It knows no files: only a store and a cache of states.
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
import type { EventVerdict, SegmentName } from '../../rules/verify/line-result.js';
import { startVerification, type VerifyState } from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';
import { IndexFault } from '../cache/entry-store.js';
import { isTailSound, noteStored } from '../store/damage.js';
import type { LedgerStore, NextPlace, SavedTail, StorePosition } from '../store/ledger-store.js';
import { positionOf } from '../store/position.js';
import { misplacedSegment } from '../store/segments.js';
import type { ChainTip, NextLink } from './chain-tip.js';
import { assertGenesisKeys, isStartOfGenesis, notALedger, parseGenesis } from './genesis-line.js';
import type { SignatureDepth, StateCache, StateView } from './state-cache.js';

/** What one record gave. */
export interface Judged {
  /** Each of its own, none folded under another record's. */
  readonly findings: readonly Finding[];
  readonly verdict: EventVerdict;
}

/** The line of a record, with its `\n`, and what `examineLine` says of it. */
export interface MadeLine {
  readonly bytes: Uint8Array;
  readonly examined: WellFormedLine;
  /** Where it is the line of a scannable record, made around this one. */
  readonly fast?: FastEvent | undefined;
}

/** What is said of a record that no rule finds anything at. */
const NO_FINDINGS: readonly Finding[] = [];

/** A record that somebody else appended. */
export interface OtherRecord {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
  readonly event: JsonObject;
  /** What verification says of it, by the ledger's own keys; undefined where another process has judged it, and left only the state. */
  readonly verdict: EventVerdict | undefined;
  readonly findings: readonly Finding[];
}

/** What a {@link RunningVerification} tells of what others have left. */
export interface Listeners {
  /** Each record that others appended since the ledger was opened, in order. */
  readonly onOther?: (record: OtherRecord) => void;
  readonly onTornTail?: (saved: SavedTail) => void;
  /** So many lines are no records. */
  readonly onDamage?: (lines: number) => void;
}

/** What a {@link RunningVerification} goes by. */
export interface RunningOptions extends Listeners {
  readonly depth: SignatureDepth;
  /** A policy by which the ledger is verified besides, every signature of it, for decisions. */
  readonly trust: TrustPolicy | undefined;
  readonly cache: StateCache;
  readonly signal: AbortSignal | undefined;
}

/** One state and how it is read: the ledger's own, or that of the trust policy. */
interface View {
  readonly isOwn: boolean;
  trust: TrustPolicy | undefined;
  state: VerifyState;
  /** Whether the state has seen what is not stored: it is not to be gone on with. */
  isSpoilt: boolean;
}

/** See the head of this file. */
export class RunningVerification {
  depth: SignatureDepth;
  readonly #store: LedgerStore;
  readonly #options: RunningOptions;
  readonly #own: View;
  readonly #deciding: View;
  #genesis: GenesisEvent | undefined;
  #size = 0;
  /** So many lines were told of to `onDamage`. */
  #damaged = 0;
  /** What follows the last whole line. */
  #torn: { readonly start: Uint8Array } | undefined;
  /** So many lines are our own, or were told of to `onOther`; undefined while the ledger is being opened. */
  #toldSize: number | undefined;
  /** A position before that, or at it. */
  #toldAt: StorePosition | undefined;
  /** Up to where records were acknowledged: what stands before it must stand there for good. */
  #acknowledged: StorePosition | undefined;
  /** The fast steps over records of our own, where they may be taken. */
  #fastPath: WriterFastPath | undefined;
  /** Where the next record of our own goes. */
  #next: NextPlace = { file: '', line: 1, byteOffset: 0 };

  constructor(store: LedgerStore, options: RunningOptions) {
    this.#store = store;
    this.#options = options;
    this.depth = options.depth;
    this.#own = freshView(true, undefined);
    this.#deciding = options.trust === undefined ? this.#own : freshView(false, options.trust);
  }

  /** The verification by the ledger's own keys; another object may take its place at a turn. */
  get state(): VerifyState {
    this.#fastPath?.flush();
    return this.#own.state;
  }

  /** The same, where amounts, times and the tip may be those before the group: keys, ids, grants and the clock are right. */
  get stateOfIds(): VerifyState {
    return this.#own.state;
  }

  /** What decisions rest on: the state under the trust policy, where there is one, and else the same. */
  get deciding(): VerifyState {
    this.#fastPath?.flush();
    return this.#deciding.state;
  }

  /** The ledger's first event. @throws TypeError before it has one. */
  get genesis(): GenesisEvent {
    if (this.#genesis === undefined) throw new TypeError('the ledger is not open');
    return this.#genesis;
  }

  /** Where the next record goes. */
  get tip(): ChainTip {
    const { chain, tipEventId, tree, lastCheckpoint: checkpoint } = this.state;
    return { seq: chain.seq, prev: chain.prev, eventId: tipEventId, tree, checkpoint };
  }

  /** The same, as far as a record says it. */
  get nextLink(): NextLink {
    const { chain } = this.#own.state;
    return { seq: chain.seq, prev: this.#fastPath?.prev ?? chain.prev };
  }

  /** How many records are known to be on disk: the next one's `seq`. */
  get size(): number {
    return this.#size;
  }

  /** Up to where the store's lines are known. */
  get position(): StorePosition {
    return positionOf(this.state);
  }

  /**
   * Reads ahead without the turn, as far as all is well: what is found wrong is judged when the turn is had. What is read may turn
   * out not to be there to stay; {@link catchUp} then begins again.
   */
  async readAhead(): Promise<void> {
    try {
      const { cache } = this.#options;
      for (const view of this.#views()) {
        const isPrepared = await cache.prepare?.(this.#viewOf(view));
        if (isPrepared !== true) await this.#follow(view);
      }
    } catch (error) {
      if (this.#options.signal?.aborted === true) throw error;
      this.forget();
    }
  }

  /**
   * With the turn held: takes up what is stored and was not seen yet, as at opening. A torn tail is saved and cut off.
   *
   * @returns How many lines others wrote since the last time.
   * @throws NorthrootError `NOT_A_LEDGER`, `LEDGER_TAIL_INVALID`, `SEGMENT_MISSING`, `SEGMENT_MISPLACED`; `LEDGER_CONFLICT` and
   *   `FILE_CHANGED` when what was seen is not there any more; `LEDGER_ROLLED_BACK` when that was acknowledged; as the store does.
   */
  async catchUp(mayBeginAgain = false): Promise<number> {
    const before = this.#toldSize ?? 0;
    const [own, deciding] = [this.#own, this.#deciding].map(({ state, isSpoilt }) =>
      isSpoilt ? undefined : state,
    );
    try {
      await this.#readOn();
    } catch (error) {
      const isMisled = error instanceof IndexFault;
      if (isConflict(error)) await this.assertStands();
      if (!mayBeginAgain || !(isMisled || isConflict(error))) throw error;
      if (isMisled) await this.#options.cache.discard?.(error.message).catch(() => undefined);
      this.forget();
      await this.#readOn();
    }
    // What is gone on from is held against the store by the reading itself. What was read anew, or by somebody else, may have gone
    // another way before it came to where it is.
    if (this.#own.state !== own || this.#deciding.state !== deciding) await this.assertStands();
    await this.#settle();
    this.#toldAt = this.position;
    this.#toldSize = Math.max(before, this.#toldAt.size);
    this.#size = this.tip.seq;
    return this.#toldSize - before;
  }

  /** What is known now was acknowledged. */
  acknowledge(): void {
    this.#acknowledged = this.position;
  }

  /**
   * That what was acknowledged is stored still.
   *
   * @param position - Up to where it was; from now on the place that must stand. Default: that of the last commit.
   * @param keptIn - The file that says so.
   * @throws NorthrootError `LEDGER_ROLLED_BACK`; as the store does.
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

  /** Verifies every signature from now on, and those of what is there already. */
  async deepen(): Promise<void> {
    if (this.depth === 'all') return;
    this.depth = 'all';
    this.forget();
    await this.catchUp();
  }

  /** What was judged is not stored: the states are begun again, or loaded, when the ledger is caught up on. */
  forget(): void {
    for (const view of this.#views()) view.isSpoilt = true;
  }

  /** Takes the line of a record that is about to be appended. */
  add({ bytes: line, examined, fast }: MadeLine): Judged {
    const bytes = line.subarray(0, -1);
    const { file, line: number, byteOffset: offset } = this.#next;
    this.#next = { file, line: number + 1, byteOffset: offset + line.length };
    const raw = { bytes, length: bytes.length, offset, number, terminated: true, longLeafHash: undefined };
    const sound = fast && this.#fastPath?.tryApply(fast, raw, file);
    if (sound !== undefined) {
      return { findings: NO_FINDINGS, verdict: sound };
    }
    const segment = { file, firstSeq: undefined };
    if (this.#deciding !== this.#own) this.#step(this.#deciding, raw, segment, examined);
    // What is alike in an earlier record is told of this one too; what an earlier execution waited for is told of that one.
    const { own, waiting, verdict } = this.#step(this.#own, raw, segment, examined);
    return { findings: waiting === undefined ? own : [...own, waiting], verdict };
  }

  /** With the turn held: these ids, base64url, will be asked for. */
  async lookAhead(ids: readonly string[]): Promise<void> {
    await this.#own.state.events.lookAhead?.(ids);
  }

  /** With the turn held, and caught up: where the records that are added will stand. */
  async begin(): Promise<void> {
    const { state } = this.#own;
    // What others wrote meanwhile may have changed what it remembers.
    this.#fastPath?.leave();
    if (this.#fastPath?.state !== state)
      this.#fastPath = this.#deciding === this.#own ? WriterFastPath.of(state) : undefined;
    this.#next = await this.#store.nextPlace(state.chain.seq);
  }

  /**
   * So many lines that were added are on disk.
   *
   * @param isAhead - Whether something was added besides that is not: it is forgotten.
   */
  async committed(lines: number, isAhead: boolean): Promise<void> {
    this.#toldSize = (this.#toldSize ?? 0) + lines;
    if (isAhead) {
      this.forget();
      await this.catchUp();
    }
    this.#toldAt = this.position;
    this.#acknowledged = this.#toldAt;
    this.#size = this.tip.seq;
    for (const view of this.#views()) {
      try {
        await this.#options.cache.save(this.#viewOf(view), view.state);
      } catch {
        // A cache that cannot keep it costs a reading, and no record. What it has kept of it, nobody knows.
        view.isSpoilt = true;
      }
    }
  }

  /** Takes the first record of a new ledger for its genesis. */
  adopt(genesis: GenesisEvent): void {
    this.#genesis = genesis;
  }

  /** @throws NorthrootError `LEDGER_INVALID`, when any evidence is broken or missing. */
  assertSound(): void {
    if (!this.state.hasInvalid) return;
    const name = printable(this.#store.name);
    throw new NorthrootError('LEDGER_INVALID', `${name} does not verify, and was not sealed`, {
      hint: 'verify it: its findings say what is wrong',
    });
  }

  /** @throws NorthrootError `LEDGER_INVALID`, when nothing can be decided upon it. */
  assertDecidable(): void {
    assertDecidable(this.deciding, this.#store.name);
  }

  #views(): readonly View[] {
    return this.#deciding === this.#own ? [this.#own] : [this.#own, this.#deciding];
  }

  #viewOf({ isOwn, trust }: View): StateView {
    return { trust, depth: isOwn ? this.depth : 'all' };
  }

  /** Takes up what the cache has, and then what is stored beyond it. */
  async #readOn(): Promise<void> {
    await this.#load();
    for (const view of this.#views()) await this.#follow(view);
  }

  /** Takes what the cache has, where that is further along than what is here. */
  async #load(): Promise<void> {
    const { cache, signal } = this.#options;
    for (const view of this.#views()) {
      const current = view.isSpoilt ? undefined : view.state;
      let loaded: VerifyState | undefined;
      try {
        loaded = await cache.load(this.#viewOf(view), current);
      } catch (error) {
        // Of the ledger, or of what is kept of it. That nothing can be kept at all costs a reading, and no record.
        if (signal?.aborted === true || error instanceof NorthrootError || error instanceof IndexFault)
          throw error;
        view.isSpoilt = true;
      }
      if (loaded === undefined || loaded === view.state) continue;
      view.state = loaded;
      view.isSpoilt = false;
      if (view.isOwn) await this.#takeOver(loaded);
    }
  }

  /** What no state keeps, of one that comes from elsewhere. */
  async #takeOver(state: VerifyState): Promise<void> {
    this.#assertInOrder(state);
    this.#genesis ??= await this.#readGenesis();
    await this.#tellSkipped(positionOf(state));
  }

  /** Reads what is stored beyond a view's state. */
  async #follow(view: View): Promise<void> {
    if (view.isSpoilt) {
      view.state = startVerification(view.trust, defaultBackend);
      view.isSpoilt = false;
    }
    const { state } = view;
    const { signal } = this.#options;
    // What is kept is gone on from by everybody.
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
    // What is added was signed, or its signatures verified, when it was admitted.
    state.assumedSignatures = 'all';
  }

  /** A view as it is stepped over what others have stored. */
  #stepsOf(view: View): LineSteps {
    const { state, isOwn } = view;
    return {
      state,
      step: (line, segment, examined, known) => {
        const ordinal = state.lines;
        const step = this.#step(view, line, segment, examined, known);
        if (isOwn) this.#noteStored(line, ordinal, step);
      },
      afterFast: (line, examined, verdict) => {
        if (!isOwn) return;
        const eventId = toDigestText(examined.eventId);
        this.#noteStored(line, state.lines - 1, { examined, eventId, findings: NO_FINDINGS, verdict });
      },
    };
  }

  /** What only the line itself tells, of one that was stored by somebody. */
  #noteStored(line: RawLine, ordinal: number, { examined, verdict, findings, eventId }: Stored): void {
    if (ordinal === 0) this.#genesis = parseGenesis(this.#store.name, line.bytes);
    if (this.#toldSize === undefined || ordinal < this.#toldSize) return;
    const event = examined?.json();
    const seq = examined?.seq;
    if (event === undefined || seq === undefined || eventId === undefined) return;
    this.#options.onOther?.({ seq, eventId, event, verdict, findings });
  }

  /** @throws NorthrootError `SEGMENT_MISSING`, `SEGMENT_MISPLACED`. */
  #assertInOrder({ damage: { segment } }: VerifyState): void {
    if (segment === undefined) return;
    // Who has it put in order is let go on.
    this.forget();
    throw misplacedSegment(segment.file, segment.expected);
  }

  /** Refuses what cannot be built on; what a crash left is put aside first. */
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
    if (!isTailSound(state)) {
      throw new NorthrootError('LEDGER_TAIL_INVALID', `the last record of ${printable(name)} is not valid`, {
        hint: 'verify it: its findings say what is wrong',
      });
    }
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

  /** Tells of what others appended and others judged: the state that was loaded has them already. */
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

/** What a line in the store gave. */
interface Stored extends Judged {
  readonly eventId: string | undefined;
  readonly examined: ExaminedLine | undefined;
}

interface Step extends Stored {
  readonly own: readonly Finding[];
  readonly waiting: Finding | undefined;
}

/** @throws NorthrootError `LEDGER_INVALID`, when the evidence in a ledger is broken. */
export function assertDecidable(state: VerifyState, path: string): void {
  if (!state.hasInvalid) return;
  throw new NorthrootError(
    'LEDGER_INVALID',
    `${printable(path)} is not valid: nothing can be decided upon it`,
    { hint: 'verify it: its findings say what is wrong' },
  );
}

function freshView(isOwn: boolean, trust: TrustPolicy | undefined): View {
  return { isOwn, trust, state: startVerification(trust, defaultBackend), isSpoilt: false };
}

/** Whether what was read is not stored any more. */
export function isConflict(error: unknown): boolean {
  return (
    error instanceof NorthrootError && (error.code === 'LEDGER_CONFLICT' || error.code === 'FILE_CHANGED')
  );
}
