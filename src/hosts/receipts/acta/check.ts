/**
 * Whether an Acta receipt holds, as draft-farley-acta-signed-receipts-04 has it: its shape decides what is signed, its key comes from
 * outside it, and three outcomes are kept apart. An envelope is signed over the RFC 8785 form of its payload; a flat receipt over the form
 * of itself without `signature`.
 */

import { encodeHex, tryDecodeHex } from '../../../base/bytes/encoding.js';
import { printable } from '../../../base/bytes/printable.js';
import { sha256 } from '../../../base/bytes/sha256.js';
import { SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import { compareTimestamps } from '../../../base/value/timestamp.js';
import { jcsBytes, roundedAt } from '../../shared/forms/jcs.js';
import { objectAt, textAt, timeOfText, valueAt } from '../../shared/values.js';
import type { ValueFault } from '../../../base/fault.js';
import { fault } from '../shape.js';

/** What keeps a receipt from holding, or from being decided. */
export type ActaFault = ValueFault<
  | 'SHAPE_UNKNOWN'
  | 'SIGNATURE_MISSING'
  | 'ALGORITHM_UNSUPPORTED'
  | 'NUMBER_NOT_EXACT'
  | 'FIELD_MISSING'
  | 'SIGNATURE_IN_PAYLOAD'
  | 'ISSUER_MISMATCH'
  | 'SIGNATURE_ENCODING'
>;

/** Faults by which nothing is shown about a receipt: the check could not run. */
const UNDECIDABLE: readonly ActaFault['code'][] = [
  'SHAPE_UNKNOWN',
  'SIGNATURE_MISSING',
  'ALGORITHM_UNSUPPORTED',
];

/** Whether a fault leaves a receipt undecided, neither authentic nor rejected. */
export function isUndecidable({ code }: ActaFault): boolean {
  return UNDECIDABLE.includes(code);
}

export interface ActaReceipt {
  readonly shape: 'envelope' | 'flat';
  /** Where what is decided stands: the payload, or a flat receipt itself. */
  readonly body: SourceObject;
  readonly message: Uint8Array;
  /** What it may be over instead. */
  readonly alternatives?: readonly Uint8Array[];
  readonly signature: Uint8Array;
  readonly alg: 'ed25519' | 'p256';
  /** Absent of flat receipts that name none. */
  readonly kid: string | undefined;
}

const ALGORITHMS: Readonly<Record<string, ActaReceipt['alg']>> = {
  eddsa: 'ed25519',
  ed25519: 'ed25519',
  es256: 'p256',
};

/** The receipt, or what keeps it from being looked at. */
export function readActaReceipt(receipt: SourceObject): ActaReceipt | ActaFault {
  const signature = valueAt(receipt, 'signature');
  if (signature === undefined || signature === null || signature === '')
    return fault('SIGNATURE_MISSING', '/signature', 'a signature', 'none');
  if (signature instanceof SourceObject) return readEnvelope(receipt, signature);
  return typeof signature === 'string' ? readFlat(receipt, signature) : shapeFault('');
}

/** Exactly two members; the algorithm and the key's id are covered by no signature. */
function readEnvelope(receipt: SourceObject, signature: SourceObject): ActaReceipt | ActaFault {
  const body = objectAt(receipt, 'payload');
  if (body === undefined || receipt.keys().length !== 2) return shapeFault('');
  const [alg, kid, sig] = ['alg', 'kid', 'sig'].map((name) => textAt(signature, name));
  if (!alg || !kid || !sig || signature.keys().length !== 3) return shapeFault('/signature');
  const missing = ['type', 'issued_at', 'issuer_id'].find((name) => textAt(body, name) === undefined);
  if (missing !== undefined) return fault('FIELD_MISSING', `/payload/${missing}`, 'a text', 'none');
  if (body.has('signature'))
    return fault('SIGNATURE_IN_PAYLOAD', '/payload/signature', 'no such member', 'one');
  if (textAt(body, 'issuer_id') !== kid) {
    const actual = printable(textAt(body, 'issuer_id')!, 80);
    return fault('ISSUER_MISMATCH', '/payload/issuer_id', `the kid, ${printable(kid, 80)}`, actual);
  }
  const own = { shape: 'envelope', body, kid } as const;
  return prove(own, body, alg === 'EdDSA' || alg === 'ES256' ? alg : undefined, alg, sig, '/signature/sig');
}

/** With a payload of its own it is the structured form, which says so by its version. */
function readFlat(receipt: SourceObject, sig: string): ActaReceipt | ActaFault {
  const payload = objectAt(receipt, 'payload');
  const version = valueAt(receipt, 'v');
  const isStructured =
    payload !== undefined && textAt(receipt, 'type') !== undefined && version !== undefined;
  if (receipt.has('payload') && !isStructured) return shapeFault('');
  if (textAt(receipt, 'type') === undefined && textAt(receipt, 'receipt_id') === undefined)
    return shapeFault('');
  const own = {
    shape: 'flat',
    body: payload ?? receipt,
    kid: textAt(receipt, 'kid'),
  } as const;
  const alg = textAt(receipt, 'algorithm') ?? textAt(receipt, 'alg') ?? 'ed25519';
  const unsigned = receipt.without('signature');
  const proof = prove(own, unsigned, alg, alg, sig, '/signature');
  if ('code' in proof || !isDefenseClaw(receipt)) return proof;
  return { ...proof, alternatives: [jcsBytes(unsigned.without('public_key'))!] };
}

/**
 * The profile of DefenseClaw signs before it adds `public_key`. No signature covers that member, so it may be nothing but the one spelling of
 * an Ed25519 key, which is held to the key that the signature is by: any other text would be a stranger's, in a receipt that is verified.
 */
function isDefenseClaw(receipt: SourceObject): boolean {
  const isKey = /^[0-9a-f]{64}$/.test(textAt(receipt, 'public_key') ?? '');
  return isKey && receipt.has('previous_receipt_hash') && !receipt.has('payload');
}

function prove(
  own: Pick<ActaReceipt, 'shape' | 'body' | 'kid'>,
  signed: SourceObject,
  named: string | undefined,
  shown: string,
  sig: string,
  pointer: string,
): ActaReceipt | ActaFault {
  const alg = named === undefined ? undefined : ALGORITHMS[named.toLowerCase()];
  if (alg === undefined)
    return fault('ALGORITHM_UNSUPPORTED', '/signature', 'EdDSA or ES256', printable(shown, 40));
  const rounded = roundedAt(signed);
  if (rounded !== undefined)
    return fault('NUMBER_NOT_EXACT', rounded, 'a number that a double holds exactly', 'another');
  const signature = /^[0-9a-f]{128}$/.test(sig) ? tryDecodeHex(sig) : undefined;
  if (signature === undefined)
    return fault('SIGNATURE_ENCODING', pointer, '64 bytes in lower-case hexadecimal', printable(sig, 40));
  return { ...own, message: jcsBytes(signed)!, signature, alg };
}

/** Names under which receipts carry a key of their own. */
const EMBEDDED = ['public_key', 'verification_key', 'verification_jwk', 'pubkey'];

/** Keys that a receipt carries itself, which prove nothing: as texts, and as JSON Web Keys. */
export function embeddedKeys(receipt: SourceObject): readonly SourceValue[] {
  const holders = [receipt, objectAt(receipt, 'payload')].filter((each) => each !== undefined);
  return holders.flatMap((each) =>
    EMBEDDED.flatMap((name) => {
      const value = each.get(name);
      return typeof value === 'string' || value instanceof SourceObject ? [value] : [];
    }),
  );
}

/** How the time of issue stands to what a key set says of its key. */
export type WindowState = 'inside' | 'outside' | 'not_stated' | 'not_applicable';

/** From `valid_from`, included, to `valid_until`, excluded; an absent bound is open. */
export function windowOf(jwk: SourceObject | undefined, issued: string | undefined): WindowState {
  if (jwk === undefined || !(jwk.has('valid_from') || jwk.has('valid_until'))) return 'not_stated';
  const [from, until] = ['valid_from', 'valid_until'].map((name) =>
    jwk.has(name) ? { at: instantIn(textAt(jwk, name)) } : undefined,
  );
  const issuedAt = instantIn(issued);
  if (issuedAt === undefined || (from && from.at === undefined) || (until && until.at === undefined))
    return 'not_applicable';
  const [least, most] = [from?.at, until?.at];
  const isBefore = (one: string, other: string): boolean => compareTimestamps(one, other) < 0;
  if (least !== undefined && most !== undefined && !isBefore(least, most)) return 'not_applicable';
  const isOutside =
    (least !== undefined && isBefore(issuedAt, least)) || (most !== undefined && !isBefore(issuedAt, most));
  return isOutside ? 'outside' : 'inside';
}

/** Whether a key set says that its key was revoked when a receipt was issued. */
export function isRevokedAt(jwk: SourceObject | undefined, issued: string | undefined): boolean {
  const [revoked, at] = [instantIn(textAt(jwk, 'revoked_at')), instantIn(issued)];
  return revoked !== undefined && at !== undefined && compareTimestamps(at, revoked) >= 0;
}

/** The links to it that a receipt's successor may have: of the whole receipt, and, as before revision 03, of its payload. */
export function linksTo(
  receipt: SourceObject,
): { readonly whole: string; readonly payload: string } | undefined {
  const [whole, payload] = [receipt, objectAt(receipt, 'payload') ?? receipt].map((each) => jcsBytes(each));
  if (whole === undefined || payload === undefined) return undefined;
  return { whole: encodeHex(sha256(whole)), payload: encodeHex(sha256(payload)) };
}

/** A date and time with an offset, as a Timestamp. */
function instantIn(text: string | undefined): string | undefined {
  return text !== undefined && /(?:[Zz]|[+-]\d\d:\d\d)$/.test(text) ? timeOfText(text) : undefined;
}

function shapeFault(pointer: string): ActaFault {
  const expected = 'payload and signature {alg, kid, sig}, or a flat receipt with a signature in hexadecimal';
  return fault('SHAPE_UNKNOWN', pointer, expected, 'another shape');
}
