/** `northroot show` and `northroot log`. */

import { verify } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { sha256Base64url } from '../../src/base/bytes/sha256.js';
import { buildEvent, buildGenesis } from '../../src/format/event/build.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { formatRecord } from '../../src/format/record/record.js';
import { PAYLOAD_TYPE, preAuthEncoding, type DsseEnvelope } from '../../src/format/signature/dsse.js';
import { createSigner, signEvent } from '../../src/format/signature/signer.js';
import { ownKeyEntry } from '../../src/log/writer/genesis.js';
import { action, denial, execution, grant, ndjson, note } from './drafts.js';
import {
  expectError,
  expectOk,
  parse,
  parseLines,
  Workshop,
  type KeyJson,
  type RecordJson,
  type Run,
} from './runner.js';

const shop = new Workshop();

function append(...drafts: object[]): string[] {
  const run = shop.run(['append', 'ledger.jsonl', '--origin', 'example.com/read'], { input: ndjson(drafts) });
  return parseLines(expectOk(run)).map(({ event_id }) => event_id);
}

const [granted = ''] = append(grant());
const [allowed = ''] = append(action(granted), denial(), note('by a person', { principal_id: 'human:ada' }));
append(execution(allowed));
for (const n of [1, 2, 3]) append(note(n, { occurred_at: `2026-03-03T00:00:0${n}Z` }));

const lines = shop.lines('ledger.jsonl');
const records = shop.records('ledger.jsonl');
const ids = records.map(({ event }) => event.event_id.b64);
const hex = (id: string): string => Buffer.from(id, 'base64url').toString('hex');

// A copy in which a line is no record, one is blank, and the last is torn.
shop.write(
  'broken.jsonl',
  `${[...lines.slice(0, 3), 'no record', '', ...lines.slice(3)].join('\n')}\n{"event`,
);

function show(...args: string[]): Run {
  return shop.run(['show', 'ledger.jsonl', ...args]);
}

describe('show', () => {
  it.each([
    ['its seq', () => '4'],
    ['its id', () => `sha-256:${ids[4]}`],
    ['its id in base64url', () => ids[4]],
    ['its id in hex', () => hex(ids[4])],
    ['its id in capital hex', () => hex(ids[4]).toUpperCase()],
    ['the beginning of its id', () => `sha-256:${ids[4]?.slice(0, 12)}`],
    ['the beginning of its id in hex', () => hex(ids[4]).slice(0, 21)],
  ])('finds a record by %s', (_what, wanted) => {
    expect(expectOk(show('--format', 'record', '--', wanted()))).toBe(`${lines[4]}\n`);
  });

  it('writes the record indented, under its place', () => {
    const [head, ...rest] = expectOk(show('4')).split('\n');
    expect(head).toContain('ledger.jsonl:5');
    expect(head).toContain(ids[4]);
    expect(JSON.parse(rest.join('\n'))).toEqual(records[4]);
  });

  it("writes the event's canonical bytes, and no more", () => {
    expect(expectOk(show('4', '--format', 'event'))).toBe(canonicalText(records[4].event));
  });

  it('writes a DSSE envelope whose payload is the event', () => {
    const envelope = parse<DsseEnvelope>(expectOk(show('4', '--format', 'dsse')));
    expect(Object.keys(envelope).sort()).toEqual(['payload', 'payloadType', 'signatures']);
    expect(envelope.payloadType).toBe('application/vnd.northroot.event+json');
    expect(Buffer.from(envelope.payload, 'base64').toString()).toBe(canonicalText(records[4].event));
    const sigs = envelope.signatures.map(({ sig }) => Buffer.from(sig, 'base64').toString('base64url'));
    expect(sigs).toEqual(records[4].signatures.map(({ sig }: { sig: string }) => sig));
  });

  it('writes the signatures of P-256 keys as DER', () => {
    const signers = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey('p256'))];
    const genesis = buildGenesis({
      origin: 'example.com/dsse',
      ledger_version: '1',
      signing: { events: 'required', checkpoints: 'optional' },
      keys: [ownKeyEntry(signers[1].publicKey)],
      occurred_at: '2026-01-01T00:00:00Z',
      principal_id: 'service:ledger',
    });
    const eventText = canonicalText(genesis);
    const signatures = signers.map((signer) => signEvent(Buffer.from(eventText), signer));
    const prev = sha256Base64url(Buffer.alloc(0));
    shop.write('p256.jsonl', formatRecord({ eventText, prev, seq: 0, signatures }));
    const run = shop.run(['show', 'p256.jsonl', '0', '--format', 'dsse']);
    const envelope = parse<DsseEnvelope>(expectOk(run));
    const [other, der] = envelope.signatures.map(({ sig }) => Buffer.from(sig, 'base64'));
    expect(other).toHaveLength(64);
    expect(run.stderr).toContain(signers[0].publicKey.keyid);
    const key = formatPublicKeyAs(signers[1].publicKey, 'pem');
    expect(verify('sha256', preAuthEncoding(PAYLOAD_TYPE, Buffer.from(eventText)), key, der)).toBe(true);
  });

  it('reads standard input', () => {
    const run = shop.run(['show', '-', '4', '--format', 'record'], { input: shop.read('ledger.jsonl') });
    expect(expectOk(run)).toBe(`${lines[4]}\n`);
  });

  it('reads on behind a line that is no record', () => {
    expect(expectOk(shop.run(['show', 'broken.jsonl', '4', '--format', 'record']))).toBe(`${lines[4]}\n`);
  });

  it.each<[string, 1 | 2, string]>([
    ['999', 2, 'RECORD_NOT_FOUND'],
    [`sha-256:${'A'.repeat(43)}`, 2, 'RECORD_NOT_FOUND'],
    ['no id!', 2, 'USAGE'],
    ['', 2, 'USAGE'],
    ['sha-256:', 2, 'USAGE'],
    ['x'.repeat(65), 2, 'USAGE'],
  ])('finds nothing by %j', (wanted, status, code) => {
    expectError(show(wanted), status, code);
  });

  it('does not choose between several', () => {
    const again = lines[4].replace('"seq":4', '"seq":9');
    shop.write('doubled.jsonl', `${[...lines, again].join('\n')}\n`);
    const doubled = shop.run(['show', 'doubled.jsonl', `sha-256:${ids[4]}`]);
    expectError(doubled, 2, 'RECORD_AMBIGUOUS');
    expect(doubled.stderr).toContain('4 or 9');
    // Of seventeen ids two begin with the same one of sixteen digits.
    const events = Array.from({ length: 17 }, (_, n) =>
      buildEvent(note(n, { occurred_at: '2026-01-01T00:00:00Z' })),
    );
    shop.write('bare.jsonl', events.map((event) => `${canonicalText(event)}\n`).join(''));
    const digits = events.map(({ event_id }) => hex(event_id.b64).slice(0, 1));
    const digit = digits.find((first, i) => digits.indexOf(first) < i);
    expectError(shop.run(['show', 'bare.jsonl', `sha-256:${digit}`]), 2, 'RECORD_AMBIGUOUS');
  });

  it.each<[string, string[]]>([
    ['FILE_NOT_FOUND', ['missing.jsonl', '1']],
    ['NOT_A_LEDGER', ['.', '1']],
    ['USAGE', ['ledger.jsonl']],
    ['USAGE', ['ledger.jsonl', '1', '--format', 'xml']],
  ])('answers wrong use with %s: %j', (code, args) => {
    expectError(shop.run(['show', ...args]), 2, code);
  });
});

/** The records that `log` lists with these options, by their seq. */
function listed(...args: string[]): number[] {
  const run = shop.run(['log', 'ledger.jsonl', '--format', 'ndjson', ...args]);
  const stdout = expectOk(run);
  const seqs = parseLines<RecordJson>(stdout).map(({ seq }) => seq);
  expect(stdout).toBe(seqs.map((seq) => `${lines[seq]}\n`).join(''));
  return seqs;
}

describe('log', () => {
  it.each([
    [10, undefined],
    [11, 'warning: 1 more line is not a record'],
    [5_000, 'warning: 4990 more lines are not records'],
  ])('names ten of the lines that are not records, and counts the rest: %d', (count, rest) => {
    shop.write('junk.jsonl', `${lines.join('\n')}\n${'{}\n'.repeat(count)}`);
    const run = shop.run(['log', 'junk.jsonl', '--no-index', '--since', '2026-01-01']);
    expect(expectOk(run).trimEnd().split('\n')).toHaveLength(lines.length);
    const said = run.stderr.trimEnd().split('\n');
    const named = said.slice(0, 10).map((line) => /junk\.jsonl:(\d+) is not a record/.exec(line)?.[1]);
    expect(named).toEqual(Array.from({ length: 10 }, (_, n) => String(lines.length + n + 1)));
    expect(said.slice(10).map((line) => line.split(';')[0])).toEqual(rest === undefined ? [] : [rest]);
  });

  it('lists every record as it stands', () => {
    expect(listed()).toEqual(records.map(({ seq }) => seq));
  });

  it.each<[number[], string[]]>([
    [[0], ['--type', 'genesis']],
    [
      [1, 2, 3],
      ['--type', 'authorization'],
    ],
    [
      [4, 6, 7, 8],
      ['--type', 'x.note'],
    ],
    [[], ['--type', 'x.other']],
    [[4], ['--principal', 'human:ada']],
    [[4], ['--principal', 'h*']],
    [
      [1, 2, 3, 5, 6, 7, 8],
      ['--principal', 'agent:*'],
    ],
    [
      [2, 5],
      ['--tool', 'fs.*'],
    ],
    [
      [2, 3, 5],
      ['--tool', '*'],
    ],
    [[3], ['--tool', 'net.send']],
    [
      [1, 2, 3],
      ['--until', '2026-03-02'],
    ],
    [
      [1, 2],
      ['--until', '2026-03-01T12:00:00Z'],
    ],
    [
      [7, 8],
      ['--since', '2026-03-03T00:00:02.000Z', '--until', '2026-03-04'],
    ],
    [[5], ['--since', '2026-03-02', '--until', '2026-03-03']],
    [
      [0, 1],
      ['--limit', '2'],
    ],
    [
      [6, 7],
      ['--type', 'x.note', '--principal', 'agent:a1', '--limit', '2'],
    ],
    [[3], ['--verdict', 'denied']],
    [[], ['--verdict', 'invalid']],
    [
      [0, 1, 2, 4, 5, 6, 7, 8],
      ['--verdict', 'ok'],
    ],
  ])('lists %j with %j', (seqs, args) => {
    expect(listed(...args)).toEqual(seqs);
  });

  it('lists one record a line as text: seq, time, type, id, principal, and what it is about', () => {
    const text = expectOk(shop.run(['log', 'ledger.jsonl']))
      .split('\n')
      .slice(0, -1);
    expect(text).toHaveLength(records.length);
    for (const [seq, line] of text.entries()) {
      const { event } = records[seq];
      const shortId = `sha-256:${ids[seq]?.slice(0, 10)}`;
      expect(line.split(/ +/).slice(1, 6)).toEqual([
        String(seq),
        event.occurred_at,
        event.event_type,
        shortId,
        event.principal_id,
      ]);
    }
    expect(text[1]).toContain('allow grant');
    expect(text[3]).toContain('deny action net.send TOOL_FORBIDDEN');
    expect(text[5]).toContain('fs.read success calls=1');
  });

  it('puts the verdicts beside the records when they were asked for', () => {
    const text = expectOk(shop.run(['log', 'ledger.jsonl', '--verdict', 'denied']));
    expect(text.split(/ +/)).toContain('denied');
  });

  it('judges by a trust policy', () => {
    expectOk(shop.run(['keygen', '--out', 'stranger.pem']));
    const key = parse<KeyJson>(expectOk(shop.run(['key', 'show', 'stranger.pem'])));
    shop.write('trust.json', JSON.stringify({ trust_version: '1', keys: [key] }));
    const all = records.map(({ seq }) => seq);
    expect(listed('--trust', 'trust.json', '--verdict', 'invalid')).toEqual(all);
  });

  it('warns of what is no record, and goes on', () => {
    const run = shop.run(['log', 'broken.jsonl', '--format', 'ndjson']);
    expect(expectOk(run)).toBe(shop.read('ledger.jsonl'));
    const warnings = run.stderr.trim().split('\n');
    expect(warnings.map((line) => /^warning: (\S+)/.exec(line)?.[1])).toEqual([
      'broken.jsonl:4',
      'broken.jsonl:5',
      `broken.jsonl:${lines.length + 3}`,
    ]);
    expect(shop.run(['log', 'broken.jsonl', '--quiet'])).toMatchObject({ status: 0, stderr: '' });
  });

  it('reads standard input, and ends with its reader', () => {
    const input = shop.read('ledger.jsonl').repeat(200);
    const run = shop.shell('northroot log - | head -n 1; echo "${PIPESTATUS[0]}"', { input });
    expect(run.stdout.trim().split('\n').at(-1)).toBe('0');
    expect(run.stderr).toBe('');
  });

  it('has nothing to say of an empty file', () => {
    shop.write('empty.jsonl', '');
    expect(shop.run(['log', 'empty.jsonl'])).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  it.each<[string, string[]]>([
    ['FILE_NOT_FOUND', ['missing.jsonl']],
    ['NOT_A_LEDGER', ['.']],
    ['USAGE', []],
    ['USAGE', ['ledger.jsonl', '--since', 'yesterday']],
    ['USAGE', ['ledger.jsonl', '--until', '2026-02-30']],
    ['USAGE', ['ledger.jsonl', '--limit', '0']],
    ['USAGE', ['ledger.jsonl', '--limit', '1e3']],
    ['USAGE', ['ledger.jsonl', '--principal', 'bob']],
    ['USAGE', ['ledger.jsonl', '--tool', 'a b']],
    ['USAGE', ['ledger.jsonl', '--verdict', 'good']],
    ['FILE_NOT_FOUND', ['ledger.jsonl', '--trust', 'missing.json']],
    ['TRUST_POLICY_INVALID', ['ledger.jsonl', '--trust', 'ledger.jsonl']],
  ])('answers wrong use with %s: %j', (code, args) => {
    expectError(shop.run(['log', ...args]), 2, code);
  });
});

describe('log, the newest records', () => {
  const seqsOf = (text: string): number[] =>
    [...text.matchAll(/^ *(\d+) {2}/gm)].map(([, seq]) => Number(seq));

  it('lists the last with -n, goes on with -f, and ends with 0 when it is stopped', async () => {
    shop.write('growing.jsonl', `${lines.join('\n')}\n`);
    const following = shop.start(['log', 'growing.jsonl', '-f', '-n', '2']);
    await following.until(({ stdout }) => seqsOf(stdout).length === 2);
    appendFileSync(shop.path('growing.jsonl'), `${lines.at(-1)}\n`);
    await following.until(({ stdout }) => seqsOf(stdout).length === 3);
    following.kill('SIGINT');
    const { status, stdout } = await following.end();
    expect([status, seqsOf(stdout)]).toEqual([
      0,
      [records.length - 2, records.length - 1, records.length - 1],
    ]);
  });

  it('takes times ago, and refuses what excludes each other', () => {
    // Its genesis was made just now.
    expect(seqsOf(expectOk(shop.run(['log', 'ledger.jsonl', '--type', 'genesis', '--since', '1w'])))).toEqual(
      [0],
    );
    expectError(shop.run(['log', 'ledger.jsonl', '-n', '1', '--limit', '1']), 2, 'USAGE');
    expectError(shop.run(['log', 'ledger.jsonl', '--since', '1h', '--until', '2h']), 2, 'USAGE');
  });
});
