/** `northroot serve --face cgf` in processes of its own: several at once, killed, stopped, and on a full disk. */

import { request as httpRequest } from 'node:http';
import { describe, expect, it } from 'vitest';
import { expectError, expectOk, type Run, Workshop } from '../../cli/runner.js';
import {
  type Answer,
  eventsIn,
  type Fault,
  newLedger,
  Service,
  type ServeOptions,
} from '../../gate/service-process.js';
import { evaluation, type Json, outcomeOf, policyBytes, REGISTRATION, toolCall } from './live-kit.js';

const shop = new Workshop();
const TOOL = 'fs.read';

const start = (ledger: string, { args = [], ...more }: ServeOptions = {}): Promise<Service> =>
  Service.start(shop, ledger, { args: ['--face', 'cgf', ...args], ...more });

async function register(service: Service): Promise<string> {
  return (await service.ask('/v1/register', REGISTRATION)).body['adapter_id'] as string;
}

const decisionOf = (answer: Answer | undefined): Json => answer?.body['decision'] as Json;
const effectOf = (answer: Answer | undefined): unknown => decisionOf(answer)['decision'];

it('two adapters that race for a cap of 7, by two services of the ledger, get exactly 7 allowed', async () => {
  const ledger = newLedger(shop, 'calls=7');
  const services = [await start(ledger), await start(ledger, { args: ['--socket', 'second.sock'] })] as const;
  const adapters = [await register(services[0]), await register(services[1])] as const;
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, n) =>
      services[n % 2 === 0 ? 0 : 1].ask(
        '/v1/evaluate',
        evaluation(adapters[n % 3 === 0 ? 0 : 1], toolCall(`p${n}`, TOOL)),
      ),
    ),
  );
  const allowed = answers.filter((answer) => effectOf(answer) === 'ALLOW');
  expect(allowed).toHaveLength(7);
  expect(new Set(answers.map(effectOf))).toEqual(new Set(['ALLOW', 'BLOCK']));
  // An outcome may be reported to the other one.
  for (const [n, answer] of answers.entries()) {
    if (effectOf(answer) !== 'ALLOW') continue;
    const outcome = outcomeOf(adapters[n % 3 === 0 ? 0 : 1], decisionOf(answer));
    const reported = await services[n % 2 === 0 ? 1 : 0].ask('/v1/outcomes/report', outcome);
    expect(reported.status).toBe(200);
  }
  for (const service of services) expect((await service.stop()).status).toBe(0);
  expect(eventsIn(shop, ledger, 'execution')).toHaveLength(7);
  expect(JSON.parse(expectOk(shop.run(['budget', ledger, '--format', 'json'])))).toMatchObject({
    grants: [{ meters: [{ unit: 'calls', used: { v: '7' }, reserved: { v: '0' } }] }],
  });
});

it('an outcome that is told to two services of the ledger is recorded once, and another one refused', async () => {
  const ledger = newLedger(shop, 'calls=7');
  const services = [await start(ledger), await start(ledger, { args: ['--socket', 'twin.sock'] })] as const;
  const adapter = await register(services[0]);
  const tell = (n: number, decision: Json, more: Json = {}): Promise<Answer> =>
    services[n % 2 === 0 ? 0 : 1].ask('/v1/outcomes/report', outcomeOf(adapter, decision, more));
  // Both know of it before it ends.
  const decide = async (id: string): Promise<Json> => {
    const asked = evaluation(adapter, toolCall(id, TOOL));
    const first = decisionOf(await services[0].ask('/v1/evaluate', asked));
    expect(decisionOf(await services[1].ask('/v1/evaluate', asked))['decision_id']).toBe(
      first['decision_id'],
    );
    return first;
  };
  const one = await decide('one');
  expect((await tell(0, one)).status).toBe(200);
  expect((await tell(1, one)).status).toBe(200);
  const two = await decide('two');
  expect((await tell(0, two)).status).toBe(200);
  expect((await tell(1, two, { success: false })).status).toBe(409);
  const kept = { executed: false, success: false };
  const three = await decide('three');
  expect((await tell(0, three)).status).toBe(200);
  expect((await tell(1, three, kept)).status).toBe(409);
  const four = await decide('four');
  expect((await tell(0, four, kept)).status).toBe(200);
  expect((await tell(1, four, kept)).status).toBe(200);
  const five = await decide('five');
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) => tell(n, five, { duration_ms: n + 1 })),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  for (const service of services) expect((await service.stop()).status).toBe(0);
  expect(eventsIn(shop, ledger, 'execution')).toHaveLength(5);
  expect(shop.run(['verify', ledger]).status).toBe(0);
});

/** The first write of the service is the registration, the second a decision, the third an execution. */
const MOMENTS: readonly (readonly [string, Omit<Fault, 'file'>])[] = [
  ['before the decision is written', { at: 2, manner: 'before' }],
  ['amid the line of the decision', { at: 2, manner: 'torn', bytes: 300 }],
  ['once the decision is written', { at: 2, manner: 'written' }],
  ['before the decision is answered', { at: 2, manner: 'synced' }],
  ['before the outcome is written', { at: 3, manner: 'before' }],
  ['amid the line of the outcome', { at: 3, manner: 'torn', bytes: 300 }],
  ['before the report is answered', { at: 3, manner: 'synced' }],
];

describe('a service that is killed', () => {
  it.each(MOMENTS)('%s: the next one gives the same answer, and records it once', async (_, fault) => {
    const ledger = newLedger(shop, 'calls=1');
    const args = ['--cgf-events', shop.path(`${ledger}.events`)];
    const service = await start(ledger, { args, fault: { ...fault, file: shop.path(ledger) } });
    const adapter = await register(service);
    const asked = evaluation(adapter, toolCall('p1', TOOL));
    const first = await service.try('/v1/evaluate', asked);
    const outcome = outcomeOf(adapter, decisionOf(first) ?? {});
    if (first !== undefined) expect(await service.try('/v1/outcomes/report', outcome)).toBeUndefined();
    expect((await service.process.end()).status).toBeNull();

    const next = await start(ledger, { args });
    const again = await next.ask('/v1/evaluate', asked);
    const isReported = eventsIn(shop, ledger, 'execution').length > 0;
    expect([again.status, effectOf(again)]).toEqual(isReported ? [409, 'BLOCK'] : [200, 'ALLOW']);
    const decision = isReported ? decisionOf(first) : decisionOf(again);
    if (first !== undefined) expect(decision['decision_id']).toBe(decisionOf(first)['decision_id']);
    const done = outcomeOf(adapter, decision);
    for (let n = 0; n < 2; n += 1) expect((await next.ask('/v1/outcomes/report', done)).status).toBe(200);
    expect((await next.stop()).status).toBe(0);
    expect(eventsIn(shop, ledger, 'authorization')).toHaveLength(2);
    expect(eventsIn(shop, ledger, 'execution')).toHaveLength(1);
    expect(shop.run(['verify', ledger]).status).toBe(0);
  });
});

it('a service that is stopped leaves adapters to their fail mode; what it decides afterwards counts once', async () => {
  const ledger = newLedger(shop, 'calls=1');
  const service = await start(ledger);
  const adapter = await register(service);
  const asked = evaluation(adapter, toolCall('p1', TOOL));
  service.process.kill('SIGSTOP');
  const gaveUp = await new Promise<boolean>((resolve) => {
    const headers = { 'content-type': 'application/json' };
    const options = { socketPath: service.socket, path: '/v1/evaluate', method: 'POST', headers };
    const request = httpRequest(options, () => resolve(false));
    request.on('error', () => resolve(true));
    request.setTimeout(500, () => request.destroy());
    request.end(JSON.stringify(asked));
  });
  expect(gaveUp).toBe(true);
  service.process.kill('SIGCONT');
  const answer = await service.ask('/v1/evaluate', asked);
  expect(effectOf(answer)).toBe('ALLOW');
  const late = outcomeOf(adapter, decisionOf(answer));
  expect((await service.ask('/v1/outcomes/report', late)).status).toBe(200);
  await service.stop();
  expect(eventsIn(shop, ledger, 'authorization')).toHaveLength(2);
  expect(shop.run(['verify', ledger]).status).toBe(0);
});

it('on a full disk nothing is allowed; with room again it goes on, with the adapters that it had', async () => {
  const ledger = newLedger(shop, 'calls=100');
  const [file, until] = [shop.path(ledger), shop.path(`${ledger}.room`)];
  const service = await start(ledger, { fault: { file, at: 3, manner: 'full', until } });
  const adapter = await register(service);
  const ask = (id: string): Promise<Answer> =>
    service.ask('/v1/evaluate', evaluation(adapter, toolCall(id, TOOL)));
  const first = await ask('p1');
  expect(effectOf(first)).toBe('ALLOW');
  for (const id of ['p2', 'p3']) {
    const refused = await ask(id);
    expect([refused.status, refused.body.error?.code, refused.body['decision']]).toEqual([
      ...[503, 'LEDGER_FAILED', undefined],
    ]);
  }
  const outcome = outcomeOf(adapter, decisionOf(first));
  expect((await service.ask('/v1/outcomes/report', outcome)).status).toBe(503);
  shop.write(`${ledger}.room`, '');
  let answer = await ask('p2');
  for (let n = 0; answer.status === 503 && n < 200; n += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    answer = await ask('p2');
  }
  expect(effectOf(answer)).toBe('ALLOW');
  expect(decisionOf(await ask('p1'))).toMatchObject({ decision_id: decisionOf(first)['decision_id'] });
  expect((await service.ask('/v1/outcomes/report', outcome)).status).toBe(200);
  await service.stop();
  expect(eventsIn(shop, ledger, 'execution')).toHaveLength(1);
  expect(shop.run(['verify', ledger]).status).toBe(0);
});

it('asks the bundle, and writes events that can be held against the ledger', async () => {
  const ledger = newLedger(shop, 'calls=100');
  shop.write('policy.json', Buffer.from(policyBytes()).toString());
  const args = ['--cgf-policy', 'policy.json', '--cgf-events', 'events.jsonl', '--attach'];
  const service = await start(ledger, { args });
  const adapter = await register(service);
  const ask = (id: string, tool: string): Promise<Answer> =>
    service.ask('/v1/evaluate', evaluation(adapter, toolCall(id, tool)));
  expect(decisionOf(await ask('p1', 'to_block'))).toMatchObject({ reason_code: 'RULE_BLOCK' });
  const allowed = await ask('p2', TOOL);
  await service.ask('/v1/outcomes/report', outcomeOf(adapter, decisionOf(allowed)));
  const { body } = await service.ask('/v1/proposals/p2/replay');
  expect(body['replay']).toMatchObject({ completeness: 'full', proposal: { proposal_id: 'p2' } });
  const { stderr } = await service.stop();
  expect(stderr).toContain('"route":"POST /v1/evaluate","status":200');
  const aid = ['--aid', 'policy-bundle=policy.json'];
  const checked = shop.run(['import', '--from', 'cgf', '--check', 'events.jsonl', ...aid]);
  expect(checked.status).toBe(0);
  expect(shop.run(['reconcile', ledger, 'events.jsonl']).status).toBe(0);
});

describe('on an address', () => {
  const ask = (url: string, headers: Readonly<Record<string, string>>): Promise<number> =>
    new Promise((resolve, reject) => {
      const all = { 'content-type': 'application/json', ...headers };
      const request = httpRequest(`${url}/v1/register`, { method: 'POST', headers: all }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0));
      });
      request.on('error', reject).end(JSON.stringify(REGISTRATION));
    });
  const urlOf = (service: Service): string => /^http:\S+$/m.exec(service.process.stdout)?.[0] ?? '';

  it('adapters without a token are let in by a name of this machine alone', async () => {
    const service = await start(newLedger(shop, 'calls=1'), {
      args: ['--cgf-anonymous', '--listen', '127.0.0.1:0'],
    });
    const url = urlOf(service);
    expect(await ask(url, {})).toBe(200);
    expect(await ask(url, { host: 'rebound.example' })).toBe(401);
    expect(await ask(url, { origin: 'https://page.example' })).toBe(401);
    // The gate's own API is not open.
    const decide = await fetch(`${url}/v1/decide`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"tool":"fs.read"}',
    });
    expect(decide.status).toBe(401);
  });

  it('adapters send the token of the file', async () => {
    shop.write('token', 'a-token-of-all-adapters\n');
    const service = await start(newLedger(shop, 'calls=1'), {
      args: ['--cgf-token', 'token', '--listen', '127.0.0.1:0'],
    });
    const url = urlOf(service);
    expect(await ask(url, {})).toBe(401);
    expect(await ask(url, { authorization: 'Bearer a-token-of-all-adapters' })).toBe(200);
  });
});

describe('options that do not go together', () => {
  shop.write('short', 'short');
  shop.write('other.json', '{"rules":[{"id":"a"}]}');
  shop.write('changed.json', '{"rules":[],"bundle_hash":"00"}');
  const ledger = newLedger(shop, 'calls=1');
  const serve = (...args: readonly string[]): Run => shop.run(['serve', ledger, ...args]);
  const face = ['--face', 'cgf'];

  it.each<[string, readonly string[]]>([
    ['USAGE', ['--cgf-policy', 'other.json']],
    ['USAGE', ['--cgf-anonymous']],
    ['USAGE', ['--face', 'none']],
    ['USAGE', [...face, '--listen', '127.0.0.1:0']],
    ['USAGE', [...face, '--cgf-anonymous', '--listen', '0.0.0.0:0']],
    ['USAGE', [...face, '--cgf-token', 'short']],
    ['USAGE', [...face, '--cgf-expires', 'soon']],
    ['POLICY_INVALID', [...face, '--cgf-policy', 'other.json']],
    ['POLICY_INVALID', [...face, '--cgf-policy', 'changed.json']],
    ['FILE_NOT_FOUND', [...face, '--cgf-policy', 'missing.json']],
    ['FILE_NOT_FOUND', [...face, '--cgf-events', 'missing/events.jsonl']],
  ])('%s: %j', (code, args) => {
    expectError(serve(...args), 2, code);
  });
});
