/** Acta: signed receipts of decisions, as protect-mcp and others write them. ../README.md says what becomes of each member. */

import { SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import { tryDecodeBase58 } from '../../../format/key/base58.js';
import { makePublicKey } from '../../../format/key/public-key.js';
import { JCS_FORM } from '../../shared/forms/jcs.js';
import { tryKey } from '../keys.js';
import type { ReceiptFormat } from '../receipt-format.js';
import { receiptHost } from '../receipt-host.js';
import type { ReceiptAction, ReceiptSignature } from '../receipt.js';
import { placeIn, type Shape } from '../shape.js';
import type { Verification } from '../verification.js';
import type { SourceItem } from '../../shared/host.js';
import { compactJson } from '../../shared/reading.js';
import { factText, factTexts, principalOf, unitOf } from '../../shared/names.js';
import { ONE_CALL } from '../../shared/usage.js';
import { addTo, amountOf, numberAt, objectAt, textAt, timeOfText, valueAt } from '../../shared/values.js';
import { type ActaIssued, checkLinks } from './chains.js';
import {
  type ActaReceipt,
  embeddedKeys,
  isRevokedAt,
  isUndecidable,
  linksTo,
  readActaReceipt,
  windowOf,
} from './check.js';
import { ACTA_RULES, finding } from './rules.js';

/** The format of draft-farley-acta-signed-receipts-04. */
const actaFormat: ReceiptFormat<ActaIssued> = {
  name: 'acta',
  title: 'Acta signed decision receipts',
  rules: ACTA_RULES,
  form: JCS_FORM,
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
  // Types of their own are allowed; they say when, and in which version of the shape.
  const isOther = value.has('v') && TIMES.some((name) => textAt(value, name) !== undefined);
  return (isDecision && value.has('receipt_id')) || ((isDecision || isOther) && value.has('type'));
}

function read({ at, value }: SourceItem, shape: Shape): ActaIssued | undefined {
  const receipt = value as SourceObject;
  const found = readActaReceipt(receipt);
  if (!('code' in found) && found.shape === 'envelope') checkType(shape);
  const isFault = 'code' in found;
  if (isFault && !isUndecidable(found)) {
    const { code, pointer, expected, actual } = found;
    shape.find(finding(code, placeIn(at, pointer), { expected, actual }));
    return undefined;
  }
  const body = isFault ? (objectAt(receipt, 'payload') ?? receipt) : found.body;
  const digest = linksTo(receipt)?.whole ?? '';
  const kid = isFault ? undefined : found.kid;
  const issuer = textAt(body, 'issuer_id') ?? textAt(receipt, 'issuer') ?? kid ?? 'not stated';
  const type = textAt(body, 'type') ?? textAt(receipt, 'type') ?? '';
  const time = [body, receipt].flatMap((each) => TIMES.map((name) => timeOfText(textAt(each, name))));
  return {
    at,
    value: receipt,
    id: textAt(body, 'receipt_id') || digest,
    issuer,
    type: TYPES[type.replace(/^.*:/s, '')] ?? 'receipt',
    occurredAt: time.find((each) => each !== undefined),
    principalId: principalOf('service', 'acta', issuer),
    digest,
    signatures: isFault ? [] : [signatureOf(receipt, found)],
    facts: factsOf(receipt, body, type),
    action: actionOf(body),
    shape: isFault ? 'envelope' : found.shape,
    body,
    fault: isFault ? found : undefined,
  };
}

const TIMES = ['issued_at', 'timestamp'];

/** What a type requires beside what all payloads have: texts, and what its decision is one of. */
const REQUIRED: Readonly<Record<string, readonly [texts: readonly string[], decisions: readonly string[]]>> =
  {
    'protectmcp:decision': [['tool_name'], ['allow', 'deny', 'rate_limit', 'require_approval']],
    'protectmcp:restraint': [
      ['agent_id', 'agent_manifest_version', 'tool_name'],
      ['allow', 'deny'],
    ],
    'scopeblind:spending_authority': [['currency'], ['allow', 'deny']],
  };

/** A payload that is not as its own type has it is invalid, whoever signed it. */
function checkType(shape: Shape): void {
  const type = shape.value('payload', 'type');
  if (typeof type !== 'string' || !Object.hasOwn(REQUIRED, type)) return;
  const [texts, decisions] = REQUIRED[type]!;
  for (const name of texts) shape.text(['payload', name]);
  shape.oneOf(['payload', 'decision'], decisions);
}

function signatureOf(
  receipt: SourceObject,
  { body, kid, alg, message, alternatives, signature, shape }: ActaReceipt,
): ReceiptSignature {
  // The issuer first: of an issuer whose own key was given, a key's id must not name the key of somebody else.
  const names = [textAt(receipt, 'issuer'), textAt(body, 'issuer_id'), kid];
  return {
    alg,
    message,
    alternatives,
    bytes: signature,
    keyNames: names.filter((name) => name !== undefined),
    pointer: shape === 'envelope' ? '/signature/sig' : '/signature',
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
  const judge = new KeyJudge(verification);
  for (const receipt of receipts) {
    if (receipt.fault === undefined) judge.verify(receipt, receipt.signatures[0]!);
    else {
      const { code, pointer, expected, actual } = receipt.fault;
      if (embeddedKeys(receipt.value).length > 0)
        verification.find(receipt, finding('EMBEDDED_KEY', receipt.at));
      verification.undecided(receipt, finding(code, placeIn(receipt.at, pointer), { expected, actual }));
    }
  }
  checkLinks(receipts, verification);
}

/** Verifies signatures, by keys that count, and at times at which they do. */
class KeyJudge {
  readonly #verification: Verification;
  /** By the id of the key. */
  readonly #published = new Map<string, SourceObject[]>();
  /** Whether a key can be used takes long to say, and receipts carry the same one. */
  readonly #carried = new Map<string, readonly string[]>();
  readonly #told = new Set<string>();

  constructor(verification: Verification) {
    this.#verification = verification;
    for (const jwk of verification.keySets.flat()) {
      const keyid = tryKey(jwk)?.keyid;
      if (keyid !== undefined) addTo(this.#published, keyid, jwk);
    }
  }

  verify(receipt: ActaIssued, signature: ReceiptSignature): void {
    const verification = this.#verification;
    const { at, value, body } = receipt;
    const carried = embeddedKeys(value);
    if (carried.length > 0 && verification.keysOf(signature).keys.length === 0)
      verification.find(receipt, finding('EMBEDDED_KEY', at));
    verification.verify(receipt);
    const { standing, keyid } = verification.of(receipt);
    if (standing !== 'vouched' || keyid === undefined) return;
    if (carried.some((each) => !this.#keyidsOf(each).includes(keyid)))
      verification.find(receipt, finding('EMBEDDED_KEY_DIFFERS', at));
    const { keyNames } = signature;
    const own = this.#published.get(keyid) ?? [];
    const jwk = own.find((each) => keyNames.includes(textAt(each, 'kid') ?? '')) ?? own[0];
    const issuedAt = textAt(body, 'issued_at') ?? textAt(value, 'issued_at') ?? textAt(body, 'timestamp');
    const window = windowOf(jwk, issuedAt);
    if (window === 'outside') {
      const [from, until] = ['valid_from', 'valid_until'].map((name) => textAt(jwk, name) ?? 'any time');
      const [expected, actual] = [`from ${from}, before ${until}`, issuedAt];
      verification.find(receipt, finding('KEY_OUTSIDE_WINDOW', at, { expected, actual }));
    } else if (window === 'not_applicable') {
      verification.undecided(receipt, finding('WINDOW_NOT_APPLICABLE', at));
    } else if (isRevokedAt(jwk, issuedAt)) {
      const [expected, actual] = [`before ${textAt(jwk, 'revoked_at')!}`, issuedAt];
      verification.find(receipt, finding('KEY_REVOKED', at, { expected, actual }));
    } else if (window === 'not_stated' && !this.#told.has(keyid)) {
      this.#told.add(keyid);
      verification.find(receipt, finding('WINDOW_NOT_STATED', at, { about: keyNames[0] ?? keyid }));
    }
  }

  /** By every reading: 43 characters may be base64url and base58. */
  #keyidsOf(carried: SourceValue): readonly string[] {
    const text = compactJson(carried);
    let keyids = this.#carried.get(text);
    if (keyids === undefined) {
      const bytes = typeof carried === 'string' ? tryDecodeBase58(carried) : undefined;
      const keys = [tryKey(carried), bytes?.length === 32 ? makePublicKey('ed25519', bytes) : undefined];
      keyids = keys.flatMap((key) => (key === undefined ? [] : [key.keyid]));
      this.#carried.set(text, keyids);
    }
    return keyids;
  }
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
  const [link] = LINKS.map((name) => textAt(body, name) || undefined).filter((each) => each !== undefined);
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

const LINKS = ['previousReceiptHash', 'parent_receipt_hash', 'previous_receipt_hash'];

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
