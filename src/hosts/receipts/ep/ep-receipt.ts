/** EP receipts of the EMILIA protocol. ../README.md says what becomes of each member. */

import { encodeHex } from '../../../base/bytes/encoding.js';
import { sha256 } from '../../../base/bytes/sha256.js';
import type { SourceObject } from '../../../base/json/source-json.js';
import { type SourceValue } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import { makePublicKey } from '../../../format/key/public-key.js';
import type { SourceItem } from '../../shared/host.js';
import { factText, factTexts, principalOf } from '../../shared/names.js';
import { objectAt, textAt, timeOfText } from '../../shared/values.js';
import { spkiKey } from '../keys.js';
import { JCS_FORM } from '../../shared/forms/jcs.js';
import type { ReceiptFormat } from '../receipt-format.js';
import { receiptHost } from '../receipt-host.js';
import type { Receipt, ReceiptAction } from '../receipt.js';
import type { Shape } from '../shape.js';
import type { Verification } from '../verification.js';
import { type EpFault, findAnchorFault, readEpProof } from './check.js';
import { EP_RULES, finding } from './rules.js';

const epReceiptFormat: ReceiptFormat<EpReceipt> = {
  name: 'ep-receipt',
  title: 'EMILIA protocol receipts (EP-RECEIPT-v1)',
  rules: EP_RULES,
  form: JCS_FORM,
  lists: ['documents'],
  isOwn,
  read,
  verify,
};

/** The host EMILIA protocol: signed receipts of authorizations. */
export const epReceipt = receiptHost(epReceiptFormat);

interface EpReceipt extends Receipt {
  readonly value: SourceObject;
  readonly message: Uint8Array;
}

/** Other artifacts of the protocol are of no use, and are told of. */
function isOwn(value: SourceValue): boolean {
  const version = textAt(value, '@version');
  return version?.startsWith('EP-') === true && (value as SourceObject).has('payload');
}

function read({ at, value }: SourceItem, shape: Shape): EpReceipt | undefined {
  const document = value as SourceObject;
  const proof = readEpProof(document);
  if ('code' in proof) {
    shape.find(toFinding(proof, at));
    return undefined;
  }
  const { payload, message, signature } = proof;
  const digest = encodeHex(sha256(message));
  const id = textAt(payload, 'receipt_id') || digest;
  const issuer = textAt(payload, 'issuer') || textAt(payload, 'entity_id') || 'not stated';
  const stated = spkiKey(textAt(document, 'public_key') ?? '');
  // What is signed comes first: a key's id beside the payload is anybody's to write.
  const names = [
    textAt(payload, 'issuer'),
    textAt(payload, 'entity_id'),
    textAt(document, 'signature', 'signer'),
    textAt(document, 'signature', 'key_id'),
  ];
  const time = TIMES.map((name) => timeOfText(textAt(payload, name))).find((each) => each !== undefined);
  return {
    at,
    value: document,
    id,
    issuer,
    type: 'receipt',
    occurredAt: time,
    principalId: principalOf('service', 'ep-receipt', issuer),
    digest,
    signatures: [
      {
        alg: 'ed25519',
        message,
        bytes: signature,
        keyNames: names.filter((name) => name !== undefined),
        stated: stated === undefined ? undefined : makePublicKey('ed25519', stated),
        pointer: '/signature/value',
      },
    ],
    facts: factsOf(document, payload),
    action: actionOf(payload, id),
    message,
  };
}

/** Signature and anchor. */
function verify(receipts: readonly EpReceipt[], verification: Verification): void {
  for (const receipt of receipts) {
    verification.verify(receipt);
    const fault = findAnchorFault(receipt.value, receipt.message);
    if (fault !== undefined) verification.find(receipt, toFinding(fault, receipt.at));
  }
}

function toFinding({ code, pointer, expected, actual }: EpFault, at: SourceItem['at']) {
  return finding(code, { ...at, pointer: `${at.pointer ?? ''}${pointer}` }, { expected, actual });
}

/** The first that is there says when. */
const TIMES = ['issued_at', 'created_at', 'occurred_at', 'timestamp'];

/** Members of a payload, and of its claim, that are kept as texts. */
const FACTS = [
  'issuer',
  'subject',
  'entity_id',
  'action_digest',
  'action_hash',
  'caid',
  'policy_id',
  'status',
];
const CLAIM_FACTS = ['outcome', 'approver'];

function factsOf(document: SourceObject, payload: SourceObject): JsonObject {
  const claim = objectAt(payload, 'claim');
  const action = actionIn(payload);
  const root = textAt(document, 'anchor', 'merkle_root');
  return {
    ...factTexts(FACTS, (name) => textAt(payload, name) || undefined),
    ...factTexts(CLAIM_FACTS, (name) => textAt(claim, name) || textAt(payload, name) || undefined),
    ...(action === undefined ? {} : { action: factText(action) }),
    ...(root === undefined ? {} : { anchor_root: factText(root) }),
  };
}

function actionIn(payload: SourceObject): string | undefined {
  for (const at of [objectAt(payload, 'claim'), objectAt(payload, 'action'), payload]) {
    const action = textAt(at, 'action_type') || textAt(at, 'action');
    if (action) return action;
  }
  return undefined;
}

const ALLOWED = ['allow', 'allowed', 'allow_with_signoff', 'approve', 'approved'];
const DENIED = ['deny', 'denied', 'reject', 'rejected', 'decline', 'declined'];

/** A receipt is of an authorization: that it was executed is nothing that it says. */
function actionOf(payload: SourceObject, id: string): ReceiptAction {
  const outcome =
    textAt(payload, 'claim', 'outcome') ?? textAt(payload, 'outcome') ?? textAt(payload, 'decision');
  const word = outcome?.toLowerCase() ?? '';
  const others = ['request_id', 'call_id', 'nonce'].map((name) => textAt(payload, name) || undefined);
  return {
    callIds: [id, ...others.filter((each) => each !== undefined)],
    tool: actionIn(payload),
    ...(ALLOWED.includes(word) ? { decision: 'allow' as const } : {}),
    ...(DENIED.includes(word) ? { decision: 'deny' as const } : {}),
  };
}
