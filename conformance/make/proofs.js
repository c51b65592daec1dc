/**
 * Proofs, receipts and bundles of one ledger, right and damaged. The product makes them; the path, the root and the signature of the
 * receipt are computed here again.
 */

import { exportBundle } from '../../dist/api/export.js';
import { makeProof, makeReceipt } from '../../dist/api/proof.js';
import { ed25519Key, sha256 } from '../../fixtures/make/keys.js';
import { treeRoot } from '../../fixtures/make/ledger.js';
import { logVkey } from '../../fixtures/make/notes.js';
import { isRight } from '../lib/check-ledger.js';
import { assertSame, file, hex } from './cases.js';
import { secretOf, signerOf } from './secrets.js';
import { sourceOf } from './verifier.js';

const LEDGER = 'ledgers/checkpoints.jsonl';
const SEQ = 3;
/** The records before the last checkpoint. */
const SIZE = 6;

export async function makeProofs(files) {
  const open = () => Promise.resolve(sourceOf(LEDGER, files));
  const lines = files
    .get(LEDGER)
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => Buffer.from(line));
  const key = ed25519Key('variations');
  const stranger = ed25519Key('conformance stranger');
  const { origin } = JSON.parse(lines[0]).event;
  const line = lines[SEQ];
  const { path, root } = pathTo(lines.slice(0, SIZE), SEQ);
  const proof = Buffer.from((await makeProof(open, String(SEQ))).bytes);
  const hashes = proof.toString().split('\n\n')[0].split('\n').slice(3);
  assertSame(
    hashes,
    path.map((hash) => hash.toString('base64')),
    'the path of the proof',
  );
  assertSame(root.toString('hex'), treeRoot(lines.slice(0, SIZE)).toString('hex'), 'the root of the path');
  const signer = signerOf(secretOf('variations'));
  const receipt = Buffer.from((await makeReceipt(open, String(SEQ), { signer })).bytes);
  const signed = sigStructure(receipt, root);
  const isSigned = isRight(key.wire, signed, receipt.subarray(-64).toString('base64url'));
  assertSame(isSigned, true, 'the signature of the receipt');
  const made = [];
  const add = (op, name, about, input, expect, intermediate) =>
    made.push({ id: `${op}/${name}`, op, about, input, expect, ...(intermediate && { intermediate }) });

  const vkey = logVkey(key, origin);
  const prove = (name, about, bytes, verdict, keys = [vkey]) =>
    add(
      'proof',
      name,
      about,
      { proof: hex(bytes), keys },
      { verdict },
      {
        root: root.toString('hex'),
        leaf: leaf(line).toString('hex'),
        path: path.map((hash) => hash.toString('hex')),
      },
    );
  const edit = (from, to) => Buffer.from(proof.toString().replace(from, to));
  const wrongHash = Buffer.from(path[0]).fill(0xff, 0, 1).toString('base64');
  prove('right', 'a record of a tree of 6', proof, 'ok');
  prove('other-key', 'no key of the log is given', proof, 'undecided', [
    logVkey(stranger, 'other.example/log'),
  ]);
  prove('other-index', 'another index', edit(`index ${SEQ}`, `index ${SEQ - 1}`), 'invalid');
  prove(
    'other-hash',
    'a hash of the path is another',
    edit(path[0].toString('base64'), wrongHash),
    'invalid',
  );
  prove(
    'hash-missing',
    'a hash of the path is missing',
    edit(`${path[0].toString('base64')}\n`, ''),
    'invalid',
  );
  prove('torn', 'the end of the note is missing', proof.subarray(0, -10), 'invalid');

  const receive = (name, about, bytes, entry, verdict, keys = [key.wire]) =>
    add(
      'receipt',
      name,
      about,
      { receipt: hex(bytes), line: hex(entry), keys },
      { verdict },
      {
        root: root.toString('hex'),
        signed: signed.toString('hex'),
      },
    );
  receive('right', 'a record of a tree of 6', receipt, line, 'ok');
  receive('other-key', 'another key', receipt, line, 'undecided', [stranger.wire]);
  receive('other-line', 'of another record', receipt, lines[SEQ + 1], 'invalid');
  receive('flipped', 'its last bit is flipped', flip(receipt), line, 'invalid');
  receive('trailing', 'a byte after its end', Buffer.concat([receipt, Buffer.of(0)]), line, 'invalid');

  const pieces = [];
  const sink = { write: (piece) => void pieces.push(Buffer.from(piece)) };
  await exportBundle(open, sink, { signer, createdAt: '2026-01-02T00:00:00Z' });
  const bundle = Buffer.concat(pieces);
  files.set('vectors/checkpoints.bundle', bundle);
  const trust = policyOf(origin, key);
  const bundled = (name, about, bytes, verdict, status, more = { trust }) =>
    add('bundle', name, about, { bundle: bytes, ...more }, { verdict, exit_status: status });
  bundled(
    'right',
    'all records up to the last checkpoint, under a policy',
    file('vectors/checkpoints.bundle'),
    'ok',
    0,
  );
  bundled('flipped', 'its last bit is flipped', hex(flip(bundle)), 'invalid', 1);
  bundled('torn', 'its last byte is missing', hex(bundle.subarray(0, -1)), 'invalid', 1);
  bundled('other-origin', 'under a policy for another log', hex(bundle), 'invalid', 1, {
    trust: policyOf('other.example/log', key),
  });
  await assertVerdicts(made, files);
  return made;
}

function policyOf(origin, { keyid, wire }) {
  const key = { keyid, principals: ['*'], public_key: wire, roles: ['event', 'checkpoint', 'admin'] };
  return { $utf8: JSON.stringify({ trust_version: '1', origins: [origin], keys: [key] }) };
}

function flip(bytes) {
  const copy = Buffer.from(bytes);
  copy[copy.length - 1] ^= 1;
  return copy;
}

const leaf = (bytes) => sha256(Buffer.concat([Buffer.of(0), bytes]));
const node = (left, right) => sha256(Buffer.concat([Buffer.of(1), left, right]));

/** RFC 6962 §2.1.1: the hashes from the leaf's sibling up, and the root that they give. */
function pathTo(lines, index) {
  if (lines.length === 1) return { path: [], root: leaf(lines[0]) };
  let split = 1;
  while (split * 2 < lines.length) split *= 2;
  const [left, right] = [lines.slice(0, split), lines.slice(split)];
  if (index < split) {
    const { path, root } = pathTo(left, index);
    const other = treeRoot(right);
    return { path: [...path, other], root: node(root, other) };
  }
  const { path, root } = pathTo(right, index - split);
  const other = treeRoot(left);
  return { path: [...path, other], root: node(other, root) };
}

/** What a COSE receipt's signature covers (RFC 9052 §4.4): the protected headers are the bytes after its tag and array. */
function sigStructure(receipt, root) {
  const head = receipt[0] === 0xd2 ? 2 : 1;
  const [length, start] =
    receipt[head] === 0x58 ? [receipt[head + 1], head + 2] : [receipt[head] - 0x40, head + 1];
  const headers = receipt.subarray(head, start + length);
  const context = Buffer.from('Signature1');
  return Buffer.concat([
    Buffer.of(0x84, 0x60 + context.length),
    context,
    headers,
    Buffer.of(0x40, 0x58, root.length),
    root,
  ]);
}

async function assertVerdicts(made, files) {
  const { VERIFIER } = await import('../adapter/verifier.js');
  const { expand } = await import('../lib/content.js');
  const packed = new Map([...files].map(([path, bytes]) => [`content/files/${path}`, bytes]));
  for (const { id, op, input, expect } of made) {
    const result = await VERIFIER[op](expand(input, packed));
    for (const [name, value] of Object.entries(expect)) assertSame(result[name], value, `${id}: ${name}`);
  }
}
