/** Requests to a witness, by C2SP tlog-witness: what extends its last view is cosigned, and nothing else. */

import { ed25519Key, sha256 } from '../../fixtures/make/keys.js';
import { treeRoot } from '../../fixtures/make/ledger.js';
import { checkpointText, logLine, logVkey, noteOf } from '../../fixtures/make/notes.js';
import { utf8 } from './cases.js';
import { secretOf } from './secrets.js';

const ORIGIN = 'conformance.example/log';
const LOG = ed25519Key('conformance');
const NAME = 'w1.example/witness';
const WITNESS = ed25519Key('conformance w1');
const now = (second) => `2026-01-01T12:00:${String(second).padStart(2, '0')}Z`;
const time = (second) => 1_767_268_800 + second;

const LINES = Array.from({ length: 8 }, (_, index) => Buffer.from(`line ${index}`));
const FORK = LINES.map((line, index) => (index === 2 ? Buffer.from('another line') : line));

export function makeWitnessCases() {
  return [
    trace('first', 'the first checkpoint that it sees', [cosigned(1, { to: 3 })]),
    trace('extends', 'checkpoints that extend the last one', [
      cosigned(1, { to: 1 }),
      cosigned(2, { from: 1, to: 3 }),
      cosigned(3, { from: 3, to: 7 }),
      cosigned(4, { from: 7, to: 8 }),
    ]),
    trace('again', 'the same checkpoint again', [cosigned(1, { to: 3 }), cosigned(2, { from: 3, to: 3 })]),
    trace('empty', 'an empty tree', [cosigned(1, { to: 0 }), cosigned(2, { to: 2 })]),
    trace('fork', 'another history is not cosigned, and the first goes on', [
      cosigned(1, { to: 4 }),
      refused(2, 422, { from: 4, to: 6, lines: FORK }),
      refused(3, 422, { from: 4, to: 4, lines: FORK }),
      cosigned(4, { from: 4, to: 6 }),
    ]),
    trace('old-size', 'another old size than its own: it says its own', [
      cosigned(1, { to: 3 }),
      { ...refused(2, 409, { from: 2, to: 5 }), expect: { status: 409, body: utf8('3\n') } },
      { ...refused(3, 409, { to: 5 }), expect: { status: 409, body: utf8('3\n') } },
      cosigned(4, { from: 3, to: 5 }),
    ]),
    trace('old-larger', 'an old size larger than the checkpoint', [
      cosigned(1, { to: 5 }),
      refused(2, 400, { from: 5, to: 3, proof: [] }),
    ]),
    trace('unknown-log', 'a log that it does not know', [
      refused(1, 404, { to: 2, origin: 'other.example/log' }),
    ]),
    trace('other-key', "no signature by the log's key", [
      refused(1, 403, { to: 2, key: ed25519Key('conformance stranger') }),
    ]),
    trace('wrong-signature', "a wrong signature of the log's", [
      refused(1, 403, { to: 2, spoil: true }),
      cosigned(2, { to: 2 }),
    ]),
    trace('proof-missing', 'no proof, or a hash too many', [
      cosigned(1, { to: 3 }),
      refused(2, 422, { from: 3, to: 7, proof: [] }),
      refused(3, 422, { from: 3, to: 7, more: [sha256('one more')] }),
      cosigned(4, { from: 3, to: 7 }),
    ]),
    trace('malformed', 'no request of the protocol', [
      ask(1, 'nonsense', { status: 400 }),
      ask(2, 'old 0\n\n', { status: 400 }),
      ask(3, '', { status: 400 }),
      cosigned(4, { to: 2 }),
    ]),
  ];
}

function trace(name, about, steps) {
  const begin = {
    op: 'witness',
    input: { name: NAME, secret: secretOf('conformance w1'), logs: [logVkey(LOG, ORIGIN)] },
    expect: { name: NAME },
  };
  return { id: `witness/${name}`, about, steps: [begin, ...steps] };
}

function ask(second, body, expect) {
  return { op: 'add-checkpoint', input: { now: now(second), body: utf8(body) }, expect };
}

function refused(second, status, options) {
  return ask(second, requestOf(options).body, { status });
}

function cosigned(second, options) {
  const { body, text } = requestOf(options);
  const by = { name: NAME, key: WITNESS.wire, text: utf8(text), time: time(second) };
  return ask(second, body, { status: 200, cosigned: by });
}

function requestOf({
  from = 0,
  to,
  lines = LINES,
  origin = ORIGIN,
  key = LOG,
  proof,
  more = [],
  spoil = false,
}) {
  const text = checkpointText(origin, to, treeRoot(lines.slice(0, to)));
  const line = logLine(key, spoil ? `${text}x\n` : text, origin);
  const hashes = [...(proof ?? consistency(lines.slice(0, to), from)), ...more];
  const list = hashes.map((hash) => `${hash.toString('base64')}\n`).join('');
  return { text, body: `old ${from}\n${list}\n${noteOf(text, [line])}` };
}

/** RFC 6962 §2.1.2. */
function consistency(lines, size) {
  return size === 0 || size >= lines.length ? [] : subproof(lines, size, true);
}

function subproof(lines, size, isWhole) {
  if (size === lines.length) return isWhole ? [] : [treeRoot(lines)];
  let split = 1;
  while (split * 2 < lines.length) split *= 2;
  const [left, right] = [lines.slice(0, split), lines.slice(split)];
  return size <= split
    ? [...subproof(left, size, isWhole), treeRoot(right)]
    : [...subproof(right, size - split, false), treeRoot(left)];
}
