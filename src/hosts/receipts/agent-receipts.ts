/**
 * Agent Receipts, protocol versions 0.1.0 to 0.6.0: signed records of actions in the form of W3C credentials, in hash chains whose key may
 * be rotated. README.md says what becomes of each.
 */

import { encodeHex, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { JsonObject } from '../../base/json/value.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { checkPublicKey, makePublicKey, type PublicKey } from '../../format/key/public-key.js';
import { findingsOf, rulesOf } from '../shared/findings.js';
import { JCS_FORM, jcsBytes } from '../shared/forms/jcs.js';
import { hashText } from '../shared/forms/stable.js';
import type { SourceItem } from '../shared/host.js';
import { factText, factTexts, principalOf } from '../shared/names.js';
import { addTo, listAt, numberAt, objectAt, textAt, timeOfText, valueAt } from '../shared/values.js';
import { digestOfHex, signatureBytes } from './encodings.js';
import { tryKey } from './keys.js';
import { receiptHost } from './receipt-host.js';
import type { Receipt, ReceiptLink, ReceiptSignature } from './receipt.js';
import type { Shape } from './shape.js';
import { chainsOf, checkChain, digestsOf, type Verification } from './verification.js';

const RULES = rulesOf({
  'AR-1': 'a receipt is of a known version, and its context is that of its version',
  'AR-2':
    'the proof is Ed25519Signature2020 over the canonical form without the proof, in multibase base64url',
  'AR-3': 'all receipts of a chain are by one issuer, whose name the key is under',
  'AR-4': 'a key is handed over by the key before it, with the fingerprints of both',
  'AR-5': 'a delegated chain names a receipt of its parent, by the same principal',
  'AR-6': 'an idempotency key names one operation; receipts that share it are tries of it',
  'AR-7': 'the authorization that a receipt names was valid when it acted',
  'AR-8': 'every action has a receipt: no event was dropped, and every call has its end',
  'AR-9': [
    'a trusted timestamp is over the receipt',
    'a token of RFC 3161 cannot be over the receipt that it stands in, and is not read; the times are those that the issuer states',
  ],
  'AR-10': ['hashes are those of parameters, responses, prompts and states', 'receipts hold no contents'],
});

const finding = findingsOf({
  VERSION_UNKNOWN: ['AR-1', 'warning', 'a version from 0.1.0 to 0.6.0'],
  PROOF_TYPE: ['AR-2', 'invalid', 'Ed25519Signature2020'],
  ISSUER_NOT_NAMED: ['AR-3', 'warning'],
  ISSUER_CHANGED: ['AR-3', 'invalid'],
  ROTATION_INVALID: ['AR-4', 'invalid'],
  DELEGATION_NOT_FOUND: ['AR-5', 'warning', 'the receipt that delegates', 'none in these files'],
  DELEGATION_INVALID: ['AR-5', 'warning'],
  OPERATION_REPEATED: ['AR-6', 'warning', 'one receipt of an operation'],
  AUTHORIZATION_EXPIRED: ['AR-7', 'violation'],
  EVENTS_DROPPED: ['AR-8', 'warning', 'no event that was dropped'],
  CALL_WITHOUT_END: ['AR-8', 'warning', 'how the call ended', 'the last receipt of its chain is pending'],
  TIMESTAMP_NOT_CHECKED: ['AR-9', 'info', undefined, 'a trusted timestamp, which was not checked'],
});

const VC_CONTEXT = 'https://www.w3.org/ns/credentials/v2';
const CONTEXTS: Readonly<Record<string, string>> = {
  '0.5.0': 'https://agentreceipts.ai/context/v2',
  '0.6.0': 'https://agentreceipts.ai/context/v3',
};
const FIRST_CONTEXT = 'https://agentreceipts.ai/context/v1';
const VERSIONS = ['0.1.0', '0.2.0', '0.2.1', '0.3.0', '0.4.0', '0.5.0', '0.6.0'];
/** Of versions before 0.3.0. */
const OLD_TYPE = 'AIActionReceipt';
const PROOF_TYPE = 'Ed25519Signature2020';
const RISKS = ['low', 'medium', 'high', 'critical'] as const;
const STATUSES = ['success', 'failure', 'pending'] as const;

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const RECEIPT_ID = new RegExp(`^urn:receipt:${UUID}$`);
const ACTION_ID = new RegExp(`^act_${UUID}$`);
const HASH = /^sha256:[0-9a-f]{64}$/;
const HASH_WORDS = 'sha256: and 64 lower-case hexadecimal digits';

const SUBJECT = 'credentialSubject';
const ACTION = [SUBJECT, 'action'] as const;
const CHAIN = [SUBJECT, 'chain'] as const;
const ROTATION = [SUBJECT, 'keyRotation'] as const;
const PREVIOUS = [...CHAIN, 'previous_receipt_hash'] as const;

/** The host Agent Receipts. */
export const agentReceipts = receiptHost<AgentReceipt>({
  name: 'agent-receipts',
  title: 'Agent Receipts',
  rules: RULES,
  form: JCS_FORM,
  isOwn,
  read,
  verify,
});

interface AgentReceipt extends Receipt {
  readonly link: ReceiptLink;
  readonly principal: string;
  readonly rotation: SourceObject | undefined;
  readonly isPending: boolean;
}

function isOwn(value: SourceValue): boolean {
  return (
    listAt(value, 'type')?.some((each) => each === 'AgentReceipt' || each === OLD_TYPE) === true ||
    (objectAt(value, ...CHAIN) !== undefined && objectAt(value, ...ACTION) !== undefined)
  );
}

function read({ at, value }: SourceItem, shape: Shape): AgentReceipt | undefined {
  const id = shape.text(['id'], {
    pattern: RECEIPT_ID,
    expected: 'urn:receipt: and a UUID',
    isLoose: true,
  });
  checkEnvelope(shape);
  const issuer = shape.text(['issuer', 'id']);
  shape.optionalTime(['issuanceDate']);
  if (shape.value('issuanceDate') === undefined) shape.malformed(['issuanceDate'], 'a date and time');
  const principal = shape.text([SUBJECT, 'principal', 'id']);
  const actionId = shape.text([...ACTION, 'id'], {
    pattern: ACTION_ID,
    expected: 'act_ and a UUID',
    isLoose: true,
  });
  const type = shape.text([...ACTION, 'type']);
  shape.oneOf([...ACTION, 'risk_level'], RISKS);
  const time = shape.time([...ACTION, 'timestamp']);
  if (type === 'unknown') shape.text([...ACTION, 'target', 'system'], { expected: "the tool's own name" });
  const params = shape.optionalText([...ACTION, 'parameters_hash'], { pattern: HASH, expected: HASH_WORDS });
  const status = shape.oneOf([SUBJECT, 'outcome', 'status'], STATUSES);
  checkAuthorization(shape, time);
  const link = readLink(shape);
  const stripped = withoutNulls(value) as SourceObject;
  const hasNulls = hasOtherNulls(value);
  if (hasNulls) shape.unusual([SUBJECT], 'no member that is null but previous_receipt_hash', 'others');
  const signatures = readProof(shape, issuer ?? '', hasNulls ? stripped : undefined);
  const hashed = jcsBytes(stripped.without('proof'));
  if (id === undefined || issuer === undefined || principal === undefined || actionId === undefined)
    return undefined;
  if (type === undefined || time === undefined || link === undefined || hashed === undefined)
    return undefined;
  const rotation = objectAt(value, ...ROTATION);
  if (rotation === undefined && (valueAt(value, ...ROTATION) ?? null) !== null)
    shape.malformed(ROTATION, 'an object');
  if ((valueAt(value, ...ACTION, 'trusted_timestamp') ?? null) !== null)
    shape.find(finding('TIMESTAMP_NOT_CHECKED', shape.place([...ACTION, 'trusted_timestamp'])));
  const dropped = numberAt(value, ...ACTION, 'emitter_metadata', 'drop_count');
  if (dropped !== undefined && Number(dropped) > 0)
    shape.find(
      finding('EVENTS_DROPPED', shape.place([...ACTION, 'emitter_metadata']), { about: id, actual: dropped }),
    );
  const key = textAt(value, ...ACTION, 'idempotency_key');
  return {
    at,
    value,
    id,
    issuer,
    type: 'receipt',
    occurredAt: time,
    principalId: principalOf('agent', 'agent-receipts', issuer),
    digest: hashText(hashed),
    signatures,
    link,
    principal,
    rotation,
    isPending: status === 'pending',
    facts: factsOf(value, link),
    ...(rotation === undefined
      ? {
          action: {
            callIds: [actionId, id, ...(key === undefined ? [] : [key])],
            tool: toolOf(value, type),
            paramsDigest: params === undefined ? undefined : digestOfHex(params),
            outcome: status === 'pending' ? 'unknown' : status,
          },
        }
      : {}),
  };
}

/** The tool's own name where the receipt states it; else the kind of action. */
function toolOf(value: SourceValue, type: string): string {
  const system = type === 'unknown' ? textAt(value, ...ACTION, 'target', 'system') : undefined;
  return textAt(value, ...ACTION, 'tool_name') ?? system ?? type;
}

function checkEnvelope(shape: Shape): void {
  const types = listAt(shape.value(), 'type') ?? [];
  const isOld = types[1] === OLD_TYPE;
  if (types.length !== 2 || types[0] !== 'VerifiableCredential' || (types[1] !== 'AgentReceipt' && !isOld))
    shape.malformed(['type'], 'VerifiableCredential, AgentReceipt');
  const version = shape.text(['version'], { pattern: /^0\.\d{1,4}\.\d{1,4}$/, expected: 'a version 0.x.y' });
  const isKnown = VERSIONS.includes(version ?? '');
  if (isOld && !/^0\.[12]\./.test(version ?? '')) shape.malformed(['type', '1'], 'AgentReceipt');
  if (version !== undefined && !isKnown)
    shape.find(finding('VERSION_UNKNOWN', shape.place(['version']), { actual: version }));
  const contexts = listAt(shape.value(), '@context') ?? [];
  if (contexts[0] !== VC_CONTEXT) shape.malformed(['@context'], VC_CONTEXT);
  const own = CONTEXTS[version ?? ''] ?? FIRST_CONTEXT;
  if (isKnown && contexts[1] !== own) shape.unusual(['@context', '1'], own, 'another context');
}

function checkAuthorization(shape: Shape, time: string | undefined): void {
  const path = [SUBJECT, 'authorization'];
  if ((shape.value(...path) ?? null) === null) return;
  const expires = shape.value(...path, 'expires_at');
  const end = typeof expires === 'string' ? shape.time([...path, 'expires_at']) : undefined;
  if (time !== undefined && end !== undefined && compareTimestamps(time, end) > 0)
    shape.find(
      finding('AUTHORIZATION_EXPIRED', shape.place([...path, 'expires_at']), {
        expected: `an action by ${end}`,
        actual: time,
      }),
    );
}

function readLink(shape: Shape): ReceiptLink | undefined {
  const chain = shape.text([...CHAIN, 'chain_id']);
  const sequence = shape.whole([...CHAIN, 'sequence']);
  const previous = shape.value(...PREVIOUS);
  if (previous !== null && (typeof previous !== 'string' || !HASH.test(previous))) {
    shape.malformed(PREVIOUS, `null, or ${HASH_WORDS}`);
    return undefined;
  }
  const terminal = shape.value(...CHAIN, 'terminal') ?? undefined;
  if (terminal !== undefined && terminal !== true)
    shape.malformed([...CHAIN, 'terminal'], 'true, or nothing');
  const status = shape.value(...CHAIN, 'status') ?? undefined;
  if (status !== undefined && terminal !== true) shape.malformed([...CHAIN, 'status'], 'nothing');
  else if (status !== undefined) shape.oneOf([...CHAIN, 'status'], ['complete', 'interrupted']);
  if (chain === undefined || sequence === undefined) return undefined;
  return { chain, sequence, previous, isLast: terminal === true, pointer: `/${PREVIOUS.join('/')}` };
}

/** @param stripped - The receipt without members that are null, where it has any that are not to be there. */
function readProof(
  shape: Shape,
  issuer: string,
  stripped: SourceObject | undefined,
): readonly ReceiptSignature[] {
  if ((shape.value('proof') ?? null) === null) return [];
  const type = shape.text(['proof', 'type']);
  if (type !== undefined && type !== PROOF_TYPE)
    shape.find(finding('PROOF_TYPE', shape.place(['proof', 'type']), { actual: type }));
  shape.oneOf(['proof', 'proofPurpose'], ['assertionMethod']);
  shape.time(['proof', 'created']);
  const method = shape.text(['proof', 'verificationMethod']);
  const text = shape.text(['proof', 'proofValue']);
  const bytes = text?.startsWith('u') === true ? signatureBytes(text.slice(1)) : undefined;
  if (text !== undefined && bytes === undefined)
    shape.malformed(['proof', 'proofValue'], 'u and 64 bytes in base64url');
  const signed = shape.value() as SourceObject;
  const message = jcsBytes(signed.without('proof'));
  const other = stripped === undefined ? undefined : jcsBytes(stripped.without('proof'));
  if (bytes === undefined || message === undefined || method === undefined) return [];
  const did = method.split('#', 1)[0]!;
  // A key under another name than the issuer's says nothing of the issuer.
  const isIssuers = did === issuer;
  if (!isIssuers)
    shape.find(
      finding('ISSUER_NOT_NAMED', shape.place(['proof', 'verificationMethod']), {
        expected: `a key of ${issuer}`,
        actual: method,
      }),
    );
  return [
    {
      alg: 'ed25519',
      message,
      alternatives: other === undefined ? [] : [other],
      bytes,
      keyNames: isIssuers ? [method, issuer] : [issuer],
      bound: isIssuers && /^did:(?:key|jwk):/.test(issuer) ? tryKey(issuer) : undefined,
      pointer: '/proof/proofValue',
    },
  ];
}

/** Without members that are null, but for the one that must be there. */
function withoutNulls(value: SourceValue, path = ''): SourceValue {
  if (Array.isArray(value))
    return (value as readonly SourceValue[]).map((each) => withoutNulls(each, `${path}/-`));
  if (!(value instanceof SourceObject)) return value;
  const members = value.entries().flatMap(([name, member]): [string, SourceValue][] => {
    const own = `${path}/${name}`;
    return member === null && own !== REQUIRED_NULL ? [] : [[name, withoutNulls(member, own)]];
  });
  return new SourceObject(new Map(members));
}

const REQUIRED_NULL = `/${PREVIOUS.join('/')}`;

function hasOtherNulls(value: SourceValue, path = ''): boolean {
  if (Array.isArray(value))
    return (value as readonly SourceValue[]).some((each) => hasOtherNulls(each, `${path}/-`));
  if (!(value instanceof SourceObject)) return false;
  return value.entries().some(([name, member]) => {
    const own = `${path}/${name}`;
    return (member === null && own !== REQUIRED_NULL) || hasOtherNulls(member, own);
  });
}

/** Chains one by one, each in its order, under the key that is active there. */
function verify(receipts: readonly AgentReceipt[], verification: Verification): void {
  const digests = digestsOf(receipts);
  for (const chain of chainsOf(receipts).values()) {
    let active: PublicKey | undefined;
    const [first] = chain;
    for (const receipt of chain) {
      const key = verification.verify(receipt, active);
      if (receipt.issuer !== first!.issuer)
        verification.find(
          receipt,
          finding('ISSUER_CHANGED', receipt.at, { expected: first!.issuer, actual: receipt.issuer }),
        );
      if (receipt.rotation !== undefined) active = rotate(receipt, key, verification) ?? active;
    }
    checkChain(chain, verification, { first: 1n }, digests);
    checkEnd(chain, verification);
    checkOperations(chain, verification);
  }
  checkDelegations(receipts, verification);
}

/** The key that a receipt hands over to; undefined where it does not. @param key - The one that it is signed by. */
function rotate(
  receipt: AgentReceipt,
  key: PublicKey | undefined,
  verification: Verification,
): PublicKey | undefined {
  if (key === undefined) return undefined;
  const { rotation, at } = receipt;
  const refuse = (name: string, expected: string, actual: string): undefined => {
    const pointer = `${at.pointer ?? ''}/${ROTATION.join('/')}/${name}`;
    verification.find(receipt, finding('ROTATION_INVALID', { ...at, pointer }, { expected, actual }));
    return undefined;
  };
  const constants = {
    event_type: 'key_rotated',
    signed_with: 'old',
    old_algorithm: 'ed25519',
    new_algorithm: 'ed25519',
    old_key_fingerprint: fingerprintOf(key.bytes),
  };
  for (const [name, expected] of Object.entries(constants)) {
    const actual = textAt(rotation, name);
    if (actual !== expected) return refuse(name, expected, actual ?? 'no text');
  }
  const text = textAt(rotation, 'new_public_key') ?? '';
  const bytes = /^u[A-Za-z0-9_-]{43}$/.test(text) ? tryDecodeBase64url(text.slice(1)) : undefined;
  if (bytes === undefined || checkPublicKey({ alg: 'ed25519', bytes }) !== 'ok')
    return refuse('new_public_key', 'u and a usable Ed25519 key in base64url', text);
  const stated = textAt(rotation, 'new_key_fingerprint');
  if (stated !== fingerprintOf(bytes))
    return refuse('new_key_fingerprint', fingerprintOf(bytes), stated ?? 'no text');
  return makePublicKey('ed25519', bytes);
}

function fingerprintOf(bytes: Uint8Array): string {
  return `sha256:${encodeHex(sha256(bytes))}`;
}

function checkEnd(chain: readonly AgentReceipt[], verification: Verification): void {
  const last = chain.at(-1)!;
  if (last.isPending && last.link.isLast !== true)
    verification.find(last, finding('CALL_WITHOUT_END', last.at));
}

function checkOperations(chain: readonly AgentReceipt[], verification: Verification): void {
  const byKey = new Map<string, AgentReceipt[]>();
  for (const receipt of chain) {
    const key = textAt(receipt.value, ...ACTION, 'idempotency_key');
    if (key !== undefined) addTo(byKey, key, receipt);
  }
  for (const [key, [first, second, ...more]] of byKey) {
    if (second === undefined) continue;
    const details = { about: key, actual: `${more.length + 2}`, related: [first!.at] };
    verification.find(second, finding('OPERATION_REPEATED', second.at, details));
  }
}

function checkDelegations(receipts: readonly AgentReceipt[], verification: Verification): void {
  const byId = new Map(receipts.map((receipt) => [receipt.id, receipt]));
  const told = new Set<string>();
  for (const receipt of receipts) {
    const delegation = objectAt(receipt.value, SUBJECT, 'delegation');
    if (delegation === undefined || told.has(receipt.link.chain)) continue;
    told.add(receipt.link.chain);
    const parent = byId.get(textAt(delegation, 'parent_receipt_id') ?? '');
    if (parent?.link.chain !== textAt(delegation, 'parent_chain_id') || parent === undefined) {
      verification.find(receipt, finding('DELEGATION_NOT_FOUND', receipt.at));
      continue;
    }
    const by = textAt(delegation, 'delegator', 'id') ?? 'nobody';
    const [expected, actual] =
      parent.issuer === by ? [parent.principal, receipt.principal] : [parent.issuer, by];
    if (expected !== actual)
      verification.find(receipt, finding('DELEGATION_INVALID', receipt.at, { expected, actual }));
  }
}

function factsOf(value: SourceValue, { chain, sequence, previous }: ReceiptLink): JsonObject {
  const facts: Record<string, JsonObject | string> = {
    version: factText(textAt(value, 'version') ?? ''),
    issuer: factTexts(['id', 'name', 'model', 'session_id'], (name) => textAt(value, 'issuer', name)),
    on_behalf_of: factTexts(['id', 'type'], (name) => textAt(value, SUBJECT, 'principal', name)),
    action: {
      ...factTexts(['id', 'type', 'tool_name', 'risk_level', 'parameters_hash', 'idempotency_key'], (name) =>
        textAt(value, ...ACTION, name),
      ),
      ...factTexts(['system', 'resource'], (name) => textAt(value, ...ACTION, 'target', name)),
    },
    outcome: factTexts(['status', 'reversal_of', 'response_hash'], (name) =>
      textAt(value, SUBJECT, 'outcome', name),
    ),
    chain: { chain_id: factText(chain), sequence: sequence.toString(), previous: previous ?? 'none' },
  };
  const issued = timeOfText(textAt(value, 'issuanceDate'));
  if (issued !== undefined) facts['issued_at'] = issued;
  const rotation = objectAt(value, ...ROTATION);
  if (rotation !== undefined)
    facts['key_rotation'] = factTexts(['old_key_fingerprint', 'new_key_fingerprint'], (name) =>
      textAt(rotation, name),
    );
  return facts;
}
