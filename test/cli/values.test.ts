/** The commands on single values and on the format itself: `canonicalize`, `digest`, `event-id`, `schema`, `explain`, `repair`. */

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { buildEvent } from '../../src/format/event/build.js';
import { CODE_PAGES } from '../../src/format/finding/catalog.js';
import { schemaDocument, schemaNames } from '../../src/format/schema/documents.js';
import type { HygieneReport } from '../../src/base/json/hygiene.js';
import { note } from './drafts.js';
import { expectCode, expectError, expectOk, parse, Workshop, type Run } from './runner.js';

const shop = new Workshop();

function command(line: string, input: string | Uint8Array = ''): Run {
  return shop.run(line.split(' '), { input });
}

describe('canonicalize', () => {
  it.each([
    ['{ "b": 1.0, "a": [1E3, 0.25, "\\u00e9"] }', '{"a":[1000,0.25,"é"],"b":1}', 'Ok', []],
    ['0.1000000000000000055', '0.1', 'Lossy', ['NUMBER_INEXACT']],
  ])('of %s writes %s, and no newline', (input, canonical, status, warnings) => {
    const run = command('canonicalize', input);
    expect(expectOk(run)).toBe(canonical);
    expect(JSON.parse(run.stderr)).toMatchObject({ status, warnings, profile_id: 'northroot-jcs-v1' });
  });

  it('turns numbers into quantities when asked', () => {
    const run = command('canonicalize --numbers quantity', '{"usd":0.25}');
    expect(JSON.parse(expectOk(run))).toEqual({ usd: { t: 'dec', m: '25', s: 2 } });
    expect(JSON.parse(run.stderr)).toMatchObject({ status: 'Lossy', metrics: { NUMBER_COERCED: 1 } });
  });

  it.each<[string, string | Uint8Array, string, string]>([
    ['an empty text', '', 'NOT_JSON', 'Invalid'],
    ['a text that stops', '{"a":', 'NOT_JSON', 'Invalid'],
    ['the same key twice', '{"a":1,"a":2}', 'DUPLICATE_KEYS', 'Ambiguous'],
    ['a lone surrogate', '"\\ud800"', 'LONE_SURROGATE', 'Invalid'],
    ['-0', '-0', 'NEGATIVE_ZERO', 'Invalid'],
    ['2^53', '9007199254740992', 'UNSAFE_INTEGER', 'Invalid'],
    ['1e400', '1e400', 'NON_FINITE_NUMBER', 'Invalid'],
    ['bytes that are no text', Buffer.of(0xff), 'INVALID_UTF8', 'Invalid'],
    ['deep nesting', '['.repeat(65) + ']'.repeat(65), 'NESTING_TOO_DEEP', 'Invalid'],
  ])('refuses %s', (_what, input, code, status) => {
    const run = command('canonicalize', input);
    expectError(run, 1, code);
    expect(parse<HygieneReport>(run.stderr.split('\n')[0]).status).toBe(status);
  });

  it('refuses what rounding would change, when asked', () => {
    expectError(command('canonicalize --numbers exact', '0.1000000000000000055'), 1, 'NUMBER_INEXACT');
    expectError(command('canonicalize --numbers guess', '0'), 2, 'USAGE');
  });

  it('says only what is wrong with --quiet', () => {
    expect(command('canonicalize --quiet', '{}')).toEqual({ status: 0, stdout: '{}', stderr: '' });
    expectCode(command('-q canonicalize', '{'), 'NOT_JSON');
  });
});

describe('digest', () => {
  const sha256 = (bytes: string | Uint8Array): string =>
    createHash('sha256').update(bytes).digest('base64url');

  it('is that of the bytes, from a file or standard input', () => {
    shop.write('content', 'hello');
    expect(expectOk(command('digest', 'hello'))).toBe(`sha-256:${sha256('hello')}\n`);
    expect(expectOk(command('digest content'))).toBe(`sha-256:${sha256('hello')}\n`);
    expect(JSON.parse(expectOk(command('digest content --object')))).toEqual({
      alg: 'sha-256',
      b64: sha256('hello'),
    });
  });

  it('of JSON is that of its canonical bytes', () => {
    expect(expectOk(command('digest --json', '{ "b": 1.0, "a": "\\u0061" }'))).toBe(
      `sha-256:${sha256('{"a":"a","b":1}')}\n`,
    );
    expectError(command('digest --json', '{"a":1,"a":1}'), 1, 'DUPLICATE_KEYS');
    expectError(command('digest --json', '0.1000000000000000055'), 1, 'NUMBER_INEXACT');
  });

  it('takes content of any size', () => {
    const large = Buffer.alloc(70 * 1024 * 1024, 'x');
    shop.write('large', large);
    expect(expectOk(command('digest large'))).toBe(`sha-256:${sha256(large)}\n`);
    expectError(command('digest --json large'), 2, 'INPUT_TOO_LARGE');
  });

  it.each([
    ['FILE_NOT_FOUND', 'digest missing'],
    ['IS_A_FOLDER', 'digest .'],
    ['USAGE', 'digest content content'],
  ])('answers with %s: %s', (code, line) => {
    expectError(command(line), 2, code);
  });
});

describe('event-id', () => {
  const draft = note(1, { occurred_at: '2026-01-01T00:00:00Z' });
  const event = buildEvent(draft);

  it.each([
    ['an event', event],
    ['a draft', draft],
  ])('of %s is what append would give it', (_what, value) => {
    expect(expectOk(command('event-id', JSON.stringify(value)))).toBe(`sha-256:${event.event_id.b64}\n`);
  });

  it.each<[string, unknown, string]>([
    ['an event that was changed', { ...event, n: 2 }, 'PAYLOAD_DIGEST_MISMATCH'],
    ['a draft that does not say when', note(1), 'SCHEMA'],
    ['a draft of the wrong form', { ...draft, event_type: 'execution' }, 'SCHEMA'],
    ['what is no object', [draft], 'SCHEMA'],
  ])('refuses %s', (_what, value, code) => {
    expectError(command('event-id', JSON.stringify(value)), 1, code);
  });
});

describe('schema', () => {
  it('lists the names', () => {
    expect(expectOk(command('schema')).trim().split('\n')).toEqual([...schemaNames()]);
  });

  it('writes each as JSON', () => {
    expect(JSON.parse(expectOk(command('schema execution')))).toEqual(schemaDocument('execution'));
    expectError(command('schema Execution'), 2, 'SCHEMA_UNKNOWN');
    expectError(command('schema __proto__'), 2, 'SCHEMA_UNKNOWN');
  });
});

describe('explain', () => {
  it('lists the codes', () => {
    const listed = expectOk(command('explain')).trim().split('\n');
    expect(listed.map((line) => line.split(' ')[0])).toEqual(Object.keys(CODE_PAGES));
  });

  it.each(['PREV_MISMATCH', 'prev_mismatch', 'prev-mismatch'])('takes a code as %s', (code) => {
    const { meaning, remedy } = CODE_PAGES.PREV_MISMATCH;
    const text = expectOk(command(`explain ${code}`));
    expect(text.startsWith('PREV_MISMATCH: ')).toBe(true);
    for (const part of [meaning, remedy]) expect(text).toContain(part);
  });

  it.each(['NO_SUCH_CODE', 'LEDGER_LOCKED', 'constructor'])('knows no %s', (code) => {
    expectError(command(`explain ${code}`), 2, 'CODE_UNKNOWN');
  });

  it('says where the rules of other systems are, of their codes and names', () => {
    for (const name of ['KEY_IN_CLEAR', 'LL-9']) {
      const run = command(`explain ${name}`);
      expectError(run, 2, 'CODE_UNKNOWN');
      for (const word of [name, 'northroot import']) expect(run.stderr).toContain(word);
    }
  });
});

describe('repair', () => {
  interface RepairJson {
    readonly repaired: boolean;
    readonly saved_to: string;
  }
  expectOk(command('append ledger.jsonl --create', `${JSON.stringify(note(1))}\n`));
  const whole = shop.read('ledger.jsonl');

  it('saves a torn tail beside the ledger and cuts it off, once', () => {
    shop.write('torn.jsonl', `${whole}{"event":{"to`);
    const first = parse<RepairJson>(expectOk(command('repair torn.jsonl')));
    expect(first).toEqual({
      records: 2,
      repaired: true,
      saved_to: `torn.jsonl.torn-${whole.length}`,
      byte_offset: whole.length,
      byte_length: 13,
    });
    expect([shop.read('torn.jsonl'), shop.read(first.saved_to)]).toEqual([whole, '{"event":{"to']);
    const second = parse<RepairJson>(expectOk(command('repair torn.jsonl')));
    expect(second).toEqual({ records: 2, repaired: false });
    expect(shop.files('torn')).toHaveLength(2);
  });

  it.each(['damaged', 'whole'])('leaves the records of a %s ledger alone', (name) => {
    const content = name === 'whole' ? whole : whole.replace('"n":1', '"n":2');
    shop.write(name, content);
    expect(parse<RepairJson>(expectOk(command(`repair ${name}`))).repaired).toBe(false);
    expect(shop.read(name)).toBe(content);
  });

  it.each([
    ['FILE_NOT_FOUND', 'missing.jsonl'],
    ['NOT_A_LEDGER', '.'],
    ['NOT_A_LEDGER', '/dev/null'],
    ['NOT_A_LEDGER', 'content'],
  ])('answers with %s for %s', (code, path) => {
    shop.write('content', 'hello');
    expectError(command(`repair ${path}`), 2, code);
    expect(shop.read('content')).toBe('hello');
    expect(shop.files('content')).toEqual(['content']);
  });
});
