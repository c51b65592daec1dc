/** Signatures and digests as Agent Action Receipts and the correction records on top of them have them. */

import { tryDecodeBase64url } from '../../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import type { Digest } from '../../../base/value/digest.js';
import { jcsBytes, jcsText } from '../../shared/forms/jcs.js';
import { stableText } from '../../shared/forms/stable.js';
import { textAt } from '../../shared/values.js';
import { digestOfHex, signatureBytes } from '../encodings.js';
import { tryEd25519Text } from '../keys.js';
import type { ReceiptSignature } from '../receipt.js';
import { finding } from '../rules.js';
import type { Shape } from '../shape.js';

const ALGORITHM = 'Ed25519';

/** What `signature.canonicalization` may say, and whether its signed form has an empty `sig` instead of none. */
export type Canonicalizations = Readonly<Record<string, { readonly hasEmptySig: boolean }>>;

/** The receipt as it is signed: without `signature.sig`, or with an empty one. */
export function unsigned(value: SourceValue, hasEmptySig = false): SourceObject {
  const members = (value as SourceObject)
    .entries()
    .map(([name, member]): [string, SourceValue] =>
      name === 'signature' && member instanceof SourceObject
        ? [name, withoutSig(member, hasEmptySig)]
        : [name, member],
    );
  return new SourceObject(new Map(members));
}

function withoutSig(signature: SourceObject, hasEmptySig: boolean): SourceObject {
  const rest = signature.without('sig');
  return hasEmptySig ? new SourceObject(new Map([...rest.entries(), ['sig', '']])) : rest;
}

/** The signature of a receipt of `agent`; none where it has none. What is wrong with it is said to `shape`. */
export function readSignature(
  shape: Shape,
  agent: string,
  canonicalizations: Canonicalizations,
): readonly ReceiptSignature[] {
  if (shape.value('signature') === undefined) return [];
  const alg = shape.text(['signature', 'alg']);
  if (alg !== undefined && alg !== ALGORITHM) refuse(shape, 'alg', ALGORITHM, alg);
  const form = shape.text(['signature', 'canonicalization']);
  const names = Object.keys(canonicalizations);
  if (form !== undefined && !names.includes(form))
    refuse(shape, 'canonicalization', names.join(' or '), form);
  const kid = shape.text(['signature', 'kid']);
  if (shape.value('signature', 'sig') === undefined) return [];
  const bytes = signatureBytes(urlSafe(textAt(shape.value('signature'), 'sig') ?? ''));
  if (bytes === undefined) shape.malformed(['signature', 'sig'], '64 bytes in base64url', 'other text');
  const stated = readStated(shape);
  if (form === undefined || !names.includes(form)) return [];
  const { hasEmptySig } = canonicalizations[form]!;
  const message = jcsBytes(unsigned(shape.value()!, hasEmptySig));
  if (bytes === undefined || message === undefined) return [];
  return [
    {
      alg: 'ed25519',
      message,
      alternatives: hasEmptySig ? [] : alternativesOf(shape.value()!),
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

/** A SHA-256 in base64url, as the format's own libraries write it, or in hexadecimal digits. */
export function sha256Of(text: string): Digest | undefined {
  const hex = digestOfHex(text);
  if (hex !== undefined) return hex;
  const b64 = text.replace(/=$/, '');
  return b64.length === 43 && tryDecodeBase64url(b64) !== undefined ? { alg: 'sha-256', b64 } : undefined;
}
