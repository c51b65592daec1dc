/**
 * The links' part of the fast step: actions that are opened, starts of them, and executions of them or under a grant, of which no rule finds
 * anything.
 */

import { decodeLatin1, encodeUtf8 } from '../base/bytes/text.js';
import { toDigestText } from '../base/value/digest.js';
import type { MeterVector } from '../base/value/meter.js';
import type { RuleFinding } from '../format/finding/rule-finding.js';
import type { Grant } from '../rules/bounds/grant.js';
import { judgeWindows } from '../rules/bounds/judge.js';
import { type Judgement, uncapped } from '../rules/bounds/judgement.js';
import type { OpenStart } from '../rules/bounds/started.js';
import { SLICE_TOOL } from '../rules/bounds/tool-set.js';
import { type ActionRow, type ActionRows, MAX_ROW_UNITS } from '../rules/verify/action-rows.js';
import type { ActionTable } from '../rules/verify/action-table.js';
import { requestOfCall } from '../rules/verify/approval-tables.js';
import { APPROVAL_REQUIRED } from '../rules/verify/approvals.js';
import type { EventIndex } from '../rules/verify/event-index.js';
import { askedOf, requestName } from '../rules/verify/links.js';
import type { VerifyState } from '../rules/verify/state.js';
import type { BlockTexts } from './blocks/block-texts.js';
import type { FastLine } from './blocks/read-blocks.js';
import { FastAmounts } from './fast-amounts.js';
import { isDigestText, orderTimes, orderTo } from './row-times.js';
import type { BoundsView } from './scaled-account.js';
import * as row from './scan/row.js';
import { digestTextAt, recallText } from './scan/scanned-line.js';
import { B64_IN_DIGEST, B64_LENGTH } from './scan/tables.js';

/** What stands before the id of an event that asks for approval. */
const ASKING = encodeUtf8(`"decision_code":"${APPROVAL_REQUIRED}","event_id":{"alg":"sha-256","b64":"`);

const HAS_KNOWN_END = row.IS_SUCCESS | row.IS_FAILURE;

export class FastLinks {
  readonly #state: VerifyState;
  readonly #events: EventIndex;
  readonly #actions: ActionTable;
  readonly #rows: ActionRows;
  readonly #texts: BlockTexts;
  readonly #amounts: FastAmounts;
  /** For each row of the block the hashes of its id and of its link, and one more. */
  #hashes = new Uint32Array();
  /** The row of the action that the current event opens, and of the one that it spends; -1 for none. */
  #opened = -1;
  #spent = -1;
  #spentNumber = -1;
  /** The request of the action that the current event opens, by its name. */
  #request: string | undefined;
  /** The id of the action that the current event starts or spends. */
  #linked = '';
  #start: Omit<OpenStart, 'place'> | undefined;
  /** The known use of the last start, and its text. */
  #meters: MeterVector = [];
  #metersText = '';
  /** The bounds of the current execution, and its windows. */
  #view: BoundsView | undefined;
  #windows: Judgement | undefined;
  /** Used again: the tables copy their members. */
  readonly #position = { file: '', line: 0, seq: 0 };
  readonly #draft: ActionRow = {
    words: new Int32Array(),
    id: 0,
    intent: 0,
    params: 0,
    userIntent: -1,
    bytes: new Uint8Array(),
    time: 0,
    timeEnd: 0,
    expiry: 0,
    expiryEnd: 0,
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

  /** @param canFold - Whether findings that only add to an earlier one may be counted here. */
  constructor(
    state: VerifyState,
    events: EventIndex,
    actions: ActionTable,
    texts: BlockTexts,
    canFold: boolean,
  ) {
    this.#state = state;
    this.#events = events;
    this.#actions = actions;
    this.#rows = actions.rows;
    this.#texts = texts;
    this.#amounts = new FastAmounts(state.links.grants, actions.rows, texts, canFold ? state : undefined);
    actions.number((id) => events.numberOf(id));
  }

  /** The grant of the last record; undefined for none. */
  get grant(): Grant | undefined {
    if (this.#view !== undefined) return this.#view.grant;
    const index = this.#opened === -1 ? -1 : this.#draft.grant;
    return index === -1 ? undefined : this.#state.links.grants.at(index);
  }

  /** What was found of the last record: units that no grant of it caps. */
  get uncapped(): readonly RuleFinding[] {
    const { grant } = this;
    const list = this.#opened === -1 ? '/meter_used' : '/authorization/action/meter_reservation';
    return this.#amounts.uncapped.map(({ unit, place }) =>
      uncapped(unit, `${list}/${place}/amount`, grant as Grant),
    );
  }

  beginBlock(rows: Int32Array): void {
    const count = rows.length / row.ROW_WIDTH;
    if (this.#hashes.length <= 2 * count) this.#hashes = new Uint32Array(2 * count + 1);
    for (let at = 0; at < count; at += 1) {
      const base = at * row.ROW_WIDTH;
      this.#hashes[2 * at] = this.#events.hash(rows, base + row.ID_WORDS);
      this.#hashes[2 * at + 1] = this.#events.hash(rows, base + row.LINK_WORDS);
    }
    this.#events.prefetch(this.#hashes, 2 * count);
  }

  /**
   * Judges a record whose id is new and that no execution waits for.
   *
   * @param at - Its row in the block.
   * @returns Whether no rule finds anything.
   */
  judge(line: FastLine, at: number, principal: string, type: number, isDenied: boolean): boolean {
    const { bytes, facts } = line;
    const { rows } = facts;
    const base = at * row.ROW_WIDTH;
    this.#amounts.begin();
    this.#opened = -1;
    this.#spent = -1;
    this.#view = undefined;
    this.#request = undefined;
    this.#start = undefined;
    if (type === row.AUTHORIZATION && !this.#judgeAction(line, base, principal, isDenied)) return false;
    if (type === row.EXECUTION && !this.#judgeExecution(bytes, rows, at, principal)) return false;
    if (type === row.START && !this.#judgeStart(bytes, rows, at, principal)) return false;
    const isNew = this.#events.locateWords(rows, base + row.ID_WORDS, this.#hashes[2 * at]!) === -1;
    if (isNew && !this.#isAwaited(bytes, rows[base + row.EVENT_ID]!)) return true;
    if (this.#opened !== -1) this.#rows.free(this.#opened);
    return false;
  }

  /** Whether an execution named the event before it came. */
  #isAwaited(bytes: Uint8Array, id: number): boolean {
    const { pending } = this.#state.links;
    if (pending.size === 0) return false;
    return pending.has(decodeLatin1(bytes, id, id + B64_LENGTH));
  }

  /** An action (rules 3, 4, 5 and 14). */
  #judgeAction(line: FastLine, base: number, principal: string, isDenied: boolean): boolean {
    const { bytes, facts, segment } = line;
    const { rows } = facts;
    const isLinked = rows[base + row.LINK]! !== 0;
    const grant = isLinked
      ? this.#state.links.grants.get(this.#texts.links.at(bytes, rows, base))
      : undefined;
    const view = isLinked ? grant && this.#amounts.viewOf(grant.index) : this.#amounts.unbounded;
    if (view === undefined || needsRules(view)) return false;
    if (isDenied && (view.hasApprovals || asksApproval(bytes, rows[base + row.EVENT_ID]!))) return false;
    const draft = this.#draft;
    if (!this.#amounts.read(bytes, rows, base) || !this.#amounts.copyTo(draft)) return false;
    if (!isDenied && !this.#allowsAction(view, bytes, rows, base, principal)) return false;
    if (!isDenied && !this.#isNewRequest(grant, bytes, rows, base, principal)) return false;
    draft.words = rows;
    draft.id = base + row.ID_WORDS;
    draft.intent = base + row.INTENT_WORDS;
    draft.params = base + row.PARAMS_WORDS;
    draft.userIntent = rows[base + row.USER_INTENT]! === 0 ? -1 : base + row.USER_INTENT_WORDS;
    draft.bytes = bytes;
    draft.time = rows[base + row.OCCURRED_AT]!;
    draft.timeEnd = rows[base + row.OCCURRED_AT + 1]!;
    draft.expiry = rows[base + row.EXPIRES_AT]!;
    draft.expiryEnd = rows[base + row.EXPIRES_AT + 1]!;
    draft.file = segment.file;
    draft.line = line.number;
    draft.seq = this.#state.chain.seq;
    draft.principalId = principal;
    draft.toolName = this.#texts.tools.at(bytes, rows, base);
    draft.isDenied = isDenied;
    draft.grant = grant?.index ?? -1;
    this.#opened = this.#rows.add(draft);
    return this.#opened !== -1;
  }

  /** Whether the grant covers an allowed action, and has what it reserves. */
  #allowsAction(
    view: BoundsView,
    bytes: Uint8Array,
    rows: Int32Array,
    base: number,
    principal: string,
  ): boolean {
    const { grant } = view;
    // A slice has rules of its own.
    if (grant === undefined) return this.#texts.tools.at(bytes, rows, base) !== SLICE_TOOL;
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
    const tool = this.#texts.tools.at(bytes, rows, base);
    if (!view.allowsTool(tool) || !this.#amounts.actsWithin(view.limitsOf(tool))) return false;
    if (view.hasApprovals && this.#wasRequested(grant, bytes, rows, base, tool)) return false;
    return this.#amounts.reserve(view);
  }

  /** Whether approval of the call was asked for: the rules then forget that. */
  #wasRequested(grant: Grant, bytes: Uint8Array, rows: Int32Array, base: number, tool: string): boolean {
    const params = digestTextAt(bytes, rows[base + row.PARAMS]!);
    return this.#state.links.awaiting.has(requestOfCall(grant.principalId, grant.index, tool, params));
  }

  /** Whether the request key of an allowed action, if any, is new (rule 18). */
  #isNewRequest(
    grant: Grant | undefined,
    bytes: Uint8Array,
    rows: Int32Array,
    base: number,
    principal: string,
  ): boolean {
    const key = rows[base + row.REQUEST_KEY]!;
    if (key === 0) return true;
    const name = requestName(principal, grant, decodeLatin1(bytes, key, rows[base + row.REQUEST_KEY + 1]));
    if (this.#state.links.requests.get(name) !== undefined) return false;
    this.#request = name;
    return true;
  }

  /** A start of an open action that has none (SPEC §3.8). Others take the slow path, those that do not count included. */
  #judgeStart(bytes: Uint8Array, rows: Int32Array, at: number, principal: string): boolean {
    const base = at * row.ROW_WIDTH;
    const number = this.#events.locateWords(rows, base + row.LINK_WORDS, this.#hashes[2 * at + 1]!);
    const action = number === -1 ? -1 : this.#actions.rowOf(number);
    if (action === -1 || this.#rows.isDenied(action) || rows[base + row.PARAMS]! === 0) return false;
    const index = this.#rows.grant(action);
    const view = index === -1 ? this.#amounts.unbounded : this.#amounts.viewOf(index);
    // So no stop has met the action.
    if (view === undefined || needsRules(view)) return false;
    const toolName = this.#texts.tools.at(bytes, rows, base);
    if (this.#rows.principalId(action) !== principal || this.#rows.toolName(action) !== toolName)
      return false;
    if (!this.#rows.hasParams(action, rows, base + row.PARAMS_WORDS)) return false;
    const meters = this.#metersOf(bytes, rows, base);
    this.#linked = this.#texts.links.at(bytes, rows, base);
    if (meters === undefined || this.#state.links.starts.has(this.#linked)) return false;
    this.#start = {
      toolName,
      params: digestTextAt(bytes, rows[base + row.PARAMS]!),
      startedAt: decodeLatin1(bytes, rows[base + row.STARTED_AT], rows[base + row.STARTED_AT + 1]),
      recorder: recallText(bytes, rows[base + row.RECORDER]!, rows[base + row.RECORDER + 1]!),
      isStopped: false,
      meters,
    };
    return true;
  }

  /** The known use of a start, shared by those that say the same; undefined where the row has not all of it. */
  #metersOf(bytes: Uint8Array, rows: Int32Array, base: number): MeterVector | undefined {
    const count = rows[base + row.METER_COUNT]!;
    if (count > row.ROW_AMOUNTS) return undefined;
    const from = rows[base + row.METERS]!;
    // The last unit, and `"}`.
    const end =
      count === 0 ? from : rows[base + row.AMOUNTS + (count - 1) * row.AMOUNT_WIDTH + row.UNIT + 1]! + 2;
    const text = decodeLatin1(bytes, from, end);
    if (text !== this.#metersText) {
      this.#metersText = text;
      this.#meters = JSON.parse(`[${text}]`) as MeterVector;
    }
    return this.#meters;
  }

  /** An execution of an open action, or under a grant (rules 2, 4, 5, 8 and 14). */
  #judgeExecution(bytes: Uint8Array, rows: Int32Array, at: number, principal: string): boolean {
    const base = at * row.ROW_WIDTH;
    const number = this.#events.locateWords(rows, base + row.LINK_WORDS, this.#hashes[2 * at + 1]!);
    if (number === -1) return false;
    const kind = this.#events.kindOf(number);
    if (kind !== 'action' && kind !== 'grant') return false;
    const { starts, grants } = this.#state.links;
    // Of an action it changes nothing but that it ends. An execution under a grant ends only the one that it names.
    if (kind === 'grant' && starts.size > 0 && starts.has(this.#texts.links.at(bytes, rows, base)))
      return false;
    const action = kind === 'action' ? this.#actions.rowOf(number) : -1;
    if (kind === 'action' && (action === -1 || this.#rows.isDenied(action))) return false;
    const index =
      kind === 'action'
        ? this.#rows.grant(action)
        : grants.get(this.#texts.links.at(bytes, rows, base))?.index;
    if (index === undefined) return false;
    const view = index === -1 ? this.#amounts.unbounded : this.#amounts.viewOf(index);
    if (view === undefined || needsRules(view)) return false;
    const flags = rows[base + row.FLAGS]!;
    if (view.isDigestOnly && (flags & row.HAS_OUTPUT_REF) !== 0) return false;
    if (view.limitsResources && (flags & row.HAS_RESOURCES) !== 0) return false;
    const tool = this.#texts.tools.at(bytes, rows, base);
    if (!view.allowsTool(tool) || !this.#isOf(action, view, bytes, rows, base, principal, tool)) return false;
    if (!this.#hasSoundTimes(action, view, bytes, rows, base)) return false;
    // The row says nothing of the bases of more.
    const hasBases = (flags & row.HAS_UNIT_BASES) !== 0;
    if (hasBases && rows[base + row.METER_COUNT]! > row.FLAGGED_AMOUNTS) return false;
    if (!this.#amounts.read(bytes, rows, base) || !this.#amounts.usesWithin(view.limitsOf(tool)))
      return false;
    if (!this.#amounts.use(action, view, flags)) return false;
    this.#windows = view.hasWindows ? this.#judgeWindows(view, bytes, rows, base) : undefined;
    if (this.#windows !== undefined && this.#windows.findings.length > 0) return false;
    this.#view = view;
    this.#spent = action;
    this.#spentNumber = action === -1 ? -1 : number;
    if (action === -1) return true;
    this.#linked = this.#texts.links.at(bytes, rows, base);
    // The rules remember what was begun and ended nobody knows how.
    return (flags & HAS_KNOWN_END) !== 0 || !starts.has(this.#linked);
  }

  /** Rule 2: the execution and what authorized it have the same members. */
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
    const own = all.timeBytes(action);
    if (orderTimes(bytes, at, end, own, all.timeAt(action), all.timeEnd(action)) < 0) return false;
    const expiry = all.expiryAt(action);
    const expiryEnd = all.expiryEnd(action);
    return expiry === expiryEnd || orderTimes(bytes, at, end, own, expiry, expiryEnd) < 0;
  }

  /** Rules 6 and 7. */
  #judgeWindows(view: BoundsView, bytes: Uint8Array, rows: Int32Array, base: number): Judgement {
    const textAt = (place: number): string => decodeLatin1(bytes, rows[base + place], rows[base + place + 1]);
    const maybeTextAt = (place: number): string | undefined =>
      rows[base + place] === 0 ? undefined : textAt(place);
    const used = this.#amounts.list();
    const [startedAt, endedAt] = [maybeTextAt(row.STARTED_AT), maybeTextAt(row.ENDED_AT)];
    return judgeWindows({ occurredAt: textAt(row.OCCURRED_AT), startedAt, endedAt, used }, view.chain);
  }

  /** Adds the record that was judged. */
  apply(line: FastLine, base: number): void {
    const { segment, number } = line;
    this.#amounts.apply();
    const position = this.#position;
    position.file = segment.file;
    position.line = number;
    position.seq = this.#state.chain.seq;
    if (this.#opened !== -1) {
      this.#actions.place(this.#events.addLocated(position, 'action', -1), this.#opened);
      this.#applyAction(line, base);
    } else if (this.#view !== undefined) {
      this.#windows?.apply();
      for (const grant of this.#view.chain) grant.executions += 1;
      const grant = this.#view.grant?.index ?? -1;
      this.#events.addLocated(position, 'execution', grant);
      if (this.#spent !== -1) {
        this.#actions.remove(this.#spentNumber);
        this.#events.spendNumber(this.#spentNumber, grant);
        const { starts, expiring } = this.#state.links;
        if (starts.size > 0) starts.delete(this.#linked);
        if (expiring.size > 0 && expiring.has(this.#linked)) expiring.delete(this.#linked);
      }
    } else {
      this.#events.addLocated(position, 'other', -1);
      if (this.#start !== undefined) this.#applyStart(line, base, this.#start);
    }
  }

  /** The expiry and the request key of an allowed action. */
  #applyAction({ bytes, facts: { rows } }: FastLine, base: number): void {
    const { links } = this.#state;
    const expiry = rows[base + row.EXPIRES_AT]!;
    if (this.#draft.isDenied || (expiry === 0 && this.#request === undefined)) return;
    const at = rows[base + row.EVENT_ID]!;
    const id = decodeLatin1(bytes, at, at + B64_LENGTH);
    if (expiry !== 0) links.expiring.set(id, decodeLatin1(bytes, expiry, rows[base + row.EXPIRES_AT + 1]));
    if (this.#request === undefined) return;
    const asked = askedOf(this.#draft.toolName, digestTextAt(bytes, rows[base + row.PARAMS]!));
    links.requests.set(this.#request, { id, asked });
  }

  #applyStart({ bytes, facts: { rows } }: FastLine, base: number, start: Omit<OpenStart, 'place'>): void {
    const { starts, expiring } = this.#state.links;
    const at = rows[base + row.EVENT_ID]!;
    const id = decodeLatin1(bytes, at, at + B64_LENGTH);
    const place = { ...this.#position, eventId: toDigestText(id) };
    starts.set(this.#linked, new Map([[id, { ...start, place }]]));
    if (expiring.has(this.#linked)) expiring.delete(this.#linked);
  }

  flush(): void {
    this.#amounts.flush();
  }
}

/** Whether a grant of the chain was imported, or is or was withdrawn, or its slice is settled: the rules say what follows. */
function needsRules({ chain }: BoundsView): boolean {
  for (let i = 0; i < chain.length; i += 1) {
    const { systems, withdrawal, stopped, settled } = chain[i]!;
    if (systems.size > 0 || withdrawal !== undefined || stopped !== undefined) return true;
    if (settled !== undefined) return true;
  }
  return false;
}

/** Whether the grants are valid at the instant whose text is at `[at, end)`. */
function isWithin({ notBefore, expiresAt }: BoundsView, bytes: Uint8Array, at: number, end: number): boolean {
  if (notBefore !== undefined && orderTo(bytes, at, end, notBefore) < 0) return false;
  return expiresAt === undefined || orderTo(bytes, at, end, expiresAt) < 0;
}

/** Whether a denial asks for approval: the rules then remember that. @param id - Where the text of its id is */
function asksApproval(bytes: Uint8Array, id: number): boolean {
  const at = id - ASKING.length;
  return ASKING.every((byte, index) => bytes[at + index] === byte);
}
