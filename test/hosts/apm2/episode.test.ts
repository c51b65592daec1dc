/** A whole episode, and single things wrong with it: each gives its finding and no other. */

import { describe, expect, it } from 'vitest';
import { accountFor, verdictOf } from '../../../src/hosts/shared/account.js';
import { type ImportPlan, type KnownLedger, planImport } from '../../../src/hosts/shared/import.js';
import { apm2 } from '../../../src/hosts/apm2/index.js';
import { deriveNonce } from '../../../src/hosts/apm2/tool-intent.js';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import {
  ANSWER,
  ARGS,
  ASK,
  codesOf,
  type Draft,
  type drafts,
  EPISODE,
  episode,
  fileOf,
  hashOf,
  index,
  intentLine,
  KEYS,
  NONCE,
  type Parts,
  profile,
  read,
  receipt,
  responseLine,
  RESULT,
  verifyClaims,
} from './kit.js';

const with_ = (draft: Draft, payload: object): Draft => ({
  ...draft,
  payload: { ...draft.payload, ...payload },
});
const END = '{"verdict":"approve"}\n';

describe('a whole episode', () => {
  it('goes in without a finding, and its ledger is in order', async () => {
    const reading = read(episode());
    expect(codesOf(reading)).toEqual([]);
    expect(verdictOf(reading)).toBe('ok');
    const { total, byReason } = accountFor(reading.items);
    expect(total).toEqual({ items: 14, mapped: 4, evidence: 5, repeated: 2, dropped: 3 });
    expect(Object.fromEntries(byReason)).toEqual({
      OPAQUE_OUTPUT: 2,
      STORED_CONTENT: 1,
      TOOL_EXECUTED: 1,
      TOOL_REQUESTED: 1,
    });
    const report = await verifyClaims(reading);
    expect(report.verdict).toBe('ok');
    expect(report.findings.filter(({ severity }) => severity !== 'info')).toEqual([]);
    expect(report.grants).toMatchObject([
      {
        executions: 1,
        meters: [
          { unit: 'bytes.evidence' },
          { unit: 'calls', used: { v: '1' } },
          { unit: 'time.ms', used: { v: '5' } },
          { unit: 'tokens' },
        ],
      },
    ]);
  });

  it('says what the sources say', () => {
    const { claims, observations } = read(episode());
    const byId = new Map(claims.map((claim) => [claim.id, claim]));
    expect(byId.get('decision:ep-001/req-001')).toMatchObject({
      kind: 'action',
      decision: 'allow',
      decisionCode: 'CAPABILITY_GRANTED',
      checks: [{ check: 'rule-7', result: 'pass' }],
      tool: 'Read',
      grant: 'grant:ep-001',
      policyDigest: { alg: 'blake3' },
      paramsDigest: { alg: 'blake3' },
    });
    expect(byId.get('execution:ep-001/req-001')).toMatchObject({
      authorization: 'decision:ep-001/req-001',
      outcome: 'success',
      startedAt: '2023-11-14T22:13:24.5Z',
      meters: [
        { unit: 'calls', amount: { t: 'int', v: '1' } },
        { unit: 'time.ms', amount: { t: 'int', v: '5' } },
      ],
    });
    expect(observations).toMatchObject([
      { callIds: ['req-001', 'ep-001/req-001', 'ep-001:req-001'], decision: 'allow', outcome: 'success' },
    ]);
  });

  it('adds nothing when its files are given twice, in whatever order', () => {
    const files = episode();
    const ids = (given: typeof files): string[] =>
      read(given)
        .claims.map(({ id }) => id)
        .sort();
    expect(ids([...files, ...files])).toEqual(ids(files));
    expect(ids([...files].reverse())).toEqual(ids(files));
  });

  it('gives the same claims of a ledger that ends earlier', () => {
    const [ledger, ...others] = episode();
    const whole = new Map(read([ledger, ...others]).claims.map((claim) => [claim.id, claim]));
    const text = Buffer.from(ledger.bytes).toString();
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1)) {
      const { claims } = read([fileOf(text.slice(0, end + 1), ledger.name), others[2]]);
      // Without the receipts the execution rests on the event alone, and says so in its id.
      for (const { id, sameAs = [], bytes } of claims)
        expect([id, ...sameAs].map((each) => whole.get(each)?.bytes)).toContainEqual(bytes);
    }
  });

  it('keeps nanoseconds and amounts exact', () => {
    const text = receipt({ started_at_ns: 1_700_000_004_100_000_001n, duration_ns: 5_000_001n });
    const { claims } = read(episode({ receipts: [text] }));
    expect(claims.find(({ kind }) => kind === 'execution')).toMatchObject({
      startedAt: '2023-11-14T22:13:24.100000001Z',
      meters: [{}, { unit: 'time.ms', amount: { t: 'dec', m: '5000001', s: 6 } }],
    });
  });
});

const other = receipt({ request_id: 'req-002', started_at_ns: 1_700_000_001_000_000_000n });
const BROKEN: readonly (readonly [string, Parts, readonly string[]])[] = [
  [
    'AP-1: another nonce',
    { log: `${ASK}${ANSWER}${ASK.replace(NONCE, '0'.repeat(16)).replace('001', '009')}${END}` },
    ['AP-1 NONCE_MISMATCH'],
  ],
  [
    'AP-1: guessed nonces',
    { log: `${ASK}${ANSWER}${[1, 2, 3].map((n) => ASK.replace(NONCE, `${n}`)).join('')}${END}` },
    ['AP-1 NONCE_MISMATCH', 'AP-1 NONCE_GUESSING', 'AP-1 NONCE_MISMATCH', 'AP-1 NONCE_MISMATCH'],
  ],
  [
    'AP-1: a megabyte',
    { log: `${ASK}${ANSWER}\u27E6TI1 ${NONCE}\u27E7 r t ${'A'.repeat(1 << 20)}\n${END}` },
    ['AP-1 LINE_TOO_LONG'],
  ],
  [
    'AP-1: two fields',
    { log: `${ASK}${ANSWER}\u27E6TI1 ${NONCE}\u27E7 req-3\n${END}` },
    ['AP-1 MALFORMED_FRAME'],
  ],
  [
    'AP-1: no such tool',
    {
      log: `${ASK}${ANSWER}${ASK.replace('read_file', 'rm').replace('req-001', 'r9')}${ANSWER.replace(/req-001 ok .*/, 'r9 denied TI1_UNKNOWN_TOOL')}${END}`,
    },
    ['AP-1 UNKNOWN_TOOL'],
  ],
  ['AP-2: a request id twice', { log: `${ASK}${ASK}${ANSWER}${END}` }, ['AP-2 REQUEST_DUPLICATE']],
  [
    'AP-2: two decisions',
    {
      events: (e) => [
        e.attributed,
        e.spawned,
        e.requested,
        e.decided,
        with_(e.decided, { decision: 'DENY' }),
        e.executed,
      ],
    },
    ['AP-2 DECISION_DUPLICATE'],
  ],
  [
    'AP-2: a decision of another kind',
    {
      events: (e) => [
        e.attributed,
        e.spawned,
        e.requested,
        with_(e.decided, { decision: 'MAYBE' }),
        e.executed,
      ],
    },
    ['AP-2 DECISION_INVALID'],
  ],
  ['AP-2: two answers', { log: `${ASK}${ANSWER}${ANSWER}${END}` }, ['AP-2 RESPONSE_DUPLICATE']],
  ['AP-2: an answer to nothing', { log: `${ANSWER}${END}` }, ['AP-2 RESPONSE_UNREQUESTED']],
  [
    'AP-3: executed after DENY',
    {
      events: (e) => [
        e.attributed,
        e.spawned,
        e.requested,
        with_(e.decided, { decision: 'DENY' }),
        e.executed,
      ],
    },
    ['AP-3 EXECUTED_AFTER_DENY'],
  ],
  [
    'AP-3: executed without a decision',
    { events: (e) => [e.attributed, e.spawned, e.requested, e.executed] },
    ['AP-3 EXECUTED_WITHOUT_DECISION'],
  ],
  [
    'AP-3: executed before it was decided',
    {
      events: (e) => [e.attributed, e.spawned, e.requested, e.executed, e.decided],
      receipts: [receipt({ started_at_ns: 1_700_000_005_500_000_000n })],
    },
    ['AP-3 EXECUTED_BEFORE_DECISION'],
  ],
  [
    'AP-3: a receipt of nothing',
    { receipts: [receipt(), receipt({ request_id: 'req-002', started_at_ns: 1_700_000_009_000_000_000n })] },
    ['AP-3 RECEIPT_UNMATCHED'],
  ],
  [
    'AP-3: another policy',
    { receipts: [receipt({ policy_hash: '99'.repeat(32) })] },
    ['AP-3 POLICY_MISMATCH'],
  ],
  [
    'AP-3: another tool class',
    { receipts: [receipt({ tool_class: 'Write' })] },
    ['AP-3 TOOL_CLASS_MISMATCH'],
  ],
  [
    'AP-4: a signature of something else',
    { receipts: [receipt({}, new Uint8Array(64).fill(7))] },
    ['AP-4 RECEIPT_SIGNATURE_INVALID'],
  ],
  [
    'AP-4: a key that is none',
    { receipts: [receipt({ signer_identity: 'kernel' })] },
    ['AP-4 SIGNER_INVALID'],
  ],
  [
    'AP-4: a request id that is too long',
    { receipts: [receipt({ request_id: 'r'.repeat(257) })], index: undefined },
    ['AP-4 RECEIPT_MALFORMED'],
  ],
  [
    'AP-5: counts',
    { index: index([receipt()], { counts: { total_executions: 2, successful_executions: 2 } }) },
    ['AP-5 INDEX_COUNT_MISMATCH'],
  ],
  [
    'AP-5: outcomes',
    { index: index([receipt()], { counts: { successful_executions: 0, failed_executions: 1 } }) },
    ['AP-5 INDEX_COUNT_MISMATCH'],
  ],
  [
    'AP-5: a receipt that is not there',
    { index: index([receipt(), 'x'], { counts: { total_wall_ms: 5 } }) },
    ['AP-5 INDEX_RECEIPT_UNRESOLVED'],
  ],
  ['AP-5: a receipt that is not listed', { index: index([]) }, ['AP-5 RECEIPT_NOT_INDEXED']],
  [
    'AP-5: the last chunk is missing',
    { index: index([receipt()], { is_final_chunk: false }) },
    ['AP-5 INDEX_NOT_FINAL'],
  ],
  [
    'AP-5: a first chunk is missing',
    { index: index([receipt()], { first_sequence: 4 }) },
    ['AP-5 INDEX_CHUNKS_BROKEN'],
  ],
  [
    'AP-5: a chunk that is not there',
    { index: index([receipt()], { continuation_hashes: ['77'.repeat(32)] }) },
    ['AP-5 INDEX_CHUNK_UNRESOLVED'],
  ],
  [
    'AP-6: another spelling',
    {
      log: `${ASK.replace(/ \S+\n$/, ` ${Buffer.from('{ "path":"/tmp/test.txt"}').toString('base64url')}\n`)}${ANSWER}${END}`,
    },
    ['AP-6 ARGS_NOT_CANONICAL'],
  ],
  [
    'AP-6: other arguments',
    {
      log: `${intentLine({ nonce: NONCE, requestId: 'req-001', toolName: 'read_file', args: { ...ARGS, n: 1 } })}${ANSWER}${END}`,
    },
    ['AP-6 ARGS_HASH_MISMATCH'],
  ],
  [
    'AP-7: another result',
    { log: `${ASK}${ANSWER.replace(RESULT, '66'.repeat(32))}${END}` },
    ['AP-7 RESULT_HASH_MISMATCH'],
  ],
  [
    'AP-8: more time than the budget has',
    { receipts: [receipt({ duration_ns: 3_600_000_000_001n })], index: undefined },
    ['AP-8 BUDGET_EXCEEDED'],
  ],
  [
    'AP-8: what the kernel says',
    {
      events: (e) => [
        ...Object.values(e),
        {
          type: 'budget_exceeded',
          payload: { session_id: 'S-1', budget_type: 'TOKEN', limit: 5, consumed: 6 },
        },
      ],
    },
    ['AP-8 BUDGET_EXCEEDED'],
  ],
  [
    'AP-9: a session is missing',
    {
      events: (e) => [with_(e.attributed, { session_id: '' }), e.spawned, e.requested, e.decided, e.executed],
    },
    ['AP-9 ATTRIBUTION_INCOMPLETE'],
  ],
  [
    'AP-9: another profile',
    {
      events: (e) => [
        with_(e.attributed, { adapter_profile_hash: '88'.repeat(32) }),
        e.spawned,
        e.requested,
        e.decided,
        e.executed,
      ],
    },
    ['AP-9 PROFILE_MISMATCH'],
  ],
  [
    'AP-9: a profile that is not valid',
    {
      profile: profile({ cwd: '/workspace/../etc' }),
      log: `${ASK}${ANSWER}${END}`,
      events: (e) => [
        e.attributed,
        with_(e.spawned, { nonce_prefix: 'demo' }),
        e.requested,
        e.decided,
        e.executed,
      ],
    },
    ['AP-9 PROFILE_INVALID'],
  ],
  [
    'AP-10: a column that the payload contradicts',
    {
      events: (e) => [
        e.attributed,
        e.spawned,
        { ...e.requested, columns: { work_id: 'W-1' }, payload: { ...e.requested.payload, work_id: 'W-2' } },
        e.decided,
        e.executed,
      ],
    },
    ['AP-10 LEDGER_ROW_CONTRADICTS_PAYLOAD'],
  ],
  [
    'AP-10: a row that was changed',
    {
      events: (e) => [
        e.attributed,
        e.spawned,
        e.requested,
        { ...e.decided, after: { timestamp_ns: '1700000000900000000' } },
        e.executed,
      ],
    },
    ['AP-10 LEDGER_HASH_MISMATCH'],
  ],
  [
    'AP-10: no signature',
    {
      events: (e) => [
        e.attributed,
        e.spawned,
        { ...e.requested, columns: { signature: '00'.repeat(64) } },
        e.decided,
        e.executed,
      ],
    },
    ['AP-10 LEDGER_UNSIGNED'],
  ],
  [
    'AP-10: a signature for another domain',
    {
      events: (e) => [
        e.attributed,
        e.spawned,
        { ...e.requested, columns: { domain_prefix: 'apm2.event.tool_executed:' } },
        e.decided,
        e.executed,
      ],
    },
    ['AP-10 LEDGER_DOMAIN_MISMATCH'],
  ],
  [
    'AP-10: another signature',
    {
      events: (e) => [
        e.attributed,
        e.spawned,
        { ...e.requested, columns: { signature: '07'.repeat(64) } },
        e.decided,
        e.executed,
      ],
    },
    ['AP-10 LEDGER_SIGNATURE_INVALID'],
  ],
  [
    'AP-11: another intent was consumed',
    {
      events: (e) => [
        ...Object.values(e),
        {
          type: 'kernel_tool_actuation',
          payload: {
            session_id: 'S-1',
            tool_class: 'Read',
            intent_digest: 'aa'.repeat(32),
            consume_time_intent_digest: 'bb'.repeat(32),
          },
        },
      ],
    },
    ['AP-11 INTENT_DIGEST_MISMATCH'],
  ],
];

describe('an episode with one thing wrong', () => {
  it.each(BROKEN)('%s', (_, parts, codes) => {
    const reading = read(episode(parts));
    expect(codesOf(reading)).toEqual(codes);
    expect(verdictOf(reading)).not.toBe(
      codes.some((code) => code.includes('UNKNOWN_TOOL')) ? 'invalid' : 'ok',
    );
  });

  it('says the order of receipts', () => {
    const events = (e: ReturnType<typeof drafts>): Draft[] => [
      ...Object.values(e),
      with_(e.requested, { request_id: 'req-002' }),
      with_(e.decided, { request_id: 'req-002' }),
      with_(e.executed, { request_id: 'req-002' }),
    ];
    const late = receipt({ started_at_ns: 1_700_000_009_000_000_000n });
    const reading = read(episode({ events, receipts: [late, other] }));
    expect(codesOf(reading).filter((code) => code.startsWith('AP-5'))).toEqual(['AP-5 INDEX_ORDER']);
  });

  it('says a row that was taken out', () => {
    const [ledger, ...others] = episode();
    const lines = Buffer.from(ledger.bytes).toString().split('\n');
    const text = lines.filter((_, i) => i !== 1).join('\n');
    const log = others.filter(({ name }) => name !== 'agent.log');
    expect(codesOf(read([fileOf(text, 'ledger.jsonl'), ...log]))).toEqual(['AP-10 LEDGER_LINK_BROKEN']);
  });

  it('shows an execution after a denial in the ledger', async () => {
    const events = (e: ReturnType<typeof drafts>): Draft[] => [
      e.attributed,
      e.spawned,
      e.requested,
      with_(e.decided, { decision: 'DENY' }),
      e.executed,
    ];
    const report = await verifyClaims(read(episode({ events })));
    expect(report.verdict).toBe('violation');
    expect(report.findings.map(({ code }) => code)).toContain('EXECUTION_UNDER_DENY');
  });

  it('never takes a missing decision for an allow', async () => {
    const events = (e: ReturnType<typeof drafts>): Draft[] => [
      e.attributed,
      e.spawned,
      e.requested,
      e.executed,
    ];
    const report = await verifyClaims(read(episode({ events })));
    expect(report.findings.filter(({ severity }) => severity === 'error').map(({ code }) => code)).toEqual([
      'AUTH_NOT_FOUND',
    ]);
  });

  it('takes a timeout for a failure, and no outcome for none', () => {
    const outcomeOf = (outcome: string): unknown =>
      read(
        episode({
          index: undefined,
          events: (e) => [e.attributed, e.spawned, e.requested, e.decided, with_(e.executed, { outcome })],
        }),
      ).claims.find(({ kind }) => kind === 'execution');
    expect(outcomeOf('TIMEOUT')).toMatchObject({ outcome: 'failure', errorCode: 'TIMEOUT' });
    expect(outcomeOf('FAILURE')).toMatchObject({ outcome: 'failure', errorCode: 'FAILURE' });
    expect(outcomeOf('')).toMatchObject({ outcome: 'unknown' });
  });

  it('refuses a signer that is not pinned', () => {
    const keys = { aids: { keys: fileOf('00'.repeat(32), 'keys.txt') } };
    expect(codesOf(read(episode({ events: () => [] }), keys))).toContain('AP-4 SIGNER_NOT_PINNED');
  });

  it('makes no cap of a 0, and says so', () => {
    const text = profile({
      budget_defaults: { max_tool_calls: 0, max_tokens: 10, max_wall_clock_ms: 0, max_evidence_bytes: 0 },
    });
    const reading = read(episode({ profile: text }));
    expect(reading.findings.map(({ code }) => code)).toContain('BUDGET_UNLIMITED');
    expect(reading.claims.find(({ kind }) => kind === 'grant')).toMatchObject({
      bounds: { allowed_tools: ['Read', 'Write'], meter_caps: [{ unit: 'tokens' }] },
      checks: [
        { check: 'budget.calls', code: 'NO_CAP' },
        { code: 'CAP' },
        { code: 'NO_CAP' },
        { code: 'NO_CAP' },
      ],
    });
    const none = profile({
      budget_defaults: { max_tool_calls: 0, max_tokens: 0, max_wall_clock_ms: 0, max_evidence_bytes: 0 },
    });
    expect(read(episode({ profile: none })).claims.some(({ kind }) => kind === 'grant')).toBe(false);
  });
});

describe('a captured log alone', () => {
  const log = `start\n${ASK}${ANSWER}${ASK.replace('req-001', 'req-2')}${responseLine({ nonce: NONCE, requestId: 'req-2', status: 'denied', reasonCode: 'POLICY_DENIED' })}`;
  it('has no time of its own', () => {
    const { items, claims } = read([fileOf(log, 'a.log')]);
    expect(claims).toEqual([]);
    expect(items.map(({ reason }) => reason)).toEqual([
      'OPAQUE_OUTPUT',
      ...Array<string>(4).fill('TIME_NOT_STATED'),
    ]);
  });

  it('gives executions of unknown outcome, and denials', () => {
    const { claims } = read([fileOf(log, 'a.log')], { occurredAt: '2026-01-01T00:00:00Z' });
    expect(claims.map(({ kind }) => kind)).toEqual(['evidence', 'execution', 'evidence', 'action']);
    expect(claims[1]).toMatchObject({
      outcome: 'unknown',
      authorization: undefined,
      outputDigest: { alg: 'blake3' },
    });
    expect(claims[3]).toMatchObject({ decision: 'deny', decisionCode: 'POLICY_DENIED', tool: 'read_file' });
  });

  it('is held against the nonce that its episode has', () => {
    const spawn = fileOf(
      `${JSON.stringify({ episode_id: EPISODE, spawn_time_ns: '1', nonce_prefix: 'demo' })}\n`,
      's.jsonl',
    );
    expect(
      codesOf(read([spawn, fileOf(ASK, 'a.log')], KEYS)).filter((code) => code.startsWith('AP-1')),
    ).toEqual(['AP-1 NONCE_MISMATCH']);
    const right = fileOf(ASK.replace(NONCE, deriveNonce('demo', EPISODE, 1n)), 'a.log');
    expect(codesOf(read([spawn, right], KEYS)).filter((code) => code.startsWith('AP-1'))).toEqual([]);
  });
});

it('knows its own files', () => {
  for (const file of episode().filter(({ name }) => !name.startsWith('cas/')))
    expect([file.name, apm2.recognises(file)]).toEqual([file.name, true]);
  for (const text of ['', 'hello\n', '{"a":1}\n', '[1]', '{"tool":"Read"}\n'])
    expect(apm2.recognises(fileOf(text, hashOf(text)))).toBe(false);
  expect(() => apm2.read([], { aids: { hash: fileOf('', 'x') } })).toThrow(RangeError);
});

describe('an episode in several imports', () => {
  const planOf = (files: readonly HostFile[], into?: KnownLedger): ImportPlan =>
    planImport(apm2, files, { ...KEYS, ...(into === undefined ? {} : { into }) });
  const ledgerOf = ({ events }: ImportPlan): KnownLedger => ({
    ledgerId: undefined,
    sources: new Map(
      events.map(({ sourceId, event }) => [sourceId, `${event.event_id.alg}:${event.event_id.b64}`]),
    ),
    openEnds: new Set(
      events.flatMap(({ sourceId, event }) => (event['outcome'] === 'unknown' ? [sourceId] : [])),
    ),
  });
  const [rows, receipts, chunk, profiles, log] = episode();
  const conflicts = ({ findings }: ImportPlan): string[] =>
    findings.flatMap(({ code }) => (/CONFLICT|LATER/.test(code) ? [code] : []));
  const executions = (...plans: readonly ImportPlan[]): number =>
    plans.flatMap(({ events }) => events).filter(({ kind }) => kind === 'execution').length;

  it('adds receipts and lines to a ledger that has the events, and no call twice', () => {
    const one = planOf([rows, profiles]);
    for (const more of [
      [rows, profiles, receipts, chunk],
      [receipts, chunk],
      [rows, profiles, receipts, log],
      [rows, profiles, log],
    ]) {
      const two = planOf(more, ledgerOf(one));
      expect(conflicts(two)).toEqual([]);
      expect(two.conflicting).toBe(0);
      expect(executions(one, two)).toBe(1);
    }
  });

  it('says what is known later of a ledger that has receipts or lines', () => {
    const all = [rows, profiles, receipts, chunk, log];
    for (const first of [
      [receipts],
      [
        log,
        fileOf(`${Buffer.from(rows.bytes).toString().split('\n').slice(0, 2).join('\n')}\n`, 'begin.jsonl'),
      ],
    ]) {
      const one = planOf(first);
      const two = planOf(all, ledgerOf(one));
      expect(conflicts(two)).toEqual(['OUTCOME_KNOWN_LATER']);
      expect(executions(one, two)).toBe(1);
    }
  });

  it('still says where an event is another', () => {
    const one = planOf([rows, profiles]);
    const [changed] = episode({
      events: (e) => [
        e.attributed,
        e.spawned,
        e.requested,
        e.decided,
        with_(e.executed, { outcome: 'FAILURE' }),
      ],
    });
    expect(conflicts(planOf([changed, profiles], ledgerOf(one)))).toContain('SOURCE_CONFLICT');
  });
});

describe('nonces that nothing confirms', () => {
  const lines = (...events: readonly object[]): HostFile =>
    fileOf(events.map((event) => `${JSON.stringify(event)}\n`).join(''), 'events.jsonl');
  const spawn = { event_type: 'episode_spawned', episode_id: EPISODE, spawn_time_ns: '1700000000000000000' };
  const log = fileOf(`${ASK}${ANSWER}`, 'a.log');
  const nonces = (...files: readonly HostFile[]): string[] =>
    read(files).findings.flatMap(({ code }) => (code.startsWith('NONCE') ? [code] : []));

  it('are not wrong where the prefix is not in the files', () => {
    expect(nonces(lines(spawn), log)).toEqual(['NONCE_NOT_CONFIRMED']);
    expect(nonces(lines({ ...spawn, nonce_prefix: 'demo' }), log)).toEqual([]);
    expect(nonces(lines({ ...spawn, nonce_prefix: 'other' }), log)).toEqual([
      'NONCE_MISMATCH',
      'NONCE_MISMATCH',
    ]);
  });

  it('may be those of an episode that the files do not show the start of', () => {
    const attributed = {
      event_type: 'episode_run_attributed',
      timestamp_ns: '1',
      episode_id: 'ep-002',
      session_id: 'S-2',
      work_id: 'W',
    };
    const other = fileOf(`${ASK}${ANSWER}`.replaceAll(NONCE, 'aa'.repeat(8)), 'b.log');
    expect(nonces(lines({ ...spawn, nonce_prefix: 'demo' }, attributed), log, other)).toEqual([
      'NONCE_NOT_CONFIRMED',
    ]);
    // Guesses among lines of the right nonce are found all the same.
    const guess = fileOf(`${ASK}${ANSWER}${ASK.replace(NONCE, '0'.repeat(16))}`, 'c.log');
    expect(nonces(lines({ ...spawn, nonce_prefix: 'demo' }, attributed), guess)).toEqual(['NONCE_MISMATCH']);
  });
});

it('tells a line that a log ends in from one that is wrong', () => {
  const cut = `${ASK}${ANSWER}${ASK.slice(0, 40)}`;
  expect(codesOf(read(episode({ log: cut })))).toEqual(['INPUT LINE_TORN']);
  expect(codesOf(read(episode({ log: `${ASK}${ANSWER.trimEnd()}` })))).toEqual([]);
});

it('counts outcomes whichever name protobuf gives them', () => {
  const events = (e: ReturnType<typeof drafts>): Draft[] => [
    ...[e.attributed, e.spawned, e.requested, e.decided],
    with_(e.executed, { outcome: 'TOOL_OUTCOME_SUCCESS' }),
  ];
  expect(codesOf(read(episode({ events })))).toEqual([]);
});
