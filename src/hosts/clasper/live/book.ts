/**
 * What a ledger says of adapters, executions, decisions and reports, as far as the face has to look it up: read when the ledger is opened,
 * and kept up with what every process appends. Nothing is kept anywhere else, so that nothing is lost with a process.
 */

import { setImmediate } from 'node:timers/promises';
import { encodeHex, tryDecodeBase64url } from '../../../base/bytes/encoding.js';
import { type JsonObject, type JsonValue } from '../../../base/json/value.js';
import { formatDigest, isDigest } from '../../../base/value/digest.js';
import type { MeterVector } from '../../../base/value/meter.js';
import type { Quantity } from '../../../base/value/quantity.js';
import type { AuthorizationEvent } from '../../../format/schema/generated/types.js';
import type { Gate } from '../../../gate/gate.js';
import { openStoreSource } from '../../../log/store/open-store.js';
import { readRecords } from '../../../log/read/read-records.js';
import { makeToolSet, type ToolSet } from '../../../rules/bounds/tool-set.js';
import { STABLE_FORM } from '../../shared/forms/stable.js';
import { hostPrincipal, SYSTEM } from '../desk.js';
import { EXECUTION_TOOL } from '../scope.js';
import { keyOf } from '../state.js';

/** A grant of a tenant, or of an execution. */
export interface KnownGrant {
  /** `sha-256:…` */
  readonly id: string;
  readonly principal: string;
  readonly tools: ToolSet;
  readonly caps: ReadonlyMap<string, Quantity>;
  readonly expiresAt: string | undefined;
  /** The grant that it was delegated from. */
  readonly parentId: string | undefined;
}

/** A grant as it is recorded. */
interface NotedGrant extends Omit<KnownGrant, 'tools' | 'caps'> {
  readonly tools: readonly string[];
  readonly caps: MeterVector;
}

export interface KnownExecution {
  readonly grantId: string;
  /** The action that reserves its cost, `sha-256:…`. */
  readonly authorization: string;
  readonly at: string;
  /** The check that says of which workspace it is; undefined where the ledger does not say it. */
  readonly workspaceCheck: string | undefined;
}

export interface KnownDecision {
  /** The denied action that asks for approval, `sha-256:…`. */
  readonly id: string;
  readonly grantId: string;
  readonly tenant: string;
  readonly workspace: string;
  readonly adapterId: string;
  readonly executionId: string;
  readonly capabilities: readonly string[];
  readonly requestHash: string;
  /** Whether somebody must approve besides what the grants ask. */
  readonly asks: boolean;
  readonly expiresAt: string;
}

export interface KnownAdapter {
  readonly tenant: string;
  readonly adapterId: string;
  readonly version: string;
  readonly displayName: string;
  readonly riskClass: string;
  readonly capabilities: readonly string[];
  readonly enabled: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly key: KnownKey | undefined;
}

export interface KnownKey {
  readonly alg: string;
  readonly jwk: JsonObject;
  readonly keyId: string | undefined;
  readonly createdAt: string;
  readonly revokedAt: string | undefined;
}

export interface KnownReport {
  /** Of the payload, `sha256:…`; of a tool's call undefined. */
  readonly hash: string | undefined;
  readonly seq: number;
}

/** The book of one open ledger; see the head of this file. */
export class Book {
  readonly #gate: Gate;
  readonly #grants = new Map<string, KnownGrant>();
  readonly #parents = new Map<string, KnownGrant[]>();
  readonly #executions = new Map<string, KnownExecution>();
  readonly #decisions = new Map<string, KnownDecision>();
  readonly #decisionOf = new Map<string, string>();
  readonly #adapters = new Map<string, KnownAdapter>();
  readonly #reports = new Map<string, KnownReport>();
  /** Of the last grants by what they say: those of executions are mostly alike, and share it. */
  readonly #bounds = new Map<string, Pick<KnownGrant, 'tools' | 'caps'>>();
  /** Texts that many say, likewise. */
  readonly #texts = new Map<string, string>();
  #isBehind = false;

  private constructor(gate: Gate) {
    this.#gate = gate;
  }

  /** @throws TypeError for a ledger that is not in files; NorthrootError as the ledger is read */
  static async open(gate: Gate): Promise<Book> {
    if (!gate.ledger.isInFiles)
      throw new TypeError('clasperFace: expected a ledger that was opened by its path');
    const book = new Book(gate);
    await book.#read();
    return book;
  }

  /** Catches up with other processes. */
  async sync(): Promise<void> {
    if (this.#isBehind) await this.#read();
    await this.#gate.ledger.findCall(SYSTEM_PRINCIPAL, NO_KEY);
    // What others appended was queued by then; it is taken in microtasks.
    await setImmediate();
  }

  grant(id: string): KnownGrant | undefined {
    return this.#grants.get(id);
  }

  /** The grants that a principal holds itself, in ledger order. */
  grantsOf(principal: string): readonly KnownGrant[] {
    return this.#parents.get(principal) ?? [];
  }

  /** @param key - The request key of its cost */
  execution(principal: string, key: string): KnownExecution | undefined {
    return this.#executions.get(`${principal} ${key}`);
  }

  decision(id: string): KnownDecision | undefined {
    return this.#decisions.get(id);
  }

  /** The last decision that an execution waited for. */
  decisionOf(tenant: string, adapterId: string, executionId: string): KnownDecision | undefined {
    return this.#decisions.get(this.#decisionOf.get(keyOf(tenant, adapterId, executionId)) ?? '');
  }

  /** A version of an adapter; without one the last that was registered. */
  adapter(tenant: string, adapterId: string, version?: string): KnownAdapter | undefined {
    if (version !== undefined) return this.#adapters.get(keyOf(tenant, adapterId, version));
    return [...this.#adapters.values()].findLast(
      (each) => each.tenant === tenant && each.adapterId === adapterId,
    );
  }

  /** The tenants that have an adapter of this name. */
  tenantsOf(adapterId: string): readonly string[] {
    const own = [...this.#adapters.values()].filter((each) => each.adapterId === adapterId);
    return [...new Set(own.map(({ tenant }) => tenant))];
  }

  /** A report of an adapter. Another one of its tenant may name an execution of its own alike. */
  report(principal: string, sourceId: string): KnownReport | undefined {
    return this.#reports.get(`${principal} ${sourceId}`);
  }

  noteGrant({ id, principal, tools, caps, expiresAt, parentId }: NotedGrant): KnownGrant {
    const known = this.#grants.get(id);
    if (known !== undefined) return known;
    const grant: KnownGrant = {
      id,
      principal: this.#same(principal),
      ...this.#boundsOf(tools, caps),
      expiresAt,
      parentId: parentId && this.#same(parentId),
    };
    this.#grants.set(id, grant);
    if (principal.startsWith(HOST_PREFIX)) this.#parents.set(principal, [...this.grantsOf(principal), grant]);
    return grant;
  }

  noteExecution(principal: string, key: string, execution: KnownExecution): void {
    const { grantId, at, workspaceCheck } = execution;
    this.#executions.set(`${principal} ${key}`, {
      ...execution,
      grantId: this.#grants.get(grantId)?.id ?? grantId,
      at: this.#same(at),
      workspaceCheck: workspaceCheck && this.#same(workspaceCheck),
    });
  }

  /** Of two reports of one thing the earlier record counts. */
  noteReport(principal: string, sourceId: string, report: KnownReport): void {
    const key = `${principal} ${sourceId}`;
    const before = this.#reports.get(key);
    if (before === undefined || report.seq < before.seq) this.#reports.set(key, report);
  }

  /** Takes a record. To take it again is harmless. */
  take(event: JsonObject, seq: number, eventId: string): void {
    const type = event['event_type'];
    if (type === 'authorization') this.#takeAuthorization(event as unknown as AuthorizationEvent, eventId);
    else if (type === 'execution') this.#takeExecution(event, seq);
    else if (typeof type === 'string' && type.startsWith(`x.${SYSTEM}.`))
      this.#takeEvidence(type, event, seq);
  }

  async #read(): Promise<void> {
    this.#isBehind = false;
    // What is appended while the file is read is seen twice.
    void this.#follow();
    const source = await openStoreSource(this.#gate.ledger.path);
    for await (const { event, seq, eventId } of readRecords(source)) this.take(event, seq, eventId);
  }

  async #follow(): Promise<void> {
    try {
      for await (const record of this.#gate.ledger.watch({ limit: MAX_QUEUED })) {
        if ('missed' in record) break;
        if (record.verdict !== 'invalid') this.take(record.event, record.seq, record.eventId);
      }
    } catch {
      // What is asked of the ledger next says what is wrong with it.
    }
    this.#isBehind = true;
  }

  #takeAuthorization(event: AuthorizationEvent, eventId: string): void {
    const { principal_id: principal, authorization, source } = event;
    // What was taken over from elsewhere allows nothing here.
    if (source !== undefined || event.decision !== 'allow') return;
    if (!principal.startsWith(HOST_PREFIX) && !principal.startsWith(AGENT_PREFIX)) return;
    if (authorization.kind === 'grant') {
      const { bounds, grant_event_id: parent } = authorization;
      this.noteGrant({
        id: eventId,
        principal,
        tools: bounds?.allowed_tools ?? [],
        caps: bounds?.meter_caps ?? [],
        expiresAt: bounds?.expires_at,
        parentId: parent && formatDigest(parent),
      });
      return;
    }
    const { action, grant_event_id: grant } = authorization;
    const { request_key: key } = action;
    if (action.tool_name !== EXECUTION_TOOL || grant === undefined || key === undefined) return;
    const grantId = formatDigest(grant);
    this.noteExecution(principal, key.replace(/\/\d{1,2}$/, ''), {
      grantId,
      authorization: eventId,
      at: event.occurred_at,
      workspaceCheck: event.checks?.find(({ check }) => check.startsWith(WORKSPACE_CHECK))?.check,
    });
  }

  #boundsOf(tools: readonly string[], caps: MeterVector): Pick<KnownGrant, 'tools' | 'caps'> {
    const text = JSON.stringify([tools, caps]);
    const known = this.#bounds.get(text);
    if (known !== undefined) return known;
    const made = {
      tools: makeToolSet(tools),
      caps: new Map(caps.map(({ unit, amount }) => [unit, amount] as const)),
    };
    if (this.#bounds.size >= MAX_SHARED) this.#bounds.clear();
    this.#bounds.set(text, made);
    return made;
  }

  /** The same text, kept once. */
  #same(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= MAX_SHARED) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }

  #takeExecution(event: JsonObject, seq: number): void {
    const source = event['source'] as { readonly system?: string; readonly id?: string } | undefined;
    if (source?.system !== SYSTEM || typeof source.id !== 'string') return;
    const principal = textIn(event, 'principal_id') ?? '';
    this.noteReport(principal, source.id, { hash: stableHashOf(event['output_digest']), seq });
  }

  #takeEvidence(type: string, event: JsonObject, seq: number): void {
    const source = event['source'] as { readonly id?: string } | undefined;
    const principal = textIn(event, 'principal_id') ?? '';
    if (typeof source?.id === 'string')
      this.noteReport(principal, source.id, { hash: textIn(event, 'payload_hash'), seq });
    const isOwn = principal === hostPrincipal(textIn(event, 'tenant_id') ?? '');
    if (event['live'] !== LIVE || !isOwn) return;
    if (type === `x.${SYSTEM}.execution_pending`) this.#takeDecision(event);
    if (type === `x.${SYSTEM}.adapter_registered`) this.#takeAdapter(event);
    if (type === `x.${SYSTEM}.telemetry_key_set` || type === `x.${SYSTEM}.telemetry_key_revoked`)
      this.#takeKey(event);
  }

  #takeDecision(event: JsonObject): void {
    const text = (name: string): string => textIn(event, name) ?? '';
    const decision: KnownDecision = {
      id: text('decision_id'),
      grantId: text('grant_id'),
      tenant: text('tenant_id'),
      workspace: text('workspace_id'),
      adapterId: text('adapter_id'),
      executionId: text('execution_id'),
      capabilities: textsIn(event, 'capabilities'),
      requestHash: text('request_hash'),
      asks: event['asks'] === true,
      expiresAt: text('expires_at'),
    };
    this.#decisions.set(decision.id, decision);
    this.#decisionOf.set(keyOf(decision.tenant, decision.adapterId, decision.executionId), decision.id);
  }

  #takeAdapter(event: JsonObject): void {
    const text = (name: string): string => textIn(event, name) ?? '';
    const [tenant, adapterId, version] = [text('tenant_id'), text('adapter_id'), text('adapter_version')];
    const key = keyOf(tenant, adapterId, version);
    const before = this.#adapters.get(key);
    const updatedAt = text('occurred_at');
    // The last that was registered is the last of them all.
    this.#adapters.delete(key);
    this.#adapters.set(key, {
      tenant,
      adapterId,
      version,
      displayName: text('display_name'),
      riskClass: text('risk_class'),
      capabilities: textsIn(event, 'capabilities'),
      enabled: event['enabled'] === true,
      createdAt: before?.createdAt ?? updatedAt,
      updatedAt,
      key: before?.key,
    });
  }

  #takeKey(event: JsonObject): void {
    const text = (name: string): string => textIn(event, name) ?? '';
    const key = keyOf(text('tenant_id'), text('adapter_id'), text('adapter_version'));
    const adapter = this.#adapters.get(key);
    if (adapter === undefined) return;
    const updatedAt = text('occurred_at');
    const revokedAt = textIn(event, 'revoked_at');
    const jwk = event['public_jwk'];
    const isSet = typeof jwk === 'object' && jwk !== null && !Array.isArray(jwk);
    const set = isSet
      ? {
          alg: text('key_alg'),
          jwk: jwk,
          keyId: textIn(event, 'key_id'),
          createdAt: updatedAt,
          revokedAt: undefined,
        }
      : undefined;
    const revoked = adapter.key === undefined ? undefined : { ...adapter.key, revokedAt };
    this.#adapters.set(key, { ...adapter, updatedAt, key: set ?? revoked });
  }
}

/** What marks evidence that the face itself looks up again. Importers write none of it. */
export const LIVE = 'face';
/** What the check of an execution's workspace begins with; the SHA-256 of its name follows. */
export const WORKSPACE_CHECK = 'clasper.workspace:';
const MAX_QUEUED = 10_000;
/** How many bounds, and how many texts, are shared at once. */
const MAX_SHARED = 1_000;
const HOST_PREFIX = `service:${SYSTEM}/`;
const AGENT_PREFIX = `agent:${SYSTEM}/`;
const SYSTEM_PRINCIPAL = `service:${SYSTEM}`;
const NO_KEY = 'none';

function textIn(event: JsonObject, name: string): string | undefined {
  const value = event[name];
  return typeof value === 'string' ? value : undefined;
}

function textsIn(event: JsonObject, name: string): readonly string[] {
  const value = event[name];
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

/** `sha256:…` of a digest of the host's form. */
function stableHashOf(digest: JsonValue | undefined): string | undefined {
  if (!isDigest(digest) || digest.alg !== STABLE_FORM) return undefined;
  const bytes = tryDecodeBase64url(digest.b64);
  return bytes === undefined ? undefined : `sha256:${encodeHex(bytes)}`;
}
