/**
 * What holds of every ledger that a decider wrote, in whatever order it was asked, and with the answers that it gave: nothing is allowed
 * under a withdrawn grant or beyond a cap, an action is begun and executed once, a request key and an approval are used once; and what it
 * answered is there.
 */

import { sha256 } from './check-ledger.js';
import { findDifference } from './compare.js';
import { isAllowedGrant } from './keyring.js';

const RELEASE = 'ABANDONED';
const SLICE = 'northroot.slice';
const MAX_SCALE = 38;

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
  const caps = new Map(bounds.meter_caps.map(({ unit, amount }) => [unit, fractionOf(amount)]));
  const sliceId = slice?.event_id.b64;
  if (slice !== undefined && [...state.grants.values()].some((each) => each.sliceId === sliceId))
    return 'a second grant of one slice';
  state.grants.set(id.b64, { parent, principal, caps, sliceId, used: new Map(), reserved: new Map() });
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
  const reserved = new Map(
    (action.meter_reservation ?? []).map(({ unit, amount }) => [unit, fractionOf(amount)]),
  );
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
      if (total[0] * cap[1] > cap[0] * total[1]) return `${unit} allowed beyond a cap`;
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
  const stated = new Map(used.map(({ unit, amount }) => [unit, fractionOf(amount)]));
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

function isSame(asked, recorded) {
  const [a, b] = [asked, recorded].map(
    (meters) => new Map((meters ?? []).map(({ unit, amount }) => [unit, fractionOf(amount)])),
  );
  return [...new Set([...a.keys(), ...b.keys()])].every((unit) => {
    const [[n, d], [p, q]] = [a.get(unit) ?? [0n, 1n], b.get(unit) ?? [0n, 1n]];
    return n * q === p * d;
  });
}

/** What a trace was answered, by ledger. */
export class Answers {
  /** By handle: the handle that its ledger was opened under. */
  #ledgers = new Map();
  /** By the same: `[{request, result, group}]`; requests of a group were asked at once. */
  #answers = new Map();
  #group = 0;

  note(op, input, result) {
    this.#group += 1;
    if (op === 'open')
      this.#ledgers.set(input.handle, input.of === undefined ? input.handle : this.#ledgers.get(input.of));
    const requests = op === 'race' ? input.requests : [{ op, ...input }];
    const results = op === 'race' ? result.results : [result];
    for (const [index, request] of requests.entries()) {
      const key = this.#ledgers.get(request.handle);
      const own = this.#answers.get(key) ?? [];
      own.push({ request, result: results[index], group: this.#group });
      this.#answers.set(key, own);
    }
  }

  /** What of the answers is not in their ledger, or in it and in no answer; undefined for nothing. */
  findFault(handle, events, from) {
    const places = new Map(events.map(({ event_id: { alg, b64 } }, seq) => [`${alg}:${b64}`, seq]));
    const answered = new Set();
    let [last, lastOfGroup, group] = [-1, -1, undefined];
    for (const each of this.#answers.get(handle) ?? []) {
      const { request, result } = each;
      const id = result?.event_id;
      if (typeof id !== 'string') continue;
      const seq = places.get(id);
      if (seq === undefined) return `the answer to ${request.op} names ${id}, which the ledger has not`;
      answered.add(seq);
      const differs = findDifference(eventOf(request, result), events[seq], `/ledger/${seq}`);
      if (differs !== undefined) return `not as answered to ${request.op}: ${differs}`;
      const wanted = request.op === 'decide' && result.decision === 'allow' ? request.meters : undefined;
      if (wanted !== undefined && !isSame(wanted, events[seq].authorization.action.meter_reservation))
        return `record ${seq}: another reservation than was asked for`;
      if (request.op === 'settle' && !isSame(request.meter_used, events[seq].meter_used))
        return `record ${seq}: another use than was told`;
      if (seq < from || result.recorded === false || result.exists === true) continue;
      if (each.group !== group) [last, group] = [lastOfGroup, each.group];
      if (seq < last) return `record ${seq}: before what was answered earlier`;
      lastOfGroup = Math.max(lastOfGroup, seq);
    }
    for (const [seq, event] of events.entries())
      if (seq >= from && !answered.has(seq) && isAct(event)) return `record ${seq}: nobody was told of it`;
    return undefined;
  }
}

/** What nobody may do but who is asked for it: allow, deny, approve, withdraw, execute. Releases and starts come with other requests. */
function isAct({ event_type: type, error_code: code }) {
  if (type === 'execution') return code !== RELEASE;
  return type === 'authorization' || type === 'approval';
}

const digestOf = (text) => {
  const [alg, b64] = text.split(':');
  return { alg, b64 };
};

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
      const said = result.recorded === false ? {} : { decision: result.decision };
      const { principal_id: principal } = request;
      return {
        event_type: 'authorization',
        ...said,
        principal_id: principal,
        authorization: { kind: 'action', action },
      };
    }
    case 'start':
      return { event_type: 'x.northroot.start', ...auth };
    case 'settle': {
      const { start_event_id: start, error_code: code, outcome } = request;
      const from = start && { prev_event_id: digestOf(start) };
      return { event_type: 'execution', ...auth, outcome, ...from, ...(code && { error_code: code }) };
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
    case 'slice':
      return {
        event_type: 'authorization',
        decision: result.decision,
        authorization: { kind: 'action', ...grant, action: { tool_name: 'northroot.slice' } },
      };
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
      return { event_type: 'execution', outcome: 'success', tool_name: 'northroot.slice' };
    default:
      return {};
  }
}
