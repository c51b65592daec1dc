/** Acta: signed receipts of decisions, as protect-mcp and others write them. docs/hosts/acta.md says what becomes of each member. */

import { SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import { tryKey } from '../keys.js';
import { receiptHost } from '../receipt-host.js';
import type { ReceiptAction, ReceiptFormat } from '../receipt.js';
import type { Shape } from '../shape.js';
import type { Verification } from '../verification.js';
import type { HostPlace, SourceItem } from '../../shared/host.js';
import { factText, factTexts, principalOf, unitOf } from '../../shared/names.js';
import { ONE_CALL } from '../../shared/usage.js';
import { amountOf, numberAt, objectAt, textAt, valueAt } from '../../shared/values.js';
import { type ActaIssued, checkLinks } from './chains.js';
import { embeddedKeys, linksTo, readActaReceipt, windowOf } from './check.js';
import { ACTA_RULES, finding } from './rules.js';

/** The format of draft-farley-acta-signed-receipts-04. */
const actaFormat: ReceiptFormat<ActaIssued> = {
  name: 'acta',
  title: 'Acta signed decision receipts',
  rules: ACTA_RULES,
  form: 'rfc8785',
  isOwn,
  read,
  verify,
};

/** The host Acta: signed receipts of decisions. */
export const acta = receiptHost(actaFormat);

function isOwn(value: SourceValue): boolean {
  if (!(value instanceof SourceObject)) return false;
  const payload = objectAt(value, 'payload');
  const signature = valueAt(value, 'signature');
  if (payload !== undefined && !value.has('@version') && !value.has('payloadType')) {
    if (signature instanceof SourceObject) return signature.has('kid') && signature.has('alg');
    return textAt(payload, 'issuer_id') !== undefined || (value.has('kid') && value.has('algorithm'));
  }
  if (typeof signature !== 'string' || !/^[0-9A-Fa-f]{64,}$/.test(signature)) return false;
  const isDecision = value.has('tool_name') || value.has('tool') || value.has('decision');
  return isDecision && (value.has('type') || value.has('receipt_id'));
}

function read({ at, value }: SourceItem, shape: Shape): ActaIssued | undefined {
  const receipt = value as SourceObject;
  const found = readActaReceipt(receipt);
  if ('code' in found) {
    const { code, pointer, expected, actual } = found;
    shape.find(finding(code, placeIn(at, pointer), { expected, actual }));
    return undefined;
  }
  const { body, kid, issuedAt, alg, message, signature } = found;
  const digest = linksTo(receipt)!.whole;
  const issuer = textAt(body, 'issuer_id') ?? textAt(receipt, 'issuer') ?? kid ?? 'not stated';
  const names = [kid, textAt(receipt, 'issuer'), textAt(body, 'issuer_id')];
  const type = textAt(body, 'type') ?? textAt(receipt, 'type') ?? '';
  return {
    at,
    value: receipt,
    id: textAt(body, 'receipt_id') || digest,
    issuer,
    type: TYPES[type.replace(/^.*:/, '')] ?? 'receipt',
    occurredAt: issuedAt,
    principalId: principalOf('service', 'acta', issuer),
    digest,
    signatures: [
      {
        alg,
        message,
        bytes: signature,
        keyNames: names.filter((name) => name !== undefined),
        pointer: found.shape === 'envelope' ? '/signature/sig' : '/signature',
      },
    ],
    facts: factsOf(receipt, body, type),
    action: actionOf(body),
    shape: found.shape,
    body,
    issuedAt,
  };
}

/** What an event is named after. */
const TYPES: Readonly<Record<string, string>> = {
  decision: 'decision',
  decision_receipt: 'decision',
  restraint: 'restraint',
  lifecycle: 'lifecycle',
  spending_authority: 'spending',
};

function verify(receipts: readonly ActaIssued[], verification: Verification): void {
  const jwks = verification.keySets.flat();
  const told = new Set<string>();
  for (const receipt of receipts) {
    const { at, value, issuedAt, signatures } = receipt;
    const [signature] = signatures;
    const carried = embeddedKeys(value);
    if (carried.length > 0 && verification.keysOf(signature!).keys.length === 0)
      verification.find(receipt, finding('EMBEDDED_KEY', at));
    verification.verify(receipt);
    const { standing, keyid } = verification.of(receipt);
    if (standing !== 'vouched' || keyid === undefined) continue;
    if (carried.some((each) => tryKey(each)?.keyid !== keyid))
      verification.find(receipt, finding('EMBEDDED_KEY_DIFFERS', at));
    const names = signature!.keyNames;
    const jwk = jwks.find(
      (each) => tryKey(each)?.keyid === keyid && names.includes(textAt(each, 'kid') ?? ''),
    );
    const window = windowOf(jwk, issuedAt);
    if (window === 'outside') {
      const [from, until] = ['valid_from', 'valid_until'].map((name) => textAt(jwk, name) ?? 'any time');
      const [expected, actual] = [`from ${from}, before ${until}`, issuedAt!];
      verification.find(receipt, finding('KEY_OUTSIDE_WINDOW', at, { expected, actual }));
    } else if (window === 'not_applicable') {
      verification.find(receipt, finding('WINDOW_NOT_APPLICABLE', at));
    } else if (window === 'not_stated' && !told.has(keyid)) {
      told.add(keyid);
      verification.find(receipt, finding('WINDOW_NOT_STATED', at, { about: names[0] ?? keyid }));
    }
  }
  checkLinks(receipts, verification);
}

/** Members that are kept as texts. */
const FACTS = [
  ...[
    'decision',
    'reason',
    'reason_code',
    'denial_type',
    'policy_id',
    'policy_digest',
    'request_id',
    'session_id',
  ],
  ...[
    'agent_id',
    'agent_tier',
    'agent_manifest_version',
    'action_ref',
    'iteration_id',
    'sandbox_state',
    'mode',
  ],
  ...[
    'lifecycle_event',
    'category',
    'utilization_band',
    'spec',
    'issuer_certification',
    'committed_fields_root',
  ],
];

function factsOf(receipt: SourceObject, body: SourceObject, type: string): JsonObject {
  const tool = toolIn(body);
  const amount = amountOf(numberAt(body, 'amount') ?? decimalIn(body));
  const currency = textAt(body, 'currency');
  const link = textAt(body, 'previousReceiptHash');
  return {
    ...(type === '' ? {} : { receipt_type: factText(type) }),
    ...factTexts(FACTS, (name) => textAt(body, name) || undefined),
    ...factTexts(
      ['issuer', 'kid'],
      (name) => textAt(receipt, name) || textAt(receipt, 'signature', name) || undefined,
    ),
    ...(tool === undefined ? {} : { tool_name: factText(tool) }),
    ...(amount === undefined || !currency
      ? {}
      : { amount: { unit: unitOf(currency), amount: { ...amount } } }),
    ...(link === undefined ? {} : { previous: factText(link) }),
  };
}

function decimalIn(body: SourceObject): string | undefined {
  const text = textAt(body, 'amount') ?? '';
  return /^(?:0|[1-9]\d{0,38})(?:\.\d{1,38})?$/.test(text) ? text : undefined;
}

function toolIn(body: SourceObject): string | undefined {
  return textAt(body, 'tool_name') || textAt(body, 'tool') || textAt(body, 'action', 'target') || undefined;
}

const DECISIONS: Readonly<Record<string, 'allow' | 'deny'>> = {
  allow: 'allow',
  deny: 'deny',
  rate_limit: 'deny',
};

/** That a tool ran is said by how long it took, and by nothing else: an allow is no execution. */
function actionOf(body: SourceObject): ReceiptAction | undefined {
  const tool = toolIn(body);
  const ids = ['request_id', 'receipt_id', 'tool_use_id', 'call_id', 'action_ref']
    .map((name) => textAt(body, name) || undefined)
    .filter((id) => id !== undefined);
  if (tool === undefined && ids.length === 0) return undefined;
  const decision = DECISIONS[textAt(body, 'decision') ?? ''];
  const took = amountOf(numberAt(body, 'tool_duration_ms'));
  return {
    callIds: ids,
    tool,
    ...(decision === undefined ? {} : { decision }),
    ...(took === undefined
      ? {}
      : { outcome: 'unknown' as const, meters: [ONE_CALL, { unit: 'time.ms', amount: took }] }),
  };
}

function placeIn(at: HostPlace, pointer: string): HostPlace {
  return { ...at, pointer: `${at.pointer ?? ''}${pointer}` };
}
