/** CGF's adapter against a server that decides: what runs, what is recorded before it runs, what is told. */

import { describe, expect, it } from 'vitest';
import { CgfDeniedError } from '../../../src/hosts/cgf/index.js';
import { decides, openAdapter, READ, serveCgf } from './client-kit.js';

describe('a decision', () => {
  it('ALLOW runs, after it is recorded as an import names it, and the outcome is reported', async () => {
    const server = await serveCgf();
    const { adapter, events, decided, verdict, found, problems } = await openAdapter(server.url);
    const ran = await adapter.guard({ ...READ, estimatedCost: { tokens: 3 } }, ({ params, report }) => {
      expect(decided()).toMatchObject({
        decision: 'allow',
        decision_code: 'DEFAULT_ALLOW',
        policy_id: 'cgf:1.0.0',
        authorization: { action: { tool_name: 'fs.read' } },
      });
      report({ actualCost: { tokens: 2 }, summary: 'read', output: 'text' });
      return params['tool_args'];
    });
    expect(ran).toEqual({ path: '/x' });
    expect(await adapter.flush()).toBe(0);
    const [asked] = server.of('/v1/evaluate');
    expect(asked.body).toMatchObject({
      schema_version: '0.3.0',
      adapter_id: 'adp-0a1b2c3d4e5f',
      host_config: { host_type: 'custom' },
      proposal: { action_params: READ.params, risk_tier: 'low', estimated_cost: { tokens: 3 } },
    });
    const [reported] = server.of('/v1/outcomes/report');
    expect(reported.body).toMatchObject({
      adapter_id: 'adp-0a1b2c3d4e5f',
      proposal_id: asked.body.proposal.proposal_id,
      executed: true,
      success: true,
      actual_cost: { tokens: 2 },
    });
    expect(events().at(-1)).toMatchObject({ event_type: 'execution', outcome: 'success' });
    expect(await verdict()).toBe('ok');
    expect(found()).toEqual([]);
    expect(problems).toEqual([]);
  });

  it.each(['BLOCK', 'DEFER'])('%s runs nothing, and is recorded as a denial', async (decision) => {
    const server = await serveCgf((asked) => decides(asked, { decision, reason_code: 'DENYLISTED_TOOL' }));
    const { adapter, decided, verdict, found } = await openAdapter(server.url);
    const denied = await adapter.guard(READ, () => 'ran').catch((error: unknown) => error);
    expect(denied).toBeInstanceOf(CgfDeniedError);
    expect(denied).toMatchObject({ code: 'DENYLISTED_TOOL', act: decision === 'DEFER' ? 'defer' : 'block' });
    expect(decided()).toMatchObject({
      decision: 'deny',
      decision_code: 'DENYLISTED_TOOL',
      policy_id: 'cgf:1.0.0',
      checks: expect.arrayContaining([{ check: 'cgf.decision', result: 'fail', code: decision }]),
    });
    await adapter.flush();
    expect(server.of('/v1/outcomes/report')).toEqual([]);
    expect(await verdict()).toBe('ok');
    expect(found()).toEqual([]);
  });
});
