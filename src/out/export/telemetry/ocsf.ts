/** A verified ledger as events of OCSF (Open Cybersecurity Schema Framework): API Activity with the profile of AI operations. */

import type { ByteSink } from '../../../base/bytes/byte-sink.js';
import { defined } from '../../../base/defined.js';
import { toDigestText } from '../../../base/value/digest.js';
import { isTimestamp, parseTimestamp } from '../../../base/value/timestamp.js';
import { VERSION } from '../../../base/version.js';
import { describeFinding } from '../../../format/finding/words.js';
import type { WellFormedLine } from '../../../format/record/examine-line.js';
import type { LedgerInput } from '../../../log/read/verify-ledger.js';
import { type ExportOptions, type ExportPass, writeRecords } from '../../../log/read/write-records.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';
import { describeExport } from '../about.js';
import { meterRows, signersOf } from '../table/rows.js';
import { safeJson } from './safe-json.js';

export const OCSF_VERSION = '1.9.0-dev';

export interface OcsfExport extends ExportPass {
  /** Selected records that name no time: no event can be made of these. */
  readonly skipped: number;
}

const CATEGORY = { category_uid: 6, category_name: 'Application Activity' };
const CLASS = { class_uid: 6003, class_name: 'API Activity' };
const PRODUCT = { name: 'northroot', vendor_name: 'northroot', version: VERSION };
const STATUS = ['Unknown', 'Success', 'Failure'] as const;
const SEVERITY = {
  ok: [1, 'Informational'],
  denied: [2, 'Low'],
  violation: [4, 'High'],
  invalid: [5, 'Critical'],
  undecided: [0, 'Unknown'],
} as const;

/** The most findings of a record that are listed; `findings_total` counts all. */
const MAX_TOLD_FINDINGS = 16;

interface Activity {
  readonly id: 0 | 1 | 2 | 3 | 4 | 99;
  readonly name: string;
  readonly operation: string;
  readonly status: 0 | 1 | 2;
  readonly code?: string | undefined;
  readonly requestUid?: string | undefined;
}

/**
 * Writes each selected record as an OCSF event, one JSON object a line, and after them one event that says what was verified and
 * what was not.
 *
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; what `sink` rejects with.
 */
export async function exportOcsf(
  ledger: LedgerInput,
  sink: ByteSink,
  options: ExportOptions = {},
): Promise<OcsfExport> {
  let skipped = 0;
  let latest = 0;
  const pass = await writeRecords('exportOcsf', ledger, options, (record) => {
    const time = timeOf(record);
    if (time === undefined) {
      skipped += 1;
      return undefined;
    }
    latest = Math.max(latest, time);
    return sink.write(`${safeJson(toEvent(record, time))}\n`);
  });
  await sink.write(`${safeJson(verificationEvent(pass, options, latest, skipped))}\n`);
  return { ...pass, skipped };
}

function toEvent(record: VerifiedRecord, time: number): object {
  const { examined, verdict, state, grantIds } = record;
  const principal = examined?.principalId ?? '';
  const id = examined?.eventId === undefined ? undefined : toDigestText(examined.eventId);
  const activity = examined?.wellFormed === true ? activityOf(examined) : unreadable(examined?.eventType);
  const isAgent = principal.startsWith('agent:');
  const model = modelOf(record);
  const context = messageContext(record, id);
  return {
    ...classification(activity, verdict),
    time,
    message: `${principal || 'nobody'}: ${activity.name} ${activity.operation}, ${STATUS[activity.status].toLowerCase()}; ${verdict}`,
    status_detail: statusDetail(record),
    ...defined({ status_code: activity.code }),
    metadata: {
      version: OCSF_VERSION,
      profiles: ['ai_operation'],
      product: PRODUCT,
      ...defined({ log_name: state.origin }),
      ...(id === undefined ? {} : { uid: id, original_event_uid: id }),
      ...(examined?.eventType === undefined ? {} : { event_code: examined.eventType }),
      ...(examined?.seq === undefined ? {} : { sequence: examined.seq }),
      original_time: examined?.occurredAt,
      // Everything under one root grant belongs together.
      ...(grantIds.length === 0 ? {} : { correlation_uid: grantIds.at(-1) }),
    },
    actor: { user: userOf(principal), ...authorizationsOf(record) },
    api: {
      operation: activity.operation,
      ...(activity.requestUid === undefined ? {} : { request: { uid: activity.requestUid } }),
      ...(activity.status === 2 && activity.code !== undefined ? { response: { error: activity.code } } : {}),
    },
    // A ledger knows no addresses: the principal is where the call came from.
    src_endpoint: { uid: principal === '' ? 'unknown' : principal },
    ...(isAgent
      ? {
          ai_agent: {
            uid: principal,
            name: principal.slice('agent:'.length),
            type_id: 0,
            ...defined({ ai_model: model }),
          },
        }
      : model === undefined
        ? {}
        : { ai_model: model }),
    ...defined({ message_context: context }),
    ...resourcesOf(record),
    enrichments: enrichmentsOf(record, principal, activity),
  };
}

function classification(
  { id, name, status }: Activity,
  verdict: keyof typeof SEVERITY,
): Readonly<Record<string, unknown>> {
  const [severity, severityName] = SEVERITY[verdict];
  return {
    ...CATEGORY,
    ...CLASS,
    activity_id: id,
    activity_name: name,
    type_uid: CLASS.class_uid * 100 + id,
    severity_id: severity,
    severity: severityName,
    status_id: status,
    status: STATUS[status],
  };
}

function activityOf(examined: WellFormedLine): Activity {
  switch (examined.type) {
    case 'execution': {
      const event = examined.event();
      return {
        id: 99,
        name: 'Execute',
        operation: event.tool_name,
        status: event.outcome === 'success' ? 1 : event.outcome === 'failure' ? 2 : 0,
        code: event.error_code,
        requestUid: toDigestText(event.auth_event_id.b64),
      };
    }
    case 'authorization': {
      const { authorization, decision, decision_code: code } = examined.event();
      const isGrant = authorization.kind === 'grant';
      return {
        id: isGrant ? 1 : 99,
        name: isGrant ? 'Create' : 'Authorize',
        operation: isGrant ? 'grant' : authorization.action.tool_name,
        status: decision === 'allow' ? 1 : 2,
        code,
        requestUid: toDigestText(examined.eventId),
      };
    }
    case 'adjustment': {
      const { direction, reason } = examined.event();
      return { id: 3, name: 'Update', operation: direction, status: 1, code: reason };
    }
    case 'approval': {
      const {
        decision,
        decision_code: code,
        tool_name: operation,
        request_event_id: request,
      } = examined.event();
      const isApproval = decision === 'approve';
      return {
        id: 99,
        name: isApproval ? 'Approve' : 'Reject',
        operation,
        status: isApproval ? 1 : 2,
        code,
        requestUid: request && toDigestText(request.b64),
      };
    }
    case 'revocation': {
      const { effect, reason } = examined.event();
      const [id, name] = effect === 'revoke' ? ([4, 'Delete'] as const) : ([3, 'Update'] as const);
      return { id, name, operation: `${effect} grant`, status: 1, code: reason };
    }
    case 'key': {
      const { action } = examined.event();
      const isAdd = action === 'add';
      return { id: isAdd ? 1 : 4, name: isAdd ? 'Create' : 'Delete', operation: `key ${action}`, status: 1 };
    }
    case 'genesis':
    case 'checkpoint':
    case 'attestation':
      return { id: 1, name: 'Create', operation: examined.type, status: 1 };
    case 'other':
      return { id: 99, name: 'Record', operation: examined.eventType, status: 0 };
  }
}

function unreadable(eventType: string | undefined): Activity {
  return { id: 0, name: 'Unknown', operation: eventType ?? 'unknown', status: 0 };
}

function userOf(principal: string): object {
  const [kind = ''] = principal.split(':');
  const known = { human: [1, 'User'], service: [4, 'Service'] } as const;
  const [typeId, type] = Object.hasOwn(known, kind) ? known[kind as keyof typeof known] : [99, kind];
  return principal === ''
    ? { name: 'unknown', type_id: 0 }
    : { uid: principal, name: principal, type_id: typeId, type };
}

function authorizationsOf({ examined }: VerifiedRecord): object {
  if (examined?.type !== 'authorization') return {};
  const { decision, policy_id: uid, policy_digest: digest } = examined.event();
  const policy = { uid, name: uid, version: `${digest.alg}:${digest.b64}`, is_applied: true };
  return { authorizations: [{ decision: decision === 'allow' ? 'allowed' : 'denied', policy }] };
}

/** OCSF has no model without a provider. */
function modelOf({
  examined,
}: VerifiedRecord): { readonly name: string; readonly ai_provider: string } | undefined {
  if (examined?.type !== 'execution') return undefined;
  const { model_id: name, provider } = examined.event();
  return name === undefined || provider === undefined ? undefined : { name, ai_provider: provider };
}

function messageContext({ examined }: VerifiedRecord, uid: string | undefined): object | undefined {
  if (examined?.type !== 'execution') return undefined;
  const { provider, meter_used: meters } = examined.event();
  const tokens = (unit: string): number | undefined => {
    const amount = meters.find((meter) => meter.unit === unit)?.amount;
    const value = amount?.t === 'int' ? Number(amount.v) : NaN;
    return value >= 0 && value < 2 ** 31 ? value : undefined;
  };
  const [prompt, completion] = [tokens('tokens.input'), tokens('tokens.output')];
  if (provider === undefined || (prompt === undefined && completion === undefined)) return undefined;
  return {
    uid,
    service: { name: provider },
    ...defined({ prompt_tokens: prompt, completion_tokens: completion }),
  };
}

function resourcesOf({ examined }: VerifiedRecord): object {
  if (examined?.type !== 'execution') return {};
  const touched = examined.event().resources_touched ?? [];
  if (touched.length === 0) return {};
  return { resources: touched.map(({ kind, reference }) => ({ type: kind, uid: reference, role_id: 3 })) };
}

function statusDetail({ verdict, findings }: VerifiedRecord): string {
  const [first] = findings.filter(({ class: of }) => of !== 'none');
  return first === undefined
    ? `verdict ${verdict}`
    : `verdict ${verdict}: ${first.code}, ${describeFinding(first)}`;
}

interface Enrichment {
  /** The attribute that it belongs to. */
  readonly name: string;
  readonly value: string;
  readonly type: string;
  readonly desc?: string;
  readonly data: object;
}

/** What OCSF has no attribute for. */
function enrichmentsOf(record: VerifiedRecord, principal: string, { operation }: Activity): object[] {
  const { verdict } = record;
  const meters = meterRows(record).map(({ role, unit, amount, basis, estimated, counted }) => {
    return { role, unit, amount, basis, estimated, counted };
  });
  const list: Enrichment[] = [
    { name: 'status_detail', value: verdict, type: 'verification', data: verificationData(record) },
    ...delegationOf(record, principal),
    ...(meters.length === 0
      ? []
      : [{ name: 'api.operation', value: operation, type: 'meters', data: meters }]),
    ...unprovidedModel(record),
  ];
  return list.map(({ name, value, type, ...rest }) => ({
    name,
    value,
    type,
    provider: 'northroot',
    ...rest,
  }));
}

function verificationData(record: VerifiedRecord): object {
  const { verdict, findings } = record;
  return {
    verdict,
    findings: findings.slice(0, MAX_TOLD_FINDINGS).map((finding) => ({
      code: finding.code,
      severity: finding.severity,
      class: finding.class,
      message: describeFinding(finding),
    })),
    findings_total: findings.length,
    signers: signersOf(record),
  };
}

function delegationOf(record: VerifiedRecord, principal: string): Enrichment[] {
  const { grantIds } = record;
  const parent = parentGrantOf(record);
  if (grantIds.length === 0 && parent === undefined) return [];
  return [
    {
      name: 'actor.user.uid',
      value: principal,
      type: 'delegation',
      desc: 'the grants that the actor acts under, nearest first',
      data: { grants: grantIds, ...defined({ grant_event_id: parent }) },
    },
  ];
}

/** A model without a provider. */
function unprovidedModel({ examined }: VerifiedRecord): Enrichment[] {
  if (examined?.type !== 'execution') return [];
  const { model_id: model, provider } = examined.event();
  if (model === undefined || provider !== undefined) return [];
  return [{ name: 'ai_agent.ai_model.name', value: model, type: 'model', data: { model_id: model } }];
}

function parentGrantOf({ examined }: VerifiedRecord): string | undefined {
  if (examined?.type === 'adjustment' || examined?.type === 'approval' || examined?.type === 'revocation')
    return toDigestText(examined.event().grant_event_id.b64);
  if (examined?.type !== 'authorization') return undefined;
  const { grant_event_id: parent } = examined.event().authorization;
  return parent === undefined ? undefined : toDigestText(parent.b64);
}

/** Milliseconds since 1970. `metadata.original_time` has the exact time. */
function timeOf({ examined }: VerifiedRecord): number | undefined {
  const started = examined?.type === 'execution' ? examined.event().started_at : undefined;
  const text = started ?? examined?.occurredAt;
  if (text === undefined || !isTimestamp(text)) return undefined;
  return toMilliseconds(text);
}

function toMilliseconds(text: string): number {
  const nanoseconds = parseTimestamp(text);
  const rest = ((nanoseconds % 1_000_000n) + 1_000_000n) % 1_000_000n;
  return Number((nanoseconds - rest) / 1_000_000n);
}

function verificationEvent(
  pass: ExportPass,
  { now, selection }: ExportOptions,
  latest: number,
  skipped: number,
): object {
  const { verdict, ledger, not_checked: notChecked } = pass.report;
  const status = verdict === 'ok' ? 1 : verdict === 'undecided' ? 0 : 2;
  const operation = 'verify';
  return {
    ...classification({ id: 99, name: 'Verify', operation, status }, verdict),
    time: now === undefined ? latest : toMilliseconds(now),
    message: `northroot verified ${ledger.records} records: ${verdict}`,
    status_detail: `verdict ${verdict}; not checked: ${notChecked.map(({ code }) => code).join(', ') || 'nothing'}`,
    metadata: {
      version: OCSF_VERSION,
      profiles: ['ai_operation'],
      product: PRODUCT,
      event_code: 'verification',
      ...(ledger.origin === null ? {} : { log_name: ledger.origin }),
    },
    actor: { app_name: 'northroot' },
    api: { operation },
    src_endpoint: { name: 'northroot' },
    enrichments: [
      {
        name: 'status_detail',
        value: verdict,
        type: 'verification',
        provider: 'northroot',
        data: {
          ...Object.fromEntries(describeExport(pass, selection)),
          left_out: String(skipped),
          not_checked_messages: notChecked.map(({ message }) => message),
        },
      },
    ],
  };
}
