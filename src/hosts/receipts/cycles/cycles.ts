/** Cycles: signed evidence of decisions on budgets, reservations and what became of them. ../README.md says what becomes of each member. */

import type { SourceObject, SourceValue } from '../../../base/json/source-json.js';
import { tryDecodeHex } from '../../../base/bytes/encoding.js';
import type { JsonObject } from '../../../base/json/value.js';
import { makePublicKey, type PublicKey } from '../../../format/key/public-key.js';
import { JCS_FORM } from '../../shared/forms/jcs.js';
import type { ReceiptFormat } from '../receipt-format.js';
import { tryKey } from '../keys.js';
import { receiptHost } from '../receipt-host.js';
import type { ReceiptAction } from '../receipt.js';
import { placeIn, type Shape } from '../shape.js';
import type { Verification } from '../verification.js';
import type { SourceItem } from '../../shared/host.js';
import { factText, factTexts, principalOf } from '../../shared/names.js';
import { ONE_CALL } from '../../shared/usage.js';
import { numberAt, objectAt, textAt, timeOf, valueAt } from '../../shared/values.js';
import { cyclesAmountAt, metersOfAmount, quantityOfAmount } from './amounts.js';
import { CyclesKeys, findStranger, readCyclesProof } from './check.js';
import { checkSettlements, type CyclesReceipt } from './reservations.js';
import { CYCLES_RULES, finding } from './rules.js';
import { type ArtifactType, findShapeFault } from './shape.js';

const cyclesFormat: ReceiptFormat<CyclesReceipt> = {
  name: 'cycles',
  title: 'Cycles evidence (cycles-evidence/v0.1)',
  rules: CYCLES_RULES,
  form: JCS_FORM,
  lists: ['envelopes', 'evidence'],
  isOwn,
  read,
  verify,
};

/** The host Cycles: signed evidence of budgets. */
export const cycles = receiptHost(cyclesFormat);

function isOwn(value: SourceValue): boolean {
  const version = textAt(value, 'schema_version');
  return version?.startsWith('cycles-evidence/') === true;
}

function read({ at, value }: SourceItem, shape: Shape): CyclesReceipt | undefined {
  const envelope = value as SourceObject;
  const find = (
    code: Parameters<typeof finding>[0],
    { pointer, expected, actual }: { pointer: string; expected: string; actual: string },
  ): undefined => {
    shape.find(finding(code, placeIn(at, pointer), { expected, actual }));
  };
  const fault = findShapeFault(envelope);
  if (fault !== undefined) return find('ENVELOPE_SHAPE', fault);
  const proof = readCyclesProof(envelope);
  if ('code' in proof) return find(proof.code, proof);
  const issuedAt = numberAt(envelope, 'issued_at_ms')!;
  const occurredAt = timeOf(issuedAt, 'ms');
  if (occurredAt === undefined) {
    const [pointer, expected] = ['/issued_at_ms', 'a time before the year 10000'];
    return find('ENVELOPE_SHAPE', { pointer, expected, actual: issuedAt });
  }
  const artifact = textAt(envelope, 'artifact_type') as ArtifactType;
  const payload = objectAt(envelope, 'payload', artifact)!;
  const id = textAt(envelope, 'evidence_id')!;
  const server = textAt(envelope, 'server_id')!;
  const signer = textAt(envelope, 'signer_did')!;
  const parts = partsOf(artifact, payload);
  return {
    at,
    value: envelope,
    id,
    issuer: server,
    type: artifact,
    occurredAt,
    principalId: principalOf('service', 'cycles', server),
    digest: id,
    signatures: [
      {
        alg: 'ed25519',
        message: proof.message,
        bytes: proof.signature,
        keyNames: [server, signer, signer.replace(/^.*#/s, '')],
        stated: keyOfHex(signer),
        pointer: '/signature',
      },
    ],
    facts: factsOf(envelope, artifact, payload, parts),
    action: actionOf(artifact, payload, parts),
    artifact,
    server,
    issuedAt: BigInt(issuedAt.replace(/\..*$/, '')),
    ...parts,
  };
}

/** By the key sets that were given, if any says from when to when its keys are valid; else by a key that was given, or the one stated. */
function verify(receipts: readonly CyclesReceipt[], verification: Verification): void {
  const keys = new CyclesKeys(verification.keySets);
  const pinned = new Set(verification.keySets.flat().flatMap((jwk) => tryKey(jwk)?.keyid ?? []));
  for (const receipt of receipts) {
    const { key, fault } = keys.isEmpty
      ? { key: undefined, fault: findStranger(receipt.value) }
      : keys.select(receipt.value);
    // Whoever is not authorized may have signed all the same: both are told.
    if (fault !== undefined) {
      const { pointer, expected, actual } = fault;
      const place = placeIn(receipt.at, pointer);
      verification.find(receipt, finding(fault.code, place, { expected, actual }));
    }
    if (keys.isEmpty) verifyPinned(receipt, pinned, verification);
    else if (key !== undefined) verification.verify(receipt, makePublicKey('ed25519', key));
  }
  const standing = receipts.filter((receipt) => verification.of(receipt).standing !== 'broken');
  checkSettlements(standing, verification);
}

/**
 * By a key that was given, or the one stated. The key that an envelope names is the one that it is signed by; it names it by the key itself,
 * whatever id a set has it under.
 *
 * @param pinned - The key ids of the sets that were given.
 */
function verifyPinned(receipt: CyclesReceipt, pinned: ReadonlySet<string>, verification: Verification): void {
  const stated = receipt.signatures[0]?.stated;
  const named = stated?.keyid;
  const isPinned = named !== undefined && pinned.has(named);
  const keyid = verification.verify(receipt, isPinned ? stated : undefined)?.keyid;
  if (named === undefined || keyid === undefined || named === keyid) return;
  const place = placeIn(receipt.at, '/signer_did');
  verification.find(receipt, finding('SIGNER_NOT_AUTHORIZED', place, { expected: keyid, actual: named }));
}

type Parts = Pick<CyclesReceipt, 'reservationId' | 'reserved' | 'charged' | 'released'>;

function partsOf(artifact: ArtifactType, payload: SourceObject): Parts {
  const response = objectAt(payload, 'response')!;
  return {
    reservationId: textAt(payload, 'reservation_id') ?? textAt(response, 'reservation_id'),
    reserved:
      artifact === 'reserve'
        ? (cyclesAmountAt(response, 'reserved') ?? cyclesAmountAt(payload, 'request', 'estimate'))
        : undefined,
    charged: cyclesAmountAt(response, 'charged'),
    released: cyclesAmountAt(response, 'released'),
  };
}

const SUBJECT = ['tenant', 'workspace', 'app', 'workflow', 'agent', 'toolset'];

function factsOf(
  envelope: SourceObject,
  artifact: ArtifactType,
  payload: SourceObject,
  { reservationId, charged, released }: Parts,
): JsonObject {
  const request = objectAt(payload, 'request');
  const response = objectAt(payload, 'response');
  const amounts = {
    estimate: artifact === 'error' ? undefined : cyclesAmountAt(payload, 'request', 'estimate'),
    actual: artifact === 'commit' ? cyclesAmountAt(payload, 'request', 'actual') : undefined,
    reserved: artifact === 'reserve' ? cyclesAmountAt(payload, 'response', 'reserved') : undefined,
    charged,
    released,
  };
  return {
    server_id: factText(textAt(envelope, 'server_id')!),
    ...factTexts(['trace_id', 'signer_did'], (name) => textAt(envelope, name)),
    ...(reservationId === undefined ? {} : { reservation_id: factText(reservationId) }),
    ...factTexts(['idempotency_key'], (name) => textAt(request, name)),
    ...factTexts(SUBJECT, (name) => textAt(request, 'subject', name)),
    ...(request?.has('action') === true
      ? { action: factText(`${textAt(request, 'action', 'kind')}/${textAt(request, 'action', 'name')}`) }
      : {}),
    ...(request?.has('dry_run') === true ? { dry_run: valueAt(request, 'dry_run') === true } : {}),
    ...factTexts(['decision', 'reason_code', 'error', 'status', 'scope_path'], (name) =>
      textAt(response, name),
    ),
    amounts: Object.fromEntries(
      Object.entries(amounts).flatMap(([name, amount]) =>
        amount === undefined
          ? []
          : [[name, { unit: metersOfAmount(amount)[0]!.unit, amount: { ...quantityOfAmount(amount) } }]],
      ),
    ),
  };
}

/** A commit says that something was executed, and what it cost; a release that nothing was. */
function actionOf(artifact: ArtifactType, payload: SourceObject, parts: Parts): ReceiptAction | undefined {
  const { reservationId, charged } = parts;
  const kind = textAt(payload, 'request', 'action', 'kind');
  const name = textAt(payload, 'request', 'action', 'name');
  const key = textAt(payload, 'request', 'idempotency_key');
  const ids = [reservationId, key].filter((id) => id !== undefined);
  if (ids.length === 0) return undefined;
  const tool = name === undefined ? undefined : toolNameOf(kind ?? '', name);
  const decision = textAt(payload, 'response', 'decision');
  switch (artifact) {
    case 'decide':
    case 'reserve':
      // What is only tried decides nothing.
      if (valueAt(payload, 'request', 'dry_run') === true) return undefined;
      return { callIds: ids, tool, decision: decision === 'DENY' ? 'deny' : 'allow' };
    case 'commit':
      return {
        callIds: ids,
        outcome: 'unknown',
        meters: [ONE_CALL, ...metersOfAmount(charged)],
      };
    case 'error':
      return textAt(payload, 'endpoint') === 'POST /v1/reservations' ||
        textAt(payload, 'endpoint') === 'POST /v1/decide'
        ? { callIds: ids, tool, decision: 'deny' }
        : undefined;
    case 'release':
      return undefined;
  }
}

/** Calls of models are named as in other sources. */
function toolNameOf(kind: string, name: string): string {
  return /^(?:model|llm)\b/.test(kind) ? `llm.${name}` : name;
}

function keyOfHex(signer: string): PublicKey | undefined {
  const bytes = signer.length === 64 ? tryDecodeHex(signer) : undefined;
  return bytes === undefined ? undefined : makePublicKey('ed25519', bytes);
}
