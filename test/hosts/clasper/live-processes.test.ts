/** Services of one ledger: they race, they are killed, their disk is full. What was answered holds, and no cap is ever passed. */

import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatQuantity, type Quantity } from '../../../src/base/value/quantity.js';
import { expectOk, parse, Workshop } from '../../cli/runner.js';
import { eventsIn, type Fault, Service } from '../../gate/service-process.js';
import { COST, executionRequest, HOST, OPERATOR, type Reply, sender, token } from './live-kit.js';

const shop = new Workshop();
const SECRET = 'a secret of more than thirty-two bytes';
const ARGS = ['--face', 'clasper', '--clasper-secrets', 'secrets.env', '--clasper-unsigned'];
writeFileSync(shop.path('secrets.env'), `ADAPTER_JWT_SECRET=${SECRET}\n`);
const AS_ADAPTER = { 'x-adapter-token': token({}, SECRET) };
const REPORT = {
  tenant_id: 'dev-tenant',
  workspace_id: 'dev-tenant',
  execution_id: 'exec1',
  trace_id: 't',
  adapter_id: 'openclaw',
  ...COST,
};

let ledgers = 0;

function makeLedger(): string {
  const name = `c${(ledgers += 1)}.jsonl`;
  expectOk(shop.run(['init', name, '--origin', 'example.com/tests/clasper']));
  const tools = ['--tool', 'clasper.execution', '--tool', 'filesystem.*'];
  expectOk(shop.run(['grant', name, '--to', HOST, ...tools, '--cap', 'usd=1']));
  return name;
}

function start(ledger: string, more: readonly string[] = [], fault?: Omit<Fault, 'file'>): Promise<Service> {
  return Service.start(shop, ledger, {
    principal: OPERATOR,
    args: [...ARGS, ...more],
    fault: fault && { ...fault, file: shop.path(ledger) },
  });
}

/** Asks; undefined where the service dies meanwhile. */
function ask({ socket }: Service, path: string, body: object): Promise<Reply | undefined> {
  return sender(socket)('POST', path, body, AS_ADAPTER).catch(() => undefined);
}

const request = (service: Service, more: object = {}): Promise<Reply | undefined> =>
  ask(service, '/api/execution/request', executionRequest(more));
const reportCost = (service: Service): Promise<Reply | undefined> => ask(service, '/api/ingest/cost', REPORT);

const authorizeTool = (service: Service, scope = '/x'): Promise<Reply | undefined> =>
  ask(service, '/api/governance/tool/authorize', {
    execution_id: 'exec1',
    adapter_id: 'openclaw',
    tool: 'filesystem.read',
    requested_scope: { path: scope },
  });

/** The verdict, and what the tenant's grant has used and holds. */
function accountOf(ledger: string): readonly string[] {
  const { verdict, grants } = parse<{
    verdict: string;
    grants: { meters: { unit: string; used: Quantity; reserved: Quantity }[] }[];
  }>(expectOk(shop.run(['verify', ledger, '--format', 'json'])));
  const [usd] = grants[0]?.meters.filter(({ unit }) => unit === 'usd') ?? [];
  return [verdict, ...(usd === undefined ? [] : [formatQuantity(usd.used), formatQuantity(usd.reserved)])];
}

it('two services that race for one cap allow exactly what it holds', async () => {
  const ledger = makeLedger();
  const services = [await start(ledger), await start(ledger, ['--socket', 'other.sock'])];
  const ends = await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      request(services[n % 2], { execution_id: `exec${n}`, max_cost: 0.25, estimated_cost: 0.25 }),
    ),
  );
  expect(ends.map((end) => end?.status)).toEqual(Array<number>(10).fill(200));
  expect(ends.filter((end) => end?.body['allowed'] === (true as never))).toHaveLength(4);
  for (const service of services) expect((await service.stop()).status).toBe(0);
  expect(accountOf(ledger)).toEqual(['ok', '0', '1']);
});

it('one execution that two services are asked for at once is one', async () => {
  const ledger = makeLedger();
  const services = [await start(ledger), await start(ledger, ['--socket', 'both.sock'])];
  const ends = await Promise.all([...services, ...services].map((service) => request(service)));
  expect(ends.map((end) => end?.body['allowed'])).toContain(true);
  for (const service of services)
    expect(await authorizeTool(service)).toMatchObject({ body: { decision: 'allow' } });
  const reports = await Promise.all([...services, ...services].map(reportCost));
  expect(reports.map((end) => end?.body['status']).sort()).toEqual([
    'duplicate',
    'duplicate',
    'duplicate',
    'ok',
  ]);
  for (const service of services) await service.stop();
  const grants = eventsIn(shop, ledger, 'authorization').flatMap(({ decision, authorization }) =>
    decision === 'allow' ? [(authorization as { grant_event_id?: { b64: string } }).grant_event_id?.b64] : [],
  );
  // The execution and both calls of tools are under one grant.
  const counts = grants.map((id) => grants.filter((each) => each === id).length);
  expect(Math.max(...counts)).toBeGreaterThanOrEqual(3);
  expect(accountOf(ledger)).toEqual(['ok', '0.25', '0']);
});

/** Writes: the delegated grant; the decision with its start; the report. */
const MOMENTS: readonly (readonly [string, Omit<Fault, 'file'>])[] = [
  ['before the grant is written', { at: 1, manner: 'before' }],
  ['once the grant is written', { at: 1, manner: 'synced' }],
  ['between the decision and its start', { at: 2, manner: 'torn', bytes: 'line' }],
  ['before the decision is answered', { at: 2, manner: 'synced' }],
  ['amid the report', { at: 3, manner: 'torn', bytes: 300 }],
  ['before the report is answered', { at: 3, manner: 'synced' }],
];

describe('a service that is killed', () => {
  it.each(MOMENTS)('%s: the next one goes on where it ended', async (_, fault) => {
    const ledger = makeLedger();
    const service = await start(ledger, [], fault);
    const first = await request(service);
    if (first !== undefined) expect(await reportCost(service)).toBeUndefined();
    expect((await service.process.end()).status).toBeNull();

    const next = await start(ledger);
    const wasReported = eventsIn(shop, ledger, 'execution').length > 0;
    const again = await request(next);
    expect(again).toMatchObject({ status: 200, body: { allowed: !wasReported } });
    expect(await reportCost(next)).toMatchObject({ body: { status: wasReported ? 'duplicate' : 'ok' } });
    expect(await reportCost(next)).toMatchObject({ body: { status: 'duplicate' } });
    await next.stop();
    expect(eventsIn(shop, ledger, 'execution')).toHaveLength(1);
    expect(accountOf(ledger)).toEqual(['ok', '0.25', '0']);
  });
});

it('a full disk allows nothing, and what was asked for is asked again', async () => {
  const ledger = makeLedger();
  const room = shop.path('room');
  const service = await start(ledger, [], { at: 2, manner: 'full', until: room });
  expect(await request(service)).toMatchObject({ status: 503 });
  writeFileSync(room, '');
  let last: Reply | undefined;
  for (let tries = 0; tries < 50 && last?.status !== 200; tries += 1) last = await request(service);
  expect(last).toMatchObject({ status: 200, body: { allowed: true } });
  expect(await reportCost(service)).toMatchObject({ body: { status: 'ok' } });
  await service.stop();
  expect(accountOf(ledger)).toEqual(['ok', '0.25', '0']);
});

it('secrets are in no log, no error and no record, and a recording has no signatures', async () => {
  const ledger = makeLedger();
  const service = await start(ledger, ['--clasper-record', 'http.jsonl']);
  await request(service);
  await reportCost(service);
  await authorizeTool(service, 'CONTENT');
  const { stderr, stdout } = await service.stop();
  const recording = shop.read('http.jsonl');
  const own = `${stderr}${stdout}${shop.read(ledger)}`;
  for (const secret of [SECRET, AS_ADAPTER['x-adapter-token'].split('.')[2], 'CONTENT'])
    expect(own).not.toContain(secret);
  expect(recording).not.toContain(AS_ADAPTER['x-adapter-token']);
  const compared = shop.run(['reconcile', ledger, 'clasper=http.jsonl', '--format', 'json']);
  expect(parse<{ verdict: string }>(expectOk(compared)).verdict).toBe('ok');
});
