/** A fleet of gates, each a process of its own, of which some are killed under load: what ran stays within the one cap, and the files prove it. */

import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { parsePrivateKey } from '../../src/format/key/private-key.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { grantSlice } from '../../src/log/fleet/grant-slice.js';
import { openSlice } from '../../src/log/fleet/slice.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { expectOk, Workshop } from '../cli/runner.js';
import { freePorts, type PeerAnswer, PeerService } from '../gate/peer-services.js';
import { times } from '../slow.js';
import { AGENT } from './kit.js';

const shop = new Workshop();
const GATES = times(6, 50);
const KILLED = times(2, 10);
const CLIENTS = times(12, 50);
const SLICE = 4;
/** No multiple of a slice, and less than would be used. */
const CAP = 10 * GATES + 3;
/** Calls at once while the gates start cost more than they show. */
const STARTING = 6;

/** The same numbers in every run. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** The parent, and a child with its first slice for each gate. */
async function makeLedgers(): Promise<void> {
  const { privateKey } = generateKeyPairSync('ed25519');
  shop.write('key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }), 0o600);
  const signer = createSigner(parsePrivateKey(shop.read('key.pem')));
  const options = { signer, decides: true, checkpoints: true, position: false, lingerMs: 0, create: {} };
  shop.makeFolder('fleet');
  const parent = await Ledger.open(shop.path('fleet/parent.jsonl'), options);
  const bounds = { allowedTools: ['northroot.slice'], meterCaps: { calls: CAP } };
  const { eventId: grantId } = await parent.append({ event: draftGrant({ principalId: AGENT, ...bounds }) });
  for (let n = 0; n < GATES; n += 1) {
    const child = await Ledger.open(shop.path(`fleet/m${n}.jsonl`), options);
    const slice = await openSlice(parent, { grantId, childId: child.genesisId, caps: { calls: SLICE } });
    await grantSlice(child, slice, { allowedTools: ['fs.*'] });
    await child.close();
  }
  await parent.close();
}

async function serve(name: string, args: readonly string[] = []): Promise<PeerService> {
  const [port] = await freePorts(1);
  const listen = `127.0.0.1:${port}`;
  const running = shop.start([
    ...['serve', `fleet/${name}.jsonl`, '--socket', `${name}.sock`, '--listen', listen],
    ...['--tokens', 'tokens.json', '--key', 'key.pem', '--principal', AGENT, ...args],
  ]);
  onTestFinished(() => running.kill('SIGKILL'));
  await running.until(({ stderr, hasEnded }) => stderr.includes('serves ') || hasEnded);
  if (running.hasEnded) throw new Error(`a gate has ended: ${running.stderr}`);
  return new PeerService(`http://${listen}`, running);
}

interface FleetJson {
  readonly exit_status: number;
  readonly caps: readonly {
    readonly slices: Readonly<Record<string, number>>;
    readonly meters: readonly Readonly<Record<string, { readonly v: string } | null>>[];
  }[];
  readonly slices: readonly {
    readonly state: string;
    readonly meters: readonly {
      readonly amount: { readonly v: string };
      readonly used: { readonly v: string };
    }[];
  }[];
}

test('many gates under one cap, some killed under load: what ran is within it, and `fleet verify` adds it up', async () => {
  await makeLedgers();
  const token = expectOk(
    shop.run([
      'gate',
      'token',
      'tokens.json',
      'all',
      '--principal',
      AGENT,
      '--may',
      'call',
      '--may',
      'slice',
    ]),
  ).trim();
  shop.write('slice.token', token, 0o600);
  const parent = await serve('parent');
  const supply = ['--slice-from', parent.url, '--slice-token', 'slice.token', '--give-back'];
  const gates: PeerService[] = [];
  for (let n = 0; n < GATES; n += STARTING) {
    const names = Array.from({ length: Math.min(STARTING, GATES - n) }, (_, at) => `m${n + at}`);
    gates.push(...(await Promise.all(names.map((name) => serve(name, supply)))));
  }

  const random = makeRandom(7);
  const killed = new Set<PeerService>();
  const odd: unknown[] = [];
  let [ran, asked, denied, settled] = [0, 0, 0, 0];
  /** Asks again until it is answered, as a client does; undefined from a gate that is gone. */
  const sure = async (gate: PeerService, path: string, body: object): Promise<PeerAnswer | undefined> => {
    while (!gate.process.hasEnded) {
      const answer = await gate.ask(path, token, body, 60_000).catch(() => undefined);
      if (answer !== undefined && answer.status !== 503) return answer;
      await sleep(100);
    }
    return undefined;
  };
  const call = async (): Promise<void> => {
    const gate = gates[random(GATES)];
    const ref = `c${(asked += 1)}`;
    const body = { ref, tool: 'fs.read', params: { ref }, reserve: { calls: '1' } };
    const answer = await sure(gate, '/v1/decide', body);
    if (answer === undefined) return;
    if (answer.status !== 200) odd.push(answer);
    if (answer.body['effect'] !== 'allow') {
      denied += 1;
      return;
    }
    ran += 1;
    if (ran % Math.floor(CAP / (2 * KILLED)) === 0 && killed.size < KILLED) {
      const next = gates.filter((each) => !killed.has(each))[random(GATES - killed.size)];
      killed.add(next);
      next.kill('SIGKILL');
    }
    const end = { ref, outcome: 'success', used: { calls: '1' } };
    const told = await sure(gate, '/v1/settle', end);
    if (told?.status === 200) settled += 1;
  };
  // Until nothing more is allowed, for far longer than the gates take to be supplied.
  const client = async (): Promise<void> => {
    for (let idle = 0; idle < 12;) {
      const before = ran;
      await call();
      idle = ran === before ? idle + 1 : 0;
    }
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const took = performance.now() - begun;
  expect(odd).toEqual([]);
  expect(killed.size).toBe(KILLED);

  for (const gate of gates) gate.kill('SIGTERM');
  const ends = await Promise.all(gates.map(({ process }) => process.end()));
  for (const [n, { status }] of ends.entries()) expect(status).toBe(killed.has(gates[n]) ? null : 0);
  parent.kill('SIGTERM');
  expect((await parent.process.end()).status).toBe(0);

  const verified = shop.run(['fleet', 'verify', 'fleet', '--format', 'json']);
  expect(verified.stderr).toBe('');
  const report = JSON.parse(verified.stdout) as FleetJson;
  const [cap] = report.caps;
  const [meter] = cap.meters;
  const amount = (name: string): number => Number(meter[name]?.v);
  const used = amount('settled') + amount('open_used');
  const lost = amount('open') - amount('open_used');
  if (process.env['SLOW'] === '1')
    console.log({
      GATES,
      KILLED,
      CAP,
      asked,
      denied,
      ran,
      used,
      lost,
      took,
      slices: cap.slices,
      status: verified.status,
    });
  expect(verified.status).toBe(0);
  // What was allowed and not settled is still reserved in the slice of a gate that is gone.
  expect(used).toBeGreaterThanOrEqual(settled);
  expect(used + lost).toBeGreaterThanOrEqual(ran);
  expect(used + lost + amount('left')).toBe(CAP);
  expect(amount('left')).toBeGreaterThanOrEqual(0);
  expect(cap.slices['missing']).toBe(0);
  // Only of those that gave nothing back is anything lost.
  const silent = gates.filter((gate) => !gate.process.stderr.includes('slices_returned'));
  expect(silent).toEqual(expect.arrayContaining([...killed]));
  expect(lost).toBeLessThanOrEqual(silent.length * 3 * SLICE);
}, 600_000);
