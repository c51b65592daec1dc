/**
 * Agent Action Receipts (AAR) 1.0: one signed JSON object an action, each on its own; and the correction records that amend them.
 * ../README.md says what becomes of each.
 */

import type { SourceValue } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import type { Digest } from '../../../base/value/digest.js';
import type { MeterVector } from '../../../base/value/meter.js';
import { JCS_FORM, jcsBytes } from '../../shared/forms/jcs.js';
import { hashText } from '../../shared/forms/stable.js';
import type { SourceItem } from '../../shared/host.js';
import { factText, factTexts, principalOf, unitOf } from '../../shared/names.js';
import { amountOf, objectAt, textAt } from '../../shared/values.js';
import { receiptHost } from '../receipt-host.js';
import type { Receipt } from '../receipt.js';
import type { Shape } from '../shape.js';
import type { Verification } from '../verification.js';
import { checkCorrections, isCorrection, readCorrection } from './corrections.js';
import { AAR_RULES } from './rules.js';
import { readSignature, sha256Of, unsigned } from './signature.js';

const CANONICALIZATIONS = { 'JCS-SORTED-UTF8-NOWS': { hasEmptySig: false } };
const HASHES = ['sha256', 'sha384', 'sha512', 'blake3'] as const;
const PRINCIPALS = ['user', 'organization', 'service', 'agent', 'other'] as const;
const STATUSES = ['success', 'failure', 'partial'] as const;
const AMOUNT = /^(?:0|[1-9]\d{0,30})(?:\.\d{1,24})?$/;

/** The host Agent Action Receipts. */
export const aar = receiptHost({
  name: 'aar',
  title: 'Agent Action Receipts (AAR)',
  rules: AAR_RULES,
  form: JCS_FORM,
  isOwn: (value) => isReceipt(value) || isCorrection(value),
  read: (item, shape) => (isReceipt(item.value) ? read(item, shape) : readCorrection(item, shape)),
  verify,
});

function verify(receipts: readonly Receipt[], verification: Verification): void {
  for (const receipt of receipts) verification.verify(receipt);
  checkCorrections(receipts, verification);
}

function isReceipt(value: SourceValue): boolean {
  return (
    textAt(value, 'receiptId') !== undefined &&
    objectAt(value, 'agent') !== undefined &&
    (objectAt(value, 'signature') !== undefined || objectAt(value, 'inputHash') !== undefined)
  );
}

function read({ at, value }: SourceItem, shape: Shape): Receipt | undefined {
  const id = shape.text(['receiptId']);
  const agent = shape.text(['agent', 'id']);
  shape.text(['principal', 'id']);
  shape.oneOf(['principal', 'type'], PRINCIPALS);
  const type = shape.text(['action', 'type']);
  shape.text(['action', 'target']);
  const status = shape.oneOf(['action', 'status'], STATUSES);
  checkPermissions(shape);
  const input = readHash(shape, 'inputHash');
  readHash(shape, 'outputHash');
  const time = shape.time(['timestamp']);
  const meters = readCost(shape);
  const signatures = readSignature(shape, agent ?? '', CANONICALIZATIONS);
  if (shape.value('metadata') !== undefined) shape.object(['metadata']);
  if (id === undefined || agent === undefined || type === undefined || time === undefined) return undefined;
  return {
    at,
    value,
    id,
    issuer: agent,
    type: 'receipt',
    occurredAt: time,
    principalId: principalOf('agent', 'aar', agent),
    digest: hashText(jcsBytes(unsigned(value))!),
    signatures,
    facts: factsOf(value, status ?? ''),
    action: {
      callIds: [id],
      tool: type,
      paramsDigest: input,
      outcome: status === 'partial' ? 'unknown' : status,
      meters,
    },
  };
}

function checkPermissions(shape: Shape): void {
  const path = ['scope', 'permissions'];
  const permissions = shape.value(...path);
  const isList = Array.isArray(permissions) && permissions.length > 0;
  if (!isList || !permissions.every((each) => typeof each === 'string'))
    shape.malformed(path, 'a list of at least one text');
}

function readHash(shape: Shape, name: 'inputHash' | 'outputHash'): Digest | undefined {
  const alg = shape.oneOf([name, 'alg'], HASHES);
  const text = shape.text([name, 'digest']);
  return alg === 'sha256' && text !== undefined ? sha256Of(text) : undefined;
}

/** What it cost, as a meter named after the currency. */
function readCost(shape: Shape): MeterVector {
  if (shape.value('cost') === undefined) {
    shape.unusual(['cost'], 'what the action cost');
    return [];
  }
  const amount = shape.text(['cost', 'amount'], {
    pattern: AMOUNT,
    expected: 'a decimal number as a text',
    isLoose: true,
  });
  const currency = shape.text(['cost', 'currency']);
  const quantity = AMOUNT.test(amount ?? '') ? amountOf(amount) : undefined;
  return quantity === undefined || currency === undefined
    ? []
    : [{ unit: unitOf(currency), amount: quantity }];
}

function factsOf(value: SourceValue, status: string): JsonObject {
  return {
    ...factTexts(['name', 'version'], (name) => textAt(value, 'agent', name)),
    agent: factText(textAt(value, 'agent', 'id') ?? ''),
    on_behalf_of: factTexts(['id', 'type'], (name) => textAt(value, 'principal', name)),
    action: factTexts(['type', 'target', 'method'], (name) => textAt(value, 'action', name)),
    status,
    input_hash: factTexts(['alg', 'digest'], (name) => textAt(value, 'inputHash', name)),
    output_hash: factTexts(['alg', 'digest'], (name) => textAt(value, 'outputHash', name)),
    cost: factTexts(['amount', 'currency', 'unit', 'payer'], (name) => textAt(value, 'cost', name)),
  };
}
