/** The gate's own tools, as a server of MCP in both eras: an agent is told of its own, and nothing else. */

import { describe, expect, it } from 'vitest';
import type { Gate } from '../../../src/gate/gate.js';
import { GateTools, serveGateTools } from '../../../src/gate/mcp/gate-tools.js';
import { PassThrough } from 'node:stream';
import { AGENT, filePlace, grant, openLive, type Place } from '../../agent/support.js';
import { reopen } from '../support.js';
import { bytesOf, call, MODERN } from './support.js';

type Answer = Record<string, never>;

interface Opened {
  readonly gate: Gate;
  readonly grantId: string;
  readonly ask: (message: unknown) => Promise<Answer | undefined>;
  /** The value that a tool tells, and whether it is an error. */
  readonly tell: (name: string, args?: object) => Promise<[value: Answer, isError: boolean]>;
}

async function open(place: Place): Promise<Opened> {
  const ledger = await openLive(place);
  const grantId = await grant(ledger, {
    allowedTools: ['mcp.s.*'],
    meterCaps: { calls: 5 },
    approvals: [{ tools: ['mcp.s.deploy'], approvers: ['human:olga'] }],
  });
  await grant(ledger, { principalId: 'agent:other', allowedTools: ['*'], meterCaps: { calls: 7 } });
  await ledger.close();
  const gate = await reopen(place);
  const tools = new GateTools({
    open: () => Promise.resolve(gate),
    principal: AGENT,
    howToApprove: (id) => `approve ${id}`,
  });
  const ask: Opened['ask'] = async (message) => {
    const answer = await tools.answer(bytesOf(message));
    return answer && (JSON.parse(Buffer.from(answer).toString()) as Answer);
  };
  const tell: Opened['tell'] = async (name, args = {}) => {
    const answer = (await ask(call(1, name, args))) as unknown as { result: Record<string, unknown> };
    const { structuredContent, content, isError = false } = answer.result;
    expect(JSON.parse((content as [{ text: string }])[0].text)).toEqual(structuredContent);
    return [structuredContent as Answer, isError as boolean];
  };
  return { gate, grantId, ask, tell };
}

const request = (id: unknown, method: string, params: object = {}): object => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

describe("the gate's tools", () => {
  it('are there in both eras', async () => {
    const { ask } = await open(filePlace());
    const began = await ask(request(1, 'initialize', { protocolVersion: '2025-06-18' }));
    expect(began).toMatchObject({
      id: 1,
      result: { protocolVersion: '2025-06-18', capabilities: { tools: {} } },
    });
    const newest = await ask(request(1, 'initialize', { protocolVersion: '1999-01-01' }));
    expect(newest).toMatchObject({ result: { protocolVersion: '2025-11-25' } });
    expect(await ask({ jsonrpc: '2.0', method: 'notifications/initialized' })).toBeUndefined();
    expect(await ask(request('p', 'ping'))).toEqual({ jsonrpc: '2.0', id: 'p', result: {} });
    const tools = (await ask(request(2, 'tools/list'))) as unknown as {
      result: { tools: { name: string }[] };
    };
    expect(tools.result.tools.map(({ name }) => name)).toEqual(['budget', 'why', 'request_approval']);
    expect(tools.result).not.toHaveProperty('resultType');

    const modern = { _meta: MODERN };
    expect(await ask(request(3, 'server/discover', modern))).toMatchObject({
      result: {
        resultType: 'complete',
        supportedVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
      },
    });
    expect(await ask(request(4, 'tools/list', modern))).toMatchObject({
      result: { resultType: 'complete', cacheScope: 'public', tools: tools.result.tools },
    });
    const later = { _meta: { ...MODERN, 'io.modelcontextprotocol/protocolVersion': '2027-01-01' } };
    expect(await ask(request(5, 'tools/list', later))).toMatchObject({
      error: { code: -32022, data: { requested: '2027-01-01' } },
    });
  });

  it.each([
    ['[]', null, -32600],
    ['{', null, -32700],
    ['{"jsonrpc":"2.0","id":1}', 1, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', 1, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"x"}', 1, -32601],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}', 1, -32602],
  ])('refuse %s', async (message, id, code) => {
    const { ask } = await open(filePlace());
    expect(await ask(message)).toMatchObject({ id, error: { code } });
  });

  it('tell what is left of the own grants', async () => {
    const { gate, grantId, tell } = await open(filePlace());
    await gate.decide({ tool: 'mcp.s.x', params: {} });
    const [value, isError] = await tell('budget');
    expect(isError).toBe(false);
    expect(value).toMatchObject({
      principal: AGENT,
      grants: [{ grant: grantId, running: 1, units: { calls: { cap: '5', reserved: '1', left: '4' } } }],
    });
    expect(JSON.stringify(value)).not.toContain('other');
  });

  it('tell what was decided of an own call, and of nobody else', async () => {
    const { gate, tell } = await open(filePlace());
    const denied = await gate.decide({ tool: 'net.get', params: {} });
    expect((await tell('why', { id: denied.authorization }))[0]).toMatchObject({
      event: { decision: 'deny', decision_code: 'TOOL_NOT_ALLOWED' },
    });
    const allowed = await gate.decide({ tool: 'mcp.s.x', params: {}, ref: 'c' });
    await gate.settle('c', { outcome: 'failure', errorCode: 'X' });
    expect((await tell('why', { id: allowed.authorization }))[0]).toMatchObject({
      event: { decision: 'allow' },
      executions: [{ outcome: 'failure', error_code: 'X' }],
    });
    const others = await gate.decide({ tool: 'mcp.s.x', params: {}, principal: 'agent:other' });
    const missing = [{ code: 'EVENT_NOT_FOUND' }, true];
    const none = `sha-256:${'A'.repeat(43)}`;
    for (const id of [others.authorization, others.authorization.slice(0, 20), none, 'nonsense', '0'])
      expect(await tell('why', { id })).toMatchObject(missing);
    for (const id of ['', 7, 'x'.repeat(201), undefined])
      expect(await tell('why', { id })).toMatchObject([{ code: 'USAGE' }, true]);
  });

  it('ask for an approval of a call, once, that then passes once', async () => {
    const place = filePlace();
    const { gate, tell } = await open(place);
    const args = { tool: 'mcp.s.deploy', arguments: { to: 'prod' } };
    const [asked, isError] = await tell('request_approval', args);
    expect(isError).toBe(false);
    expect(asked).toMatchObject({ status: 'waiting', approvers: ['human:olga'], count: 1 });
    const request = String(asked['request']);
    expect(asked['how']).toBe(`approve ${request}`);
    const size = place.events().length;
    expect((await tell('request_approval', args))[0]).toEqual(asked);
    expect(place.events()).toHaveLength(size);

    await gate.ledger.approve(request, { principalId: 'human:olga' });
    expect((await tell('request_approval', args))[0]).toMatchObject({ status: 'not_needed' });
    const made = { tool: 'mcp.s.deploy', params: { to: 'prod' } };
    expect((await gate.decide({ ...made, params: { to: 'test' } })).effect).toBe('ask');
    expect((await gate.decide(made)).effect).toBe('allow');
    expect((await gate.decide(made)).effect).toBe('ask');
    expect(await place.verdict()).toBe('ok');
  });

  it('reserve nothing for a call that needs no approval, or that cannot be made', async () => {
    const place = filePlace();
    const { tell } = await open(place);
    const size = place.events().length;
    expect(await tell('request_approval', { tool: 'mcp.s.x' })).toEqual([
      { status: 'not_needed', tool: 'mcp.s.x' },
      false,
    ]);
    expect(await tell('request_approval', { tool: 'net.get' })).toMatchObject([
      { code: 'TOOL_NOT_ALLOWED' },
      true,
    ]);
    for (const args of [{}, { tool: '' }, { tool: 'mcp.s.x', arguments: [] }, { tool: 'mcp.s.x', more: 1 }])
      expect(await tell('request_approval', args)).toMatchObject([{ code: 'USAGE' }, true]);
    expect(place.events()).toHaveLength(size);
  });

  it('are served over lines, in order, whatever comes', async () => {
    const place = filePlace();
    const { gate } = await open(place);
    const [input, output] = [new PassThrough(), new PassThrough()];
    let tries = 0;
    const openGate = (): Promise<Gate> => {
      tries += 1;
      return tries === 1 ? Promise.reject(new Error('later')) : Promise.resolve(gate);
    };
    const served = serveGateTools({ open: openGate, principal: AGENT, input, output, maxMessageBytes: 200 });
    const lines = [call(1, 'budget'), call(2, 'budget'), request(3, 'x'.repeat(200)), request(4, 'ping')];
    input.end(lines.map((each) => `${JSON.stringify(each)}\r\n`).join(''));
    await served;
    const answers = (output.read() as Buffer).toString().trim().split('\n');
    expect(answers.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { id: 1, result: { isError: true, structuredContent: { code: 'INTERNAL_ERROR' } } },
      { id: 2, result: { structuredContent: { principal: AGENT } } },
      { id: null, error: { code: -32600 } },
      { id: 4, result: {} },
    ]);
  });
});
