/** Claims an authorization before work begins (SPEC §3.8). */

import { randomBytes } from 'node:crypto';
import { presentTime } from '../../base/clock.js';
import { type Digest, formatDigest, parseDigest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { toRational } from '../../base/value/quantity.js';
import { START_TYPE } from '../../rules/verify/starts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Appended, Entry, Ledger } from '../writer/ledger.js';
import {
  decideUnder,
  draftExecution,
  type ExecutionRequest,
  findPermission,
  type Permission,
  refuse,
} from './record.js';
import { sweepExpired } from './sweep.js';

export interface StartRequest extends Omit<ExecutionRequest, 'now' | 'done'> {
  /** The parameters; MUST be those authorized. */
  readonly paramsDigest: Digest;
  /** The start, or a function called under the write lock. Default: the present, then. */
  readonly now?: string | (() => string);
  /** Aborting withdraws the request; nothing is started then. */
  readonly signal?: AbortSignal | undefined;
}

/** The known use of one call that begins. Frozen, for it is not checked again. */
export const ONE_CALL_USED: MeterVector = Object.freeze([
  Object.freeze({ unit: 'calls', amount: Object.freeze({ t: 'int', v: '1' } as const) }),
]);

export interface StartedExecution {
  readonly permission: Permission;
  readonly startedAt: string;
  readonly recorded: Appended;
}

/**
 * Claims an authorization: appends a start (`x.northroot.start`), which every decision counts until an execution settles it. Once the
 * promise resolves, do the work and record it with {@link draftExecution}.
 * @throws NorthrootError as {@link findPermission}, and `TOOL_PARAMS_MISMATCH`; as {@link Ledger.decide}. Nothing is started then.
 */
export async function startExecution(
  ledger: Ledger,
  wanted: string,
  { signal, ...request }: StartRequest,
): Promise<StartedExecution> {
  const maker = new StartMaker(ledger, request);
  const before = (state: VerifyState, id: string): Entry[] =>
    sweepExpired(ledger, state, readClock(request.now), id);
  const makes = (state: VerifyState, id: string): Entry => maker.make(state, id);
  return maker.started(await decideUnder(ledger, wanted, makes, { signal, before }));
}

export interface ExpectedStart {
  readonly what: StartOf;
  readonly startedAt: string;
  readonly entry: Entry;
}

/** Makes the event of one start under the write lock. */
export class StartMaker {
  readonly #ledger: Ledger;
  readonly #request: Omit<StartRequest, 'signal'>;
  #made: Omit<StartedExecution, 'recorded'> | undefined;

  constructor(ledger: Ledger, request: Omit<StartRequest, 'signal'>) {
    this.#ledger = ledger;
    this.#request = request;
  }

  /** The start of an action that is expected to be allowed as it was asked for. @param authorizationId - `sha-256:…` */
  expect(
    { principalId, toolName, intentDigest }: Pick<Permission, 'principalId' | 'toolName' | 'intentDigest'>,
    authorizationId: string,
  ): ExpectedStart {
    const { paramsDigest, now, meterUsed = [] } = this.#request;
    const what = { authorizationId, principalId, toolName, intentDigest, paramsDigest, startId: undefined };
    const startedAt = readClock(now);
    return { what, startedAt, entry: { event: draftStart(what, startedAt, meterUsed) } };
  }

  /**
   * @param id - The authorization's id, `sha-256:…`, or another name of it
   * @param expected - Its time is the start's, and its entry where that turns out to be the start
   * @throws NorthrootError as {@link startExecution}
   */
  make(state: VerifyState, id: string, expected?: ExpectedStart): Entry {
    const { paramsDigest, now, ...request } = this.#request;
    const startedAt = expected?.startedAt ?? readClock(now);
    const found = findPermission(state, id, { ...request, now: startedAt });
    if (found.paramsDigest !== undefined && formatDigest(found.paramsDigest) !== formatDigest(paramsDigest))
      throw refuse('TOOL_PARAMS_MISMATCH', 'another command was authorized than this one');
    const permission = { ...found, paramsDigest };
    this.#made = { permission, startedAt };
    const { meterUsed = [] } = request;
    // Find now whatever would prevent recording the execution later. What an action's has is recorded already, and its start is signed
    // alike, so that only the use may be wrong.
    const endedAt = startedAt;
    if (permission.kind === 'grant' || meterUsed !== ONE_CALL_USED)
      this.#ledger.assertAdmissible({
        event: draftExecution(permission, { startedAt, endedAt, meterUsed, outcome: 'unknown' }),
      });
    return expected !== undefined && isSameStart(permission, expected.what)
      ? expected.entry
      : { event: draftStart(permission, startedAt, meterUsed) };
  }

  /** What was started, once the event that was made last is on disk. */
  started(recorded: Appended): StartedExecution {
    if (this.#made === undefined) throw new TypeError('no start was made');
    const { permission, startedAt } = this.#made;
    const own = { startId: recorded.eventId, started: { startedAt, meters: this.#request.meterUsed ?? [] } };
    return { permission: { ...permission, ...own }, startedAt, recorded };
  }
}

function readClock(now: StartRequest['now'] = () => presentTime()): string {
  return typeof now === 'string' ? now : now();
}

type StartOf = Pick<
  Permission,
  'authorizationId' | 'principalId' | 'toolName' | 'intentDigest' | 'paramsDigest' | 'startId'
>;

function isSameStart(one: StartOf, other: StartOf): boolean {
  return (
    one.authorizationId === other.authorizationId &&
    one.principalId === other.principalId &&
    one.toolName === other.toolName &&
    formatDigest(one.intentDigest) === formatDigest(other.intentDigest) &&
    one.paramsDigest === other.paramsDigest &&
    one.startId === other.startId
  );
}

/** The start's draft; follows the start that it takes over. */
function draftStart(permission: StartOf, startedAt: string, meterUsed: MeterVector): object {
  const { startId } = permission;
  return {
    event_type: START_TYPE,
    principal_id: permission.principalId,
    occurred_at: startedAt,
    ...(startId === undefined ? {} : { prev_event_id: parseDigest(startId) }),
    intents: { intent_digest: permission.intentDigest },
    auth_event_id: parseDigest(permission.authorizationId),
    tool_name: permission.toolName,
    tool_params_digest: permission.paramsDigest,
    started_at: startedAt,
    meter_known: meterUsed.filter(({ amount }) => toRational(amount).n !== 0n),
    recorder: makeRecorder(),
  };
}

const RECORDER_BYTES = 16;
/** So many names are drawn at once: each look at the system's random source costs as much. */
const DRAWN_AT_ONCE = 64;
let drawn = Buffer.alloc(0);

/** The random name of a start's recorder. */
function makeRecorder(): string {
  if (drawn.length === 0) drawn = randomBytes(RECORDER_BYTES * DRAWN_AT_ONCE);
  const name = drawn.toString('base64url', 0, RECORDER_BYTES);
  drawn = drawn.subarray(RECORDER_BYTES);
  return name;
}
