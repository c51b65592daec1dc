/**
 * Bytes, signatures, notes, trees, windows and sums with their intermediate values. Each is computed here from the format's description,
 * apart from the product; `intermediate` is for people, and compared with nothing.
 */

import { ed25519 } from '@noble/curves/ed25519.js';
import { createHash } from 'node:crypto';
import { dec, execution, genesis, grant, int, meters } from '../../fixtures/make/events.js';
import { ed25519Key, mlDsa44Key, p256Key, sha256 } from '../../fixtures/make/keys.js';
import { digest, FixtureLedger, keyEntry, sealEvent, treeRoot } from '../../fixtures/make/ledger.js';
import {
  checkpointText,
  logLine,
  logVkey,
  noteOf,
  subtreeMessage,
  witnessLine,
  witnessVkey,
} from '../../fixtures/make/notes.js';
import { canonicalText, paeOf } from '../lib/check-ledger.js';
import { digestText, hex, utf8 } from './cases.js';

const KEY = ed25519Key('conformance');
const CURVE = p256Key('conformance p256');
const LATTICE = mlDsa44Key('conformance lattice');
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

export function makeVectors(files) {
  return [
    ...makeCanonical(),
    ...makeIdentities(files),
    ...makeSignatures(),
    ...makeNotes(),
    ...makeTrees(),
    ...makeWindows(),
  ];
}

function makeCanonical() {
  const pairs = [
    ['white-space', 'white space goes', ' { "b" : [ 1 , 2 ] , "a" : null } ', '{"a":null,"b":[1,2]}'],
    [
      'escapes',
      'escapes as RFC 8785 writes them',
      '"\\u0041\\/\\u000a\\u001f\\"\\\\\\u007f"',
      '"A/\\n\\u001f\\"\\\\\u007f"',
    ],
    [
      'numbers',
      'numbers as ECMAScript writes them',
      '[1.0,1e3,1E-7,0.000001,1e21,5e-324,-0.5]',
      '[1,1000,1e-7,0.000001,1e+21,5e-324,-0.5]',
    ],
    [
      'order',
      'members by UTF-16 code units, not by code points',
      '{"\ufb33":1,"\u{1f600}":2,"\u20ac":3,"\\r":4,"1":5,"\u0080":6,"\u00f6":7}',
      '{"\\r":4,"1":5,"\u0080":6,"\u00f6":7,"\u20ac":3,"\u{1f600}":2,"\ufb33":1}',
    ],
    [
      'names',
      '__proto__, the empty name and names like integers are names',
      '{"b":0,"__proto__":1,"10":2,"":3,"9":4}',
      '{"":3,"10":2,"9":4,"__proto__":1,"b":0}',
    ],
    ['no-normalisation', 'no Unicode normalisation', '["e\u0301","\u00e9"]', '["e\u0301","\u00e9"]'],
    [
      'nesting-64',
      'as deep as may be',
      '['.repeat(64) + ' ' + ']'.repeat(64),
      '['.repeat(64) + ']'.repeat(64),
    ],
    [
      'integers',
      'the greatest integers',
      '[9007199254740991,-9007199254740991]',
      '[9007199254740991,-9007199254740991]',
    ],
  ];
  return pairs.map(([name, about, json, canonical]) => ({
    id: `canonicalize/${name}`,
    op: 'canonicalize',
    about,
    input: { json: utf8(json) },
    expect: { canonical: utf8(canonical) },
    intermediate: { sha256: sha256(canonical).toString('hex') },
  }));
}

function makeIdentities(files) {
  const events = new Map();
  for (const name of [
    'agent-run',
    'authority',
    'approvals',
    'revocations',
    'slices',
    'stated',
    'quantities',
    'cosigned',
  ]) {
    const [...lines] = files.get(`ledgers/${name}.jsonl`).toString().trimEnd().split('\n');
    for (const [seq, line] of lines.entries()) events.set(`${name}-${seq}`, JSON.parse(line).event);
  }
  const odd = { event_type: 'x.odd', occurred_at: '2026-01-01T00:00:00Z', principal_id: 'agent:a' };
  const { bytes } = sealEvent({ ...odd, '\ufb33': 1e21, '\u{1f600}': '\u2028', '': [] });
  events.set('odd-names', JSON.parse(bytes.toString()));
  return [...events].map(([name, event]) => {
    const { event_id: id, payload_digest: payloadDigest, ...payload } = event;
    const canonical = canonicalText(payload);
    const hashed = Buffer.from(`northroot:event:v1\0${canonical}`);
    if (sha256(hashed).toString('base64url') !== id.b64) throw new Error(`${name} has another id`);
    const pae = paeOf(Buffer.from(canonicalText(event)));
    return {
      id: `identity/${name}`,
      op: 'identity',
      about: `${event.event_type}: its payload, digest, id, and what is signed`,
      input: { event: utf8(canonicalText(event)) },
      expect: {
        payload: utf8(canonical),
        payload_digest: `sha-256:${payloadDigest.b64}`,
        event_id: `sha-256:${id.b64}`,
        pae: utf8(pae.toString()),
      },
      intermediate: { id_input: hex(hashed), event_id_hex: Buffer.from(id.b64, 'base64url').toString('hex') },
    };
  });
}

const toLittle = (value, length = 32) =>
  Buffer.from(value.toString(16).padStart(2 * length, '0'), 'hex').reverse();
const fromLittle = (bytes) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
const mod = (value, order) => ((value % order) + order) % order;

function makeSignatures() {
  const draft = { event_type: 'x.signed', occurred_at: '2026-01-01T00:00:00Z', principal_id: 'agent:a' };
  const { bytes: event } = sealEvent(draft);
  const message = paeOf(event);
  const made = [];
  const add = (name, about, key, sig, valid, more = {}) =>
    made.push({
      id: `signature/${name}`,
      op: 'signature',
      about,
      input: { key, event: utf8(event.toString()), signature: hex(sig) },
      expect: { valid },
      intermediate: { message: hex(message), ...more },
    });
  const right = Buffer.from(KEY.sign(message));
  const s = fromLittle(right.subarray(32));
  const k = challenge(right.subarray(0, 32), rawOf(KEY.wire), message);
  add('ed25519', 'right', KEY.wire, right, true, {
    r: hex(right.subarray(0, 32)),
    s: s.toString(),
    k: k.toString(),
  });
  add('ed25519-other-message', 'of another message', KEY.wire, KEY.sign(Buffer.from('another')), false);
  add(
    'ed25519-s-plus-l',
    'S + L: the same equation holds',
    KEY.wire,
    Buffer.concat([right.subarray(0, 32), toLittle(s + ORDER)]),
    false,
  );
  add('ed25519-short', '63 bytes', KEY.wire, right.subarray(0, 63), false);
  add('ed25519-long', '65 bytes', KEY.wire, Buffer.concat([right, Buffer.of(0)]), false);
  addCrafted(add, message);
  const low = CURVE.sign(message);
  const high = CURVE.sign(message, { high: true });
  const [r, lowS] = [low.subarray(0, 32), low.subarray(32)].map((half) =>
    BigInt(`0x${half.toString('hex')}`),
  );
  const digestHex = sha256(message).toString('hex');
  add('es256', 'right, with the low s', CURVE.wire, low, true, {
    digest: digestHex,
    record: hex(recordOf(event, CURVE.keyid, low)),
    r: r.toString(),
    s: lowS.toString(),
  });
  add('es256-high-s', 'right, with the high s', CURVE.wire, high, true);
  add('es256-other-message', 'of another message', CURVE.wire, CURVE.sign(Buffer.from('another')), false);
  add('es256-zero', 'r and s are 0', CURVE.wire, Buffer.alloc(64), false);
  const beyond = lowS + P256_ORDER;
  if (beyond < 2n ** 256n)
    add(
      'es256-s-plus-n',
      's + n',
      CURVE.wire,
      Buffer.concat([low.subarray(0, 32), Buffer.from(beyond.toString(16).padStart(64, '0'), 'hex')]),
      false,
    );
  add('es256-der', 'DER instead of r and s', CURVE.wire, toDer(low), false);
  return made;
}

/** The first record of a ledger, with one signature. */
function recordOf(event, keyid, sig) {
  const rest = { prev: digest(''), seq: 0, signatures: [{ keyid, sig: sig.toString('base64url') }] };
  return Buffer.from(`{"event":${event.toString()},${canonicalText(rest).slice(1)}`);
}

function rawOf(wire) {
  return Buffer.from(wire.split(':')[1], 'base64url');
}

function challenge(r, a, message) {
  return mod(
    fromLittle(
      createHash('sha512')
        .update(Buffer.concat([r, a, message]))
        .digest(),
    ),
    ORDER,
  );
}

/** Signatures that some libraries take, by keys and points of small or mixed order, and by other spellings. */
function addCrafted(add, message) {
  const { Point } = ed25519;
  const wire = (bytes) => `ed25519:${Buffer.from(bytes).toString('base64url')}`;
  const identity = Buffer.from(Point.ZERO.toBytes());
  add(
    'ed25519-small-order-key',
    'the key is the neutral point, R too, S is 0',
    wire(identity),
    Buffer.concat([identity, Buffer.alloc(32)]),
    false,
  );
  const spelled = toLittle(2n ** 255n - 19n + 1n);
  add(
    'ed25519-key-not-canonical',
    'the neutral point spelled p + 1',
    wire(spelled),
    Buffer.concat([identity, Buffer.alloc(32)]),
    false,
  );
  const scalar = 0x1234567890abcdefn;
  const key = Point.BASE.multiply(scalar);
  const a = Buffer.from(key.toBytes());
  const k = challenge(identity, a, message);
  add(
    'ed25519-small-order-r',
    'R is the neutral point, and the equation holds',
    wire(a),
    Buffer.concat([identity, toLittle(mod(k * scalar, ORDER))]),
    false,
  );
  const torsion = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');
  const mixed = Buffer.from(key.add(torsion).toBytes());
  for (let nonce = 1n; ; nonce += 1n) {
    const r = Buffer.from(Point.BASE.multiply(nonce).toBytes());
    const challenged = challenge(r, mixed, message);
    if (challenged % 8n !== 0n) continue;
    const s = toLittle(mod(nonce + challenged * scalar, ORDER));
    add(
      'ed25519-mixed-order-key',
      'the key has a part of order 8, and the equation holds without a cofactor',
      wire(mixed),
      Buffer.concat([r, s]),
      false,
    );
    return;
  }
}

function toDer(raw) {
  const integer = (bytes) => {
    const whole = bytes[0] >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
    return Buffer.concat([Buffer.of(2, whole.length), whole]);
  };
  const body = Buffer.concat([integer(raw.subarray(0, 32)), integer(raw.subarray(32))]);
  return Buffer.concat([Buffer.of(0x30, body.length), body]);
}

function makeNotes() {
  const origin = 'conformance.example/log';
  const [w1, w2] = [ed25519Key('conformance w1'), mlDsa44Key('conformance w2')];
  const keys = [
    logVkey(KEY, origin),
    logVkey(LATTICE, origin),
    witnessVkey(w1, 'w1.example/witness'),
    witnessVkey(w2, 'w2.example/witness'),
  ];
  const root = sha256('a root');
  const text = checkpointText(origin, 7, root);
  const extended = checkpointText(origin, 7, root, ['an extension line']);
  const time = 1_767_268_800;
  const spoil = (line) => {
    const [dash, name, data] = line.trimEnd().split(' ');
    const bytes = Buffer.from(data, 'base64');
    bytes[bytes.length - 1] ^= 1;
    return `${dash} ${name} ${bytes.toString('base64')}\n`;
  };
  const all = (of) => [
    logLine(KEY, of),
    logLine(LATTICE, of),
    witnessLine(w1, of, 'w1.example/witness', time),
    witnessLine(w2, of, 'w2.example/witness', time),
  ];
  const seconds = (value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(value));
    return bytes;
  };
  const messages = (of) => ({
    log_ed25519: hex(Buffer.from(of)),
    log_ml_dsa_44: hex(subtreeMessage(of, origin, seconds(0))),
    cosignature_ed25519: hex(Buffer.from(`cosignature/v1\ntime ${time}\n${of}`)),
    cosignature_ml_dsa_44: hex(subtreeMessage(of, 'w2.example/witness', seconds(time))),
  });
  const note = (name, about, of, lines, valid, invalid) => ({
    id: `note/${name}`,
    op: 'note',
    about,
    input: { note: utf8(noteOf(of, lines)), keys },
    expect: { origin, tree_size: 7, root: digestText(root), valid, invalid },
    intermediate: messages(of),
  });
  const [log, lattice, first, second] = all(text);
  const stranger = logLine(ed25519Key('conformance stranger'), text);
  return [
    note('log', "the log's Ed25519 line alone", text, [log], [0], []),
    note(
      'all',
      'both keys of the log, and a witness of each kind',
      text,
      [log, lattice, first, second],
      [0, 1, 2, 3],
      [],
    ),
    note(
      'extension',
      'a text with an extension line, which the ML-DSA-44 messages do not cover',
      extended,
      all(extended),
      [0, 1, 2, 3],
      [],
    ),
    note('stranger', 'a line under the origin by a key that is not known', text, [stranger, first], [2], []),
    note('wrong-ed25519', 'a wrong line of the log', text, [spoil(log), lattice], [1], [0]),
    note('wrong-ml-dsa-44', 'a wrong ML-DSA-44 cosignature', text, [log, spoil(second)], [0], [3]),
    note(
      'moved',
      'lines of another text',
      text,
      [log, ...all(checkpointText(origin, 8, root)).slice(2)],
      [0],
      [2, 3],
    ),
  ];
}

function makeTrees() {
  const lines = Array.from({ length: 11 }, (_, index) => Buffer.from(`{"line":${index}}`));
  const leaf = (line) => sha256(Buffer.concat([Buffer.of(0), line]));
  return [0, 1, 2, 3, 5, 8, 11].map((size) => {
    const some = lines.slice(0, size);
    return {
      id: `tree/${size}`,
      op: 'tree',
      about: `the tree over ${size} lines, line by line`,
      input: { lines: some.map((line) => utf8(line.toString())) },
      expect: {
        leaves: some.map((line) => digestText(leaf(line))),
        roots: Array.from({ length: size + 1 }, (_, end) => digestText(treeRoot(some.slice(0, end)))),
      },
      intermediate: { leaves: some.map((line) => leaf(line).toString('hex')) },
    };
  });
}

/** An exact fraction. */
function toFraction({ t, v, m, s, n, d, bits }) {
  if (t === 'int') return [BigInt(v), 1n];
  if (t === 'dec') return [BigInt(m), 10n ** BigInt(s)];
  if (t === 'rat') return [BigInt(n), BigInt(d)];
  const view = Buffer.from(bits, 'hex').readDoubleBE();
  let scale = 1n;
  let value = view;
  while (!Number.isInteger(value)) [value, scale] = [value * 2, scale * 2n];
  return [BigInt(value), scale];
}

const add = ([a, b], [c, d]) => [a * d + c * b, b * d];
const isAbove = ([a, b], [c, d]) => a * d > c * b;

function reduce([n, d]) {
  let [a, b] = [n, d];
  while (b !== 0n) [a, b] = [b, a % b];
  return d / a === 1n ? String(n / a) : `${n / a}/${d / a}`;
}

const SECOND = 1_000_000_000n;
const LENGTHS = { sec: 1n, min: 60n, hour: 3_600n, day: 86_400n, week: 604_800n };
const SUFFIXES = { s: 1n, m: 60n, h: 3_600n, d: 86_400n };

function windowOf(unit) {
  const [, name] = /\.per_([a-z0-9]+)$/.exec(unit);
  const length = LENGTHS[name] ?? BigInt(name.slice(0, -1)) * SUFFIXES[name.at(-1)];
  return length * SECOND;
}

/** Nanoseconds since 1970. */
function instantOf(text) {
  const [, whole, part = ''] = /^(.*?)(?:\.(\d+))?Z$/.exec(text);
  return BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(part.padEnd(9, '0'));
}

/** For each execution the greatest sum of a window that it is in, by the rule: instants in (x − W, x]. */
function judgeWindows(limit, executions) {
  const length = windowOf(limit.unit);
  const isCalls = limit.unit.startsWith('calls.');
  const most = toFraction(limit.amount);
  const seen = [];
  return executions.map(({ at, amount }) => {
    const instant = instantOf(at);
    seen.push([instant, isCalls ? [1n, 1n] : toFraction(amount)]);
    let greatest = [0n, 1n];
    for (const [end] of seen) {
      if (end < instant || end >= instant + length) continue;
      const inside = seen.filter(([each]) => each > end - length && each <= end);
      const sum = inside.reduce((total, [, value]) => add(total, value), [0n, 1n]);
      if (isAbove(sum, greatest)) greatest = sum;
    }
    return { sum: reduce(greatest), exceeded: isAbove(greatest, most) };
  });
}

function makeWindows() {
  const at = (seconds) => {
    const [whole, part] = String(seconds).split('.');
    const time = new Date(Date.UTC(2026, 0, 1) + Number(whole) * 1_000).toISOString().slice(0, 19);
    return part === undefined ? `${time}Z` : `${time}.${part}Z`;
  };
  const usd = (...pairs) => pairs.map(([seconds, text]) => ({ at: at(seconds), amount: dec(text) }));
  const calls = (...times) => times.map((seconds) => ({ at: at(seconds) }));
  const third = { t: 'rat', n: '1', d: '3' };
  const sets = [
    ['equal', 'equal to the limit is within it', 'usd.per_min', dec('1.00'), usd([0, '0.40'], [30, '0.60'])],
    ['one-more', 'the smallest amount more', 'usd.per_min', dec('1.00'), usd([0, '0.40'], [30, '0.61'])],
    [
      'edge',
      'a window long is outside: the instant x − W is not in it',
      'usd.per_min',
      dec('1'),
      usd([0, '1'], [60, '1']),
    ],
    [
      'edge-within',
      'a nanosecond less is inside',
      'usd.per_min',
      dec('1'),
      usd([0, '1'], ['59.999999999', '1']),
    ],
    [
      'out-of-order',
      'recorded out of order: the one that overfills a window has the finding',
      'usd.per_hour',
      dec('2'),
      usd([3_000, '1'], [0, '1'], [1_500, '0.5'], [3_600, '0.5']),
    ],
    ['calls', 'calls are counted', 'calls.per_5s', int(2), calls(0, 1, 2, 5, 6, 7, 8)],
    ['calls-at-once', 'several at one instant', 'calls.per_sec', int(2), calls(0, 0, 0, 1)],
    [
      'fractions',
      'thirds are exact',
      'usd.per_day',
      int(1),
      [0, 1, 2, 3].map((s) => ({ at: at(s), amount: third })),
    ],
    [
      'types',
      'amounts of all types',
      'usd.per_30d',
      dec('1.5'),
      [
        { at: at(0), amount: int(1) },
        { at: at(1), amount: { t: 'f64', bits: '3fe0000000000000' } },
        { at: at(2), amount: { t: 'rat', n: '1', d: '1000000' } },
      ],
    ],
    [
      'week',
      'a week is 7 days',
      'usd.per_week',
      int(1),
      usd([0, '1'], [604_799, '0.01'], [604_800 + 604_799, '1']),
    ],
  ];
  const dice = rollDice(44);
  for (let index = 0; index < 16; index += 1) {
    const list = Array.from({ length: 12 }, () => ({ at: at(dice(600)), amount: dec(`0.${10 + dice(80)}`) }));
    sets.push([
      `random-${index}`,
      'twelve executions in any order',
      `usd.per_${1 + dice(200)}s`,
      dec(`${1 + dice(2)}.00`),
      list,
    ]);
  }
  return sets.map(([name, about, unit, amount, executions]) => {
    const limit = { unit, amount };
    const judged = judgeWindows(limit, executions);
    return {
      id: `windows/${name}`,
      op: 'windows',
      about,
      input: { limit, executions },
      expect: { exceeded: judged.map(({ exceeded }) => exceeded) },
      intermediate: { greatest_sums: judged.map(({ sum }) => sum) },
    };
  });
}

/** Numbers below `sides`, the same each time (Lehmer). */
export function rollDice(seed) {
  let state = seed;
  return (sides) => (state = (state * 48_271) % 2_147_483_647) % sides;
}

/** Rule 5: ledgers whose sums have a denominator of 400 digits, and of 401; verified as the fixtures are. */
export function makeFineLedgers(files) {
  return [400, 401].map((digits) => {
    const { bytes, sums } = fineLedger(digits);
    const ledger = `vectors/sum-of-${digits}-digits.jsonl`;
    files.set(ledger, bytes);
    const isFine = digits > 400;
    return {
      ledger,
      about: `executions whose use has a reduced denominator of ${digits} digits`,
      verdict: isFine ? 'invalid' : 'ok',
      findings: isFine
        ? [{ code: 'QUANTITY_INVALID', line: 2 + sums.length, pointer: '/event/meter_used/0/amount' }]
        : [],
      intermediate: { sums },
    };
  });
}

/** Uses of 1/d with coprime d, whose product has so many digits. */
function fineLedger(digits) {
  const at = (second) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;
  const held = { principal: 'agent:a', intent: 'fine sums' };
  const call = { ...held, tool: 't' };
  const ledger = new FixtureLedger([KEY]);
  ledger.append(genesis('conformance.example/fine', at(0), [keyEntry(KEY)]));
  const auth = ledger.append(
    grant({ ...held, at: at(1), bounds: { allowed_tools: ['*'], meter_caps: meters({ share: int(10) }) } }),
  );
  const sums = [];
  let [n, d] = [0n, 1n];
  for (const [index, part] of denominatorsOf(digits).entries()) {
    [n, d] = [n * part + d, d * part];
    sums.push({ execution: index, numerator: String(n), denominator: String(d), digits: String(d).length });
    const share = { t: 'rat', n: '1', d: String(part) };
    ledger.append(execution({ ...call, at: at(2 + index), auth, used: { share } }));
  }
  if (String(d).length !== digits) throw new Error(`${String(d).length} digits instead of ${digits}`);
  return { bytes: ledger.bytes, sums };
}

/** Powers of primes of at most 39 digits, and a last factor, coprime to them, that makes the product as long as wanted. */
function denominatorsOf(digits) {
  const parts = [];
  let product = 1n;
  const least = 10n ** BigInt(digits - 1);
  for (const prime of [2n, 3n, 5n, 7n, 11n, 13n, 17n, 19n, 23n, 29n, 31n, 37n]) {
    if (least / product < 10n ** 38n) break;
    let power = prime;
    while (power * prime < 10n ** 39n) power *= prime;
    parts.push(power);
    product *= power;
  }
  let last = least / product + 1n;
  while (commonFactor(last, product) !== 1n) last += 1n;
  return [...parts, last];
}

function commonFactor(a, b) {
  return b === 0n ? a : commonFactor(b, a % b);
}
