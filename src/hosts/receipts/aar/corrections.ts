/**
 * Agent Correction Records (ACR) 1.0, an extension of Agent Action Receipts: what an agent did, what it later says was wrong with it, and
 * what it does not know. A correction names the record that it amends by its id and by the digest of that record, signature included.
 */

import { sha256Base64url } from '../../../base/bytes/sha256.js';
import type { SourceValue } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import { compareTimestamps } from '../../../base/value/timestamp.js';
import { jcsBytes } from '../../shared/forms/jcs.js';
import { hashText } from '../../shared/forms/stable.js';
import type { SourceItem } from '../../shared/host.js';
import { factText, factTexts, principalOf } from '../../shared/names.js';
import { addTo, objectAt, textAt, valueAt } from '../../shared/values.js';
import type { Receipt, ReceiptAction } from '../receipt.js';
import type { Shape } from '../shape.js';
import type { Verification } from '../verification.js';
import { finding } from './rules.js';
import { readSignature, sha256Of } from './signature.js';

/** The first draft took the form of AAR; later ones name RFC 8785, over the record with an empty `sig`. */
const CANONICALIZATIONS = {
  RFC8785: { hasEmptySig: true },
  'JCS-SORTED-UTF8-NOWS': { hasEmptySig: false },
};
const TRIGGERS = ['supersede', 'check_failed', 'human_flagged', 'self_correction'] as const;
const FIXES = ['replace', 'delete', 'rollback', 'noop', 'other'] as const;
const HASHES = ['sha256', 'sha384', 'sha512', 'blake3'] as const;
/** Of receipts with the same id, so many are named in a finding. */
const MAX_RELATED = 3;
const CORRECTED = ['supersedes', 'digest'] as const;

type Kind = 'action' | 'correction' | 'unknown';

/** Whether a value looks like a record of an agent's corrections. */
export function isCorrection(value: SourceValue): boolean {
  return (
    textAt(value, 'correctionId') !== undefined &&
    objectAt(value, 'agent') !== undefined &&
    (objectAt(value, 'signature') !== undefined || objectAt(value, 'supersedes') !== undefined)
  );
}

export function readCorrection({ at, value }: SourceItem, shape: Shape): Receipt | undefined {
  const id = shape.text(['correctionId']);
  const agent = shape.text(['agent', 'id']);
  shape.text(['principal', 'id']);
  shape.text(['principal', 'type']);
  const time = shape.time(['timestamp']);
  const kind = kindOf(shape);
  if (kind === 'unknown') {
    shape.text(['subject']);
    for (const name of ['action', 'fix', 'supersedes'])
      if (shape.value(name) !== undefined) shape.malformed([name], 'no such member');
  } else checkAmendment(shape, kind);
  const signatures = readSignature(shape, agent ?? '', CANONICALIZATIONS);
  if (shape.value('metadata') !== undefined) shape.object(['metadata']);
  if (id === undefined || agent === undefined || time === undefined) return undefined;
  return {
    at,
    value,
    id,
    issuer: agent,
    type: kind,
    occurredAt: time,
    principalId: principalOf('agent', 'aar', agent),
    digest: hashText(jcsBytes(value)!),
    signatures,
    facts: factsOf(value),
    ...(kind === 'action' ? { action: actionOf(value, id) } : {}),
  };
}

function kindOf(shape: Shape): Kind {
  const own = shape.value('supersedes') === undefined ? 'action' : 'correction';
  const stated = shape.value('kind');
  if (stated === 'unknown') return stated;
  if (stated !== undefined && stated !== own) shape.malformed(['kind'], `${own}, or nothing`);
  return own;
}

function checkAmendment(shape: Shape, kind: Kind): void {
  shape.text(['action', 'type']);
  shape.oneOf(['trigger'], TRIGGERS);
  shape.oneOf(['fix', 'type'], FIXES);
  // An action was not corrected yet, and has no reason.
  if (kind === 'correction' || shape.value('reason') !== '') shape.text(['reason']);
  if (kind === 'action') return;
  const named = shape.text(['supersedes', 'receiptId']);
  if (named !== undefined && named === shape.value('correctionId'))
    shape.malformed(['supersedes', 'receiptId'], 'another record');
  const alg = shape.oneOf([...CORRECTED, 'alg'], HASHES);
  const digest = shape.text([...CORRECTED, 'digest']);
  if (alg === 'sha256' && digest !== undefined && sha256Of(digest) === undefined)
    shape.malformed([...CORRECTED, 'digest'], 'a SHA-256 in base64url');
}

/** Records that corrections name by one id. Those that are broken are none: whoever adds one must not break what corrects another. */
interface Amended {
  /** By the digest of the whole record. */
  readonly byDigest: Map<string, Receipt>;
  /** By the agent: the digests of its records. */
  readonly byAgent: Map<string, { readonly digest: string; readonly at: Receipt['at'] }[]>;
}

/** Holds each correction to the record that it names, wherever in the files it is. */
export function checkCorrections(receipts: readonly Receipt[], verification: Verification): void {
  const corrections = receipts.filter(({ type }) => type === 'correction');
  const records = new Map<string, Amended>();
  for (const { value } of corrections)
    records.set(namedBy(value), { byDigest: new Map(), byAgent: new Map() });
  for (const record of receipts) {
    const amended = records.get(record.id);
    if (amended === undefined || verification.of(record).standing === 'broken') continue;
    const digest = sha256Base64url(jcsBytes(record.value)!);
    amended.byDigest.set(digest, record);
    addTo(amended.byAgent, record.issuer, { digest, at: record.at });
  }
  for (const receipt of corrections) {
    const { byDigest, byAgent } = records.get(namedBy(receipt.value))!;
    const at = { ...receipt.at, pointer: `${receipt.at.pointer ?? ''}/${CORRECTED.join('/')}` };
    const own = byAgent.get(receipt.issuer);
    const isSha256 = valueAt(receipt.value, ...CORRECTED, 'alg') === 'sha256';
    const stated = sha256Of(textAt(receipt.value, ...CORRECTED, 'digest') ?? '')?.b64;
    const record = isSha256 ? byDigest.get(stated ?? '') : undefined;
    if (record !== undefined) {
      checkOrder(receipt, record, verification);
      const before = verification.correctionOf(record);
      const related = [record.at, ...(before === undefined ? [] : [before.at])];
      if (before !== undefined) verification.find(receipt, finding('CORRECTED_TWICE', at, { related }));
      else if (verification.of(receipt).standing !== 'broken') verification.noteCorrection(record, receipt);
    } else if (own === undefined) verification.find(receipt, finding('CORRECTED_NOT_GIVEN', at));
    else if (!isSha256) verification.find(receipt, finding('CORRECTED_NOT_CHECKED', at));
    else {
      const some = own.slice(0, MAX_RELATED);
      const expected = some.map(({ digest }) => digest).join(' or ');
      const related = some.map((each) => each.at);
      verification.find(receipt, finding('CORRECTED_MISMATCH', at, { expected, actual: stated, related }));
    }
  }
}

function namedBy(correction: SourceValue): string {
  return textAt(correction, 'supersedes', 'receiptId') ?? '';
}

/** A correction is by whoever wrote the record, and not before it. */
function checkOrder(correction: Receipt, record: Receipt, verification: Verification): void {
  const related = [record.at];
  if (record.issuer !== correction.issuer) {
    const at = { ...correction.at, pointer: `${correction.at.pointer ?? ''}/agent/id` };
    const [expected, actual] = [record.issuer, correction.issuer];
    verification.find(correction, finding('CORRECTED_BY_OTHER', at, { expected, actual, related }));
  }
  if (compareTimestamps(correction.occurredAt!, record.occurredAt!) < 0) {
    const at = { ...correction.at, pointer: `${correction.at.pointer ?? ''}/timestamp` };
    const [expected, actual] = [`not before ${record.occurredAt!}`, correction.occurredAt!];
    verification.find(correction, finding('CORRECTED_BEFORE', at, { expected, actual, related }));
  }
}

/** How it ended is nothing that it says. */
function actionOf(value: SourceValue, id: string): ReceiptAction {
  const isSha256 = textAt(value, 'metadata', 'inputHash', 'alg') === 'sha256';
  const input = isSha256 ? textAt(value, 'metadata', 'inputHash', 'digest') : undefined;
  return {
    callIds: [id],
    tool: textAt(value, 'action', 'type'),
    paramsDigest: input === undefined ? undefined : sha256Of(input),
    outcome: 'unknown',
  };
}

function factsOf(value: SourceValue): JsonObject {
  const amended = textAt(value, 'supersedes', 'receiptId');
  return {
    ...factTexts(['name', 'version'], (name) => textAt(value, 'agent', name)),
    agent: factText(textAt(value, 'agent', 'id') ?? ''),
    on_behalf_of: factTexts(['id', 'type'], (name) => textAt(value, 'principal', name)),
    action: factTexts(['type', 'target'], (name) => textAt(value, 'action', name)),
    ...factTexts(['trigger'], (name) => textAt(value, name)),
    fix: factTexts(['type'], (name) => textAt(value, 'fix', name)),
    ...(amended === undefined
      ? {}
      : {
          corrects: {
            receipt_id: factText(amended),
            ...factTexts(['alg', 'digest'], (name) => textAt(value, ...CORRECTED, name)),
          },
        }),
  };
}
