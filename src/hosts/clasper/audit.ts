/** The audit chain, the audit log, stored traces and the bundles that hold them. */

import { addTo, numberAt, objectAt, textAt, timeOfText, valueAt } from '../shared/values.js';
import { SourceObject } from '../../base/json/source-json.js';
import type { PublicKey } from '../../format/key/public-key.js';
import { stableText } from '../shared/forms/stable.js';
import { findingOf } from '../shared/findings.js';
import type { ActionClaim, HostPlace } from '../shared/host.js';
import { codeOf } from '../shared/names.js';
import { checkBundle } from './bundle.js';
import { type ChainEntry, type ChainFaultKind, checkChainEntry, readChainEntry } from './chain.js';
import { adapterPrincipal, type Desk, hostPrincipal, mark } from './desk.js';
import type { HttpReader } from './http.js';
import type { BundleParts, Part } from './parts.js';
import { isNotBefore } from './scope.js';
import { claimId, type ClasperState, firstText, type Ids, keyOf } from './state.js';
import { contentHash, eventTypeOf, type TelemetryReader } from './telemetry.js';
import type { TraceReader } from './trace.js';

/** The end of a chain that somebody kept elsewhere. */
export interface ChainHead {
  readonly tenant: string | undefined;
  readonly seq: bigint;
  readonly hash: string;
}

interface Entry {
  readonly part: Part;
  readonly entry: ChainEntry;
}

interface Chain {
  readonly order: number;
  readonly group: string;
  readonly tenant: string;
  readonly entries: Entry[];
  readonly bySeq: Map<bigint, Entry>;
  /** What rows of the audit log share with their entries. */
  readonly keys: Set<string>;
}

/** What an entry of a chain, or a row of an audit log without one, says. */
interface Logged extends Pick<ChainEntry, 'tenant' | 'type' | 'data' | 'createdAt'> {
  /** `seq 3`, `row 3` */
  readonly name: string;
}

/** What an entry or a row says, taken. */
interface Taken extends Omit<Ids, 'traceId'>, Pick<Logged, 'name' | 'data'> {
  readonly part: Part;
  readonly base: Pick<ActionClaim, 'at' | 'bytes' | 'occurredAt' | 'principalId'>;
}

const NO_CAPABILITIES: ReadonlySet<string> = new Set();
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
const ANY = 'any';

export class AuditReader {
  readonly #desk: Desk;
  readonly #state: ClasperState;
  readonly #telemetry: TelemetryReader;
  readonly #traces: TraceReader;
  readonly #http: HttpReader;
  /** By group and tenant, in the order of their files. */
  readonly #chains = new Map<string, Chain>();
  /** By tenant and number, the entries of the first two chains that have one: one of them is of another chain than any that is requested. */
  readonly #copies = new Map<string, { readonly chain: Chain; readonly entry: Entry }[]>();
  /** Rows of the audit log that are in a chain, by group. */
  readonly #rows = new Map<string, Part[]>();
  readonly #storedTraces = new Map<string, Part[]>();

  constructor(
    desk: Desk,
    state: ClasperState,
    telemetry: TelemetryReader,
    traces: TraceReader,
    http: HttpReader,
  ) {
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
    const own = { order: this.#chains.size, group, tenant: entry.tenant };
    const chain: Chain = this.#chains.get(key) ?? {
      ...own,
      entries: [],
      bySeq: new Map(),
      keys: new Set<string>(),
    };
    this.#chains.set(key, chain);
    const before = chain.entries.at(-1)?.entry;
    chain.entries.push({ part, entry });
    if (!chain.bySeq.has(entry.seq)) this.#enter(chain, { part, entry });
    chain.keys.add(entryKey(entry));
    for (const kind of checkChainEntry(entry, before)) this.#chainFault(at, kind, entry, before);
    const other = this.#sameIn(chain, entry);
    if (other !== undefined) {
      const isSame = other.entry.hash === entry.hash && other.entry.computed === entry.computed;
      if (!isSame)
        this.#desk.find('CHAIN_FORKED', at, {
          about: `seq ${entry.seq}`,
          expected: other.entry.hash,
          actual: entry.hash.slice(0, 128),
          related: [other.part.at],
        });
      this.#desk.item(part, entry.type, 'repeated', isSame ? 'ALREADY_READ' : 'CHAIN_FORKED');
      return;
    }
    this.#take(part, { ...entry, name: `seq ${entry.seq}` });
  }

  #chainFault(at: HostPlace, kind: ChainFaultKind, entry: ChainEntry, before: ChainEntry | undefined): void {
    const [expected, actual] = {
      start: ['seq 1 after nothing', `seq ${entry.seq}`],
      gap: [`seq ${(before?.seq ?? 0n) + 1n}`, `seq ${entry.seq}`],
      order: [`seq ${(before?.seq ?? 0n) + 1n}`, `seq ${entry.seq}`],
      previous: [before?.hash ?? 'null', entry.previous ?? 'null'],
      hash: [entry.computed, entry.hash],
    }[kind] as [string, string];
    this.#desk.builder.find(
      findingOf('CLA-9', 'invalid', CHAIN_CODES[kind], at, {
        about: `seq ${entry.seq}`,
        expected: expected.slice(0, 128),
        actual: actual.slice(0, 128),
      }),
    );
  }

  #enter(chain: Chain, entry: Entry): void {
    const { tenant, seq } = entry.entry;
    chain.bySeq.set(seq, entry);
    const key = keyOf(tenant, String(seq));
    const copies = [...(this.#copies.get(key) ?? []), { chain, entry }];
    this.#copies.set(key, copies.sort((a, b) => a.chain.order - b.chain.order).slice(0, 2));
  }

  /** The entry of that number of another copy of the chain: of the first that has one. */
  #sameIn(own: Chain, { tenant, seq }: ChainEntry): Entry | undefined {
    return this.#copies.get(keyOf(tenant, String(seq)))?.find(({ chain }) => chain !== own)?.entry;
  }

  /** What an entry says happened, where nothing nearer said it. */
  #take(part: Part, { tenant, type, data, createdAt, name }: Logged): void {
    const time = this.#desk.timeOf(part, type, timeOfText(createdAt), name);
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
    const taken: Taken = { part, tenant, adapterId, executionId, name, data, base };
    if (type === 'policy_decision_pending' && decisionId !== undefined)
      return this.#pending(taken, decisionId);
    if (type === 'policy_decision_resolved' && decisionId !== undefined)
      return this.#resolved(taken, decisionId);
    if (type === 'tool_authorization_granted' && jti !== undefined && tool !== undefined)
      return this.#granted(taken, jti, tool);
    if (type === 'tool_authorization_denied' && tool !== undefined) return this.#denied(taken, tool);
    this.#approvals(part.at, type, tenant, executionId);
    const isKnown =
      (type === 'tool_authorization_requested' &&
        this.#state.toolAnswers.has(keyOf(tenant, executionId, tool ?? ''))) ||
      (type === 'adapter_trace_ingested' && this.#state.traced.has(keyOf(tenant, executionId))) ||
      (textAt(data, 'action') === 'adapter_telemetry_key_set' && this.#knowsKey(tenant, data));
    if (isKnown) {
      this.#desk.item(part, type, 'repeated', 'ALREADY_READ');
      return;
    }
    this.#desk.evidence(part, evidenceType(type), {
      id: claimId('log', tenant, name),
      occurredAt: time,
      principalId: hostPrincipal(tenant),
      facts: {
        entry: name,
        audit_type: type,
        adapter_id: adapterId === '' ? undefined : adapterId,
        execution_id: executionId === '' ? undefined : executionId,
        tool,
        code: textAt(data, 'code'),
        action: textAt(data, 'action'),
      },
    });
  }

  /** What 1.0.0 says in its log of approvals that were not given, and of those that were used again. */
  #approvals(at: HostPlace, type: string, tenant: string, executionId: string): void {
    const execution = this.#state.execution(tenant, executionId);
    if (type === 'approval_auto_allowed_in_core' && !execution.told.has('AUTO_ALLOWED')) {
      execution.told.add('AUTO_ALLOWED');
      this.#desk.find('AUTO_ALLOWED', at, { about: executionId });
    }
    if (type !== 'approval_grant_consumed') return;
    if (execution.told.has(type))
      this.#desk.find('APPROVAL_REUSED', at, { about: executionId, actual: 'used again' });
    execution.told.add(type);
  }

  #knowsKey(tenant: string, data: SourceObject): boolean {
    const ids = [textAt(data, 'adapter_id'), textAt(data, 'version'), textAt(data, 'key_id')].map((id) =>
      firstText(id),
    );
    return this.#desk.placeOf(claimId('key', tenant, ...ids, '')) !== undefined;
  }

  /** What was reported, as the chain keeps it. */
  #ingested(part: Part, type: string, data: SourceObject, ids: Ids, time: string, itemType: string): void {
    const key = keyOf(ids.tenant, ids.executionId, eventTypeOf(type, data));
    const before = this.#state.ingested.get(key);
    const hash = contentHash(type, data);
    if (before?.contentHash === undefined) {
      this.#state.ingested.set(key, { payloadHash: hash, contentHash: hash, from: 'chain', at: part.at });
      this.#telemetry.record({ part, type, payload: data, ids, issuedAt: time, digests: [], itemType });
      return;
    }
    if (before.contentHash !== hash) {
      const isChain = before.from === 'chain';
      this.#desk.find(isChain ? 'IDEMPOTENCY_CONFLICT' : 'CHAIN_CONTENT_DIFFERS', part.at, {
        about: ids.executionId,
        expected: 'the content that was reported before',
        related: [before.at],
      });
    }
    const isSame = before.contentHash === hash;
    this.#desk.item(part, itemType, 'repeated', isSame ? 'ALREADY_READ' : 'CONTENT_DIFFERS');
  }

  #granted({ part, tenant, executionId, data, base }: Taken, jti: string, tool: string): void {
    const type = 'tool_authorization_granted';
    const { principalId, occurredAt } = base;
    const id = claimId('tool-token', tenant, jti);
    const allowed = { decision: 'allow', decisionCode: 'ALLOWED' } as const;
    const isNew = this.#desk.claim({ kind: 'action', ...base, id, tool, ...allowed });
    if (isNew) {
      this.#state.toolTokens.set(keyOf(tenant, jti), {
        ...{ claim: id, principalId, tenant, executionId, tool },
        expiresAt: timeOfText(textAt(data, 'expires_at')),
        ...{ scopeHash: undefined, scopeDigest: undefined, issuedAt: occurredAt, intentDigest: undefined },
      });
      const seen = { at: part.at, callIds: [jti], tool, decision: 'allow', meters: [], occurredAt } as const;
      this.#desk.builder.observe(seen);
    }
    this.#desk.mapped(part, type, isNew);
  }

  #pending({ part, tenant, executionId, adapterId, data, base }: Taken, id: string): void {
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
      this.#state.execution(tenant, executionId).decide({
        ...{ kind: 'pending', claim, scope: undefined, principalId: base.principalId, adapterId },
        ...{ intentDigest: undefined, asked: NO_CAPABILITIES, decisionId: id, at: part.at },
      });
    }
    this.#desk.mapped(part, 'policy_decision_pending', isNew);
  }

  #resolved({ part, tenant, data, base }: Taken, id: string): void {
    const decision = this.#state.decisions.get(id);
    const action = firstText(textAt(data, 'action'));
    const isApproved = action.startsWith('approve');
    const type = 'policy_decision_resolved';
    if (decision?.action !== undefined) {
      if (decision.action.startsWith('approve') !== isApproved)
        this.#desk.find('DECISION_CONTRADICTS', part.at, {
          about: id,
          expected: decision.action.slice(0, 64),
          actual: action.slice(0, 64),
        });
      this.#desk.item(part, type, 'repeated', 'DECISION_KNOWN');
      return;
    }
    const role = textAt(data, 'role');
    if (decision === undefined) {
      this.#desk.find('DECISION_UNKNOWN', part.at, { about: id });
    } else {
      decision.action = action;
      this.#http.approval(part.at, decision, role, base.occurredAt);
      const execution = this.#state.execution(tenant, decision.executionId);
      const principalId = adapterPrincipal(tenant, decision.adapterId);
      const claim = claimId('decision', id, 'resolved');
      // An approval lifts what was pending; what it grants a chain does not say, so nothing can be checked against it.
      execution.decide({
        ...{ kind: isApproved ? 'allow' : 'deny', claim: isApproved ? undefined : claim, scope: undefined },
        ...{ principalId, adapterId: decision.adapterId, intentDigest: undefined },
        ...{ asked: NO_CAPABILITIES, decisionId: id, at: part.at },
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

  #denied({ part, tenant, executionId, name, data, base }: Taken, tool: string): void {
    const key = keyOf(tenant, executionId, tool);
    const known = this.#state.refused.get(key);
    if (known !== undefined && known.inChain < known.count) {
      known.inChain++;
      this.#desk.item(part, 'tool_authorization_denied', 'repeated', 'ALREADY_READ');
      return;
    }
    const id = claimId('tool-denied', tenant, executionId, tool, name);
    const policyId = textAt(data, 'policy_id');
    this.#desk.claim({
      ...{ kind: 'action', ...base, id, tool, decision: 'deny' },
      decisionCode:
        codeOf(firstText(textAt(data, 'decision'), 'DENY')) === 'DENY'
          ? 'POLICY_DENIED'
          : 'APPROVAL_REQUIRED',
      ...(policyId === undefined || policyId === '' ? {} : { policyId: policyId.slice(0, 256) }),
    });
    this.#state.refused.set(key, { claim: id, principalId: base.principalId, inChain: 1, count: 1 });
    this.#state.toolAnswers.set(key, 'deny');
    const { occurredAt } = base;
    this.#desk.builder.observe({
      at: part.at,
      callIds: [id],
      tool,
      decision: 'deny',
      meters: [],
      occurredAt,
    });
    this.#desk.item(part, 'tool_authorization_denied', 'mapped');
  }

  /** A row of the audit log: what it says is in the chain. */
  row(part: Part): void {
    const { at, value, group } = part;
    if (!(value instanceof SourceObject) || textAt(value, 'eventType') === undefined) {
      this.#malformed(part, 'audit_row', 'a row of an audit log');
      return;
    }
    addTo(this.#rows, group, part);
    const type = firstText(textAt(value, 'eventType'));
    const tenant = firstText(textAt(value, 'tenantId'));
    const chain = this.#chains.get(keyOf(group, tenant));
    if (chain?.keys.has(rowKey(value)) === true) {
      this.#desk.item(part, type, 'repeated', 'IN_CHAIN');
      return;
    }
    const data = objectAt(value, 'eventData') ?? new SourceObject(new Map());
    if (chain === undefined) {
      // A host without a chain has nothing else that says what was reported to it.
      const name = `row ${firstText(numberAt(value, 'id'), mark(part.bytes))}`;
      this.#take(part, { tenant, type, data, createdAt: firstText(textAt(value, 'createdAt')), name });
      return;
    }
    this.#desk.find('AUDIT_NOT_IN_CHAIN', at, { about: type.slice(0, 128) });
    const time = this.#desk.timeOf(part, type, timeOfText(textAt(value, 'createdAt')));
    if (time === undefined) return;
    this.#desk.evidence(part, 'audit_row', {
      id: claimId('row', tenant, mark(part.bytes)),
      occurredAt: time,
      principalId: hostPrincipal(tenant),
      facts: {
        audit_type: type,
        execution_id: textAt(data, 'execution_id'),
        trace_id: textAt(value, 'traceId'),
      },
    });
  }

  trace(part: Part): void {
    const { value, group } = part;
    if (!(value instanceof SourceObject) || textAt(value, 'id') === undefined) {
      this.#malformed(part, 'trace', 'a trace');
      return;
    }
    addTo(this.#storedTraces, group, part);
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
      for (const found of checkBundle(files, pinned)) this.#desk.builder.find(found);
    for (const chain of this.#chains.values()) this.#anchor(chain, head);
    this.#lengths();
    const byGroup = new Map<string, Chain[]>();
    for (const chain of this.#chains.values()) addTo(byGroup, chain.group, chain);
    for (const bundle of bundles) this.#logged(bundle, byGroup.get(bundle.group) ?? []);
  }

  /** A cut end shows only against a head that is known from elsewhere. */
  #anchor({ tenant, entries, bySeq }: Chain, head: ChainHead | undefined): void {
    const last = entries.at(-1)!;
    const { at } = last.part;
    const about = `seq ${last.entry.seq}`;
    if (head === undefined || (head.tenant !== undefined && head.tenant !== tenant)) {
      this.#desk.find('HEAD_NOT_ANCHORED', at, { about });
      return;
    }
    const there = bySeq.get(head.seq);
    if (there === undefined) {
      const details = { about, expected: `seq ${head.seq}`, actual: `ends with ${last.entry.seq}` };
      this.#desk.find('CHAIN_TRUNCATED', at, details);
    } else if (there.entry.hash !== head.hash) {
      this.#desk.find('CHAIN_FORKED', there.part.at, {
        about: `seq ${head.seq}`,
        expected: head.hash.slice(0, 128),
        actual: there.entry.hash.slice(0, 128),
      });
    }
  }

  /** Copies of one chain: the shorter one is older, or was cut. */
  #lengths(): void {
    const longest = new Map<string, Entry>();
    for (const { tenant, entries } of this.#chains.values()) {
      const last = entries.at(-1)!;
      const before = longest.get(tenant);
      if (before === undefined || before.entry.seq < last.entry.seq) longest.set(tenant, last);
    }
    for (const { tenant, group, entries } of this.#chains.values()) {
      const last = entries.at(-1)!;
      const known = longest.get(tenant)!;
      if (known.entry.seq === last.entry.seq) continue;
      // What the longer one has from before this one was made is missing from it.
      const made = this.#generated.get(group);
      const createdAt = timeOfText(known.entry.createdAt);
      const isCut = made !== undefined && createdAt !== undefined && !isNotBefore(createdAt, made);
      this.#desk.find(isCut ? 'CHAIN_TRUNCATED' : 'CHAIN_SHORTER', last.part.at, {
        about: `seq ${last.entry.seq}`,
        expected: `seq ${known.entry.seq}`,
        actual: `ends with ${last.entry.seq}`,
        related: [known.part.at],
      });
    }
  }

  /** What else in a bundle says what its chain must hold, and the other way round. */
  #logged({ group, files }: BundleParts, chains: readonly Chain[]): void {
    const traces = this.#storedTraces.get(group) ?? [];
    this.#tracesMissing(group, traces);
    // A bundle may hold as many chains as entries: what all of them are checked against is made once.
    const rows = new Set((this.#rows.get(group) ?? []).map(({ value }) => rowKey(value as SourceObject)));
    const byTenant = new Map<string | undefined, Part[]>();
    for (const trace of traces) {
      const tenant = textAt(trace.value, 'tenantId');
      addTo(byTenant, tenant, trace);
    }
    for (const chain of chains) {
      if (!this.#scoped.has(group)) this.#rowsMissing(chain, rows);
      this.#tracesIn(chain, byTenant.get(chain.tenant) ?? []);
      this.#stated(chain, files);
    }
    const empty = files.get('audit_chain.jsonl');
    if (chains.length > 0 || empty === undefined || traces.length === 0) return;
    const details = { expected: 'entries for the traces', actual: 'none' };
    this.#desk.find('CHAIN_EMPTY', { file: empty.name }, details);
  }

  /** Entries without a row. A bundle of one trace, workspace or time holds fewer rows than the chain has entries. */
  #rowsMissing({ entries }: Chain, rows: ReadonlySet<string>): void {
    const missing = entries.filter(({ entry }) => !rows.has(entryKey(entry)));
    if (missing.length === 0) return;
    this.#desk.find('AUDIT_ROW_MISSING', missing[0]!.part.at, {
      about: `seq ${missing[0]!.entry.seq}`,
      expected: `a row of the audit log for each of ${entries.length} entries`,
      actual: `none for ${missing.length}`,
      related: missing.slice(1, MAX_RELATED + 1).map(({ part }) => part.at),
    });
  }

  #tracesMissing(group: string, traces: readonly Part[]): void {
    if (this.#scoped.has(group)) return;
    const ids = new Set(traces.map(({ value }) => textAt(value, 'id')));
    for (const { at, value } of this.#rows.get(group) ?? []) {
      const id = textAt(value, 'traceId');
      if (textAt(value, 'eventType') !== 'adapter_trace_ingested' || id === undefined || ids.has(id))
        continue;
      ids.add(id);
      this.#desk.find('TRACE_MISSING', at, { about: id.slice(0, 128) });
    }
  }

  readonly #scoped = new Set<string>();

  /** What a bundle says that it is of. */
  noteScope({ value, group }: Part): void {
    const scope = objectAt(value, 'scope');
    const narrow = ['workspaceId', 'traceId', 'startDate', 'endDate'];
    if (narrow.some((name) => textAt(scope, name) !== undefined)) this.#scoped.add(group);
  }

  /** Each trace of the chain's tenant was ingested, and the entry that says so was made after it was checked. */
  #tracesIn({ tenant, entries }: Chain, traces: readonly Part[]): void {
    // Of each execution, and of all, the last entry: one that is late enough is all that it takes.
    const last = new Map<string, string>();
    for (const { entry } of entries) {
      if (entry.type !== 'adapter_trace_ingested') continue;
      const execution = firstText(textAt(entry.data, 'execution_id'));
      for (const of of [ANY, `=${execution}`])
        if (entry.createdAt > (last.get(of) ?? '')) last.set(of, entry.createdAt);
    }
    for (const trace of traces) {
      const checked = firstText(textAt(trace.value, 'integrity_checked_at'));
      if (checked === '') continue;
      const id = firstText(textAt(trace.value, 'id'));
      const execution = this.#state.executionOfTrace.get(keyOf(tenant, id));
      if ((last.get(execution === undefined ? ANY : `=${execution}`) ?? '') >= checked) continue;
      this.#desk.find('TRACE_NOT_IN_CHAIN', trace.at, {
        about: id,
        expected: `an entry from ${checked.slice(0, 64)} on that it was ingested`,
        actual: `the chain ends with seq ${entries.at(-1)!.entry.seq}`,
      });
    }
  }

  #stated({ entries }: Chain, files: BundleParts['files']): void {
    const file = files.get('integrity.json')?.name ?? '';
    const stated = this.#chainStatements.get(file);
    const isRight = entries.every(
      ({ entry }, i) => checkChainEntry(entry, entries[i - 1]?.entry).length === 0,
    );
    if (stated === undefined || stated === isRight) return;
    this.#desk.find(
      'CHAIN_STATUS_WRONG',
      { file },
      { expected: `audit_chain_verification.ok ${String(isRight)}`, actual: String(stated) },
    );
  }

  readonly #generated = new Map<string, string>();
  readonly #chainStatements = new Map<string, boolean>();

  noteIntegrity({ at, value, group }: Part): void {
    const made = timeOfText(textAt(value, 'generated_at'));
    if (made !== undefined) this.#generated.set(group, made);
    const ok = valueAt(value, 'audit_chain_verification', 'ok');
    if (typeof ok === 'boolean') this.#chainStatements.set(at.file, ok);
  }

  #malformed(part: Part, type: string, expected: string): void {
    this.#desk.find('MEMBER_MISSING', part.at, { expected, actual: 'something else' });
    this.#desk.builder.drop(part.at, type, 'MEMBER_MISSING');
  }
}

/** What a row and its entry share. */
function rowKey(row: SourceObject): string {
  const data = valueAt(row, 'eventData') ?? null;
  return keyOf(
    ...['tenantId', 'eventType', 'createdAt'].map((name) => firstText(textAt(row, name))),
    stableText(data),
  );
}

function entryKey({ tenant, type, createdAt, data }: ChainEntry): string {
  return keyOf(tenant, type, createdAt, stableText(data));
}

/** A type of event as the end of the type of an extension event. */
function evidenceType(type: string): string {
  return type.replace(/[^A-Za-z0-9_.-]+/g, '_').slice(0, 64) || 'audit';
}
