/** What the tests of the fast path share: lines to begin with, ways to change them, and what it means that both ways say the same. */

import { readdirSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { makePlainScanner, makeWasmScanner, type LineScanner } from '../../src/fast/blocks/line-scanner.js';
import { identifyEvent } from '../../src/format/event/identity.js';
import { outlineEvent } from '../../src/format/event/outline.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { examineFully, type ExaminedLine } from '../../src/format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../src/format/record/line-splitter.js';
import {
  ScannedLine,
  closingQuote,
  keyidOf,
  signatureAt,
  signatureCountOf,
} from '../../src/fast/scan/scanned-line.js';
import { hasTrueIdentity } from '../../src/fast/scan/identity.js';
import { ROW_WIDTH, TYPE, scanRecord } from '../../src/fast/scan/scan.js';
import { FIXTURES } from '../fixtures/cases.js';

/** Numbers in [0, 1), the same for the same seed. */
export function makeRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Every line of every fixture that is not longer than a record may be. */
export function fixtureLines(): Buffer[] {
  return ['ledgers', 'broken'].flatMap((folder) =>
    readdirSync(`${FIXTURES}${folder}`)
      .filter((name) => name.endsWith('.jsonl') && name !== 'pipeline-1000.jsonl')
      .flatMap((name) => {
        const bytes = readFileSync(`${FIXTURES}${folder}/${name}`);
        const lines: Buffer[] = [];
        for (let at = 0, end = bytes.indexOf(10); end !== -1; at = end + 1, end = bytes.indexOf(10, at))
          lines.push(bytes.subarray(at, end));
        return lines.filter(({ length }) => length > 0 && length < 65_536);
      }),
  );
}

type Members = Record<string, unknown>;

const B64 = 'iipCgnudqZIF5xOZirv9yfUmPcrIgFRrVJ-F-ffqfCI';
const SHA256 = { alg: 'sha-256', b64: B64 };
const FOREIGN = { alg: 'blake3', b64: `${B64.slice(0, 30)}AA` };
const CONTENT = { digest: SHA256, media_type: 'text/plain; charset="ü"', size_bytes: 20_480 };
const ENVELOPE = {
  event_version: '1',
  occurred_at: '2026-02-28T23:59:59.123456789Z',
  principal_id: 'agent:a/b-1',
  canonical_profile_id: 'northroot-jcs-v1',
  prev_event_id: SHA256,
  ledger_id: SHA256,
  context_digest: FOREIGN,
};
const INTENTS = { intent_digest: SHA256, intent_ref: CONTENT, user_intent_digest: FOREIGN };
const SOURCE = { system: 'other', id: 'ï-1\t2', digest: FOREIGN };
const METERS = [
  { unit: 'calls', amount: { t: 'int', v: '1' } },
  { unit: 'tokens.input', amount: { t: 'int', v: '123456789012345678901234567890123456789' } },
  { unit: 'usd', amount: { t: 'dec', m: '1250', s: 4 } },
  { unit: 'eur', amount: { t: 'dec', m: '0', s: 38 } },
];

/** Events with every member that their types have. */
export const WHOLE_EVENTS: readonly Members[] = [
  {
    event_type: 'authorization',
    ...ENVELOPE,
    intents: INTENTS,
    policy_id: 'policy/1 – α',
    policy_digest: SHA256,
    decision: 'allow',
    decision_code: 'ALLOW',
    checks: [
      { check: 'tool', result: 'pass', code: 'A_1' },
      { check: 'sp"end', result: 'fail' },
    ],
    hygiene: { status: 'Ok', warnings: [], metrics: {}, profile_id: 'northroot-jcs-v1' },
    hygiene_digest: FOREIGN,
    authorization: {
      kind: 'action',
      grant_event_id: SHA256,
      action: { tool_name: 'fs.read', tool_params_digest: FOREIGN, meter_reservation: METERS },
    },
  },
  {
    event_type: 'execution',
    ...ENVELOPE,
    intents: INTENTS,
    auth_event_id: SHA256,
    tool_name: 'fs.read',
    tool_params_digest: SHA256,
    started_at: '2024-02-29T00:00:00Z',
    ended_at: '2024-02-29T00:00:00.5Z',
    meter_used: METERS,
    outcome: 'failure',
    error_code: 'ABANDONED',
    output_digest: FOREIGN,
    output_ref: CONTENT,
    resources_touched: [
      { kind: 'file', reference: '/tmp/\u0001x' },
      { kind: 'ünï', reference: '𝄞' },
    ],
    model_id: 'model-1',
    provider: '',
    pricing_snapshot_digest: SHA256,
    meter_basis: 'estimated',
    meter_basis_by_unit: { calls: 'measured', eur: 'billed', usd: 'estimated' },
    source: SOURCE,
  },
  {
    event_type: 'adjustment',
    ...ENVELOPE,
    grant_event_id: SHA256,
    direction: 'credit',
    meters: METERS,
    reason: 'REFUND',
    execution_event_id: SHA256,
    meter_basis: 'billed',
    evidence: CONTENT,
  },
  { event_type: 'x.test', ...ENVELOPE, tool_name: 'a "tool" ü', agent: { a: [1.5, null, { é: true }] } },
  {
    event_type: 'x.plain',
    ...ENVELOPE,
    commit: '4f2a9c',
    list: [[], {}, [0, -1, 999_999_999_999_999, null, true, false, ''], { '': -20, a: { b: [{ c: 'd' }] } }],
    tool_name: 'fs.read',
    zzz: { tool_name: 1, z: '~' },
  },
  {
    event_type: 'x.authorization',
    ...ENVELOPE,
    authorization: {
      a: [true],
      action: { tool_name: 'fs.read', tool_params_digest: SHA256 },
      kind: 'action',
    },
    checks: [{ check: 'tool', result: 'pass' }],
  },
  { event_type: 'x.northroot.start', ...ENVELOPE, auth_event_id: SHA256, intents: INTENTS, tool_name: 'a' },
  { event_type: 'vendor.thing', ...ENVELOPE, zzz: -1e-7, a: [] },
];

const SIGNATURE = { keyid: B64, sig: `${B64}${B64}`.slice(0, 86) };

/** A record of an event; the ids are those of the content unless `isTrue` is false. */
export function recordOf(event: Members, isTrue: boolean, members: Members = {}): Members {
  const { payloadDigest, eventId } = isTrue ? identifyEvent(event) : { payloadDigest: B64, eventId: B64 };
  const ids = { payload_digest: { ...SHA256, b64: payloadDigest }, event_id: { ...SHA256, b64: eventId } };
  return { event: { ...event, ...ids }, prev: SHA256, seq: 12, signatures: [SIGNATURE], ...members };
}

export const lineOf = (record: Members): Buffer => Buffer.from(canonicalText(record));

/** Values that stand at the edge of what one place or another takes. */
const EDGES: readonly unknown[] = [
  ...['', 'a', 'A', '0', '-', '-1', '01', '1', 'ü', '𝄞', '\u0000', '\u001f', '"', '\\', '\u007f', ' ', '*'],
  ...[16, 31, 32, 33, 39, 40, 43, 44, 63, 64, 65, 128, 129, 200, 201, 256, 257, 512, 513, 1024, 1025].flatMap(
    (length) => ['a', 'A', '1', 'ü', '𝄞', '\n'].map((character) => character.repeat(length)),
  ),
  ...['agent:', 'agent:-', 'robot:a', 'human:a', 'service:0', 'org:Z~', `agent:${'a'.repeat(255)}`],
  ...[
    `agent:${'a'.repeat(256)}`,
    'agent:ü',
    'Agent:a',
    'x.',
    'x.y',
    'execution',
    'authorization',
    '_a',
    '.a',
  ],
  ...['2026-02-29T00:00:00Z', '2024-02-29T00:00:00Z', '2100-02-29T00:00:00Z', '2000-02-29T00:00:00Z'],
  ...[
    '0000-02-29T00:00:00Z',
    '9999-12-31T23:59:59.999999999Z',
    '2026-04-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
  ],
  ...['2026-00-01T00:00:00Z', '2026-01-00T00:00:00Z', '2026-01-32T00:00:00Z', '2026-01-01T24:00:00Z'],
  ...[
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00.1234567890Z',
  ],
  ...['2026-01-01t00:00:00Z', '2026-01-01T00:00:00z', '2026-01-01T00:00:00+00:00', '2026-01-01T00:00:00'],
  ...[
    'allow',
    'deny',
    'success',
    'failure',
    'unknown',
    'pass',
    'fail',
    'credit',
    'debit',
    'estimated',
    'billed',
    'grant',
  ],
  ...[
    'sha-256',
    'sha-512',
    '-a',
    'blake3',
    B64,
    `${B64.slice(0, 42)}J`,
    `${B64}A`,
    'AA',
    'AB',
    'AAA',
    'AAB',
    'A',
  ],
  ...['ABANDONED', 'int', 'dec', 'rat', 'f64', 'Ok', 'Lossy', '1', '2'],
  ...[0, 1, -1, 0.5, 1e21, 1e-7, 31, 38, 39, 99, 2 ** 53 - 1, 2 ** 31, 2 ** 30, 999_999_999_999_999],
  ...[
    1_000_000_000_000_000,
    null,
    true,
    false,
    [],
    {},
    [[]],
    { a: 1 },
    { '': '' },
    { ü: 'ü' },
    { usd: 'estimated' },
    { calls: 'estimated', usd: 'billed' },
    { 'a:,xusd': 'estimated' },
    SHA256,
    FOREIGN,
  ],
  { alg: 'sha-512', b64: 'A'.repeat(128) },
  { alg: 'sha-512', b64: 'A'.repeat(129) },
  { alg: 'sha-256', b64: 'AA' },
  ...[[], METERS, METERS.slice(0, 1), [...METERS, METERS[0]], [...METERS].reverse()],
  ...[62, 63, 64, 65].map((count) =>
    Array.from({ length: count }, (_, i) => ({ unit: `u${i}`, amount: { t: 'int', v: '0' } })),
  ),
  ...['-1', '0', '00', '1'.repeat(15), '1'.repeat(16), '9'.repeat(39), '9'.repeat(40)].map((v) => ({
    t: 'int',
    v,
  })),
  { t: 'dec', m: '100', s: 0 },
  { t: 'dec', m: '100', s: 39 },
  { t: 'dec', m: '-1', s: 1 },
  { t: 'dec', m: '1', s: 1.5 },
  { t: 'rat', n: '1', d: '3' },
  { t: 'f64', bits: '3ff0000000000000' },
  ...[15, 16, 17].map((count) => Array.from({ length: count }, () => SIGNATURE)),
  { kind: 'grant', bounds: { allowed_tools: ['*'], meter_caps: METERS } },
  { a: 'x'.repeat(4_080) },
  { a: 'x'.repeat(4_088) },
  { a: 'x'.repeat(4_089) },
  { b: 'ü', a: '\u0007', A: '' },
];

const NAMES = [
  'a',
  'usd',
  'calls',
  'zz',
  'tool_name',
  'authorization',
  'error_code',
  'ü',
  '',
  'hygiene',
  'action',
  'kind',
  'event_type',
];

/** The record with one thing or a few changed: a member taken away, added, or given a value from somewhere else. */
export function changeRecord(record: Members, random: () => number): Members {
  const changed = structuredClone(record);
  for (let left = 1 + Math.floor(random() * 2.2); left > 0; left -= 1) changeOnce(changed, random);
  return changed;
}

function changeOnce(record: Members, random: () => number): void {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)];
  const holders: (Members | unknown[])[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    holders.push(value as Members);
    for (const each of Object.values(value)) visit(each);
  };
  visit(record);
  const holder = pick(holders) as Members;
  const key = pick(Object.keys(holder));
  const how = random();
  if (Array.isArray(holder)) {
    const list = holder as unknown[];
    const at = Math.floor(random() * (list.length + 1));
    list.splice(
      at,
      random() < 0.5 ? 1 : 0,
      ...(random() < 0.6 ? [structuredClone(pick([...list, ...EDGES]))] : []),
    );
  } else if (how < 0.2 && key !== undefined) {
    delete holder[key];
  } else if (how < 0.3) {
    holder[pick(NAMES)] = structuredClone(pick(EDGES));
  } else if (key !== undefined && typeof holder[key] === 'string' && how < 0.6) {
    const text = [...holder[key]];
    const at = Math.floor(random() * (text.length + 1));
    holder[key] =
      text.slice(0, at).join('') +
      pick(['', 'a', 'Z', '0', '_', '-', '~', '*', 'ü', '"', '\n', ' ', '.', ':']) +
      text.slice(at + Math.floor(random() * 2)).join('');
  } else if (key !== undefined) {
    holder[key] = structuredClone(pick(EDGES));
  }
}

const TOKENS = [
  '"',
  '\\',
  ',',
  ':',
  '{',
  '}',
  '[',
  ']',
  '0',
  '1',
  '-',
  '.',
  'e',
  ' ',
  '\n',
  '\t',
  '\\u001f',
  '\\n',
  '\\/',
]
  .concat(['ü', '\u2028', '"a":1,', '"zz":"",', ',"seq":1', 'null', '00', '\u0000', '\u007f', '\ufeff'])
  .map((text) => Buffer.from(text))
  .concat([Buffer.of(0x80), Buffer.of(0xff), Buffer.of(0xc0, 0x80), Buffer.of(0xed, 0xa0, 0x80)]);

/** The line with some bytes changed, taken away, put in, repeated or exchanged. */
export function changeBytes(line: Buffer, random: () => number): Buffer {
  const below = (end: number): number => Math.floor(random() * end);
  let bytes: Buffer = Buffer.from(line);
  for (let left = 1 + below(2.2); left > 0 && bytes.length > 0; left -= 1) {
    const at = below(bytes.length);
    const length = 1 + below(random() < 0.7 ? 2 : 60);
    const rest = bytes.subarray(at + length);
    switch (below(6)) {
      case 0:
        bytes[at] = below(256);
        break;
      case 1:
        bytes = Buffer.concat([bytes.subarray(0, at), rest]);
        break;
      case 2:
        bytes = Buffer.concat([bytes.subarray(0, at), TOKENS[below(TOKENS.length)], bytes.subarray(at)]);
        break;
      case 3:
        bytes = Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
        break;
      case 4:
        bytes[at] ^= 1 << below(8);
        break;
      default:
        bytes = swapMembers(bytes, below);
    }
  }
  return bytes;
}

/** Two parts between commas, exchanged. */
function swapMembers(bytes: Buffer, below: (end: number) => number): Buffer {
  const parts = bytes.toString('latin1').split(',');
  const a = below(parts.length);
  const b = below(parts.length);
  [parts[a], parts[b]] = [parts[b], parts[a]];
  return Buffer.from(parts.join(','), 'latin1');
}

const rows = new Int32Array(3 * ROW_WIDTH);
/** Lines lie between others: what is around them must not matter. */
const around = Buffer.alloc(80_000, '"}],{"a":"b\\u0000');

/**
 * Holds what the fast path says of a line against what the full one says.
 *
 * @returns Whether it took the line for a scannable record: `true` also where its ids are not true.
 * @throws Error that shows the line where they differ.
 */
export function holdAgainst(line: Buffer): boolean {
  // What is longer than any line may be, and has no room between others.
  if (line.length > around.length - 16) return scanRecord(line, 0, line.length, rows, 2);
  const start = 1 + (line.length % 7);
  around.set(line, start);
  const end = start + line.length;
  around[end] = line.length % 2 === 0 ? 0x0a : 0x22;
  holdScanners(line);
  const isUsual = scanRecord(around, start, end, rows, 1);
  if (isUsual !== scanRecord(line, 0, line.length, rows, 2)) fail(line, 'where it lies matters');
  if (!isUsual) return false;
  const full = examineFully(line, 'records');
  const isTrue = hasTrueIdentity(around, rows, 1);
  const others = full.faults.filter(
    ({ code }) => code !== 'PAYLOAD_DIGEST_MISMATCH' && code !== 'EVENT_ID_MISMATCH',
  );
  if (others.length > 0 || !full.wellFormed) fail(line, JSON.stringify(others));
  if (isTrue !== (full.faults.length === 0)) fail(line, `true ids: ${isTrue}`);
  const quick = new ScannedLine(around, rows, 1);
  const said = factsOf(quick as object as ExaminedLine);
  const expected = factsOf(full);
  if (!isDeepStrictEqual(said, expected)) fail(line, `${JSON.stringify(said)}\n${JSON.stringify(expected)}`);
  const signatures = Array.from({ length: signatureCountOf(rows, 1) }, (_, i) => {
    const at = signatureAt(around, rows, 1, i);
    const sig = around.subarray(at, closingQuote(around, at)).toString('latin1');
    return { keyid: keyidOf(around, rows, 1, i), sig };
  });
  if (!isDeepStrictEqual(signatures, full.signatures)) fail(line, JSON.stringify(signatures));
  return true;
}

const scanners = { plain: makePlainScanner(), wasm: makeWasmScanner() };

/** What the scanner in WebAssembly says of a line is what the other one says: the same row, the same hash. */
export function holdScanners(line: Buffer): void {
  const { plain, wasm } = scanners;
  if (wasm === undefined) throw new Error('no WebAssembly');
  if (line.length > MAX_LINE_BYTES) return;
  const start = 1 + (line.length % 7);
  const end = start + line.length;
  const block = Buffer.concat([around.subarray(0, start), line, around.subarray(end, end + 8)]);
  const said = saidBy(wasm, block, start, end);
  const expected = saidBy(plain, block, start, end);
  if (!isDeepStrictEqual(said, expected)) fail(line, `${JSON.stringify(said)}\n${JSON.stringify(expected)}`);
}

function saidBy(scanner: LineScanner, block: Uint8Array, start: number, end: number): object {
  const ends = scanner.begin(block);
  const leaf = scanner.leafHash(start, end);
  const isTrue = scanner.scan(start, end, 0);
  // A row is filled where the form is a scannable record's; whether its ids are true comes after that.
  const row = scanner.rows[TYPE] === 0 ? [] : [...scanner.rows.subarray(0, ROW_WIDTH)];
  return { ends, leaf, isTrue, row };
}

function factsOf(line: ExaminedLine): object {
  if (!line.wellFormed) throw new Error('not well-formed');
  const { layout, seq, prev, eventId, ledgerId, previousId, eventType, occurredAt, principalId } = line;
  const { toolName, signatures, span, type } = line;
  const outline = { ...(line.outline() ?? {}) };
  return {
    ...{ layout, seq, prev, eventId, ledgerId, previousId, eventType, occurredAt, principalId },
    ...{
      toolName,
      signatures: [...(signatures ?? [])],
      span: { ...span },
      type,
      json: line.json(),
      event: line.event(),
    },
    outline,
    read: { ...(outlineEvent(type, line.event()) ?? {}) },
  };
}

function fail(line: Buffer, what: string): never {
  throw new Error(`the two ways differ on ${line.toString('utf8')}\n${what}`);
}

/** Around the lengths that some text or another may have. */
const LENGTHS = [
  0, 1, 15, 16, 17, 32, 33, 39, 40, 43, 44, 63, 64, 65, 66, 128, 129, 200, 201, 255, 256, 257,
].concat([261, 262, 263, 512, 513, 1_024, 1_025]);

/** The record once for each place in it and each value that may be put there: texts of every length, or every edge too. */
export function* eachPlaceChanged(record: Members, withEdges: boolean): Generator<Members> {
  const holders = (value: unknown): Members[] =>
    typeof value !== 'object' || value === null
      ? []
      : [value as Members, ...Object.values(value).flatMap(holders)];
  const changed = structuredClone(record);
  for (const holder of holders(changed)) {
    for (const [key, value] of Object.entries(holder)) {
      const texts =
        typeof value === 'string' && value !== '' ? LENGTHS.map((length) => stretched(value, length)) : [];
      for (const other of [...texts, ...(withEdges ? EDGES : [])]) {
        holder[key] = other;
        yield changed;
      }
      holder[key] = value;
    }
  }
}

/** As many of its characters, the last one again and again where it has too few. */
function stretched(text: string, length: number): string {
  const characters = [...text];
  const last = characters.at(-1) ?? '';
  return characters.slice(0, length).join('') + last.repeat(Math.max(0, length - characters.length));
}
