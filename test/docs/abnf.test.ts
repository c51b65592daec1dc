/** docs/spec/northroot.abnf: readable by a parser of others, and of one mind with the schemas and the code. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hashToBase64 } from '../../src/format/tree/compact-range.js';
import { decodeCheckpoint } from '../../src/format/note/checkpoint.js';
import { decodeNote } from '../../src/format/note/signed-note.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { isKeyName, readVkey } from '../../src/format/key/vkey.js';
import { decodeTlogProof, formatTlogProof } from '../../src/proof/tlog-proof.js';
import { schemaDocument } from '../../src/format/schema/documents.js';
import { parseAbnf, patternOf } from './abnf.js';
import { makeSigner } from './ledger-kit.js';
import { readText, root } from './markdown.js';
import { peerModule } from './peer.js';
import { times } from '../slow.js';

const text = readText('docs/spec/northroot.abnf');
const grammar = parseAbnf(text);
const is = (rule: string, candidate: string) => patternOf(grammar, rule).test(candidate);

interface Parser {
  readonly parseString: (text: string) => Promise<{ defs: Record<string, unknown> }>;
}
const parser = await peerModule<Parser>('abnf');

const B64 = '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU';

type Schema = Readonly<Record<string, unknown>>;
const common = (schemaDocument('common') as { $defs: Record<string, Schema> }).$defs;
const publicKey = (schemaDocument('key') as { properties: { public_key: Schema } }).properties.public_key;
const digestText = (schemaDocument('finding') as { $defs: Record<string, Schema> }).$defs['digest_text'];

/** Rules that say what the pattern of a schema says. */
const patterns: [string, string][] = [
  ...Object.entries(common)
    .filter(([name, { pattern }]) => pattern !== undefined && name !== 'canonical_profile_id')
    .map(([name, { pattern }]) => [name.replaceAll('_', '-'), pattern as string] as [string, string]),
  ['public-key', publicKey?.['pattern'] as string],
  ['sha256-text', digestText?.['pattern'] as string],
];

/** Of each rule texts that it matches, and others. */
const examples: [string, readonly string[], readonly string[]][] = [
  [
    'timestamp',
    ['2026-01-01T00:00:00Z', '2026-12-31T23:59:59.123456789Z'],
    [
      '2026-1-01T00:00:00Z',
      '2026-01-01t00:00:00Z',
      '2026-01-01T00:00:00+00:00',
      '2026-01-01T00:00:60Z',
      '2026-01-01T00:00:00.Z',
    ],
  ],
  [
    'principal-id',
    ['agent:a1', 'human:a@b.example'],
    ['agent:', 'Agent:a', 'robot:a', 'agent:a b', `agent:${'a'.repeat(256)}`],
  ],
  ['principal-pattern', ['*', 'h*', 'agent:*', 'agent:ci*', 'org:x'], ['', 'x*', 'hx*', '**', 'agent:a*b']],
  ['tool-name', ['fs.read', 'Bash~28rm:~2A~29', 'a'.repeat(128)], ['', 'fs read', 'fs*', 'a'.repeat(129)]],
  ['tool-pattern', ['*', 'fs.*', 'fs.read'], ['', '**', '*a', `${'a'.repeat(129)}*`]],
  ['unit', ['usd', 'time.ms'], ['', 'USD', '1usd', 'a'.repeat(65)]],
  [
    'rate-unit',
    ['usd.per_5h', 'calls.per_week', 'a.per_x.per_sec'],
    ['usd.per_0h', 'usd.per_10000s', 'usd.per_year', '.per_sec'],
  ],
  ['code', ['ALLOW', 'A_1'], ['', 'allow', 'A-B', 'A'.repeat(65)]],
  ['request-key', ['a/2', 'x=@+-'], ['', 'a b', 'é']],
  ['event-type', ['x.northroot.start', '_a'], ['', '.a', 'a b']],
  ['origin', ['example.com/agents/prod', 'é'], ['', 'a b', 'a+b', 'a\n', '\u3000', 'a'.repeat(256)]],
  ['integer-text', ['0', '-1', '9'.repeat(39)], ['-0', '01', '1.0', '+1', '9'.repeat(40)]],
  ['positive-integer-text', ['1', '10'], ['0', '-1', '01']],
  ['f64-bits', ['3fb999999999999a'], ['3FB999999999999A', '3fb9']],
  ['sha256-text', [`sha-256:${B64}`], [B64, `sha-256:${B64}=`, `SHA-256:${B64}`, `sha-256:${B64.slice(1)}`]],
  ['keyid', [B64], [`${B64.slice(0, 42)}B`, `${B64}\n`]],
  ['digest-alg', ['sha-512', 'blake3'], ['', '-a', 'SHA-256', 'a'.repeat(33)]],
  ['segment-name', ['00000000000000000000.jsonl'], ['0.jsonl', '00000000000000000000.json']],
];

/** The notes of the fixtures, sound and broken. */
const notes = [
  ...readdirSync(join(root, 'fixtures/anchors')).map((file) => readText(`fixtures/anchors/${file}`)),
  ...['ledgers', 'broken'].flatMap((folder) =>
    (readdirSync(join(root, 'fixtures', folder), { recursive: true }) as string[])
      .filter((file) => file.endsWith('.jsonl'))
      .flatMap((file) => readText(`fixtures/${folder}/${file}`).split('\n'))
      .flatMap((line) => {
        const note = /"note":("(?:[^"\\]|\\.)*")/.exec(line)?.[1];
        return note === undefined ? [] : [JSON.parse(note) as string];
      }),
  ),
];
const isNote = (candidate: string) => decodeNote(Buffer.from(candidate)).ok;
const isCheckpoint = (candidate: string) => decodeCheckpoint(Buffer.from(candidate)).ok;

describe('docs/spec/northroot.abnf', () => {
  it.skipIf(parser === undefined)('is ABNF to a parser of others', async () => {
    const { defs } = (await parser?.parseString(text.replaceAll('\n', '\r\n'))) ?? { defs: {} };
    expect(Object.keys(defs).map((name) => name.toLowerCase())).toEqual([...grammar.keys()]);
  });

  it('fits the lines of an RFC', () => {
    expect(text.split('\n').filter((line) => line.length > 72)).toEqual([]);
  });

  it('has no rule that cannot be read', () => {
    for (const rule of grammar.keys()) expect(patternOf(grammar, rule)).toBeInstanceOf(RegExp);
  });

  it.each(examples)('%s matches what it should, and nothing else', (rule, good, bad) => {
    expect(good.filter((each) => !is(rule, each))).toEqual([]);
    expect(bad.filter((each) => is(rule, each))).toEqual([]);
  });

  it.each(patterns)('%s says what the schema says', (rule, source) => {
    const [mine, theirs] = [patternOf(grammar, rule), new RegExp(source, 'u')];
    const alphabet = [
      ...'aAzZfg059_-.:/*@+~=# é\n\u00a0',
      'human:',
      'agent',
      '2026-01-31T23:59:59',
      '.per_',
      '5h',
      B64,
    ];
    const odd = fc.array(fc.constantFrom(...alphabet), { maxLength: 6 }).map((parts) => parts.join(''));
    const near = fc
      .tuple(fc.stringMatching(theirs), fc.nat(), fc.constantFrom(...alphabet))
      .map(
        ([each, at, more]) =>
          each.slice(0, at % (each.length + 1)) + more + each.slice(at % (each.length + 1)),
      );
    fc.assert(
      fc.property(fc.oneof(odd, near, fc.stringMatching(theirs)), (candidate) => {
        expect([candidate, mine.test(candidate)]).toEqual([candidate, theirs.test(candidate)]);
      }),
      { numRuns: rule === 'public-key' ? times(20, 500) : times(150, 5_000) },
    );
  });

  it('says what names of keys are', () => {
    const pattern = patternOf(grammar, 'key-name');
    for (let point = 0; point <= 0x10ffff; point += point < 0x3100 || point > 0xfe00 ? 1 : 251) {
      const character = String.fromCodePoint(point);
      if (pattern.test(character) !== isKeyName(character)) expect(point.toString(16)).toBe('judged alike');
      if (point > 0x10000) point += 4_099;
    }
  });

  it('matches the notes of the fixtures that are checkpoints, and no others', () => {
    expect(notes.length).toBeGreaterThan(100);
    const [note, checkpoint] = [patternOf(grammar, 'signed-note'), patternOf(grammar, 'checkpoint-note')];
    for (const each of notes) {
      // Unpaired surrogates are no characters of a note.
      if (/\p{Cs}/u.test(each)) continue;
      expect([each, note.test(each), checkpoint.test(each)]).toEqual([
        each,
        isNote(each),
        isCheckpoint(each),
      ]);
    }
  });

  it('judges changed notes as the code does', () => {
    const checkpoint = patternOf(grammar, 'checkpoint-note');
    const parts = ['', '\n', '\n\n', ' ', '—', '— ', '+', 'A', '=', '0', '9', '\t', '\u00a0', '\u0000'];
    fc.assert(
      fc.property(
        fc.constantFrom(...notes.filter((each) => each.length < 2_000 && isCheckpoint(each))),
        fc.nat(),
        fc.nat(2),
        fc.constantFrom(...parts),
        (note, at, length, part) => {
          const from = at % note.length;
          const changed = note.slice(0, from) + part + note.slice(from + length);
          if (/\n\n[^]*\n\n/.test(changed)) return;
          expect([changed, checkpoint.test(changed)]).toEqual([changed, isCheckpoint(changed)]);
        },
      ),
      { numRuns: times(400, 10_000) },
    );
  });

  it('matches vkeys and proofs', () => {
    const vkey = formatPublicKeyAs(makeSigner().publicKey, 'cosigner', 'w.example/witness');
    expect(() => readVkey(vkey)).not.toThrow();
    expect(is('vkey', vkey)).toBe(true);
    for (const wrong of [
      vkey.replace(/[+][0-9a-f]{8}[+]/, '+ABCDEF01+'),
      vkey.slice(1, 5),
      vkey.replace('+', ' '),
      `${vkey}=`,
    ]) {
      expect([wrong, is('vkey', wrong)]).toEqual([wrong, false]);
    }
    const note = Buffer.from(notes.find(isCheckpoint) ?? '');
    for (const extra of [undefined, Buffer.from('é')]) {
      const members = { index: 1, hashes: ['\0'.repeat(32)], note, extra };
      const proof = Buffer.from(formatTlogProof(members)).toString();
      expect(decodeTlogProof(Buffer.from(proof)).ok).toBe(true);
      expect([proof, is('tlog-proof', proof)]).toEqual([proof, true]);
      expect(is('tlog-proof', proof.replace('index', 'Index'))).toBe(false);
    }
    expect(is('root', hashToBase64('\0'.repeat(32)))).toBe(true);
  });
});
