/** Whatever is in the files: nothing throws, every item is accounted for, and the same files give the same. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accountFor } from '../../../src/hosts/shared/account.js';
import { eventsOfClaims } from '../../../src/hosts/shared/claims.js';
import { clasper } from '../../../src/hosts/clasper/index.js';
import type { HostFile, HostReading } from '../../../src/hosts/shared/host.js';
import { inTime } from '../../in-time.js';
import { hasRecordings } from '../recorded.js';
import {
  bundleFiles,
  bundleTexts,
  calls,
  codesOf,
  errorsOf,
  file,
  http,
  httpLines,
  read,
  resigned,
  tarGz,
} from './kit.js';

function check(files: readonly HostFile[]): HostReading {
  const reading = read(files);
  expect(JSON.stringify(reading, bigints)).toBe(JSON.stringify(clasper.read(files), bigints));
  const ids = reading.claims.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const { unfit } = eventsOfClaims(reading.claims, { system: 'clasper' });
  expect(unfit.map(({ id, error }) => [id, error.message])).toEqual([]);
  for (const each of files) clasper.recognises(each);
  return reading;
}

function bigints(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

const HOSTILE = [
  'null',
  '0',
  '-1',
  '1e400',
  '99999999999999999999999999999999999999999',
  '""',
  '"x"',
  '"\\ud800"',
  '[]',
  '{}',
  'true',
  '[[]]',
  `"${'x'.repeat(300)}"`,
];

describe.skipIf(!hasRecordings)('a recording', () => {
  const lines = hasRecordings ? httpLines() : [];

  it('with any value changed', () => {
    const values = /"(?:[^"\\]|\\.)*"(?!:)|-?\d+(?:\.\d+)?|true|false|null/g;
    fc.assert(
      fc.property(fc.nat(lines.length - 1), fc.nat(), fc.constantFrom(...HOSTILE), (number, at, hostile) => {
        const places = [...lines[number].matchAll(values)];
        const { index, 0: text } = places[at % places.length];
        const changed = lines[number].slice(0, index) + hostile + lines[number].slice(index + text.length);
        check([
          http(
            lines
              .map((line, i) => (i === number ? changed : line))
              .filter((_, i) => i < 8 || Math.abs(i - number) < 8),
          ),
        ]);
      }),
      { numRuns: 12 },
    );
  });

  it('with any byte changed, and cut anywhere', () => {
    const bytes = http(calls(1, 2, 12, 16, 20, 25, 27, 30)).bytes;
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.boolean(), (at, byte, cut) => {
        const changed = Buffer.from(cut ? bytes.subarray(0, at) : bytes);
        if (!cut) changed[at] = byte;
        check([{ name: 'http.jsonl', bytes: changed }]);
      }),
      { numRuns: 12 },
    );
  });

  it('with lines in any order, repeated and missing', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...lines), { maxLength: 30 }), (some) => {
        check([http(some)]);
      }),
      { numRuns: 20 },
    );
  });

  it('of which a bundle’s file has any byte changed', () => {
    const texts = bundleTexts();
    fc.assert(
      fc.property(
        fc.constantFrom(...texts.keys()),
        fc.nat(),
        fc.constantFrom(...'{}[]",:0x\n'),
        (name, at, byte) => {
          const text = texts.get(name)!;
          const place = at % text.length;
          const changed = new Map(texts).set(name, text.slice(0, place) + byte + text.slice(place + 1));
          check(bundleFiles(changed));
        },
      ),
      { numRuns: 12 },
    );
  });

  it('that is cut in a line: the line is dropped, the rest is read', () => {
    const text = `${calls(1, 2).join('\n')}\n${calls(12)[0].slice(0, 700)}`;
    const reading = check([file('http.jsonl', text)]);
    expect(codesOf(reading)).toEqual(['INPUT LINE_TORN']);
    expect(accountFor(reading.items).total).toMatchObject({ items: 3, dropped: 1 });
  });
});

describe('other files', () => {
  it('of which nothing is known are dropped, with what they are', () => {
    const reading = check([
      file('keys.json', '{\n "secrets": {"adapter": "x"}\n}'),
      file('x.jsonl', '{"a":1}\n[1]\nnull\n'),
    ]);
    expect(accountFor(reading.items).byReason).toEqual(new Map([['ITEM_UNKNOWN', 4]]));
    expect(reading.claims).toEqual([]);
  });

  it('that are empty have no items', () => {
    expect(check([file('http.jsonl', ''), file('a.json', '\n\n')]).items).toEqual([]);
  });

  it('an archive with an unsafe member: what is unsafe is dropped, the rest is read', () => {
    const archive = {
      name: 'b.tar.gz',
      bytes: tarGz([
        { name: '../traces.jsonl', text: '{}' },
        { name: 'x/verify.sha256', text: 'x' },
      ]),
    };
    const reading = check([archive]);
    expect(errorsOf(reading)).toContain('INPUT ARCHIVE_PATH_UNSAFE');
    expect(reading.items[0]).toMatchObject({
      at: { file: 'b.tar.gz!../traces.jsonl' },
      fate: 'dropped',
      reason: 'ARCHIVE_PATH_UNSAFE',
    });
  });

  it('a time that nobody states: the one that is given, or dropped', () => {
    const line =
      '{"method":"POST","path":"/api/execution/request","status":403,"headers":{},"request":{"execution_id":"e","adapter_id":"a","tenant_id":"t"},"response":{"error":"Capability not allowed"}}';
    expect(check([file('h.jsonl', line)]).items).toMatchObject([
      { fate: 'dropped', reason: 'TIME_NOT_STATED' },
    ]);
    const reading = read([file('h.jsonl', line)], { occurredAt: '2026-01-01T00:00:00Z' });
    expect(reading.claims).toMatchObject([
      { decision: 'deny', decisionCode: 'CAPABILITY_NOT_ALLOWED', occurredAt: '2026-01-01T00:00:00Z' },
    ]);
  });

  it('many requests, traces and entries are read in linear time', () => {
    const request = (n: number): string =>
      `{"n":${n},"method":"POST","path":"/api/execution/request","status":200,"request":{"execution_id":"e","adapter_id":"a","tenant_id":"t","requested_capabilities":["c"]},"response":{"allowed":false,"decision":"deny","execution_id":"e","blocked_reason":"policy_denied"}}`;
    const cost = (n: number): string =>
      `{"tenant_id":"t","adapter_id":"a","execution_id":"e${n}","trace_id":"t","cost_usd":1,"recorded_at":"2026-01-01T00:00:00Z"}`;
    const count = 3000;
    const text = Array.from({ length: count }, (_, n) => `${request(n)}\n${cost(n)}`).join('\n');
    const reading = inTime(() => read([file('h.jsonl', text)], { occurredAt: '2026-01-01T00:00:00Z' }));
    expect(reading.items).toHaveLength(2 * count);
  });
});

describe('options', () => {
  it('an aid that is not known is refused, one that cannot be read is told of', () => {
    expect(() => clasper.read([], { aids: { keys: file('k', '') } })).toThrow(RangeError);
    expect(() => clasper.read([], { other: 1 } as never)).toThrow(TypeError);
    for (const name of Object.keys(clasper.aids))
      expect(errorsOf(read([], { aids: { [name]: file('aid', '[{}') } }))).toEqual(['INPUT AID_MALFORMED']);
  });
});

describe.skipIf(!hasRecordings)('an envelope alone', () => {
  it('is read like a call that was taken', () => {
    const [line] = calls(30);
    const request = JSON.stringify((JSON.parse(line) as { request: unknown }).request);
    const keys = file(
      'keys.json',
      `[${JSON.stringify((JSON.parse(calls(2)[0]) as { response: { adapter: unknown } }).response.adapter)}]`,
    );
    expect(codesOf(read([file('e.jsonl', request)], { aids: { 'adapter-keys': keys } }))).toEqual([
      'CLA-3 EXECUTION_NOT_REQUESTED',
    ]);
    const edited = JSON.stringify(
      (JSON.parse(resigned(line, () => undefined)) as { request: unknown }).request,
    ).replace('0.0031', '0.31');
    expect(errorsOf(read([file('e.json', edited)], { aids: { 'adapter-keys': keys } }))).toEqual([
      'CLA-1 PAYLOAD_HASH_MISMATCH',
    ]);
    // Without a key nothing says that the signature is right; the hash is told of all the same.
    expect(errorsOf(read([file('e.json', edited)]))).toEqual(['CLA-1 PAYLOAD_HASH_MISMATCH']);
  });
});

it('a request whose path is all but slashes costs what its length does', () => {
  const path = `${'/'.repeat(2_000_000)}x`;
  const call = JSON.stringify({ method: 'POST', path, status: 200, request: {}, response: {} });
  expect(inTime(() => check([file('http.jsonl', call)])).claims).toEqual([]);
});

it('scopes of many capabilities, granted again in another order, cost what their size does', () => {
  const names = Array.from({ length: 100_000 }, (_, n) => `c${n}`);
  const request = (requested: readonly string[]): string =>
    JSON.stringify({
      ...{ method: 'POST', path: '/api/execution/request', status: 200 },
      request: { execution_id: 'e', adapter_id: 'a', tenant_id: 't', requested_capabilities: requested },
      response: {
        ...{ allowed: true, decision: 'allow', execution_id: 'e' },
        granted_scope: { capabilities: requested, max_steps: 5, expires_at: '2027-01-01T00:00:00Z' },
      },
    });
  const readAll = (...lists: readonly (readonly string[])[]) =>
    inTime(() =>
      read([file('h.jsonl', `${lists.map(request).join('\n')}\n`)], { occurredAt: '2026-01-01T00:00:00Z' }),
    );
  expect(codesOf(readAll(names, names.toReversed()))).not.toContain('CLA-11 SCOPE_ESCALATED');
  expect(codesOf(readAll(names, [...names.toReversed(), 'more']))).toContain('CLA-11 SCOPE_ESCALATED');
});

it.skipIf(!hasRecordings)('a bundle of as many chains as rows and traces costs what its size does', () => {
  const texts = bundleTexts();
  const many = (name: string, members: (n: number) => object): void => {
    const line = JSON.parse((texts.get(name) as string).split('\n')[0]) as object;
    const lines = Array.from({ length: 2_000 }, (_, n) => JSON.stringify({ ...line, ...members(n) }));
    texts.set(name, `${lines.join('\n')}\n`);
  };
  many('audit_chain.jsonl', (n) => ({ tenantId: `tenant-${n}` }));
  many('audits.jsonl', (n) => ({ id: n }));
  many('traces.jsonl', (n) => ({ id: `trace-${n}` }));
  const { findings } = inTime(() => read(bundleFiles(texts)));
  expect(findings.filter(({ code }) => code === 'AUDIT_ROW_MISSING')).toHaveLength(2_000);
});

it('as many copies of a chain as lines, each with another entry, cost what their size does', () => {
  const common = { tenantId: 't', prevEventHash: null, eventHash: 'h', eventType: 'x', eventData: {} };
  const lines = Array.from({ length: 35_000 }, (_, n) =>
    JSON.stringify({ chain: [{ ...common, seq: n, createdAt: '2026-01-01T00:00:00Z' }] }),
  );
  const { claims } = inTime(() => read([file('exports.jsonl', `${lines.join('\n')}\n`)]));
  expect(claims).toHaveLength(35_000);
});

it('an entry of two chains is a copy of the first of them that has it, however their files are mixed', () => {
  const line = (seq: number, eventHash: string): string =>
    JSON.stringify({
      ...{ tenantId: 't', seq, prevEventHash: null, eventHash, eventType: 'x', eventData: {} },
      createdAt: '2026-01-01T00:00:00Z',
    });
  const lines = (name: string, ...entries: string[]): HostFile => file(name, `${entries.join('\n')}\n`);
  const { findings } = read([
    lines('a.jsonl', line(1, 'a')),
    lines('b.jsonl', line(1, 'b'), line(2, 'b')),
    lines('a.jsonl', line(2, 'a')),
    lines('c.jsonl', line(2, 'c')),
  ]);
  const forks = findings.filter(({ code }) => code === 'CHAIN_FORKED');
  expect(forks.map(({ expected, actual }) => `${actual} of ${expected}`)).toEqual([
    'a of b',
    'b of a',
    'c of a',
  ]);
});
