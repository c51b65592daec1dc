/** What every call of the face works with: the open ledger, what is known of it, and how the face is set. */

import { randomUUID } from 'node:crypto';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { decodeSourceJson, SourceObject } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import { sha256Digest } from '../../../base/value/digest.js';
import type { RequestFacts } from '../../../gate/service/face.js';
import type { Gate, GateDecision } from '../../../gate/gate.js';
import { keyOfCall } from '../../../gate/request-key.js';
import type { Appended } from '../../../log/writer/ledger.js';
import type { ToolSet } from '../../../rules/bounds/tool-set.js';
import { sourceIdOf } from '../../shared/names.js';
import { SYSTEM } from '../desk.js';
import { EXECUTION_TOOL } from '../scope.js';
import type { Adapter } from './adapters.js';
import { type Book, type KnownExecution, LIVE, WORKSPACE_CHECK } from './book.js';

export interface Settings {
  readonly secrets: { readonly adapter: string; readonly tool: string; readonly decision: string };
  readonly audience: string | undefined;
  readonly signatures: 'enforce' | 'warn';
  /** Whether a conflict is answered as the host answers it. */
  readonly isCompatible: boolean;
  readonly maxSkewSeconds: number;
  /** Capabilities for which an execution waits for approval, and whose. */
  readonly approval: { readonly capabilities: ToolSet; readonly approvers: readonly string[] } | undefined;
}

export interface Asked {
  readonly gate: Gate;
  readonly book: Book;
  readonly settings: Settings;
  readonly adapter: Adapter;
  readonly facts: RequestFacts;
  readonly signal: AbortSignal;
}

/** Names of an execution's own calls, below its id. */
export const COST = 'cost';
export const METRICS = 'metrics';
/** How long after the end of its scope an execution may report, in milliseconds. */
const REPORT_MS = 15 * 60_000;

/** The key by which the ledger knows an execution. */
export function costKeyOf(executionId: string): string {
  return keyOfCall(executionId, COST);
}

/** What a decision on an execution says of its workspace, which is in no name of the ledger. */
export function workspaceCheckOf({ workspace }: Pick<Adapter, 'workspace'>): string {
  return `${WORKSPACE_CHECK}${sha256Digest(encodeUtf8(workspace)).b64}`;
}

/** An execution of the adapter, and of its workspace. */
export function ownExecution(
  { book, adapter }: Pick<Asked, 'book' | 'adapter'>,
  executionId: string,
): KnownExecution | undefined {
  const known = book.execution(adapter.principal, costKeyOf(executionId));
  const check = known?.workspaceCheck;
  return check === undefined || check === workspaceCheckOf(adapter) ? known : undefined;
}

/** In seconds since 1970. */
export function secondsOf(time: string): number {
  return Math.floor(Date.parse(time) / 1000);
}

/** The time so many milliseconds after another. */
export function after(time: string, ms: number): string {
  return new Date(Date.parse(time) + ms).toISOString();
}

/** How long a call of an execution may take: until its scope ends, and as long as it may report. */
export function ttlOf({ gate }: Pick<Asked, 'gate'>, expiresAt: string | undefined): number {
  const now = gate.ledger.now();
  const left = expiresAt === undefined ? 0 : Date.parse(expiresAt) - Date.parse(now);
  return Math.max(1, left) + REPORT_MS;
}

/** Appends evidence in the name of a tenant's host or of an adapter. What it says is in the book at once. */
export async function appendEvidence(
  { gate, book }: Pick<Asked, 'gate' | 'book'>,
  type: string,
  principal: string,
  facts: JsonObject,
  source?: { readonly id: string; readonly bytes: Uint8Array },
): Promise<Appended> {
  const event = {
    event_type: `x.${SYSTEM}.${type}`,
    occurred_at: gate.ledger.now(),
    principal_id: principal,
    live: LIVE,
    ...(source === undefined ? {} : { source: sourceOf(source.id, source.bytes) }),
    ...facts,
  };
  const recorded = await gate.ledger.append({ event });
  book.take(event, recorded.seq, recorded.eventId);
  return recorded;
}

/** Where a record was taken from: the host's own id of it, and what was sent. */
export function sourceOf(
  id: string,
  bytes: Uint8Array,
): {
  readonly system: string;
  readonly id: string;
  readonly digest: { readonly alg: 'sha-256'; readonly b64: string };
} {
  const { b64 } = sha256Digest(bytes);
  return { system: SYSTEM, id: sourceIdOf(id), digest: { alg: 'sha-256', b64 } };
}

/** Records that something was refused before any grant was asked. */
export async function recordDenial(
  { gate, adapter, facts }: Asked,
  params: JsonObject,
  code: string,
  reason: string,
  { grantId, tool = EXECUTION_TOOL }: { readonly grantId?: string | undefined; readonly tool?: string } = {},
): Promise<GateDecision> {
  const decision = await gate.decide({
    // Whoever asks again is asked about again.
    ref: randomUUID(),
    principal: adapter.host,
    tool,
    params,
    start: false,
    coverage: 'hook',
    ...(grantId === undefined ? {} : { grantId }),
    found: { checks: [], denial: { code, reason } },
  });
  noteDecision(facts, adapter, decision, tool);
  return decision;
}

export function noteDecision(
  facts: RequestFacts,
  { principal }: Adapter,
  { effect, code, authorization }: GateDecision,
  tool: string,
): void {
  Object.assign(facts, { effect, code, authorization, tool, principal });
}

/** Plain JSON as the host's rules read it. */
export function readJson(value: JsonObject): SourceObject {
  const decoded = decodeSourceJson(encodeUtf8(JSON.stringify(value)));
  return decoded.ok && decoded.value instanceof SourceObject ? decoded.value : EMPTY;
}

export const EMPTY = new SourceObject(new Map());
