/** CGF's adapter against servers that lie, and programs that misuse it. */

import { describe, expect, it } from 'vitest';
import { CgfAdapter, type CgfAdapterOptions } from '../../../src/hosts/cgf/index.js';
import { memoryPlace, openLive } from '../../agent/support.js';
import { type Asked, type Said, serveScript } from '../live/scripted-server.js';
import { decides, openAdapter, READ, serveCgf } from './client-kit.js';

const flat = (members: object): Said => ({ body: { decision_id: 'd1', confidence: 1, ...members } });

describe('an answer that is no decision blocks', () => {
  it.each<[string, (asked: Asked) => Said, string]>([
    ['of another proposal', (asked) => decides(asked, { proposal_id: 'p-other' }), 'OTHER_PROPOSAL'],
    ['of no proposal', (asked) => decides(asked, { proposal_id: undefined }), 'MALFORMED'],
    ['of an unknown word', (asked) => decides(asked, { decision: 'allow' }), 'MALFORMED'],
    ['without an id', (asked) => decides(asked, { decision_id: '' }), 'MALFORMED'],
    ['with an id of lines', (asked) => decides(asked, { decision_id: 'd\n1' }), 'MALFORMED'],
    ['of too much confidence', (asked) => decides(asked, { confidence: 2 }), 'MALFORMED'],
    ['of rules that are none', (asked) => decides(asked, { matched_rule_ids: [1] }), 'MALFORMED'],
    ['of a code that is a number', (asked) => decides(asked, { reason_code: 7 }), 'MALFORMED'],
    [
      'of an unknown audit level',
      (asked) => decides(asked, { decision: 'AUDIT', audit_level: 'x' }),
      'MALFORMED',
    ],
    ['that is flat and no decision', () => flat({ decision: 'YES' }), 'MALFORMED'],
    ['that is a list', () => ({ body: [] }), 'MALFORMED'],
    ['that is junk', () => ({ body: '<html>' }), 'MALFORMED'],
    ['that says it twice', () => ({ body: '{"decision":"BLOCK","decision":"ALLOW"}' }), 'MALFORMED'],
    ['that is empty', () => ({ body: '' }), 'MALFORMED'],
    ['that is too long', () => ({ body: ' '.repeat(300_000) }), 'MALFORMED'],
    ['that redirects', () => ({ status: 307, headers: { location: '/v1/evaluate2' } }), 'MALFORMED'],
    ['of a server that fails', () => ({ status: 500, body: {} }), 'STATUS_500'],
    ['of a server that refuses', () => ({ status: 401, body: { detail: 'Unauthorized' } }), 'STATUS_401'],
    ['of a server that wants something else', () => ({ status: 422, body: { detail: [] } }), 'STATUS_422'],
    ['of another status', (asked) => ({ ...(decides(asked) as object), status: 201 }), 'STATUS_201'],
  ])('%s', async (_, evaluate, fault) => {
    const server = await serveCgf(evaluate);
    const { adapter, decided, found, verdict } = await openAdapter(server.url);
    await expect(adapter.guard(READ, () => 'ran')).rejects.toMatchObject({
      ...{ code: 'CGF_INVALID_RESPONSE', act: 'block' },
    });
    expect(decided()).toMatchObject({
      ...{ decision: 'deny', decision_code: 'CGF_INVALID_RESPONSE' },
      checks: expect.arrayContaining([{ check: 'cgf.answer', result: 'fail', code: fault }]),
    });
    await adapter.flush();
    expect(found()).toEqual([]);
    expect(await verdict()).toBe('ok');
    expect(server.asked.map(({ path }) => path)).not.toContain('/v1/evaluate2');
  });
});

it('a decision that was given out before, about another proposal, blocks', async () => {
  const server = await serveCgf((asked) => decides(asked, { decision_id: 'dec-same' }));
  const { adapter, found } = await openAdapter(server.url);
  expect(await adapter.guard(READ, () => 'ran')).toBe('ran');
  await expect(adapter.guard(READ, () => 'ran')).rejects.toMatchObject({ code: 'CGF_INVALID_RESPONSE' });
  await adapter.flush();
  expect(found()).toEqual([]);
});

it("the draft's flat answer is one, and its path of registration is found", async () => {
  const server = await serveScript(({ path }) => {
    if (path === '/v1/evaluate') return flat({ decision: 'ALLOW' });
    if (path === '/v1/adapters/register') return { body: { adapter_id: 'openclaw-adapter-001' } };
    return { status: 404, body: { detail: 'Not Found' } };
  });
  const { adapter, decided } = await openAdapter(server.url);
  expect(await adapter.guard(READ, () => 'ran')).toBe('ran');
  expect(adapter.adapterId).toBe('openclaw-adapter-001');
  expect(decided()).toMatchObject({ decision_code: 'CGF_ALLOW', policy_id: 'cgf:not-stated' });
});

it('texts of a server are shown without control characters, and cut', async () => {
  const justification = `\u001b[2J${'x'.repeat(900)}`;
  const server = await serveCgf((asked) => decides(asked, { decision: 'BLOCK', justification }));
  const { adapter } = await openAdapter(server.url);
  const denied = (await adapter.guard(READ, () => 'ran').catch((error: unknown) => error)) as Error;
  expect(denied.message).not.toContain('\u001b');
  expect(denied.message.length).toBeLessThan(400);
});

it('a registration that is no good is reported, and actions are decided without it', async () => {
  const server = await serveCgf(decides, ({ path }) =>
    path === '/v1/register' ? { body: { adapter_id: 'a b', fail_mode_table: 7 } } : undefined,
  );
  const { adapter, problems } = await openAdapter(server.url);
  expect(await adapter.connect()).toBe(false);
  expect(await adapter.guard(READ, () => 'ran')).toBe('ran');
  expect(server.of('/v1/evaluate')[0].body).not.toHaveProperty('adapter_id');
  expect(problems[0]).toMatchObject({ code: 'CGF_REFUSED' });
});

it('an aborted call asks nobody, and one that is aborted while it is decided does not run', async () => {
  const controller = new AbortController();
  const server = await serveCgf(() => {
    controller.abort(new Error('enough'));
    return 'hang';
  });
  const { adapter, events, found } = await openAdapter(server.url);
  const { signal } = controller;
  await expect(adapter.guard(READ, () => 'ran', { signal })).rejects.toThrow('enough');
  await expect(adapter.guard(READ, () => 'ran', { signal })).rejects.toThrow('enough');
  expect(server.of('/v1/evaluate')).toHaveLength(1);
  expect(events().filter(({ event_type: type }) => type === 'authorization')).toEqual([]);
  expect(adapter.circuit).toBe('closed');
  await adapter.flush();
  expect(found()).toEqual([]);
});

describe('misuse', () => {
  it.each<[string, Partial<CgfAdapterOptions>]>([
    ['an endpoint that is none', { endpoint: 'ftp://cgf' }],
    ['credentials in the endpoint', { endpoint: 'http://user:S3CRET@cgf' }],
    ['a deadline that is too short', { timeoutMs: 50 }],
    ['a deadline that is too long', { timeoutMs: 5_001 }],
    ['an unknown vocabulary', { vocabulary: 'sdk' as never }],
    ['an unknown fail mode', { failModes: [{ action_type: 'a', risk_tier: 'b', fail_mode: 'x' as never }] }],
    ['a ledger beside a gate', { gate: {} as never }],
    ['no host', { hostConfig: {} as never }],
    ['an unknown option', { failMode: 'fail_open' } as never],
  ])('%s is refused', async (_, options) => {
    const ledger = await openLive(memoryPlace());
    const make = (): unknown =>
      new CgfAdapter({ endpoint: 'http://127.0.0.1:1', ledger, hostConfig: { hostType: 'x' }, ...options });
    expect(make).toThrow(/./);
    expect(make).not.toThrow(/S3CRET/);
  });

  it.each([
    ['an unknown action', { actionType: 'shell' }],
    ['params that are none', { params: ['x'] }],
    ['an id of spaces', { proposalId: 'a b' }],
    ['a cost that is none', { estimatedCost: { tokens: Number.NaN } }],
    ['a priority beyond all', { priority: 101 }],
    ['an unknown member', { tool: 'fs.read' }],
  ])('%s is refused, and nothing is asked', async (_, members) => {
    const server = await serveCgf();
    const { adapter } = await openAdapter(server.url);
    await expect(adapter.guard({ ...READ, ...members } as never, () => 'ran')).rejects.toThrow(/./);
    expect(server.of('/v1/evaluate')).toEqual([]);
  });
});
