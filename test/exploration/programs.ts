/** What programs of a small world ask of the real writer and evaluator, and what they are answered. */

import { NorthrootError } from '../../src/base/error.js';
import type { Clock } from '../../src/base/clock.js';
import type { Digest } from '../../src/base/value/digest.js';
import { LiveLedger, type LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import { ABANDONED } from '../../src/log/policy/record.js';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import { APPROVAL_REQUIRED } from '../../src/rules/verify/approvals.js';

export const AGENT = 'agent:a';
export const SUB_AGENT = 'agent:b';
export const OWNER = 'human:olga';

/** The present of a world, by its number: before actions expire, after that, and a while later. */
export const TIMES = ['2026-01-01T12:00:00Z', '2026-01-01T12:00:30Z', '2026-01-01T12:02:00Z'] as const;
const TTL_MS = 20_000;

/** A call that a host wants to make. */
export interface CallPlan {
  /** Under the first grant, or the one delegated from it. */
  readonly grant: 0 | 1;
  readonly tool: string;
  /** Whether it is allowed and begun in one step. */
  readonly isBegunAtOnce: boolean;
  /** Calls with the same number have the same parameters. */
  readonly params: number;
}

/** What a program does to the ledger. Records are named by their seq; `at` is the number of the time at which whoever asks says it is. */
export type Step =
  | { readonly kind: 'ask'; readonly call: number; readonly key: string }
  | { readonly kind: 'begin'; readonly call: number; readonly auth: number }
  | {
      readonly kind: 'settle';
      readonly call: number;
      readonly auth: number;
      readonly start: number;
      readonly at: number;
    }
  | { readonly kind: 'release'; readonly call: number; readonly auth: number; readonly at: number }
  | { readonly kind: 'abandon'; readonly call: number; readonly auth: number }
  | { readonly kind: 'approve' }
  | {
      readonly kind: 'withdraw';
      readonly grant: 0 | 1;
      readonly effect: Effect;
      readonly inFlight?: InFlight;
      readonly at: number;
    }
  | { readonly kind: 'note'; readonly at: number };

export type Effect = 'suspend' | 'resume' | 'revoke';
export type InFlight = 'finish' | 'stop';

/** What whoever asked is told. Records are named by their seq. */
export interface Answer {
  readonly effect?: 'allow' | 'deny' | 'ask';
  readonly code?: string;
  readonly auth?: number;
  readonly start?: number;
  readonly isRepeated?: boolean;
  readonly error?: string;
  /** The records of which the program was told that they are stored, in the order in which it was. */
  readonly told: readonly number[];
}

/** What a step finds in the ledger. */
export interface Seen {
  readonly calls: readonly CallPlan[];
  /** `sha-256:…` of the record with this seq. */
  readonly idAt: (seq: number) => string;
  readonly startedAt: (seq: number) => string;
}

/** The seqs of the two grants: genesis is before them. */
export const GRANTS = [1, 2] as const;

const ONE = [{ unit: 'calls', amount: { t: 'int', v: '1' } }] as const;

function paramsOf(number: number): Digest {
  return { alg: 'sha-256', b64: `${'A'.repeat(42)}${'AEIMQUYcgkosw048'[number]}` };
}

/** A clock that stands, with timers that end at once where they are short, as if all the rest took no time. */
export function clockAt(now: () => string): Clock {
  const timer = { unref: () => timer };
  return {
    now: () => Date.parse(now()),
    ticks: () => 0,
    setTimeout: (run, ms) => {
      if (ms <= 100) setImmediate(run);
      return timer;
    },
    setInterval: () => timer,
    clear: () => undefined,
  };
}

export function openLive(
  store: LedgerStore,
  now: () => string,
  options: LiveLedgerOptions = {},
): Promise<LiveLedger> {
  const quiet = {
    lingerMs: 0,
    position: false,
    index: false,
    signingThreads: 0,
    principalId: OWNER,
  } as const;
  return LiveLedger.open(store, { clock: clockAt(now), now, ...quiet, ...options });
}

/** @returns The answer; what is refused is one with its code. Other errors pass. */
export async function take(live: LiveLedger, step: Step, seen: Seen, now: () => string): Promise<Answer> {
  try {
    return await takeOrFail(live, step, seen, now);
  } catch (error) {
    if (error instanceof NorthrootError) return { error: error.code, told: [] };
    throw error;
  }
}

async function takeOrFail(
  live: LiveLedger,
  step: Step,
  { calls, idAt, startedAt }: Seen,
  now: () => string,
): Promise<Answer> {
  switch (step.kind) {
    case 'ask':
      return ask(live, calls[step.call], step.key, idAt);
    case 'begin': {
      const { params } = calls[step.call];
      const { recorded } = await live.start(idAt(step.auth), { paramsDigest: paramsOf(params), now });
      return { start: recorded.seq, told: [recorded.seq] };
    }
    case 'settle': {
      const done = {
        startedAt: startedAt(step.start),
        endedAt: TIMES[step.at] as string,
        meterUsed: ONE,
        outcome: 'success',
      } as const;
      return toldOf(
        await live.record(idAt(step.auth), { ...done, start: idAt(step.start), isDatedNow: true }),
      );
    }
    case 'release': {
      const nothing = { meterUsed: [], outcome: 'failure', errorCode: ABANDONED } as const;
      return toldOf(
        await live.record(idAt(step.auth), {
          startedAt: TIMES[step.at],
          endedAt: TIMES[step.at],
          ...nothing,
        }),
      );
    }
    case 'abandon':
      return toldOf(await live.abandon(idAt(step.auth)));
    case 'approve': {
      const waiting = (await live.requests()).find(({ status }) => status === 'waiting');
      return waiting === undefined
        ? { error: 'NOTHING_WAITS', told: [] }
        : toldOf(await live.approve(waiting.eventId));
    }
    case 'withdraw': {
      const [grant, { effect, inFlight }] = [idAt(GRANTS[step.grant]), step];
      const how = { reason: 'INCIDENT', ...(inFlight === undefined ? {} : { inFlight }) };
      const [made] = await live[effect](grant, how);
      return toldOf(made);
    }
    case 'note': {
      // Two at once, in one group: who asks is told of them in their order.
      const told: number[] = [];
      const note = async (n: string): Promise<void> => {
        const { seq } = await live.append({ event: { event_type: 'x.test', n } });
        told.push(seq);
      };
      await Promise.all([note('1'), note('2')]);
      return { told };
    }
  }
}

async function ask(
  live: LiveLedger,
  { grant, tool, params, isBegunAtOnce }: CallPlan,
  requestKey: string,
  idAt: Seen['idAt'],
): Promise<Answer> {
  const paramsDigest = paramsOf(params);
  const request = {
    principalId: grant === 0 ? AGENT : SUB_AGENT,
    toolName: tool,
    paramsDigest,
    intentDigest: paramsDigest,
    meters: ONE,
    requestKey,
    grantId: idAt(GRANTS[grant]),
    ttlMs: TTL_MS,
  };
  const decision = await live.authorize(request, isBegunAtOnce ? { start: {} } : {});
  const { recorded, decisionCode: code, started, refusal } = decision;
  const isNew = recorded.status === 'appended';
  return {
    effect: decision.decision === 'allow' ? 'allow' : code === APPROVAL_REQUIRED ? 'ask' : 'deny',
    code,
    auth: recorded.seq,
    isRepeated: !isNew,
    ...(started === undefined ? {} : { start: started.recorded.seq }),
    ...(refusal === undefined
      ? {}
      : { error: refusal instanceof NorthrootError ? refusal.code : String(refusal) }),
    told: [recorded.seq, ...(started === undefined ? [] : [started.recorded.seq])],
  };
}

function toldOf({ seq }: { readonly seq: number }): Answer {
  return { told: [seq] };
}

/** Waits as long as something still happens by promises alone: `undefined` where it never ends. */
export async function untilQuiet<T>(
  promise: Promise<T>,
  isHeld: () => boolean = () => false,
): Promise<T | undefined> {
  let ended: { readonly value: T } | { readonly error: unknown } | undefined;
  promise.then(
    (value) => (ended = { value }),
    (error: unknown) => (ended = { error }),
  );
  for (let turn = 0; turn < MOST_TURNS && ended === undefined && !isHeld(); turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
  if (ended === undefined) return undefined;
  if ('error' in ended) throw ended.error;
  return ended.value;
}

const MOST_TURNS = 300;
