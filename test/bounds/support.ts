/** What the tests of linkage and bounds share: short builders of events, and the verifier run over bare events. */

import { buildEvent, type AnyEvent } from '../../src/format/event/build.js';
import { identifyEvent } from '../../src/format/event/identity.js';
import type { Finding } from '../../src/format/finding/finding.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { digestFromBase64url, sha256Digest, type Digest } from '../../src/base/value/digest.js';
import { meters, type MeterVector } from '../../src/base/value/meter.js';
import type { Quantity } from '../../src/base/value/quantity.js';
import { startVerification, type VerifyState } from '../../src/rules/verify/state.js';
import type { EventVerdict } from '../../src/rules/verify/line-result.js';
import { finishVerification } from '../../src/rules/verify/ending.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';

export const NOON = '2026-01-01T12:00:00Z';

/** A digest of its own for each name. */
export function digestOf(name: string): Digest {
  return sha256Digest(Buffer.from(name));
}

/** Amounts by unit; see `meters`. */
export type AmountsByUnit = Readonly<Record<string, bigint | number | string | Quantity>>;

export interface BoundsDraft {
  readonly tools?: readonly string[];
  readonly caps?: AmountsByUnit;
  readonly actionCaps?: AmountsByUnit;
  readonly depth?: number;
  readonly begins?: string;
  readonly rates?: AmountsByUnit;
  readonly concurrency?: bigint;
  readonly expires?: string;
  readonly mode?: 'digest_only' | 'allow_contentref' | 'allow_inline';
  readonly resources?: readonly { readonly kind: string; readonly reference: string }[];
}

/** Members that replace or join those of the event. */
export type Members = Readonly<Record<string, unknown>>;

const envelope = {
  occurred_at: NOON,
  principal_id: 'agent:a1',
  intents: { intent_digest: digestOf('intent') },
};
const decision = {
  event_type: 'authorization',
  ...envelope,
  policy_id: 'p',
  policy_digest: digestOf('policy'),
  decision: 'allow',
  decision_code: 'ALLOW',
};

/** An event that another one names, or only its id. */
type Named = AnyEvent | Digest;

function idOf(named: Named): Digest {
  return 'event_id' in named ? named.event_id : named;
}

/** A grant of every tool and of 10 usd, unless the draft says otherwise. */
export function makeGrant(draft: BoundsDraft = {}, parent?: Named, members: Members = {}): AnyEvent {
  const { tools = ['*'], caps = { usd: 10n }, rates, concurrency, expires, mode, resources } = draft;
  const { actionCaps, depth, begins } = draft;
  const bounds = {
    allowed_tools: tools,
    meter_caps: meters(caps),
    ...(actionCaps && { action_caps: meters(actionCaps) }),
    ...(depth !== undefined && { max_delegation_depth: depth }),
    ...(begins !== undefined && { not_before: begins }),
    ...(rates && { rate_limits: meters(rates) }),
    ...(concurrency !== undefined && { concurrency_limit: { t: 'int', v: String(concurrency) } }),
    ...(expires !== undefined && { expires_at: expires }),
    ...(mode !== undefined && { output_mode: mode }),
    ...(resources && { resources }),
  };
  const authorization = { kind: 'grant', bounds, ...(parent && { grant_event_id: idOf(parent) }) };
  return buildEvent({ ...decision, authorization, ...members });
}

/** An action that calls `fs.read`, unless the members say otherwise; without a grant it reserves something. */
export function makeAction(
  grant: Named | undefined,
  reservation: AmountsByUnit = grant === undefined ? { calls: 1n } : {},
  members: Members = {},
  tool = 'fs.read',
  more: Members = {},
): AnyEvent {
  const authorization = {
    kind: 'action',
    action: {
      tool_name: tool,
      tool_params_digest: digestOf('params'),
      meter_reservation: meters(reservation),
      ...more,
    },
    ...(grant && { grant_event_id: idOf(grant) }),
  };
  return buildEvent({ ...decision, authorization, ...members });
}

/** A successful execution of `fs.read`, unless the members say otherwise; undefined ones leave a member out. */
export function makeExecution(
  authorization: Named,
  used: AmountsByUnit | MeterVector = {},
  members: Members = {},
): AnyEvent {
  const event = {
    event_type: 'execution',
    ...envelope,
    auth_event_id: idOf(authorization),
    tool_name: 'fs.read',
    tool_params_digest: digestOf('params'),
    meter_used: Array.isArray(used) ? used : meters(used as AmountsByUnit),
    outcome: 'success',
    ...members,
  };
  return buildEvent(Object.fromEntries(Object.entries(event).filter(([, value]) => value !== undefined)));
}

/** A start of `fs.read` that counts, unless the members say otherwise; undefined ones leave a member out. */
export function makeStart(authorization: Named, members: Members = {}): AnyEvent {
  const event = {
    event_type: 'x.northroot.start',
    ...envelope,
    auth_event_id: idOf(authorization),
    tool_name: 'fs.read',
    tool_params_digest: digestOf('params'),
    started_at: NOON,
    meter_known: [],
    recorder: 'a-recorder-of-its-own',
    ...members,
  };
  return buildEvent(Object.fromEntries(Object.entries(event).filter(([, value]) => value !== undefined)));
}

/** A credit or debit by a third party, of one execution where it is given. */
export function makeAdjustment(
  grant: Named,
  direction: 'credit' | 'debit',
  amounts: AmountsByUnit,
  members: Members = {},
  execution?: Named,
): AnyEvent {
  return buildEvent({
    event_type: 'adjustment',
    occurred_at: NOON,
    principal_id: 'service:billing',
    grant_event_id: idOf(grant),
    direction,
    meters: meters(amounts),
    reason: 'REFUND',
    ...(execution && { execution_event_id: idOf(execution) }),
    ...members,
  });
}

/** What makes an execution a release (SPEC §8 rule 8). */
export const RELEASE = { outcome: 'failure', error_code: 'ABANDONED' } as const;

/** The n-th event of a sort that is otherwise the same: differs from the others in its id only. */
export function number(n: number): Members {
  return { context_digest: digestOf(`number ${n}`) };
}

/** The payload with its ids, whatever it is: what `buildEvent` makes, but not checked. */
export function withIds(payload: object): AnyEvent {
  const { eventId, payloadDigest } = identifyEvent(payload);
  const ids = { event_id: digestFromBase64url(eventId), payload_digest: digestFromBase64url(payloadDigest) };
  return { ...payload, ...ids } as unknown as AnyEvent;
}

/** The event with a member more than it may have, and the ids that are then right. */
export function malformed(event: object): AnyEvent {
  return withIds({ ...event, stray: true });
}

/** Whether {@link malformed} made it. */
export function isMalformed(event: object): boolean {
  return 'stray' in event;
}

/** A run of the verifier over bare events. */
export class BareRun {
  readonly state: VerifyState = startVerification(undefined, nodeBackend);
  readonly verdicts: EventVerdict[] = [];
  #offset = 0;

  /** Verifies the next event, given as it is or as its line, and returns what was found at once. */
  push(event: object | string): readonly Finding[] {
    const bytes = Buffer.from(typeof event === 'string' ? event : canonicalText(event));
    const number = this.verdicts.length + 1;
    const line = { bytes, length: bytes.length, offset: this.#offset, number, terminated: true } as const;
    const { findings, verdict } = verifyLine(
      this.state,
      { ...line, longLeafHash: undefined },
      { file: 'bare.jsonl', firstSeq: undefined },
    );
    this.#offset += bytes.length + 1;
    this.verdicts.push(verdict);
    return findings;
  }

  end(): readonly Finding[] {
    return finishVerification(this.state).findings;
  }
}

/** The verifier's word on each event of a sequence. */
export interface Judged {
  readonly verdicts: readonly EventVerdict[];
  /** By event, whenever they were found. */
  readonly findings: readonly (readonly Finding[])[];
  readonly state: VerifyState;
}

/** Verifies a sequence of bare events. */
export function judge(events: readonly object[]): Judged {
  const run = new BareRun();
  const all = events.flatMap((event) => run.push(event)).concat(run.end());
  const findings = events.map((_, index) => all.filter(({ at }) => at.line === index + 1));
  return { verdicts: run.verdicts, findings, state: run.state };
}
