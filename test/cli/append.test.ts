/** `northroot append`: what is taken, what is refused, and what is on disk then. */

import { describe, expect, it } from 'vitest';
import { buildEvent } from '../../src/format/event/build.js';
import { action, denial, digestOfId, execution, grant, ndjson, note } from './drafts.js';
import {
  expectCode,
  expectError,
  expectOk,
  parseLines,
  Workshop,
  type Run,
  type RunOptions,
  type RecordJson,
} from './runner.js';

const shop = new Workshop();
expectOk(shop.run(['init', 'ledger.jsonl', '--origin', 'example.com/agents']));

function append(input: string | Uint8Array, args: readonly string[] = [], env?: RunOptions['env']): Run {
  return shop.run(['append', 'ledger.jsonl', ...args], { input, ...(env === undefined ? {} : { env }) });
}

function records(name = 'ledger.jsonl'): RecordJson[] {
  return shop.records(name);
}

/** Runs what must not change the ledger. */
function unchanged(run: () => void): void {
  const before = shop.read('ledger.jsonl');
  run();
  expect(shop.read('ledger.jsonl')).toBe(before);
}

describe('append', () => {
  it('completes drafts from a pipe and answers each with its place', () => {
    const size = records().length;
    const results = parseLines(expectOk(append(ndjson([note(1), note(2), note(3)]))));
    const appended = records().slice(size);
    expect(results).toEqual(
      appended.map(({ seq, event }) => ({
        seq,
        event_id: `sha-256:${event.event_id.b64}`,
        status: 'appended',
      })),
    );
    expect(appended.map(({ seq, event }) => [seq - size, event.n])).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ]);
    expect(appended.every(({ signatures }) => signatures.length === 1)).toBe(true);
    expectOk(shop.run(['verify', 'ledger.jsonl']));
  });

  it('answers thousands in their order, up to the first that is refused', () => {
    const notes = Array.from({ length: 4_500 }, (_, n) => note(n));
    const input = `${ndjson(notes)}{"event_type":"x.note","n":-0}\n${ndjson([note('after')])}`;
    const args = [
      'append',
      'many.jsonl',
      '--origin',
      'example.com/many',
      '--unsigned',
      '--principal',
      'service:many',
    ];
    const { status, stdout, stderr } = shop.run(args, { input });
    expect([status, stderr]).toEqual([1, expect.stringContaining('stdin:4501: NEGATIVE_ZERO')]);
    expect(parseLines(stdout).map(({ seq }) => seq)).toEqual(notes.map((_, n) => n + 1));
    const appended = records('many.jsonl').slice(1);
    expect(appended.map(({ event }) => event.n)).toEqual(notes.map((_, n) => n));
  });

  it('reads several files, and standard input where - stands, in order', () => {
    shop.write('one.jsonl', ndjson([note('one')]));
    shop.write('three.jsonl', ndjson([note('three')]));
    const results = parseLines(expectOk(append(ndjson([note('two')]), ['one.jsonl', '-', 'three.jsonl'])));
    expect(results.map(({ seq }) => records()[seq].event.n)).toEqual(['one', 'two', 'three']);
  });

  it('passes over blank lines, takes CRLF and a last line without newline', () => {
    const input = `\n${JSON.stringify(note('a'))}\r\n  \t\r\n\n${JSON.stringify(note('b'))}`;
    const results = parseLines(expectOk(append(input)));
    expect(results.map(({ seq }) => records()[seq].event.n)).toEqual(['a', 'b']);
  });

  it('takes whole events, and the same again as a no-op', () => {
    const ledgerId = records()[0].event.event_id.b64;
    const defaults = { principalId: 'human:h', occurredAt: '2026-01-01T00:00:00Z', ledgerId };
    const event = buildEvent({ event_type: 'x.whole' }, defaults);
    const [first] = parseLines(expectOk(append(ndjson([event]))));
    expect(first).toEqual({
      seq: records().length - 1,
      event_id: `sha-256:${event.event_id.b64}`,
      status: 'appended',
      findings: [expect.objectContaining({ code: 'TIME_REGRESSION', severity: 'info' })],
    });
    unchanged(() => {
      const again = parseLines(expectOk(append(ndjson([event, event]))));
      expect(again).toEqual([
        { seq: first.seq, event_id: first.event_id, status: 'exists' },
        { seq: first.seq, event_id: first.event_id, status: 'exists' },
      ]);
    });
  });

  it('takes meta beside an event, outside of its id', () => {
    const event = note('meta', { occurred_at: '2026-01-01T00:00:00Z' });
    const [result] = parseLines(expectOk(append(ndjson([{ event, meta: { trace: 't1' } }]))));
    const record = records()[result.seq];
    expect(record.meta).toEqual({ trace: 't1' });
    const ledgerId = records()[0].event.event_id.b64;
    expect(result.event_id).toBe(`sha-256:${buildEvent(event, { ledgerId }).event_id.b64}`);
  });

  it('says who acted for drafts that do not', () => {
    const [result] = parseLines(expectOk(append('{"event_type":"x.n"}\n', ['--principal', 'service:ci'])));
    expect(records()[result.seq].event.principal_id).toBe('service:ci');
    unchanged(() => expectError(append('{"event_type":"x.n"}\n'), 1, 'SCHEMA', 'stdin:1'));
    unchanged(() => expectError(append('{}\n', ['--principal', 'bob']), 2, 'USAGE'));
  });

  it('records a grant, an action and its execution', () => {
    const [granted] = parseLines(expectOk(append(ndjson([grant()]))));
    const [allowed] = parseLines(expectOk(append(ndjson([action(granted.event_id), denial()]))));
    expectOk(append(ndjson([execution(allowed.event_id)])));
    expectOk(shop.run(['verify', 'ledger.jsonl']));
  });

  it('appends nothing to a ledger for an input without events', () => {
    unchanged(() => expect(expectOk(append(''))).toBe(''));
    unchanged(() => expect(expectOk(append('\n\n'))).toBe(''));
    expect(append('').stderr).not.toBe('');
  });
});

describe('append reads events as people have them', () => {
  it('in an array, over several lines, without a type, naming others by seq or by the text of an id', () => {
    const size = records().length;
    const [first] = parseLines(expectOk(append(ndjson([note('first')]))));
    const drafts = [
      note('by id', { prev_event_id: first.event_id }),
      note('by seq', { prev_event_id: first.seq }),
      note('by one before it in the input', { prev_event_id: String(size + 2) }),
      { ...note('without a type'), event_type: undefined },
    ];
    const results = parseLines(expectOk(append(JSON.stringify(drafts, undefined, 2), ['--type', 'x.typed'])));
    expect(results.map(({ seq }) => seq)).toEqual([size + 1, size + 2, size + 3, size + 4]);
    const events = records()
      .slice(size + 1)
      .map(({ event }) => event);
    const [id, third] = [digestOfId(first.event_id), digestOfId(results[1].event_id)];
    expect(events.map(({ prev_event_id }) => prev_event_id)).toEqual([id, id, third, undefined]);
    expect(events.map(({ event_type }) => event_type)).toEqual(['x.note', 'x.note', 'x.note', 'x.typed']);
    expectOk(shop.run(['verify', 'ledger.jsonl']));
  });

  it('up to the place where the text is broken', () => {
    const [size, event] = [records().length, JSON.stringify(note('before'))];
    const run = append(`[${event},\n{\n "event_type": "x.n",\n "n": 1 "m": 2}]`);
    expect(run.status).toBe(1);
    expectCode(run, 'NOT_JSON', 'stdin:4');
    expect(records()).toHaveLength(size + 1);
  });

  it('and with --existing refuse stops at one that is there already', () => {
    const whole = note('once', { occurred_at: '2026-05-05T00:00:00Z' });
    expectOk(append(ndjson([whole, whole])));
    const size = records().length;
    const run = append(ndjson([note('new'), whole, note('late')]), ['--existing', 'refuse']);
    expect(run.status).toBe(1);
    expectCode(run, 'EVENT_DUPLICATE', 'stdin:2');
    expect(records()).toHaveLength(size + 1);
  });
});

describe('append stops at the first event that is refused', () => {
  const absent = { alg: 'sha-256', b64: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU' };

  it.each<[string, string, string]>([
    ['is no JSON', 'NOT_JSON', 'hello'],
    ['is no object', 'SCHEMA', '[1]'],
    ['lacks a member', 'SCHEMA', '{"event_type":"execution","principal_id":"agent:a1"}'],
    ['names no type', 'SCHEMA', '{"principal_id":"agent:a1"}'],
    ['has a key twice', 'DUPLICATE_KEYS', '{"event_type":"x.n","principal_id":"agent:a1","n":1,"n":2}'],
    [
      'has a lone surrogate',
      'LONE_SURROGATE',
      '{"event_type":"x.n","principal_id":"agent:a1","n":"\\ud800"}',
    ],
    ['has an integer of 2^53', 'UNSAFE_INTEGER', JSON.stringify(note(2 ** 53))],
    [
      'has a number of too many digits',
      'NUMBER_INEXACT',
      JSON.stringify(note(0)).replace(':0', ':0.12345678901234567890'),
    ],
    [
      'is nested too deep',
      'NESTING_TOO_DEEP',
      JSON.stringify(note(0)).replace(':0', `:${'['.repeat(65)}${']'.repeat(65)}`),
    ],
    ['has a byte order mark', 'BYTE_ORDER_MARK', `\ufeff${JSON.stringify(note(0))}`],
    ['is longer than a record can be', 'LINE_TOO_LONG', JSON.stringify(note('x'.repeat(70_000)))],
    ['makes a record that is too long', 'LINE_TOO_LONG', JSON.stringify(note('x'.repeat(65_200)))],
    [
      'follows an event that is not there',
      'PREV_EVENT_NOT_FOUND',
      JSON.stringify(note(0, { prev_event_id: absent })),
    ],
    ['is a genesis', 'GENESIS_MISPLACED', ''],
    ['was changed since it got its id', 'PAYLOAD_DIGEST_MISMATCH', ''],
    ['is a record with its place', 'SCHEMA', ''],
  ])('one that %s: %s', (what, code, line) => {
    const [genesis] = records();
    let third = line;
    if (what === 'is a genesis')
      third = JSON.stringify({
        ...genesis.event,
        origin: 'example.com/other',
        event_id: undefined,
        payload_digest: undefined,
      });
    if (what.startsWith('was changed')) third = JSON.stringify({ ...records()[1].event, n: 'changed' });
    if (what.startsWith('is a record')) third = JSON.stringify(genesis);
    const size = records().length;
    const input = `${ndjson([note(what), note(code)])}${third}\n${ndjson([note('late'), note('later')])}`;
    const run = append(input);
    expect(run.status).toBe(1);
    expectCode(run, code, 'stdin:3');
    expect(parseLines(run.stdout).map(({ seq }) => seq)).toEqual([size, size + 1]);
    expect(
      records()
        .slice(size)
        .map(({ event }) => event.n),
    ).toEqual([what, code]);
  });

  it('tells of the earliest when several would be', () => {
    const input = `${ndjson([note(1), note(2, { prev_event_id: absent })])}no json\n`;
    const run = append(input);
    expectCode(run, 'PREV_EVENT_NOT_FOUND', 'stdin:2');
  });

  it('names the file and the line in it', () => {
    shop.write('good.jsonl', ndjson([note('good')]));
    shop.write('bad.jsonl', `\n\n${JSON.stringify(note('fine'))}\nnull\n`);
    const run = append('', ['good.jsonl', 'bad.jsonl']);
    expect(run.status).toBe(1);
    expectCode(run, 'SCHEMA', 'bad.jsonl:4');
    expect(parseLines(run.stdout)).toHaveLength(2);
  });

  it('at a line that the end of the input cuts off', () => {
    const input = `${JSON.stringify(note('whole'))}\n${JSON.stringify(note('cut')).slice(0, -4)}`;
    const run = append(input);
    expect(run.status).toBe(1);
    expectCode(run, 'NOT_JSON', 'stdin:2');
    expect(parseLines(run.stdout)).toHaveLength(1);
    expect(records().at(-1)?.event.n).toBe('whole');
  });

  it('at bytes that are no text', () => {
    const bytes = Buffer.concat([
      Buffer.from('{"event_type":"x.n","n":"'),
      Buffer.of(0xff),
      Buffer.from('"}\n'),
    ]);
    unchanged(() => expectError(append(bytes), 1, 'INVALID_UTF8', 'stdin:1'));
  });
});

describe('append --quantities', () => {
  interface Granted {
    readonly bounds: { readonly meter_caps: readonly { readonly amount: unknown }[] };
  }
  const amountOf = (seq: number): unknown =>
    (records()[seq].event['authorization'] as Granted).bounds.meter_caps[1].amount;
  const withUsd = (text: string): string => `${JSON.stringify(grant('AMOUNT')).replace('"AMOUNT"', text)}\n`;

  it.each([
    ['0.25', { t: 'dec', m: '25', s: 2 }],
    ['1e3', { t: 'int', v: '1000' }],
    ['40.06385803222656', { t: 'dec', m: '4006385803222656', s: 14 }],
    ['12345678901234567890', { t: 'int', v: '12345678901234567890' }],
    ['0.10', { t: 'dec', m: '1', s: 1 }],
  ])('turns %s into a quantity of exactly that value', (text, expected) => {
    const run = append(withUsd(text), ['--quantities']);
    const [{ seq, hygiene }] = parseLines(expectOk(run));
    expect(hygiene).toEqual(['NUMBER_COERCED']);
    expect(amountOf(seq)).toEqual(expected);
  });

  it.each([`0.${'1'.repeat(40)}`, `1${'0'.repeat(39)}`, '1e-39'])('refuses %s', (text) => {
    unchanged(() => expectError(append(withUsd(text), ['--quantities']), 1, 'NUMBER_INEXACT', 'stdin:1'));
  });

  it('leaves numbers elsewhere as they are', () => {
    const [result] = parseLines(expectOk(append(ndjson([note(0.25)]), ['--quantities'])));
    expect(result).not.toHaveProperty('hygiene');
    expect(records()[result.seq].event.n).toBe(0.25);
  });

  it.each([
    ['"5"', { t: 'int', v: '5' }],
    ['"0.250"', { t: 'dec', m: '25', s: 2 }],
  ])('turns the text %s into a quantity, of which nothing is lost', (text, expected) => {
    const [result] = parseLines(expectOk(append(withUsd(text), ['--quantities'])));
    expect(result).not.toHaveProperty('hygiene');
    expect(amountOf(result.seq)).toEqual(expected);
  });

  it('leaves texts elsewhere, and texts that are no numbers, as they are', () => {
    const [result] = parseLines(expectOk(append(ndjson([note('7')]), ['--quantities'])));
    expect(records()[result.seq].event.n).toBe('7');
    unchanged(() => expectError(append(withUsd('"5 usd"'), ['--quantities']), 1, 'SCHEMA', 'stdin:1'));
  });

  it.each(['0.25', '"0.25"'])('is asked for: without it %s is no amount, and the hint names it', (text) => {
    unchanged(() => {
      const run = append(withUsd(text));
      expectError(run, 1, 'SCHEMA', 'stdin:1');
      expect(run.stderr).toMatch(/^hint: --quantities /m);
    });
  });
});

describe('append to a ledger that is not there', () => {
  it('makes it, and its key', () => {
    const args = ['append', 'new.jsonl', '--origin', 'example.com/new'];
    const [result] = parseLines(expectOk(shop.run(args, { input: ndjson([note(1)]) })));
    expect(result.seq).toBe(1);
    expect(records('new.jsonl')[0].event.origin).toBe('example.com/new');
    expect(shop.files('new.jsonl')).toEqual(['new.jsonl', 'new.jsonl.key']);
    expect(shop.mode('new.jsonl.key')).toBe('600');
    expectOk(shop.run(['verify', 'new.jsonl']));
    expectError(shop.run(['append', 'new.jsonl', '--origin', 'example.com/other']), 2, 'ORIGIN_MISMATCH');
  });

  it('makes it without a key', () => {
    const [result] = parseLines(
      expectOk(shop.run(['append', 'bare.jsonl', '--unsigned', '--create'], { input: ndjson([note(1)]) })),
    );
    expect(records('bare.jsonl')[result.seq].signatures).toEqual([]);
    expect(shop.files('bare')).toEqual(['bare.jsonl']);
    // Later it goes on as it began.
    expectOk(shop.run(['append', 'bare.jsonl'], { input: ndjson([note(2)]) }));
    expect(shop.files('bare')).toEqual(['bare.jsonl']);
  });

  it.each(['0', '2'])('signs in %s further threads', (threads) => {
    const events = ndjson(Array.from({ length: 600 }, (_, index) => note(index)));
    const [file, key] = [`threads-${threads}.jsonl`, `threads-${threads}.jsonl.key`];
    const args = ['append', file, '--create', '--signing-threads', threads];
    expect(parseLines(expectOk(shop.run(args, { input: events })))).toHaveLength(600);
    expect(shop.files(`threads-${threads}`)).toContain(key);
    expectOk(shop.run(['verify', file]));
  });

  it('makes a folder, and segments of the size given', () => {
    const args = ['append', 'segments/', '--create', '--segment-bytes', '1'];
    for (const n of [1, 2]) expectOk(shop.run(args, { input: ndjson([note(n)]) }));
    expect(shop.files('segments')).toEqual(['segments', 'segments.key']);
    expect(expectOk(shop.shell('ls segments')).trim().split('\n')).toHaveLength(3);
    expectOk(shop.run(['verify', 'segments']));
  });

  it.each<[string, string, string[]]>([
    ['an input is not there', 'FILE_NOT_FOUND', ['missing.jsonl']],
    ['an input is a folder', 'IS_A_FOLDER', ['.']],
    ['standard input is named twice', 'USAGE', ['-', '-']],
    ['the origin is none', 'USAGE', ['--origin', 'two words']],
    ['the key is not there', 'FILE_NOT_FOUND', ['--key', 'missing.pem']],
    ['--key and --unsigned are both given', 'USAGE', ['--key', 'ledger.jsonl.key', '--unsigned']],
    ['the lock timeout is none', 'USAGE', ['--lock-timeout', 'soon']],
    ['the segment size is none', 'USAGE', ['--segment-bytes', '1TB']],
    ['there are too many signing threads', 'USAGE', ['--signing-threads', '17']],
  ])('leaves nothing behind when %s', (_what, code, args) => {
    expectError(shop.run(['append', 'never.jsonl', '--create', ...args]), 2, code);
    expect(shop.files('never')).toEqual([]);
  });

  it('makes nothing unless it is asked to', () => {
    const run = shop.run(['append', 'never.jsonl'], { input: ndjson([note(1)]) });
    expectError(run, 2, 'FILE_NOT_FOUND');
    expect(shop.files('never')).toEqual([]);
  });

  it.each<[string, string, string]>([
    ['FILE_NOT_FOUND', 'a folder that is not there', 'nowhere/ledger.jsonl'],
    ['NOT_A_LEDGER', 'a device', '/dev/null'],
    ['NOT_A_LEDGER', 'a folder of other things', '.'],
    ['NOT_A_LEDGER', 'a file of other things', 'one.jsonl'],
  ])('answers with %s for %s', (code, _what, path) => {
    const before = shop.files('');
    expectError(shop.run(['append', path], { input: ndjson([note(1)]) }), 2, code);
    expect(shop.files('')).toEqual(before);
  });
});

describe('the key that append signs with', () => {
  expectOk(shop.run(['keygen', '--out', 'other.pem']));
  expectOk(shop.run(['init', 'elsewhere.jsonl', '--key', 'other.pem']));
  const elsewhere = (args: readonly string[], env: RunOptions['env'] = {}): Run =>
    shop.run(['append', 'elsewhere.jsonl', ...args], { input: ndjson([note(1)]), env });

  it('is the one named, or the one from the environment', () => {
    expectOk(elsewhere(['--key', 'other.pem']));
    expectOk(elsewhere([], { NORTHROOT_KEY: 'other.pem' }));
    expectOk(elsewhere(['--key', 'other.pem'], { NORTHROOT_KEY: 'missing.pem' }));
    expectOk(shop.run(['verify', 'elsewhere.jsonl']));
  });

  it('must be there and be one that the ledger declares', () => {
    const before = shop.read('elsewhere.jsonl');
    expectError(elsewhere([]), 2, 'SIGNATURE_MISSING', 'stdin:1');
    expectError(elsewhere(['--unsigned'], { NORTHROOT_KEY: 'other.pem' }), 2, 'SIGNATURE_MISSING', 'stdin:1');
    expectError(elsewhere(['--key', 'ledger.jsonl.key']), 1, 'KEY_UNKNOWN', 'stdin:1');
    expectError(elsewhere([], { NORTHROOT_KEY: 'missing.pem' }), 2, 'FILE_NOT_FOUND');
    expect(shop.read('elsewhere.jsonl')).toBe(before);
  });

  it.each<[string, string]>([
    ['KEY_MALFORMED', 'ledger.jsonl'],
    ['KEY_IS_PUBLIC', 'public.pem'],
    ['IS_A_FOLDER', '.'],
    ['FILE_NOT_FOUND', 'missing.pem'],
  ])('is refused with %s: %s', (code, path) => {
    if (path === 'public.pem')
      shop.write(path, expectOk(shop.run(['key', 'show', 'other.pem', '--form', 'pem'])));
    unchanged(() => expectError(append(ndjson([note(1)]), ['--key', path]), 2, code));
  });

  it('may have signed before: signatures that come with an event are checked', () => {
    const { event, signatures } = records('elsewhere.jsonl')[1];
    const again = { event: { ...event, n: 'x', event_id: undefined, payload_digest: undefined }, signatures };
    expectError(
      shop.run(['append', 'elsewhere.jsonl', '--key', 'other.pem'], { input: ndjson([again]) }),
      1,
      'SIGNATURE_INVALID',
      'stdin:1',
    );
    const [result] = parseLines(
      expectOk(shop.run(['append', 'elsewhere.jsonl'], { input: ndjson([{ event, signatures }]) })),
    );
    expect(result).toEqual({ seq: 1, event_id: `sha-256:${event.event_id.b64}`, status: 'exists' });
    expect(digestOfId(result.event_id)).toEqual(event.event_id);
  });
});

describe('append to a ledger that a crash has torn', () => {
  it('saves the torn bytes, cuts them off and goes on', () => {
    const whole = shop.bytes('new.jsonl');
    shop.write('torn.jsonl', Buffer.concat([whole, Buffer.from('{"event":{"half')]));
    const run = shop.run(['append', 'torn.jsonl', '--key', 'new.jsonl.key'], { input: ndjson([note(2)]) });
    expect(parseLines(expectOk(run))).toMatchObject([{ seq: 2 }]);
    const [saved] = shop.files('torn.jsonl.torn');
    expect(shop.read(saved)).toBe('{"event":{"half');
    expect(run.stderr).toContain(saved);
    expect(shop.bytes('torn.jsonl').subarray(0, whole.length)).toEqual(whole);
    expectOk(shop.run(['verify', 'torn.jsonl']));
  });
});

describe('what verification finds', () => {
  const lost = execution(`sha-256:${'A'.repeat(43)}`);

  it('is told in the result line, and --strict refuses what would make the ledger invalid', () => {
    unchanged(() => expectError(append(ndjson([lost]), ['--strict']), 1, 'AUTH_NOT_FOUND', 'stdin:1'));
    const [granted] = parseLines(expectOk(append(ndjson([grant()]), ['--strict'])));
    expect(granted).not.toHaveProperty('findings');
    const [result] = parseLines(expectOk(append(ndjson([lost]))));
    expect(result.findings).toContainEqual(
      expect.objectContaining({ code: 'AUTH_NOT_FOUND', severity: 'error', class: 'invalid' }),
    );
  });

  it('is counted at the end, where events are invalid or in violation', () => {
    const run = append(ndjson([{ ...lost, occurred_at: '2026-03-01T12:00:00Z' }, note('fine')]));
    expectOk(run);
    expect(run.stderr).toMatch(/^warning: .* 1 invalid: AUTH_NOT_FOUND; northroot verify /m);
    expect(append(ndjson([note('finer')])).stderr).toBe('');
  });
});
