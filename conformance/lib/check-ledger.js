/**
 * What a writer or decider wrote, checked without it: canonical lines, numbers, chain, ids, binding, and Ed25519 and P-256 signatures by
 * keys of the genesis and of key events, which have the role for the event and cover its principals. Times of keys are not looked at.
 */

import { createHash, createPrivateKey, createPublicKey, verify } from 'node:crypto';
import { TextDecoder } from 'node:util';
import { Keyring } from './keyring.js';

const PAYLOAD_TYPE = 'application/vnd.northroot.event+json';
const PREFIXES = {
  ed25519: Buffer.from('302a300506032b6570032100', 'hex'),
  p256: Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex'),
};

/** What PKCS #8 has before the seed. */
const SEEDS = {
  ed25519: Buffer.from('302e020100300506032b657004220420', 'hex'),
  p256: Buffer.from('3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420', 'hex'),
};
/** The members of a thumbprint (RFC 7638), in its order. */
const THUMBPRINT = { OKP: ['crv', 'kty', 'x'], EC: ['crv', 'kty', 'x', 'y'] };

/** Names of members in the order of UTF-16 code units, as RFC 8785 wants them. */
export function canonicalText(value) {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalText(item)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalText(value[name])}`);
  return `{${members.join(',')}}`;
}

export function sha256(bytes) {
  return createHash('sha256').update(bytes).digest();
}

/** The few secrets of the cases sign most of their steps. */
const keyids = new Map();

/** The keyid of a secret that signs records. */
export function keyidOf({ alg, seed }) {
  const name = `${alg} ${seed}`;
  if (!keyids.has(name)) keyids.set(name, computeKeyid(alg, seed));
  return keyids.get(name);
}

function computeKeyid(alg, seed) {
  const key = Buffer.concat([SEEDS[alg], Buffer.from(seed, 'base64')]);
  const jwk = createPublicKey(createPrivateKey({ key, format: 'der', type: 'pkcs8' })).export({
    format: 'jwk',
  });
  const members = Object.fromEntries(THUMBPRINT[jwk.kty].map((name) => [name, jwk[name]]));
  return sha256(JSON.stringify(members)).toString('base64url');
}

/** DSSE's pre-authentication encoding of an event. */
export function paeOf(event) {
  const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${event.length} `;
  return Buffer.concat([Buffer.from(head), event]);
}

/**
 * The events of a ledger.
 * @returns `{events, signers}`, of each event the keyids whose signatures are right; or `{fault}` in words
 */
export function readLedger(bytes) {
  if (bytes.length === 0 || bytes.at(-1) !== 0x0a) return { fault: 'the ledger does not end with a newline' };
  const keyring = new Keyring();
  const events = [];
  const allSigners = [];
  const ids = new Set();
  let prev = sha256('');
  let ledgerId;
  let all;
  try {
    all = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { fault: 'the ledger is not UTF-8' };
  }
  for (const [seq, text] of all.slice(0, -1).split('\n').entries()) {
    const fault = (words) => ({ fault: `record ${seq}: ${words}` });
    let record;
    try {
      record = JSON.parse(text);
      if (canonicalText(record) !== text) return fault('not canonical');
      const { event, signatures } = record;
      const { event_id: id, payload_digest: payload, ...rest } = event;
      const canonical = canonicalText(rest);
      if (record.seq !== seq) return fault('another seq');
      if (record.prev.b64 !== prev.toString('base64url')) return fault('another prev');
      if (payload.b64 !== sha256(canonical).toString('base64url')) return fault('another payload_digest');
      if (id.b64 !== sha256(`northroot:event:v1\0${canonical}`).toString('base64url'))
        return fault('another event_id');
      if (ids.has(id.b64)) return fault('an event_id for the second time');
      ids.add(id.b64);
      const isFirst = seq === 0;
      if ((event.event_type === 'genesis') !== isFirst) return fault('genesis is first, and nothing else');
      if (isFirst) {
        ledgerId = id.b64;
        for (const key of event.keys) keyring.add(key);
      } else if (event.ledger_id === undefined) {
        if (event.event_type === 'key' || events[0].signing.binding === 'required')
          return fault('no ledger_id');
      } else if (event.ledger_id.b64 !== ledgerId) return fault('the ledger_id of another ledger');
      const message = paeOf(Buffer.from(canonicalText(event)));
      const signers = [];
      for (const { keyid, sig } of signatures) {
        const key = keyring.get(keyid);
        if (key === undefined) continue;
        if (!isRight(key.public_key, message, sig)) return fault('a wrong signature');
        signers.push(key);
      }
      const isEntitled = signers.some((key) => keyring.mayRecord(key, event));
      if (keyring.isUsed && !isEntitled)
        return fault(
          signers.length > 0
            ? 'no key that signed it may sign this event'
            : 'no signature by a key that the ledger has at this place',
        );
      keyring.note(event, signers);
      events.push(event);
      allSigners.push(signers.map(({ keyid }) => keyid));
    } catch {
      return fault('no record');
    }
    prev = sha256(Buffer.concat([Buffer.of(0), Buffer.from(text)]));
  }
  return { events, signers: allSigners };
}

/** Whether a signature is right by a public key `ed25519:…` or `p256:…`. */
export function isRight(key, message, sig) {
  const [alg, raw] = (key ?? '').split(':');
  const prefix = PREFIXES[alg];
  if (prefix === undefined) return false;
  const der = Buffer.concat([prefix, Buffer.from(raw, 'base64url')]);
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
  const bytes = Buffer.from(sig, 'base64url');
  if (bytes.toString('base64url') !== sig) return false;
  return alg === 'ed25519'
    ? verify(null, message, publicKey, bytes)
    : verify('sha256', message, { key: publicKey, dsaEncoding: 'ieee-p1363' }, bytes);
}
