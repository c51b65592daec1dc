/**
 * The step over a scannable record in which no rule finds anything, or only that it is late, as others before it were: the same changes to the
 * state as `verifyLine` makes, without the objects that findings need. It first looks at everything and changes nothing; where it is not sure that a record is sound it says no, and
 * `verifyLine` is asked, which alone defines what a step does. So it can only ever save time.
 *
 * What it counts it keeps to itself as numbers, until {@link FastStep.settle}.
 */

import { isDigestAt } from '../base/bytes/base64url-at.js';
import { hasSameBytes, isTextAt } from '../base/bytes/compare.js';
import { encodeBase64url } from '../base/bytes/encoding.js';
import { decodeLatin1, encodeLatin1 } from '../base/bytes/text.js';
import { rationalOfDecimal } from '../base/value/rational.js';
import { orderTimestamps, WHOLE_LENGTH } from '../base/value/timestamp.js';
import { isMeasuredUnit } from '../format/event/meter-basis.js';
import { CODE_PAGES } from '../format/finding/catalog.js';
import type { WellFormedLine } from '../format/record/examine-line.js';
import type { RawLine } from '../format/record/line-splitter.js';
import { appendSubtree } from '../format/tree/compact-range.js';
import type { Account, Grant } from '../rules/bounds/grant.js';
import { judgeWindows } from '../rules/bounds/judge.js';
import type { Judgement } from '../rules/bounds/judgement.js';
import { type SigningRule, signingRuleOf } from '../rules/trust/authority.js';
import { findEntitlementProblem, type RingKey } from '../rules/trust/keyring.js';
import { judgingInstant, mustBeSigned } from '../rules/trust/record-signing.js';
import { type ActionRows, MAX_ROW_UNITS, type ActionRow } from '../rules/verify/action-rows.js';
import { ActionTable } from '../rules/verify/action-table.js';
import { TIME_CAUSE } from '../rules/verify/authorizations.js';
import { findUnsealed } from '../rules/verify/checkpoints.js';
import { EventIndex } from '../rules/verify/event-index.js';
import { foldCause, foldOne } from '../rules/verify/line-findings.js';
import type { UnsealedRecords } from '../rules/verify/seals.js';
import { START_TYPE } from '../rules/verify/starts.js';
import type { SignerTally, VerifyState } from '../rules/verify/state.js';
import { BlockTexts, keyidIn } from './blocks/block-texts.js';
import type { BlockFacts } from './blocks/examine-block.js';
import type { FastLine } from './blocks/read-blocks.js';
import { VALID } from './blocks/verdicts.js';
import { BoundsView, MAX_SCALE, rescale, type ScaledAccount, type UnitBounds } from './scaled-account.js';
import { MeterReader, readDigits, recallText } from './scan/scanned-line.js';
import * as row from './scan/scan.js';
import { B64_IN_DIGEST, B64_LENGTH, LOW_DIGITS } from './scan/tables.js';

const HASH_BYTES = 32;
/** What is never on the fast path: releases, and digests of another kind. */
const NOT_SOUND = row.IS_ABANDONED | row.HAS_OTHER_DIGEST;
/** Under what the findings fold that events are late. */
const LATE = foldCause('TIME_REGRESSION', CODE_PAGES.TIME_REGRESSION.severity, TIME_CAUSE);
/** What the higher part of an amount is multiplied by. */
const LOW_BASE = 10 ** LOW_DIGITS;
const NO_BYTES = new Uint8Array();
/** Records that more keys signed are left to `verifyLine`. */
const MAX_SIGNERS = 4;
/** Whoever has more signers, grants or types at once is served the slow way now and then. */
const MAX_REMEMBERED = 1_024;

/** A key that signs, and what is counted of it. */
interface Signer {
  readonly key: RingKey;
  readonly tally: SignerTally;
  readonly group: UnsealedRecords | undefined;
  readonly intervalStart: number;
  /** By which it was entitled to sign. */
  readonly rules: Set<SigningRule>;
}

/** So much of one unit, as an event says it. */
interface Amount {
  unit: string;
  /** In multiples of 10^−`scale`. */
  value: number;
  scale: number;
}

/** What an account is to hold once the event counts. */
interface Change {
  account: ScaledAccount;
  used: number;
  estimated: number;
  reserved: number;
}

/** See the head of this file. */
export class FastStep {
  readonly #state: VerifyState;
  readonly #canFold: boolean;
  readonly #events: EventIndex;
  readonly #actions: ActionTable;
  readonly #rows: ActionRows;
  readonly #meters = new MeterReader();
  readonly #amounts: Amount[] = [];
  #amountCount = 0;
  /** Free when the next line is looked at; so are the amounts and the draft of an action, whose members are copied. */
  readonly #changes: Change[] = [];
  #changeCount = 0;
  readonly #accounts = new Map<Account, ScaledAccount>();
  readonly #changed: ScaledAccount[] = [];
  /** By the number of the grant. */
  readonly #views = new Map<number, BoundsView>();
  /** Of the line that is looked at: who signed it, and where such records are counted. */
  readonly #signing: Signer[] = [];
  #signerCount = 0;
  #group: UnsealedRecords | undefined;
  readonly #authorizationRules = new Map<string, SigningRule>();
  readonly #ownRules = new Map<string, SigningRule>();
  readonly #otherRules = new Map<string, SigningRule>();
  readonly #signers = new Map<string, Signer>();
  /** Whether the event that is looked at is earlier than one before it. */
  #isLate = false;
  /**
   * Where the latest time of an event stands, and whether that is the event of the line before. As all places in a block, it means
   * something until {@link FastStep.settle}.
   */
  #isTipLatest = false;
  #latest: Uint8Array = NO_BYTES;
  #latestAt = 0;
  #latestEnd = 0;
  /** The leaf hash of the last line, where this stepped over it. */
  #leaves: Uint8Array = NO_BYTES;
  #leafAt = 0;
  #hasStepped = false;
  /** The block that is gone through: its texts, and of each row the hashes of its id and of its link, and one more. */
  #facts: BlockFacts | undefined;
  readonly #texts = new BlockTexts();
  #hashes = new Uint32Array();
  /** The block whose lines were stepped over last; those of them that are not in the tree yet, `[from, to)`. */
  #block: BlockFacts | undefined;
  #leavesFrom = 0;
  #leavesTo = 0;
  /** Where the id of the last event stands. */
  #tipBytes: Uint8Array = NO_BYTES;
  #tipAt = 0;
  /** Of the event that is looked at: the row of the action that it opens, and of the one that it spends; -1 for none. */
  #opened = -1;
  #spent = -1;
  #spentNumber = -1;
  /** Whether the event that is looked at denies, or allows something under no grant. */
  #isDenied = false;
  #isOwn = false;
  /** What bounds what is under no grant: nothing. */
  readonly #unbounded = new BoundsView(undefined, this.#accounts);
  /** What bounds the execution that is looked at. */
  #view: BoundsView | undefined;
  #windows: Judgement | undefined;
  readonly #position = { file: '', line: 0, seq: 0 };
  readonly #draft: ActionRow;

  private constructor(state: VerifyState, events: EventIndex, actions: ActionTable, canFold: boolean) {
    this.#canFold = canFold;
    this.#state = state;
    this.#events = events;
    this.#actions = actions;
    this.#rows = actions.rows;
    actions.number((id) => events.numberOf(id));
    this.#draft = {
      words: new Int32Array(),
      id: 0,
      intent: 0,
      params: 0,
      userIntent: -1,
      bytes: NO_BYTES,
      time: 0,
      timeEnd: 0,
      file: '',
      line: 0,
      seq: 0,
      principalId: '',
      toolName: '',
      isDenied: false,
      grant: 0,
      unitCount: 0,
      units: [],
      amounts: new Float64Array(MAX_ROW_UNITS),
      scales: new Uint8Array(MAX_ROW_UNITS),
    };
  }

  /**
   * The step for a state whose events and actions are in memory, as far as a step asks for them; undefined for any other.
   *
   * @param uses - `isTold`: whether the state's observer is told of each line, and what a line changes in place is set again in its
   *   table. `canFold`: whether nobody asks for findings that only add to the count of an earlier one.
   */
  static of(
    state: VerifyState,
    { isTold = false, canFold = false }: { readonly isTold?: boolean; readonly canFold?: boolean } = {},
  ): FastStep | undefined {
    const { events, links, observer } = state;
    if (!(events instanceof EventIndex && links.actions instanceof ActionTable)) return undefined;
    if (observer !== undefined && !isTold) return undefined;
    return new FastStep(state, events, links.actions, canFold);
  }

  /**
   * Steps over a line.
   *
   * @returns False where `verifyLine` is to be asked, after {@link FastStep.settle} and {@link FastStep.forget}; nothing was changed then.
   */
  tryApply(line: FastLine): boolean {
    const { facts, bytes, index } = line;
    const { rows, leaves } = facts;
    const at = facts.rowAt[index]!;
    if (at === -1 || line.number === 1) return false;
    const base = at * row.ROW_WIDTH;
    const state = this.#state;
    if (state.layout !== 'records' || state.records === 0) return false;
    const flags = rows[base + row.FLAGS]!;
    if ((flags & NOT_SOUND) !== 0 || !this.#isNext(bytes, rows, base)) return false;
    const type = rows[base + row.TYPE]!;
    this.#isDenied = (flags & row.IS_DENY) !== 0;
    // An allow that is in doubt.
    if (!this.#isDenied && (flags & row.HAS_FAILED_CHECK) !== 0) return false;
    const typeName =
      type === row.AUTHORIZATION
        ? 'authorization'
        : type === row.EXECUTION
          ? 'execution'
          : this.#extensionType(bytes, rows, base);
    const count = typeName === undefined ? undefined : state.countsByType.get(typeName);
    if (typeName === undefined || count === undefined) return false;
    this.#isLate = this.#isLateEvent(bytes, rows, base);
    if (this.#isLate && !this.#findsLate()) return false;
    if (facts !== this.#facts) this.#beginBlock(facts);
    const principal = this.#texts.principals.at(bytes, rows, base);
    this.#isOwn = type === row.AUTHORIZATION && !this.#isDenied && rows[base + row.LINK]! === 0;
    if (!this.#findSigners(line, base, principal, type)) return false;
    const previous = rows[base + row.PREVIOUS_ID]!;
    if (previous !== 0 && !this.#isTip(bytes, previous) && this.#events.locate(bytes, previous) === -1)
      return false;
    this.#changeCount = 0;
    this.#opened = -1;
    this.#spent = -1;
    this.#view = undefined;
    if (type === row.AUTHORIZATION && !this.#judgeAction(line, base, principal)) return false;
    if (type === row.EXECUTION && !this.#judgeExecution(bytes, rows, at, principal)) return false;
    if (this.#events.locateWords(rows, base + row.ID_WORDS, this.#hashes[2 * at]!) !== -1)
      return this.#refuse();
    if (this.#isAwaited(bytes, rows[base + row.EVENT_ID]!)) return this.#refuse();
    // From here on it is certain, and all is changed.
    this.#applyLinks(line);
    state.countsByType.set(typeName, count + 1);
    this.#countSigners();
    this.#advance(line, base, leaves);
    return true;
  }

  /**
   * Steps over a line, and tells the state's observer of it.
   *
   * @param examined - What the line says.
   * @returns Its verdict; undefined where {@link FastStep.take} gives false.
   */
  tryApplyObserved(fast: FastLine, line: RawLine, examined: WellFormedLine): 'ok' | 'denied' | undefined {
    const { observer } = this.#state;
    observer?.beforeLine(examined);
    if (!this.tryApply(fast)) return undefined;
    const { verdict } = this;
    if (observer !== undefined) {
      this.flush();
      observer.afterFastLine(line, fast.segment, examined, verdict);
    }
    return verdict;
  }

  /** Puts what was counted into the state: before anybody else looks at it, and before the bytes of the block change. */
  flush(): void {
    for (const account of this.#changed) account.store();
    this.#changed.length = 0;
    if (!this.#hasStepped) return;
    this.#hasStepped = false;
    this.#growTree();
    const state = this.#state;
    state.chain.prev = encodeBase64url(this.#leaves.subarray(this.#leafAt, this.#leafAt + HASH_BYTES));
    state.tipEventId = decodeLatin1(this.#tipBytes, this.#tipAt, this.#tipAt + B64_LENGTH);
    state.links.latest = decodeLatin1(this.#latest, this.#latestAt, this.#latestEnd);
  }

  /** That of the line that was stepped over last. */
  get verdict(): 'ok' | 'denied' {
    return this.#isDenied ? 'denied' : 'ok';
  }

  /** The grant that it is under; undefined where it is under none. */
  get grant(): Grant | undefined {
    if (this.#view !== undefined) return this.#view.grant;
    const index = this.#opened === -1 ? -1 : this.#draft.grant;
    return index === -1 ? undefined : this.#state.links.grants.at(index);
  }

  /** How many leaves the tree has, those among them that {@link FastStep.settle} adds to it. */
  get treeSize(): number {
    return this.#state.tree.size + this.#leavesTo - this.#leavesFrom;
  }

  /** Forgets what other lines than the scannable ones can change. */
  reset(): void {
    // To clear an empty map makes a new one of it: of a ledger of lines that are no records that is a fifth of the time.
    for (const map of [this.#signers, this.#authorizationRules, this.#ownRules, this.#otherRules]) {
      if (map.size > 0) map.clear();
    }
  }

  #beginBlock(facts: BlockFacts): void {
    const { rows } = facts;
    const count = rows.length / row.ROW_WIDTH;
    this.#facts = facts;
    this.#texts.begin(count);
    if (this.#hashes.length <= 2 * count) this.#hashes = new Uint32Array(2 * count + 1);
    for (let at = 0; at < count; at += 1) {
      const base = at * row.ROW_WIDTH;
      this.#hashes[2 * at] = this.#events.hash(rows, base + row.ID_WORDS);
      this.#hashes[2 * at + 1] = this.#events.hash(rows, base + row.LINK_WORDS);
    }
    this.#events.prefetch(this.#hashes, 2 * count);
  }

  /** A row that was taken is given back. */
  #refuse(): false {
    if (this.#opened !== -1) this.#rows.free(this.#opened);
    return false;
  }

  /** Steps 4, 5 and 10: bound to the ledger, next in the chain, no checkpoint due. */
  #isNext(bytes: Uint8Array, rows: Int32Array, base: number): boolean {
    const { chain, ledgerId, policy, records, seals, bindingRequired } = this.#state;
    if (rows[base + row.SEQ_HIGH]! * 2 ** 30 + rows[base + row.SEQ_LOW]! !== chain.seq) return false;
    const sealed = seals.signed?.treeSize ?? -1;
    if (sealed === records) return false;
    const limit = policy?.require?.checkpoint_max_records;
    if (limit !== undefined && records - sealed > limit) return false;
    // The line before it was stepped over, so that what it has in common with that is right.
    if (this.#hasStepped && (rows[base + row.FLAGS]! & row.IS_CHAINED) !== 0) return true;
    const prev = rows[base + row.PREV]!;
    const isChained = this.#hasStepped
      ? isDigestAt(bytes, prev, this.#leaves, this.#leafAt)
      : isTextAt(bytes, prev, chain.prev);
    if (!isChained) return false;
    const bound = rows[base + row.LEDGER_ID]!;
    return bound === 0 ? !bindingRequired : ledgerId !== undefined && isTextAt(bytes, bound, ledgerId);
  }

  /** Whether an id is that of the event before. */
  #isTip(bytes: Uint8Array, id: number): boolean {
    return this.#hasStepped && hasSameBytes(bytes, id, this.#tipBytes, this.#tipAt, B64_LENGTH);
  }

  /** The type of an extension event that means nothing to any rule. */
  #extensionType(bytes: Uint8Array, rows: Int32Array, base: number): string | undefined {
    if (rows[base + row.TYPE] !== row.OTHER) return undefined;
    const type = recallText(bytes, rows[base + row.EVENT_TYPE]!, rows[base + row.EVENT_TYPE + 1]!);
    return type.startsWith('x.') && type !== START_TYPE ? type : undefined;
  }

  /** Whether the event is earlier than one before it. */
  #isLateEvent(bytes: Uint8Array, rows: Int32Array, base: number): boolean {
    if (this.#hasStepped) {
      if (this.#isTipLatest && (rows[base + row.FLAGS]! & row.IS_IN_ORDER) !== 0) return false;
    } else {
      this.#latest = encodeLatin1(this.#state.links.latest ?? '');
      this.#latestAt = 0;
      this.#latestEnd = this.#latest.length;
    }
    const at = rows[base + row.OCCURRED_AT]!;
    const end = rows[base + row.OCCURRED_AT + 1]!;
    if (this.#latestEnd === this.#latestAt) return false;
    return orderTimes(bytes, at, end, this.#latest, this.#latestAt, this.#latestEnd) < 0;
  }

  /** Whether the finding that an event is late folds under an earlier one. */
  #findsLate(): boolean {
    return this.#canFold && this.#state.foldRoots.get(LATE) !== undefined;
  }

  /** Step 9: who signed, where all of them were entitled to, and are known to have signed before. */
  #findSigners({ facts, bytes, index }: FastLine, base: number, principal: string, type: number): boolean {
    const { rows, verdicts, verdictsAt } = facts;
    const state = this.#state;
    const first = verdictsAt[index]!;
    const count = verdictsAt[index + 1]! - first;
    this.#signerCount = count;
    if (count === 0) {
      const { hasAuthority } = state.keyring;
      const demand = { signaturesRequired: state.signaturesRequired, hasAuthority };
      return !mustBeSigned(demand, { isKeyEvent: false, needsAuthority: this.#isOwn });
    }
    if (count > MAX_SIGNERS) return false;
    for (let i = 0; i < count; i += 1) {
      if (verdicts[first + i] !== VALID) return false;
      const keyid = i === 0 ? this.#texts.keyids.at(bytes, rows, base) : keyidIn(bytes, rows, base, i);
      // Copies of one signature count once.
      for (let j = 0; j < i; j += 1) if (this.#signing[j]!.key.key.keyid === keyid) return false;
      const signer = this.#signerOf(keyid);
      if (signer === undefined || !this.#isEntitled(signer, bytes, rows, base, principal, type)) return false;
      this.#signing[i] = signer;
    }
    const [only] = this.#signing;
    const keyids = count === 1 ? undefined : this.#signing.slice(0, count).map(({ key }) => key.key.keyid);
    this.#group = keyids === undefined ? only?.group : findUnsealed(state.seals, keyids);
    return this.#group !== undefined;
  }

  #countSigners(): void {
    const { signatures, records } = this.#state;
    if (this.#signerCount === 0) {
      signatures.missing += 1;
      return;
    }
    signatures.valid += this.#signerCount;
    for (let i = 0; i < this.#signerCount; i += 1) {
      const { tally } = this.#signing[i]!;
      tally.records += 1;
      tally.last = records;
    }
    const group = this.#group as UnsealedRecords;
    group.last = records;
    group.counts[this.verdict] += 1;
  }

  #signerOf(keyid: string): Signer | undefined {
    const { keyring, signers, seals } = this.#state;
    const known = this.#signers.get(keyid);
    if (known?.intervalStart === seals.intervalStart) return known;
    const key = keyring.find(keyid);
    const tally = signers.get(keyid);
    if (key === undefined || tally === undefined) return undefined;
    const { intervalStart } = seals;
    const group = findUnsealed(seals, [keyid]);
    const signer = { key, tally, group, intervalStart, rules: new Set<SigningRule>() };
    if (this.#signers.size >= MAX_REMEMBERED) this.#signers.clear();
    // The group is made by the first record that only this key signed.
    if (group !== undefined) this.#signers.set(keyid, signer);
    return signer;
  }

  #isEntitled(
    signer: Signer,
    bytes: Uint8Array,
    rows: Int32Array,
    base: number,
    principal: string,
    type: number,
  ): boolean {
    const rule = this.#ruleFor(principal, type);
    const { key } = signer.key;
    if (key.valid_from !== undefined || key.valid_until !== undefined) {
      const occurredAt = decodeLatin1(bytes, rows[base + row.OCCURRED_AT], rows[base + row.OCCURRED_AT + 1]);
      const instant = judgingInstant(this.#state.clock, occurredAt);
      return findEntitlementProblem(signer.key, rule, instant) === undefined;
    }
    if (signer.rules.has(rule)) return true;
    // Without limits in time it is the same at every instant.
    if (findEntitlementProblem(signer.key, rule, '') !== undefined) return false;
    if (signer.rules.size >= MAX_REMEMBERED) signer.rules.clear();
    signer.rules.add(rule);
    return true;
  }

  #ruleFor(principalId: string, type: number): SigningRule {
    const isAuthorization = type === row.AUTHORIZATION;
    const isOwn = this.#isOwn;
    const rules = isOwn ? this.#ownRules : isAuthorization ? this.#authorizationRules : this.#otherRules;
    const known = rules.get(principalId);
    if (known !== undefined) return known;
    const { hasAuthority } = this.#state.keyring;
    // Which grant an action is under does not matter, and a denial has the same rule as one that is.
    const grantId = isOwn ? undefined : '';
    const act = isAuthorization
      ? ({ type: 'authorization', principalId, isAllow: true, isAction: true, grantId } as const)
      : ({ type: 'execution', principalId } as const);
    const rule = signingRuleOf(act, { hasAuthority });
    if (rules.size >= MAX_REMEMBERED) rules.clear();
    rules.set(principalId, rule);
    return rule;
  }

  #viewOf(index: number): BoundsView | undefined {
    const known = this.#views.get(index);
    if (known !== undefined) return known;
    const grant = this.#state.links.grants.at(index);
    if (grant?.decision !== 'allow') return undefined;
    if (this.#views.size >= MAX_REMEMBERED) {
      // What they hold must be in the accounts before others are made over these.
      for (const account of this.#changed) account.store();
      this.#changed.length = 0;
      this.#views.clear();
      this.#accounts.clear();
    }
    const view = new BoundsView(grant, this.#accounts);
    this.#views.set(index, view);
    return view;
  }

  /** An action of which no rule finds anything (SPEC §8, rules 3, 4, 5 and 14). */
  #judgeAction(line: FastLine, base: number, principal: string): boolean {
    const { bytes, facts, segment } = line;
    const { rows } = facts;
    const isLinked = rows[base + row.LINK]! !== 0;
    const grant = isLinked
      ? this.#state.links.grants.get(this.#texts.links.at(bytes, rows, base))
      : undefined;
    const view = isLinked ? grant && this.#viewOf(grant.index) : this.#unbounded;
    if (view === undefined || restsOnOthers(view)) return false;
    if (!this.#readAmounts(bytes, rows, base) || this.#amountCount > MAX_ROW_UNITS) return false;
    if (!this.#isDenied && !this.#allowsAction(view, bytes, rows, base, principal)) return false;
    const userIntent = rows[base + row.USER_INTENT]!;
    const draft = this.#draft;
    for (let i = 0; i < this.#amountCount; i += 1) {
      const amount = this.#amounts[i]!;
      draft.units[i] = amount.unit;
      draft.amounts[i] = amount.value;
      draft.scales[i] = amount.scale;
    }
    draft.words = rows;
    draft.id = base + row.ID_WORDS;
    draft.intent = base + row.INTENT_WORDS;
    draft.params = base + row.PARAMS_WORDS;
    draft.userIntent = userIntent === 0 ? -1 : base + row.USER_INTENT_WORDS;
    draft.bytes = bytes;
    draft.time = rows[base + row.OCCURRED_AT]!;
    draft.timeEnd = rows[base + row.OCCURRED_AT + 1]!;
    draft.file = segment.file;
    draft.line = line.number;
    draft.seq = this.#state.chain.seq;
    draft.principalId = principal;
    draft.toolName = this.#texts.tools.at(bytes, rows, base);
    draft.isDenied = this.#isDenied;
    draft.grant = grant?.index ?? -1;
    draft.unitCount = this.#amountCount;
    this.#opened = this.#rows.add(draft);
    return this.#opened !== -1;
  }

  /** Whether an action that was allowed was so within its grant, and what it reserves is there. */
  #allowsAction(
    view: BoundsView,
    bytes: Uint8Array,
    rows: Int32Array,
    base: number,
    principal: string,
  ): boolean {
    const { grant } = view;
    if (grant === undefined) return true;
    if (grant.principalId !== principal) return false;
    const intent = rows[base + row.INTENT]! + B64_IN_DIGEST;
    const userIntent = rows[base + row.USER_INTENT]!;
    const isLinked =
      isDigestText(bytes, intent, grant.intent) ||
      (userIntent !== 0 && isDigestText(bytes, userIntent + B64_IN_DIGEST, grant.userIntent ?? grant.intent));
    if (!isLinked) return false;
    const time = rows[base + row.OCCURRED_AT]!;
    const timeEnd = rows[base + row.OCCURRED_AT + 1]!;
    if (orderTo(bytes, time, timeEnd, grant.occurredAt) < 0 || !isWithin(view, bytes, time, timeEnd))
      return false;
    if (!view.allowsTool(this.#texts.tools.at(bytes, rows, base))) return false;
    for (let i = 0; i < this.#amountCount; i += 1) {
      const amount = this.#amounts[i]!;
      if (amount.value === 0) continue;
      const bounds = view.unit(amount.unit);
      if (bounds === undefined || !isCapped(amount, bounds)) return false;
      if (bounds.accounts.length === 0 && !isMeasuredUnit(amount.unit)) return false;
      for (const account of bounds.accounts) if (!this.#reserve(account, amount)) return false;
    }
    return true;
  }

  #reserve(account: ScaledAccount, { value, scale }: Amount): boolean {
    if (!account.reach(scale)) return false;
    const reserved = account.reserved + rescale(value, scale, account.scale);
    const total = account.used + reserved;
    if (!(total <= account.cap && total <= Number.MAX_SAFE_INTEGER)) return false;
    this.#change(account, account.used, account.estimated, reserved);
    return true;
  }

  /** An execution of an open action, or under a grant, of which no rule finds anything (rules 2, 4, 5, 8 and 14). */
  #judgeExecution(bytes: Uint8Array, rows: Int32Array, at: number, principal: string): boolean {
    const base = at * row.ROW_WIDTH;
    const number = this.#events.locateWords(rows, base + row.LINK_WORDS, this.#hashes[2 * at + 1]!);
    if (number === -1) return false;
    const kind = this.#events.kindOf(number);
    if (kind !== 'action' && kind !== 'grant') return false;
    const { starts, grants } = this.#state.links;
    if (starts.size > 0 && starts.has(this.#texts.links.at(bytes, rows, base))) return false;
    const action = kind === 'action' ? this.#actions.rowOf(number) : -1;
    if (kind === 'action' && (action === -1 || this.#rows.isDenied(action))) return false;
    const index =
      kind === 'action'
        ? this.#rows.grant(action)
        : grants.get(this.#texts.links.at(bytes, rows, base))?.index;
    const view = index === undefined ? undefined : index === -1 ? this.#unbounded : this.#viewOf(index);
    if (view === undefined || restsOnOthers(view)) return false;
    const flags = rows[base + row.FLAGS]!;
    if (view.isDigestOnly && (flags & row.HAS_OUTPUT_REF) !== 0) return false;
    if (view.limitsResources && (flags & row.HAS_RESOURCES) !== 0) return false;
    const tool = this.#texts.tools.at(bytes, rows, base);
    if (!view.allowsTool(tool) || !this.#isOf(action, view, bytes, rows, base, principal, tool)) return false;
    if (!this.#hasSoundTimes(action, view, bytes, rows, base)) return false;
    if (!this.#readAmounts(bytes, rows, base)) return false;
    if (!this.#settleAmounts(action, view, (flags & row.IS_ESTIMATED) !== 0)) return false;
    this.#windows = view.hasWindows ? this.#judgeWindows(view, bytes, rows, base) : undefined;
    if (this.#windows !== undefined && this.#windows.findings.length > 0) return false;
    this.#view = view;
    this.#spent = action;
    this.#spentNumber = action === -1 ? -1 : number;
    return true;
  }

  /** Rule 2: the same in the execution and in what authorized it. */
  #isOf(
    action: number,
    { grant }: BoundsView,
    bytes: Uint8Array,
    rows: Int32Array,
    base: number,
    principal: string,
    tool: string,
  ): boolean {
    if (action === -1) {
      if (grant === undefined) return false;
      const intent = rows[base + row.INTENT]! + B64_IN_DIGEST;
      return grant.principalId === principal && isDigestText(bytes, intent, grant.intent);
    }
    return (
      rows[base + row.PARAMS] !== 0 &&
      this.#rows.principalId(action) === principal &&
      this.#rows.toolName(action) === tool &&
      this.#rows.hasDigests(action, rows, base + row.INTENT_WORDS, base + row.PARAMS_WORDS)
    );
  }

  #hasSoundTimes(
    action: number,
    view: BoundsView,
    bytes: Uint8Array,
    rows: Int32Array,
    base: number,
  ): boolean {
    let at = rows[base + row.OCCURRED_AT]!;
    let end = rows[base + row.OCCURRED_AT + 1]!;
    const started = rows[base + row.STARTED_AT]!;
    if (started !== 0) {
      const startedEnd = rows[base + row.STARTED_AT + 1]!;
      if ((rows[base + row.FLAGS]! & row.HAS_SOUND_TIMES) === 0) {
        const ended = rows[base + row.ENDED_AT]!;
        if (
          ended !== 0 &&
          orderTimes(bytes, ended, rows[base + row.ENDED_AT + 1]!, bytes, started, startedEnd) < 0
        )
          return false;
        if (orderTimes(bytes, started, startedEnd, bytes, at, end) > 0) return false;
      }
      at = started;
      end = startedEnd;
    }
    if (orderTo(bytes, at, end, view.latest) < 0 || !isWithin(view, bytes, at, end)) return false;
    if (action === -1) return true;
    const all = this.#rows;
    return orderTimes(bytes, at, end, all.timeBytes(action), all.timeAt(action), all.timeEnd(action)) >= 0;
  }

  /** Rules 6 and 7. */
  #judgeWindows(view: BoundsView, bytes: Uint8Array, rows: Int32Array, base: number): Judgement {
    const textAt = (place: number): string => decodeLatin1(bytes, rows[base + place], rows[base + place + 1]);
    const maybeTextAt = (place: number): string | undefined =>
      rows[base + place] === 0 ? undefined : textAt(place);
    const used = this.#amounts
      .slice(0, this.#amountCount)
      .map(({ unit, value, scale }) => ({ unit, amount: rationalOfDecimal(value, scale) }));
    const [startedAt, endedAt] = [maybeTextAt(row.STARTED_AT), maybeTextAt(row.ENDED_AT)];
    return judgeWindows({ occurredAt: textAt(row.OCCURRED_AT), startedAt, endedAt, used }, view.chain);
  }

  /** Rule 5: what was reserved comes back, what was used is counted. */
  #settleAmounts(action: number, view: BoundsView, isEstimated: boolean): boolean {
    const all = this.#rows;
    const reserved = action === -1 ? 0 : all.unitCount(action);
    for (let i = 0; i < this.#amountCount; i += 1) {
      const amount = this.#amounts[i]!;
      const bounds = view.unit(amount.unit);
      if (bounds === undefined || !isCapped(amount, bounds)) return false;
      let place = 0;
      while (place < reserved && all.unit(action, place) !== amount.unit) place += 1;
      const isReserved = place < reserved;
      if (isReserved && !isAtMost(amount, all.amount(action, place), all.scale(action, place))) return false;
      // Nothing caps what is under no grant.
      const isUncapped = !isReserved && amount.value !== 0 && bounds.accounts.length === 0;
      if (isUncapped && view.grant !== undefined && !isMeasuredUnit(amount.unit)) return false;
      const [back, backScale] = isReserved ? [all.amount(action, place), all.scale(action, place)] : [0, 0];
      for (const account of bounds.accounts)
        if (!this.#count(account, amount, back, backScale, isEstimated)) return false;
    }
    for (let place = 0; place < reserved; place += 1) {
      const unit = all.unit(action, place);
      let i = 0;
      while (i < this.#amountCount && this.#amounts[i]!.unit !== unit) i += 1;
      // What is reserved and not stated counts as used.
      if (i === this.#amountCount && all.amount(action, place) !== 0) return false;
    }
    return true;
  }

  #count(
    account: ScaledAccount,
    amount: Amount,
    back: number,
    backScale: number,
    isEstimated: boolean,
  ): boolean {
    if (!account.reach(Math.max(amount.scale, backScale))) return false;
    const { scale, cap, used, estimated } = account;
    const value = rescale(amount.value, amount.scale, scale);
    const reserved = account.reserved - rescale(back, backScale, scale);
    const total = used + value + reserved;
    // Where anything is no safe integer, this is false.
    if (!(reserved >= 0 && total <= Number.MAX_SAFE_INTEGER)) return false;
    // What stays within its own reservation is counted whatever else is over the cap.
    if (value > 0 && (used + value > cap || (total > cap && value > rescale(back, backScale, scale))))
      return false;
    const nowEstimated = isEstimated ? estimated + value : estimated;
    if (nowEstimated > Number.MAX_SAFE_INTEGER) return false;
    this.#change(account, used + value, nowEstimated, reserved);
    return true;
  }

  #change(account: ScaledAccount, used: number, estimated: number, reserved: number): void {
    const change = (this.#changes[this.#changeCount] ??= { account, used, estimated, reserved });
    change.account = account;
    change.used = used;
    change.estimated = estimated;
    change.reserved = reserved;
    this.#changeCount += 1;
  }

  /** Reads the meters; false where one of them is too large or too fine. */
  #readAmounts(bytes: Uint8Array, rows: Int32Array, base: number): boolean {
    const listed = rows[base + row.METER_COUNT]!;
    if (listed > row.ROW_AMOUNTS) return this.#readManyAmounts(bytes, rows, base);
    for (let i = 0; i < listed; i += 1) {
      const at = base + row.AMOUNTS + i * row.AMOUNT_WIDTH;
      const high = rows[at + row.AMOUNT_HIGH]!;
      const scale = rows[at + row.AMOUNT_SCALE]!;
      if (high < 0 || scale > MAX_SCALE) return false;
      const unit = this.#texts.units.at(bytes, rows, at);
      const value = high * LOW_BASE + rows[at + row.AMOUNT_LOW]!;
      const amount = (this.#amounts[i] ??= { unit, value, scale });
      amount.unit = unit;
      amount.value = value;
      amount.scale = scale;
    }
    this.#amountCount = listed;
    return true;
  }

  #readManyAmounts(bytes: Uint8Array, rows: Int32Array, base: number): boolean {
    const meters = this.#meters;
    let count = 0;
    meters.begin(bytes, rows, base);
    while (meters.next()) {
      const { unit, start, end, scale } = meters;
      const value = readDigits(bytes, start, end);
      if (Number.isNaN(value) || scale > MAX_SCALE) return false;
      const amount = (this.#amounts[count] ??= { unit, value, scale });
      amount.unit = unit;
      amount.value = value;
      amount.scale = scale;
      count += 1;
    }
    this.#amountCount = count;
    return true;
  }

  /** Whether an execution named the event before it came. */
  #isAwaited(bytes: Uint8Array, id: number): boolean {
    const { pending } = this.#state.links;
    if (pending.size === 0) return false;
    return pending.has(decodeLatin1(bytes, id, id + B64_LENGTH));
  }

  #applyLinks({ segment, number }: FastLine): void {
    const { keyring } = this.#state;
    if (this.#isLate) foldOne(this.#state, LATE);
    if (this.#isOwn && !keyring.hasAuthority) this.#state.selfIssuable += 1;
    for (let i = 0; i < this.#changeCount; i += 1) {
      const { account, used, estimated, reserved } = this.#changes[i]!;
      account.used = used;
      account.estimated = estimated;
      account.reserved = reserved;
      if (!account.isChanged) this.#changed.push(account);
      account.isChanged = true;
    }
    const position = this.#position;
    position.file = segment.file;
    position.line = number;
    position.seq = this.#state.chain.seq;
    if (this.#opened !== -1) {
      this.#actions.place(this.#events.addLocated(position, 'action', -1), this.#opened);
    } else if (this.#view !== undefined) {
      this.#windows?.apply();
      for (const grant of this.#view.chain) grant.executions += 1;
      const grant = this.#view.grant?.index ?? -1;
      this.#events.addLocated(position, 'execution', grant);
      if (this.#spent !== -1) {
        this.#actions.remove(this.#spentNumber);
        this.#events.spendNumber(this.#spentNumber, grant);
      }
    } else this.#events.addLocated(position, 'other', -1);
  }

  /** Adds the leaves of lines that follow upon each other, by the largest subtrees that are known. */
  #growTree(): void {
    if (this.#block === undefined) return;
    const { tree } = this.#state;
    const { leaves, nodes, ordinal } = this.#block;
    const to = this.#leavesTo;
    for (let from = this.#leavesFrom; from < to;) {
      const mostLeaves = nodes.length === 0 ? 1 : to - from;
      let count = 1;
      while (
        2 * count <= mostLeaves &&
        ((ordinal + from) & (2 * count - 1)) === 0 &&
        tree.size % (2 * count) === 0
      )
        count *= 2;
      const [hashes, at] = count === 1 ? [leaves, from] : [nodes, from + count / 2];
      const root = decodeLatin1(hashes, at * HASH_BYTES, (at + 1) * HASH_BYTES);
      appendSubtree(tree, count, root);
      from += count;
    }
    this.#leavesFrom = to;
  }

  #advance(line: FastLine, base: number, leaves: Uint8Array): void {
    const { bytes, index, length, facts, segment } = line;
    const { rows } = facts;
    const state = this.#state;
    const { chain, end } = state;
    state.lines += 1;
    state.bytes += length + 1;
    end.file = segment.file;
    end.line = line.number + 1;
    end.byteOffset = line.offset + length + 1;
    chain.otherSeq = chain.seq + 1;
    chain.seq += 1;
    const leafAt = index * HASH_BYTES;
    this.#leaves = leaves;
    this.#leafAt = leafAt;
    if (this.#block !== facts) this.#growTree();
    if (this.#leavesTo === this.#leavesFrom) {
      this.#block = facts;
      this.#leavesFrom = index;
    }
    this.#leavesTo = index + 1;
    state.records += 1;
    state.countsByVerdict[this.verdict] += 1;
    this.#isTipLatest = !this.#isLate;
    if (!this.#isLate) {
      this.#latest = bytes;
      this.#latestAt = rows[base + row.OCCURRED_AT]!;
      this.#latestEnd = rows[base + row.OCCURRED_AT + 1]!;
    }
    this.#tipBytes = bytes;
    this.#tipAt = rows[base + row.EVENT_ID]!;
    this.#hasStepped = true;
  }
}

const SHA256_TEXT_LENGTH = 'sha-256:'.length + B64_LENGTH;

/** Whether a digest's text, `sha-256:…`, is that of the base64url at a place. */
function isDigestText(bytes: Uint8Array, b64: number, text: string): boolean {
  return (
    text.length === SHA256_TEXT_LENGTH &&
    text.startsWith('sha-256:') &&
    isTextAt(bytes, b64, text, SHA256_TEXT_LENGTH - B64_LENGTH)
  );
}

/** As `orderTimestamps`, of the texts at two places. */
function orderTimes(
  a: Uint8Array,
  at: number,
  end: number,
  b: Uint8Array,
  bAt: number,
  bEnd: number,
): number {
  const isSameLength = end - at === bEnd - bAt;
  const length = isSameLength ? end - at : WHOLE_LENGTH;
  for (let i = 0; i < length; i += 1) {
    const difference = a[at + i]! - b[bAt + i]!;
    if (difference !== 0) return difference;
  }
  return isSameLength ? 0 : orderTimestamps(decodeLatin1(a, at, end), decodeLatin1(b, bAt, bEnd));
}

function orderTo(bytes: Uint8Array, at: number, end: number, text: string): number {
  const isSameLength = end - at === text.length;
  const length = isSameLength ? end - at : WHOLE_LENGTH;
  for (let i = 0; i < length; i += 1) {
    const difference = bytes[at + i]! - text.charCodeAt(i);
    if (difference !== 0) return difference;
  }
  return isSameLength ? 0 : orderTimestamps(decodeLatin1(bytes, at, end), text);
}

/** Whether a grant above rests on what was taken over from another system. */
function restsOnOthers({ chain }: BoundsView): boolean {
  for (let i = 0; i < chain.length; i += 1) if (chain[i]!.systems.size > 0) return true;
  return false;
}

/** Whether the grants are valid at the instant that stands at a place. */
function isWithin({ notBefore, expiresAt }: BoundsView, bytes: Uint8Array, at: number, end: number): boolean {
  if (notBefore !== undefined && orderTo(bytes, at, end, notBefore) < 0) return false;
  return expiresAt === undefined || orderTo(bytes, at, end, expiresAt) < 0;
}

function isAtMost({ value, scale }: Amount, limit: number, limitScale: number): boolean {
  const common = Math.max(scale, limitScale);
  return rescale(value, scale, common) <= rescale(limit, limitScale, common);
}

/** Rule 14. */
function isCapped(amount: Amount, { actionCap, capScale }: UnitBounds): boolean {
  return actionCap === undefined || isAtMost(amount, actionCap, capScale);
}
