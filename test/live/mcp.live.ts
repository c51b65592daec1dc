/**
 * Real servers and clients of the Model Context Protocol, both generations of the SDK, through the tap on stdio and the proxy over HTTP, and
 * the conformance suite: `npm run test:live`. Skipped, and said so, where npm cannot install them.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CLI, Peers, serve, type Served, TestLedger } from './peers.js';

const peers = new Peers(
  'mcp',
  {
    '@modelcontextprotocol/sdk': '^1.32',
    '@modelcontextprotocol/server-everything': '2026.8.31',
    '@modelcontextprotocol/client': '^2.4',
    '@modelcontextprotocol/server': '^2.4',
    '@modelcontextprotocol/node': '^2.1',
    '@modelcontextprotocol/conformance': '0.2.0-alpha.12',
    zod: '^4',
  },
  process.env['MCP'],
);
const obstacle = peers.findObstacle();
if (obstacle !== undefined) console.warn(`skipped: ${obstacle}`);

const EVERYTHING = join(peers.folder, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const SERVER_V2 = join(peers.folder, 'server-v2.js');
const SUMS = [2, 3, 4, 5, 6].map((sum) => `The sum of ${sum - 1} and 1 is ${sum}.`);

const running: Served[] = [];
let ledger: TestLedger;
/** What of a tool may be called, and how often all of them. */
function makeLedger(grants: Readonly<Record<string, number>>): void {
  ledger = new TestLedger();
  for (const [tool, calls] of Object.entries(grants)) ledger.grant(tool, '--cap', `calls=${calls}`);
}

async function start(...args: readonly string[]): Promise<string> {
  const served = await serve(process.execPath, args, {
    cwd: peers.folder,
    env: { ...process.env, RAN: ran() },
  });
  running.push(served);
  return served.url;
}

const ran = (): string => join(ledger.folder, 'ran');
const options = (server: string): string[] => [
  ...[CLI, 'mcp', ledger.path, '--server', server, '--principal', 'agent:a1'],
];
const tapOf = (server: string, ...command: readonly string[]): string[] => [
  ...[process.execPath, ...options(server)],
  ...['--', process.execPath, ...command],
];
const proxyOf = (server: string, upstream: string): Promise<string> =>
  start(...options(server), '--http', upstream, '--listen', '127.0.0.1:0', '--legacy');

/** What server-everything was asked by version 1 of the SDK, where `get-env` is not granted, and two calls of the last tool. */
const ASKED_V1 = {
  'mcp.everything.get-structured-content': 2,
  'mcp.everything.echo': 9,
  'mcp.everything.get-sum': 9,
  'mcp.everything.trigger-*': 9,
  'mcp.everything.simulate-research-query': 1,
  'mcp.everything.no-such-tool': 1,
};

function expectV1(told: unknown): void {
  expect(told).toMatchObject({
    server: 'mcp-servers/everything',
    echo: 'Echo: hello \u{1f30d}',
    sums: SUMS,
    long: expect.stringContaining('completed') as string,
    sampled: expect.stringContaining('sampled') as string,
    elicited: expect.stringContaining('User provided') as string,
    asked: ['sampling', 'elicitation'],
    task: ['taskCreated', 'taskStatus', 'result', '# Research Report: t'],
    invalid: expect.stringContaining('error: MCP error -32602') as string,
    missing: expect.stringContaining('not found') as string,
    denied: expect.stringMatching(/^error: .*get-env/s) as string,
    cancelled: expect.stringContaining('threw') as string,
    over: [
      expect.stringContaining('temperature'),
      expect.stringContaining('temperature'),
      expect.stringContaining('RESERVATION_OVER_CAP'),
    ],
  });
  const { tools, steps } = told as { readonly tools: string[]; readonly steps: number[] };
  expect(tools).toContain('get-env');
  expect(steps.slice(0, 2)).toEqual([1, 2]);
  const all = (name: string, outcome: string): string => `mcp.everything.${name} ${outcome}`;
  expect(ledger.events()).toEqual(
    [
      all('echo', 'success'),
      ...SUMS.map(() => all('get-sum', 'success')),
      all('get-sum', 'failure MCP_TOOL_ERROR'),
      all('trigger-long-running-operation', 'success'),
      all('trigger-long-running-operation', 'unknown MCP_CLOSED'),
      all('trigger-sampling-request', 'success'),
      all('trigger-elicitation-request', 'success'),
      all('simulate-research-query', 'success'),
      all('no-such-tool', 'failure MCP_TOOL_ERROR'),
      all('get-env', 'deny TOOL_NOT_ALLOWED'),
      all('get-structured-content', 'success'),
      all('get-structured-content', 'success'),
      all('get-structured-content', 'deny RESERVATION_OVER_CAP'),
    ].sort(),
  );
  expect(ledger.verify()).toMatch(/^ok /);
}

const GRANTS_V2 = {
  'mcp.live.add': 3,
  'mcp.live.deploy': 1,
  'mcp.live.fail': 9,
  'mcp.live.steps': 9,
  'mcp.live.wait': 9,
};
/** How a call that its client gave up ends: on stdio when the server does, which may do it all the same. */
const GIVEN_UP = { stdio: 'MCP_CLOSED', http: 'MCP_CANCELLED' };
type Transport = keyof typeof GIVEN_UP;
const eventsOfV2 = (transport: Transport): string[] => [
  'mcp.live.add success',
  'mcp.live.add success',
  'mcp.live.add success',
  'mcp.live.add deny RESERVATION_OVER_CAP',
  'mcp.live.deploy success',
  'mcp.live.fail failure MCP_TOOL_ERROR',
  'mcp.live.steps success',
  `mcp.live.wait unknown ${GIVEN_UP[transport]}`,
  'mcp.live.test_simple_text deny TOOL_NOT_ALLOWED',
];

function expectV2(told: unknown, version: string): void {
  expect(told).toMatchObject({
    version,
    add: '3',
    fail: 'error: no',
    stepped: 'stepped',
    steps: [1, 2, 3],
    prompt: 1,
    resource: 1,
    cancelled: expect.stringContaining('threw') as string,
    denied: expect.stringMatching(/^error: .*test_simple_text/s) as string,
    over: ['0', '2', expect.stringMatching(/^error: .*RESERVATION_OVER_CAP/s)],
  });
}

/** Two ids on the wire, one authorization, one execution, and the server did it once. */
function expectElicited(told: unknown, transport: Transport): void {
  expect(told).toMatchObject({ deploy: 'deployed to prod', asked: 1 });
  expect(ledger.countAllowed('mcp.live.deploy')).toBe(1);
  expect(ledger.events()).toEqual(eventsOfV2(transport).sort());
  const did = readFileSync(ran(), 'utf8').trim().split('\n');
  expect(did.filter((each) => each === 'deploy')).toHaveLength(1);
  expect(ledger.verify()).toMatch(/^ok /);
}

async function stopAll(): Promise<void> {
  for (const each of running.splice(0).reverse()) await each.stop();
}

afterEach(async () => {
  await stopAll();
  ledger.remove();
});

describe.skipIf(obstacle !== undefined)('on stdio', () => {
  it('serves version 1 of the SDK', async () => {
    makeLedger(ASKED_V1);
    expectV1(await peers.run('client-v1.js', ...tapOf('everything', EVERYTHING, 'stdio')));
  });

  it.each([
    ['modern', '2026-07-28'],
    ['legacy', '2025-11-25'],
  ])('serves version 2 of the SDK, %s', async (era, version) => {
    makeLedger(GRANTS_V2);
    const told = await peers.run(
      'client-v2.js',
      era,
      ...['env', `RAN=${ran()}`, ...tapOf('live', SERVER_V2)],
    );
    expectV2(told, version);
    expectElicited(told, 'stdio');
  });
});

describe.skipIf(obstacle !== undefined)('over HTTP', () => {
  it('serves version 1 of the SDK', async () => {
    makeLedger(ASKED_V1);
    const upstream = await start('everything-http.js');
    const told = await peers.run('client-v1.js', await proxyOf('everything', upstream));
    // Its session could ask for the answer of a call that was given up, until there is no proxy.
    await stopAll();
    expectV1(told);
  });

  it('serves version 2 of the SDK, modern', async () => {
    makeLedger(GRANTS_V2);
    const url = await proxyOf('live', await start('server-v2.js', 'http'));
    const told = await peers.run('client-v2.js', 'modern', url);
    expectV2(told, '2026-07-28');
    // Answers pass while their calls are settled: all are when there is no proxy.
    await stopAll();
    expectElicited(told, 'http');
  });

  it('serves version 2 of the SDK, legacy and without sessions', async () => {
    makeLedger(GRANTS_V2);
    const url = await proxyOf('live', await start('server-v2.js', 'http'));
    const told = await peers.run('client-v2.js', 'legacy', url);
    expectV2(told, '2025-11-25');
    await stopAll();
    // The SDK cannot ask back without a session.
    const events = eventsOfV2('http').map((each) =>
      each.replace('deploy success', 'deploy failure MCP_TOOL_ERROR'),
    );
    expect(ledger.events()).toEqual(events.sort());
    expect(ledger.verify()).toMatch(/^ok /);
  });

  it.each([
    ['2025-11-25', ['server-v1.js']],
    ['2025-11-25', ['server-v2.js', 'http']],
    ['2026-07-28', ['server-v2.js', 'http']],
  ])('changes nothing for the conformance suite of %s, of %o', async (revision, server) => {
    makeLedger({ 'mcp.live.*': 9_999 });
    const upstream = await start(...server);
    const ask = (url: string): Promise<unknown> => peers.run('conformance.js', url, revision);
    const direct = await ask(upstream);
    expect(await ask(await proxyOf('live', upstream))).toEqual(direct);
    await stopAll();
    expect(ledger.verify()).toMatch(/^ok /);
  });
});
