/**
 * Traces of requests to a decider, with the answer each must get. They are stated from the rules; races come in every order, with two
 * handles on one ledger as with two processes.
 */

import { genesis, grant, int, dec, meters } from '../../fixtures/make/events.js';
import { ed25519Key } from '../../fixtures/make/keys.js';
import { digest, FixtureLedger, keyEntry } from '../../fixtures/make/ledger.js';
import { base64 } from './cases.js';
import { secretOf } from './secrets.js';

const GATE = ed25519Key('conformance gate');
const ADA = ed25519Key('conformance ada');
const BEN = ed25519Key('conformance ben');
const OWNER = ed25519Key('conformance owner');
const AGENT = 'agent:a';
const INTENT = 'buy';
const at = (second) => new Date(Date.UTC(2026, 0, 1) + second * 1_000).toISOString().replace('.000', '');
const text = ({ b64 }) => `sha-256:${b64}`;
const paramsOf = (name) => text(digest(JSON.stringify({ call: name })));

export function makeDeciderCases() {
  return [
    ...makeBounds(),
    ...makeRetries(),
    ...makeLives(),
    ...makeApprovals(),
    ...makeWithdrawals(),
    ...makeRaces(),
    ...makeRates(),
    ...makeConcurrency(),
    ...makeDelegations(),
    ...makeDeaths(),
    ...makeKeys(),
    ...makeSlices(),
  ];
}

const SIGNING = { binding: 'required', checkpoints: 'optional', events: 'required' };
const KEYS = [keyEntry(GATE), keyEntry(ADA, { principals: ['human:ada'], roles: ['event'] })];

/** A ledger with one grant; what is given is added to its bounds. */
function world({ bounds = {}, principal = AGENT, more = [], keys = KEYS, by = [GATE] } = {}) {
  const ledger = new FixtureLedger(by);
  ledger.append(genesis('conformance.example/decider', at(0), keys, { signing: SIGNING }));
  const allowed = { allowed_tools: ['pay'], meter_caps: meters({ usd: int(1) }) };
  const draft = grant({ principal, at: at(1), intent: INTENT, bounds: { ...allowed, ...bounds } });
  const id = ledger.append(draft, { bind: true });
  const others = more.map((make) => text(ledger.append(make(id), { bind: true })));
  return { bytes: ledger.bytes, grant: text(id), others, id: text(ledger.ledgerId) };
}

const isGate = { handle: 'gate' };

/** @param child - A second ledger, of which the handle is `child` */
function trace(name, about, { bytes }, steps, ledger = {}, child) {
  const open = {
    op: 'open',
    input: {
      ...isGate,
      now: at(10),
      secret: secretOf('conformance gate'),
      principal_id: 'service:gate',
      ledger: ledgerOf(bytes),
    },
    expect: { records: bytes.toString().split('\n').length - 1 },
  };
  const ledgers = { gate: { begins: base64(bytes), ...ledger } };
  const opens = [open];
  if (child !== undefined) {
    const { bytes: own, ...expected } = child;
    ledgers.child = { begins: base64(own), ...expected };
    const input = { ...open.input, handle: 'child', beside: 'gate', ledger: ledgerOf(own) };
    opens.push({ op: 'open', input, expect: { records: own.toString().split('\n').length - 1 } });
  }
  const close = { op: 'close', input: {}, expect: { ledgers } };
  return { id: `decider/${name}`, about, steps: [...opens, ...steps, close] };
}

const ledgerOf = (bytes) => ({ name: 'ledger.jsonl', bytes: base64(bytes) });

/** A further handle on the same ledger: another process. */
function openOther(handle = 'other', secret = 'conformance gate', principal = 'service:gate', second = 10) {
  const input = { handle, of: 'gate', now: at(second), secret: secretOf(secret), principal_id: principal };
  return { op: 'open', input, expect: { refused: null, records: { $type: 'number' } } };
}

/** A request for `usd`; `save` names its event. */
function decide(second, usd, expect, { save, call = 'one', handle = 'gate', ...more } = {}) {
  return {
    op: 'decide',
    input: {
      handle,
      now: at(second),
      principal_id: AGENT,
      tool_name: 'pay',
      params_digest: paramsOf(call),
      intent_digest: text(digest(INTENT)),
      meters: meters({ usd: dec(usd) }),
      ...more,
    },
    expect,
    ...(save && { save: { [save]: 'event_id' } }),
  };
}

const DONE = { refused: null, event_id: { $type: 'string' } };
const ALLOWED = { ...DONE, decision: 'allow', recorded: true };
/** Of several requests at once, of which some are refused. */
const DECIDED = { ...DONE, decision: { $oneOf: ['allow', 'deny'] } };
const denied = (...codes) => ({ decision: 'deny', decision_code: { $oneOf: codes }, recorded: true });
const refused = (...codes) => ({ refused: { $oneOf: codes } });
/** A refusal that is recorded as a denial, told as one, or an error: a request that cannot be begun. */
const no = (...codes) => ({
  $oneOf: [refused(...codes), { decision: 'deny', decision_code: { $oneOf: codes } }],
});
const ref = (name) => ({ $ref: name });

function start(second, auth, expect, { call = 'one', save, handle = 'gate' } = {}) {
  return {
    op: 'start',
    input: { handle, now: at(second), auth_event_id: ref(auth), params_digest: paramsOf(call) },
    expect,
    ...(save && { save: { [save]: 'event_id' } }),
  };
}

function settle(second, auth, expect, { call = 'one', usd = '0.50', from, handle = 'gate', ...more } = {}) {
  return {
    op: 'settle',
    input: {
      handle,
      now: at(second),
      auth_event_id: ref(auth),
      ...(from && { start_event_id: ref(from) }),
      params_digest: paramsOf(call),
      outcome: 'success',
      meter_used: meters({ usd: dec(usd) }),
      ...more,
    },
    expect,
  };
}

const release = (second, auth, expect, more = {}) =>
  settle(second, auth, expect, { outcome: 'failure', error_code: 'ABANDONED', meter_used: [], ...more });

function revoke(second, grantId, effect, inFlight, handle = 'gate') {
  const input = {
    handle,
    now: at(second),
    grant_event_id: grantId,
    effect,
    ...(inFlight && { in_flight: inFlight }),
  };
  return { op: 'revoke', input, expect: DONE };
}

const action = (decision) => ({ event_type: 'authorization', decision, authorization: { kind: 'action' } });
const count = (n, of) => ({ count: n, of });
const executions = (n) => count(n, { event_type: 'execution' });
const starts = (n) => count(n, { event_type: 'x.northroot.start' });

function makeBounds() {
  const OVER = denied('RESERVATION_OVER_CAP');
  const one = world();
  return [
    trace(
      'cap',
      'up to the cap, and not beyond',
      one,
      [
        decide(11, '0.60', ALLOWED),
        decide(12, '0.41', OVER, { call: 'two' }),
        decide(13, '0.40', ALLOWED, { call: 'three' }),
        decide(14, '0.01', OVER, { call: 'four' }),
      ],
      { counts: [count(2, action('allow')), count(2, action('deny'))] },
    ),
    trace('tool', 'a tool that is not granted', one, [
      decide(11, '0.10', denied('TOOL_NOT_ALLOWED'), { tool_name: 'wire' }),
    ]),
    trace('grant-of-another', "another's grant, by name", one, [
      decide(11, '0.10', denied('PRINCIPAL_MISMATCH'), {
        principal_id: 'agent:b',
        grant_event_id: one.grant,
      }),
    ]),
    trace('no-such-grant', 'a grant that is not there', one, [
      decide(11, '0.10', denied('GRANT_NOT_FOUND'), { grant_event_id: text(digest('no such grant')) }),
    ]),
    trace(
      'expired',
      'at the instant of expiry the grant has expired',
      world({ bounds: { expires_at: at(20) } }),
      [decide(19, '0.10', ALLOWED), decide(20, '0.10', denied('GRANT_EXPIRED'), { call: 'two' })],
    ),
    trace('not-yet', 'the grant begins at its instant', world({ bounds: { not_before: at(20) } }), [
      decide(19, '0.10', denied('GRANT_NOT_YET_VALID')),
      decide(20, '0.10', ALLOWED, { call: 'two' }),
    ]),
    trace(
      'action-cap',
      'more than one action may reserve',
      world({ bounds: { action_caps: meters({ usd: dec('0.30') }) } }),
      [decide(11, '0.31', denied('ACTION_CAP_EXCEEDED')), decide(12, '0.30', ALLOWED, { call: 'two' })],
    ),
    trace(
      'unsound',
      'a grant whose own record is in violation allows nothing, nor does one below it',
      unsound(),
      [decide(11, '0.10', { decision: 'deny', recorded: true }, { principal_id: 'agent:b' })],
    ),
    trace('imported', 'a grant taken over from another system, which nobody honours here', imported(), [
      decide(11, '0.10', { decision: 'deny', recorded: true }),
    ]),
    trace('below', 'a delegated grant is held to both caps', delegated(), [
      decide(11, '0.70', ALLOWED),
      decide(12, '0.40', OVER, { principal_id: 'agent:b', call: 'two' }),
      decide(13, '0.30', ALLOWED, { principal_id: 'agent:b', call: 'three' }),
    ]),
  ];
}

/** A delegated grant that allows more than its parent. */
function unsound() {
  const bounds = { allowed_tools: ['pay'], meter_caps: meters({ usd: int(5) }) };
  return world({
    more: [(parent) => grant({ principal: 'agent:b', at: at(2), intent: INTENT, bounds, parent })],
  });
}

function delegated(above = {}, below = {}) {
  const bounds = { allowed_tools: ['pay'], meter_caps: meters({ usd: dec('0.50') }), ...below };
  return world({
    bounds: above,
    more: [(parent) => grant({ principal: 'agent:b', at: at(2), intent: INTENT, bounds, parent })],
  });
}

function imported() {
  const bounds = { allowed_tools: ['pay'], meter_caps: meters({ usd: int(5) }) };
  const source = { system: 'elsewhere', id: 'grant-1' };
  const draft = grant({ principal: AGENT, at: at(2), intent: INTENT, bounds, source });
  return world({ principal: 'agent:other', more: [() => draft] });
}

function makeRetries() {
  const keyed = { request_key: 'order-7' };
  const again = { decision: 'allow', recorded: false, event_id: ref('one') };
  const one = world();
  const first = decide(11, '0.50', ALLOWED, { ...keyed, save: 'one' });
  const once = { counts: [count(1, action('allow'))] };
  return [
    trace(
      'retry',
      'the same request again gets the answer that there is',
      one,
      [first, decide(12, '0.50', again, keyed), decide(13, '0.50', again, keyed)],
      once,
    ),
    trace(
      'retry-elsewhere',
      'the same request to another process',
      one,
      [openOther(), first, decide(12, '0.50', again, { ...keyed, handle: 'other' })],
      once,
    ),
    trace(
      'retry-other-params',
      'the same key with other parameters is a conflict, and is not recorded',
      one,
      [first, decide(12, '0.50', refused('REQUEST_CONFLICT'), { ...keyed, call: 'two' })],
      { counts: [count(1, action('allow')), count(0, action('deny'))] },
    ),
    trace(
      'retry-other-tool',
      'the same key with another tool',
      one,
      [first, decide(12, '0.50', refused('REQUEST_CONFLICT'), { ...keyed, tool_name: 'wire' })],
      once,
    ),
    trace(
      'retry-executed',
      'the same request after its execution',
      one,
      [
        first,
        start(12, 'one', DONE, { save: 'begun' }),
        settle(13, 'one', DONE, { from: 'begun' }),
        decide(14, '0.50', no('AUTHORIZATION_REUSED'), keyed),
      ],
      { counts: [count(1, action('allow')), executions(1)] },
    ),
    trace(
      'retry-released',
      'a release does not free its key',
      one,
      [
        first,
        release(12, 'one', DONE),
        decide(13, '0.50', no('AUTHORIZATION_REUSED'), keyed),
        decide(14, '0.50', ALLOWED, { request_key: 'order-7/2' }),
      ],
      { counts: [count(2, action('allow')), executions(1)] },
    ),
    trace(
      'retry-revoked',
      'the same request after a revocation',
      one,
      [first, revoke(12, one.grant, 'revoke', 'stop'), decide(13, '0.50', no('GRANT_REVOKED'), keyed)],
      once,
    ),
    trace(
      'retry-expired',
      'the same request after its action has expired',
      one,
      [
        decide(11, '0.50', ALLOWED, { ...keyed, expires_at: at(20) }),
        decide(20, '0.50', no('ACTION_EXPIRED', 'AUTHORIZATION_REUSED'), { ...keyed, expires_at: at(20) }),
      ],
      once,
    ),
    trace(
      'no-key',
      'without a key each request is one of its own',
      one,
      [
        decide(11, '0.50', ALLOWED),
        decide(12, '0.50', ALLOWED),
        decide(13, '0.50', denied('RESERVATION_OVER_CAP')),
      ],
      { counts: [count(2, action('allow'))] },
    ),
  ];
}

function makeLives() {
  const one = world();
  const first = decide(11, '0.50', ALLOWED, { save: 'one' });
  const begin = start(12, 'one', DONE, { save: 'begun' });
  return [
    trace(
      'life',
      'decided, begun, settled: what was not used is free again',
      one,
      [
        first,
        begin,
        settle(13, 'one', DONE, { from: 'begun', usd: '0.20' }),
        decide(14, '0.80', ALLOWED, { call: 'two' }),
        decide(15, '0.01', denied('RESERVATION_OVER_CAP'), { call: 'three' }),
      ],
      { counts: [executions(1), starts(1)] },
    ),
    trace(
      'start-expired',
      'an action that has expired is not begun',
      one,
      [
        decide(11, '0.50', ALLOWED, { save: 'one', expires_at: at(20) }),
        start(20, 'one', refused('ACTION_EXPIRED')),
      ],
      { counts: [starts(0)] },
    ),
    trace(
      'start-in-time',
      'an instant before it is',
      one,
      [decide(11, '0.50', ALLOWED, { save: 'one', expires_at: at(20) }), start(19, 'one', DONE)],
      { counts: [starts(1)] },
    ),
    trace(
      'start-denied',
      'what was denied is not begun',
      one,
      [
        decide(11, '1.01', denied('RESERVATION_OVER_CAP'), { save: 'one' }),
        start(12, 'one', refused('EXECUTION_UNDER_DENY')),
      ],
      { counts: [starts(0)] },
    ),
    trace(
      'start-other-params',
      'other parameters than those allowed',
      one,
      [first, start(12, 'one', refused('TOOL_PARAMS_MISMATCH'), { call: 'two' })],
      { counts: [starts(0)] },
    ),
    trace(
      'start-twice',
      'an action is begun once, whoever asks',
      one,
      [
        openOther(),
        first,
        begin,
        start(13, 'one', refused('AUTHORIZATION_STARTED', 'AUTHORIZATION_REUSED'), { handle: 'other' }),
      ],
      { counts: [starts(1)] },
    ),
    trace(
      'start-settled',
      'an action that was executed is not begun again',
      one,
      [
        first,
        begin,
        settle(13, 'one', DONE, { from: 'begun' }),
        start(14, 'one', refused('AUTHORIZATION_REUSED')),
      ],
      { counts: [starts(1), executions(1)] },
    ),
    trace(
      'released',
      'a release gives the reservation back',
      one,
      [
        first,
        decide(12, '0.60', denied('RESERVATION_OVER_CAP'), { call: 'two' }),
        release(13, 'one', DONE),
        decide(14, '1.00', ALLOWED, { call: 'three' }),
      ],
      { counts: [executions(1)] },
    ),
  ];
}

function makeApprovals() {
  const rule = { approvers: ['human:*'], tools: ['pay'] };
  const needing = world({ bounds: { approvals: [rule] } });
  const ada = openOther('ada', 'conformance ada', 'human:ada');
  const NEEDED = denied('APPROVAL_REQUIRED');
  const ask = (second, expect = NEEDED, more = {}) =>
    decide(second, '0.30', expect, { save: 'asked', ...more });
  const answer = (second, op, handle = 'ada') => ({
    op,
    input: { handle, now: at(second), request_event_id: ref('asked') },
    expect: DONE,
  });
  const above = world({ bounds: { approvals: [{ ...rule, above: meters({ usd: dec('0.30') }) }] } });
  return [
    trace(
      'approval',
      'asked for, given, and used once',
      needing,
      [ada, ask(11), answer(12, 'approve'), decide(13, '0.30', ALLOWED), decide(14, '0.30', NEEDED)],
      { counts: [count(1, action('allow')), count(1, { event_type: 'approval' })] },
    ),
    trace('approval-other-params', 'an approval is for its parameters alone', needing, [
      ada,
      ask(11),
      answer(12, 'approve'),
      decide(13, '0.30', NEEDED, { call: 'two' }),
      decide(14, '0.30', ALLOWED),
    ]),
    trace(
      'approval-withdrawn',
      'a reject takes an approval back that was not used',
      needing,
      [
        ada,
        ask(11),
        answer(12, 'approve'),
        answer(13, 'reject'),
        decide(14, '0.30', denied('APPROVAL_REQUIRED', 'APPROVAL_REJECTED')),
      ],
      { counts: [count(0, action('allow'))] },
    ),
    trace('approval-above', 'within the amounts of a rule nothing is asked', above, [
      decide(11, '0.30', ALLOWED),
      decide(12, '0.31', NEEDED, { call: 'two' }),
    ]),
    trace(
      'approval-race',
      'one approval, two processes: it is used once',
      needing,
      [
        ada,
        openOther(),
        ask(11),
        answer(12, 'approve'),
        race([decide(13, '0.30'), decide(13, '0.30', undefined, { handle: 'other' })], DECIDED),
      ],
      { counts: [count(1, action('allow'))] },
    ),
    trace(
      'approval-two-processes',
      'an approval that one process used is used up for the other',
      needing,
      [
        ...[ada, openOther(), ask(11), answer(12, 'approve')],
        decide(13, '0.30', ALLOWED, { handle: 'other' }),
        decide(14, '0.30', NEEDED),
        decide(15, '0.30', NEEDED, { handle: 'other' }),
      ],
      { counts: [count(1, action('allow'))] },
    ),
    trace(
      'approval-twice',
      'each approval serves once, whichever process asks',
      needing,
      [
        ...[ada, openOther(), ask(11), answer(12, 'approve'), answer(13, 'approve')],
        decide(14, '0.30', ALLOWED),
        decide(15, '0.30', ALLOWED, { handle: 'other' }),
        decide(16, '0.30', NEEDED),
      ],
      { counts: [count(2, action('allow'))] },
    ),
    trace(
      'approval-released',
      'a release does not give its approval back',
      needing,
      [
        ...[ada, ask(11), answer(12, 'approve')],
        decide(13, '0.30', ALLOWED, { save: 'one' }),
        release(14, 'one', DONE),
        decide(15, '0.30', NEEDED),
      ],
      { counts: [count(1, action('allow')), executions(1)] },
    ),
    trace(
      'approval-keyed',
      'the request that was denied is asked again under its key; then once more',
      needing,
      [
        ...[ada, ask(11, NEEDED, { request_key: 'order-7' }), answer(12, 'approve')],
        decide(13, '0.30', ALLOWED, { request_key: 'order-7', save: 'one' }),
        decide(
          14,
          '0.30',
          { decision: 'allow', recorded: false, event_id: ref('one') },
          {
            request_key: 'order-7',
          },
        ),
      ],
      { counts: [count(1, action('allow'))] },
    ),
    trace(
      'approval-died',
      'an approval is still there when the process that asked has died',
      needing,
      [
        ...[ada, ask(11), leave('gate'), answer(12, 'approve')],
        openOther('gate', 'conformance gate', 'service:gate', 13),
        decide(14, '0.30', ALLOWED),
        decide(15, '0.30', NEEDED),
      ],
      { counts: [count(1, action('allow'))] },
    ),
    trace(
      'approval-of-two',
      'two of a kind: the same person twice is one',
      world({
        bounds: { approvals: [{ ...rule, count: 2 }] },
        keys: [...KEYS, keyEntry(BEN, { principals: ['human:ben'], roles: ['event'] })],
      }),
      [
        ...[ada, openOther('ben', 'conformance ben', 'human:ben'), ask(11)],
        ...[answer(12, 'approve'), answer(13, 'approve')],
        decide(14, '0.30', NEEDED),
        answer(15, 'approve', 'ben'),
        decide(16, '0.30', ALLOWED),
        decide(17, '0.30', NEEDED),
      ],
      { counts: [count(1, action('allow')), count(3, { event_type: 'approval' })] },
    ),
    trace(
      'approval-by-itself',
      'nobody approves for itself, even where everybody may',
      world({ bounds: { approvals: [{ approvers: ['*'], tools: ['pay'] }] } }),
      [
        openOther('agent', 'conformance gate', AGENT),
        ask(11),
        { ...answer(12, 'approve', 'agent'), expect: { $oneOf: [DONE, { refused: { $type: 'string' } }] } },
        decide(13, '0.30', NEEDED),
      ],
      { counts: [count(0, action('allow'))] },
    ),
    trace(
      'approval-stale',
      'an approval in good time, and one that is too old',
      world({ bounds: { approvals: [{ ...rule, max_age_s: 5 }] } }),
      [ada, ask(11), answer(12, 'approve'), decide(17, '0.30', NEEDED)],
    ),
  ];
}

/** All at once: each is answered by `result`, in whatever order they come. */
function race(steps, result) {
  return {
    op: 'race',
    input: { requests: steps.map(({ op, input }) => ({ op, ...input })) },
    expect: { results: steps.map(() => result) },
  };
}

/** A withdrawal at every place in the life of an action. */
function makeWithdrawals() {
  const one = world();
  const made = [];
  for (const handle of ['gate', 'other']) {
    for (const inFlight of ['stop', 'finish']) {
      for (const place of [0, 1, 2, 3]) {
        const isStopped = inFlight === 'stop';
        const withdrawal = revoke(20, one.grant, 'revoke', inFlight, handle);
        const life = [
          decide(place === 0 ? 21 : 11, '0.50', place === 0 ? denied('GRANT_REVOKED') : ALLOWED, {
            save: 'one',
          }),
          ...(place === 0
            ? []
            : [
                start(
                  place === 1 ? 21 : 12,
                  'one',
                  place === 1 && isStopped ? refused('GRANT_REVOKED') : DONE,
                  { save: place === 1 && isStopped ? undefined : 'begun' },
                ),
              ]),
          ...(place === 0 || (place === 1 && isStopped)
            ? []
            : [settle(place === 3 ? 13 : 22, 'one', DONE, { from: 'begun' })]),
        ];
        made.push(
          trace(
            `revoke-${inFlight}-${handle === 'gate' ? 'here' : 'elsewhere'}-${['before', 'decided', 'begun', 'settled'][place]}`,
            `a revocation (${inFlight}) by ${handle === 'gate' ? 'the same' : 'another'} process ${['before all', 'after the decision', 'after the start', 'after the execution'][place]}`,
            one,
            [
              openOther(),
              ...life.slice(0, place),
              withdrawal,
              ...life.slice(place),
              decide(30, '0.01', denied('GRANT_REVOKED'), { call: 'last' }),
            ],
            { counts: [executions(place === 0 || (place === 1 && isStopped) ? 0 : 1)] },
          ),
        );
      }
    }
  }
  for (const handle of ['gate', 'other'])
    for (const inFlight of ['stop', 'finish'])
      for (const isBegun of [false, true]) made.push(makeSuspension(one, handle, inFlight, isBegun));
  const vain = { $oneOf: [DONE, { refused: { $type: 'string' } }] };
  made.push(
    trace('resume-revoked', 'a revocation is final', one, [
      revoke(11, one.grant, 'revoke', 'finish'),
      { ...revoke(12, one.grant, 'resume'), expect: vain },
      decide(13, '0.20', denied('GRANT_REVOKED')),
    ]),
    trace('suspend-revoke', 'a suspension that becomes a revocation', one, [
      decide(11, '0.20', ALLOWED, { save: 'one' }),
      revoke(12, one.grant, 'suspend', 'finish'),
      revoke(13, one.grant, 'revoke', 'stop'),
      { ...revoke(14, one.grant, 'resume'), expect: vain },
      start(15, 'one', refused('GRANT_REVOKED')),
      decide(16, '0.20', denied('GRANT_REVOKED'), { call: 'two' }),
    ]),
    trace('suspend-resume', 'a suspension that finishes, and its end', one, [
      decide(11, '0.20', ALLOWED, { save: 'one' }),
      revoke(12, one.grant, 'suspend', 'finish'),
      decide(13, '0.20', denied('GRANT_REVOKED'), { call: 'two' }),
      start(14, 'one', DONE),
      revoke(15, one.grant, 'resume'),
      decide(16, '0.20', ALLOWED, { call: 'three' }),
    ]),
    trace('suspend-stop-resume', 'what a stop met is not revived', one, [
      decide(11, '0.20', ALLOWED, { save: 'one' }),
      revoke(12, one.grant, 'suspend', 'stop'),
      revoke(13, one.grant, 'resume'),
      start(14, 'one', refused('GRANT_REVOKED')),
      release(15, 'one', DONE),
      decide(16, '0.20', ALLOWED, { call: 'two' }),
    ]),
    trace('revoke-parent', 'what hangs below a revoked grant is revoked', delegated(), [
      revoke(11, delegated().grant, 'revoke', 'stop'),
      decide(12, '0.10', denied('GRANT_REVOKED'), { principal_id: 'agent:b' }),
    ]),
  );
  return made;
}

function makeSuspension(one, handle, inFlight, isBegun) {
  const isStopped = inFlight === 'stop' && !isBegun;
  const begin = (second, expect) =>
    start(second, 'one', expect, { save: expect === DONE ? 'begun' : undefined });
  return trace(
    `suspend-${inFlight}-${handle === 'gate' ? 'here' : 'elsewhere'}-${isBegun ? 'begun' : 'decided'}`,
    `a suspension (${inFlight}) by ${handle === 'gate' ? 'the same' : 'another'} process after the ${isBegun ? 'start' : 'decision'}, and its end`,
    one,
    [
      openOther(),
      decide(11, '0.20', ALLOWED, { save: 'one' }),
      ...(isBegun ? [begin(12, DONE)] : []),
      revoke(13, one.grant, 'suspend', inFlight, handle),
      decide(14, '0.20', denied('GRANT_REVOKED'), { call: 'two' }),
      ...(isBegun ? [] : [begin(15, isStopped ? refused('GRANT_REVOKED') : DONE)]),
      ...(isStopped
        ? []
        : [settle(16, 'one', DONE, { usd: '0.20', from: 'begun', ...timed(isBegun ? 12 : 15) })]),
      revoke(17, one.grant, 'resume', undefined, handle),
      ...(isStopped ? [begin(18, refused('GRANT_REVOKED')), release(19, 'one', DONE)] : []),
      decide(20, isStopped ? '1.00' : '0.80', ALLOWED, { call: 'three' }),
    ],
    { counts: [count(2, action('allow')), executions(1), starts(isStopped ? 0 : 1)] },
  );
}

function permute(items) {
  if (items.length < 2) return [items];
  return items.flatMap((item, index) =>
    permute([...items.slice(0, index), ...items.slice(index + 1)]).map((rest) => [item, ...rest]),
  );
}

function makeRaces() {
  const one = world();
  const made = [];
  const asks = [
    { name: 'a', usd: 60, handle: 'gate' },
    { name: 'b', usd: 50, handle: 'other' },
    { name: 'c', usd: 40, handle: 'gate' },
  ];
  for (const order of permute(asks)) {
    let left = 100;
    const steps = order.map(({ name, usd, handle }, index) => {
      const fits = usd <= left;
      if (fits) left -= usd;
      return decide(11 + index, `0.${usd}`, fits ? ALLOWED : denied('RESERVATION_OVER_CAP'), {
        call: name,
        handle,
      });
    });
    const names = order.map(({ name }) => name).join('');
    made.push(
      trace(`order-${names}`, 'two processes ask for more than there is: who comes first gets it', one, [
        openOther(),
        ...steps,
      ]),
    );
  }
  const handles = ['gate', 'other', 'third'];
  const five = [0, 1, 2, 3, 4].map((index) =>
    decide(11, '0.30', undefined, { call: `call-${index}`, handle: handles[index % 3] }),
  );
  const keyed = handles.map((handle) => decide(11, '0.30', undefined, { handle, request_key: 'once' }));
  const first = decide(11, '0.50', ALLOWED, { save: 'one' });
  const begins = handles.map((handle) => start(12, 'one', undefined, { handle }));
  const others = [openOther(), openOther('third')];
  made.push(
    trace('race-cap', 'five at once of whom three fit', one, [...others, race(five, DECIDED)], {
      counts: [count(3, action('allow')), count(2, action('deny'))],
    }),
    trace(
      'race-key',
      'one request key at three processes at once: one action',
      one,
      [...others, race(keyed, { ...DONE, decision: 'allow' })],
      { counts: [count(1, action('allow'))] },
    ),
    trace(
      'race-start',
      'one action begun at three processes at once: one start',
      one,
      [
        ...others,
        first,
        race(begins, { $oneOf: [DONE, refused('AUTHORIZATION_STARTED', 'AUTHORIZATION_REUSED')] }),
      ],
      {
        counts: [starts(1)],
      },
    ),
  );
  return made;
}

const calls = (n) => ({ 'calls.per_10s': int(n) });
const RATE = denied('RATE_LIMIT_EXCEEDED');

/** A call from its decision to its settlement, all in one second. */
function whole(second, name, usd = '0.01', { handle = 'gate', ...more } = {}) {
  return [
    decide(second, usd, ALLOWED, { call: name, save: name, handle, ...more }),
    start(second, name, DONE, { call: name, save: `${name}-begun`, handle }),
    settle(second, name, DONE, { call: name, usd, from: `${name}-begun`, handle, ...timed(second) }),
  ];
}

const timed = (from) => ({ started_at: at(from) });

/** A window is (t − length, t]: what began at its first instant is out of it. */
function makeRates() {
  const two = world({ bounds: { rate_limits: meters(calls(2)) } });
  const money = world({ bounds: { rate_limits: meters({ 'usd.per_min': dec('0.50') }) } });
  const both = world({
    bounds: { rate_limits: meters({ 'calls.per_5s': int(1), 'calls.per_min': int(2) }) },
  });
  const late = world({ bounds: { rate_limits: meters(calls(1)) } });
  const parent = delegated({ rate_limits: meters(calls(2)) }, { rate_limits: meters(calls(2)) });
  return [
    trace(
      'rate-edge',
      'two calls in ten seconds: at the end of the window the first no longer counts',
      two,
      [
        ...whole(11, 'a'),
        ...whole(12, 'b'),
        decide(13, '0.01', RATE, { call: 'c' }),
        decide(20, '0.01', RATE, { call: 'd' }),
        ...whole(21, 'e'),
        decide(21, '0.01', RATE, { call: 'f' }),
        ...whole(22, 'g'),
      ],
      { counts: [executions(4), count(3, action('deny'))] },
    ),
    trace(
      'rate-same-instant',
      'two at one instant are two, whoever decides',
      two,
      [
        openOther(),
        ...whole(11, 'a'),
        ...whole(11, 'b', '0.01', { handle: 'other' }),
        decide(11, '0.01', RATE, { call: 'c' }),
        decide(11, '0.01', RATE, { call: 'd', handle: 'other' }),
      ],
      { counts: [executions(2)] },
    ),
    trace(
      'rate-amount',
      'an amount per minute: up to the limit, and not beyond; what was used counts, not what was reserved',
      money,
      [
        decide(10, '0.40', ALLOWED, { call: 'a', save: 'a' }),
        start(10, 'a', DONE, { call: 'a', save: 'a-begun' }),
        settle(10, 'a', DONE, { call: 'a', usd: '0.20', from: 'a-begun', ...timed(10) }),
        ...whole(20, 'b', '0.30'),
        decide(30, '0.01', RATE, { call: 'c' }),
        decide(69, '0.01', RATE, { call: 'd' }),
        ...whole(70, 'e', '0.20'),
        decide(70, '0.01', RATE, { call: 'f' }),
      ],
      { counts: [executions(3)] },
    ),
    trace(
      'rate-two-windows',
      'a short window and a long one',
      both,
      [
        ...whole(10, 'a'),
        decide(14, '0.01', RATE, { call: 'b' }),
        ...whole(15, 'c'),
        decide(20, '0.01', RATE, { call: 'd' }),
        decide(69, '0.01', RATE, { call: 'e' }),
        ...whole(70, 'f'),
      ],
      { counts: [executions(3)] },
    ),
    trace(
      'rate-release',
      'a release counts in no rate',
      late,
      [
        decide(11, '0.01', ALLOWED, { call: 'a', save: 'a' }),
        release(12, 'a', DONE, { call: 'a' }),
        ...whole(13, 'b'),
        decide(14, '0.01', RATE, { call: 'c' }),
      ],
      { counts: [executions(2)] },
    ),
    trace(
      'rate-failed',
      'a call that failed counts as one that did not',
      late,
      [
        decide(11, '0.01', ALLOWED, { call: 'a', save: 'a' }),
        start(11, 'a', DONE, { call: 'a', save: 'a-begun' }),
        settle(11, 'a', DONE, {
          ...{ call: 'a', from: 'a-begun', usd: '0.00', outcome: 'failure', error_code: 'BROKE' },
          ...timed(11),
        }),
        decide(20, '0.01', RATE, { call: 'b' }),
        ...whole(21, 'c'),
      ],
      { counts: [executions(2)] },
    ),
    trace(
      'rate-above',
      'a rate of a grant holds for what is done below it',
      parent,
      [
        ...whole(11, 'a'),
        ...whole(12, 'b', '0.01', { principal_id: 'agent:b' }),
        decide(13, '0.01', RATE, { call: 'c', principal_id: 'agent:b' }),
        ...whole(21, 'd', '0.01', { principal_id: 'agent:b' }),
      ],
      { counts: [executions(3)] },
    ),
  ];
}

/** The orders in which calls begin and end, each as `a` (begins) and `A` (ends), the first to begin first. */
function ordersOf(n) {
  const names = [...'abc'].slice(0, n);
  const made = [];
  const extend = (order, begun, running) => {
    if (order.length === 2 * n) made.push(order);
    if (begun < n) extend([...order, names[begun]], begun + 1, [...running, names[begun]]);
    for (const name of running)
      extend(
        [...order, name.toUpperCase()],
        begun,
        running.filter((each) => each !== name),
      );
  };
  extend([], 0, []);
  return made;
}

/** In every order of starts and ends: who begins while as many run as may is refused, by the decision or by the start. */
function makeConcurrency() {
  const OVER = 'CONCURRENCY_EXCEEDED';
  const made = [];
  for (const [limit, n] of [
    [1, 2],
    [2, 3],
  ]) {
    const one = world({ bounds: { concurrency_limit: int(limit) } });
    for (const order of ordersOf(n)) {
      const running = new Set();
      const refusals = new Set();
      const steps = [];
      const begins = {};
      for (const [index, sign] of order.entries()) {
        const name = sign.toLowerCase();
        const second = 11 + index;
        const handle = index % 2 === 0 ? 'gate' : 'other';
        if (sign === name) {
          begins[name] = second;
          const fits = running.size < limit;
          if (fits) running.add(name);
          else refusals.add(name);
          const decided = fits ? ALLOWED : { $oneOf: [ALLOWED, denied(OVER)] };
          steps.push(decide(second, '0.10', decided, { call: name, save: name, handle }));
          steps.push(
            start(second, name, fits ? DONE : refused(OVER, 'EXECUTION_UNDER_DENY'), {
              ...{ call: name, handle },
              ...(fits && { save: `${name}-begun` }),
            }),
          );
        } else if (running.delete(name)) {
          const how = { call: name, usd: '0.10', from: `${name}-begun`, handle, ...timed(begins[name]) };
          steps.push(settle(second, name, DONE, how));
        }
      }
      made.push(
        trace(
          `concurrency-${limit}-${order.join('')}`,
          `at most ${limit} at once: ${n} calls that two processes begin (a) and end (A)`,
          one,
          [openOther(), ...steps],
          { counts: [starts(n - refusals.size), executions(n - refusals.size)] },
        ),
      );
    }
  }
  const below = delegated({ concurrency_limit: int(1) }, { concurrency_limit: int(1) });
  made.push(
    trace(
      'concurrency-above',
      'a limit of a grant holds for what runs below it',
      below,
      [
        decide(11, '0.10', ALLOWED, { call: 'a', save: 'a' }),
        start(11, 'a', DONE, { call: 'a', save: 'a-begun' }),
        decide(
          12,
          '0.10',
          { $oneOf: [ALLOWED, denied(OVER)] },
          { call: 'b', save: 'b', principal_id: 'agent:b' },
        ),
        start(12, 'b', refused(OVER, 'EXECUTION_UNDER_DENY'), { call: 'b' }),
        settle(13, 'a', DONE, { call: 'a', usd: '0.10', from: 'a-begun', ...timed(11) }),
        ...whole(13, 'c', '0.10', { principal_id: 'agent:b' }),
      ],
      { counts: [starts(2), executions(2)] },
    ),
  );
  return made;
}

const B = { principal_id: 'agent:b' };

function handOn(second, grantId, usd, expect, { save, handle = 'gate', to = 'agent:b', ...more } = {}) {
  const input = {
    handle,
    now: at(second),
    grant_event_id: grantId,
    principal_id: to,
    meter_caps: meters({ usd: dec(usd) }),
    ...more,
  };
  return { op: 'delegate', input, expect, ...(save && { save: { [save]: 'event_id' } }) };
}

/** Grants that the decider hands on, under one that it has. */
function makeDelegations() {
  const one = world();
  const OVER = denied('RESERVATION_OVER_CAP');
  const WIDER = refused('DELEGATION_EXCEEDED');
  const grants = (n) => count(n, { event_type: 'authorization', authorization: { kind: 'grant' } });
  return [
    trace(
      'delegate',
      'what is handed on is held to its own cap, and to that above',
      one,
      [
        handOn(11, one.grant, '0.50', DONE, { save: 'below' }),
        decide(12, '0.51', OVER, { call: 'a', ...B }),
        decide(13, '0.50', ALLOWED, { call: 'b', ...B }),
        decide(14, '0.51', OVER, { call: 'c' }),
        decide(15, '0.50', ALLOWED, { call: 'd' }),
      ],
      { counts: [grants(1), count(2, action('allow'))] },
    ),
    trace(
      'delegate-two',
      'two grants below one share what it has, in the order in which it is asked for',
      one,
      [
        handOn(11, one.grant, '0.70', DONE),
        handOn(12, one.grant, '0.70', DONE, { to: 'agent:c' }),
        decide(13, '0.70', ALLOWED, { call: 'a', ...B }),
        decide(14, '0.31', OVER, { call: 'b', principal_id: 'agent:c' }),
        decide(15, '0.30', ALLOWED, { call: 'c', principal_id: 'agent:c' }),
        decide(16, '0.01', OVER, { call: 'd' }),
      ],
      { counts: [grants(2), count(2, action('allow'))] },
    ),
    trace('delegate-wider', 'more than there is above is not handed on', one, [
      handOn(11, one.grant, '1.01', WIDER),
      handOn(12, one.grant, '0.50', WIDER, { allowed_tools: ['pay', 'wire'] }),
      decide(13, '0.10', { decision: 'deny', recorded: true }, { call: 'a', ...B }),
    ]),
    trace(
      'delegate-later',
      'nor for longer',
      world({ bounds: { expires_at: at(40) } }),
      [
        handOn(11, world({ bounds: { expires_at: at(40) } }).grant, '0.50', WIDER, { expires_at: at(41) }),
        handOn(12, world({ bounds: { expires_at: at(40) } }).grant, '0.50', DONE, { expires_at: at(30) }),
        decide(29, '0.10', ALLOWED, { call: 'a', ...B }),
        decide(30, '0.10', denied('GRANT_EXPIRED'), { call: 'b', ...B }),
      ],
      { counts: [grants(1)] },
    ),
    trace(
      'delegate-deep',
      'nor deeper than it may be',
      world({ bounds: { max_delegation_depth: 1 } }),
      [
        handOn(11, world({ bounds: { max_delegation_depth: 1 } }).grant, '0.50', DONE, { save: 'below' }),
        handOn(12, ref('below'), '0.20', WIDER, { to: 'agent:c' }),
      ],
      { counts: [grants(1)] },
    ),
    trace(
      'delegate-revoked-above',
      'a revocation above meets what hangs below, and a new grant there',
      one,
      [
        openOther(),
        handOn(11, one.grant, '0.50', DONE, { save: 'below' }),
        decide(12, '0.10', ALLOWED, { call: 'a', save: 'a', ...B }),
        revoke(13, one.grant, 'revoke', 'stop', 'other'),
        start(14, 'a', refused('GRANT_REVOKED'), { call: 'a' }),
        handOn(15, one.grant, '0.10', refused('GRANT_REVOKED'), { to: 'agent:c' }),
        decide(16, '0.10', denied('GRANT_REVOKED'), { call: 'b', ...B }),
        release(17, 'a', DONE, { call: 'a' }),
      ],
      { counts: [grants(1), starts(0), executions(1)] },
    ),
    trace(
      'delegate-revoked-below',
      'a revocation below leaves what is above',
      one,
      [
        handOn(11, one.grant, '0.50', DONE, { save: 'below' }),
        decide(12, '0.40', ALLOWED, { call: 'a', save: 'a', ...B }),
        revoke(13, ref('below'), 'revoke', 'stop'),
        decide(14, '0.10', denied('GRANT_REVOKED'), { call: 'b', ...B }),
        decide(15, '0.61', OVER, { call: 'c' }),
        release(16, 'a', DONE, { call: 'a' }),
        decide(17, '1.00', ALLOWED, { call: 'd' }),
      ],
      { counts: [count(2, action('allow')), executions(1)] },
    ),
  ];
}

const leave = (handle) => ({ op: 'leave', input: { handle }, expect: { refused: null } });

/** A process dies between two steps, and another one goes on. */
function makeDeaths() {
  const one = world();
  const OVER = denied('RESERVATION_OVER_CAP');
  const keyed = { request_key: 'order-7' };
  const first = decide(11, '0.60', ALLOWED, { save: 'one', ...keyed });
  const again = { decision: 'allow', recorded: false, event_id: ref('one') };
  const back = (second) => openOther('gate', 'conformance gate', 'service:gate', second);
  const timely = { ...keyed, expires_at: at(20) };
  const made = [
    trace(
      'died-decided',
      'after the decision: it is still there, and who asks again gets it and can begin',
      one,
      [
        first,
        leave('gate'),
        back(12),
        decide(13, '0.41', OVER, { call: 'two' }),
        decide(14, '0.60', again, keyed),
        start(15, 'one', DONE, { save: 'begun' }),
        settle(16, 'one', DONE, { usd: '0.60', from: 'begun' }),
      ],
      { counts: [count(1, action('allow')), starts(1), executions(1)] },
    ),
    trace(
      'died-begun',
      'after the start: what was reserved stays taken, and nobody begins it again unasked',
      one,
      [
        first,
        start(12, 'one', DONE, { save: 'begun' }),
        leave('gate'),
        back(13),
        decide(14, '0.41', OVER, { call: 'two' }),
        start(15, 'one', refused('AUTHORIZATION_STARTED', 'AUTHORIZATION_REUSED')),
        settle(16, 'one', DONE, { usd: '0.60', from: 'begun', outcome: 'unknown', ...timed(12) }),
        decide(17, '0.40', ALLOWED, { call: 'three' }),
      ],
      { counts: [count(2, action('allow')), starts(1), executions(1)] },
    ),
    trace(
      'died-begun-unknown',
      'what was begun and never ended is settled as unknown, and is used as it was reserved',
      one,
      [
        first,
        start(12, 'one', DONE, { save: 'begun' }),
        leave('gate'),
        back(13),
        settle(14, 'one', DONE, { from: 'begun', outcome: 'unknown', meter_used: [], ...timed(12) }),
        decide(15, '0.41', OVER, { call: 'two' }),
        decide(16, '0.60', no('AUTHORIZATION_REUSED'), keyed),
      ],
      { counts: [executions(1)] },
    ),
    trace(
      'died-expired',
      'after the decision, until it expired: a sweep gives back what was reserved',
      one,
      [
        decide(11, '0.60', ALLOWED, { save: 'one', ...timely }),
        leave('gate'),
        back(12),
        sweep(19, []),
        decide(19, '0.41', OVER, { call: 'two' }),
        sweep(20, ['one']),
        decide(21, '1.00', ALLOWED, { call: 'three' }),
        sweep(22, []),
      ],
      { counts: [executions(1)] },
    ),
    trace(
      'died-expired-begun',
      'what was begun is not swept, however late',
      one,
      [
        decide(11, '0.60', ALLOWED, { save: 'one', ...timely }),
        start(12, 'one', DONE, { save: 'begun' }),
        leave('gate'),
        back(50),
        sweep(50, []),
        decide(51, '0.41', OVER, { call: 'two' }),
        settle(52, 'one', DONE, { usd: '0.10', from: 'begun', ...timed(12) }),
        decide(53, '0.90', ALLOWED, { call: 'three' }),
      ],
      { counts: [executions(1)] },
    ),
    trace(
      'late-settled',
      'a settlement after the grant and the action have expired',
      world({ bounds: { expires_at: at(20) } }),
      [
        decide(11, '0.60', ALLOWED, { save: 'one', ...timely }),
        start(19, 'one', DONE, { save: 'begun' }),
        settle(40, 'one', DONE, { usd: '0.60', from: 'begun', ...timed(19) }),
        decide(41, '0.10', denied('GRANT_EXPIRED'), { call: 'two' }),
      ],
      { counts: [executions(1)] },
    ),
    trace(
      'late-release-of-started',
      'a release of what was begun gives nothing back',
      one,
      [
        first,
        start(12, 'one', DONE, { save: 'begun' }),
        settle(
          13,
          'one',
          { $oneOf: [DONE, refused('RELEASE_OF_STARTED', 'AUTHORIZATION_STARTED')] },
          {
            ...{ from: 'begun', outcome: 'failure', error_code: 'ABANDONED', meter_used: [] },
          },
        ),
        decide(14, '0.41', OVER, { call: 'two' }),
      ],
      {},
    ),
  ];
  return made;
}

function sweep(second, names) {
  const input = { handle: 'gate', now: at(second) };
  return { op: 'sweep', input, expect: { released: names.map(ref) } };
}

/** Who decides signs: what its key may not sign is not decided. */
function makeKeys() {
  const FORBIDDEN = refused('KEY_NOT_FOR_ROLE', 'KEY_NOT_FOR_PRINCIPAL', 'KEY_NOT_VALID_HERE', 'KEY_UNKNOWN');
  const owner = keyEntry(OWNER, { roles: ['authority', 'admin'] });
  const ada = keyEntry(ADA, { principals: ['human:ada'], roles: ['event'] });
  const apart = world({
    keys: [owner, keyEntry(GATE, { principals: ['agent:*', 'service:*'], roles: ['event'] }), ada],
    by: [OWNER],
  });
  const narrow = world({
    keys: [owner, keyEntry(GATE, { principals: ['agent:b'], roles: ['event'] }), ada],
    by: [OWNER],
  });
  const keyEvent = (change, key, second) => ({
    event_type: 'key',
    action: change,
    key,
    occurred_at: at(second),
    principal_id: 'service:ledger',
  });
  const gone = world({
    keys: [owner, keyEntry(GATE, { roles: ['event'] })],
    by: [OWNER],
    more: [() => keyEvent('revoke', keyEntry(GATE, { roles: ['event'] }), 2)],
  });
  const added = world({
    keys: [owner],
    by: [OWNER],
    more: [() => keyEvent('add', keyEntry(GATE, { roles: ['event'] }), 2)],
  });
  const forbidden = (step) => ({ ...step, expect: FORBIDDEN });
  return [
    trace(
      'key-of-a-decider',
      'a key that may act for agents decides for them; it makes no grants, and withdraws none',
      apart,
      [
        decide(11, '0.30', ALLOWED, { save: 'one' }),
        forbidden(revoke(12, apart.grant, 'revoke', 'stop')),
        forbidden(revoke(13, apart.grant, 'suspend', 'stop')),
        decide(14, '0.70', ALLOWED, { call: 'two' }),
        start(15, 'one', DONE, { save: 'begun' }),
        settle(16, 'one', DONE, { usd: '0.30', from: 'begun', ...timed(15) }),
      ],
      { counts: [count(0, { event_type: 'revocation' }), executions(1)] },
    ),
    trace('key-delegates', 'a key of the grantee hands its grant on', apart, [
      handOn(11, apart.grant, '0.50', DONE),
      decide(12, '0.50', ALLOWED, B),
    ]),
    trace('key-of-another', 'a key that does not cover the principal', narrow, [
      decide(11, '0.30', FORBIDDEN),
      forbidden(handOn(12, narrow.grant, '0.50', DONE)),
    ]),
    trace('key-gone', 'a key that was revoked before', gone, [decide(11, '0.30', FORBIDDEN)]),
    trace('key-added', 'a key that was added', added, [...whole(11, 'a', '0.30')], {
      counts: [executions(1)],
    }),
  ];
}

const SLICE = 'northroot.slice';
const sliced = (n) => count(n, { event_type: 'execution', tool_name: SLICE });
const CAPPED = denied('RESERVATION_OVER_CAP');

function setAside(
  second,
  { grant: id },
  child,
  usd,
  expect,
  { save, key = 'slice-1', handle = 'gate', ...more } = {},
) {
  const input = {
    handle,
    now: at(second),
    grant_event_id: id,
    ledger_id: child.id,
    meter_caps: meters({ usd: dec(usd) }),
    request_key: key,
    ...more,
  };
  return { op: 'slice', input, expect, ...(save && { save: { [save]: 'event_id' } }) };
}

/** Amounts that the ledger of `gate` sets aside, and that of `child` spends. */
function makeSlices() {
  const parent = world({ bounds: { allowed_tools: ['pay', SLICE] } });
  const child = makeChild('child');
  const stranger = makeChild('stranger');
  const spend = (second, name, expect, { save, ...more } = {}) => ({
    op: 'spend',
    input: {
      ...{ handle: 'child', now: at(second), allowed_tools: ['pay'] },
      slice: { ledger_id: parent.id, event_id: ref(name) },
      ...more,
    },
    expect,
    ...(save && { save: { [save]: 'event_id' } }),
  });
  const end = (second, expect = DONE) => ({
    op: 'settle-slice',
    input: { handle: 'gate', child: 'child', now: at(second) },
    expect,
  });
  const inChild = { handle: 'child' };
  const open = setAside(11, parent, child, '0.60', ALLOWED, { save: 'slice' });
  const take = spend(12, 'slice', DONE);
  const made = (name, about, steps, counts, own = [], world = parent) =>
    trace(`slice-${name}`, about, world, steps, { counts }, { ...child, counts: own });
  const everything = world({ bounds: { allowed_tools: ['*'] } });
  const brief = world({ bounds: { allowed_tools: ['pay', SLICE], expires_at: at(40) } });
  return [
    made(
      'whole',
      'set aside, spent in another ledger, settled: what was not used is free again',
      [
        open,
        decide(12, '0.41', CAPPED, { call: 'a' }),
        take,
        decide(13, '0.61', CAPPED, { call: 'b', ...inChild }),
        ...whole(14, 'c', '0.20', inChild),
        decide(15, '0.41', CAPPED, { call: 'd', ...inChild }),
        end(20),
        decide(21, '0.81', CAPPED, { call: 'e' }),
        decide(22, '0.80', ALLOWED, { call: 'f' }),
        decide(23, '0.10', denied('GRANT_REVOKED'), { call: 'g', ...inChild }),
      ],
      [sliced(1), count(2, action('allow'))],
      [executions(1)],
    ),
    made(
      'over',
      'more than there is is not set aside, nor beside what is',
      [
        setAside(11, parent, child, '1.01', CAPPED),
        decide(12, '0.50', ALLOWED, { call: 'a' }),
        setAside(13, parent, child, '0.51', CAPPED, { key: 'slice-2' }),
        setAside(14, parent, child, '0.50', ALLOWED, { key: 'slice-3' }),
      ],
      [count(2, action('allow'))],
    ),
    made(
      'no-wildcard',
      'a grant of every tool is none of slices',
      [setAside(11, everything, child, '0.10', denied('TOOL_NOT_ALLOWED'))],
      [count(0, action('allow'))],
      [],
      everything,
    ),
    made(
      'again',
      'asked for again under its key, there is one slice, and one grant of it',
      [
        open,
        setAside(12, parent, child, '0.60', { decision: 'allow', recorded: false, event_id: ref('slice') }),
        spend(13, 'slice', DONE, { save: 'grant' }),
        spend(14, 'slice', {
          $oneOf: [{ event_id: ref('grant'), recorded: false }, refused('SLICE_REUSED')],
        }),
        decide(15, '0.60', ALLOWED, { call: 'a', ...inChild }),
        decide(16, '0.01', CAPPED, { call: 'b', ...inChild }),
      ],
      [count(1, action('allow'))],
      [count(1, { event_type: 'authorization', authorization: { kind: 'grant' } })],
    ),
    made(
      'exceeded',
      'the other ledger grants no more than was set aside',
      [
        open,
        spend(12, 'slice', refused('SLICE_EXCEEDED'), { meter_caps: meters({ usd: dec('0.61') }) }),
        spend(13, 'slice', DONE, { meter_caps: meters({ usd: dec('0.40') }) }),
        decide(14, '0.41', CAPPED, { call: 'a', ...inChild }),
        decide(15, '0.40', ALLOWED, { call: 'b', ...inChild }),
      ],
      [],
    ),
    made(
      'in-time',
      'nor for longer, and a slice ends with its grant',
      [
        setAside(11, brief, child, '0.60', refused('SLICE_EXCEEDED'), { expires_at: at(41) }),
        setAside(12, brief, child, '0.60', ALLOWED, { save: 'slice', expires_at: at(30) }),
        spend(13, 'slice', refused('SLICE_EXCEEDED'), { expires_at: at(31) }),
        spend(14, 'slice', DONE),
        decide(29, '0.10', ALLOWED, { call: 'a', ...inChild }),
        decide(30, '0.10', denied('GRANT_EXPIRED'), { call: 'b', ...inChild }),
      ],
      [],
      [],
      brief,
    ),
    made(
      'of-another',
      'a slice for another ledger is not spent here',
      [
        setAside(11, parent, stranger, '0.60', ALLOWED, { save: 'slice' }),
        spend(12, 'slice', refused('LEDGER_MISMATCH', 'SLICE_MISMATCH')),
        decide(13, '0.10', { decision: 'deny', recorded: true }, { call: 'a', ...inChild }),
      ],
      [],
    ),
    made(
      'kept',
      'what was set aside is not given back by a release, nor by time',
      [
        setAside(11, parent, child, '0.60', ALLOWED, { save: 'slice', expires_at: at(20) }),
        release(12, 'slice', { refused: { $type: 'string' } }),
        sweep(30, []),
        decide(31, '0.41', CAPPED, { call: 'a' }),
      ],
      [executions(0)],
    ),
    made(
      'open',
      'nothing is settled while something runs; then it is',
      [
        open,
        take,
        decide(13, '0.30', ALLOWED, { call: 'a', save: 'a', ...inChild }),
        start(14, 'a', DONE, { call: 'a', save: 'begun', ...inChild }),
        end(15, refused('SLICE_OPEN')),
        decide(16, '0.41', CAPPED, { call: 'b' }),
        settle(17, 'a', DONE, { call: 'a', usd: '0.30', from: 'begun', ...inChild, ...timed(14) }),
        end(18),
        decide(19, '0.70', ALLOWED, { call: 'c' }),
      ],
      [sliced(1)],
      [executions(1)],
    ),
    made(
      'not-begun',
      'what was allowed and not begun is released by the settlement',
      [
        open,
        take,
        decide(13, '0.30', ALLOWED, { call: 'a', save: 'a', ...inChild }),
        end(15),
        start(16, 'a', { refused: { $type: 'string' } }, { call: 'a', ...inChild }),
        decide(17, '1.00', ALLOWED, { call: 'c' }),
      ],
      [sliced(1)],
      [executions(1), starts(0)],
    ),
    made(
      'settled-twice',
      'a slice is settled once',
      [open, take, end(15), end(16, { refused: null, recorded: false })],
      [sliced(1)],
    ),
    made(
      'revoked-above',
      'a revocation does not cross: the other ledger goes on with what it has, and is settled',
      [
        open,
        take,
        revoke(13, parent.grant, 'revoke', 'stop'),
        setAside(14, parent, child, '0.10', denied('GRANT_REVOKED'), { key: 'slice-2' }),
        ...whole(15, 'a', '0.60', inChild),
        end(16),
      ],
      [sliced(1)],
      [executions(1)],
    ),
    made(
      'died',
      'each process dies between two steps, and another goes on',
      [
        open,
        leave('gate'),
        openOther('gate', 'conformance gate', 'service:gate', 12),
        setAside(13, parent, child, '0.60', { decision: 'allow', recorded: false, event_id: ref('slice') }),
        spend(14, 'slice', DONE),
        ...whole(15, 'a', '0.10', inChild),
        decide(16, '0.91', CAPPED, { call: 'b' }),
        end(17),
        leave('gate'),
        openOther('gate', 'conformance gate', 'service:gate', 18),
        end(19, { refused: null, recorded: false }),
        decide(20, '0.90', ALLOWED, { call: 'c' }),
      ],
      [sliced(1)],
      [executions(1)],
    ),
    made(
      'race',
      'two slices set aside at once of which one fits',
      [
        openOther(),
        race(
          [
            setAside(11, parent, child, '0.60', undefined),
            setAside(11, parent, child, '0.60', undefined, { key: 'slice-2', handle: 'other' }),
          ],
          DECIDED,
        ),
        decide(12, '0.41', CAPPED, { call: 'a' }),
      ],
      [count(1, action('allow')), starts(1)],
    ),
  ];
}

/** A ledger that has nothing yet. */
function makeChild(name) {
  const ledger = new FixtureLedger([GATE]);
  ledger.append(genesis(`conformance.example/${name}`, at(0), KEYS, { signing: SIGNING }));
  return { bytes: ledger.bytes, id: text(ledger.ledgerId) };
}
