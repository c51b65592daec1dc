/** A filter shows what it asks for, also where it folded under what it does not. */

import { describe, expect, test } from 'vitest';
import { bytesSource } from '../bytes-source.js';
import { runVerification, type AnyEvent, type Finding } from '../../src/api/index.js';
import { matchesFilter, type FindingFilter } from '../../src/rules/report/finding-filter.js';
import { DIGEST, event, genesis, ledger, makeSigner } from '../docs/ledger-kit.js';

const stranger = makeSigner();
const note = (n: number, who: string, day: string): AnyEvent =>
  event('x.note', { n, principal_id: who, occurred_at: `2026-01-0${day}T00:00:00Z` });
const bytes = ledger(
  { event: genesis() },
  { event: note(1, 'agent:a1', '2'), signers: [stranger] },
  { event: note(2, 'agent:a2', '3'), signers: [stranger] },
  { event: note(3, 'agent:a2', '4'), signers: [stranger] },
  { event: note(4, 'agent:a3', '5'), signers: [stranger] },
);

async function list(
  filter?: FindingFilter,
  of = bytes,
): Promise<{ lines: unknown[]; total: number; told: number }> {
  const told: Finding[] = [];
  const { findings, total } = await runVerification(bytesSource(of, '-'), {
    onFinding: (finding) => told.push(finding),
    ...(filter === undefined ? {} : { show: (finding) => matchesFilter(finding, filter) }),
  });
  return { lines: findings.map(({ at, folded = 0 }) => [at.line, folded]), total, told: told.length };
}

describe('findings of one cause', () => {
  test('fold under the first', async () => {
    expect(await list()).toEqual({ lines: [[2, 3]], total: 1, told: 1 });
  });

  test('are listed where the first is not shown', async () => {
    expect(await list({ principal: 'agent:a2' })).toEqual({ lines: [[3, 1]], total: 1, told: 1 });
    expect((await list({ since: '2026-01-04T00:00:00Z' })).lines).toEqual([[4, 1]]);
    expect((await list({ principal: 'agent:a3' })).lines).toEqual([[5, 0]]);
  });

  test('are not listed beside the first, nor where nothing is asked for', async () => {
    expect((await list({ principal: 'agent:*' })).lines).toEqual([[2, 3]]);
    expect((await list({ principal: 'agent:a4' })).lines).toEqual([]);
  });
});

describe('executions that name one authorization that is not there', () => {
  const run = (n: number, who: string): AnyEvent =>
    event('execution', {
      principal_id: who,
      intents: { intent_digest: DIGEST },
      auth_event_id: note(9, 'agent:a9', '9').event_id,
      tool_name: `t.${n}`,
      meter_used: [],
      outcome: 'success',
    });
  const runs = [run(1, 'agent:a1'), run(2, 'agent:a2'), run(3, 'agent:a2')];
  const never = ledger({ event: genesis() }, ...runs.map((each) => ({ event: each })));
  const last = { event: note(9, 'agent:a9', '9') };
  const later = ledger({ event: genesis() }, ...runs.map((each) => ({ event: each })), last);

  test.each([
    ['never comes', never],
    ['comes later', later],
  ])('are shown each where asked for: it %s', async (_which, of) => {
    expect(await list(undefined, of)).toEqual({ lines: [[2, 2]], total: 1, told: 1 });
    expect(await list({ principal: 'agent:a2' }, of)).toEqual({ lines: [[3, 1]], total: 1, told: 1 });
    expect((await list({ principal: 'agent:a1' }, of)).lines).toEqual([[2, 2]]);
  });
});
