/** Bare events made fast, and verified one by one: for tests that judge hundreds of thousands of them. */

import { hash } from 'node:crypto';
import type { Finding } from '../../src/format/finding/finding.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import type { Meter } from '../../src/base/value/meter.js';
import type { Quantity } from '../../src/base/value/quantity.js';
import { startVerification, type VerifyState } from '../../src/rules/verify/state.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';

/** SHA-256 of a text, as a digest. */
export function digestOf(text: string): { alg: 'sha-256'; b64: string } {
  return { alg: 'sha-256', b64: hash('sha256', text, 'base64url') };
}

export const INTENT = digestOf('intent');
const POLICY = digestOf('policy');

/** What an event that is fed becomes: its id, `sha-256:…`, and what was found. */
export interface Fed {
  readonly id: string;
  readonly findings: readonly Finding[];
}

/** A verification that has seen nothing. */
export function emptyState(): VerifyState {
  return startVerification(undefined, nodeBackend);
}

/** Members in the order of their names, so that JSON.stringify writes canonical JSON. */
type Payload = Readonly<Record<string, unknown>>;

/** Completes an event, and has it verified as the next line. */
export function feed(state: VerifyState, payload: Payload): Fed {
  const text = JSON.stringify(payload);
  const digest = hash('sha256', text, 'base64url');
  const b64 = hash('sha256', `northroot:event:v1\0${text}`, 'base64url');
  // Each before the member that it comes before in every event that is made here.
  const follower = payload['prev_event_id'] === undefined ? '"principal_id":"' : '"prev_event_id":{';
  const next = payload['event_type'] === 'authorization' ? '"policy_digest":{' : follower;
  const [head, body, tail] = cutAt(text, '"event_type":"', next);
  const bytes = Buffer.from(
    `${head}"event_id":{"alg":"sha-256","b64":"${b64}"},${body}"payload_digest":{"alg":"sha-256","b64":"${digest}"},${tail}`,
  );
  const line = {
    bytes,
    length: bytes.length,
    offset: state.bytes,
    number: state.lines + 1,
    terminated: true,
    longLeafHash: undefined,
  };
  const { findings, examined } = verifyLine(state, line, { file: '-', firstSeq: undefined });
  if (examined?.wellFormed !== true) throw new Error(`not well-formed: ${text}`);
  return { id: `sha-256:${b64}`, findings };
}

function cutAt(text: string, first: string, second: string): [string, string, string] {
  const i = text.indexOf(first);
  const j = text.lastIndexOf(second);
  return [text.slice(0, i), text.slice(i, j), text.slice(j)];
}

interface Decision {
  readonly principal: string;
  readonly at: string;
  readonly decision?: 'allow' | 'deny';
  readonly grantId?: string | undefined;
  readonly hygiene?: object | undefined;
}

function authorization({ principal, at, decision = 'allow', hygiene }: Decision, members: Payload): Payload {
  return {
    authorization: members,
    canonical_profile_id: 'northroot-jcs-v1',
    decision,
    decision_code: decision.toUpperCase(),
    event_type: 'authorization',
    event_version: '1',
    ...(hygiene === undefined ? {} : { hygiene }),
    intents: { intent_digest: INTENT },
    occurred_at: at,
    policy_digest: POLICY,
    policy_id: 'test/1',
    principal_id: principal,
  };
}

/** What a grant of a test allows. */
export interface Bounds {
  readonly allowed_tools: readonly string[];
  /** Members in the order of canonical JSON. */
  readonly approvals?: readonly object[];
  readonly concurrency_limit?: Quantity | undefined;
  readonly expires_at?: string | undefined;
  readonly meter_caps: readonly Meter[];
  readonly rate_limits?: readonly Meter[] | undefined;
}

export function grantEvent(options: Decision & { readonly bounds: Bounds }): Payload {
  return authorization(options, {
    bounds: canonical(options.bounds as unknown as Payload),
    ...(options.grantId === undefined ? {} : { grant_event_id: toDigest(options.grantId) }),
    kind: 'grant',
  });
}

export interface ActionOptions extends Decision {
  readonly tool: string;
  /** Makes it different from others. */
  readonly params: string;
  readonly meters?: readonly Meter[] | undefined;
  readonly expiresAt?: string | undefined;
}

export function actionEvent(options: ActionOptions): Payload {
  const { tool, params, meters, expiresAt } = options;
  return authorization(options, {
    action: {
      ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
      ...(meters === undefined ? {} : { meter_reservation: meters.map(canonicalMeter) }),
      tool_name: tool,
      tool_params_digest: digestOf(params),
    },
    ...(options.grantId === undefined ? {} : { grant_event_id: toDigest(options.grantId) }),
    kind: 'action',
  });
}

export interface ExecutionOptions {
  readonly principal: string;
  readonly authorizationId: string;
  readonly tool: string;
  /** As the action has it. */
  readonly params?: string;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly meters?: readonly Meter[];
  readonly errorCode?: string;
  /** The start that it settles. */
  readonly startId?: string | undefined;
}

export function executionEvent(options: ExecutionOptions): Payload {
  const { principal, authorizationId, tool, params, startedAt, endedAt, meters = [], errorCode } = options;
  const { startId } = options;
  return {
    auth_event_id: toDigest(authorizationId),
    canonical_profile_id: 'northroot-jcs-v1',
    ended_at: endedAt,
    ...(errorCode === undefined ? {} : { error_code: errorCode }),
    event_type: 'execution',
    event_version: '1',
    intents: { intent_digest: INTENT },
    meter_used: meters.map(canonicalMeter),
    occurred_at: endedAt,
    outcome: errorCode === undefined ? 'success' : 'failure',
    ...(startId === undefined ? {} : { prev_event_id: toDigest(startId) }),
    principal_id: principal,
    started_at: startedAt,
    tool_name: tool,
    ...(params === undefined ? {} : { tool_params_digest: digestOf(params) }),
  };
}

export interface StartOptions {
  readonly principal: string;
  readonly authorizationId: string;
  readonly tool: string;
  /** As the action has it. */
  readonly params?: string | undefined;
  readonly startedAt: string;
  readonly meters: readonly Meter[];
  /** Makes it different from others. */
  readonly recorder: string;
  /** The start that it takes over. */
  readonly startId?: string | undefined;
}

export function startEvent(options: StartOptions): Payload {
  const { principal, authorizationId, tool, params, startedAt, meters, recorder, startId } = options;
  return {
    auth_event_id: toDigest(authorizationId),
    canonical_profile_id: 'northroot-jcs-v1',
    event_type: 'x.northroot.start',
    event_version: '1',
    intents: { intent_digest: INTENT },
    meter_known: meters.map(canonicalMeter),
    occurred_at: startedAt,
    ...(startId === undefined ? {} : { prev_event_id: toDigest(startId) }),
    principal_id: principal,
    recorder,
    started_at: startedAt,
    tool_name: tool,
    ...(params === undefined ? {} : { tool_params_digest: digestOf(params) }),
  };
}

export function int(n: number | bigint): Quantity {
  return { t: 'int', v: String(n) };
}

/** Without what is undefined, and in order. */
function canonical(bounds: Payload): Payload {
  const members = Object.entries(bounds).filter(([, value]) => value !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    members.map(([name, value]) => [
      name,
      name === 'meter_caps' || name === 'rate_limits' ? (value as Meter[]).map(canonicalMeter) : value,
    ]),
  );
}

function canonicalMeter({ unit, amount }: Meter): Payload {
  const { t } = amount;
  switch (t) {
    case 'int':
      return { amount: { t, v: amount.v }, unit };
    case 'dec':
      return { amount: { m: amount.m, s: amount.s, t }, unit };
    case 'rat':
      return { amount: { d: amount.d, n: amount.n, t }, unit };
    case 'f64':
      return { amount: { bits: amount.bits, t }, unit };
  }
}

function toDigest(id: string): Payload {
  return { alg: 'sha-256', b64: id.slice('sha-256:'.length) };
}
