/** A log that is imported while it is written, and again when it is whole. */

import { describe, expect, it } from 'vitest';
import { cgf } from '../../../src/hosts/cgf/index.js';
import { differencesOfCuts } from '../cuts.js';
import { hasRecordings, recordedFile } from '../recorded.js';
import { BUNDLE, DOWN, HTTP, LANGGRAPH, linesOf, LIVE, OPENCLAW, SERVER } from './kit.js';

describe.skipIf(!hasRecordings)('a recording of CGF that was cut anywhere', () => {
  it.each([SERVER, OPENCLAW, LANGGRAPH, LIVE, DOWN])('%s', (path) => {
    expect(differencesOfCuts(cgf, recordedFile(path))).toEqual([]);
  });

  it('its requests, with the bundle', () => {
    const aids = { 'policy-bundle': recordedFile(BUNDLE) };
    expect(differencesOfCuts(cgf, recordedFile(HTTP), { aids })).toEqual([]);
  });
});

/** Lines of the ratified form about one proposal. */
function ratified(events: readonly [type: string, payload: object][]): object[] {
  return events.map(([event_type, payload], i) => ({
    schema_version: '0.3.0',
    event_type,
    adapter_id: 'adp-1',
    timestamp: 1771926660.5 + i,
    proposal_id: 'p',
    decision_id: event_type === 'proposal_received' ? null : 'd',
    payload: { proposal_id: 'p', ...payload },
  }));
}

const proposal: [string, object] = [
  'proposal_received',
  { action_type: 'tool_call', action_params_hash: '0123456789abcdef', risk_tier: 'low' },
];
const decision = (decision_type: string): [string, object] => [
  'decision_made',
  { decision_id: 'd', decision_type, confidence: 1, justification: 'x' },
];
const action: [string, object] = ['action_allowed', { decision_id: 'd', executed_at: 1771926662 }];
const outcome: [string, object] = ['outcome_logged', { decision_id: 'd', success: true, duration_ms: 1.5 }];

describe('a log of CGF that was cut anywhere', () => {
  it.each<[string, readonly [string, object][]]>([
    ['the outcome before the action', [proposal, decision('ALLOW'), outcome, action]],
    ['the proposal after its decision', [decision('ALLOW'), proposal, action, outcome]],
    ['an outcome that says nothing more', [proposal, decision('ALLOW'), action, ['outcome_logged', {}]]],
    ['a block that says why', [proposal, decision('BLOCK'), ['action_blocked', { reason_code: 'WHY' }]]],
    [
      'a block after the outcome',
      [proposal, decision('ALLOW'), ['outcome_logged', {}], ['action_blocked', {}]],
    ],
  ])('%s', (_title, events) => {
    expect(differencesOfCuts(cgf, linesOf(ratified(events)))).toEqual([]);
  });

  it('binds a constraint that only the action states, and keeps the decision as evidence until then', () => {
    const constrained: [string, object] = [
      'action_constrained',
      { decision_id: 'd', constraint_type: 'quarantine', constraint_params: { target_namespace: 'x' } },
    ];
    const lines = ratified([proposal, decision('CONSTRAIN'), constrained, outcome]);
    expect(differencesOfCuts(cgf, linesOf(lines))).toEqual([]);
    const idsOf = (count: number): string[] =>
      cgf.read([linesOf(lines.slice(0, count))]).claims.map(({ id }) => id);
    expect(idsOf(2)).toEqual(['proposal:p', 'decision_made:p']);
    expect(idsOf(4)).toEqual(['proposal:p', 'decision_made:p', 'decision:d', 'execution:p']);
    const { items } = cgf.read([linesOf(lines.slice(0, 2))]);
    expect(items.map(({ fate }) => fate)).toEqual(['evidence', 'evidence']);
  });
});
