/** The audit chain, the audit log, stored traces and the bundles that hold them. */

import { SourceObject } from '../../json/source-json.js';
import type { PublicKey } from '../../key/public-key.js';
import type { HostPlace } from '../host.js';
import { codeOf } from '../names.js';
import { objectAt, textAt, timeOfText, valueAt } from '../values.js';
import { stableText } from '../forms/stable.js';
import { checkBundle } from './bundle.js';
import { checkChainEntry, readChainEntry, type ChainEntry, type ChainFaultKind } from './chain.js';
import { adapterPrincipal, hostPrincipal, mark, type Desk } from './desk.js';
import type { HttpReader } from './http.js';
import type { BundleParts, Part } from './parts.js';
import { claimId, firstText, keyOf, type ClasperState } from './state.js';
import { contentHash, eventTypeOf, type TelemetryReader } from './telemetry.js';
import type { TraceReader } from './trace.js';

/** The end of a chain that somebody kept elsewhere. */
export interface ChainHead {
  readonly tenant: string | undefined;
  readonly seq: bigint;
  readonly hash: string;
}

/** An entry with the part that it was read from. */
interface Entry {
  readonly part: Part;
  readonly entry: ChainEntry;
}

const CHAIN_CODES: Readonly<Record<ChainFaultKind, string>> = {
  start: 'CHAIN_START_MISSING',
  gap: 'SEQ_GAP',
  order: 'SEQ_ORDER',
  previous: 'PREV_HASH_MISMATCH',
  hash: 'EVENT_HASH_MISMATCH',
};

const INGESTED: Readonly<Record<string, string>> = {
  adapter_cost_ingested: 'cost',
  adapter_metrics_ingested: 'metrics',
  adapter_audit_event: 'audit',
  adapter_violation_reported: 'violations',
};

const MAX_RELATED = 16;

/** Reads what a host keeps. */
export class AuditReader {
  readonly #desk: Desk;
  readonly #state: ClasperState;
  readonly #telemetry: TelemetryReader;
  readonly #traces: TraceReader;
  readonly #http: HttpReader;
  /** By group and tenant, in the order of their files. */
  readonly #chains = new Map<string, Entry[]>();
  /** Rows of the audit log that stand in a chain, by group. */
  readonly #rows = new Map<string, Part[]>();
  readonly #storedTraces = new Map<string, Part[]>();

  constructor(desk: Desk, state: ClasperState, telemetry: TelemetryReader, traces: TraceReader, http: HttpReader) {
    this.#desk = desk;
    this.#state = state;
    this.#telemetry = telemetry;
    this.#traces = traces;
    this.#http = http;
  }

  /** Which trace is of which execution, as rows of the audit log say; before anything else of a bundle. */
  noteRow({ value }: Part): void {
    const trace = textAt(value, 'traceId');
    const execution = textAt(value, 'eventData', 'execution_id');
    const tenant = firstText(textAt(value, 'tenantId'));
    if (trace !== undefined && execution !== undefined)
      this.#state.executionOfTrace.set(keyOf(tenant, trace), execution);
  }

  entry(part: Part): void {
    const { at, value, group } = part;
    const entry = value instanceof SourceObject ? readChainEntry(value) : undefined;
    if (entry === undefined) {
      this.#malformed(part, 'audit_chain', 'an entry of an audit chain');
      return;
    }
    const key = keyOf(group, entry.tenant);
    const chain = this.#chains.get(key) ?? [];
    this.#chains.set(key, chain);
    const before = chain.at(-1)?.entry;
    chain.push({ part, entry });
    for (const kind of checkChainEntry(entry, before)) this.#chainFault(at, kind, entry, before);
    const other = this.#sameIn(key, entry);
    if (other !== undefined) {
      const isSame = other.entry.hash === entry.hash && other.entry.computed === entry.computed;
      if (!isSame) {
        this.#desk.find('CLA-9', 'CHAIN_FORKED', 'invalid', at, {
          about: `seq ${entry.seq}`,
          expected: other.entry.hash,
          actual: entry.hash.slice(0, 128),
          related: [other.part.at],
        });
      }
      this.#desk.item(part, entry.type, 'repeated', isSame ? 'ALREADY_READ' : 'CHAIN_FORKED');
      return;
    }
    this.#take(part, entry);
  }

  #chainFault(at: HostPlace, kind: ChainFaultKind, entry: ChainEntry, before: ChainEntry | undefined): void {
    const [expected, actual] = {
      start: ['seq 1 after nothing', `seq ${entry.seq}`],
      gap: [`seq ${(before?.seq ?? 0n) + 1n}`, `seq ${entry.seq}`],
      order: [`seq ${(before?.seq ?? 0n) + 1n}`, `seq ${entry.seq}`],
      previous: [before?.hash ?? 'null', entry.previous ?? 'null'],
      hash: [entry.computed, entry.hash],
    }[kind] as [string, string];
    this.#desk.find('CLA-9', CHAIN_CODES[kind], 'invalid', at, {
      about: `seq ${entry.seq}`,
      expected: expected.slice(0, 128),
      actual: actual.slice(0, 128),
    });
  }

  /** The entry of that number of another copy of the chain. */
  #sameIn(key: string, { tenant, seq }: ChainEntry): Entry | undefined {
    for (const [other, entries] of this.#chains) {
      if (other === key || entries[0]?.entry.tenant !== tenant) continue;
      const found = entries.find(({ entry }) => entry.seq === seq);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** What an entry says happened, where nothing nearer said it. */
  #take(part: Part, { tenant, type, data, createdAt, seq }: ChainEntry): void {
    const time = this.#desk.timeOf(part, type, timeOfText(createdAt), `seq ${seq}`);
    if (time === undefined) return;
    const adapterId = firstText(textAt(data, 'adapter_id'));
    const executionId = firstText(textAt(data, 'execution_id'));
    const ingested = INGESTED[type];
    if (ingested !== undefined && executionId !== '') {
      this.#ingested(part, ingested, data, { tenant, adapterId, executionId, traceId: '' }, time, type);
      return;
    }
    const principalId = adapterPrincipal(tenant, adapterId);
    const base = { at: part.at, bytes: part.bytes, occurredAt: time, principalId } as const;
    const decisionId = textAt(data, 'decision_id');
    const tool = textAt(data, 'tool');
    const jti = textAt(data, 'token_id');
    if (type === 'policy_decision_pending' && decisionId !== undefined) {
      this.#pending(part, tenant, executionId, adapterId, decisionId, data, base);
      return;
    }
    if (type === 'policy_decision_resolved' && decisionId !== undefined) {
      this.#resolved(part, tenant, decisionId, data, base);
      return;
    }
    if (type === 'tool_authorization_granted' && jti !== undefined && tool !== undefined) {
      const id = claimId('tool-token', tenant, jti);
      const isNew = this.#desk.claim({ kind: 'action', ...base, id, tool, decision: 'allow', decisionCode: 'ALLOWED' });
      const expiresAt = timeOfText(textAt(data, 'expires_at'));
      if (isNew) {
        this.#state.toolTokens.set(keyOf(tenant, jti), {
          ...{ claim: id, principalId, tenant, executionId, tool, expiresAt },
          ...{ scopeHash: undefined, issuedAt: time, intentDigest: undefined },
        });
        this.#desk.builder.observe({ at: part.at, callIds: [jti], tool, decision: 'allow', meters: [], occurredAt: time });
      }
      this.#desk.item(part, type, isNew ? 'mapped' : 'repeated', isNew ? undefined : 'ALREADY_READ');
      return;
    }
    if (type === 'tool_authorization_denied' && tool !== undefined) {
      this.#denied(part, tenant, executionId, tool, seq, data, base);
      return;
    }
    const isKnown =
      (type === 'tool_authorization_requested' && this.#state.toolAnswers.has(keyOf(tenant, executionId, tool ?? ''))) ||
      (type === 'adapter_trace_ingested' &&
        [...this.#state.traces.values()].some((trace) => trace.executionId === executionId)) ||
      (textAt(data, 'action') === 'adapter_telemetry_key_set' && this.#knowsKey(tenant, data));
    if (isKnown) {
      this.#desk.item(part, type, 'repeated', 'ALREADY_READ');
      return;
    }
    this.#desk.evidence(part, evidenceType(type), {
      id: claimId('chain', tenant, String(seq)),
      occurredAt: time,
      principalId: hostPrincipal(tenant),
      facts: {
        seq: { t: 'int', v: String(seq) },
        audit_type: type,
        adapter_id: adapterId === '' ? undefined : adapterId,
        execution_id: executionId === '' ? undefined : executionId,
        tool,
        code: textAt(data, 'code'),
        action: textAt(data, 'action'),
      },
    });
  }

  #knowsKey(tenant: string, data: SourceObject): boolean {
    const ids = [textAt(data, 'adapter_id'), textAt(data, 'version'), textAt(data, 'key_id')].map((id) => firstText(id));
    return this.#desk.placeOf(claimId('key', tenant, ...ids, '')) !== undefined;
  }

  /** What was reported, as the chain keeps it. */
  #ingested(
    part: Part,
    type: string,
    data: SourceObject,
    ids: { tenant: string; adapterId: string; executionId: string; traceId: string },
    time: string,
    itemType: string,
  ): void {
    const key = keyOf(ids.tenant, ids.executionId, eventTypeOf(type, data));
    const before = this.#state.ingested.get(key);
    const hash = contentHash(type, data);
    if (before?.contentHash === undefined) {
      this.#state.ingested.set(key, { payloadHash: hash, contentHash: hash, from: 'chain', at: part.at });
      this.#telemetry.record(part, type, data, ids, time, [], itemType);
      return;
    }
    if (before.contentHash !== hash) {
      const isChain = before.from === 'chain';
      this.#desk.find(
        isChain ? 'CLA-7' : 'CLA-9',
        isChain ? 'IDEMPOTENCY_CONFLICT' : 'CHAIN_CONTENT_DIFFERS',
        isChain ? 'violation' : 'invalid',
        part.at,
        { about: ids.executionId, expected: 'the content that was reported before', actual: 'other content', related: [before.at] },
      );
    }
    this.#desk.item(part, itemType, 'repeated', before.contentHash === hash ? 'ALREADY_READ' : 'CONTENT_DIFFERS');
  }

  #pending(
    part: Part,
    tenant: string,
    executionId: string,
    adapterId: string,
    id: string,
    data: SourceObject,
    base: { at: HostPlace; bytes: Uint8Array; occurredAt: string; principalId: string },
  ): void {
    const claim = claimId('decision', id, 'pending');
    const isNew = this.#desk.claim({
      ...{ kind: 'grant', ...base, id: claim, decision: 'deny', decisionCode: 'PENDING_APPROVAL' },
      checks: [{ check: 'approval', result: 'fail', code: 'PENDING' }],
    });
    if (isNew && !this.#state.decisions.has(id)) {
      this.#state.decisions.set(id, {
        ...{ id, tenant, workspace: undefined, executionId, adapterId },
        requiredRole: textAt(data, 'required_role'),
        expiresAt: timeOfText(textAt(data, 'expires_at')),
        ...{ scope: undefined, intentDigest: undefined, tokens: new Set<string>() },
      });
      this.#state.execution(tenant, executionId).decided.push({
        ...{ kind: 'pending', claim, scope: undefined, principalId: base.principalId, adapterId },
        ...{ intentDigest: undefined, decisionId: id, at: part.at },
      });
    }
    this.#desk.item(part, 'policy_decision_pending', isNew ? 'mapped' : 'repeated', isNew ? undefined : 'ALREADY_READ');
  }

  #resolved(
    part: Part,
    tenant: string,
    id: string,
    data: SourceObject,
    base: { at: HostPlace; bytes: Uint8Array; occurredAt: string },
  ): void {
    const decision = this.#state.decisions.get(id);
    const action = firstText(textAt(data, 'action'));
    const isApproved = action.startsWith('approve');
    const type = 'policy_decision_resolved';
    if (decision?.action !== undefined) {
      if (decision.action.startsWith('approve') !== isApproved) {
        this.#desk.find('CLA-5', 'DECISION_CONTRADICTS', 'invalid', part.at, {
          about: id,
          expected: decision.action.slice(0, 64),
          actual: action.slice(0, 64),
        });
      }
      this.#desk.item(part, type, 'repeated', 'DECISION_KNOWN');
      return;
    }
    const role = textAt(data, 'role');
    if (decision === undefined) {
      this.#desk.find('CLA-5', 'DECISION_UNKNOWN', 'warning', part.at, { about: id, expected: 'the decision before it' });
    } else {
      decision.action = action;
      this.#http.approval(part.at, decision, role, base.occurredAt);
      const execution = this.#state.execution(tenant, decision.executionId);
      const principalId = adapterPrincipal(tenant, decision.adapterId);
      const claim = claimId('decision', id, 'resolved');
      // An approval lifts what was pending; what it grants a chain does not say, so nothing can be held against it.
      execution.decided.push({
        ...{ kind: isApproved ? 'allow' : 'deny', claim: isApproved ? undefined : claim, scope: undefined },
        ...{ principalId, adapterId: decision.adapterId, intentDigest: undefined, decisionId: id, at: part.at },
      });
      if (!isApproved) {
        const denial = { kind: 'grant', ...base, principalId, id: claim, decision: 'deny' } as const;
        this.#desk.claim({ ...denial, decisionCode: 'APPROVAL_DENIED' });
        this.#desk.item(part, type, 'mapped');
        return;
      }
    }
    this.#desk.evidence(part, type, {
      id: claimId('resolution', id),
      occurredAt: base.occurredAt,
      principalId: hostPrincipal(tenant),
      facts: { decision_id: id, action, role, actor: textAt(data, 'actor') },
    });
  }

  #denied(
    part: Part,
    tenant: string,
    executionId: string,
    tool: string,
    seq: bigint,
    data: SourceObject,
    base: { at: HostPlace; bytes: Uint8Array; occurredAt: string; principalId: string },
  ): void {
    const key = keyOf(tenant, executionId, tool);
    const known = this.#state.refused.get(key);
    if (known !== undefined && known.inChain < known.count) {
      known.inChain++;
      this.#desk.item(part, 'tool_authorization_denied', 'repeated', 'ALREADY_READ');
      return;
    }
    const id = claimId('tool-denied', tenant, executionId, tool, String(seq));
    const policyId = textAt(data, 'policy_id');
    this.#desk.claim({
      ...{ kind: 'action', ...base, id, tool, decision: 'deny' },
      decisionCode: codeOf(firstText(textAt(data, 'decision'), 'DENY')) === 'DENY' ? 'POLICY_DENIED' : 'APPROVAL_REQUIRED',
      ...(policyId === undefined || policyId === '' ? {} : { policyId: policyId.slice(0, 256) }),
    });
    this.#state.refused.set(key, { claim: id, principalId: base.principalId, inChain: 1, count: 1 });
    this.#state.toolAnswers.set(key, 'deny');
    this.#desk.builder.observe({ at: part.at, callIds: [id], tool, decision: 'deny', meters: [], occurredAt: base.occurredAt });
    this.#desk.item(part, 'tool_authorization_denied', 'mapped');
  }

  /** A row of the audit log: what it says stands in the chain. */
  row(part: Part): void {
    const { at, value, group } = part;
    if (!(value instanceof SourceObject) || textAt(value, 'eventType') === undefined) {
      this.#malformed(part, 'audit_row', 'a row of an audit log');
      return;
    }
    const rows = this.#rows.get(group) ?? [];
    this.#rows.set(group, rows);
    rows.push(part);
    const type = firstText(textAt(value, 'eventType'));
    const tenant = firstText(textAt(value, 'tenantId'));
    const chain = this.#chains.get(keyOf(group, tenant));
    if (chain !== undefined) {
      const key = rowKey(value);
      if (chain.some(({ entry }) => entryKey(entry) === key)) {
        this.#desk.item(part, type, 'repeated', 'IN_CHAIN');
        return;
      }
      this.#desk.find('CLA-9', 'AUDIT_NOT_IN_CHAIN', 'invalid', at, { about: type.slice(0, 128), expected: 'an entry of the chain' });
    }
    const time = this.#desk.timeOf(part, type, timeOfText(textAt(value, 'createdAt')));
    if (time === undefined) return;
    this.#desk.evidence(part, 'audit_row', {
      id: claimId('row', tenant, mark(part.bytes)),
      occurredAt: time,
      principalId: hostPrincipal(tenant),
      facts: {
        audit_type: type,
        execution_id: textAt(value, 'eventData', 'execution_id'),
        trace_id: textAt(value, 'traceId'),
      },
    });
  }

  /** A trace as the host keeps it. */
  trace(part: Part): void {
    const { value, group } = part;
    if (!(value instanceof SourceObject) || textAt(value, 'id') === undefined) {
      this.#malformed(part, 'trace', 'a trace');
      return;
    }
    const traces = this.#storedTraces.get(group) ?? [];
    this.#storedTraces.set(group, traces);
    traces.push(part);
    const tenant = firstText(textAt(value, 'tenantId'));
    const id = firstText(textAt(value, 'id'));
    const executionId = firstText(
      textAt(value, 'labels', 'execution_id'),
      this.#state.executionOfTrace.get(keyOf(tenant, id)),
    );
    const adapterId = firstText(textAt(value, 'adapter_id'));
    this.#traces.read(part, value, {
      ...{ tenant, adapterId, executionId, type: 'trace' },
      ...{ issuedAt: undefined, digests: [], isStored: true },
    });
  }

  /** CLA-9 and CLA-10 for what belongs together. */
  finish(bundles: readonly BundleParts[], pinned: PublicKey | undefined, head: ChainHead | undefined): void {
    for (const { files } of bundles)
      for (const { code, severity, class: grade, at, expected, actual } of checkBundle(files, pinned))
        this.#desk.builder.find({ rule: 'CLA-10', code, severity, class: grade, at, expected, actual });
    for (const [, chain] of this.#chains) this.#anchor(chain, head);
    this.#lengths();
    for (const bundle of bundles) this.#logged(bundle);
  }

  /** A cut end shows only against a head that is known from elsewhere. */
  #anchor(chain: readonly Entry[], head: ChainHead | undefined): void {
    const last = chain.at(-1)!;
    const { at } = last.part;
    if (head === undefined) {
      this.#desk.find('CLA-9', 'HEAD_NOT_ANCHORED', 'info', at, { about: `seq ${last.entry.seq}`, expected: 'a head that is known' });
      return;
    }
    if (head.tenant !== undefined && head.tenant !== last.entry.tenant) return;
    const there = chain.find(({ entry }) => entry.seq === head.seq);
    if (there === undefined) {
      this.#desk.find('CLA-9', 'CHAIN_TRUNCATED', 'invalid', at, { expected: `seq ${head.seq}`, actual: `ends with ${last.entry.seq}` });
    } else if (there.entry.hash !== head.hash) {
      const details = { about: `seq ${head.seq}`, expected: head.hash.slice(0, 128), actual: there.entry.hash.slice(0, 128) };
      this.#desk.find('CLA-9', 'CHAIN_FORKED', 'invalid', there.part.at, details);
    }
  }

  /** Copies of one chain: of the shorter one is asked why. */
  #lengths(): void {
    const longest = new Map<string, Entry>();
    for (const [, chain] of this.#chains) {
      const last = chain.at(-1)!;
      const before = longest.get(last.entry.tenant);
      if (before === undefined || before.entry.seq < last.entry.seq) longest.set(last.entry.tenant, last);
    }
    for (const [, chain] of this.#chains) {
      const last = chain.at(-1)!;
      const known = longest.get(last.entry.tenant)!;
      if (known.entry.seq === last.entry.seq) continue;
      this.#desk.find('CLA-9', 'CHAIN_SHORTER', 'warning', last.part.at, {
        expected: `seq ${known.entry.seq}`,
        actual: `ends with ${last.entry.seq}`,
        related: [known.part.at],
      });
    }
  }

  /** What else in a bundle says what its chain must hold, and the other way round. */
  #logged({ group, files }: BundleParts): void {
    const chains = [...this.#chains].filter(([key]) => key.startsWith(`${keyOf(group)}/`));
    const traces = this.#storedTraces.get(group) ?? [];
    for (const [, chain] of chains) {
      this.#rowsMissing(chain, group);
      this.#tracesIn(chain, traces);
      this.#stated(chain, files);
    }
    if (chains.length > 0 || !files.has('audit_chain.jsonl') || traces.length === 0) return;
    this.#desk.find('CLA-9', 'CHAIN_EMPTY', 'invalid', { file: files.get('audit_chain.jsonl')!.name }, {
      expected: 'entries for the traces',
      actual: 'none',
    });
  }

  /** Entries without a row. A bundle of one trace, workspace or time holds fewer rows than the chain has entries. */
  #rowsMissing(chain: readonly Entry[], group: string): void {
    if (this.#scoped.has(group)) return;
    const rows = new Set((this.#rows.get(group) ?? []).map(({ value }) => rowKey(value as SourceObject)));
    const missing = chain.filter(({ entry }) => !rows.has(entryKey(entry)));
    if (missing.length === 0) return;
    this.#desk.find('CLA-9', 'AUDIT_ROW_MISSING', 'invalid', missing[0]!.part.at, {
      about: `seq ${missing[0]!.entry.seq}`,
      expected: `a row of the audit log for each of ${chain.length} entries`,
      actual: `none for ${missing.length}`,
      related: missing.slice(1, MAX_RELATED + 1).map(({ part }) => part.at),
    });
  }

  readonly #scoped = new Set<string>();

  /** What a bundle says that it is of. */
  noteScope({ value, group }: Part): void {
    const scope = objectAt(value, 'scope');
    const narrow = ['workspaceId', 'traceId', 'startDate', 'endDate'];
    if (narrow.some((name) => textAt(scope, name) !== undefined)) this.#scoped.add(group);
  }

  /** Each trace was ingested, and the entry that says so was made after it was checked. */
  #tracesIn(chain: readonly Entry[], traces: readonly Part[]): void {
    const entries = chain.filter(({ entry }) => entry.type === 'adapter_trace_ingested');
    const used = new Set<Entry>();
    const sorted = [...traces].sort((a, b) => (checkedAt(a) < checkedAt(b) ? -1 : 1));
    for (const trace of sorted) {
      const tenant = textAt(trace.value, 'tenantId');
      const checked = checkedAt(trace);
      if (chain[0]?.entry.tenant !== tenant || checked === '') continue;
      const id = firstText(textAt(trace.value, 'id'));
      const execution = this.#state.executionOfTrace.get(keyOf(firstText(tenant), id));
      const found = entries.find(
        (each) =>
          !used.has(each) &&
          each.entry.createdAt >= checked &&
          textAt(each.entry.data, 'adapter_id') === textAt(trace.value, 'adapter_id') &&
          (execution === undefined || textAt(each.entry.data, 'execution_id') === execution),
      );
      if (found !== undefined) used.add(found);
      else
        this.#desk.find('CLA-9', 'TRACE_NOT_IN_CHAIN', 'invalid', trace.at, {
          about: id,
          expected: `an entry from ${checked.slice(0, 64)} on that it was ingested`,
          actual: `the chain ends with seq ${chain.at(-1)!.entry.seq}`,
        });
    }
  }

  /** What a bundle says of its own chain. */
  #stated(chain: readonly Entry[], files: BundleParts['files']): void {
    const isRight = chain.every(({ entry }, i) => checkChainEntry(entry, chain[i - 1]?.entry).length === 0);
    const stated = this.#chainStatements.get(files.get('integrity.json')?.name ?? '');
    if (stated === undefined || stated === isRight) return;
    this.#desk.find('CLA-10', 'CHAIN_STATUS_WRONG', 'invalid', { file: files.get('integrity.json')!.name }, {
      expected: `audit_chain_verification.ok ${String(isRight)}`,
      actual: String(stated),
    });
  }

  readonly #chainStatements = new Map<string, boolean>();

  /** What integrity.json says of the chain. */
  noteIntegrity({ at, value }: Part): void {
    const ok = valueAt(value, 'audit_chain_verification', 'ok');
    if (typeof ok === 'boolean') this.#chainStatements.set(at.file, ok);
  }

  #malformed(part: Part, type: string, expected: string): void {
    this.#desk.find('INPUT', 'MEMBER_MISSING', 'invalid', part.at, { expected, actual: 'something else' });
    this.#desk.builder.drop(part.at, type, 'MEMBER_MISSING');
  }
}

function checkedAt({ value }: Part): string {
  return firstText(textAt(value, 'integrity_checked_at'));
}

/** What a row and its entry share. */
function rowKey(row: SourceObject): string {
  const data = valueAt(row, 'eventData') ?? null;
  return keyOf(...['tenantId', 'eventType', 'createdAt'].map((name) => firstText(textAt(row, name))), stableText(data));
}

function entryKey({ tenant, type, createdAt, data }: ChainEntry): string {
  return keyOf(tenant, type, createdAt, stableText(data));
}

/** A type of event as the end of the type of an extension event. */
function evidenceType(type: string): string {
  return type.replace(/[^A-Za-z0-9_.-]+/g, '_').slice(0, 64) || 'audit';
}
