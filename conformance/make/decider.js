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
const AGENT = 'agent:a';
const INTENT = 'buy';
const at = (second) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;
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
  ];
}

/** A ledger with one grant; what is given is added to its bounds. */
function world({ bounds = {}, principal = AGENT, more = [] } = {}) {
  const ledger = new FixtureLedger([GATE]);
  const signing = { binding: 'required', checkpoints: 'optional', events: 'required' };
  const keys = [keyEntry(GATE), keyEntry(ADA, { principals: ['human:ada'], roles: ['event'] })];
  ledger.append(genesis('conformance.example/decider', at(0), keys, { signing }));
  const allowed = { allowed_tools: ['pay'], meter_caps: meters({ usd: int(1) }) };
  const draft = grant({ principal, at: at(1), intent: INTENT, bounds: { ...allowed, ...bounds } });
  const id = ledger.append(draft, { bind: true });
  const others = more.map((make) => text(ledger.append(make(id), { bind: true })));
  return { bytes: ledger.bytes, grant: text(id), others };
}

const isGate = { handle: 'gate' };

function trace(name, about, { bytes }, steps, ledger = {}) {
  const open = {
    op: 'open',
    input: {
      ...isGate,
      now: at(10),
      secret: secretOf('conformance gate'),
      principal_id: 'service:gate',
      ledger: { name: 'ledger.jsonl', bytes: base64(bytes) },
    },
    expect: { records: bytes.toString().split('\n').length - 1 },
  };
  const close = { op: 'close', input: {}, expect: { ledger: { begins: base64(bytes), ...ledger } } };
  return { id: `decider/${name}`, about, steps: [open, ...steps, close] };
}

/** A further handle on the same ledger: another process. */
function openOther(handle = 'other', secret = 'conformance gate', principal = 'service:gate') {
  const input = { handle, of: 'gate', now: at(10), secret: secretOf(secret), principal_id: principal };
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

function delegated() {
  const bounds = { allowed_tools: ['pay'], meter_caps: meters({ usd: dec('0.50') }) };
  return world({
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
  made.push(
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
