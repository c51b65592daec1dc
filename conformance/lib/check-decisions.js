/**
 * What holds of every ledger that a decider wrote, in whatever order it was asked, and with the answers that it gave: nothing is allowed
 * under a withdrawn grant or beyond a cap, an action is begun and executed once, a request key and an approval are used once; and what it
 * answered is there.
 */

import { canonicalText, keyidOf, sha256 } from './check-ledger.js';
import { findDifference } from './compare.js';
import { isAllowedGrant } from './keyring.js';

const RELEASE = 'ABANDONED';
const SLICE = 'northroot.slice';
const MAX_SCALE = 38;
const NOTHING = [0n, 1n];

/**
 * What a decider did that it must not, in words; undefined for nothing.
 * @param events - Of the whole ledger
 * @param from - The first that it made itself; those before are as they were given
 */
export function findUnlawful(events, from) {
  const state = newState();
  for (const [seq, event] of events.entries()) {
    const words = noteEvent(state, event);
    if (words !== undefined && seq >= from) return `record ${seq}: ${words}`;
  }
  return undefined;
}

/**
 * What is wrong about the slices that one ledger settled: each by a checkpoint of the other at which its grant there is stopped, nothing
 * is open, and as much is used as was told.
 */
export function findWrongSettlement(events, from, others) {
  for (const [seq, { tool_name: tool, ...event }] of events.entries()) {
    if (seq < from || event.event_type !== 'execution' || tool !== SLICE) continue;
    const fault = others.every((other) => !isSettledBy(event, other));
    if (fault) return `record ${seq}: settles a slice otherwise than it was spent`;
  }
  return undefined;
}

/** What is wrong about the slices that one ledger spends: each was allowed in another, with at least as much of every unit. */
export function findWrongSlice(events, from, others) {
  for (const [seq, event] of events.entries()) {
    const slice = isAllowedGrant(event) ? event.authorization.slice : undefined;
    if (seq < from || slice === undefined) continue;
    const action = others.flat().find(({ event_id: id }) => id.b64 === slice.event_id.b64);
    if (action?.decision !== 'allow') return `record ${seq}: spends a slice that nobody set aside`;
    const reserved = amountsOf(action.authorization.action.meter_reservation);
    for (const [unit, cap] of amountsOf(event.authorization.bounds.meter_caps))
      if (isMore(cap, reserved.get(unit) ?? NOTHING)) return `record ${seq}: ${unit} beyond its slice`;
  }
  return undefined;
}

function isSettledBy({ auth_event_id: id, output_digest: digest, meter_used: used }, other) {
  const place = other.findIndex(
    ({ event_type: type, note }) =>
      type === 'checkpoint' && sha256(note).toString('base64url') === digest?.b64,
  );
  if (place < 0) return false;
  const state = newState();
  for (const event of other.slice(0, place)) noteEvent(state, event);
  const grant = [...state.grants.values()].find(({ sliceId }) => sliceId === id.b64);
  if (grant?.withdrawn !== 'revoke') return false;
  const isOpen = [...state.actions.values()].some(
    (action) => action.isOpen && chainOf(action.grant).includes(grant),
  );
  return (
    !isOpen &&
    isSame(
      used,
      [...grant.used].map(([unit, amount]) => ({ unit, amount })),
    )
  );
}

function newState() {
  return { grants: new Map(), actions: new Map(), keys: new Set(), approvals: new Map() };
}

function noteEvent(state, event) {
  const { event_type: type } = event;
  if (isAllowedGrant(event)) return noteGrant(state, event);
  if (type === 'revocation') return noteRevocation(state, event);
  if (type === 'x.northroot.start') return noteStart(state, event);
  if (type === 'execution') return noteExecution(state, event);
  if (type === 'approval' && event.decision === 'approve')
    state.approvals.set(event.event_id.b64, {
      grant: state.grants.get(event.grant_event_id.b64),
      call: callOf(event),
    });
  if (type === 'authorization' && event.decision === 'allow') return noteAction(state, event);
  return undefined;
}

function noteGrant(state, { event_id: id, principal_id: principal, authorization }) {
  const { bounds, grant_event_id: parentId, slice } = authorization;
  const parent = state.grants.get(parentId?.b64);
  if (parentId !== undefined && parent === undefined) return 'a grant under none';
  const caps = amountsOf(bounds.meter_caps);
  const sliceId = slice?.event_id.b64;
  if (slice !== undefined && [...state.grants.values()].some((each) => each.sliceId === sliceId))
    return 'a second grant of one slice';
  state.grants.set(id.b64, { parent, principal, caps, sliceId, used: new Map(), reserved: new Map() });
  for (const [unit, cap] of parent?.caps ?? [])
    if (!caps.has(unit) || isMore(caps.get(unit), cap)) return `${unit} delegated beyond a cap`;
  if (chainOf(parent).some(({ withdrawn }) => withdrawn !== undefined))
    return 'a grant under a withdrawn one';
  return undefined;
}

function noteRevocation(state, { grant_event_id: id, effect, in_flight: inFlight }) {
  const grant = state.grants.get(id.b64);
  if (grant === undefined) return 'a revocation of no grant';
  if (effect === 'resume') {
    if (grant.withdrawn === 'suspend') grant.withdrawn = undefined;
    return undefined;
  }
  if (grant.withdrawn !== 'revoke') grant.withdrawn = effect;
  if (inFlight === 'stop')
    for (const action of state.actions.values())
      if (!action.isBegun && chainOf(action.grant).includes(grant)) action.isStopped = true;
  return undefined;
}

function noteAction(state, { event_id: id, principal_id: principal, authorization }) {
  const { action, grant_event_id: grantId } = authorization;
  const grant = state.grants.get(grantId?.b64);
  const reserved = amountsOf(action.meter_reservation);
  state.actions.set(id.b64, { grant, reserved, isOpen: true });
  for (const { b64 } of action.approval_event_ids ?? []) {
    const approval = state.approvals.get(b64);
    // One that is for something else is named in vain.
    if (approval?.call !== callOf(action) || !chainOf(grant).includes(approval.grant)) continue;
    if (approval.isUsed) return 'an approval used for the second time';
    approval.isUsed = true;
  }
  if (grantId === undefined) return undefined;
  if (grant === undefined) return 'an action under no grant';
  if (grant.principal !== principal) return 'an action of another principal than its grant';
  const chain = chainOf(grant);
  if (chain.some(({ withdrawn }) => withdrawn !== undefined)) return 'allowed under a withdrawn grant';
  for (const each of chain) {
    add(each.reserved, reserved, 1n);
    for (const [unit, cap] of each.caps) {
      const total = sum(each.used.get(unit), each.reserved.get(unit));
      if (isMore(total, cap)) return `${unit} allowed beyond a cap`;
    }
  }
  const { request_key: key } = action;
  if (key === undefined) return undefined;
  const name = `${principal} ${chain.at(-1) === undefined ? '' : idOf(state, chain.at(-1))} ${key}`;
  if (state.keys.has(name)) return 'a request key for the second time';
  state.keys.add(name);
  return undefined;
}

function callOf({ tool_name: tool, tool_params_digest: params }) {
  return `${tool} ${params.alg}:${params.b64}`;
}

function noteStart(state, { auth_event_id: id }) {
  const action = state.actions.get(id.b64);
  if (action === undefined) return undefined;
  const wasBegun = action.isBegun;
  action.isBegun = true;
  if (!action.isOpen) return 'a start of what was executed';
  if (wasBegun) return 'a second start';
  return action.isStopped === true ? 'a start of what a revocation stopped' : undefined;
}

function noteExecution(state, event) {
  const { auth_event_id: id, meter_used: used, error_code: code } = event;
  const action = state.actions.get(id.b64);
  if (action === undefined) return undefined;
  if (!action.isOpen) return 'a second execution of an action';
  action.isOpen = false;
  const isFailure = event.outcome === 'failure' && isWithoutOutput(event);
  const hasNoEnd = event.ended_at === undefined || event.ended_at === event.started_at;
  const isFormOfRelease = isFailure && code === RELEASE && used.length === 0 && hasNoEnd;
  const isRelease = isFormOfRelease && action.isBegun !== true;
  const stated = amountsOf(used);
  // Silence is not free: what was reserved counts as used.
  if (isFormOfRelease ? !isRelease : !isFailure)
    for (const [unit, amount] of action.reserved) if (!stated.has(unit)) stated.set(unit, amount);
  for (const each of chainOf(action.grant)) {
    add(each.reserved, action.reserved, -1n);
    if (!isRelease) add(each.used, stated, 1n);
  }
  return undefined;
}

function isWithoutOutput({ output_digest: digest, output_ref: ref, resources_touched: touched = [] }) {
  return digest === undefined && ref === undefined && touched.length === 0;
}

/** A grant and those above it. */
function chainOf(grant) {
  const chain = [];
  for (let at = grant; at !== undefined; at = at.parent) chain.push(at);
  return chain;
}

function idOf(state, grant) {
  for (const [id, each] of state.grants) if (each === grant) return id;
  return undefined;
}

function add(totals, amounts, sign) {
  for (const [unit, [n, d]] of amounts) totals.set(unit, sum(totals.get(unit), [sign * n, d]));
}

function isMore([a, b], [c, d]) {
  return a * d > c * b;
}

function sum([a, b] = [0n, 1n], [c, d] = [0n, 1n]) {
  return [a * d + c * b, b * d];
}

/** An amount of type int, dec or rat, or a fraction, as a fraction; the traces ask for no f64. @throws TypeError for what is no amount */
function fractionOf(amount) {
  if (Array.isArray(amount)) return amount;
  const { t, v, m, s, n, d } = amount;
  if (t === 'int') return [integer(v), 1n];
  if (t === 'dec' && s >= 0 && s <= MAX_SCALE) return [integer(m), 10n ** BigInt(s)];
  const bottom = integer(d);
  if (t !== 'rat' || bottom <= 0n) throw new TypeError('no amount');
  return [integer(n), bottom];
}

function integer(text) {
  if (!/^(?:0|-?[1-9]\d{0,38})$/.test(text)) throw new TypeError('no amount');
  return BigInt(text);
}

function amountsOf(meters = []) {
  return new Map(meters.map(({ unit, amount }) => [unit, fractionOf(amount)]));
}

function isSame(asked, recorded) {
  const [a, b] = [asked, recorded].map((meters) => amountsOf(meters));
  return [...new Set([...a.keys(), ...b.keys()])].every((unit) => isSameOf(unit, a, b));
}

function isSameOf(unit, a, b) {
  const [[n, d], [p, q]] = [a.get(unit) ?? NOTHING, b.get(unit) ?? NOTHING];
  return n * q === p * d;
}

/** Whether a grant has what was asked for it; where nothing was asked it is the decider's choice. */
function hasAsked({ meter_caps: caps, allowed_tools: tools, expires_at: expires }, { authorization }) {
  const { bounds } = authorization;
  const [asked, given] = [caps, bounds.meter_caps].map((meters) => amountsOf(meters));
  return (
    [...asked.keys()].every((unit) => given.has(unit) && isSameOf(unit, asked, given)) &&
    (tools === undefined || tools.toSorted().join() === bounds.allowed_tools.toSorted().join()) &&
    isSameTime(expires, bounds.expires_at)
  );
}

/** A time that nobody asked for is as any. */
function isSameTime(asked, recorded) {
  return asked === undefined || Date.parse(asked) === Date.parse(recorded);
}

/** What a trace was answered, by ledger. */
export class Answers {
  /** By handle: the handle that its ledger was opened under. */
  #ledgers = new Map();
  /** By the same: `[{request, result, by, group}]`; `by` opened the handle, requests of a group were asked at once. */
  #answers = new Map();
  #group = 0;
  /** By handle: the request that opened it. */
  #opened = new Map();

  note(op, input, result) {
    this.#group += 1;
    if (op === 'open') {
      this.#opened.set(input.handle, input);
      this.#ledgers.set(input.handle, input.of === undefined ? input.handle : this.#ledgers.get(input.of));
    }
    const requests = op === 'race' ? input.requests : [{ op, ...input }];
    const results = op === 'race' ? result.results : [result];
    for (const [index, request] of requests.entries()) {
      const key = this.#ledgers.get(request.handle);
      const own = this.#answers.get(key) ?? [];
      const by = this.#opened.get(request.handle);
      own.push({ request, result: results[index], by, group: this.#group });
      this.#answers.set(key, own);
    }
  }

  /**
   * What of the answers is not in their ledger, or in it and in no answer; undefined for nothing.
   * @param ledger - As `readLedger` gives it
   */
  findFault(handle, { events, signers }, from) {
    const places = new Map(events.map(({ event_id: { alg, b64 } }, seq) => [`${alg}:${b64}`, seq]));
    const answered = new Set();
    let [last, lastOfGroup, group] = [-1, -1, undefined];
    for (const each of this.#answers.get(handle) ?? []) {
      const { request, result, by } = each;
      const id = result?.event_id;
      if (typeof id !== 'string') continue;
      const seq = places.get(id);
      if (seq === undefined) return `the answer to ${request.op} names ${id}, which the ledger has not`;
      answered.add(seq);
      const differs = findDifference(eventOf(request, result), events[seq], `/ledger/${seq}`);
      if (differs !== undefined) return `not as answered to ${request.op}: ${differs}`;
      const isEarlier = result.recorded === false && MAY_BE_EARLIER.has(request.op);
      const words = isEarlier ? undefined : findOther(each, events, places, seq);
      if (words !== undefined) return `record ${seq}: ${words}`;
      if (seq < from || isEarlier) continue;
      if (!signers[seq].includes(keyidOf(by.secret)))
        return `record ${seq}: not signed by the key that was given`;
      if (each.group !== group) [last, group] = [lastOfGroup, each.group];
      if (seq < last) return `record ${seq}: before what was answered earlier`;
      lastOfGroup = Math.max(lastOfGroup, seq);
    }
    const eventAt = (id) => events[places.get(textOf(id))];
    for (const [seq, event] of events.entries())
      if (seq >= from && !answered.has(seq) && isAct(event, eventAt))
        return `record ${seq}: nobody was told of it`;
    return undefined;
  }
}

/** What a new event has otherwise than it was asked for, or undefined. */
function findOther({ request, result, by }, events, places, seq) {
  const { op } = request;
  const event = events[seq];
  const isAllowed = result.decision === 'allow';
  if (isAllowed && (op === 'decide' || op === 'slice')) {
    const { action } = event.authorization;
    const asked = op === 'slice' ? request.meter_caps : request.meters;
    if (asked !== undefined && !isSame(asked, action.meter_reservation))
      return 'another reservation than was asked for';
    if (!isSameTime(request.expires_at, action.expires_at)) return 'another expiry than was asked for';
  }
  if (op === 'settle') {
    if (!isSame(request.meter_used, event.meter_used)) return 'another use than was told';
    if (!isSameTime(request.started_at, event.started_at)) return 'another start than was told';
  }
  if ((op === 'delegate' || op === 'spend') && !hasAsked(request, event))
    return 'another grant than was asked for';
  if (op === 'approve' || op === 'reject') {
    const asked = events[places.get(request.request_event_id)]?.authorization.action;
    if (asked === undefined || callOf(asked) !== callOf(event))
      return 'about another call than was asked for';
  }
  const isOwn = op === 'approve' || op === 'reject' || op === 'revoke';
  return isOwn && event.principal_id !== by.principal_id ? 'by another principal than was asked' : undefined;
}

/** These may answer with what is there already. */
const MAY_BE_EARLIER = new Set(['decide', 'slice', 'spend', 'settle-slice']);

/**
 * What nobody may do but who is asked for it: allow, deny, approve, withdraw, execute, change keys and accounts. Releases come with
 * other requests; so does the start of a slice, and the revocation by which one is settled.
 */
function isAct({ event_type: type, error_code: code, auth_event_id: auth, grant_event_id: grant }, eventAt) {
  if (type === 'execution') return code !== RELEASE;
  if (type === 'x.northroot.start') return eventAt(auth)?.authorization?.action?.tool_name !== SLICE;
  if (type === 'revocation') return eventAt(grant)?.authorization?.slice === undefined;
  return ['authorization', 'approval', 'adjustment', 'key'].includes(type);
}

function textOf(id) {
  return `${id?.alg}:${id?.b64}`;
}

const digestOf = (text) => {
  const [alg, b64] = text.split(':');
  return { alg, b64 };
};

function saidOf({ intent_digest: intent }, { decision, decision_code: code }) {
  return {
    decision,
    ...(code && { decision_code: code }),
    intents: { intent_digest: digestOf(intent) },
  };
}

/** What an answered event has. */
function eventOf(request, result) {
  const grant = request.grant_event_id && { grant_event_id: digestOf(request.grant_event_id) };
  const auth = request.auth_event_id && { auth_event_id: digestOf(request.auth_event_id) };
  switch (request.op) {
    case 'decide': {
      const action = {
        tool_name: request.tool_name,
        tool_params_digest: digestOf(request.params_digest),
        ...(result.decision === 'allow' && request.request_key && { request_key: request.request_key }),
      };
      // A refusal that rests on an earlier answer names that one.
      const said = result.recorded === false ? {} : saidOf(request, result);
      const { principal_id: principal } = request;
      const under = result.decision === 'allow' && result.recorded !== false ? grant : undefined;
      return {
        event_type: 'authorization',
        ...said,
        principal_id: principal,
        authorization: { kind: 'action', action, ...under },
      };
    }
    case 'start':
      return { event_type: 'x.northroot.start', ...auth };
    case 'settle': {
      const { start_event_id: start, error_code: code, outcome } = request;
      const from = start && { prev_event_id: digestOf(start) };
      const ended = code && { error_code: code };
      return { event_type: 'execution', ...auth, outcome, ...from, ...ended };
    }
    case 'approve':
    case 'reject':
      return {
        event_type: 'approval',
        decision: request.op,
        request_event_id: digestOf(request.request_event_id),
      };
    case 'revoke':
      return {
        event_type: 'revocation',
        effect: request.effect,
        ...grant,
        ...(request.in_flight && { in_flight: request.in_flight }),
      };
    case 'delegate':
      return {
        event_type: 'authorization',
        decision: 'allow',
        principal_id: request.principal_id,
        authorization: { kind: 'grant', ...grant },
      };
    case 'slice': {
      const text = canonicalText({ ledger_id: request.ledger_id });
      const params = { alg: 'sha-256', b64: sha256(text).toString('base64url') };
      return {
        event_type: 'authorization',
        decision: result.decision,
        authorization: { kind: 'action', ...grant, action: { tool_name: SLICE, tool_params_digest: params } },
      };
    }
    case 'spend': {
      const { ledger_id: ledger, event_id: slice } = request.slice;
      const named = { ledger_id: digestOf(ledger), event_id: digestOf(slice) };
      return {
        event_type: 'authorization',
        decision: 'allow',
        authorization: { kind: 'grant', slice: named },
      };
    }
    case 'settle-slice':
      return { event_type: 'execution', outcome: 'success', tool_name: SLICE };
    default:
      return {};
  }
}
