/**
 * The official clients of model APIs, unchanged but for where they ask, through `northroot llm` against scripted upstreams:
 * `npm run test:live`. Skipped, and said so, where npm cannot install them.
 */

import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, northroot, Peers, serve, type Served, TestLedger } from './peers.js';

const peers = new Peers(
  'models',
  {
    openai: '^6',
    openai7: 'npm:openai@^7',
    '@anthropic-ai/sdk': '^1.14',
    ai: '^6',
    '@ai-sdk/openai': '^3',
    '@ai-sdk/anthropic': '^3',
    zod: '^4',
  },
  process.env['MODELS'],
);
const obstacle = peers.findObstacle();
if (obstacle !== undefined) console.warn(`skipped: ${obstacle}`);

const PLANTED = ['sk-planted-5f1c', 'planted-prompt-77aa'];
/** What the upstream counts in: 10^-8 USD. */
const DECIMALS = 8;

interface Told {
  readonly text?: unknown;
  readonly name?: string;
  readonly status?: number;
  readonly code?: string | null;
  readonly message?: string;
  /** How often the upstream was asked. */
  readonly asked: number;
}
type AllTold = Readonly<Record<string, Told>>;

interface Upstream {
  readonly calls: readonly { readonly path: string; readonly auth: string; readonly limit: number | null }[];
  readonly cost: number;
  readonly tokens: { readonly input: number; readonly output: number };
}

let ledger: TestLedger;
let upstream: Served;
let prices: string;
const running: Served[] = [];

async function start(...args: readonly string[]): Promise<Served> {
  const served = await serve(process.execPath, args, { cwd: peers.folder });
  running.push(served);
  return served;
}

const ask = async (client: string, part: string, base: string): Promise<AllTold> =>
  (await peers.run('clients.js', client, part, base, upstream.url)) as AllTold;

/** Asks through a proxy before the upstream. Answers pass while their calls are settled: all are when it has stopped. */
async function askByProxy(client: string, part: string, ...more: readonly string[]): Promise<AllTold> {
  const proxy = await start(
    ...[CLI, 'llm', ledger.path, '--upstream', upstream.url, '--prices', prices],
    ...['--principal', 'agent:a1', '--listen', '127.0.0.1:0', ...more],
  );
  const all = await ask(client, part, proxy.url);
  await proxy.stop();
  return all;
}

const told = async (): Promise<Upstream> => (await (await fetch(`${upstream.url}/told`)).json()) as Upstream;

/** Money that the ledger says was used, in units of the upstream. */
function used(): number {
  const { grants } = JSON.parse(northroot('budget', ledger.path, '--format', 'json')) as {
    readonly grants: readonly { readonly meters: readonly Account[] }[];
  };
  const accounts = grants.flatMap(({ meters }) => meters).filter(({ unit }) => unit === 'usd');
  return accounts.reduce((sum, { used: { m, v, s = 0 } }) => sum + Number(m ?? v) * 10 ** (DECIMALS - s), 0);
}

/** Tokens that the ledger says were used. */
function usedTokens(): Upstream['tokens'] {
  const sum = { input: 0, output: 0 };
  for (const line of ledger.text().trim().split('\n')) {
    const { event } = JSON.parse(line) as { readonly event: { readonly meter_used?: readonly Meter[] } };
    for (const { unit, amount } of event.meter_used ?? []) {
      if (unit === 'tokens.input') sum.input += Number(amount.v);
      if (unit === 'tokens.output') sum.output += Number(amount.v);
    }
  }
  return sum;
}

interface Meter {
  readonly unit: string;
  readonly amount: { readonly v?: string };
}

interface Account {
  readonly unit: string;
  readonly used: { readonly v?: string; readonly m?: string; readonly s?: number };
}

/** Without the words of errors: they name the call. */
const withoutWords = (all: AllTold): Readonly<Record<string, object>> =>
  Object.fromEntries(Object.entries(all).map(([name, each]) => [name, { ...each, message: undefined }]));

/** How many executions end so. */
const countEnds = (outcome: string): number =>
  ledger.events().filter((each) => each.includes(` ${outcome}`)).length;

function expectNothingPlanted(): void {
  const all = [ledger.text(), ...running.map(({ said }) => said())].join('\n');
  for (const each of PLANTED) expect(all).not.toContain(each);
}

describe.skipIf(obstacle !== undefined)('clients of models', () => {
  beforeEach(async () => {
    ledger = new TestLedger();
    prices = join(ledger.folder, 'prices.json');
    northroot('prices', 'import', join(peers.folder, 'prices.json'), '--out', prices);
    upstream = await start('upstream.js');
  });
  afterEach(async () => {
    for (const each of running.splice(0).reverse()) await each.stop();
    ledger.remove();
  });

  it.each(['openai', 'openai7', 'anthropic', 'ai'])(
    '%s: the same with and without, to the cent',
    async (client) => {
      ledger.grant('llm.*', '--cap', 'usd=10');
      const direct = await ask(client, 'all', upstream.url);
      // The upstream counts tries: another one has none.
      upstream = await start('upstream.js');
      const { 'chat, unknown model': unknown, ...all } = await askByProxy(client, 'all');
      expect({ ...withoutWords(direct), ...withoutWords(all) }).toEqual(withoutWords(direct));
      if (unknown !== undefined) expect(unknown).toMatchObject({ asked: 0 });
      const { cost, tokens, calls } = await told();
      expect(used()).toBe(cost);
      expect(usedTokens()).toEqual(tokens);
      const succeeded = Object.entries(all).filter(
        ([name, { text }]) => text !== undefined && name !== 'models' && name !== 'count tokens',
      );
      expect(countEnds('success')).toBe(succeeded.length);
      expect(calls.every(({ auth }) => auth.includes('sk-planted-5f1c'))).toBe(true);
      // Only where the client leaves it open it is limited, and nowhere else.
      const limits = new Set(calls.filter(({ path }) => path !== '/v1/embeddings').map(({ limit }) => limit));
      expect([...limits]).toEqual(client.startsWith('openai') ? [20, 4096] : [20]);
      expect(ledger.verify()).toMatch(/^ok /);
      expectNothingPlanted();
    },
  );

  it.each(['openai', 'openai7', 'anthropic'])(
    '%s: images, formats, chains and what is free',
    async (client) => {
      ledger.grant('llm.*', '--cap', 'usd=10');
      const direct = await ask(client, 'more', upstream.url);
      upstream = await start('upstream.js');
      const all = await askByProxy(client, 'more');
      expect(withoutWords(all)).toEqual(withoutWords(direct));
      const { cost, tokens } = await told();
      expect(used()).toBe(cost);
      expect(usedTokens()).toEqual(tokens);
      expect(Object.values(all).filter(({ text }) => text === undefined)).toEqual([]);
      expect(ledger.verify()).toMatch(/^ok /);
      expectNothingPlanted();
    },
  );

  it.each(['openai', 'openai7', 'anthropic'])('%s: what has no bound needs an amount', async (client) => {
    ledger.grant('llm.*', '--cap', 'usd=10');
    const denied = Object.values(await askByProxy(client, 'stored'));
    for (const each of denied) {
      expect(each).toMatchObject({ status: 429, asked: 0 });
      expect(each.message).toContain('cannot be told from');
    }
    upstream = await start('upstream.js');
    const direct = await ask(client, 'stored', upstream.url);
    upstream = await start('upstream.js');
    const all = await askByProxy(client, 'stored', '--reserve', 'usd=0.5');
    expect(withoutWords(all)).toEqual(withoutWords(direct));
    expect(ledger.events().filter((each) => each.includes(' success'))).toHaveLength(denied.length);
    expect(used()).toBeGreaterThanOrEqual((await told()).cost);
    expect(ledger.verify()).toMatch(/^ok /);
    expectNothingPlanted();
  });

  it.each(['openai', 'anthropic'])(
    '%s: what breaks is charged as estimated, never as nothing',
    async (client) => {
      ledger.grant('llm.*', '--cap', 'usd=10');
      const direct = await ask(client, 'broken', upstream.url);
      const { cost } = await told();
      const all = await askByProxy(client, 'broken');
      expect(Object.keys(all)).toEqual(Object.keys(direct));
      for (const [name, { text, asked }] of Object.entries(all))
        expect({ name, text, asked }).toEqual({ name, text: direct[name]?.text, asked: direct[name]?.asked });
      expect(used()).toBeGreaterThanOrEqual((await told()).cost - cost);
      expect(used()).toBeGreaterThan(0);
      expect(ledger.verify()).toMatch(/^ok /);
      expectNothingPlanted();
    },
  );

  it.each(['openai', 'openai7', 'anthropic', 'ai'])(
    '%s: the third call is denied, and not tried again',
    async (client) => {
      ledger.grant('llm.*', '--cap', 'usd=10', '--cap', 'calls=2');
      const all = Object.values(await askByProxy(client, 'budget'));
      expect(all.slice(0, 2)).toEqual([
        { text: 'Hello, world', asked: 1 },
        { text: 'Hello, world', asked: 1 },
      ]);
      for (const each of all.slice(2)) {
        expect(each).toMatchObject({ status: 429, asked: 0 });
        expect(each.name).toBe(client === 'ai' ? 'APICallError' : 'RateLimitError');
        expect(each.message).toContain('RESERVATION_OVER_CAP');
      }
      // A client that tries again gets the same answer: each call is denied once for each try that it makes.
      const denials = ledger.events().filter((each) => each.includes(' deny '));
      expect(denials).toHaveLength((all.length - 2) * (client === 'ai' ? 2 : 1));
      const { calls, cost } = await told();
      expect(calls).toHaveLength(2);
      expect(used()).toBe(cost);
      expect(ledger.verify()).toMatch(/^ok /);
      expectNothingPlanted();
    },
  );
});
