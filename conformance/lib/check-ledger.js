/**
 * What a writer or decider wrote, checked without it: canonical lines, numbers, chain, ids, and Ed25519 and P-256 signatures by keys of
 * the genesis and of key events. It judges no bounds.
 */

import { createHash, createPublicKey, verify } from 'node:crypto';
import { TextDecoder } from 'node:util';

const PAYLOAD_TYPE = 'application/vnd.northroot.event+json';
const PREFIXES = {
  ed25519: Buffer.from('302a300506032b6570032100', 'hex'),
  p256: Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex'),
};

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

/** DSSE's pre-authentication encoding of an event. */
export function paeOf(event) {
  const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${event.length} `;
  return Buffer.concat([Buffer.from(head), event]);
}

/**
 * The events of a ledger.
 * @returns `{events}`, or `{fault}` in words
 */
export function readLedger(bytes) {
  if (bytes.length === 0 || bytes.at(-1) !== 0x0a) return { fault: 'the ledger does not end with a newline' };
  const keys = new Map();
  const events = [];
  const ids = new Set();
  let prev = sha256('');
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
      if (event.event_type === 'genesis') for (const key of event.keys) keys.set(key.keyid, key.public_key);
      const isSigned = signatures.some(({ keyid, sig }) =>
        isRight(keys.get(keyid), paeOf(Buffer.from(canonicalText(event))), sig),
      );
      if (keys.size > 0 && !isSigned) return fault('no right signature by a key of the ledger');
      if (event.event_type === 'key' && event.action === 'add')
        keys.set(event.key.keyid, event.key.public_key);
      events.push(event);
    } catch {
      return fault('no record');
    }
    prev = sha256(Buffer.concat([Buffer.of(0), Buffer.from(text)]));
  }
  return { events };
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
