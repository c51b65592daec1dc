/** `northroot verify`: what it reads, how it reports, what it ends with. */

import { appendFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Report } from '../../src/rules/report/report.js';
import { checkReport } from '../../src/format/schema/check.js';
import type { FindingJson } from '../../src/format/schema/generated/types.js';
import { ndjson, note } from './drafts.js';
import {
  expectCode,
  expectError,
  expectOk,
  parseLines,
  Workshop,
  type Run,
  type RunOptions,
  parse,
  type KeyJson,
} from './runner.js';

const shop = new Workshop();
const ORIGIN = 'example.com/verify';
expectOk(
  shop.run(['append', 'good.jsonl', '--origin', ORIGIN], { input: ndjson([1, 2, 3, 4].map((n) => note(n))) }),
);
expectOk(
  shop.run(['append', 'folder/', '--create', '--segment-bytes', '2000'], {
    input: ndjson([1, 2, 3, 4].map((n) => note(n))),
  }),
);
const lines = shop.lines('good.jsonl');

/** Writes a copy of the good ledger with these lines. */
function ledgerOf(name: string, copy: readonly string[], end = '\n'): string {
  return shop.write(name, `${copy.join('\n')}${end}`);
}

ledgerOf('tampered.jsonl', lines.with(2, lines[2].replace('"n":2', '"n":7')));
ledgerOf('dropped.jsonl', lines.toSpliced(2, 1));
ledgerOf('torn.jsonl', lines, '');
ledgerOf(
  'white-space.jsonl',
  lines.map((line) => line.replace('"seq":', '"seq": ')),
);

function verify(args: readonly string[], options?: RunOptions): Run {
  return shop.run(['verify', ...args], options);
}

/** The JSON report, which must be one by its schema, and agree with the exit status. */
function report(args: readonly string[], options?: RunOptions): Report {
  const { status, stdout, stderr } = verify([...args, '--format', 'json'], options);
  const value = parse<Report>(stdout);
  expect(checkReport(value)).toEqual([]);
  expect([value.exit_status, stderr]).toEqual([status, '']);
  return value;
}

function codesIn({ findings }: Report): string[] {
  return findings.map(({ code }) => code);
}

describe('verify', () => {
  it.each<[string, string, number, string[]]>([
    ['good.jsonl', 'ok', 0, []],
    ['folder', 'ok', 0, []],
    [
      'tampered.jsonl',
      'invalid',
      1,
      ['PAYLOAD_DIGEST_MISMATCH', 'EVENT_ID_MISMATCH', 'SIGNATURE_INVALID', 'PREV_MISMATCH'],
    ],
    ['dropped.jsonl', 'invalid', 1, ['PREV_MISMATCH', 'SEQ_GAP']],
    ['torn.jsonl', 'invalid', 1, ['LINE_TORN']],
  ])('gives one verdict in every format: %s is %s', (path, verdict, status, codes) => {
    const json = report([path]);
    expect(json).toMatchObject({ verdict, exit_status: status });
    expect(codesIn(json).sort()).toEqual([...codes].sort());
    const text = verify([path]);
    expect(text.status).toBe(status);
    expect(text.stdout.startsWith(`${verdict}  ${path}`)).toBe(true);
    for (const code of codes) expect(text.stdout).toContain(` ${code}: `);
    const stream = verify([path, '--format', 'ndjson']);
    expect(stream.status).toBe(status);
    const values = parseLines<Partial<FindingJson>>(stream.stdout);
    const { findings, ...rest } = json;
    expect(values.at(-1)).toEqual(rest);
    expect(
      values
        .slice(0, -1)
        .map(({ code }) => code)
        .sort(),
    ).toEqual([...codes].sort());
    expect(findings).toHaveLength(codes.length);
  });

  it('reads standard input, with the same result', () => {
    const ofFile = report(['tampered.jsonl']);
    const ofStream = report(['-'], { input: shop.bytes('tampered.jsonl') });
    const text = JSON.stringify(ofFile).replaceAll('"tampered.jsonl', '"-').replaceAll('tampered.jsonl', '-');
    expect(JSON.parse(text)).toEqual(ofStream);
  });

  it('points at the byte', () => {
    const [first] = report(['white-space.jsonl']).findings;
    expect(first).toMatchObject({ code: 'NOT_CANONICAL', at: { line: 1, pointer: '/seq' } });
    expect(
      shop
        .read('white-space.jsonl')
        .slice(first.at.byte_offset - 6)
        .startsWith('"seq": '),
    ).toBe(true);
    expect(verify(['white-space.jsonl']).stdout).toContain(
      `white-space.jsonl:1 (byte ${first.at.byte_offset}) NOT_CANONICAL: `,
    );
  });

  it.each([0, 1, 2])('lists at most %i findings and counts all', (max) => {
    const args = ['white-space.jsonl', '--max-findings', String(max)];
    const { findings, ...rest } = report(args);
    expect(rest).toMatchObject({ findings_total: 5, exit_status: 1 });
    expect(findings).toHaveLength(max);
    const stream = parseLines(verify([...args, '--format', 'ndjson']).stdout);
    expect(stream).toHaveLength(max + 1);
    const { stdout } = verify(args);
    expect(stdout.match(/NOT_CANONICAL/g) ?? []).toHaveLength(max);
    expect(stdout).toContain(`${5 - max} more`);
  });

  it('says one hint for findings of one code', () => {
    const { stdout } = verify(['white-space.jsonl']);
    expect(stdout.match(/NOT_CANONICAL/g)).toHaveLength(5);
    expect(stdout.match(/hint:/g)).toHaveLength(1);
    expect(stdout.trimEnd().split('\n').at(-1)).toContain('hint:');
  });

  it('is ok with something to look at, and says so', () => {
    expectOk(
      shop.run(['append', 'future.jsonl', '--create', '--unsigned'], {
        input: ndjson([note(1, { event_type: 'future' })]),
      }),
    );
    expect(codesIn(report(['future.jsonl']))).toEqual(['EVENT_TYPE_UNKNOWN']);
    const [headline] = verify(['future.jsonl']).stdout.split('\n');
    expect(headline).toMatch(/^ok {2}future\.jsonl: .*1 finding/);
  });

  it('says what was not checked', () => {
    const { stdout } = verify(['good.jsonl']);
    expect(stdout.split('\n').slice(0, 3).join('\n')).toContain('self-declared');
    for (const { code } of report(['good.jsonl']).not_checked) expect(stdout).toContain(code);
  });
});

describe('verify --trust', () => {
  const own = parse<KeyJson>(expectOk(shop.run(['key', 'show', 'good.jsonl.key'])));
  expectOk(shop.run(['keygen', '--out', 'stranger.pem']));
  const stranger = parse<KeyJson>(expectOk(shop.run(['key', 'show', 'stranger.pem'])));
  const policy = (name: string, members: object): string =>
    shop.write(name, JSON.stringify({ trust_version: '1', ...members }, undefined, 2));
  policy('good.json', { origins: [ORIGIN], keys: [own] });
  policy('stranger.json', { keys: [stranger] });
  policy('elsewhere.json', { origins: ['example.com/other'], keys: [own] });
  policy('others.json', { keys: [{ ...own, principals: ['human:*'] }] });
  policy('mixed-up.json', { keys: [{ ...own, keyid: stranger.keyid }] });

  it('pins the keys', () => {
    const { verdict, trust } = report(['good.jsonl', '--trust', 'good.json']);
    expect({ verdict, mode: trust.mode, valid: trust.signatures.valid }).toEqual({
      verdict: 'ok',
      mode: 'policy',
      valid: 5,
    });
    expect(verify(['good.jsonl', '--trust', 'good.json']).stdout).not.toContain('self-declared');
  });

  it.each([
    ['stranger.json', 'KEY_UNKNOWN'],
    ['elsewhere.json', 'ORIGIN_MISMATCH'],
    ['others.json', 'KEY_NOT_FOR_PRINCIPAL'],
  ])('finds what %s does not allow', (name, code) => {
    const json = report(['good.jsonl', '--trust', name]);
    expect(json.verdict).toBe('invalid');
    expect(new Set(codesIn(json))).toEqual(new Set([code]));
  });

  it.each<[string, string]>([
    ['missing.json', 'FILE_NOT_FOUND'],
    ['.', 'IS_A_FOLDER'],
    ['good.jsonl', 'TRUST_POLICY_INVALID'],
    ['good.jsonl.key', 'TRUST_POLICY_INVALID'],
    ['mixed-up.json', 'TRUST_POLICY_INVALID'],
  ])('cannot decide with %s: %s', (path, code) => {
    expectError(verify(['good.jsonl', '--trust', path]), 2, code);
  });
});

describe('verify of what is no ledger', () => {
  it.each<[string, string, string[]]>([
    ['a file that is not there', 'FILE_NOT_FOUND', ['missing.jsonl']],
    ['a folder without segments', 'NOT_A_LEDGER', ['.']],
    ['nothing', 'USAGE', []],
    ['two paths', 'USAGE', ['good.jsonl', 'folder']],
    ['an unknown format', 'USAGE', ['good.jsonl', '--format', 'xml']],
    ['a bad count', 'USAGE', ['good.jsonl', '--max-findings', '-1']],
  ])('is refused: %s', (_what, code, args) => {
    expectError(verify(args), 2, code);
  });

  it('is undecided for an empty file, an empty stream, an empty device', () => {
    shop.write('empty.jsonl', '');
    for (const path of ['empty.jsonl', '-', '/dev/null']) {
      expect(report([path])).toMatchObject({ verdict: 'undecided', exit_status: 2, findings: [] });
    }
    expect(verify(['empty.jsonl']).stdout).toMatch(
      /^undecided {2}empty\.jsonl: there is no record to verify\n/,
    );
  });

  it.each<[string, string[]]>([['a record that is not a grant', ['good.jsonl', '--grant', '1']]])(
    'is refused: findings on %s',
    (_what, args) => {
      expectError(verify(args), 2, 'GRANT_NOT_FOUND');
    },
  );

  it.each<[string, string[]]>([
    ['a time that ends before it begins', ['good.jsonl', '--since', '2026-01-02', '--until', '2026-01-01']],
    ['a URL', ['https://example.com/ledger.jsonl']],
  ])('is refused: %s', (_what, args) => {
    expectError(verify(args), 2, 'USAGE');
  });

  it('shows nothing of a private key, whatever its form and however it comes', () => {
    expectOk(shop.run(['keygen', '--form', 'jwk', '--out', 'secret.jwk']));
    for (const name of ['good.jsonl.key', 'secret.jwk']) {
      const secret = shop.read(name);
      for (const run of [verify([name]), verify(['-'], { input: secret }), shop.run(['log', name])]) {
        expectError(run, 2, 'NOT_A_LEDGER');
        const shown = run.stdout + run.stderr;
        for (let at = 30; at + 8 <= secret.length; at += 8)
          expect(shown).not.toContain(secret.slice(at, at + 8));
      }
    }
  });

  it('refuses what is clearly another kind of file', () => {
    const sealed = shop.write('sealed.jsonl', shop.read('good.jsonl'));
    expectOk(shop.run(['checkpoint', sealed, '--key', 'good.jsonl.key', '--note', 'good.note']));
    expectOk(shop.run(['prove', sealed, '1', '--out', 'good.proof']));
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * i * 31 + i * 7) & 0xff));
    shop.write('binary', bytes);
    for (const name of ['good.note', 'good.proof', 'binary']) expectError(verify([name]), 2, 'NOT_A_LEDGER');
    expectError(shop.run(['verify-proof', 'good.jsonl']), 2, 'NOT_A_PROOF');
  });

  it('is invalid for one line of 50 MB, which is not kept in memory', () => {
    const long = Buffer.alloc(50_000_000, 'a');
    shop.write('long.jsonl', long);
    expect(report(['long.jsonl']).findings).toMatchObject([
      { code: 'LINE_TORN', at: { line: 1, byte_offset: 0, byte_length: long.length } },
    ]);
    long[long.length - 1] = 0x0a;
    shop.write('long.jsonl', long);
    const run = verify(['long.jsonl', '--format', 'json'], {
      env: { NODE_OPTIONS: '--max-old-space-size=40' },
    });
    expect(run.status).toBe(1);
    expect(parse<Report>(run.stdout).findings).toMatchObject([
      { code: 'LINE_TOO_LONG', at: { line: 1, byte_offset: 0, byte_length: long.length - 1 } },
    ]);
  });

  it('says that bare events have no chain', () => {
    const events = shop.records('good.jsonl').map(({ event }) => JSON.stringify(event));
    ledgerOf('bare.jsonl', events);
    const json = report(['bare.jsonl']);
    expect(json.not_checked.map(({ code }) => code)).toContain('CHAIN');
  });
});

describe('verify in a pipeline', () => {
  it.each(['text', 'json', 'ndjson'])('keeps its exit status when its reader goes away: %s', (format) => {
    const noise = 'x\n'.repeat(30_000);
    const run = shop.shell(
      `northroot verify - --format ${format} --max-findings 30000 | head -c 1 >/dev/null; echo "\${PIPESTATUS[0]}"`,
      { input: noise },
    );
    expect(run).toEqual({ status: 0, stdout: '1\n', stderr: '' });
  });

  it('keeps quiet on standard error, whether asked to or not', () => {
    for (const args of [[], ['--quiet'], ['-q']]) {
      expect(verify(['tampered.jsonl', ...args]).stderr).toBe('');
    }
    const before = shop.run(['--quiet', 'verify', 'missing.jsonl']);
    expectCode(before, 'FILE_NOT_FOUND');
  });
});

describe('verify --state, for who watches a ledger', () => {
  it('says that it resumed and what is new, and with --new lists only that', () => {
    const old = { occurred_at: '2026-01-01T00:00:00Z' };
    const input = ndjson([note('a'), note('b', old)]);
    expectOk(shop.run(['append', 'watched.jsonl', '--origin', 'example.com/watched'], { input }));
    const watch = (...args: string[]): Run =>
      shop.run(['verify', 'watched.jsonl', '--state', 'watched.state', '--format', 'json', ...args]);
    const seqs = ({ stdout }: Run): unknown[] => parse<Report>(stdout).findings.map(({ seq }) => seq);
    const first = watch('--new');
    expect(first.stderr).toContain('from the beginning');
    expect(seqs(first)).toEqual([2]);
    expectOk(shop.run(['append', 'watched.jsonl'], { input: ndjson([note('c'), note('d', old)]) }));
    const second = watch('--new');
    expect(second.stderr).toContain('resumed from watched.state: 3 records were verified before, 2 are new');
    expect(seqs(second)).toEqual([4]);
    expect(seqs(watch('--new'))).toEqual([]);
    expectError(shop.run(['verify', 'watched.jsonl', '--new']), 2, 'USAGE');
  });
});

describe('verify --threads', () => {
  it('gives the same report, however many there are', () => {
    const one = shop.run(['verify', 'tampered.jsonl', '--format', 'json', '--threads', '1']);
    for (const args of [[], ['--threads', '2'], ['--threads', '256']]) {
      expect(shop.run(['verify', 'tampered.jsonl', '--format', 'json', ...args])).toEqual(one);
    }
    for (const wrong of ['0', '257', '1.5', '-1', 'all']) {
      expectError(shop.run(['verify', 'good.jsonl', '--threads', wrong]), 2, 'USAGE');
    }
  });
});

describe('verify --max-memory', () => {
  it('gives the same report, however little it is', () => {
    const usual = shop.run(['verify', 'tampered.jsonl', '--format', 'json']);
    for (const size of ['65536', '64KiB', '1GiB']) {
      const args = ['verify', 'tampered.jsonl', '--format', 'json', '--max-memory', size];
      expect(shop.run(args)).toEqual(usual);
    }
    for (const wrong of ['0', '65535', '63KiB', '64k', 'all']) {
      expectError(shop.run(['verify', 'good.jsonl', '--max-memory', wrong]), 2, 'USAGE');
    }
  });
});

it('says in its first line what was required and not checked', () => {
  const run = shop.run(['verify', 'good.jsonl', '--require', 'TRUST']);
  expect(run.status).toBe(2);
  expect(run.stdout.split('\n')[0]).toMatch(/^ok .*; required, and not checked: TRUST$/);
  expect(expectOk(shop.run(['verify', 'good.jsonl']))).not.toContain('required, and');
});

describe('verify --part and --merge', () => {
  const makeParts = (ledger: string, of: number): string[] =>
    Array.from({ length: of }, (_, index) => {
      const path = `${index + 1}-of-${of}.part`;
      expectOk(shop.run(['verify', ledger, '--part', `${index + 1}/${of}`, '--out', path]));
      return path;
    });

  it.each(['good.jsonl', 'tampered.jsonl', 'torn.jsonl', 'folder'])(
    'give the report of one run: %s',
    (ledger) => {
      for (const of of [1, 3]) {
        const parts = makeParts(ledger, of);
        const whole = shop.run(['verify', ledger, '--format', 'json']);
        const merge = ['verify', '--format', 'json', '--merge', ...parts.toReversed()];
        const merged = shop.run(merge);
        const { not_checked: open, ...rest } = parse<Report>(merged.stdout);
        const { not_checked: before, ...own } = parse<Report>(whole.stdout);
        expect(rest).toEqual(own);
        expect(open.filter(({ code }) => code !== 'PARTS')).toEqual(before);
        expect(open).toHaveLength(before.length + 1);
        expect(merged.status).toBe(whole.status);
        const required = shop.run([...merge, '--require', 'PARTS']);
        expect(required.status).toBe(whole.status === 0 ? 2 : whole.status);
        expect(shop.run(['verify', ledger, '--require', 'PARTS']).status).toBe(whole.status);
      }
    },
  );

  it('a part says nothing of the ledger, and where it is', () => {
    const run = shop.run(['verify', 'tampered.jsonl', '--part', '1/2', '--out', 'bad.part']);
    expect(run).toMatchObject({ status: 0, stdout: '' });
    expect(run.stderr).toContain('bad.part');
  });

  it('refuse what does not belong together', () => {
    const parts = makeParts('good.jsonl', 2);
    const cases: [string[], string][] = [
      [['good.jsonl', '--part', '1/2'], 'USAGE'],
      [['good.jsonl', '--out', 'x.part'], 'USAGE'],
      [['good.jsonl', '--part', '3/2', '--out', 'x.part'], 'USAGE'],
      [['good.jsonl', '--part', '1/2', '--out', 'good.jsonl'], 'USAGE'],
      [['good.jsonl', '--part', '1/2', '--out', 'good.jsonl.key'], 'USAGE'],
      [['good.jsonl', '--part', '1/2', '--out', 'x.part', '--format', 'json'], 'USAGE'],
      [['-', '--part', '1/2', '--out', 'x.part'], 'USAGE'],
      [['good.jsonl', '--merge', ...parts], 'USAGE'],
      [['--merge', ...parts, '--part', '1/2', '--out', 'x.part'], 'USAGE'],
      [['--merge', ...parts, '--grant', '1'], 'USAGE'],
      [['--merge', 'missing.part'], 'FILE_NOT_FOUND'],
      [['--merge', 'good.jsonl'], 'PART_MALFORMED'],
      [['--merge', parts[0] ?? ''], 'PARTS_INCOMPLETE'],
    ];
    for (const [args, code] of cases) expectError(shop.run(['verify', ...args]), 2, code);
    expect(shop.has('x.part')).toBe(false);
  });

  it('--merge with --output does not write over a part', () => {
    const parts = makeParts('good.jsonl', 2);
    const run = shop.run(['verify', '--output', `json=${parts[0]}`, '--merge', ...parts]);
    expectError(run, 2, 'USAGE');
  });
});

describe('verify --watch', () => {
  it('tells of findings as they come, and reports when it is stopped', async () => {
    expectOk(
      shop.run(['append', 'live.jsonl', '--origin', 'example.com/live'], { input: ndjson([note('a')]) }),
    );
    const watching = shop.start(['verify', 'live.jsonl', '--watch']);
    await watching.until(({ stderr }) => stderr.includes('watching'));
    const old = { occurred_at: '2026-01-01T00:00:00Z' };
    expectOk(shop.run(['append', 'live.jsonl'], { input: ndjson([note('b', old)]) }));
    await watching.until(({ stderr }) => stderr.includes('TIME_REGRESSION'));
    // Somebody is in the middle of writing a line.
    appendFileSync(shop.path('live.jsonl'), '{"event":');
    watching.kill('SIGINT');
    const { status, stdout } = await watching.end();
    expect(status).toBe(0);
    expect(stdout).toContain('nothing broken in 3 records');
    expect(stdout).toContain('GROWTH');
  });

  it('ends with the status of what it found, and writes all formats', async () => {
    shop.write('live-bad.jsonl', `${lines.join('\n')}\n`);
    const args = ['verify', 'live-bad.jsonl', '--watch', '--format', 'ndjson', '--output', 'json=live.json'];
    const watching = shop.start(args);
    await watching.until(({ stderr }) => stderr.includes('watching'));
    appendFileSync(shop.path('live-bad.jsonl'), 'x\n');
    await watching.until(({ stdout }) => stdout.includes('NOT_JSON'));
    watching.kill('SIGTERM');
    expect((await watching.end()).status).toBe(1);
    expect(parse<Report>(shop.read('live.json'))).toMatchObject({ verdict: 'invalid' });
  });

  it('tells of a hundred findings of a code at once, and counts the others', async () => {
    shop.write('live-blank.jsonl', `${lines.join('\n')}\n`);
    const watching = shop.start(['verify', 'live-blank.jsonl', '--watch']);
    await watching.until(({ stderr }) => stderr.includes('watching'));
    appendFileSync(shop.path('live-blank.jsonl'), `${'\n'.repeat(250)}x\n`);
    await watching.until(({ stderr }) => stderr.includes('NOT_JSON'));
    watching.kill('SIGINT');
    const { status, stderr } = await watching.end();
    expect(status).toBe(1);
    expect(stderr.match(/^error: .* LINE_BLANK: /gm)).toHaveLength(100);
    expect(stderr).toContain('… and 150 more LINE_BLANK\n');
    expect(stderr).not.toContain('more NOT_JSON');
  });

  it('ends with 2 when the file is cut off or replaced under it', async () => {
    shop.write('cut-live.jsonl', `${lines.join('\n')}\n`);
    const watching = shop.start(['verify', 'cut-live.jsonl', '--watch']);
    await watching.until(({ stderr }) => stderr.includes('watching'));
    shop.write('cut-live.jsonl', `${lines[0]}\n`);
    const run = await watching.end();
    expectError(run, 2, 'FILE_CHANGED');
  });

  it('is for files that grow', () => {
    for (const args of [['-'], ['good.jsonl', '--state', 'x.state'], ['--merge', 'x.part']]) {
      expectError(shop.run(['verify', ...args, '--watch'], { input: '' }), 2, 'USAGE');
    }
  });
});
