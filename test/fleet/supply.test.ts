/** Gates of a fleet that ask the parent's service for their next slices, and give back what they do not need (SPEC §8 rule 17). */

import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Gate } from '../../src/gate/gate.js';
import type { SupplyEvent } from '../../src/gate/service/slice-supply.js';
import { sliceClient } from '../../src/gate/service/slice-client.js';
import { type GateServer, serveGate } from '../../src/gate/service/serve-gate.js';
import { makeToken, Tokens } from '../../src/gate/service/tokens.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import { grantSlice } from '../../src/log/fleet/grant-slice.js';
import { openSlice } from '../../src/log/fleet/slice.js';
import { verifyFleet } from '../../src/log/fleet/verify-fleet.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { AGENT, makeFolder } from './kit.js';

const signer = createSigner(generatePrivateKey());
const live = { signer, position: false, checkpoints: true } as const;
const options = { ...live, decides: true, lingerMs: 0 } as const;
const taking = makeToken({ name: 'child', principals: [AGENT], may: ['slice'] });
const calling = makeToken({ name: 'agent', principals: [AGENT] });
const other = makeToken({ name: 'other', principals: ['agent:b'], may: ['slice'] });
const tokens = Tokens.parse(
  Buffer.from(JSON.stringify({ tokens: [taking.entry, calling.entry, other.entry] })),
);

interface Parent {
  readonly path: string;
  readonly grantId: string;
  readonly ledger: Ledger;
  serve(port?: number): Promise<{ readonly url: URL; readonly server: GateServer; readonly gate: Gate }>;
}

async function makeParent(folder: string, cap: string): Promise<Parent> {
  const path = join(folder, 'parent.jsonl');
  const ledger = await Ledger.open(path, { ...options, create: {} });
  const bounds = { allowedTools: ['northroot.slice'], meterCaps: { calls: cap } };
  const { eventId } = await ledger.append({ event: draftGrant({ principalId: AGENT, ...bounds }) });
  onTestFinished(() => ledger.close());
  const serve: Parent['serve'] = async (port = 0) => {
    const gate = await Gate.open(path, { ...live, principalId: AGENT });
    const server = await serveGate({ gate, tokens, listen: { port } });
    return { gate, server, url: new URL(`${server.urls[0]}/`) };
  };
  return { path, grantId: eventId, ledger, serve };
}

interface Child {
  readonly path: string;
  readonly gate: Gate;
  readonly events: SupplyEvent[];
  /** Calls of which none fails but by the cap: how many ran. */
  run(times: number): Promise<number>;
  /** Stops the service. */
  stop(givesBack: boolean): Promise<void>;
}

async function makeChild(
  folder: string,
  name: string,
  parent: Parent,
  url: URL,
  cap = '2',
  givesBack = true,
): Promise<Child> {
  const path = join(folder, `${name}.jsonl`);
  const first = await Ledger.open(path, { ...options, create: {} });
  const slice = await openSlice(parent.ledger, {
    grantId: parent.grantId,
    childId: first.genesisId,
    caps: { calls: cap },
  });
  await grantSlice(first, slice, { allowedTools: ['fs.*'] });
  await first.close();
  const gate = await Gate.open(path, { ...live, principalId: AGENT });
  const events: SupplyEvent[] = [];
  const source = sliceClient({ url, token: taking.token });
  const onEvent = (event: SupplyEvent): void => void events.push(event);
  const server = await serveGate({
    gate,
    tokens,
    listen: { port: 0 },
    slices: { source, givesBack, onEvent },
  });
  const [own] = server.urls;
  const ask = async (path: string, body: object): Promise<{ effect?: string; code?: string }> => {
    const response = await fetch(`${own}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${calling.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return (await response.json()) as { effect?: string; code?: string };
  };
  let n = 0;
  return {
    path,
    gate,
    events,
    run: async (times) => {
      let ran = 0;
      for (let i = 0; i < times; i += 1) {
        const ref = `c${(n += 1)}`;
        const { effect } = await ask('/v1/decide', {
          ref,
          tool: 'fs.read',
          params: { n },
          reserve: { calls: '1' },
        });
        if (effect !== 'allow') continue;
        ran += 1;
        await ask('/v1/settle', { ref, outcome: 'success', used: { calls: '1' } });
      }
      return ran;
    },
    stop: async () => {
      await server.close();
      await gate.close();
    },
  };
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries += 1) {
    if (tries > 4_000) throw new Error('it does not come to be');
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

async function reservedIn({
  ledger,
  grantId,
}: Parent): Promise<{ readonly used: string; readonly left: string }> {
  return ledger.inspect((_, state) => {
    const grant = [...state.links.grants.values()].find(({ place }) => place.eventId === grantId);
    const { cap, used, reserved } = grant!.accounts.get('calls')!;
    return { used: String(used.n), left: String(cap.n - used.n - reserved.n) };
  });
}

it('asks for the next slice when little is left, up to the cap, and gives back what is left', async () => {
  const folder = makeFolder();
  const parent = await makeParent(folder, '9');
  const { url, server, gate } = await parent.serve();
  const child = await makeChild(folder, 'child', parent, url, '4');
  expect(await child.run(3)).toBe(3);
  await until(() => child.events.some(({ event }) => event === 'slice_taken'));
  expect(await child.run(4)).toBe(4);
  // The third slice is the 1 that the cap of 9 still has.
  await until(() => child.events.filter(({ event }) => event === 'slice_taken').length === 2);
  expect(await child.run(1)).toBe(1);
  await until(() =>
    child.events.some(({ event, code }) => event === 'slice_refused' && code === 'SLICE_DENIED'),
  );
  await child.stop(true);
  expect(child.events.at(-1)).toEqual({ event: 'slices_returned' });
  await server.close();
  await gate.close();
  expect(await reservedIn(parent)).toEqual({ used: '8', left: '1' });
  const report = await verifyLedger(child.path, { parents: [parent.path] });
  expect(report.findings).toEqual([]);
  expect((await verifyFleet([child.path, parent.path])).exit_status).toBe(0);
});

it('goes on within what it has while the parent is gone, and is supplied when it is back', async () => {
  const folder = makeFolder();
  const parent = await makeParent(folder, '100');
  const first = await parent.serve();
  const child = await makeChild(folder, 'child', parent, first.url, '4');
  await first.server.close();
  await first.gate.close();
  expect(await child.run(6)).toBe(4);
  await until(() => child.events.some(({ code }) => code === 'PEER_UNREACHABLE'));
  const second = await parent.serve(Number(first.url.port));
  await until(() => child.events.some(({ event }) => event === 'slice_taken'));
  expect(await child.run(2)).toBe(2);
  await child.stop(true);
  await second.server.close();
  await second.gate.close();
  expect((await verifyFleet([child.path, parent.path])).exit_status).toBe(0);
});

it('keeps one cap over many gates, of which some are gone for good', async () => {
  const folder = makeFolder();
  const cap = 24;
  const parent = await makeParent(folder, String(cap));
  const { url, server, gate } = await parent.serve();
  const children = await Promise.all(
    ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => makeChild(folder, name, parent, url, '2')),
  );
  const runs = await Promise.all(children.map((child) => child.run(12)));
  const ran = runs.reduce((sum, each) => sum + each, 0);
  expect(ran).toBe(cap);
  // Two never come back: what was set aside for them stays spent.
  await Promise.all(children.slice(2).map((child) => child.stop(true)));
  await Promise.all(children.slice(0, 2).map(({ gate: lost }) => lost.close()));
  await server.close();
  await gate.close();
  const report = await verifyFleet([parent.path, ...children.map(({ path }) => path)]);
  expect(report.exit_status).toBe(0);
  const { left } = await reservedIn(parent);
  expect(Number(left)).toBeGreaterThanOrEqual(0);
});

it('refuses whoever may not take slices, and what is no slice of the child', async () => {
  const folder = makeFolder();
  const parent = await makeParent(folder, '10');
  const { url, server, gate } = await parent.serve();
  onTestFinished(async () => {
    await server.close();
    await gate.close();
  });
  const childId = `sha-256:${'A'.repeat(43)}`;
  const slice = await openSlice(parent.ledger, { grantId: parent.grantId, childId, caps: { calls: '2' } });
  const as = (token: string) => sliceClient({ url, token });
  const next = { childId, after: slice.eventId, number: 2 };
  await expect(as(calling.token).next(next)).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
  await expect(as(other.token).next(next)).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
  await expect(as('wrong').next(next)).rejects.toMatchObject({ code: 'TOKEN_INVALID' });
  const mine = as(taking.token);
  await expect(mine.next({ ...next, number: 0 })).rejects.toMatchObject({ code: 'USAGE' });
  await expect(mine.next({ ...next, after: parent.grantId })).rejects.toMatchObject({
    code: 'SLICE_NOT_FOUND',
  });
  await expect(mine.next({ ...next, childId: `sha-256:${'E'.repeat(43)}` })).rejects.toMatchObject({
    code: 'SLICE_NOT_FOUND',
  });
  // A grant can be executed, and is no slice.
  const note = (await parent.ledger.checkpoint()).note;
  const records = () => parent.ledger.inspect((_, state) => state.records);
  const before = await records();
  const settle = (sliceId: string, client = mine) => client.settle(childId, [{ sliceId, used: [], note }]);
  await expect(settle(parent.grantId)).rejects.toMatchObject({ code: 'SLICE_NOT_FOUND' });
  await expect(settle(childId)).rejects.toMatchObject({ code: 'SLICE_NOT_FOUND' });
  await expect(settle(slice.eventId, as(other.token))).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
  expect(await records()).toBe(before);
  const [one, two] = [await mine.next(next), await mine.next(next)];
  expect(two).toEqual(one);
  await expect(mine.settle(childId, [{ sliceId: slice.eventId, used: [], note: 'x' }])).rejects.toMatchObject(
    { code: 'USAGE' },
  );
});
