/** Agent Action Receipts (AAR) 1.0: one signed JSON object an action, each on its own. docs/hosts/aar.md says what becomes of each. */

import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { JsonObject } from '../../base/json/value.js';
import type { Digest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { hashText, stableText } from '../shared/forms/stable.js';
import { JCS_FORM, jcsBytes, jcsText } from '../shared/forms/jcs.js';
import { rulesOf } from '../shared/findings.js';
import type { SourceItem } from '../shared/host.js';
import { factText, factTexts, principalOf, unitOf } from '../shared/names.js';
import { amountOf, objectAt, textAt } from '../shared/values.js';
import { digestOfHex, signatureBytes } from './encodings.js';
import { tryEd25519Text } from './keys.js';
import { receiptHost } from './receipt-host.js';
import type { Receipt, ReceiptSignature } from './receipt.js';
import { finding } from './rules.js';
import type { Shape } from './shape.js';

const RULES = rulesOf({
  'AAR-1': 'a receipt is signed with Ed25519 over its canonical form without the signature itself',
  'AAR-2':
    'a receipt states who acted for whom, what was done within which permissions, and the digests of input and output',
  'AAR-3': [
    'the digests of input and output are those of what went in and came out',
    'receipts hold no contents',
  ],
  'AAR-4': ['every action has a receipt', 'receipts are not numbered or linked'],
});

const ALGORITHM = 'Ed25519';
const CANONICALIZATION = 'JCS-SORTED-UTF8-NOWS';
const HASHES = ['sha256', 'sha384', 'sha512', 'blake3'] as const;
const PRINCIPALS = ['user', 'organization', 'service', 'agent', 'other'] as const;
const STATUSES = ['success', 'failure', 'partial'] as const;
const AMOUNT = /^(?:0|[1-9]\d{0,30})(?:\.\d{1,24})?$/;

/** The host Agent Action Receipts. */
export const aar = receiptHost({
  name: 'aar',
  title: 'Agent Action Receipts (AAR)',
  rules: RULES,
  form: JCS_FORM,
  isOwn,
  read,
});

function isOwn(value: SourceValue): boolean {
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
  const signatures = readSignature(shape, agent ?? '');
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

/** The receipt without `signature.sig`: what is signed. */
function unsigned(value: SourceValue): SourceObject {
  const members = (value as SourceObject)
    .entries()
    .map(([name, member]): [string, SourceValue] =>
      name === 'signature' && member instanceof SourceObject ? [name, member.without('sig')] : [name, member],
    );
  return new SourceObject(new Map(members));
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

/** In base64url, as the format's own libraries write it, or in hexadecimal digits. */
function sha256Of(text: string): Digest | undefined {
  const hex = digestOfHex(text);
  if (hex !== undefined) return hex;
  const b64 = text.replace(/=$/, '');
  return b64.length === 43 && tryDecodeBase64url(b64) !== undefined ? { alg: 'sha-256', b64 } : undefined;
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

function readSignature(shape: Shape, agent: string): readonly ReceiptSignature[] {
  if (shape.value('signature') === undefined) return [];
  const alg = shape.text(['signature', 'alg']);
  if (alg !== undefined && alg !== ALGORITHM) refuse(shape, 'alg', ALGORITHM, alg);
  const form = shape.text(['signature', 'canonicalization']);
  if (form !== undefined && form !== CANONICALIZATION)
    refuse(shape, 'canonicalization', CANONICALIZATION, form);
  const kid = shape.text(['signature', 'kid']);
  if (shape.value('signature', 'sig') === undefined) return [];
  const bytes = signatureBytes(urlSafe(textAt(shape.value('signature'), 'sig') ?? ''));
  if (bytes === undefined) shape.malformed(['signature', 'sig'], '64 bytes in base64url', 'other text');
  const stated = readStated(shape);
  const message = jcsBytes(unsigned(shape.value()!));
  if (bytes === undefined || message === undefined) return [];
  return [
    {
      alg: 'ed25519',
      message,
      alternatives: alternativesOf(shape.value()!),
      bytes,
      keyNames: [agent, ...keyIdsOf(kid, agent)],
      stated,
      pointer: '/signature/sig',
    },
  ];
}

/** The format's own libraries read either alphabet of base64. */
function urlSafe(text: string): string {
  return text.replaceAll('+', '-').replaceAll('/', '_');
}

/**
 * Its libraries sort members as JavaScript's objects do, where names like array indices come first. They leave out a member `__proto__`, so
 * that no signature of theirs covers it: a receipt that has one is to be signed in the form that its specification names.
 */
function alternativesOf(value: SourceValue): readonly Uint8Array[] {
  const plain = unsigned(value);
  const text = stableText(plain);
  const jcs = jcsText(plain);
  return text === jcs || jcs?.includes('"__proto__":') === true ? [] : [encodeUtf8(text)];
}

/** A key id that names an agent names the receipt's own, or nothing: another agent's key says nothing of this one. */
function keyIdsOf(kid: string | undefined, agent: string): readonly string[] {
  const names = kid?.includes('#') === true ? kid.startsWith(`${agent}#`) : kid !== undefined;
  return names ? [kid!] : [];
}

/** The signature states its key, and the agent its own; they are one. */
function readStated(shape: Shape): ReceiptSignature['stated'] {
  const keys = [
    ['signature', 'publicKey'],
    ['agent', 'publicKey'],
  ].flatMap((path) => {
    const text = shape.optionalText(path);
    if (text === undefined) return [];
    const key = tryEd25519Text(urlSafe(text));
    // Only the signature's own key is ever used.
    if (key === undefined) {
      const expected = 'an Ed25519 key of 32 bytes in base64url';
      if (path[0] === 'signature') shape.malformed(path, expected, 'other text');
      else shape.unusual(path, expected, 'other text');
    }
    return key === undefined ? [] : [key];
  });
  const [first, second] = keys;
  if (first !== undefined && second !== undefined && first.keyid !== second.keyid)
    shape.find(
      finding('KEY_CHANGED', shape.place(['signature', 'publicKey']), {
        expected: `the key of the agent, ${second.keyid}`,
        actual: first.keyid,
      }),
    );
  return first;
}

function refuse(shape: Shape, name: string, expected: string, actual: string): void {
  shape.find(finding('ALGORITHM_REFUSED', shape.place(['signature', name]), { expected, actual }));
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
