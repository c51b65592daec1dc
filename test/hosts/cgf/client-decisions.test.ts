/** CGF's adapter against a server that decides: what runs, what is recorded before it runs, what is told. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { canonicalBytes } from '../../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../../src/base/value/digest.js';
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

describe('a constraint', () => {
  const modified = (params: object, more: object = {}) => ({
    decision: 'CONSTRAIN',
    constraint: { modified_params: params, reason: 'small', ...more },
  });

  it('of the draft replaces the parameters, without those that it disallows', async () => {
    const to = { tool_name: 'fs.read', tool_args: { path: '/tmp' }, recursive: true };
    const server = await serveCgf((asked) =>
      decides(asked, modified(to, { disallowed_params: ['recursive'] })),
    );
    const { adapter, decided, found, verdict } = await openAdapter(server.url);
    const params = { tool_name: 'fs.read', tool_args: { path: '/tmp' } };
    expect(await adapter.guard(READ, (allowed) => allowed.params)).toEqual(params);
    expect(decided().authorization.action.tool_params_digest).toEqual(digestOf(params));
    await adapter.flush();
    expect(found()).toEqual([]);
    expect(await verdict()).toBe('ok');
  });

  it.each([
    ['for which there is no function', { type: 'sandbox', params: { level: 1 } }],
    ['of no type', {}],
    ['of another tool', { modified_params: { tool_name: 'shell.exec' } }],
    ['to tools among which it is none', { modified_params: READ.params, allowed_tools: ['fs.list'] }],
    ['that is none', null],
  ])('%s blocks, and says so', async (_, constraint) => {
    const server = await serveCgf((asked) => decides(asked, { decision: 'CONSTRAIN', constraint }));
    const { adapter, decided, found, log } = await openAdapter(server.url);
    const denied = await adapter.guard(READ, () => 'ran').catch((error: unknown) => error);
    expect(denied).toMatchObject({ code: 'CONSTRAINT_FAILED', act: 'block' });
    expect(decided()).toMatchObject({
      decision: 'deny',
      decision_code: 'CONSTRAINT_FAILED',
      checks: expect.arrayContaining([expect.objectContaining({ check: 'cgf.constraint', result: 'fail' })]),
    });
    await adapter.flush();
    expect(typesIn(log)).toEqual([
      'adapter_registered',
      'proposal_received',
      'decision_made',
      'constraint_failed',
      'action_blocked',
    ]);
    expect(found()).toEqual([]);
  });

  it('of a type is applied by its function, and recorded with what was proposed', async () => {
    const constraint = { type: 'quarantine_namespace', params: { target_namespace: '_quarantine_1' } };
    const server = await serveCgf((asked) => decides(asked, { decision: 'CONSTRAIN', constraint }));
    const { adapter, decided, found } = await openAdapter(server.url, {
      constraints: {
        quarantine_namespace: (params, { target_namespace: namespace }) => ({ ...params, namespace }),
      },
    });
    const write = { actionType: 'memory_write', params: { key: 'k', namespace: 'default' } } as const;
    const ran = await adapter.guard(write, ({ params, report }) => {
      report({ committed: true, quarantined: true });
      return params;
    });
    expect(ran).toEqual({ key: 'k', namespace: '_quarantine_1' });
    const { action } = decided().authorization;
    expect(action.tool_name).toBe('cgf.memory_write');
    expect(action.tool_params_digest).toEqual(digestOf({ action_params: write.params, constraint }));
    await adapter.flush();
    expect(server.of('/v1/outcomes/report')[0].body).toMatchObject({ committed: true, quarantined: true });
    expect(found()).toEqual([]);
  });

  it('whose function fails, or gives nothing, blocks', async () => {
    const server = await serveCgf((asked) =>
      decides(asked, { decision: 'CONSTRAIN', constraint: { type: asked.body.proposal.context_refs[0] } }),
    );
    const fails = () => {
      throw new Error('no');
    };
    const { adapter } = await openAdapter(server.url, { constraints: { fails, none: () => undefined } });
    for (const type of ['fails', 'none', 'constructor'])
      await expect(adapter.guard({ ...READ, contextRefs: [type] }, () => 'ran')).rejects.toMatchObject({
        code: 'CONSTRAINT_FAILED',
      });
  });
});

describe('an audit', () => {
  const audits = (members: object = {}) =>
    serveCgf((asked) => decides(asked, { decision: 'AUDIT', audit_level: 'deep', ...members }));

  it('is held before the action runs', async () => {
    const server = await audits({ audit_hooks: ['siem'] });
    const held: unknown[] = [];
    const { adapter, decided, found } = await openAdapter(server.url, {
      audit: (audit) => void held.push(audit),
    });
    expect(await adapter.guard(READ, () => held.length)).toBe(1);
    expect(held[0]).toMatchObject({ level: 'deep', hooks: ['siem'], params: READ.params });
    expect(decided().checks).toContainEqual({ check: 'cgf.audit', result: 'pass', code: 'DEEP' });
    await adapter.flush();
    expect(found()).toEqual([]);
  });

  it.each([
    ['low', 'defer'],
    ['medium', 'defer'],
    ['high', 'block'],
  ])('that fails at %s risk: %s', async (riskTier, act) => {
    const server = await audits();
    const audit = () => Promise.reject(new Error('the siem is away'));
    const { adapter, decided, found } = await openAdapter(server.url, { audit });
    await expect(adapter.guard({ ...READ, riskTier }, () => 'ran')).rejects.toMatchObject({
      ...{ code: 'CGF_AUDIT_FAILED', act },
    });
    expect(decided()).toMatchObject({ decision: 'deny', decision_code: 'CGF_AUDIT_FAILED' });
    await adapter.flush();
    expect(found()).toEqual([]);
  });

  it('that is late, and one that nobody holds, fail', async () => {
    const server = await audits();
    const late = await openAdapter(server.url, {
      audit: () => new Promise(() => undefined),
      auditTimeoutMs: 10,
    });
    const nobody = await openAdapter(server.url);
    for (const { adapter } of [late, nobody])
      await expect(adapter.guard(READ, () => 'ran')).rejects.toMatchObject({ code: 'CGF_AUDIT_FAILED' });
  });

  it('of the basic level is held by the ledger', async () => {
    const server = await audits({ audit_level: 'basic' });
    const { adapter, found } = await openAdapter(server.url);
    expect(await adapter.guard(READ, () => 'ran')).toBe('ran');
    await adapter.flush();
    expect(found()).toEqual([]);
  });
});

describe('the ledger', () => {
  it('has the last word where it has grants', async () => {
    const server = await serveCgf();
    const { adapter, decided, found, verdict } = await openAdapter(
      server.url,
      {},
      { meterCaps: { calls: 1 } },
    );
    expect(await adapter.guard(READ, () => 'ran')).toBe('ran');
    expect(decided()).toMatchObject({ policy_id: 'cgf:1.0.0', decision_code: 'DEFAULT_ALLOW' });
    await expect(adapter.guard(READ, () => 'ran')).rejects.toMatchObject({ code: 'RESERVATION_OVER_CAP' });
    expect(decided()).toMatchObject({
      decision: 'deny',
      policy_id: 'cgf:1.0.0',
      checks: expect.arrayContaining([
        { check: 'cgf.decision', result: 'pass', code: 'ALLOW' },
        { check: 'spend', result: 'fail', code: 'RESERVATION_OVER_CAP' },
      ]),
    });
    await expect(
      adapter.guard({ ...READ, params: { tool_name: 'shell.exec' } }, () => 'ran'),
    ).rejects.toMatchObject({ code: 'TOOL_NOT_ALLOWED' });
    await adapter.flush();
    expect(found()).toEqual([]);
    expect(await verdict()).toBe('ok');
  });

  it('reserves what is estimated', async () => {
    const server = await serveCgf();
    const caps = { meterCaps: { calls: 10, tokens: 5 } };
    const { adapter } = await openAdapter(server.url, {}, caps);
    const dear = { ...READ, estimatedCost: { tokens: 6 } };
    await expect(adapter.guard(dear, () => 'ran')).rejects.toMatchObject({ code: 'RESERVATION_OVER_CAP' });
    expect(await adapter.guard({ ...READ, estimatedCost: { tokens: 5 } }, () => 'ran')).toBe('ran');
  });

  it('does not let a proposal run twice', async () => {
    const server = await serveCgf();
    const { adapter, found } = await openAdapter(server.url);
    let runs = 0;
    const once = { ...READ, proposalId: 'p-1' };
    await adapter.guard(once, () => (runs += 1));
    await expect(adapter.guard(once, () => (runs += 1))).rejects.toMatchObject({
      code: 'AUTHORIZATION_REUSED',
    });
    const both = { ...READ, proposalId: 'p-2' };
    const settled = await Promise.allSettled([
      adapter.guard(both, () => (runs += 1)),
      adapter.guard(both, () => (runs += 1)),
    ]);
    expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(runs).toBe(2);
    await expect(
      adapter.guard({ ...once, params: { tool_name: 'fs.read', tool_args: {} } }, () => 'ran'),
    ).rejects.toMatchObject({ code: 'REQUEST_CONFLICT' });
    expect(found()).not.toContain('CGF-2 EXECUTED_AFTER_BLOCK');
  });

  it('has what failed as a failure, and gives the error on', async () => {
    const server = await serveCgf();
    const { adapter, events, found } = await openAdapter(server.url);
    const error = Object.assign(new Error('gone'), { code: 'ENOENT' });
    await expect(
      adapter.guard(READ, () => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect(events().at(-1)).toMatchObject({ outcome: 'failure', error_code: 'ENOENT' });
    await adapter.flush();
    expect(server.of('/v1/outcomes/report')[0].body).toMatchObject({ success: false, errors: ['ENOENT'] });
    expect(found()).toEqual([]);
  });
});

describe('the draft vocabulary', () => {
  it.each([
    ['ALLOW', {}, 'high'],
    ['BLOCK', { decision: 'BLOCK' }, 'high'],
    ['DEFER', { decision: 'DEFER', excised_features: ['recursive_search'] }, 'high'],
    ['AUDIT', { decision: 'AUDIT', audit_level: 'basic' }, 'high'],
    ['an audit that fails', { decision: 'AUDIT', audit_level: 'human' }, 'high'],
    ['an audit that fails at less risk', { decision: 'AUDIT', audit_level: 'human' }, 'medium'],
    ['CONSTRAIN', { decision: 'CONSTRAIN', constraint: { modified_params: READ.params } }, 'high'],
    ['a constraint that fails', { decision: 'CONSTRAIN', constraint: { type: 'sandbox' } }, 'high'],
    ['an answer that is none', { decision: 'PERHAPS' }, 'low'],
  ])('tells %s without a finding', async (_, members, riskTier) => {
    const server = await serveCgf((asked) => decides(asked, members));
    const { adapter, found, log } = await openAdapter(server.url, { vocabulary: 'draft' });
    await adapter.guard({ ...READ, riskTier }, () => 'ran').catch(() => undefined);
    await adapter.close();
    expect(typesIn(log).slice(0, 2)).toEqual(['adapter_registered', 'proposal_received']);
    expect(typesIn(log).at(-1)).toBe('adapter_disconnected');
    expect(found()).toEqual([]);
  });

  it('tells what the ledger denies', async () => {
    const server = await serveCgf();
    const { adapter, found } = await openAdapter(
      server.url,
      { vocabulary: 'draft' },
      { meterCaps: { calls: 1 } },
    );
    await adapter.guard(READ, () => 'ran');
    await adapter.guard(READ, () => 'ran').catch(() => undefined);
    await adapter.flush();
    expect(found()).toEqual([]);
  });
});

function digestOf(value: unknown): object {
  return { ...sha256Digest(canonicalBytes(value)) };
}

function typesIn(log: string): string[] {
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
  return lines.map((line) => (JSON.parse(line) as { event_type: string }).event_type);
}
