/** The same requests, with decisions made ahead of their turn and without: a ledger whose policy is given expects nothing. */

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { sha256Digest } from '../../src/base/value/digest.js';
import { meters } from '../../src/base/value/meter.js';
import { formatInstant, parseTimestamp } from '../../src/base/value/timestamp.js';
import { LiveLedger, type LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import type { BegunDecision } from '../../src/log/policy/authorize.js';
import { draftGrant, type GrantOptions } from '../../src/log/policy/draft-grant.js';
import { GrantEvaluator } from '../../src/log/policy/evaluator.js';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import { verifyChunks } from '../../src/rules/report/verify-chunks.js';
import { MemoryStore } from '../store/memory-store.js';
import { NOON, readBytes, signer, temporaryFolder } from '../writer/support.js';

const PRINCIPALS = ['agent:a1', 'agent:a2', 'agent:b'];
const TOOLS = ['fs.read', 'fs.write', 'net.fetch', 'deploy'];
const INTENT = sha256Digest(Buffer.from('what is to be done'));
const SECOND = 1_000_000_000n;

/** Numbers from 0 to below a bound, the same for the same seed. */
function numbersOf(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

/** What an act hands on to those of later rounds. */
interface Answer {
  readonly granted?: string;
  readonly decided?: BegunDecision;
}

type Act = (world: World) => Promise<unknown>;

interface World {
  readonly ledger: LiveLedger;
  readonly now: () => string;
  readonly grants: string[];
  readonly decided: BegunDecision[];
}

function at<T>(list: readonly T[], n: number): T | undefined {
  return list.length === 0 ? undefined : list[n % list.length];
}

function grantOptions(pick: (bound: number) => number): Partial<GrantOptions> {
  const kinds: Partial<GrantOptions>[] = [
    { meterCaps: { calls: 1_000n, usd: '100' } },
    { meterCaps: { calls: 12n, usd: '5' } },
    { meterCaps: { calls: 1_000n, usd: '1000' }, concurrencyLimit: 4 },
    { meterCaps: { calls: 1_000n, usd: '50' }, rateLimits: { 'calls.per_minute': 10 } as never },
    {
      meterCaps: { calls: 1_000n, usd: '900' },
      approvals: [{ tools: ['deploy', 'fs.write'], approvers: ['human:*'], above: { usd: '2' } }],
    },
    { meterCaps: { calls: 500n, usd: '90' }, resources: [{ kind: 'path', reference: '/a' }] },
    { meterCaps: { calls: 100n, usd: '90' }, intent: 'a purpose of its own' },
    { meterCaps: { calls: 100n, usd: '90' }, actionCaps: { usd: '1' } },
  ];
  return kinds[pick(kinds.length)] as Partial<GrantOptions>;
}

function makeAct(pick: (bound: number) => number): Act {
  const kind = pick(100);
  const [a, b, c] = [pick(1e6), pick(1e6), pick(1e6)];
  const principalId = PRINCIPALS[pick(PRINCIPALS.length)] as string;
  if (kind < 4) {
    const bounds = grantOptions(pick);
    const allowedTools = [['*'], ['fs.*'], ['net.*', 'deploy']][pick(3)] as string[];
    const end = pick(3) === 0 ? BigInt(pick(90)) * SECOND : undefined;
    return async ({ ledger, now }) => {
      const expiresAt = end === undefined ? undefined : formatInstant(parseTimestamp(now()) + end + SECOND);
      const { eventId } = await ledger.append({
        event: draftGrant({ principalId, allowedTools, maxDelegationDepth: 2, expiresAt, ...bounds }),
        isAnew: true,
      });
      return { granted: eventId };
    };
  }
  if (kind < 6)
    return async ({ ledger, grants }) => {
      const parent = at(grants, a) ?? 'none';
      const { eventId } = await ledger.delegate({ to: principalId, parent, caps: { usd: String(b % 9) } });
      return { granted: eventId };
    };
  if (kind < 9) {
    const how = (['revoke', 'suspend', 'resume'] as const)[pick(3)] as 'suspend';
    return ({ ledger, grants }) => ledger[how](at(grants, a) ?? 'none', { reason: 'TEST' });
  }
  if (kind < 14)
    return ({ ledger, decided }) => {
      const asked = decided.filter(({ decisionCode }) => decisionCode === 'APPROVAL_REQUIRED');
      return ledger.approve(at(asked, a)?.recorded.eventId ?? 'none', { principalId: 'human:olga' });
    };
  if (kind < 30)
    return ({ ledger, decided, now }) => {
      const open = decided.filter(({ started }) => started !== undefined);
      const id = at(open, a)?.recorded.eventId ?? 'none';
      const used = meters({ calls: 1, usd: b % 50 === 0 ? '3' : String((b % 5) / 10) });
      const done = { startedAt: now(), endedAt: now(), outcome: 'success', meterUsed: used } as const;
      return ledger.record(id, { ...done, start: true, isDatedNow: c % 2 === 0 });
    };
  if (kind < 32)
    return ({ ledger, decided }) => {
      const open = decided.filter(({ started, decision }) => started === undefined && decision === 'allow');
      return ledger.abandon(at(open, a)?.recorded.eventId ?? 'none');
    };
  if (kind < 33) return ({ ledger }) => ledger.checkpoint();
  if (kind < 35) return ({ ledger, grants }) => ledger.budget(at(grants, a) ?? 'none');
  const toolName = TOOLS[pick(5) === 0 ? pick(TOOLS.length) : 0] as string;
  const usd = pick(4) === 0 ? String(pick(40) / 10) : '0.5';
  const paramsDigest = sha256Digest(Buffer.from(`call ${pick(40)}`));
  const intent = pick(2) === 0 ? INTENT : sha256Digest(Buffer.from(`intent ${pick(3)}`));
  const more = [
    {},
    {},
    {},
    {},
    { ttlMs: 1_000 * (1 + pick(60)) },
    { requestKey: `key-${pick(12)}` },
    { resources: [{ kind: 'path', reference: pick(2) === 0 ? '/a' : '/b' }] },
    { userIntentDigest: intent },
    { userIntentDigest: intent },
    { userIntentDigest: INTENT },
    { contextDigest: intent },
    { meters: undefined },
    { meters: [] },
    { advice: { checks: [{ check: 'adviser:x', result: 'pass' }], code: 'ADVISED' } },
    { advice: { checks: [], denial: { code: 'NO', reason: 'no' } } },
    { advice: { checks: [], approval: { approvers: ['human:*'] } } },
    { hygiene: { status: 'Invalid', warnings: [] } },
    { expiresAt: 'never' },
    { grantId: '' },
    { grantId: 'sha-256:none' },
  ][pick(20)] as object;
  const named = pick(6) === 0;
  const isStarted = pick(3) > 0;
  const used = [[], meters({ calls: 1 })][pick(2)] as never;
  const signal = pick(40) === 0 ? AbortSignal.abort(new Error('withdrawn')) : undefined;
  return async ({ ledger, grants }) => {
    const grantId = named ? at(grants, a) : undefined;
    const decided = await ledger.authorize(
      {
        principalId,
        toolName,
        paramsDigest,
        intentDigest: intent,
        meters: meters({ calls: 1, usd }),
        ...(grantId === undefined ? {} : { grantId }),
        ...more,
      },
      { signal, ...(isStarted ? { start: { meterUsed: used } } : {}) },
    );
    return { decided };
  };
}

interface Interruption {
  readonly store: LedgerStore;
  /** What comes before the next group is written. */
  before: (() => Promise<void>) | undefined;
}

/** A store of which the next write can be made to come too late. */
function interruptible(store: LedgerStore): Interruption {
  const own: Interruption = {
    before: undefined,
    store: new Proxy(store, {
      get(target, name) {
        if (name === 'appendIf')
          return async (...given: Parameters<LedgerStore['appendIf']>) => {
            const { before } = own;
            own.before = undefined;
            await before?.();
            return target.appendIf(...given);
          };
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    }),
  };
  return own;
}

const CREATE = { origin: 'example.com/tests/expected' };

interface Told {
  readonly answers: unknown;
  readonly records: unknown;
  readonly verdict: string;
  readonly codes: readonly string[];
}

/** What a run of a seed answered and recorded, ids by number, and without what is drawn or signed. */
async function run(seed: number, isShared: boolean, options: LiveLedgerOptions): Promise<Told> {
  const pick = numbersOf(seed);
  let instant = parseTimestamp(NOON);
  const now = (): string => formatInstant(instant);
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const memory = new MemoryStore({ hasLocks: false });
  const interruption = interruptible(memory.open());
  const all = { signer, principalId: 'org:x', create: CREATE, checkpoints: true, now, ...options };
  const ledger = await LiveLedger.open(isShared ? interruption.store : path, all);
  const other = isShared ? await LiveLedger.open(memory.open(), all) : undefined;
  const world: World = { ledger, now, grants: [], decided: [] };
  for (const principalId of PRINCIPALS) {
    const meterCaps = { calls: 300n, usd: '60' };
    const event = draftGrant({ principalId, allowedTools: ['*'], meterCaps, intentDigest: INTENT });
    world.grants.push((await ledger.append({ event })).eventId);
  }
  const answers: unknown[] = [];
  for (let round = 0; round < 20; round += 1) {
    const acts = Array.from({ length: pick(3) === 0 ? 1 : 1 + pick(60) }, () => makeAct(pick));
    const act = makeAct(pick);
    if (other !== undefined && pick(2) === 0)
      interruption.before = async () => void (await act({ ...world, ledger: other }).catch(() => undefined));
    const settled = await Promise.allSettled(acts.map((each) => each(world)));
    for (const each of settled) {
      const { granted, decided } = (each.status === 'fulfilled' ? (each.value ?? {}) : {}) as Answer;
      if (granted !== undefined) world.grants.push(granted);
      if (decided !== undefined) world.decided.push(decided);
      answers.push(each.status === 'fulfilled' ? each.value : String(each.reason));
    }
    instant += (pick(6) === 0 ? 61n : BigInt(pick(3))) * SECOND;
  }
  await ledger.close();
  await other?.close();
  const bytes = isShared ? memory.bytes() : readBytes(path);
  const { verdict, findings } = await verifyChunks(bytes);
  return { ...namedByNumber(answers, bytes, path), verdict, codes: findings.map(({ code }) => code) };
}

/** What is drawn, signed, or a digest of it. */
const DRAWN = new Set(['recorder', 'prev', 'payload_digest', 'root', 'note', 'signatures']);

function namedByNumber(
  answers: unknown,
  bytes: Uint8Array,
  path: string,
): { readonly answers: unknown; readonly records: unknown } {
  const lines = Buffer.from(bytes).toString().trimEnd().split('\n');
  const records = lines.map((line) => JSON.parse(line) as { event: { event_id: { b64: string } } });
  const numbers = new Map(records.map(({ event }, seq) => [event.event_id.b64, `#${seq}`]));
  const text = JSON.stringify({ answers, records }, (name, value: unknown) => {
    if (DRAWN.has(name)) return undefined;
    return typeof value === 'bigint' ? String(value) : value;
  });
  const named = text.replaceAll(/[\w-]{43}/g, (id) => numbers.get(id) ?? id).replaceAll(path, 'PATH');
  return JSON.parse(named) as { answers: unknown; records: unknown };
}

const external = { publicKey: signer.publicKey, sign: (message: Uint8Array) => signer.sign(message) };

it.each<[string, number, boolean, LiveLedgerOptions]>([
  ['in a file', 1, false, {}],
  ['in a file that need not be sound', 2, false, { strict: false }],
  ['over an index', 3, false, { index: true }],
  ['in a store where others come first', 4, true, {}],
  ['by a signer elsewhere', 5, true, { signer: external }],
])('what is asked %s is answered and recorded alike', async (_, seed, isShared, options) => {
  const policy: LiveLedgerOptions['policy'] = (state) => new GrantEvaluator(state);
  const slow = await run(seed, isShared, { ...options, policy });
  expect(await run(seed, isShared, options)).toEqual(slow);
});
