/**
 * The fast path of `verifyLine`: the same changes to the state for a scannable record in which no rule finds anything, or only that it
 * is late as earlier ones were. It makes no objects per record. `verifyLine` is the definition: {@link FastStep.tryApply} first checks
 * everything and changes nothing, and declines any record of which it is not sure. Counts stay here until {@link FastStep.flush}.
 */

import { CODE_PAGES } from '../format/finding/catalog.js';
import type { WellFormedLine } from '../format/record/examine-line.js';
import type { RawLine } from '../format/record/line-splitter.js';
import type { Grant } from '../rules/bounds/grant.js';
import { ActionTable } from '../rules/verify/action-table.js';
import { TIME_CAUSE } from '../rules/verify/authorizations.js';
import { EventIndex } from '../rules/verify/event-index.js';
import { describeCounted, foldCause, foldOne } from '../rules/verify/line-findings.js';
import type { Judged } from '../rules/verify/line-result.js';
import { LATE_REPORT_TYPE } from '../rules/verify/late-reports.js';
import { START_TYPE } from '../rules/verify/starts.js';
import type { VerifyState } from '../rules/verify/state.js';
import { BlockTexts } from './blocks/block-texts.js';
import type { BlockFacts } from './blocks/examine-block.js';
import type { FastLine } from './blocks/read-blocks.js';
import { FastChain } from './fast-chain.js';
import { FastLinks } from './fast-links.js';
import { FastSigners } from './fast-signers.js';
import * as row from './scan/row.js';
import { recallText } from './scan/scanned-line.js';

/** Releases, and digests of another algorithm, take the slow path. */
const NOT_SOUND = row.IS_ABANDONED | row.HAS_OTHER_DIGEST;
/** The cause under which findings of late events fold. */
const LATE = foldCause('TIME_REGRESSION', CODE_PAGES.TIME_REGRESSION.severity, TIME_CAUSE);

export class FastStep {
  readonly #state: VerifyState;
  readonly #canFold: boolean;
  readonly #events: EventIndex;
  readonly #texts = new BlockTexts();
  readonly #chain: FastChain;
  readonly #signers: FastSigners;
  readonly #links: FastLinks;
  #facts: BlockFacts | undefined;
  #verdict: 'ok' | 'denied' = 'ok';

  private constructor(
    state: VerifyState,
    events: EventIndex,
    actions: ActionTable,
    isTold: boolean,
    canFold: boolean,
  ) {
    this.#state = state;
    this.#canFold = canFold;
    this.#events = events;
    this.#chain = new FastChain(state);
    this.#signers = new FastSigners(state, this.#texts);
    this.#links = new FastLinks(state, events, actions, this.#texts, isTold || canFold);
  }

  /**
   * The fast path for a state whose events and actions are in memory; undefined for any other.
   *
   * @param uses - `isTold`: whether the state's observer is notified of each line. `canFold`: whether findings that only add to the
   *   count of an earlier one need not be reported.
   */
  static of(
    state: VerifyState,
    { isTold = false, canFold = false }: { readonly isTold?: boolean; readonly canFold?: boolean } = {},
  ): FastStep | undefined {
    const { events, links, observer } = state;
    if (!(events instanceof EventIndex && links.actions instanceof ActionTable)) return undefined;
    if (observer !== undefined && !isTold) return undefined;
    return new FastStep(state, events, links.actions, isTold, canFold);
  }

  /** The verdict of the last record that was applied. */
  get verdict(): 'ok' | 'denied' {
    return this.#verdict;
  }

  /** The grant of the last record that was applied; undefined for none. */
  get grant(): Grant | undefined {
    return this.#links.grant;
  }

  /** The size of the tree, with the leaves that {@link FastStep.flush} adds. */
  get treeSize(): number {
    return this.#chain.treeSize;
  }

  /**
   * Applies a record.
   *
   * @returns False where it declines: nothing was changed then. `verifyLine` MUST be called instead, after {@link FastStep.flush} and
   *   {@link FastStep.reset}.
   */
  tryApply(line: FastLine): boolean {
    const { facts, bytes, index } = line;
    const { rows } = facts;
    const at = facts.rowAt[index]!;
    if (at === -1 || line.number === 1) return false;
    const base = at * row.ROW_WIDTH;
    const state = this.#state;
    if (state.layout !== 'records' || state.records === 0) return false;
    const flags = rows[base + row.FLAGS]!;
    if ((flags & NOT_SOUND) !== 0 || !this.#chain.isNext(bytes, rows, base)) return false;
    const type = rows[base + row.TYPE]!;
    const isDenied = (flags & row.IS_DENY) !== 0;
    // An allow whose own checks failed.
    if (!isDenied && (flags & row.HAS_FAILED_CHECK) !== 0) return false;
    const typeName = typeNameIn(bytes, rows, base, type);
    const count = typeName === undefined ? undefined : state.countsByType.get(typeName);
    if (typeName === undefined || count === undefined) return false;
    const isLate = this.#chain.isLate(bytes, rows, base);
    if (isLate && !this.#canFoldLate()) return false;
    if (facts !== this.#facts) this.#beginBlock(facts);
    const principal = this.#texts.principals.at(bytes, rows, base);
    const isOwn = type === row.AUTHORIZATION && !isDenied && rows[base + row.LINK]! === 0;
    if (!this.#signers.find(line, base, principal, type, isOwn)) return false;
    if (!this.#isPreviousKnown(bytes, rows[base + row.PREVIOUS_ID]!)) return false;
    if (!this.#links.judge(line, at, principal, type, isDenied)) return false;
    // All checks have passed: the changes begin.
    this.#verdict = isDenied ? 'denied' : 'ok';
    if (isLate) foldOne(state, LATE);
    if (isOwn && !state.keyring.hasAuthority) state.selfIssuable += 1;
    this.#links.apply(line, base);
    state.countsByType.set(typeName, count + 1);
    state.countsByVerdict[this.#verdict] += 1;
    this.#signers.count(this.#verdict);
    this.#chain.advance(line, base, isLate);
    return true;
  }

  /**
   * Applies a record and notifies the state's observer.
   *
   * @returns Undefined where {@link FastStep.tryApply} declines.
   */
  tryApplyObserved(fast: FastLine, line: RawLine, examined: WellFormedLine): Judged | undefined {
    const { observer } = this.#state;
    observer?.beforeLine(examined);
    if (!this.tryApply(fast)) return undefined;
    const verdict = this.#verdict;
    const { file } = fast.segment;
    const counted = describeCounted(this.#state, { line, file, examined }, this.grant, this.#links.uncapped);
    if (observer !== undefined) {
      this.flush();
      observer.afterFastLine(line, fast.segment, examined, { verdict, ...counted });
    }
    return { findings: counted.own, verdict };
  }

  /** Writes all counts to the state. MUST be called before the state is read elsewhere, and before the bytes of the block change. */
  flush(): void {
    this.#links.flush();
    this.#chain.flush();
  }

  /** Forgets what records on the slow path can change. */
  reset(): void {
    this.#signers.reset();
  }

  #beginBlock(facts: BlockFacts): void {
    this.#facts = facts;
    this.#texts.begin(facts.rows.length / row.ROW_WIDTH);
    this.#links.beginBlock(facts.rows);
  }

  #canFoldLate(): boolean {
    return this.#canFold && this.#state.foldRoots.get(LATE) !== undefined;
  }

  /** Whether the event that this one names as previous is known. @param id - Its offset; 0 for none. */
  #isPreviousKnown(bytes: Uint8Array, id: number): boolean {
    return id === 0 || this.#chain.isTip(bytes, id) || this.#events.locate(bytes, id) !== -1;
  }
}

/** The type of an event; undefined where it means something to a rule that the fast path does not have. */
function typeNameIn(bytes: Uint8Array, rows: Int32Array, base: number, type: number): string | undefined {
  if (type === row.AUTHORIZATION) return 'authorization';
  if (type === row.EXECUTION) return 'execution';
  if (type === row.START) return START_TYPE;
  if (type !== row.OTHER) return undefined;
  const name = recallText(bytes, rows[base + row.EVENT_TYPE]!, rows[base + row.EVENT_TYPE + 1]!);
  return name.startsWith('x.') && name !== START_TYPE && name !== LATE_REPORT_TYPE ? name : undefined;
}
