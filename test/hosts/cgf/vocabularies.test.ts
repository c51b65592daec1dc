/** Vocabularies of which there is no recording: small logs made after the documents and the adapters' own order of events. */

import { describe, expect, it } from 'vitest';
import { cgf } from '../../../src/hosts/cgf/index.js';
import type { HostReading } from '../../../src/hosts/shared/host.js';
import { codesOf, countsOf, fileOf, ledgerCodes, linesOf, read, verifyClaims } from './kit.js';

type Event = readonly [type: string, payload: Readonly<Record<string, unknown>>];

function draft(events: readonly Event[], proposal = 'prop-1'): HostReading {
  return read([
    linesOf(
      events.map(([event_type, payload], i) => ({
        event_type,
        event_type_enum: event_type.toUpperCase(),
        adapter_id: 'adapter-1',
        timestamp: 1771926660 + i,
        payload: { proposal_id: proposal, ...payload },
        correlation_id: proposal,
      })),
    ),
  ]);
}

const received = (risk_tier = 'high'): Event => [
  'proposal_received',
  { action_type: 'tool_call', risk_tier },
];
const decided = (decision: string): Event => [
  'decision_made',
  { decision, decision_id: 'dec-1', confidence: 0.9 },
];
const started = (decision: string): Event => ['enforcement_started', { decision }];
const executed: Event = ['action_executed', { execution_time_ms: 12.5 }];
const finished: Event = ['enforcement_finished', { success: true }];
const reported: Event = ['outcome_reported', { outcome_hash: 'ab' }];
const logged: Event = ['outcome_logged', { executed: true, success: true, duration_ms: 12.5 }];
const failed: Event = ['constraint_failed', { error: 'x', fallback: 'BLOCK' }];
const fallback: Event = [
  'action_blocked',
  { decision_id: 'fallback-0a1b2c3d', justification: 'Enforcement failed' },
];
const applied: Event = ['constraint_applied', { modified_fields: ['query'], reason: 'x' }];

describe('the draft vocabulary', () => {
  it.each([
    ['ALLOW', [executed]],
    ['CONSTRAIN', [applied, executed]],
    ['AUDIT', [['audit_required', { audit_level: 'basic' }] as Event, executed]],
  ])('%s is executed and has nothing wrong', async (decision, events) => {
    const all = [received(), decided(decision), started(decision), ...events, finished, reported, logged];
    const reading = draft(all);
    expect(codesOf(reading)).toEqual([]);
    expect(reading.claims.filter(({ kind }) => kind !== 'evidence')).toMatchObject([
      { id: 'decision:dec-1', decision: 'allow', decisionCode: `CGF_${decision}` },
      {
        id: 'execution:prop-1',
        authorization: 'decision:dec-1',
        outcome: 'success',
        meters: [
          { unit: 'time.ms', amount: { t: 'dec', m: '125', s: 1 } },
          { unit: 'calls', amount: { t: 'int', v: '1' } },
        ],
      },
    ]);
    expect(ledgerCodes(await verifyClaims(reading))).toEqual({});
  });

  it.each([
    ['BLOCK', ['action_blocked', { justification: 'x' }] as Event],
    ['DEFER', ['action_deferred', { escalation_path: null }] as Event],
  ])('%s is not executed', async (decision, event) => {
    const reading = draft([received(), decided(decision), started(decision), event, finished]);
    expect(codesOf(reading)).toEqual([]);
    expect(reading.claims.map(({ kind }) => kind)).not.toContain('execution');
    expect((await verifyClaims(reading)).verdict).toBe('ok');
  });

  it('a constraint that fails is told twice, is never finished, and is blocked under an id of its own', () => {
    const events = [received(), decided('CONSTRAIN'), started('CONSTRAIN'), failed, failed, fallback];
    expect(codesOf(draft(events))).toEqual([]);
  });

  it('another enforcement that fails finishes with an error and no success', () => {
    const failure: Event = ['enforcement_finished', { decision: 'ALLOW', error: 'x', fallback: 'BLOCK' }];
    expect(codesOf(draft([received(), decided('ALLOW'), started('ALLOW'), failure, fallback]))).toEqual([]);
    expect(codesOf(draft([received(), decided('ALLOW'), started('ALLOW'), failure]))).toEqual(
      ['CGF-5 BLOCK_MISSING 4', 'CGF-4 ACTION_MISSING 2'].sort(
        (a, b) => Number(a.slice(-1)) - Number(b.slice(-1)),
      ),
    );
  });

  it.each(['cgf_unreachable', 'evaluate_timeout'])(
    '%s that fails open executes without a decision',
    async (type) => {
      const events: Event[] = [
        received('low'),
        [type, { fail_mode: 'fail_open', risk_tier: 'low' }],
        ['action_executed', { note: 'FAIL_OPEN: CGF unavailable, action allowed without governance' }],
      ];
      const reading = draft(events);
      expect(codesOf(reading)).toEqual([]);
      expect(reading.claims.filter(({ kind }) => kind !== 'evidence')).toMatchObject([
        {
          id: 'failmode:prop-1',
          decision: 'allow',
          decisionCode: 'CGF_FAIL_OPEN',
          policyId: 'cgf:fail_mode_table',
        },
        { id: 'execution:prop-1', authorization: 'failmode:prop-1', outcome: 'unknown' },
      ]);
      expect(ledgerCodes(await verifyClaims(reading))).toEqual({});
    },
  );

  it.each([
    ['fail_closed', 'high', 'action_blocked', 'CGF_FAIL_CLOSED'],
    ['defer', 'medium', 'action_deferred', 'CGF_FAIL_DEFER'],
  ])('%s is denied under an id of its own', (fail_mode, tier, type, code) => {
    const reading = draft([
      received(tier),
      ['cgf_unreachable', { fail_mode, risk_tier: tier }],
      [type, { decision_id: 'failmode-0a1b2c3d', justification: 'x', escalation_path: 'x' }],
    ]);
    expect(codesOf(reading)).toEqual([]);
    expect(reading.claims[1]).toMatchObject({ decision: 'deny', decisionCode: code });
  });

  it('an audit that fails is deferred or blocked', () => {
    const failure: Event = ['audit_required', { audit_level: 'deep', audit_failed: true, fallback: 'defer' }];
    const deferred: Event = ['action_deferred', { escalation_path: 'x' }];
    const events = [received('medium'), decided('AUDIT'), started('AUDIT'), failure, deferred, finished];
    expect(codesOf(draft(events))).toEqual([]);
  });

  it('an unknown tier leaves the fail mode undecided', () => {
    const events: Event[] = [
      received('none'),
      ['cgf_unreachable', { fail_mode: 'defer', risk_tier: 'none' }],
    ];
    expect(countsOf(draft(events))).toEqual({ 'CGF-11 VALUE_UNKNOWN': 2 });
  });

  it('CGF-5: an enforcement that starts does not finish, or finishes and did not start', () => {
    const all = [received(), decided('ALLOW'), started('ALLOW'), executed, finished, logged];
    const without = (event: Event): HostReading => draft(all.filter((each) => each !== event));
    expect(codesOf(without(finished))).toEqual(['CGF-5 ENFORCEMENT_UNPAIRED 3']);
    expect(codesOf(without(all[2]))).toEqual(['CGF-5 ENFORCEMENT_UNPAIRED 4']);
    expect(codesOf(draft(all.slice(0, 4)))).toEqual(['CGF-5 ENFORCEMENT_OPEN 3', 'CGF-4 OUTCOME_MISSING 4']);
    const other = draft(all.map((event, i) => (i === 2 ? started('AUDIT') : event)));
    expect(codesOf(other)).toEqual(['CGF-5 ENFORCEMENT_MISMATCH 3']);
  });

  it('CGF-5: executes after the enforcement failed', () => {
    const failure: Event = ['enforcement_finished', { error: 'x', fallback: 'BLOCK' }];
    const events = [received(), decided('ALLOW'), started('ALLOW'), failure, executed, logged];
    expect(codesOf(draft(events))).toEqual(['CGF-5 EXECUTED_AFTER_FAILURE 5']);
  });

  it.each([
    [1, 2, 2],
    [2, 3, 4],
    [3, 4, 4],
    [4, 5, 5],
  ])('CGF-5: writes line %i after the one that follows it', (at, next, line) => {
    const all = [received(), decided('ALLOW'), started('ALLOW'), executed, finished, reported, logged];
    const order = all.map((event, i) => (i === at ? all[next] : i === next ? all[at] : event));
    expect(codesOf(draft(order))).toEqual([`CGF-5 ENFORCEMENT_ORDER ${line}`]);
  });

  it('CGF-5: finishes another decision than it started', () => {
    const other: Event = ['enforcement_finished', { decision: 'BLOCK', success: true }];
    expect(
      codesOf(draft([received(), decided('ALLOW'), started('ALLOW'), executed, other, reported, logged])),
    ).toEqual(['CGF-5 ENFORCEMENT_MISMATCH 5']);
  });

  it('CGF-2: an execution after the block and its end is one finding', () => {
    const blocked: Event = ['action_blocked', { justification: 'x' }];
    const events = [received(), decided('BLOCK'), started('BLOCK'), blocked, finished, executed];
    expect(codesOf(draft(events))).toEqual(['CGF-2 EXECUTED_AFTER_BLOCK 6']);
  });

  it('CGF-1: applies a constraint that was not decided', () => {
    const all = [received(), decided('ALLOW'), started('ALLOW'), applied, executed, finished, logged];
    expect(codesOf(draft(all))).toEqual(['CGF-1 ACTION_NOT_OF_DECISION 4']);
  });

  it('CGF-6: goes on without a block after the constraint failed', () => {
    const events = [received(), decided('CONSTRAIN'), started('CONSTRAIN'), failed, failed];
    const reading = (lines: readonly Event[]): HostReading =>
      read([
        linesOf(
          [...lines.map((each) => [...each, 'prop-1'] as const), ...[[...received(), 'prop-2'] as const]].map(
            ([event_type, payload, id], i) => ({
              event_type,
              event_type_enum: event_type.toUpperCase(),
              adapter_id: 'adapter-1',
              timestamp: 1771926660 + i,
              payload: { proposal_id: id, ...payload },
              correlation_id: id,
            }),
          ),
        ),
      ]);
    expect(reading(events).findings).toMatchObject([
      { rule: 'CGF-6', code: 'BLOCK_MISSING', class: 'invalid' },
      { rule: 'CGF-4', code: 'PROPOSAL_OPEN' },
    ]);
    expect(draft(events).findings).toMatchObject([{ rule: 'CGF-6', code: 'BLOCK_MISSING', class: 'none' }]);
  });

  it('CGF-6: executes after the constraint failed', () => {
    const events = [
      received(),
      decided('CONSTRAIN'),
      started('CONSTRAIN'),
      failed,
      applied,
      executed,
      logged,
    ];
    expect(codesOf(draft(events))).toEqual(['CGF-6 EXECUTED_AFTER_CONSTRAINT_FAILED 6']);
  });

  it('CGF-8: executes after the audit failed', () => {
    const failure: Event = [
      'audit_required',
      { audit_level: 'deep', audit_failed: true, fallback: 'fail_closed' },
    ];
    const events = [received(), decided('AUDIT'), started('AUDIT')];
    expect(codesOf(draft([...events, failure, executed, finished, logged]))).toEqual([
      'CGF-8 EXECUTED_AFTER_AUDIT_FAILED 5',
    ]);
    expect(draft([...events, executed, failure, finished, logged]).findings).toMatchObject([
      { rule: 'CGF-8', code: 'AUDIT_NOT_SHOWN', class: 'invalid' },
    ]);
  });

  it('CGF-7: an audit that fails falls back on another mode than the table, or on none that it says', () => {
    const failure: Event = ['audit_required', { audit_level: 'deep', audit_failed: true, fallback: 'defer' }];
    const deferred: Event = ['action_deferred', { escalation_path: 'x' }];
    const of = (tier: string, event: Event): HostReading =>
      draft([received(tier), decided('AUDIT'), started('AUDIT'), failure, event, finished]);
    expect(codesOf(of('high', deferred))).toEqual(['CGF-7 FAIL_MODE_NOT_OF_TABLE 4']);
    expect(codesOf(of('medium', ['action_blocked', { justification: 'x' }]))).toEqual([
      'CGF-7 FAIL_MODE_NOT_FOLLOWED 5',
    ]);
  });

  it('CGF-8: its own code tells nothing of an audit that succeeds, so that is a warning', () => {
    const events = [received(), decided('AUDIT'), started('AUDIT'), executed, finished, logged];
    expect(draft(events).findings).toMatchObject([
      { rule: 'CGF-8', code: 'AUDIT_NOT_SHOWN', severity: 'warning' },
    ]);
  });

  it('CGF-11: an event lacks what the table of the draft requires', () => {
    const events = [
      received(),
      decided('ALLOW'),
      started('ALLOW'),
      ['action_executed', {}] as Event,
      finished,
      logged,
    ];
    expect(codesOf(draft(events))).toEqual(['CGF-11 REQUIRED_FIELD_MISSING 4']);
  });

  it('evaluates by the request and answer of the draft', async () => {
    const params = { tool_name: 'web_search', tool_args: { query: 'x', timeout: 3 }, tool_args_hash: '' };
    const request = {
      adapter_id: 'adapter-1',
      proposal: {
        proposal_id: 'prop-1',
        timestamp: 1771926660,
        action_type: 'tool_call',
        action_params: params,
        context_refs: ['mem-456'],
        estimated_cost: { tokens: 150, latency_ms: 500, money: 0.5 },
        risk_tier: 'medium',
      },
    };
    const constraint = {
      modified_params: { tool_name: 'web_search', tool_args: { query: 'x' }, timeout: 3 },
      disallowed_params: ['timeout'],
      reason: 'x',
    };
    const answer = { decision_id: 'dec-1', decision: 'CONSTRAIN', confidence: 0.87, constraint };
    const outcome = {
      adapter_id: 'adapter-1',
      proposal_id: 'prop-1',
      decision_id: 'dec-1',
      executed: true,
      success: false,
      errors: ['secret text'],
      actual_cost: { tokens: 143, money: 0.00009999999999999999 },
      side_effects: [
        'web_request',
        {
          tool_name: 'web_search',
          tool_args_hash: 'f'.repeat(32),
          resource_touched: 'https://x',
          resource_type: 'url',
        },
      ],
    };
    const reading = read([
      linesOf([
        { t: 1771926661, method: 'POST', path: '/v1/evaluate', request, status: 200, response: answer },
        {
          t: 1771926662,
          method: 'POST',
          path: '/v1/outcomes/report',
          request: outcome,
          status: 200,
          response: {},
        },
      ]),
    ]);
    expect(codesOf(reading)).toEqual(['CGF-9 EXECUTED_PARAMS_MISMATCH 2']);
    expect(reading.claims).toMatchObject([
      {
        kind: 'action',
        tool: 'web_search',
        reservation: [{ unit: 'tokens' }, { unit: 'time.ms' }, { unit: 'cgf.money' }],
      },
      {
        kind: 'execution',
        outcome: 'failure',
        errorCode: 'CGF_EXEC_ERROR',
        resources: [
          { kind: 'cgf.side_effect', reference: 'web_request' },
          { kind: 'url', reference: 'https://x' },
        ],
      },
    ]);
    expect(JSON.stringify(reading.claims.map((claim) => ({ ...claim, bytes: 0 })))).not.toContain('secret');
    expect(ledgerCodes(await verifyClaims(reading))).toEqual({ TOOL_PARAMS_MISMATCH: 1 });
  });
});

function sdk(
  events: readonly (readonly [string, string | null, Readonly<Record<string, unknown>>])[],
): HostReading {
  return read([
    linesOf(
      events.map(([event_type, decision_id, data], i) => ({
        event_id: `event-${i}`,
        event_type,
        timestamp: 1771926660.5 + i,
        proposal_id: event_type === 'adapter_registered' ? null : 'prop-1',
        decision_id,
        data,
      })),
    ),
  ]);
}

describe('the vocabulary of the SDK', () => {
  const start = [
    ['adapter_registered', null, { adapter_id: 'adapter-1', host_type: 'x', capabilities: [] }],
    ['proposal_received', null, { action_type: 'workflow_step' }],
  ] as const;

  it('says in the action whether it was executed', () => {
    const events = (wasExecuted: boolean): HostReading =>
      sdk([
        ...start,
        ['decision_made', 'dec-1', { decision: 'ALLOW', confidence: 0.9 }],
        ['action_allowed', 'dec-1', { executed: wasExecuted }],
        ['outcome_logged', 'dec-1', { outcome_id: 'x' }],
      ]);
    expect(codesOf(events(true))).toEqual([]);
    expect(events(true).claims.at(-1)).toMatchObject({
      id: 'execution:prop-1',
      outcome: 'unknown',
      tool: 'cgf.workflow_step',
      principalId: 'service:cgf/adapter-1',
    });
    expect(events(false).claims.map(({ kind }) => kind)).not.toContain('execution');
  });

  it('reports an outcome of what was blocked, which is no execution', () => {
    const reading = sdk([
      ...start,
      ['decision_made', 'dec-1', { decision: 'BLOCK', confidence: 1 }],
      ['action_blocked', 'dec-1', { executed: false }],
      ['outcome_logged', 'dec-1', { outcome_id: 'x' }],
    ]);
    expect(codesOf(reading)).toEqual([]);
    expect(reading.claims.map(({ kind }) => kind)).not.toContain('execution');
  });

  it('CGF-2: was executed although it is called blocked', async () => {
    const reading = sdk([
      ...start,
      ['decision_made', 'dec-1', { decision: 'BLOCK', confidence: 1 }],
      ['action_blocked', 'dec-1', { executed: true }],
      ['outcome_logged', 'dec-1', { outcome_id: 'x' }],
    ]);
    expect(codesOf(reading)).toEqual(['CGF-2 EXECUTED_AFTER_BLOCK 4']);
    expect(ledgerCodes(await verifyClaims(reading))).toEqual({ EXECUTION_UNDER_DENY: 1 });
    const allowed = sdk([
      ...start,
      ['decision_made', 'dec-1', { decision: 'ALLOW', confidence: 1 }],
      ['action_blocked', 'dec-1', { executed: true }],
      ['outcome_logged', 'dec-1', { outcome_id: 'x' }],
    ]);
    expect(codesOf(allowed)).toEqual(['CGF-1 ACTION_NOT_OF_DECISION 4']);
  });

  it.each([
    ['fail_open', 'low', 'action_allowed'],
    ['defer', 'medium', 'action_deferred'],
  ])(
    'applies %s where it cannot report what it did, and does it no second time',
    async (mode, tier, type) => {
      const reading = sdk([
        ...start,
        ['decision_made', 'dec-1', { decision: 'ALLOW', confidence: 0.9 }],
        ['action_allowed', 'dec-1', { executed: true }],
        ['cgf_unreachable', null, { fail_mode: mode, risk_tier: tier, error: 'Outcome timeout' }],
        [type, null, { via_fail_mode: true }],
      ]);
      expect(codesOf(reading)).toEqual([]);
      expect(reading.claims.filter(({ kind }) => kind === 'execution')).toMatchObject([
        { id: 'execution:prop-1', authorization: 'decision:dec-1' },
      ]);
      expect(ledgerCodes(await verifyClaims(reading))).toEqual({});
    },
  );

  it('allows by its fail mode', () => {
    const reading = sdk([
      ...start,
      ['cgf_unreachable', null, { fail_mode: 'fail_open', risk_tier: 'low', error: 'x' }],
      ['action_allowed', null, { via_fail_mode: true }],
    ]);
    expect(codesOf(reading)).toEqual([]);
    expect(reading.claims.at(-1)).toMatchObject({ authorization: 'failmode:prop-1', outcome: 'unknown' });
  });

  it('CGF-8: executes what was to be audited, without the audit', () => {
    const reading = sdk([
      ...start,
      ['decision_made', 'dec-1', { decision: 'AUDIT', confidence: 0.9 }],
      ['action_allowed', 'dec-1', { executed: true }],
      ['outcome_logged', 'dec-1', { outcome_id: 'x' }],
    ]);
    expect(reading.findings).toMatchObject([{ rule: 'CGF-8', code: 'AUDIT_NOT_SHOWN', class: 'invalid' }]);
  });
});

function plugin(events: readonly Event[]): HostReading {
  return read([
    linesOf(
      events.map(([event_type, payload], i) => ({
        schema_version: '0.3.0',
        event_type,
        adapter_id: 'adp-1',
        timestamp: 1771926660.5 + i,
        payload,
      })),
    ),
  ]);
}

describe('the vocabulary of the plugin', () => {
  const decision = (value: string): Event => [
    'decision_made',
    {
      proposal_id: 'prop-1',
      decision_id: 'dec-1',
      decision: value,
      tool_name: 'exec',
      policy_tool_name: 'workflow_auto_exec',
      session_key: null,
    },
  ];
  const outcome = (success: boolean): Event => [
    'outcome_logged',
    { proposal_id: 'prop-1', decision_id: 'dec-1', success, summary: 'x' },
  ];
  const alias: Event = ['tool_alias_applied', { tool_name: 'exec', policy_tool_name: 'workflow_auto_exec' }];

  it('has no proposals and no actions: an outcome under a decision that permits is an execution', () => {
    const reading = plugin([decision('ALLOW'), alias, outcome(false)]);
    expect(codesOf(reading)).toEqual([]);
    expect(reading.claims).toMatchObject([
      { kind: 'action', tool: 'exec' },
      { kind: 'evidence', type: 'tool_alias_applied' },
      { kind: 'execution', tool: 'exec', outcome: 'failure', authorization: 'decision:dec-1' },
    ]);
  });

  it('reports a failure of what it blocked, which is no execution', () => {
    const reading = plugin([decision('BLOCK'), outcome(false)]);
    expect(codesOf(reading)).toEqual([]);
    expect(reading.claims.map(({ kind }) => kind)).toEqual(['action', 'evidence']);
  });

  it('executes what it blocked when it reports a success', () => {
    expect(codesOf(plugin([decision('BLOCK'), outcome(true)]))).toEqual(['CGF-2 EXECUTED_AFTER_BLOCK 2']);
  });

  it('names no proposal in its fail modes, but the tier and whether it allowed', () => {
    const unreachable = (fail_mode_allow: boolean): Event => [
      'cgf_unreachable',
      { stage: 'evaluate_tool_call', risk_tier: 'high', fail_mode_allow, error: 'x' },
    ];
    expect(codesOf(plugin([unreachable(false)]))).toEqual(['CGF-7 FAIL_MODE_UNLINKED 1']);
    expect(codesOf(plugin([unreachable(true)]))).toEqual([
      'CGF-7 FAIL_MODE_UNLINKED 1',
      'CGF-7 FAIL_MODE_NOT_OF_TABLE 1',
    ]);
    expect(codesOf(plugin([['cgf_unreachable', { stage: 'register', error: 'x' }]]))).toEqual([]);
  });
});

describe('the ratified vocabulary, while nobody decides', () => {
  const event = (event_type: string, proposal_id: string | null, payload: object, i: number): object => ({
    schema_version: '0.3.0',
    event_type,
    adapter_id: 'adp-1',
    timestamp: 1771926660 + i,
    proposal_id,
    decision_id: null,
    payload,
  });
  const proposal = (id: string, risk_tier: string, i: number): object =>
    event(
      'proposal_received',
      id,
      { proposal_id: id, action_type: 'tool_call', action_params_hash: '0123456789abcdef', risk_tier },
      i,
    );

  const ratified = (events: readonly Event[]): HostReading =>
    read([
      linesOf(events.map(([type, payload], i) => event(type, 'p', { proposal_id: 'p', ...payload }, i))),
    ]);

  it('LangGraph fails closed with an outcome of a decision that it made up, which is no execution', () => {
    const outcome = {
      proposal_id: 'p',
      decision_id: 'dec-1771926661-0a1b2c',
      success: false,
      duration_ms: 1.5,
    };
    const reading = read([linesOf([proposal('p', 'high', 0), event('outcome_logged', 'p', outcome, 1)])]);
    expect(codesOf(reading)).toEqual(['CGF-10 OUTCOME_WITHOUT_DECISION 2']);
    expect(reading.claims.map(({ id }) => id)).toEqual(['proposal:p', 'outcome:p']);
  });

  it('LangGraph fails open without the proposal: nothing is authorized, nothing executed', () => {
    const open = { reason: 'x', proceeding_with_fail: 'fail_open', source: 'fail_mode_table' };
    const reading = read([linesOf([proposal('p', 'low', 0), event('cgf_unreachable', null, open, 1)])]);
    expect(countsOf(reading)).toEqual({
      'CGF-4 PROPOSAL_OPEN': 1,
      'CGF-7 FAIL_MODE_UNLINKED': 1,
      'CGF-11 REQUIRED_FIELD_MISSING': 1,
    });
    expect(reading.claims.map(({ kind }) => kind)).toEqual(['evidence', 'evidence']);
  });

  it.each(['cgf_unreachable', 'evaluate_timeout'])(
    'CGF-7: %s says no mode, and the action is executed although the table does not open',
    (type) => {
      const reading = (tier: string): HostReading =>
        ratified([
          ['proposal_received', { action_type: 'tool_call', action_params_hash: 'ab', risk_tier: tier }],
          [type, { endpoint: 'x', error_type: 'unreachable', timeout_ms: 500 }],
          ['action_allowed', { decision_id: 'fail-mode' }],
        ]);
      expect(codesOf(reading('high'))).toEqual(['CGF-7 EXECUTED_AFTER_FAIL_MODE 3']);
      expect(codesOf(reading('low'))).toEqual(['CGF-7 FAIL_MODE_NOT_STATED 2']);
    },
  );

  it('a failed constraint does not give its code to the decision', () => {
    const reading = ratified([
      ['proposal_received', { action_type: 'tool_call', action_params_hash: 'ab', risk_tier: 'low' }],
      ['decision_made', { decision_id: 'd', decision_type: 'CONSTRAIN', confidence: 1, justification: 'x' }],
      ['constraint_failed', { constraint_type: 'delay', error: 'x' }],
      ['action_blocked', { decision_id: 'd', justification: 'x', reason_code: 'CONSTRAINT_FAILED' }],
    ]);
    expect(codesOf(reading)).toEqual([]);
    expect(reading.claims).toContainEqual(
      expect.objectContaining({ decision: 'allow', decisionCode: 'CGF_CONSTRAIN' }),
    );
  });

  it('OpenClaw fails open under an id of its own', async () => {
    const ids = { proposal_id: 'p', decision_id: 'fail-mode' };
    const down = {
      proposal_id: 'p',
      endpoint: 'x',
      error_type: 'unreachable',
      fail_mode_applied: 'fail_open',
    };
    const reading = read([
      linesOf([
        proposal('p', 'low', 0),
        event('cgf_unreachable', 'p', down, 1),
        event('action_allowed', 'p', ids, 2),
        event('outcome_logged', 'p', { ...ids, success: true, duration_ms: 3 }, 3),
      ]),
    ]);
    expect(codesOf(reading)).toEqual([]);
    expect(reading.claims.at(-1)).toMatchObject({ authorization: 'failmode:p', outcome: 'success' });
    expect(ledgerCodes(await verifyClaims(reading))).toEqual({});
  });
});

describe('cgf.recognises', () => {
  it('knows its own files by their shape', () => {
    const event = { event_type: 'errors', timestamp: 1, payload: {} };
    expect(cgf.recognises(linesOf([event]))).toBe(true);
    expect(cgf.recognises(fileOf(JSON.stringify([event], null, 2)))).toBe(true);
    expect(cgf.recognises(fileOf(JSON.stringify({ proposal: {}, decision: {} }, null, 2)))).toBe(true);
    expect(cgf.recognises(linesOf([{ method: 'POST', path: '/v1/evaluate', request: {} }]))).toBe(true);
  });

  it('knows other files as others', () => {
    expect(cgf.recognises(fileOf(''))).toBe(false);
    expect(cgf.recognises(fileOf('{"event_type":"authorization","event_version":"1"}\n'))).toBe(false);
    expect(cgf.recognises(fileOf('# a text\n'))).toBe(false);
  });
});
