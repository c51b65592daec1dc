/** Recorded vectors: canonical JSON, lines, receipts, index and ledger rows, byte for byte. */

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accountFor, verdictOf } from '../../../src/hosts/shared/account.js';
import { apm2 } from '../../../src/hosts/apm2/index.js';
import { ledgerRowHash, ledgerRowOf, verifyRowSignature } from '../../../src/hosts/apm2/ledger-rows.js';
import {
  readToolLogIndex,
  readToolReceipt,
  receiptSigningBytes,
  verifyToolReceipt,
} from '../../../src/hosts/apm2/receipt.js';
import { deriveNonce, parseToolIntent, parseToolResponse } from '../../../src/hosts/apm2/tool-intent.js';
import { blake3Hex, cacBytes, decodeCacSource } from '../../../src/hosts/shared/forms/cac.js';
import { eventsOfClaims } from '../../../src/hosts/shared/claims.js';
import { hasRecordings, recorded, recordedFile, recordedText } from '../recorded.js';
import {
  ANSWER,
  ASK,
  codesOf,
  episode,
  fileOf,
  intentLine,
  KEYS,
  NONCE,
  read,
  responseLine,
  sourceOf,
  verifyClaims,
} from './kit.js';

const DERIVED = 'apm2/derived-receipt-and-ledger.json';
const LINES = 'apm2/ti1-cases.json';
const VECTORS = 'apm2/static/crates/apm2-core/bootstrap/test_vectors/canonicalize.json';
const OUTPUTS = 'apm2/static/crates/apm2-daemon/tests/fixtures/claude_code/';

interface Vectors {
  positive_vectors: { input: string; expected_canonical: string; expected_hash: string }[];
  negative_vectors: { input: string; expected_error: string }[];
  idempotence_vectors: { inputs: string[] }[];
  determinism_vectors: { inputs: string[]; expected_canonical: string }[];
}
interface Lines {
  nonces: { nonce_prefix: string; episode_id: string; spawn_time_ns: number; nonce: string }[];
  lines: {
    line: string;
    nonce: string;
    max_args_size: number;
    expect: { ok?: Record<string, unknown>; err?: string };
  }[];
  responses: {
    kind: string;
    nonce: string;
    request_id: string;
    line: string;
    cas_result_hash?: string;
    reason_code?: string;
  }[];
}

/** `NotTi1Frame` as this project writes codes. */
const codeOf = (name: string): string =>
  name === 'NotTi1Frame' ? 'NOT_A_FRAME' : name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toUpperCase();

function canonical(text: string): string {
  const decoded = decodeCacSource(Buffer.from(text));
  const result = decoded.ok ? cacBytes(decoded.value) : decoded;
  return result.ok ? Buffer.from(result.value).toString() : result.fault.code;
}

describe('cac-json', () => {
  it.skipIf(!hasRecordings)('gives the recorded vectors', () => {
    const vectors = JSON.parse(recordedText(VECTORS)) as Vectors;
    expect(vectors.positive_vectors).toHaveLength(30);
    for (const { input, expected_canonical, expected_hash } of vectors.positive_vectors) {
      expect(canonical(input)).toBe(expected_canonical);
      expect(blake3Hex(Buffer.from(expected_canonical))).toBe(expected_hash);
    }
    expect(vectors.negative_vectors).toHaveLength(12);
    for (const { input, expected_error } of vectors.negative_vectors)
      expect(canonical(input)).toBe(codeOf(expected_error));
    for (const { inputs } of vectors.idempotence_vectors)
      for (const input of inputs) expect(canonical(canonical(input))).toBe(canonical(input));
    for (const { inputs, expected_canonical } of vectors.determinism_vectors)
      for (const input of inputs) expect(canonical(input)).toBe(expected_canonical);
  });

  it.each([
    ['{"n":'.repeat(127) + '1' + '}'.repeat(127), undefined],
    ['{"n":'.repeat(128) + '1' + '}'.repeat(128), 'NESTING_TOO_DEEP'],
    ['['.repeat(150) + ']'.repeat(150), 'NESTING_TOO_DEEP'],
    ['-0', 'FLOAT_NOT_ALLOWED'],
    ['1e2', 'FLOAT_NOT_ALLOWED'],
    ['-9223372036854775809', 'NUMBER_OUT_OF_RANGE'],
    ['18446744073709551615', 'NUMBER_OUT_OF_RANGE'],
    ['"\\ud800"', 'PARSE_ERROR'],
  ])('%.20s', (text, code) => {
    expect(canonical(text)).toBe(code ?? text);
  });

  it('sorts keys by code points, and keeps names of prototypes', () => {
    expect(canonical('{"\\ud83d\\ude00":1,"\\uffe0":2,"__proto__":3,"1":4}')).toBe(
      '{"1":4,"__proto__":3,"\uffe0":2,"\u{1F600}":1}',
    );
    expect(canonical('{"x":1.5}')).toBe('FLOAT_NOT_ALLOWED');
  });

  it.skipIf(!hasRecordings)('has the digest of the recorded golden bytes', () => {
    const golden = JSON.parse(recordedText('apm2/golden-vectors.extracted.json')) as {
      expected_hash: string;
      expected_bytes: string;
    }[];
    expect(golden).toHaveLength(30);
    for (const { expected_bytes, expected_hash } of golden)
      expect(blake3Hex(Buffer.from(expected_bytes, 'hex'))).toBe(expected_hash);
  });
});

describe('lines', () => {
  it.skipIf(!hasRecordings)('give the recorded results', () => {
    const cases = JSON.parse(recordedText(LINES)) as Lines;
    for (const each of cases.nonces)
      expect(deriveNonce(each.nonce_prefix, each.episode_id, BigInt(each.spawn_time_ns))).toBe(each.nonce);
    for (const { line, nonce, max_args_size, expect: expected } of cases.lines) {
      const result = parseToolIntent(line, { nonce, maxArgsSize: max_args_size });
      if (expected.ok === undefined) expect(result.ok ? 'ok' : result.fault.code).toBe(codeOf(expected.err!));
      else {
        const {
          request_id: requestId,
          tool_name: toolName,
          args,
        } = expected.ok as { request_id: string; tool_name: string; args: unknown };
        expect(result).toMatchObject({ ok: true, value: { requestId, toolName } });
        expect(intentLine({ nonce, requestId, toolName, args })).toBe(`${line}\n`);
      }
    }
    for (const {
      kind,
      nonce,
      request_id: requestId,
      line,
      cas_result_hash = '',
      reason_code = '',
    } of cases.responses) {
      const response =
        kind === 'ok'
          ? ({ nonce, requestId, status: 'ok', resultHash: cas_result_hash } as const)
          : ({ nonce, requestId, status: 'denied', reasonCode: reason_code } as const);
      expect(responseLine(response)).toBe(line);
      expect(parseToolResponse(line, { nonce })).toEqual({ ok: true, value: response });
    }
  });

  it('never says the right nonce of a wrong line', () => {
    const result = parseToolIntent(ASK.replace(NONCE, 'guess'), { nonce: NONCE });
    expect(JSON.stringify(result)).not.toContain(NONCE);
    expect(JSON.stringify(read(episode()).claims.map((claim) => ({ ...claim, bytes: 0 })))).not.toContain(
      NONCE,
    );
  });

  it('are read back as they are written', () => {
    const word = fc.stringMatching(/^[!-~]{1,20}$/);
    fc.assert(
      fc.property(
        word,
        word,
        word,
        fc.dictionary(fc.string(), fc.oneof(fc.integer(), fc.boolean())),
        (nonce, requestId, toolName, args) => {
          const line = intentLine({
            nonce,
            requestId,
            toolName,
            args: JSON.parse(JSON.stringify(args).normalize('NFC')) as object,
          });
          expect(parseToolIntent(line, { nonce })).toMatchObject({
            ok: true,
            value: { nonce, requestId, toolName },
          });
        },
      ),
      { numRuns: 100 },
    );
  });

  it('are bounded', () => {
    expect(parseToolIntent(`\u27E6TI1 n\u27E7 r t ${'A'.repeat(1 << 20)}`)).toMatchObject({
      fault: { code: 'LINE_TOO_LONG' },
    });
    expect(parseToolIntent(`${' '.repeat(200_000)}x`)).toMatchObject({ fault: { code: 'NOT_A_FRAME' } });
    expect(parseToolResponse(ANSWER.replace(' ok ', ' maybe '))).toMatchObject({
      fault: { code: 'MALFORMED_FRAME' },
    });
    expect(() => deriveNonce('', 'e', 2n ** 64n)).toThrow(RangeError);
  });
});

interface Derived {
  tool_execution_receipt: { signing_bytes_hex: string; cas_json: string; cas_blake3: string };
  tool_log_index: { cas_json: string; cas_blake3: string };
  ledger_events_chain: Record<string, string>[];
  signer: { public_hex: string };
}

describe.skipIf(!hasRecordings)('the derived receipt and ledger', () => {
  const text = hasRecordings ? recordedText(DERIVED) : '{}';
  const derived = JSON.parse(text) as Derived;

  it('are computed again, byte for byte', () => {
    const {
      tool_execution_receipt: receipt,
      tool_log_index: index,
      ledger_events_chain: rows,
      signer,
    } = derived;
    const read = readToolReceipt(sourceOf(receipt.cas_json));
    if (!read.ok) throw new Error(read.fault.expected);
    expect(Buffer.from(receiptSigningBytes(read.value)).toString('hex')).toBe(receipt.signing_bytes_hex);
    expect(read.value.hash).toBe(receipt.cas_blake3);
    expect(verifyToolReceipt(read.value)).toBe('ok');
    expect(readToolLogIndex(sourceOf(index.cas_json))).toMatchObject({
      ok: true,
      value: { hash: index.cas_blake3 },
    });
    for (const row of rows) {
      const made = ledgerRowOf(sourceOf(JSON.stringify(row)))!;
      expect(ledgerRowHash(made)).toBe(row['event_hash']);
      expect(verifyRowSignature(made, [signer.public_hex])).toBe('ok');
    }
  });

  it('have a receipt of nothing, and say so', async () => {
    const reading = read([recordedFile(DERIVED)], {});
    expect(reading.findings.map(({ rule, code }) => `${rule} ${code}`)).toEqual([
      'INPUT TIME_NOT_STATED',
      'AP-3 RECEIPT_UNMATCHED',
      'AP-9 PROFILE_NOT_GIVEN',
      'AP-11 INTENT_DIGEST_MISSING',
    ]);
    expect(accountFor(reading.items).total).toEqual({
      items: 6,
      mapped: 2,
      evidence: 2,
      repeated: 0,
      dropped: 2,
    });
    expect(verdictOf(reading)).toBe('invalid');
    expect(reading.claims.find(({ kind }) => kind === 'execution')).toMatchObject({
      outcome: 'unknown',
      occurredAt: '1970-01-01T00:00:01Z',
    });
    const report = await verifyClaims(reading);
    expect(report.counts.by_type).toEqual({
      authorization: 1,
      execution: 1,
      'x.apm2.digests': 3,
      'x.apm2.episode_run_attributed': 1,
      'x.apm2.tool_execution_receipt': 1,
      'x.apm2.tool_log_index': 1,
    });
    expect(report.findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code)).toEqual([
      'AUTH_NOT_FOUND',
    ]);
  });

  it('go in with the lines of the same request', () => {
    const { nonce } = (JSON.parse(recordedText(LINES)) as Lines).lines[0];
    const log = `${(JSON.parse(recordedText(LINES)) as Lines).lines[0].line}\n${responseLine({ nonce, requestId: 'req-001', status: 'ok', resultHash: '33'.repeat(32) })}`;
    const reading = read([recordedFile(DERIVED), fileOf(log, 'agent.log')], {
      occurredAt: '2023-11-14T22:13:21Z',
    });
    // The derived hashes are placeholders: they are of nothing.
    expect(codesOf(reading)).toEqual([
      'AP-3 RECEIPT_UNMATCHED',
      'AP-11 INTENT_DIGEST_MISSING',
      'INPUT TIME_NOT_STATED',
      'AP-6 ARGS_HASH_MISMATCH',
    ]);
    expect(accountFor(reading.items).total).toEqual({
      items: 8,
      mapped: 2,
      evidence: 3,
      repeated: 1,
      dropped: 2,
    });
  });

  const OWN = ['AP-3 RECEIPT_UNMATCHED', 'AP-11 INTENT_DIGEST_MISSING'];
  it.each([
    [
      '100,67,166,131',
      '100,67,166,132',
      [
        'AP-4 STORED_CONTENT_MISMATCH',
        'AP-4 RECEIPT_SIGNATURE_INVALID',
        'AP-5 INDEX_RECEIPT_UNRESOLVED',
        'AP-5 RECEIPT_NOT_INDEXED',
      ],
    ],
    [
      '"timestamp_ns": "1700000000000000002"',
      '"timestamp_ns": "1700000000000000009"',
      ['AP-10 LEDGER_HASH_MISMATCH'],
    ],
    [
      '"prev_hash": "a360',
      '"prev_hash": "b360',
      ['AP-10 LEDGER_LINK_BROKEN', 'AP-10 LEDGER_HASH_MISMATCH', 'AP-10 LEDGER_ROW_CONTRADICTS_PAYLOAD'],
    ],
    [
      '"signature_hex": "351b',
      '"signature_hex": "361b',
      ['AP-10 LEDGER_HASH_MISMATCH', 'AP-10 LEDGER_SIGNATURE_INVALID'],
    ],
    ['544f4f4c5f45', '544f4f4c5f46', ['AP-4 RECEIPT_BYTES_MISMATCH']],
    [
      '\\"total_wall_ms\\":5',
      '\\"total_wall_ms\\":9',
      ['AP-5 STORED_CONTENT_MISMATCH', 'AP-5 INDEX_COUNT_MISMATCH'],
    ],
  ])('with %s as %s', (from, to, codes) => {
    expect(text.includes(from)).toBe(true);
    const found = codesOf(read([fileOf(text.replace(from, to), 'edited.json')], {}));
    expect(found.filter((code) => !OWN.includes(code)).sort()).toEqual([...codes].sort());
  });
});

describe.skipIf(!hasRecordings)('recorded outputs of an agent', () => {
  it.each([
    ['simple_read.txt', 6, 1],
    ['multi_tool.txt', 8, 3],
    ['no_tools.txt', 6, 0],
    ['with_ansi.txt', 5, 1],
  ])("%s are nobody's requests", (name, items, calls) => {
    const reading = read([recordedFile(`${OUTPUTS}${name}`)], {});
    expect(reading.claims).toEqual([]);
    expect(accountFor(reading.items).total).toMatchObject({ items, dropped: items });
    expect(accountFor(reading.items).byReason.get('VENDOR_TOOL_CALL') ?? 0).toBe(calls);
  });
});

describe('kernel events in whatever JSON form', () => {
  const hash = '22'.repeat(32);
  const base64 = Buffer.from(hash, 'hex').toString('base64');
  const ints = [...Buffer.from(hash, 'hex')];
  const requested = { request_id: 'r', session_id: 's', tool_name: 't', tool_args_hash: hash };
  it.each<[string, object]>([
    ['flat', { event_type: 'tool_requested', timestamp_ns: 1, ...requested }],
    ['with a payload', { type: 'ToolRequested', timestamp: '1970-01-01T00:00:00Z', payload: requested }],
    [
      'the JSON of protobuf',
      {
        sequence: '1',
        timestamp: '1970-01-01T00:00:00Z',
        sessionId: 's',
        tool: { requested: { requestId: 'r', sessionId: 's', toolName: 't', toolArgsHash: base64 } },
      },
    ],
    [
      "serde's",
      {
        timestamp: { seconds: 1, nanos: 5 },
        payload: { Tool: { event: { Requested: { ...requested, tool_args_hash: ints } } } },
      },
    ],
    ['untagged', { timestamp_ns: '5', ...requested, dedupe_key: '' }],
    ['tagged from outside', { timestamp_ns: '5', ToolRequested: requested }],
  ])('%s', (_, event) => {
    const { claims } = read([fileOf(`${JSON.stringify(event)}\n`, 'e.jsonl')], {});
    expect(claims).toMatchObject([
      {
        kind: 'evidence',
        type: 'tool_requested',
        facts: { request_id: 'r', tool_name: 't', tool_args_hash: hash },
      },
    ]);
  });
});

describe('hostile files', () => {
  function expectSound(files: readonly { name: string; bytes: Uint8Array }[], occurredAt?: string): void {
    const options = { ...KEYS, occurredAt };
    const reading = read(files, options);
    const ids = reading.claims.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const rules = ['INPUT', ...apm2.rules.map(({ id }) => id)];
    for (const { rule, code } of reading.findings)
      expect([rules.includes(rule), /^[A-Z0-9_]{1,64}$/.test(code)]).toEqual([true, true]);
    const seen = new Set<string>();
    for (const claim of reading.claims) {
      if (claim.kind === 'execution' && claim.authorization !== undefined)
        expect(seen).toContain(claim.authorization);
      seen.add(claim.id);
    }
    eventsOfClaims(reading.claims, { system: 'apm2' });
    expect(read(files, options)).toEqual(reading);
  }

  const lines = episode().flatMap(({ bytes }) => Buffer.from(bytes).toString().split('\n'));
  const values = [
    null,
    true,
    -1,
    '',
    'x'.repeat(300),
    '__proto__',
    [],
    {},
    [[{}]],
    'ALLOW',
    'DENY',
    '1'.repeat(30),
    [300],
    '\u{1F600}',
  ];
  const edited = fc
    .record({
      i: fc.nat({ max: lines.length - 1 }),
      n: fc.nat(),
      by: fc.constantFrom(...values),
      same: fc.boolean(),
    })
    .map(({ i, n, by, same }) => {
      const line = lines[i];
      if (same || !line.startsWith('{')) return n % 5 === 0 ? line.slice(0, n % (line.length + 1)) : line;
      const value = JSON.parse(line) as Record<string, unknown>;
      const names = Object.keys(value);
      value[names[n % names.length]] = by;
      return JSON.stringify(value);
    });

  it('made of an episode are read', () => {
    fc.assert(
      fc.property(
        fc.array(edited, { maxLength: 20 }),
        fc.nat({ max: 20 }),
        fc.boolean(),
        (some, cut, dated) => {
          const files = [fileOf(some.slice(0, cut).join('\n'), 'a'), fileOf(some.slice(cut).join('\n'), 'b')];
          expectSound(files, dated ? '2026-01-01T00:00:00Z' : undefined);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('of any bytes are read', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expectSound([{ name: 'any', bytes }]);
        apm2.recognises({ name: 'any', bytes });
      }),
      { numRuns: 100 },
    );
  });

  it('of many lines are read in time', () => {
    const log = `${'x\n'.repeat(50_000)}${ASK.repeat(20_000)}`;
    expect(read([fileOf(log, 'a.log')]).items).toHaveLength(70_000);
    const guesses = Array.from({ length: 20_000 }, (_, i) => ASK.replace(NONCE, String(i))).join('');
    expect(read([fileOf(ANSWER + guesses, 'a.log')]).items).toHaveLength(20_001);
  });
});

it.skipIf(!hasRecordings)('recognises the recording', () => {
  expect(apm2.recognises({ name: 'x', bytes: readFileSync(recorded(DERIVED)) })).toBe(true);
});
