/** Requests to a witness, by C2SP tlog-witness: what extends its last view is cosigned, and nothing else. */

import { ed25519Key, mlDsa44Key, sha256 } from '../../fixtures/make/keys.js';
import { treeRoot } from '../../fixtures/make/ledger.js';
import { checkpointText, logLine, logVkey, noteOf, signatureLine, keyId } from '../../fixtures/make/notes.js';
import { utf8 } from './cases.js';
import { secretOf } from './secrets.js';

const ORIGIN = 'conformance.example/log';
const LOG = ed25519Key('conformance');
const NAME = 'w1.example/witness';
const WITNESS = ed25519Key('conformance w1');
const ML_LOG = mlDsa44Key('conformance');
const ML_WITNESS = mlDsa44Key('conformance w1');
const OTHER_ORIGIN = 'conformance.example/other';
const OTHER_LOG = ed25519Key('conformance other');
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
      refused(3, 409, { from: 4, to: 4, lines: FORK }),
      cosigned(4, { from: 4, to: 6 }),
    ]),
    trace('old-size', 'another old size than its own: it says its own', [
      cosigned(1, { to: 3 }),
      refusedWith(2, 409, { from: 2, to: 5 }, '3\n'),
      refusedWith(3, 409, { to: 5 }, '3\n'),
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
    ...makeAttacks(),
    ...makeLogs(),
    ...makeMlDsa(),
  ];
}

/** Who has seen a tree cosigns no other one, whatever it is asked. */
function makeAttacks() {
  const many = Array.from({ length: 63 }, (_, index) => sha256(`hash ${index}`));
  const three = requestOf({ to: 3 }).body;
  const [head, note] = [three.slice(0, three.indexOf('\n\n') + 2), three.slice(three.indexOf('\n\n') + 2)];
  return [
    trace('rollback', 'a smaller tree than it has seen, with a proof of its own or none', [
      cosigned(1, { to: 6 }),
      refused(2, 400, { from: 6, to: 4, proof: [] }),
      refusedWith(3, 409, { from: 0, to: 4 }, '6\n'),
      refusedWith(4, 409, { from: 4, to: 4 }, '6\n'),
      refusedWith(5, 409, { from: 2, to: 4 }, '6\n'),
      cosigned(6, { from: 6, to: 8 }),
    ]),
    trace('replay', 'a request that it has answered, after a later one', [
      cosigned(1, { to: 3 }),
      cosigned(2, { from: 3, to: 6 }),
      refusedWith(3, 409, { to: 3 }, '6\n'),
      refusedWith(4, 409, { from: 3, to: 6 }, '6\n'),
      cosigned(5, { from: 6, to: 6 }),
    ]),
    trace('fork-first', 'two trees of one size from the start: the first is the one', [
      cosigned(1, { to: 4, lines: FORK }),
      refusedWith(2, 409, { to: 4 }, '4\n'),
      refused(3, 409, { from: 4, to: 4 }),
      refused(4, 422, { from: 4, to: 7 }),
      cosigned(5, { from: 4, to: 7, lines: FORK }),
    ]),
    trace('fork-after-refusals', 'what it refused leaves no trace', [
      refused(1, 403, { to: 4, lines: FORK, spoil: true }),
      refused(2, 403, { to: 4, lines: FORK, key: ed25519Key('conformance stranger') }),
      cosigned(3, { to: 4 }),
      refusedWith(4, 409, { to: 4, lines: FORK }, '4\n'),
    ]),
    trace('proof-of-another', 'the proof of another tree, in another order, or of another size', [
      cosigned(1, { to: 3 }),
      refused(2, 422, { from: 3, to: 7, proof: consistency(FORK.slice(0, 7), 3) }),
      refused(3, 422, { from: 3, to: 7, proof: consistency(LINES.slice(0, 7), 3).reverse() }),
      refused(4, 422, { from: 3, to: 7, proof: consistency(LINES, 3) }),
      refused(5, 422, { from: 3, to: 3, proof: [sha256('one')] }),
      cosigned(6, { from: 3, to: 7 }),
    ]),
    trace('proof-to-the-empty', 'from the empty tree there is nothing to prove', [
      refused(1, 422, { to: 3, proof: [treeRoot(LINES.slice(0, 3))] }),
      cosigned(2, { to: 3 }),
    ]),
    trace('proof-long', 'more hashes than a proof can have', [
      cosigned(1, { to: 3 }),
      refused(2, { $oneOf: [400, 422] }, { from: 3, to: 7, more: many }),
      refused(3, { $oneOf: [400, 413, 422] }, { from: 3, to: 7, more: [...many, ...many] }),
      cosigned(4, { from: 3, to: 7 }),
    ]),
    trace('too-long', 'a body of a megabyte', [
      ask(1, three + 'x'.repeat(1_048_576), { status: { $oneOf: [400, 403, 413] } }),
      cosigned(2, { to: 3 }),
    ]),
    trace('empty-root', 'a tree of nothing that has a root', [
      refused(1, { $oneOf: [400, 409, 422] }, { to: 0, root: sha256('no such tree') }),
      cosigned(2, { to: 0 }),
      cosigned(3, { to: 1 }),
    ]),
    trace('signature-moved', "the log's signature of another tree", [
      refused(1, 403, { to: 3, signed: checkpointText(ORIGIN, 2, treeRoot(LINES.slice(0, 2))) }),
      refused(2, 403, { to: 3, signed: checkpointText(OTHER_ORIGIN, 3, treeRoot(LINES.slice(0, 3))) }),
      cosigned(3, { to: 3 }),
    ]),
    trace('signature-under-another-name', "a right signature of the log's under another name", [
      refused(1, 403, { to: 3, lineName: 'other.example/log' }),
      cosigned(2, { to: 3 }),
    ]),
    trace('signatures-of-others', 'lines of others beside that of the log are passed over', [
      cosigned(1, { to: 3, others: [logLine(OTHER_LOG, 'anything\n', 'other.example/log')] }),
    ]),
    trace('signature-wrong-beside', 'a wrong line under the name and key of the log, beside none', [
      refused(1, 403, {
        to: 3,
        lines: LINES,
        bare: [signatureLine(ORIGIN, keyId(ORIGIN, LOG), Buffer.alloc(64))],
      }),
      cosigned(2, { to: 3 }),
    ]),
    trace('time-back', 'a clock that was set back: no cosignature is older than the last', [
      cosigned(30, { to: 3 }),
      { ...cosigned(10, { from: 3, to: 5 }), expect: cosignedAt(30, { from: 3, to: 5 }) },
      cosigned(31, { from: 5, to: 7 }),
    ]),
    trace('malformed-sizes', 'old sizes in other forms', [
      ...[
        'old -1',
        'old 00',
        'old 1.0',
        'old 1e0',
        'old  0',
        'old 0 ',
        'Old 0',
        'old 9007199254740993',
        'old',
      ].map((line, index) =>
        ask(1 + index, head.replace('old 0', line) + note, { status: { $oneOf: [400, 409] } }),
      ),
      cosigned(20, { to: 3 }),
    ]),
    trace('malformed-proofs', 'hashes in other forms', [
      ...[
        'AAAA',
        'x'.repeat(44),
        ` ${sha256('a').toString('base64')}`,
        sha256('a').toString('base64url'),
      ].map((line, index) => ask(1 + index, `old 0\n${line}\n\n${note}`, { status: { $oneOf: [400, 422] } })),
      ask(9, head.replaceAll('\n', '\r\n') + note, { status: 400 }),
      cosigned(20, { to: 3 }),
    ]),
    trace('malformed-notes', 'notes in other forms', [
      ask(1, three.slice(0, -1), { status: { $oneOf: [400, 403] } }),
      ask(2, three.replace('\n3\n', '\n03\n'), { status: { $oneOf: [400, 403] } }),
      ask(3, three.replace('— ', '- '), { status: { $oneOf: [400, 403] } }),
      ask(4, head + note.slice(0, note.indexOf('—')), { status: { $oneOf: [400, 403] } }),
      ask(5, three.replace(ORIGIN, ''), { status: { $oneOf: [400, 403, 404] } }),
      ask(6, three.replace('\n3\n', '\n18446744073709551616\n'), { status: { $oneOf: [400, 403] } }),
      cosigned(20, { to: 3 }),
    ]),
  ];
}

/** A witness of two logs keeps them apart; a log may have two keys. */
function makeLogs() {
  const other = { origin: OTHER_ORIGIN, key: OTHER_LOG };
  const both = [logVkey(LOG, ORIGIN), logVkey(OTHER_LOG, OTHER_ORIGIN)];
  const two = [logVkey(LOG, ORIGIN), logVkey(OTHER_LOG, ORIGIN)];
  return [
    trace(
      'two-logs',
      'two logs, each with a tree of its own',
      [
        cosigned(1, { to: 3 }),
        cosigned(2, { to: 5, lines: FORK, ...other }),
        refusedWith(3, 409, { from: 3, to: 5, lines: FORK, ...other }, '5\n'),
        refusedWith(4, 409, { from: 5, to: 6 }, '3\n'),
        cosigned(5, { from: 3, to: 6 }),
        cosigned(6, { from: 5, to: 6, lines: FORK, ...other }),
      ],
      { logs: both },
    ),
    trace(
      'key-of-the-other-log',
      'the key of one log does not sign for the other',
      [
        refused(1, 403, { to: 3, key: OTHER_LOG }),
        refused(2, 403, { to: 3, origin: OTHER_ORIGIN }),
        cosigned(3, { to: 3 }),
      ],
      { logs: both },
    ),
    trace(
      'two-keys',
      'a log of two keys: either signs, and it is one log',
      [
        cosigned(1, { to: 3 }),
        cosigned(2, { from: 3, to: 5, key: OTHER_LOG }),
        refusedWith(3, 409, { to: 5, key: OTHER_LOG }, '5\n'),
        refused(4, 403, {
          ...{ from: 5, to: 6 },
          others: [signatureLine(ORIGIN, keyId(ORIGIN, OTHER_LOG), Buffer.alloc(64))],
        }),
        cosigned(5, { from: 5, to: 6 }),
      ],
      { logs: two },
    ),
    trace('unknown-log-later', 'a log that it does not know, beside one that it does', [
      cosigned(1, { to: 3 }),
      refused(2, 404, { from: 3, to: 5, origin: 'other.example/log' }),
      refused(3, 404, { to: 5, origin: `${ORIGIN}/` }),
      refused(4, 404, { to: 5, origin: ORIGIN.toUpperCase() }),
      cosigned(5, { from: 3, to: 5 }),
    ]),
  ];
}

/** ML-DSA-44, of witnesses and of logs: the lines are of type 06, and sign the tree. */
function makeMlDsa() {
  const own = { witness: ML_WITNESS };
  const ml = { alg: 'ml-dsa-44' };
  const log = { logs: [logVkey(ML_LOG, ORIGIN)] };
  const byMl = { key: ML_LOG };
  return [
    trace(
      'ml-dsa-44',
      'a witness that signs by ML-DSA-44',
      [
        cosigned(1, { to: 3, ...own }),
        cosigned(2, { from: 3, to: 7, ...own }),
        refused(3, 422, { from: 7, to: 8, lines: FORK }),
        refusedWith(4, 409, { from: 3, to: 7 }, '7\n'),
        cosigned(5, { from: 7, to: 7, ...own }),
      ],
      ml,
    ),
    trace(
      'ml-dsa-44-log',
      'a log that signs by ML-DSA-44',
      [
        cosigned(1, { to: 3, ...byMl }),
        refused(2, 403, { from: 3, to: 5 }),
        refused(3, 403, { from: 3, to: 5, ...byMl, spoil: true }),
        cosigned(4, { from: 3, to: 5, ...byMl }),
      ],
      log,
    ),
    trace(
      'ml-dsa-44-both',
      'a log and its witness by ML-DSA-44',
      [
        cosigned(1, { to: 3, ...byMl, ...own }),
        refused(2, 422, { from: 3, to: 5, ...byMl, proof: [] }),
        refused(3, 403, { from: 3, to: 5, key: mlDsa44Key('conformance stranger') }),
        cosigned(4, { from: 3, to: 5, ...byMl, ...own }),
      ],
      { ...ml, ...log },
    ),
  ];
}

function trace(name, about, steps, { alg = 'ed25519', logs = [logVkey(LOG, ORIGIN)] } = {}) {
  const begin = {
    op: 'witness',
    input: { name: NAME, secret: secretOf('conformance w1', alg), logs },
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

function refusedWith(second, status, options, body) {
  return ask(second, requestOf(options).body, { status, body: utf8(body) });
}

function cosigned(second, options) {
  return ask(second, requestOf(options).body, cosignedAt(second, options));
}

function cosignedAt(second, { witness = WITNESS, ...options }) {
  const { text } = requestOf(options);
  return { status: 200, cosigned: { name: NAME, key: witness.wire, text: utf8(text), time: time(second) } };
}

/**
 * @param signed - A text that the log signed instead of this one
 * @param others - Further lines; `bare`: lines instead of the log's
 */
function requestOf({ from = 0, to, lines = LINES, origin = ORIGIN, key = LOG, proof, more = [], ...how }) {
  const { root = treeRoot(lines.slice(0, to)), spoil = false, signed, others = [], bare, lineName } = how;
  const text = checkpointText(origin, to, root);
  const own = logLine(
    key,
    signed ?? (spoil ? checkpointText(origin, to, sha256('spoilt')) : text),
    lineName ?? origin,
  );
  const given = typeof bare === 'function' ? bare(text) : bare;
  const hashes = [...(proof ?? consistency(lines.slice(0, to), from)), ...more];
  const list = hashes.map((hash) => `${hash.toString('base64')}\n`).join('');
  return { text, body: `old ${from}\n${list}\n${noteOf(text, given ?? [own, ...others])}` };
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
