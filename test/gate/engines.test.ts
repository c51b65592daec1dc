/** Policy engines as advisers: Cedar by its interface, Open Policy Agent and AuthZEN over HTTP. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cedarAdviser, type CedarModule } from '../../src/gate/advisers/cedar.js';
import { authZenAdviser, opaAdviser, opaWasmAdviser } from '../../src/gate/advisers/http.js';
import type { GateCall } from '../../src/gate/gate.js';
import { memoryPlace } from '../agent/support.js';
import { openGate } from './support.js';

const READ: GateCall = {
  ref: 'c1',
  tool: 'fs.read',
  params: { path: '/x', n: 1.5 },
  reserve: { usd: '0.10' },
};
const BOUNDS = { meterCaps: { calls: 10, usd: '5' } };

/** A server that gives one answer, and what it was asked. */
async function answering(
  status: number,
  body: string,
  headers: Record<string, string> = {},
): Promise<{ url: string; asked: unknown[] }> {
  const asked: unknown[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      asked.push({ body: JSON.parse(text) as unknown, token: request.headers.authorization });
      response.writeHead(status, headers).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/data/agents/allow`, asked };
}

describe('Open Policy Agent', () => {
  it.each([
    ['true', '{"result":true}', 'allow', 'ALLOW'],
    ['false', '{"result":false}', 'deny', 'POLICY_DENIED'],
    ['an undefined result', '{}', 'deny', 'POLICY_UNDEFINED'],
    ['null', '{"result":null}', 'deny', 'POLICY_UNDEFINED'],
    ['a text', '{"result":"true"}', 'deny', 'POLICY_UNDEFINED'],
    ['an object that allows', '{"result":{"allow":true}}', 'allow', 'ALLOW'],
    ['an object with a code', '{"result":{"allow":false,"code":"AFTER_HOURS"}}', 'deny', 'AFTER_HOURS'],
    ['an object without an answer', '{"result":{}}', 'deny', 'POLICY_DENIED'],
    ['a rewrite', '{"result":{"effect":"rewrite","params":{}}}', 'rewrite', 'ALLOW'],
    ['a question', '{"result":{"effect":"ask","approvers":["human:olga"]}}', 'ask', 'APPROVAL_REQUIRED'],
    ['another effect', '{"result":{"effect":"allow"}}', 'deny', 'ADVISER_INVALID'],
    ['no JSON', 'yes', 'deny', 'ADVISER_FAILED'],
    ['a duplicate key', '{"result":false,"result":true}', 'deny', 'ADVISER_FAILED'],
    ['much', `{"result":true,"x":"${'x'.repeat(70_000)}"}`, 'deny', 'ADVISER_FAILED'],
  ])('that answers with %s', async (_, body, effect, code) => {
    const { url } = await answering(200, body);
    const { gate } = await openGate(memoryPlace(), BOUNDS, { advisers: [opaAdviser({ url })] });
    expect(await gate.decide(READ)).toMatchObject({ effect, code });
  });

  it('is given the call, and a token', async () => {
    const { url, asked } = await answering(200, '{"result":true}');
    const advisers = [opaAdviser({ url, token: 'secret' })];
    const place = memoryPlace();
    const { gate } = await openGate(place, BOUNDS, { advisers });
    await gate.decide({ ...READ, session: 's' });
    const input = {
      principal: 'agent:a1',
      tool: 'fs.read',
      params: READ.params,
      reserve: { usd: '0.10' },
      resources: [],
      session: 's',
    };
    expect(asked).toEqual([{ body: { input }, token: 'Bearer secret' }]);
    expect(JSON.stringify(place.events())).not.toContain('secret');
  });

  it.each([
    ['an error', 500, {}],
    ['a redirection', 302, { location: 'http://127.0.0.1:1/' }],
  ])('that answers with %s denies', async (_, status, headers) => {
    const { url } = await answering(status, '{"result":true}', headers);
    const { gate } = await openGate(memoryPlace(), BOUNDS, { advisers: [opaAdviser({ url })] });
    expect((await gate.decide(READ)).code).toBe('ADVISER_FAILED');
  });

  it('that is gone denies', async () => {
    const advisers = [opaAdviser({ url: 'http://127.0.0.1:1/' })];
    const { gate } = await openGate(memoryPlace(), BOUNDS, { advisers });
    expect((await gate.decide(READ)).code).toBe('ADVISER_FAILED');
  });

  it('runs as WebAssembly', async () => {
    let answer: unknown = [{ result: true }];
    const policy = { evaluate: () => answer as [] };
    const { gate } = await openGate(memoryPlace(), BOUNDS, { advisers: [opaWasmAdviser(policy)] });
    expect((await gate.decide(READ)).effect).toBe('allow');
    answer = [];
    expect((await gate.decide({ ...READ, ref: 'c2' })).code).toBe('POLICY_UNDEFINED');
  });
});

it.each([
  ['true', 200, '{"decision":true}', 'allow', 'ALLOW'],
  ['false', 200, '{"decision":false,"context":{"code":"NO","reason":"no"}}', 'deny', 'NO'],
  ['no decision', 200, '{}', 'deny', 'ADVISER_FAILED'],
  ['a text', 200, '{"decision":"true"}', 'deny', 'ADVISER_FAILED'],
  ['403', 403, '{"decision":true}', 'deny', 'ADVISER_FAILED'],
])('AuthZEN that answers with %s', async (_, status, body, effect, code) => {
  const { url, asked } = await answering(status, body);
  const { gate } = await openGate(memoryPlace(), BOUNDS, { advisers: [authZenAdviser({ url })] });
  expect(await gate.decide(READ)).toMatchObject({ effect, code });
  expect(asked).toMatchObject([
    {
      body: {
        subject: { type: 'agent', id: 'a1' },
        resource: { type: 'tool', id: 'fs.read' },
        action: { name: 'call', properties: READ.params },
      },
    },
  ]);
});

it.each(['file:///etc/passwd', 'no url'])('refuses the URL %s', (url) => {
  expect(() => opaAdviser({ url })).toThrow(TypeError);
});

describe('Cedar', () => {
  const success = { type: 'success' } as const;
  const failure = { type: 'failure', errors: [{ message: 'unexpected token' }] } as const;

  function cedar(answer: unknown, parsed: unknown = success): CedarModule & { readonly asked: object[] } {
    const asked: object[] = [];
    return {
      asked,
      preparsePolicySet: () => parsed as never,
      validate: () => ({ type: 'success', validationErrors: [] }),
      statefulIsAuthorized: (call) => {
        asked.push(call);
        return answer as never;
      },
    };
  }
  const decided = (decision: string, errors: object[] = [], reason: string[] = []) => ({
    type: 'success',
    response: { decision, diagnostics: { reason, errors } },
  });

  it.each([
    ['allows', decided('allow'), 'allow', 'ALLOW'],
    ['denies', decided('deny', [], ['policy0']), 'deny', 'CEDAR_DENIED'],
    [
      'skips a policy that fails',
      decided('allow', [{ error: { message: 'no attribute' } }]),
      'deny',
      'CEDAR_ERROR',
    ],
    ['fails', failure, 'deny', 'CEDAR_ERROR'],
  ])('that %s', async (_, answer, effect, code) => {
    const { gate } = await openGate(memoryPlace(), BOUNDS, {
      advisers: [cedarAdviser(cedar(answer), { policies: '' })],
    });
    expect(await gate.decide(READ)).toMatchObject({ effect, code });
  });

  it('is given exact amounts, and parameters that can pretend nothing', async () => {
    const module = cedar(decided('allow'));
    const { gate } = await openGate(memoryPlace(), BOUNDS, {
      advisers: [cedarAdviser(module, { policies: '' })],
    });
    await gate.decide(READ);
    expect(module.asked).toMatchObject([
      {
        principal: { type: 'Agent', id: 'a1' },
        resource: { type: 'Tool', id: 'fs.read' },
        context: {
          params: { path: '/x', n: { __extn: { fn: 'decimal', arg: '1.5' } } },
          reserve: { usd: { __extn: { fn: 'decimal', arg: '0.1' } } },
        },
      },
    ]);
    const params = { owner: { __entity: { type: 'Human', id: 'root' } } };
    expect((await gate.decide({ ...READ, ref: 'c2', params })).code).toBe('ADVISER_FAILED');
  });

  it('refuses policies that do not parse', () => {
    expect(() => cedarAdviser(cedar(decided('allow'), failure), { policies: 'x' })).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID' }) as Error,
    );
  });
});
