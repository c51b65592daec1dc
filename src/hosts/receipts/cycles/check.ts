/**
 * Whether a CyclesEvidence envelope holds: its id is the SHA-256 of its RFC 8785 form with `evidence_id` and `signature` empty, its
 * signature is Ed25519 over the form with only `signature` empty, and the key is the one that the server published for that time.
 */

import {
  encodeHex,
  encodeBase64url,
  tryDecodeBase64url,
  tryDecodeHex,
} from '../../../base/bytes/encoding.js';
import { printable } from '../../../base/bytes/printable.js';
import { sha256 } from '../../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import { jcsBytes, roundedAt } from '../../shared/forms/jcs.js';
import { addTo, numberAt, textAt, valueAt } from '../../shared/values.js';
import type { ValueFault } from '../../../base/fault.js';
import { fault } from '../shape.js';

/** What keeps an envelope from holding. */
export type CyclesFault = ValueFault<'NUMBER_NOT_EXACT' | 'EVIDENCE_ID_MISMATCH' | 'SIGNER_NOT_AUTHORIZED'>;

const DID = /^did:cycles:([0-9a-f]{64})#(.+)$/s;
const KEY_LENGTH = 32;

/** What the signature of an envelope is over, and the signature; a fault where the id is not that of the content. */
export function readCyclesProof(
  envelope: SourceObject,
): { readonly message: Uint8Array; readonly signature: Uint8Array } | CyclesFault {
  const rounded = roundedAt(envelope);
  if (rounded !== undefined)
    return fault('NUMBER_NOT_EXACT', rounded, 'a number that a double holds exactly', 'another');
  const stated = textAt(envelope, 'evidence_id') ?? '';
  const own = encodeHex(sha256(formOf(envelope, 'evidence_id', 'signature')));
  if (own !== stated) return fault('EVIDENCE_ID_MISMATCH', '/evidence_id', own, printable(stated, 80));
  const signature = tryDecodeHex(textAt(envelope, 'signature') ?? '') ?? new Uint8Array();
  return { message: formOf(envelope, 'signature'), signature };
}

/** The empty text stands for what is not known yet; nothing is left out. */
function formOf(envelope: SourceObject, ...empty: readonly string[]): Uint8Array {
  const members = envelope
    .entries()
    .map(([name, value]): [string, SourceValue] => [name, empty.includes(name) ? '' : value]);
  // Every number has a form, as none is rounded.
  return jcsBytes(new SourceObject(new Map(members)))!;
}

/** The keys of servers, by the sets that they were published in. */
export class CyclesKeys {
  readonly #sets: readonly { readonly byKid: Index; readonly byKey: Index }[];

  /** @param sets - Those that do not say from when their keys are valid are passed over, and so are malformed members. */
  constructor(sets: readonly (readonly SourceObject[])[]) {
    const own = sets.filter((set) => set.some((jwk) => jwk.has('cycles_nbf_ms')));
    this.#sets = own.map((set) => {
      const byKid: Index = new Map();
      const byKey: Index = new Map();
      // A set that names two keys alike names none.
      const isAmbiguous = new Set(set.map((jwk) => textAt(jwk, 'kid'))).size < set.length;
      for (const jwk of isAmbiguous ? [] : set.filter(isUsable)) {
        addTo(byKid, textAt(jwk, 'kid'), jwk);
        addTo(byKey, textAt(jwk, 'x'), jwk);
      }
      return { byKid, byKey };
    });
  }

  /** Whether no set says from when its keys are valid. */
  get isEmpty(): boolean {
    return this.#sets.length === 0;
  }

  /** The 32 bytes of the key that an envelope names, and the fault where no set has it for the time of issue. */
  select(envelope: SourceObject): { readonly key?: Uint8Array; readonly fault?: CyclesFault } {
    const signer = textAt(envelope, 'signer_did') ?? '';
    const [, hash, kid] = DID.exec(signer) ?? [];
    const raw = hash === undefined ? tryDecodeHex(signer) : undefined;
    const at = '/signer_did';
    const stranger = findStranger(envelope);
    if (stranger !== undefined) return { fault: stranger };
    const issued = wholeIn(envelope, 'issued_at_ms') ?? -1n;
    for (const { byKid, byKey } of this.#sets) {
      const named = raw === undefined ? byKid.get(kid) : byKey.get(encodeBase64url(raw));
      const covering = (named ?? []).filter((jwk) => covers(jwk, issued));
      const [jwk] = covering;
      if (jwk !== undefined && covering.length === 1) return { key: tryDecodeBase64url(textAt(jwk, 'x')!)! };
    }
    const expected = 'one key of the set, valid at issued_at_ms';
    const refused = fault('SIGNER_NOT_AUTHORIZED', at, expected, 'none, or several');
    return raw === undefined ? { fault: refused } : { key: raw, fault: refused };
  }
}

/** The fault of an envelope whose `did:cycles` is that of another server, whatever key it is signed by. */
export function findStranger(envelope: SourceObject): CyclesFault | undefined {
  const [, hash] = DID.exec(textAt(envelope, 'signer_did') ?? '') ?? [];
  if (hash === undefined) return undefined;
  const own = encodeHex(sha256(encodeUtf8(textAt(envelope, 'server_id') ?? '')));
  if (hash === own) return undefined;
  return fault('SIGNER_NOT_AUTHORIZED', '/signer_did', `the SHA-256 of server_id, ${own}`, hash);
}

type Index = Map<string | undefined, SourceObject[]>;

function isUsable(jwk: SourceObject): boolean {
  const alg = valueAt(jwk, 'alg');
  const x = textAt(jwk, 'x') ?? '';
  return (
    valueAt(jwk, 'kty') === 'OKP' &&
    valueAt(jwk, 'crv') === 'Ed25519' &&
    (alg === undefined || alg === 'EdDSA') &&
    x.length <= 64 &&
    tryDecodeBase64url(x)?.length === KEY_LENGTH &&
    wholeIn(jwk, 'cycles_nbf_ms') !== undefined &&
    (isOpen(jwk) || wholeIn(jwk, 'cycles_exp_ms') !== undefined)
  );
}

/** From the first, included, to the last, excluded. */
function covers(jwk: SourceObject, issued: bigint): boolean {
  const until = wholeIn(jwk, 'cycles_exp_ms');
  return wholeIn(jwk, 'cycles_nbf_ms')! <= issued && (until === undefined || issued < until);
}

function isOpen(jwk: SourceObject): boolean {
  const until = valueAt(jwk, 'cycles_exp_ms');
  return until === undefined || until === null;
}

function wholeIn(object: SourceObject, name: string): bigint | undefined {
  const [, digits] = /^(-?\d{1,20})(?:\.0{1,20})?$/.exec(numberAt(object, name) ?? '') ?? [];
  return digits === undefined ? undefined : BigInt(digits);
}
