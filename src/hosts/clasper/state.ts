/** What was read so far: what each later item is checked against. */

import type { Digest } from '../../base/value/digest.js';
import type { HostPlace } from '../shared/host.js';
import type { TelemetryKey } from './keys.js';
import { Capabilities, type Scope } from './scope.js';

export interface Ids {
  readonly tenant: string;
  readonly adapterId: string;
  readonly executionId: string;
  readonly traceId: string;
}

/** Something that the host decided about an execution. */
export interface Decided {
  readonly kind: 'allow' | 'deny' | 'pending';
  /** Of the claim that records it; absent where it allows what no grant can hold. */
  readonly claim: string | undefined;
  readonly scope: Scope | undefined;
  readonly principalId: string;
  readonly adapterId: string;
  readonly intentDigest: Digest | undefined;
  readonly asked: ReadonlySet<string>;
  /** Of a decision that waited for somebody. */
  readonly decisionId: string | undefined;
  readonly at: HostPlace;
}

/** An execution, by its tenant and id. Of what was decided about it only what can still matter is kept, however often it was requested. */
export class Execution {
  /** What was said of it once is not said again. */
  readonly told = new Set<string>();
  /** When its trace says that it began. */
  startedAt?: string;
  /** The text of the amount that was reported. */
  cost?: string;
  traceCost?: { readonly text: string; readonly at: HostPlace };
  /** Times that an approval of it was answered with `allow`. */
  approvalsUsed = 0;
  /** The first that says what it is about. */
  first?: Decided;
  /** The last that a grant records. */
  allowed?: Decided;
  /** The last that somebody approved. */
  approved?: Decided;
  /** The one that counts: the last that allows, else the last. */
  current?: Decided;
  /** The last that has a claim. */
  recorded?: Decided;

  decide(decided: Decided): void {
    if (decided.scope !== undefined || decided.asked.size > 0) this.first ??= decided;
    if (decided.claim !== undefined) this.recorded = decided;
    if (decided.kind !== 'allow') {
      if (this.current?.kind !== 'allow') this.current = decided;
      return;
    }
    if (decided.claim !== undefined) this.allowed = decided;
    if (decided.decisionId !== undefined) this.approved = decided;
    this.current = this.allowed ?? decided;
  }
}

export interface Decision {
  readonly id: string;
  tenant: string;
  workspace: string | undefined;
  executionId: string;
  adapterId: string;
  requiredRole: string | undefined;
  expiresAt: string | undefined;
  scope: Scope | undefined;
  intentDigest: Digest | undefined;
  /** `approve`, `deny`, `approve_with_override`; undefined while it is pending. */
  action?: string;
  readonly tokens: Set<string>;
  consumedAt?: HostPlace;
}

/** A tool token: single use. */
export interface ToolToken {
  readonly claim: string;
  readonly principalId: string;
  readonly tenant: string;
  readonly executionId: string;
  readonly tool: string;
  /** `sha256:…`; undefined where the files do not state it. */
  readonly scopeHash: string | undefined;
  /** Of the scope itself; likewise. */
  readonly scopeDigest: Digest | undefined;
  readonly issuedAt: string | undefined;
  readonly expiresAt: string | undefined;
  readonly intentDigest: Digest | undefined;
  used?: HostPlace;
}

interface Ingested {
  /** Of the payload; undefined where a malformed one took the place. */
  readonly payloadHash: string | undefined;
  /** Of the members that the host keeps of it. */
  readonly contentHash: string | undefined;
  readonly from: 'report' | 'chain';
  readonly at: HostPlace;
}

interface TraceSeen {
  readonly executionId: string | undefined;
  /** Of its steps as the host keeps them. */
  readonly stepHashes: readonly string[];
  readonly at: HostPlace;
}

export class ClasperState {
  /** Whether the files hold requests at all: only then is one that is not there missing. */
  hasRequests = false;
  /** The same of tool authorizations. */
  hasToolTokens = false;
  readonly capabilities = new Capabilities();
  readonly #keys = new Map<string, TelemetryKey>();
  readonly decisions = new Map<string, Decision>();
  readonly toolTokens = new Map<string, ToolToken>();
  /** Refusals of tools, by tenant, execution and tool: the claim, and whether a chain has said it too. */
  readonly refused = new Map<
    string,
    { readonly claim: string; readonly principalId: string; inChain: number; count: number }
  >();
  /** The last answer for a tenant's execution and tool. */
  readonly toolAnswers = new Map<string, 'allow' | 'deny'>();
  readonly ingested = new Map<string, Ingested>();
  readonly traces = new Map<string, TraceSeen>();
  /** Trace ids of executions, and the other way round, as audit rows say. */
  readonly executionOfTrace = new Map<string, string>();
  /** Executions of which a trace was read. */
  readonly traced = new Set<string>();
  readonly #executions = new Map<string, Execution>();

  /** Of two keys of one version of an adapter the later one counts. */
  addKey(tenant: string | undefined, key: TelemetryKey): void {
    this.#keys.set(keyOf(tenant ?? '', key.adapterId, key.adapterVersion ?? ''), key);
  }

  /** The key of an adapter; one that is registered for its tenant before one of which nothing says the tenant. */
  keyOf(tenant: string, adapterId: string, version: string): TelemetryKey | undefined {
    for (const of of [tenant, ''])
      for (const each of [version, '']) {
        const key = this.#keys.get(keyOf(of, adapterId, each));
        if (key !== undefined) return key;
      }
    return undefined;
  }

  execution(tenant: string, id: string): Execution {
    const key = keyOf(tenant, id);
    let execution = this.#executions.get(key);
    if (execution === undefined) {
      execution = new Execution();
      this.#executions.set(key, execution);
    }
    return execution;
  }
}

/** Parts as one text, no two lists of them as the same. */
export function keyOf(...parts: readonly string[]): string {
  return parts.map((part) => part.replace(/[%/]/g, (c) => (c === '%' ? '%25' : '%2F'))).join('/');
}

/** The id of a claim: what it is, and the host's own ids. */
export function claimId(kind: string, ...parts: readonly string[]): string {
  return `${kind}:${keyOf(...parts)}`;
}

/** Members of a payload that the host keeps of it. */
export const KEPT: Readonly<Record<string, readonly string[]>> = {
  cost: ['cost_usd', 'input_tokens', 'output_tokens', 'model', 'provider', 'recorded_at'],
  metrics: ['step_count', 'duration_ms', 'recorded_at'],
  audit: ['event_type', 'message', 'event_data', 'occurred_at'],
  violations: ['violation_type', 'message', 'occurred_at', 'data'],
};

/** The first text that is there. */
export function firstText(...texts: readonly (string | undefined)[]): string {
  return texts.find((text) => text !== undefined) ?? '';
}
