/** Recordings of the adapter API: one request with its answer on each line. */

import { defined } from '../../base/defined.js';
import { withoutTrailing } from '../../base/bytes/trim.js';
import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { Check } from '../../format/schema/generated/types.js';
import { STABLE_FORM, stableHash } from '../shared/forms/stable.js';
import { findingOf } from '../shared/findings.js';
import type { ForeignDigest, GrantClaim, HostPlace } from '../shared/host.js';
import { codeOf, wellFormed } from '../shared/names.js';
import { jcsDigest, listAt, numberAt, objectAt, textAt, timeOfText, valueAt } from '../shared/values.js';
import { adapterPrincipal, type Desk, type Facts, hostPrincipal, mark } from './desk.js';
import { readTelemetryKey } from './keys.js';
import type { Part } from './parts.js';
import { firstBeyond, isNotBefore, readScope, type Scope, textsAt, toolMapOf, widening } from './scope.js';
import {
  claimId,
  type ClasperState,
  type Decided,
  type Decision,
  firstText,
  keyOf,
  type ToolToken,
} from './state.js';
import type { TelemetryReader } from './telemetry.js';
import { readToken, type TokenClaims, tokenHash, tokenMark } from './tokens.js';
import { scopeDigest } from './trace.js';

interface Call {
  readonly part: Part;
  readonly at: HostPlace;
  readonly method: string;
  /** Without host and query. */
  readonly path: string;
  readonly request: SourceValue | undefined;
  readonly response: SourceValue | undefined;
  /** The text of the number. */
  readonly status: string;
  readonly isOk: boolean;
  readonly token: TokenClaims | undefined;
  header(name: string): string | undefined;
}

interface Answer {
  readonly call: Call;
  readonly tenant: string;
  readonly executionId: string;
  readonly claim: Omit<GrantClaim, 'decision' | 'decisionCode'>;
  readonly decided: Decided;
}

type Handler = (call: Call, match: RegExpExecArray) => void;

/** Roles, from the one that may least. */
const ROLES = ['viewer', 'operator', 'release_manager', 'admin'];

/** The path of a recorded request. */
export function pathOf(value: SourceValue): string {
  const path = firstText(textAt(value, 'path'));
  return withoutTrailing(path.replace(/^https?:\/\/[^/]*/, '').replace(/[?#].*$/s, ''), '/');
}

export class HttpReader {
  readonly #desk: Desk;
  readonly #state: ClasperState;
  readonly #telemetry: TelemetryReader;
  readonly #routes: readonly (readonly [string, RegExp, Handler])[];

  constructor(desk: Desk, state: ClasperState, telemetry: TelemetryReader) {
    this.#desk = desk;
    this.#state = state;
    this.#telemetry = telemetry;
    this.#routes = [
      ['POST', /^\/adapters\/register$/, (call) => this.#register(call)],
      ['POST', /^\/ops\/api\/adapters\/telemetry-key(?:\/[\w-]+)?$/, (call) => this.#telemetryKey(call)],
      ['POST', /^\/ops\/api\/policies(?:\/.*)?$/, (call) => this.#policy(call)],
      ['POST', /^\/api\/execution\/request$/, (call) => this.#request(call)],
      ['GET', /^\/(?:ops\/)?api\/decisions\/([^/]+)$/, (call, match) => this.#poll(call, idIn(match))],
      [
        'POST',
        /^\/(?:ops\/)?api\/decisions\/([^/]+)\/resolve$/,
        (call, match) => this.#resolve(call, idIn(match)),
      ],
      [
        'POST',
        /^\/(?:ops\/)?api\/decisions\/([^/]+)\/consume$/,
        (call, match) => this.#consume(call, idIn(match)),
      ],
      ['POST', /^\/api\/governance\/tool\/authorize$/, (call) => this.#tool(call)],
      [
        'POST',
        /^\/api\/ingest\/(trace|audit|cost|metrics|violations)$/,
        (call, match) => this.#ingest(call, match[1]!),
      ],
      ['GET', /^\/ops\/api\/audit-chain\/export$/, (call) => this.#kept(call, 'audit_chain_export')],
      ['POST', /^\/ops\/api\/exports$/, (call) => this.#kept(call, 'bundle_exported')],
      ['GET', /^\/ops\/api\/traces(?:\/.*)?$/, (call) => this.#kept(call, 'traces_listed')],
    ];
  }

  read(part: Part): void {
    const { value } = part;
    const status = firstText(numberAt(value, 'status'), textAt(value, 'status'));
    const headers = objectAt(value, 'headers');
    const header = (name: string): string | undefined => {
      const key = headers?.keys().find((each) => each.toLowerCase() === name);
      return key === undefined ? undefined : textAt(headers, key);
    };
    const call: Call = {
      part,
      at: part.at,
      method: firstText(textAt(value, 'method')).toUpperCase(),
      path: pathOf(value),
      request: valueAt(value, 'request'),
      response: valueAt(value, 'response'),
      status,
      isOk: /^2\d\d$/.test(status),
      token: readToken(header('x-adapter-token')),
      header,
    };
    // A recorder may write when; the host's own answers mostly do not.
    for (const name of ['recorded_at', 'timestamp', 'time'])
      this.#desk.note(part.at, timeOfText(textAt(value, name)));
    for (const [method, path, handle] of this.#routes) {
      const match = method === call.method ? path.exec(call.path) : null;
      if (match === null) continue;
      handle(call, match);
      return;
    }
    this.#kept(call, 'http_call');
  }

  /** Kept as evidence, with what was answered and nothing of its content. */
  #kept(call: Call, type: string, stated?: string, facts: Facts = {}): void {
    const { part, method, path, status, response } = call;
    const tenant = this.#tenantOf(call);
    const time = this.#desk.timeOf(part, type, stated);
    if (time === undefined) return;
    this.#desk.evidence(part, type, {
      id: claimId('http', type, mark(part.bytes)),
      occurredAt: time,
      principalId: hostPrincipal(tenant),
      facts: { method, path, status, reason: call.isOk ? undefined : textAt(response, 'error'), ...facts },
    });
  }

  #tenantOf({ token, request, response }: Call): string {
    return firstText(
      textAt(token?.claims, 'tenant_id'),
      textAt(response, 'tenant_id'),
      textAt(response, 'adapter', 'tenant_id'),
      textAt(response, 'policy', 'tenant_id'),
      textAt(response, 'decision', 'tenant_id'),
      textAt(request, 'tenant_id'),
    );
  }

  #register(call: Call): void {
    const { response, request, token } = call;
    this.#state.capabilities.note(textsAt(token?.claims, 'allowed_capabilities'));
    if (!call.isOk) return this.#kept(call, 'registration_refused');
    const adapter = response instanceof SourceObject ? response : undefined;
    this.#adapter(adapter, this.#tenantOf(call));
    const capabilities = textsAt(response, 'capabilities');
    this.#state.capabilities.note([...capabilities, ...textsAt(request, 'capabilities')]);
    this.#state.capabilities.noteTools(toolMapOf(response) ?? toolMapOf(request));
    this.#kept(call, 'adapter_registered', timeOfText(textAt(response, 'updated_at')), {
      adapter_id: textAt(response, 'adapter_id'),
      adapter_version: textAt(response, 'version'),
      risk_class: textAt(response, 'risk_class'),
      capabilities,
    });
  }

  #telemetryKey(call: Call): void {
    if (!call.isOk) return this.#kept(call, 'telemetry_key_refused');
    const { part, response } = call;
    const adapter = objectAt(response, 'adapter');
    const tenant = this.#tenantOf(call);
    this.#adapter(adapter, tenant);
    const time = this.#desk.timeOf(part, 'telemetry_key_set', timeOfText(textAt(adapter, 'updated_at')));
    if (time === undefined) return;
    const [adapterId, version] = [textAt(adapter, 'adapter_id'), textAt(adapter, 'version')];
    const keyId = textAt(adapter, 'telemetry_key_id');
    const revoked = textAt(adapter, 'telemetry_key_revoked_at');
    const key = adapter === undefined ? undefined : readTelemetryKey(adapter);
    this.#desk.evidence(part, 'telemetry_key_set', {
      id: claimId('key', tenant, ...[adapterId, version, keyId, revoked].map((text) => firstText(text))),
      occurredAt: time,
      principalId: hostPrincipal(tenant),
      facts: {
        adapter_id: adapterId,
        adapter_version: version,
        key_id: keyId,
        key_alg: key?.alg,
        keyid: key?.publicKey?.keyid,
        revoked_at: revoked,
      },
    });
  }

  #adapter(adapter: SourceObject | undefined, tenant: string): void {
    const key = adapter === undefined ? undefined : readTelemetryKey(adapter);
    if (key !== undefined) this.#state.addKey(tenant, key);
  }

  #policy(call: Call): void {
    if (!call.isOk) return this.#kept(call, 'policy_refused');
    const policy = objectAt(call.response, 'policy');
    this.#kept(call, 'policy_set', timeOfText(textAt(policy, 'updated_at')), {
      policy_id: textAt(policy, 'policy_id') ?? textAt(call.request, 'policy_id'),
      effect: textAt(policy, 'effect', 'decision'),
      policy_hash: policy === undefined ? undefined : stableHash(policy),
    });
  }

  #request(call: Call): void {
    const { part, at, request, response, status, token } = call;
    const body = request instanceof SourceObject ? request : undefined;
    this.#state.capabilities.note([
      ...textsAt(token?.claims, 'allowed_capabilities'),
      ...textsAt(body, 'requested_capabilities'),
    ]);
    if (!call.isOk && status !== '403') return this.#kept(call, 'request_refused');
    const executionId = firstText(textAt(response, 'execution_id'), textAt(body, 'execution_id'));
    const tenant = firstText(textAt(token?.claims, 'tenant_id'), textAt(body, 'tenant_id'));
    const adapterId = firstText(textAt(token?.claims, 'adapter_id'), textAt(body, 'adapter_id'));
    const time = this.#desk.timeOf(part, 'execution_request', undefined, executionId);
    if (time === undefined) return;
    const kind = status === '403' ? 'deny' : this.#kindOf(call, executionId);
    const decisionId = kind === 'pending' ? textAt(response, 'decision_id') : undefined;
    const tool = textAt(body, 'tool');
    const scopeObject = objectAt(response, 'granted_scope');
    const scope = scopeObject && readScope(scopeObject, tool === undefined ? [] : [tool]);
    if (scopeObject !== undefined) this.#timeIn(at, scopeObject, executionId);
    const principalId = adapterPrincipal(tenant, adapterId);
    const intentDigest = jcsDigest(valueAt(body, 'intent'));
    const asked = new Set(textsAt(body, 'requested_capabilities'));
    // What waits has an id that bundles know too; any other answer is one of perhaps many for the execution.
    const id =
      decisionId === undefined
        ? claimId('request', tenant, executionId, mark(part.bytes))
        : claimId('decision', decisionId, kind);
    const answer: Answer = {
      ...{ call, tenant, executionId },
      claim: {
        ...{ kind: 'grant', id, at, bytes: part.bytes, occurredAt: time, principalId, intentDigest },
        ...this.#policyOf(response),
      },
      decided: { kind, claim: id, scope, principalId, adapterId, intentDigest, asked, decisionId, at },
    };
    if (kind === 'allow') return this.#allowed(answer);
    const isNew = this.#desk.claim({ ...answer.claim, decision: 'deny', ...refusalIn(call, kind) });
    if (decisionId !== undefined && !this.#state.decisions.has(decisionId))
      this.#state.decisions.set(decisionId, {
        ...{ id: decisionId, tenant, executionId, adapterId, scope, intentDigest, tokens: new Set() },
        workspace: textAt(body, 'workspace_id'),
        requiredRole: textAt(response, 'required_role'),
        expiresAt: timeOfText(textAt(response, 'expires_at')),
      });
    if (isNew) this.#state.execution(tenant, executionId).decide(answer.decided);
    this.#desk.mapped(part, 'execution_request', isNew);
  }

  #allowed({ call, tenant, executionId, claim, decided }: Answer): void {
    const { part, at, response } = call;
    const { scope, asked } = decided;
    const execution = this.#state.execution(tenant, executionId);
    const isSimulated =
      valueAt(response, 'auto_allowed_in_core') === true || textAt(response, 'approval_source') !== undefined;
    const bounds = scope && this.#state.capabilities.boundsOf(scope);
    let isNew = true;
    if (bounds === undefined) {
      const expected = 'an allow with max_steps or max_cost';
      this.#desk.find('SCOPE_NOT_STATED', at, { about: executionId, expected, actual: 'neither' });
    } else {
      const code = isSimulated ? 'AUTO_ALLOWED_IN_CORE' : 'ALLOWED';
      const checks: Check[] = isSimulated ? [{ check: 'approval', result: 'fail', code }] : [];
      isNew = this.#desk.claim({ ...claim, decision: 'allow', decisionCode: code, checks, bounds });
    }
    if (isSimulated) this.#desk.find('AUTO_ALLOWED', at, { about: executionId });
    if (isNew) {
      this.#escalation(at, executionId, execution.first, scope, asked);
      this.#reuse(call, tenant, executionId);
      execution.decide(bounds === undefined ? { ...decided, claim: undefined } : decided);
    }
    if (bounds !== undefined) return this.#desk.mapped(part, 'execution_request', isNew);
    const { id, occurredAt, principalId } = claim;
    const facts = { execution_id: executionId, decision: 'allow' };
    this.#desk.evidence(part, 'execution_request', { id, occurredAt, principalId, facts });
  }

  #kindOf({ at, response }: Call, about: string): Decided['kind'] {
    const allowed = valueAt(response, 'allowed') === true;
    const word = textAt(response, 'decision');
    const waits = word === 'pending' || word === 'require_approval';
    if ((word === 'allow') !== allowed && word !== undefined && !(allowed && waits)) {
      this.#desk.find('DECISION_CONTRADICTS', at, {
        about,
        expected: 'one decision',
        actual: `decision ${word.slice(0, 64)}, allowed ${String(allowed)}`,
        rule: 'CLA-3',
      });
      return 'deny';
    }
    if (allowed) return 'allow';
    return waits || (word === undefined && valueAt(response, 'requires_approval') === true)
      ? 'pending'
      : 'deny';
  }

  /** An end that cannot be read bounds nothing. */
  #timeIn(at: HostPlace, scope: SourceObject, about: string): void {
    const text = textAt(scope, 'expires_at');
    if (text === undefined || timeOfText(text) !== undefined) return;
    this.#desk.find('TIME_INVALID', at, { about, actual: text.slice(0, 64) });
  }

  /** CLA-11. */
  #escalation(
    at: HostPlace,
    about: string,
    first: Decided | undefined,
    scope: Scope | undefined,
    asked: ReadonlySet<string>,
  ): void {
    if (first === undefined) return;
    const granted =
      first.scope === undefined || scope === undefined ? undefined : widening(first.scope, scope);
    const further = firstBeyond(asked, first.asked);
    const more =
      granted ?? (first.asked.size === 0 || further === undefined ? undefined : `capability ${further}`);
    if (more === undefined) return;
    this.#desk.find('SCOPE_ESCALATED', at, {
      about,
      expected: 'no more than was asked for before',
      actual: more.slice(0, 128),
      related: [first.at],
    });
  }

  /** CLA-5 of a host that has no tokens: an approval is answered with `allow` as often as it is asked. */
  #reuse({ at }: Call, tenant: string, executionId: string): void {
    const execution = this.#state.execution(tenant, executionId);
    const { approved } = execution;
    if (approved === undefined) return;
    execution.approvalsUsed++;
    if (execution.approvalsUsed < 2) return;
    this.#desk.find('APPROVAL_REUSED', at, {
      about: executionId,
      actual: `used ${execution.approvalsUsed} times`,
      related: [approved.at],
    });
  }

  #policyOf(
    response: SourceValue | undefined,
  ): Pick<GrantClaim, 'policyId' | 'policyDigest' | 'foreignDigests'> {
    const matched = listAt(response, 'matched_policies');
    const [first] = textsAt(response, 'matched_policies');
    const digest = jcsDigest(valueAt(response, 'decision_trace'));
    const bundle = textAt(response, 'policy_bundle_hash');
    const id = first ?? (matched === undefined ? undefined : 'clasper:no-match');
    const unchecked = { of: 'policy_bundle', form: 'not-verifiable', check: 'not_computed' } as const;
    const foreignDigests =
      bundle === undefined ? undefined : [{ ...unchecked, stated: bundle.slice(0, 256) }];
    return { ...policyIdOf(id), ...defined({ policyDigest: digest, foreignDigests }) };
  }

  #poll(call: Call, id: string): void {
    const { part, at, response } = call;
    if (!call.isOk || !(response instanceof SourceObject)) return this.#kept(call, 'decision_poll_refused');
    this.#noteToken(at, id, textAt(response, 'decision_token'));
    const status = textAt(response, 'status');
    const known = this.#state.decisions.get(id);
    if (known !== undefined && textAt(response, 'decision_token_used_at') !== undefined)
      known.consumedAt ??= at;
    if (status === 'approved' || status === 'denied')
      return this.#settled(call, id, response, 'decision_poll');
    if (known?.action !== undefined && status === 'pending')
      this.#contradicts(at, id, 'pending', known.action);
    if (known !== undefined) this.#desk.item(part, 'decision_poll', 'repeated', 'DECISION_KNOWN');
    else this.#kept(call, 'decision_poll', undefined, { decision_id: id, decision_status: status });
  }

  #resolve(call: Call, id: string): void {
    const decision = objectAt(call.response, 'decision');
    if (!call.isOk) return this.#kept(call, 'resolution_refused', undefined, { decision_id: id });
    if (decision === undefined) return this.#kept(call, 'decision_resolved', undefined, { decision_id: id });
    this.#settled(call, id, decision, 'decision_resolved');
    const token = firstText(textAt(decision, 'decision_token'), textAt(call.response, 'decision_token'));
    this.#noteToken(call.at, id, token === '' ? undefined : token);
  }

  /** A decision that somebody made, as its record says it: once recorded, then repeated. */
  #settled(call: Call, id: string, record: SourceObject, type: string): void {
    const { part, at } = call;
    const resolution = objectAt(record, 'resolution');
    const status = textAt(record, 'status');
    const action = textAt(resolution, 'action') ?? (status === 'approved' ? 'approve' : 'deny');
    const known = this.#state.decisions.get(id);
    if (known?.action !== undefined) {
      if (isApproval(known.action) !== isApproval(action)) this.#contradicts(at, id, action, known.action);
      this.#desk.item(part, type, 'repeated', 'DECISION_KNOWN');
      return;
    }
    const asking = objectAt(record, 'request_snapshot', 'request');
    const tenant = firstText(textAt(record, 'tenant_id'), known?.tenant, this.#tenantOf(call));
    const adapterId = firstText(
      textAt(record, 'adapter_id'),
      known?.adapterId,
      textAt(call.token?.claims, 'adapter_id'),
    );
    const executionId = firstText(textAt(record, 'execution_id'), known?.executionId);
    const time = this.#desk.timeOf(part, type, timeOfText(textAt(resolution, 'resolved_at')), id);
    if (time === undefined) return;
    const intentDigest = known?.intentDigest ?? jcsDigest(valueAt(asking, 'intent'));
    const scopeObject = objectAt(record, 'granted_scope');
    const tool = textAt(asking, 'tool');
    const scope =
      scopeObject === undefined
        ? known?.scope
        : readScope(scopeObject, known?.scope?.tools ?? (tool === undefined ? [] : [tool]));
    const decision: Decision = known ?? {
      id,
      tenant,
      workspace: textAt(record, 'workspace_id'),
      executionId,
      adapterId,
      requiredRole: textAt(record, 'required_role'),
      expiresAt: timeOfText(textAt(record, 'expires_at')),
      scope,
      intentDigest,
      tokens: new Set(),
    };
    this.#state.decisions.set(id, decision);
    decision.action = action;
    const role = textAt(resolution, 'role');
    const check = this.approval(at, decision, role, time);
    const isAllowed = isApproval(action) && status !== 'denied';
    const bounds = scope === undefined ? undefined : this.#state.capabilities.boundsOf(scope);
    const principalId = adapterPrincipal(tenant, adapterId);
    const claim = claimId('decision', id, 'resolved');
    const own = { kind: 'grant', id: claim, at, bytes: part.bytes, occurredAt: time } as const;
    const base = { ...own, principalId, intentDigest };
    const snapshot = objectAt(record, 'request_snapshot', 'decision');
    const policy = snapshot === undefined ? {} : this.#policyOf(snapshot);
    const execution = this.#state.execution(tenant, executionId);
    const asked = decision.scope?.capabilities ?? new Set(textsAt(asking, 'requested_capabilities'));
    if (isAllowed && known?.scope !== undefined && scope !== undefined) {
      const more = widening(known.scope, scope);
      if (more !== undefined) {
        const details = { about: id, expected: 'no more than was asked for', actual: more.slice(0, 128) };
        this.#desk.find('SCOPE_ESCALATED', at, details);
      }
    }
    const isUnbounded = isAllowed && bounds === undefined;
    if (isUnbounded)
      this.#desk.find('SCOPE_NOT_STATED', at, { about: id, expected: 'the scope that was granted' });
    else if (isAllowed) {
      const decisionCode = action === 'approve_with_override' ? 'APPROVED_WITH_OVERRIDE' : 'APPROVED';
      this.#desk.claim({ ...base, ...policy, decision: 'allow', decisionCode, checks: [check], bounds });
    } else this.#desk.claim({ ...base, ...policy, decision: 'deny', decisionCode: 'APPROVAL_DENIED' });
    execution.decide({
      kind: isAllowed ? 'allow' : 'deny',
      claim: isUnbounded ? undefined : claim,
      ...{ scope, principalId, adapterId, intentDigest, asked, decisionId: id, at },
    });
    if (isUnbounded) this.#desk.item(part, type, 'dropped', 'SCOPE_NOT_STATED');
    else this.#desk.item(part, type, 'mapped');
  }

  /** CLA-12: the check that an approval's event carries. */
  approval(
    at: HostPlace,
    { id, requiredRole, expiresAt }: Decision,
    role: string | undefined,
    time: string,
  ): Check {
    const details = { about: id, expected: requiredRole, actual: role ?? 'none' };
    if (isNotBefore(time, expiresAt)) {
      const expected = `before ${expiresAt ?? ''}`;
      this.#desk.find('RESOLVED_AFTER_EXPIRY', at, { about: id, expected, actual: time });
    }
    const code = role === undefined || role === '' ? 'ROLE_NOT_STATED' : codeOf(role);
    if (requiredRole === undefined) return { check: 'approval', result: 'pass', code };
    if (role === undefined) {
      this.#desk.find('APPROVER_ROLE_NOT_STATED', at, details);
      return { check: 'approval', result: 'pass', code };
    }
    const isEnough =
      role === requiredRole ||
      (ROLES.includes(requiredRole) && ROLES.indexOf(role) >= ROLES.indexOf(requiredRole));
    if (!isEnough) this.#desk.find('APPROVER_ROLE', at, details);
    return { check: 'approval', result: isEnough ? 'pass' : 'fail', code };
  }

  #contradicts(at: HostPlace, about: string, actual: string, expected: string): void {
    this.#desk.find('DECISION_CONTRADICTS', at, { about, expected, actual: actual.slice(0, 64) });
  }

  /** A token that was issued for a decision, checked against it. */
  #noteToken(at: HostPlace, id: string, text: string | undefined): void {
    const token = readToken(text);
    const decision = this.#state.decisions.get(id);
    if (token?.id === undefined || decision === undefined || decision.tokens.has(token.id)) return;
    decision.tokens.add(token.id);
    this.#fiveOf(at, token, decision);
  }

  /** CLA-5: the five ids that a decision token is bound to. */
  #fiveOf(at: HostPlace, { claims }: TokenClaims, decision: Decision): void {
    const expected = {
      tenant_id: decision.tenant,
      workspace_id: decision.workspace,
      adapter_id: decision.adapterId,
      execution_id: decision.executionId,
      decision_id: decision.id,
    };
    const wrong = Object.entries(expected).filter(
      ([name, value]) => value !== undefined && value !== '' && textAt(claims, name) !== value,
    );
    const scope = objectAt(claims, 'granted_scope');
    const more =
      scope === undefined || decision.scope === undefined
        ? undefined
        : widening(decision.scope, readScope(scope, decision.scope.tools));
    if (wrong.length === 0 && more === undefined) return;
    this.#desk.find('DECISION_TOKEN_MISMATCH', at, {
      about: decision.id,
      actual:
        wrong.length === 0
          ? `more ${more ?? ''}`.slice(0, 128)
          : `another ${wrong.map(([name]) => name).join(', ')}`,
    });
  }

  #consume(call: Call, id: string): void {
    const { part, at } = call;
    const text = call.header('x-decision-token');
    const token = readToken(text);
    const decision = this.#state.decisions.get(id);
    if (!call.isOk) return this.#kept(call, 'consumption_refused', undefined, { decision_id: id });
    const time = this.#desk.timeOf(part, 'decision_consumed', undefined, id);
    if (time === undefined) return;
    const tell = (
      code: string,
      grade: 'violation' | 'warning',
      expected: string,
      related?: HostPlace,
    ): void => {
      const details = { about: id, expected, related: related && [related] };
      this.#desk.builder.find(findingOf('CLA-5', grade, code, at, details));
    };
    if (decision === undefined) tell('DECISION_UNKNOWN', 'warning', 'a decision that is in the files');
    else {
      if (decision.action === undefined || !isApproval(decision.action))
        tell('CONSUMED_WITHOUT_APPROVAL', 'violation', 'an approval before it');
      if (decision.consumedAt !== undefined)
        tell('DECISION_TOKEN_REUSED', 'violation', 'a token that was not consumed', decision.consumedAt);
      decision.consumedAt ??= at;
      if (token !== undefined) this.#fiveOf(at, token, decision);
      if (token?.id !== undefined && decision.tokens.size > 0 && !decision.tokens.has(token.id))
        tell('DECISION_TOKEN_UNKNOWN', 'violation', 'the token that was issued');
      if (isNotBefore(time, token?.expiresAt))
        tell('DECISION_TOKEN_EXPIRED', 'violation', `before ${token?.expiresAt ?? ''}`);
    }
    const tenant = firstText(decision?.tenant, this.#tenantOf(call));
    this.#desk.evidence(part, 'decision_consumed', {
      id: claimId('consumed', id, mark(part.bytes)),
      occurredAt: time,
      principalId: adapterPrincipal(
        tenant,
        firstText(decision?.adapterId, textAt(call.token?.claims, 'adapter_id')),
      ),
      facts: {
        decision_id: id,
        execution_id: decision?.executionId,
        token_id: token?.id,
        token_hash: text === undefined ? undefined : tokenHash(text),
      },
    });
  }

  #tool(call: Call): void {
    const { part, at, request, response } = call;
    if (!call.isOk) return this.#kept(call, 'tool_authorization_refused');
    const executionId = firstText(textAt(request, 'execution_id'));
    const tool = firstText(textAt(request, 'tool'));
    const text = textAt(response, 'tool_token');
    const token = readToken(text);
    const tenant = firstText(textAt(token?.claims, 'tenant_id'), this.#tenantOf(call));
    const adapterId = firstText(textAt(request, 'adapter_id'), textAt(call.token?.claims, 'adapter_id'));
    // A token says whole seconds: within the second that is known already, what is known is nearer.
    const clock = this.#desk.clock(at);
    const issuedAt = token?.issuedAt;
    const isCoarse =
      clock !== undefined && issuedAt !== undefined && clock.slice(0, 19) === issuedAt.slice(0, 19);
    const time = this.#desk.timeOf(part, 'tool_authorization', isCoarse ? clock : issuedAt, executionId);
    if (time === undefined) return;
    const execution = this.#state.execution(tenant, executionId);
    const allow = execution.allowed;
    const decided = allow ?? execution.recorded;
    const isAllowed = textAt(response, 'decision') === 'allow';
    const answer = keyOf(tenant, executionId, tool);
    this.#state.toolAnswers.set(answer, isAllowed ? 'allow' : 'deny');
    const scope = valueAt(response, 'granted_scope') ?? valueAt(request, 'requested_scope');
    const hash = scope === undefined || scope === null ? undefined : stableHash(scope);
    const stated = textAt(token?.claims, 'scope_hash');
    const base = {
      kind: 'action',
      at,
      bytes: part.bytes,
      occurredAt: time,
      principalId: decided?.principalId ?? adapterPrincipal(tenant, adapterId),
      intentDigest: decided?.intentDigest,
      tool,
      paramsDigest: scopeDigest(stated ?? hash ?? ''),
    } as const;
    const observed = { at, tool, paramsDigest: jcsDigest(scope), meters: [], occurredAt: time };
    if (!isAllowed) {
      const id = claimId('tool-denied', tenant, executionId, tool, mark(part.bytes));
      const decisionCode = codeOf(firstText(textAt(response, 'reason'), 'DENIED'));
      const denial = { ...base, id, grant: decided?.claim, decision: 'deny', decisionCode } as const;
      const isNew = this.#desk.claim({ ...denial, ...policyIdOf(textAt(response, 'policy_id')) });
      if (isNew) {
        const { inChain = 0, count = 0 } = this.#state.refused.get(answer) ?? {};
        const { principalId } = base;
        this.#state.refused.set(answer, { claim: id, principalId, inChain, count: count + 1 });
        this.#desk.builder.observe({ ...observed, callIds: [id], decision: 'deny' });
      }
      return this.#desk.mapped(part, 'tool_authorization', isNew);
    }
    if (token !== undefined) this.#toolToken(at, call, token, hash, { tenant, adapterId, executionId, tool });
    else this.#desk.find('TOOL_TOKEN_MISSING', at, { about: executionId });
    const isWithin = this.#withinGrant(at, executionId, allow, tool);
    if (allow === undefined && execution.current !== undefined && execution.current.kind !== 'allow')
      this.#desk.find('TOOL_ALLOWED_WITHOUT_GRANT', at, {
        about: executionId,
        actual: tool.slice(0, 128),
        related: [execution.current.at],
      });
    if (decided === undefined && execution.current === undefined && this.#state.hasRequests)
      this.#telemetry.under(at, { tenant, executionId, adapterId });
    const jti = token?.id;
    const known = jti === undefined ? undefined : this.#state.toolTokens.get(keyOf(tenant, jti));
    if (known !== undefined) this.#reissued(at, known, { executionId, tool, scopeHash: stated ?? hash });
    const id =
      jti === undefined
        ? claimId('tool-allowed', tenant, executionId, tool, mark(part.bytes))
        : claimId('tool-token', tenant, jti);
    const digests: ForeignDigest[] = [];
    if (text !== undefined)
      digests.push({ of: 'tool_token', form: 'sha-256', stated: tokenHash(text), check: 'match' });
    if (stated !== undefined) {
      const check = hash === undefined ? 'not_computed' : stated === hash ? 'match' : 'mismatch';
      digests.push({ of: 'tool_scope', form: STABLE_FORM, stated: stated.slice(0, 256), check });
    }
    const policy = objectAt(response, 'policy');
    const isNew = this.#desk.claim({
      ...base,
      id,
      // A tool of which nothing says that the scope has it was allowed by this answer alone.
      grant: allow !== undefined && isWithin === undefined ? undefined : decided?.claim,
      decision: 'allow',
      decisionCode: 'ALLOWED',
      ...(policy === undefined ? {} : this.#policyOf(policy)),
      foreignDigests: digests,
    });
    if (isNew && jti !== undefined)
      this.#state.toolTokens.set(keyOf(tenant, jti), {
        ...{ claim: id, principalId: base.principalId, tenant, executionId, tool },
        ...{ scopeHash: stated ?? hash, scopeDigest: jcsDigest(scope), issuedAt },
        expiresAt: timeOfText(textAt(response, 'expires_at')) ?? token?.expiresAt,
        intentDigest: decided?.intentDigest,
      });
    if (isNew) {
      // A client that keeps no more of a token names the call by the digest of its id.
      const callIds = jti === undefined ? [id] : [jti, tokenMark(jti)];
      this.#desk.builder.observe({ ...observed, callIds, decision: 'allow' });
    }
    this.#desk.mapped(part, 'tool_authorization', isNew);
  }

  /** CLA-4: whether a tool that was allowed is within what was granted; undefined where nothing says so. */
  #withinGrant(at: HostPlace, about: string, allow: Decided | undefined, tool: string): boolean | undefined {
    const isWithin = allow?.scope && this.#state.capabilities.isWithin(allow.scope, tool);
    if (allow === undefined || isWithin === true) return isWithin;
    const [code, grade] =
      isWithin === false
        ? (['CAPABILITY_NOT_GRANTED', 'violation'] as const)
        : (['CAPABILITY_NOT_STATED', 'warning'] as const);
    const details = { about, expected: 'a tool of a granted capability', actual: tool.slice(0, 128) };
    this.#desk.builder.find(findingOf('CLA-4', grade, code, at, details));
    return isWithin;
  }

  /** CLA-6: the id of a token names one token. */
  #reissued(
    at: HostPlace,
    known: ToolToken,
    asked: { readonly executionId: string; readonly tool: string; readonly scopeHash: string | undefined },
  ): void {
    const other = (['executionId', 'tool', 'scopeHash'] as const).filter(
      (name) => known[name] !== undefined && asked[name] !== undefined && known[name] !== asked[name],
    );
    if (other.length === 0) return;
    this.#desk.find('TOOL_TOKEN_MISMATCH', at, {
      about: asked.executionId,
      expected: 'a token of its own',
      actual: 'the id of a token that was issued for something else',
    });
  }

  /** CLA-6: what a token says against what was asked. */
  #toolToken(
    at: HostPlace,
    { token: adapter }: Call,
    { claims }: TokenClaims,
    hash: string | undefined,
    asked: { tenant: string; adapterId: string; executionId: string; tool: string },
  ): void {
    const expected = {
      tenant_id: textAt(adapter?.claims, 'tenant_id'),
      adapter_id: asked.adapterId,
      execution_id: asked.executionId,
      tool: asked.tool,
    };
    const wrong = Object.entries(expected).flatMap(([name, value]) =>
      value === undefined || textAt(claims, name) === value ? [] : [name],
    );
    const stated = textAt(claims, 'scope_hash');
    if (hash !== undefined && stated !== undefined && stated !== hash) wrong.push('scope_hash');
    if (wrong.length === 0) return;
    this.#desk.find('TOOL_TOKEN_MISMATCH', at, {
      about: asked.executionId,
      expected: 'a token for what was asked',
      actual: `another ${wrong.join(', ')}`,
    });
  }

  #ingest(call: Call, type: string): void {
    const { part, request, response, status, token } = call;
    if (!(request instanceof SourceObject)) return this.#kept(call, 'telemetry_refused');
    const isEnvelope =
      request.has('envelope_version') || (request.has('payload') && request.has('signature'));
    this.#telemetry.read(part, {
      type,
      body: request,
      isEnvelope,
      accepted: call.isOk,
      answer: call.isOk ? textAt(response, 'status') : textAt(response, 'code'),
      status,
      token,
    });
  }
}

/** The id in a path, which may be written in percent signs. */
function idIn([, part = '']: RegExpExecArray): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function isApproval(action: string): boolean {
  return action.startsWith('approve');
}

/** Why a request was not allowed, or not yet. */
function refusalIn(
  { response, status }: Call,
  kind: Decided['kind'],
): { decisionCode: string; checks: Check[] } {
  if (kind === 'pending')
    return {
      decisionCode: 'PENDING_APPROVAL',
      checks: [{ check: 'approval', result: 'fail', code: 'PENDING' }],
    };
  const otherwise = status === '403' ? refusalOf(textAt(response, 'error')) : 'DENIED';
  return { decisionCode: codeOf(firstText(textAt(response, 'blocked_reason'), otherwise)), checks: [] };
}

function refusalOf(error: string | undefined): string {
  if (error === 'Capability not allowed') return 'CAPABILITY_NOT_ALLOWED';
  if (error === 'Adapter scope mismatch') return 'ADAPTER_SCOPE_MISMATCH';
  return 'FORBIDDEN';
}

function policyIdOf(id: string | undefined): { policyId?: string } {
  return id === undefined || id === '' ? {} : { policyId: wellFormed(id.slice(0, 256)) };
}
