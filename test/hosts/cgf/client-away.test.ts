/** CGF's adapter while its server does not answer: the fail modes, the circuit, and outcomes that wait. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CgfAdapter } from '../../../src/hosts/cgf/index.js';
import { AGENT } from '../../agent/support.js';
import { canonicalBytes } from '../../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../../src/base/value/digest.js';
import { decides, openAdapter, READ, serveCgf, TABLE } from './client-kit.js';

const WRITE = { actionType: 'memory_write', params: { key: 'k' } } as const;
const AWAY = 'http://127.0.0.1:9';

describe('fail modes', () => {
  it.each([
    ['tool_call', 'low', 'run', 'CGF_FAIL_OPEN'],
    ['tool_call', 'medium', 'defer', 'CGF_FAIL_DEFER'],
    ['tool_call', 'high', 'block', 'CGF_FAIL_CLOSED'],
    ['memory_write', 'medium', 'block', 'CGF_FAIL_CLOSED'],
    ['message_send', 'low', 'run', 'CGF_FAIL_OPEN'],
    ['tool_call', 'extreme', 'block', 'CGF_FAIL_CLOSED'],
  ] as const)('by default: %s at %s risk: %s', async (actionType, riskTier, act, code) => {
    const { adapter, decided, verdict, found } = await openAdapter(AWAY);
    const ran = adapter.guard({ ...READ, actionType, riskTier }, () => 'ran');
    if (act === 'run') expect(await ran).toBe('ran');
    else await expect(ran).rejects.toMatchObject({ code, act });
    expect(decided()).toMatchObject({
      decision: act === 'run' ? 'allow' : 'deny',
      decision_code: code,
      policy_id: 'cgf:fail_mode_table',
      checks: expect.arrayContaining([expect.objectContaining({ check: 'cgf.fail_mode' })]),
    });
    await adapter.flush();
    expect(await verdict()).toBe('ok');
    expect(found()).toEqual([]);
  });

  it.each([
    ['a server that hangs', 'hang', 'evaluate_timeout'],
    ['a connection that breaks', 'drop', 'cgf_unreachable'],
    ['a proxy without a server', { status: 503 }, 'cgf_unreachable'],
  ] as const)("%s: by the server's own table", async (_, said, type) => {
    const server = await serveCgf(() => said);
    const { adapter, decided, found, log } = await openAdapter(
      server.url,
      said === 'hang' ? { timeoutMs: 1_000 } : {},
    );
    await expect(adapter.guard({ ...WRITE, riskTier: 'low' }, () => 'ran')).rejects.toMatchObject({
      code: 'CGF_FAIL_CLOSED',
    });
    expect(decided().policy_digest).toEqual({ ...sha256Digest(canonicalBytes(TABLE)) });
    expect(await adapter.guard(READ, () => 'ran')).toBe('ran');
    await adapter.flush();
    expect(readFileSync(log, 'utf8')).toContain(`"event_type":"${type}"`);
    // The log alone does not have the table.
    expect(found()).toEqual(['CGF-7 FAIL_MODE_NOT_OF_TABLE']);
    // Asked once: the server may have decided.
    expect(server.of('/v1/evaluate')).toHaveLength(2);
    expect(server.of('/v1/outcomes/report')).toEqual([]);
  });

  it('the table that the server gave last is gone by after a start', async () => {
    const server = await serveCgf();
    const { adapter, path } = await openAdapter(server.url);
    expect(await adapter.connect()).toBe(true);
    await server.stop();
    const next = new CgfAdapter({
      endpoint: AWAY,
      ...{ gate: adapter.gate, hostConfig: { hostType: 'custom' }, principal: AGENT },
    });
    await expect(next.guard({ ...WRITE, riskTier: 'low' }, () => 'ran')).rejects.toMatchObject({
      code: 'CGF_FAIL_CLOSED',
    });
    await next.close();
    expect(readdirSync(`${path}.cgf`)).toContain('fail-modes.json');
  });

  it('what the operator says comes first', async () => {
    const failModes = [{ action_type: 'tool_call', risk_tier: 'low', fail_mode: 'fail_closed' }] as const;
    const { adapter } = await openAdapter(AWAY, { failModes });
    await expect(adapter.guard(READ, () => 'ran')).rejects.toMatchObject({ code: 'CGF_FAIL_CLOSED' });
  });

  it('a broken table of a start before is reported, and the defaults hold', async () => {
    const { adapter, path, problems } = await openAdapter(AWAY);
    await adapter.connect();
    writeFileSync(join(`${path}.cgf`, 'fail-modes.json'), '[{"action_type":"tool_call"}]');
    const options = { gate: adapter.gate, hostConfig: { hostType: 'custom' }, principal: AGENT };
    const next = new CgfAdapter({ endpoint: AWAY, ...options, onProblem: (error) => problems.push(error) });
    expect(await next.guard(READ, () => 'ran')).toBe('ran');
    expect(problems).toEqual([expect.objectContaining({ code: 'CGF_REFUSED' })]);
    await next.close();
  });

  it('grants hold where nobody answers', async () => {
    const { adapter, decided, found } = await openAdapter(AWAY, {}, { meterCaps: { calls: 1 } });
    await adapter.guard(READ, () => 'ran');
    await expect(adapter.guard(READ, () => 'ran')).rejects.toMatchObject({ code: 'RESERVATION_OVER_CAP' });
    expect(decided()).toMatchObject({ decision: 'deny', policy_id: 'cgf:fail_mode_table' });
    await adapter.flush();
    expect(found()).toEqual([]);
  });

  it.each(['low', 'medium', 'high'])('the draft tells what is done at %s risk', async (riskTier) => {
    const { adapter, found } = await openAdapter(AWAY, { vocabulary: 'draft' });
    await adapter.guard({ ...READ, riskTier }, () => 'ran').catch(() => undefined);
    await adapter.flush();
    expect(found()).toEqual([]);
  });
});

describe('the circuit', () => {
  it('opens after failures in a row, and closes when the server is back', async () => {
    const server = await serveCgf();
    const options = { circuit: { failures: 2, coolDownMs: 2_000 } };
    const { adapter, log } = await openAdapter(server.url, options);
    await adapter.connect();
    await server.stop();
    for (let i = 0; i < 3; i += 1) await adapter.guard(READ, () => 'ran');
    expect(adapter.circuit).not.toBe('closed');
    await adapter.flush();
    expect(readFileSync(log, 'utf8')).toContain('CIRCUIT_OPEN');
    const again = await serveCgf(decides, undefined, server.port);
    await expect.poll(() => adapter.circuit).toBe('half_open');
    await adapter.guard(READ, () => 'ran');
    expect(adapter.circuit).toBe('closed');
    expect(again.of('/v1/evaluate')).toHaveLength(1);
  });

  it('is not opened by answers that are none: those block', async () => {
    const server = await serveCgf(() => ({ body: 'junk' }));
    const { adapter } = await openAdapter(server.url, { circuit: { failures: 1 } });
    for (let i = 0; i < 3; i += 1)
      await expect(adapter.guard(READ, () => 'ran')).rejects.toMatchObject({ code: 'CGF_INVALID_RESPONSE' });
    expect(adapter.circuit).toBe('closed');
  });
});

describe('outcomes', () => {
  const isReport = ({ path }: { readonly path: string }): boolean => path === '/v1/outcomes/report';

  it('wait on disk until the server takes them, in order, after another start too', async () => {
    let isAway = true;
    const server = await serveCgf(decides, (asked) => (isReport(asked) && isAway ? 'drop' : undefined));
    const { adapter, path } = await openAdapter(server.url);
    for (let i = 0; i < 5; i += 1) await adapter.guard({ ...READ, proposalId: `p-${i}` }, () => 'ran');
    expect(await adapter.flush()).toBe(5);
    await adapter.close();
    isAway = false;
    server.asked.length = 0;
    const next = new CgfAdapter({
      endpoint: server.url,
      ...{ gate: adapter.gate, hostConfig: { hostType: 'custom' }, folder: `${path}.cgf` },
    });
    await next.connect();
    expect(await next.flush()).toBe(0);
    expect(server.asked.filter(isReport).map(({ body }) => body.proposal_id)).toEqual([
      ...['p-0', 'p-1', 'p-2', 'p-3', 'p-4'],
    ]);
    await next.close();
  });

  it('that the server refuses are given up, and told', async () => {
    const server = await serveCgf(decides, (asked) => (isReport(asked) ? { status: 404 } : undefined));
    const { adapter, problems, log } = await openAdapter(server.url);
    await adapter.guard(READ, () => 'ran');
    expect(await adapter.flush()).toBe(0);
    expect(problems).toEqual([expect.objectContaining({ code: 'OUTCOME_REFUSED' })]);
    await adapter.close();
    expect(readFileSync(log, 'utf8')).toContain('OUTCOME_LOSS');
  });

  it('have nothing of parameters, results and tokens', async () => {
    const server = await serveCgf(decides, (asked) => (isReport(asked) ? { status: 500 } : undefined));
    const { adapter, path, log } = await openAdapter(server.url, { token: 'S3CRET-TOKEN' });
    const params = { tool_name: 'fs.read', tool_args: { password: 'S3CRET-ARGS' } };
    await adapter.guard({ ...READ, params }, ({ report }) => report({ output: 'S3CRET-OUT' }));
    await adapter.flush();
    expect(server.of('/v1/evaluate')[0].headers.authorization).toBe('Bearer S3CRET-TOKEN');
    const folder = `${path}.cgf/outbox`;
    const kept = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    expect(kept.join('')).toContain('proposal_id');
    for (const text of [...kept, readFileSync(log, 'utf8'), readFileSync(path, 'utf8')])
      expect(text).not.toContain('S3CRET');
  });
});
