/** docs/spec/verification.md: its lists and tables against the code, and its rules against what verification does. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import {
  CODE_PAGES,
  canonicalText,
  checkDecisions,
  checkPrices,
  parseWitnessPolicy,
  verifyLedger,
  type AnyEvent,
  type Key,
  type Signer,
  type TrustPolicy,
} from '../../src/api/index.js';
import { diagnoseCanonical } from '../../src/base/json/diagnose.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { cosignNote } from '../../src/format/note/note-key.js';
import { bytesSource } from '../bytes-source.js';
import { signingRuleFor } from '../../src/rules/trust/authority.js';
import { action, anchorOf, authorization, execution, grant, int, unsigned } from './grant-kit.js';
import {
  DIGEST,
  attestation,
  bare,
  brief,
  checkpoint,
  codes,
  event,
  genesis,
  keyOf,
  ledger,
  makeSigner,
  note,
  verify,
} from './ledger-kit.js';
import { codeOf, listsOf, readText, tablesOf } from './markdown.js';

const document = readText('docs/spec/verification.md');
const [a, b, c] = [makeSigner(), makeSigner(), makeSigner()];

/** The findings of all numbered lists in order, with the weight that an entry states: one other than its code's. */
const listed = [...document.matchAll(/^\d+\. (`[A-Z].*)$/gm)].flatMap(([, item = '']) => {
  const [head = ''] = item.split(/: | → /);
  return [...head.matchAll(/`([A-Z_0-9]{4,})`(?: \((\w+)\))?/g)].map(([, code = '', weight]) => ({
    code,
    weight,
  }));
});

/** The first list of a section. */
function list(heading: string) {
  return listsOf(document, heading)[0] ?? [];
}

function policy(more: Partial<TrustPolicy> = {}): TrustPolicy {
  return { trust_version: '1', keys: [keyOf(a)], ...more };
}

const keyEvent = event('key', { action: 'revoke', key: keyOf(c) });
const MANAGER = { roles: ['event', 'checkpoint', 'admin'] } as const;
const manager = (more: Partial<Key> = {}): Key => keyOf(a, { roles: [...MANAGER.roles], ...more });

describe('the lists and tables', () => {
  it('of findings have every code of the catalogue, and the one weight that is not in codes.md', () => {
    expect([...new Set(listed.map(({ code }) => code))].sort()).toEqual(Object.keys(CODE_PAGES).sort());
    const weighed = listed.filter(({ weight }) => weight !== undefined);
    expect(weighed).toEqual([{ code: 'KEY_UNKNOWN', weight: 'warning' }]);
  });

  it('of findings are in the order of the findings of the fixtures', () => {
    const { cases } = JSON.parse(readText('fixtures/expected.json')) as {
      cases: {
        ledger: string;
        findings: { code: string; line: number; severity: string; class: string }[];
      }[];
    };
    let compared = 0;
    for (const { ledger, findings } of cases) {
      for (const [i, finding] of findings.entries()) {
        const next = findings[i + 1];
        // Reports sort by class and severity: only findings of one line and weight are in the order of the steps.
        if (next?.line !== finding.line || next.class !== finding.class || next.severity !== finding.severity)
          continue;
        const places = (code: string) => listed.flatMap((each, at) => (each.code === code ? [at] : []));
        const [from, to] = [Math.min(...places(finding.code)), Math.max(...places(next.code))];
        compared += 1;
        expect([ledger, finding.code, next.code, from <= to]).toEqual([
          ledger,
          finding.code,
          next.code,
          true,
        ]);
      }
    }
    expect(compared).toBeGreaterThan(20);
  });

  it('of roles names the roles that sign each type', () => {
    const rows = list('Keys').map(([type = '', roles = '']) => [
      codeOf(type) ?? 'x.other',
      [...roles.matchAll(/`(\w+)`/g)].map(([, role]) => role).sort(),
    ]);
    const types = ['attestation', 'checkpoint', 'genesis', 'key', 'x.other'];
    expect(rows.map(([type]) => type).sort()).toEqual(types);
    for (const [type = '', roles] of rows) {
      const event = { event_type: type as string, principal_id: 'agent:a1' };
      const { anyOf } = signingRuleFor(event, { hasAuthority: true });
      expect(anyOf.map(({ role }) => role).sort()).toEqual(roles);
    }
  });

  it('of verdicts has the exit status of each', async () => {
    const statuses = (tablesOf(document, 'Verdicts')[0] ?? []).map(([verdict = '', , status = '']) => [
      codeOf(verdict),
      Number(status),
    ]);
    const given = grant({});
    const reports = [
      await verify(ledger({ event: note(1) })),
      await verify(unsigned(given, execution(given, 11))),
      await verify(Buffer.alloc(0)),
      await verify(unsigned()),
    ];
    expect(reports.map(({ verdict, exit_status: status }) => [verdict, status])).toEqual(statuses);
  });

  it('of codes that were not checked is complete and in order', async () => {
    const rows = list('Not checked').map(([code = '']) => codeOf(code));
    const first = { event: genesis([manager()]), signers: [a] };
    const sealed = ledger(
      first,
      { event: checkpoint([a, b]), signers: [a] },
      { event: note(1), signers: [a] },
    );
    const revoked = ledger(
      first,
      { event: checkpoint([a]), signers: [a] },
      { event: event('key', { action: 'revoke', key: manager() }), signers: [a] },
    );
    const successor = genesis([manager()], {
      continues: { ledger_id: DIGEST, tree_size: 1, root: DIGEST },
    });
    const issued = event('authorization', {
      intents: { intent_digest: DIGEST },
      policy_id: 'example/1',
      policy_digest: DIGEST,
      decision: 'allow',
      decision_code: 'ALLOW',
      authorization: {
        kind: 'grant',
        bounds: { allowed_tools: ['*'], meter_caps: [{ unit: 'usd', amount: { t: 'int', v: '1' } }] },
      },
    });
    const reports = [
      await verify(ledger({ event: successor, signers: [a] }, { event: issued, signers: [a] })),
      await verify(bare(note(1))),
      await verify(unsigned(note(1))),
      await verify(ledger({ event: genesis([keyOf(a)]), signers: [a] }, { event: note(1), signers: [a, b] })),
      await verify(sealed, { checkpoints: [anchorOf(sealed, b)] }),
      await verify(revoked),
      await verify(sealed, {
        witnessPolicy: parseWitnessPolicy(Buffer.from('log l+00000000+CQ==\nquorum none\n')),
      }),
      await verifyLedger({
        ...bytesSource(unsigned(note(1)), 'growing'),
        findGrowth: () => Promise.resolve({ file: 'growing', byteOffset: 1 }),
      }),
    ];
    const taken = grant({}, undefined, { source: { system: 'example', id: '1' } });
    reports.push(await verify(unsigned(taken, execution(taken, 1))));
    const slice = { ledger_id: DIGEST, event_id: DIGEST };
    const { authorization, ...spending } = grant({}) as unknown as { readonly authorization: object };
    const spent = event('authorization', { ...spending, authorization: { ...authorization, slice } });
    reports.push(await verify(unsigned(spent)));
    const whole = unsigned(note(1));
    const segment = {
      file: 'part',
      firstSeq: undefined,
      chunks: bytesSource(whole, 'part').segments as never,
    };
    reports.push(
      await verifyLedger({
        ...bytesSource(whole, 'part'),
        given: Readable.from([{ segment, bytes: whole, verdicts: new Uint8Array() }]),
      }),
    );
    const given = grant({}, undefined);
    const denied = grant({}, undefined, { decision: 'deny' });
    reports.push(
      await verify(unsigned(given, denied, execution(given, 1, { model_id: 'm', provider: 'p' })), {
        checks: [checkDecisions(), checkPrices([])],
      }),
    );
    const lists = reports.map(({ not_checked: list }) => list.map(({ code }) => code));
    expect(new Set(lists.flat())).toEqual(new Set(rows));
    // Each in the order of the document.
    for (const list of lists) expect(list).toEqual(rows.filter((code) => list.includes(code ?? '')));
  });
});

describe('bytes', () => {
  it.each([
    ['1e+21', undefined],
    ['5e-324', undefined],
    ['1e21', 'NUMBER_NOT_CANONICAL'],
    ['9007199254740991', undefined],
    ['9007199254740992', 'NUMBER_NOT_CANONICAL'],
    ['100000000000000000000', 'NUMBER_NOT_CANONICAL'],
    ['-0', 'NUMBER_NOT_CANONICAL'],
    ['{"😀":1,"～":1}', undefined],
    ['{"～":1,"😀":1}', 'NOT_CANONICAL'],
    ['"\\u007f"', 'NOT_CANONICAL'],
    ['[ 1.0,{"a":1,"a":1}]', 'DUPLICATE_KEY'],
    ['[ 1.0]', 'NUMBER_NOT_CANONICAL'],
  ])('%s is canonical or not, as the document says', (text, code) => {
    expect(diagnoseCanonical(Buffer.from(text))?.code).toBe(code);
  });

  it('an event in a record has room for 63 levels', async () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
    expect(await codes(unsigned(note(1, { v: nested(62) })))).toEqual([]);
    expect(await codes(unsigned(note(1, { v: nested(63) })))).toEqual(['NESTING_TOO_DEEP in 2']);
    expect(await codes(bare(note(1, { v: nested(63) })))).toEqual([]);
  });
});

describe('lines and chain', () => {
  const lines = unsigned(note(1), note(2)).toString().split('\n');

  it('a blank line is not counted', async () => {
    const report = await verify(Buffer.from(['', lines[0], lines[1], '', lines[2], ''].join('\n')));
    expect(report.findings.map(brief)).toEqual(['LINE_BLANK in 1', 'LINE_BLANK in 4']);
    expect(report.ledger.records).toBe(3);
  });

  it('a torn line is not counted', async () => {
    const report = await verify(Buffer.from(lines.slice(0, 3).join('\n')));
    expect(report.findings.map(brief)).toEqual(['LINE_TORN in 3']);
    expect(report.ledger.records).toBe(2);
    expect(report.ledger.bytes).toBe(Buffer.byteLength(lines.slice(0, 3).join('\n')));
  });

  it('a line that is too long is counted and chained', async () => {
    const long = `"${'a'.repeat(65_534)}"`;
    const report = await verify(ledger({ event: genesis() }, long, { event: note(1) }));
    expect(report.findings.map(brief)).toEqual(['LINE_TOO_LONG in 2']);
    expect(report.counts.by_verdict).toMatchObject({ ok: 2, invalid: 1 });
    expect(await codes(ledger({ event: genesis() }, long.slice(1), { event: note(1) }))).toEqual([
      'NOT_JSON in 2',
    ]);
  });

  it('an unreadable first line is no missing genesis, and a genesis after it is misplaced', async () => {
    expect(await codes(ledger('{', { event: note(1) }))).toEqual(['NOT_JSON in 1']);
    expect(await codes(ledger('{', { event: genesis() }))).toEqual([
      'NOT_JSON in 1',
      'GENESIS_MISPLACED in 2',
    ]);
  });

  it.each([
    [[0, 1, 7, 3, 4], [3]],
    [[0, 1, 7, 8, 9], [3]],
    [
      [0, 1, 5, 9, 4],
      [3, 4],
    ],
    [[0, 1, 2, 2, 3], [4]],
  ])('seq %j has gaps at lines %j', async (seqs, gaps) => {
    const items = seqs.map((seq, i) => ({ event: i === 0 ? genesis() : note(i), seq }));
    expect(await codes(ledger(...items))).toEqual(gaps.map((line) => `SEQ_GAP in ${line}`));
  });

  it('one changed line gives one PREV_MISMATCH, at the record after it', async () => {
    const changed = Buffer.from(lines.join('\n').replace('"text":"1"', '"text":"7"'));
    expect(await codes(changed)).toEqual([
      'PAYLOAD_DIGEST_MISMATCH in 2',
      'EVENT_ID_MISMATCH in 2',
      'PREV_MISMATCH in 3',
    ]);
  });

  it('ids count as claimed', async () => {
    const real = note(1);
    const claims = { ...note(2), event_id: real.event_id };
    expect(await codes(unsigned(claims, real))).toEqual(['EVENT_ID_MISMATCH in 2', 'EVENT_DUPLICATE in 3']);
  });

  it('the layout is that of the first object', async () => {
    const mixed = Buffer.concat([bare(note(1)), unsigned()]);
    expect(new Set(await codes(mixed))).toEqual(new Set(['SCHEMA in 2']));
  });

  it('a segment begins with the seq of its name', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'northroot-docs-'));
    try {
      for (const [name, last] of [
        ['good', '00000000000000000002.jsonl'],
        ['bad', '00000000000000000003.jsonl'],
      ] as const) {
        mkdirSync(join(folder, name));
        writeFileSync(join(folder, name, '00000000000000000000.jsonl'), `${lines[0]}\n${lines[1]}\n`);
        writeFileSync(join(folder, name, last), `${lines[2]}\n`);
      }
      expect((await verifyLedger(join(folder, 'good'))).findings).toEqual([]);
      expect((await verifyLedger(join(folder, 'bad'))).findings.map(brief)).toEqual(['SEQ_GAP in 1']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('signatures and trust', () => {
  it('ES256 keys verify', async () => {
    const signer = makeSigner('p256');
    const report = await verify(ledger({ event: genesis([keyOf(signer)]), signers: [signer] }));
    expect([report.verdict, report.trust.signatures.valid]).toEqual(['ok', 1]);
  });

  it('in a signed record other signatures are warnings, an invalid one never', async () => {
    const keys = [keyOf(a), keyOf(b, { principals: ['agent:b*'] })];
    const first = { event: genesis(keys), signers: [a] };
    expect(await codes(ledger(first, { event: note(1), signers: [a, b, c] }))).toEqual([
      'KEY_NOT_FOR_PRINCIPAL warning in 2',
      'KEY_UNKNOWN warning in 2',
    ]);
    expect(await codes(ledger(first, { event: note(1), signers: [b] }))).toEqual([
      'KEY_NOT_FOR_PRINCIPAL in 2',
    ]);
    const wrong = [{ keyid: b.publicKey.keyid, sig: 'AAAA' }];
    expect(await codes(ledger(first, { event: note(1), signers: [a], signatures: wrong }))).toEqual([
      'SIGNATURE_INVALID in 2',
    ]);
  });

  it('an unknown key is an error where signatures are required, and folds', async () => {
    const optional = { signing: { events: 'optional', checkpoints: 'optional' } };
    const items = [1, 2, 3].map((i) => ({ event: note(i), signers: [c] }));
    const required = await verify(ledger({ event: genesis([keyOf(a)]), signers: [a] }, ...items));
    expect(required.findings.map(brief)).toEqual(['KEY_UNKNOWN in 2']);
    expect([required.findings[0]?.folded, required.findings_total]).toEqual([2, 1]);
    expect(required.counts.by_verdict.invalid).toBe(3);
    expect(required.trust.signatures).toEqual({ valid: 1, invalid: 0, unverified: 3, missing: 0 });
    const report = await verify(ledger({ event: genesis([keyOf(a)], optional), signers: [a] }, ...items));
    expect(report.findings.map(brief)).toEqual(['KEY_UNKNOWN warning in 2']);
    expect(report.verdict).toBe('ok');
  });

  it('a repeated signature counts once', async () => {
    const { trust } = await verify(ledger({ event: genesis([keyOf(a)]), signers: [a, a] }));
    expect([trust.signatures.valid, trust.signers[0]?.records]).toEqual([1, 1]);
  });

  it('key events must be signed by an admin, also where signatures are optional', async () => {
    const optional = { signing: { events: 'optional', checkpoints: 'optional' } };
    const first = { event: genesis([keyOf(a), keyOf(b, { roles: ['admin'] })], optional) };
    expect(await codes(ledger(first, { event: keyEvent }))).toEqual(['SIGNATURE_MISSING in 2']);
    expect(await codes(ledger(first, { event: keyEvent, signers: [a] }))).toEqual(['KEY_NOT_FOR_ROLE in 2']);
    // The key that it revokes is not known.
    expect(await codes(ledger(first, { event: keyEvent, signers: [b] }))).toEqual([
      'KEY_UNKNOWN warning in 2',
    ]);
  });

  it('keys are judged by the later of the event and the clock', async () => {
    const limited = keyOf(b, { valid_from: '2026-01-10T00:00:00Z', valid_until: '2026-02-01T00:00:00Z' });
    const first = { event: genesis([keyOf(a), limited]), signers: [a] };
    const at = (occurredAt: string, i: number) => ({
      event: note(i, { occurred_at: occurredAt }),
      signers: [b],
    });
    const early = at('2026-01-09T23:59:59.999999999Z', 1);
    const inTime = at('2026-01-10T00:00:00.0Z', 2);
    const late = at('2026-02-01T00:00:00Z', 3);
    expect(await codes(ledger(first, early, inTime, late))).toEqual([
      'KEY_NOT_VALID_HERE in 2',
      'KEY_NOT_VALID_HERE in 4',
    ]);
    const limitedToo = keyOf(a, { roles: ['event', 'checkpoint'] });
    const begun = { event: genesis([limitedToo, limited]), signers: [a] };
    const sealing = (by: readonly Signer[], signers: readonly Signer[]) => ({
      event: checkpoint(by, { occurred_at: '2026-03-01T00:00:00Z' }),
      signers,
    });
    const dated = ['KEY_NOT_VALID_HERE in 3', 'TAIL_UNSEALED info in 2', 'TIME_REGRESSION info in 3'];
    expect((await codes(ledger(begun, sealing([a], [a]), inTime))).sort()).toEqual(dated);
    // One that does not seal, or whose record no such key signed, does not move the clock.
    expect(await codes(ledger(begun, sealing([makeSigner()], [a]), inTime))).not.toContain(dated[0]);
    expect(await codes(ledger(begun, sealing([a], [b]), inTime))).not.toContain(dated[0]);
  });

  it("a policy's requirement goes before genesis's, both ways", async () => {
    const signed = ledger({ event: genesis([keyOf(a)]), signers: [a] }, { event: note(1) });
    const open = unsigned(note(1));
    const requiring = (how: 'required' | 'optional') => policy({ require: { event_signatures: how } });
    expect(await codes(signed, { trust: policy() })).toEqual(['SIGNATURE_MISSING in 2']);
    expect(await codes(signed, { trust: requiring('optional') })).toEqual([]);
    expect(await codes(open, { trust: policy() })).toEqual([]);
    expect(await codes(open, { trust: requiring('required') })).toEqual([
      'SIGNATURE_MISSING in 1',
      'SIGNATURE_MISSING in 2',
    ]);
  });

  it('bare events do not meet a policy that requires signatures or lists origins', async () => {
    const bytes = bare(note(1), note(2));
    expect(await codes(bytes, { trust: policy() })).toEqual([]);
    const required = await verify(bytes, { trust: policy({ require: { event_signatures: 'required' } }) });
    expect(required.findings.map(brief)).toEqual(['SIGNATURE_MISSING in 1']);
    expect([required.findings[0]?.folded, required.counts.by_verdict.invalid]).toEqual([1, 2]);
    expect(await codes(bytes, { trust: policy({ origins: ['example.com/test'] }) })).toEqual([
      'ORIGIN_MISMATCH in 1',
    ]);
  });
});

describe('linkage and bounds', () => {
  const given = grant({});

  it('equal to the cap is within it', async () => {
    expect(await codes(unsigned(given, execution(given, 10)))).toEqual([]);
    expect(await codes(unsigned(given, execution(given, 11)))).toEqual(['METER_CAP_EXCEEDED in 3']);
  });

  it('counts use above a cap', async () => {
    const report = await verify(
      unsigned(given, execution(given, 11), execution(given, 1, { provider: 'p' })),
    );
    expect(report.findings.map(brief)).toEqual(['METER_CAP_EXCEEDED in 3', 'METER_CAP_EXCEEDED in 4']);
    expect(report.grants[0]).toMatchObject({ executions: 2, meters: [{ used: int(12), left: int(-2) }] });
  });

  it('an execution within its reservation is not judged by other reservations', async () => {
    const [first, second] = [action(given, 6), action(given, 5, { policy_id: 'q' })];
    expect(await codes(unsigned(given, first, second, execution(first, 6)))).toEqual([
      'RESERVATION_OVER_CAP in 4',
    ]);
    expect(await codes(unsigned(given, first, second, execution(first, 7)))).toEqual([
      'RESERVATION_OVER_CAP in 4',
      'RESERVATION_EXCEEDED in 5',
      'METER_CAP_EXCEEDED in 5',
    ]);
  });

  it('an action is spent once; a second execution counts under the grant', async () => {
    const once = action(given, 1);
    const again = execution(once, 1, { provider: 'p' });
    const report = await verify(unsigned(given, once, execution(once, 1), again));
    expect(report.findings.map(brief)).toEqual(['AUTHORIZATION_REUSED in 5']);
    expect(report.grants[0]?.meters[0]?.used).toEqual(int(2));
    expect(report.open_authorizations).toEqual([]);
  });

  it('a release gives its reservation back and is no execution', async () => {
    const late = grant({ expires_at: '2026-01-03T00:00:00Z' });
    const reserved = action(late, 4);
    const release = { outcome: 'failure', error_code: 'ABANDONED', occurred_at: '2026-01-09T00:00:00Z' };
    const report = await verify(unsigned(late, reserved, execution(reserved, 0, release)));
    expect(report.findings).toEqual([]);
    expect(report.grants[0]).toMatchObject({ executions: 0, meters: [{ reserved: int(0), left: int(10) }] });
    const failed = execution(reserved, 0, { ...release, error_code: 'OTHER' });
    expect(await codes(unsigned(late, reserved, failed))).toEqual(['GRANT_EXPIRED in 4']);
  });

  it('a blocked attempt under a deny is denied, but must match', async () => {
    const attempt = { kind: 'action', action: { tool_name: 'fs.read', tool_params_digest: DIGEST } };
    const denied = authorization(attempt, { decision: 'deny' });
    const failure = { outcome: 'failure', error_code: 'DENIED' };
    const blocked = await verify(unsigned(denied, execution(denied, 0, failure)));
    expect([blocked.findings, blocked.verdict, blocked.counts.by_verdict.denied]).toEqual([[], 'ok', 2]);
    expect(await codes(unsigned(denied, execution(denied, 1, failure)))).toEqual([
      'EXECUTION_UNDER_DENY in 3',
    ]);
    const other = { ...failure, principal_id: 'agent:a2' };
    expect(await codes(unsigned(denied, execution(denied, 0, other)))).toEqual(['PRINCIPAL_MISMATCH in 3']);
  });

  it('distinguishes a later authorization from an absent one', async () => {
    const report = await verify(unsigned(execution(given, 1), given, note(1)));
    expect(report.findings.map(brief)).toEqual(['AUTH_AFTER_EXECUTION in 2']);
    expect(report.findings[0]?.related?.[0]?.line).toBe(3);
    expect(report.grants[0]?.executions).toBe(0);
    expect(await codes(unsigned(execution(given, 1)))).toEqual(['AUTH_NOT_FOUND in 2']);
    const thing = note(1);
    expect(await codes(unsigned(execution(thing, 1), thing))).toEqual(['AUTH_NOT_AN_AUTHORIZATION in 2']);
    expect(await codes(unsigned(thing, execution(thing, 1)))).toEqual(['AUTH_NOT_AN_AUTHORIZATION in 3']);
  });

  it('tools of a delegated grant are each covered by one pattern', async () => {
    const parent = grant({ allowed_tools: ['fs.a*', 'fs.b*'] });
    const child = (pattern: string) => grant({ allowed_tools: [pattern] }, parent, { policy_id: 'child' });
    expect(await codes(unsigned(parent, child('fs.ab*')))).toEqual([]);
    expect(await codes(unsigned(parent, child('fs.*')))).toEqual(['DELEGATION_EXCEEDED in 3']);
  });

  it('only digest_only forbids an output_ref', async () => {
    for (const [mode, expected] of [
      ['digest_only', ['OUTPUT_MODE_EXCEEDED in 3']],
      ['allow_contentref', []],
      ['allow_inline', []],
    ] as const) {
      const limited = grant({ output_mode: mode });
      const ran = execution(limited, 1, { output_ref: { digest: DIGEST } });
      expect(await codes(unsigned(limited, ran))).toEqual(expected);
    }
  });
});

describe('findings and report', () => {
  it('seq and event_id are null if the line has no usable ones', async () => {
    const { findings } = await verify(ledger('{', canonicalText({ seq: -1 })));
    expect(findings.length).toBeGreaterThan(2);
    for (const finding of findings) expect([finding.seq, finding.event_id]).toEqual([null, null]);
  });

  it('types beyond 1,000 and names beyond 128 characters count under *', async () => {
    const types = Array.from({ length: 1_002 }, (_, i) => event(`t.${i}`));
    const { counts } = await verify(unsigned(...types));
    expect([Object.keys(counts.by_type).length, counts.by_type['*']]).toEqual([1_001, 3]);
    const long = { ...note(1), event_type: 'x'.repeat(129) };
    expect((await verify(unsigned(long))).counts.by_type).toEqual({ '*': 1, genesis: 1 });
  });

  it('expected and actual are cut', async () => {
    const { findings } = await verify(unsigned({ ...note(1), event_type: 'x'.repeat(60_000) }));
    expect(findings.length).toBeGreaterThan(0);
    for (const { actual = '' } of findings) expect(actual.length).toBeLessThanOrEqual(1_024);
  });

  it('a ledger of blank and torn lines is invalid, an empty one undecided', async () => {
    expect((await verify(Buffer.from('\n'))).verdict).toBe('invalid');
    expect((await verify(Buffer.from('{'))).verdict).toBe('invalid');
    expect((await verify(Buffer.alloc(0))).verdict).toBe('undecided');
  });
});

describe('checkpoints and key events', () => {
  const first = { event: genesis([manager()]), signers: [a] };
  const by = (signer: Signer, each: AnyEvent) => ({ event: each, signers: [signer] });
  const change = (action: 'add' | 'revoke', key: Key) => event('key', { action, key });
  const seal = (...signers: Signer[]) => ({ event: checkpoint(signers), signers: signers.slice(0, 1) });

  it('a checkpoint covers the records before it', async () => {
    const wrong = (members: object) =>
      codes(ledger(first, { event: checkpoint([a], members), signers: [a] }));
    expect(await wrong({})).toEqual([]);
    expect(await wrong({ chain_tip_event_id: DIGEST })).toEqual(['CHECKPOINT_ROOT_MISMATCH in 2']);
    expect(await wrong({ root: DIGEST })).toEqual([
      'CHECKPOINT_ROOT_MISMATCH in 2',
      'CHECKPOINT_ROOT_MISMATCH in 2',
    ]);
    expect(await wrong({ tree_size: 2, root: DIGEST })).toEqual([
      'CHECKPOINT_SIZE_MISMATCH in 2',
      'CHECKPOINT_SIZE_MISMATCH in 2',
      'CHECKPOINT_ROOT_MISMATCH in 2',
    ]);
    expect(await wrong({ note: 'a note' })).toEqual(['CHECKPOINT_NOTE_MALFORMED in 2']);
    const other = { event: checkpoint([a], {}, 'example.com/other'), signers: [a] };
    // The signature of the other log's name is by no key of this one.
    expect(await codes(ledger(first, other))).toEqual(['ORIGIN_MISMATCH in 2']);
  });

  it('a note without a known signer seals nothing, and is an error if checkpoints are required', async () => {
    const lines = [{ event: checkpoint([b]), signers: [a] }];
    const report = await verify(ledger(first, ...lines));
    expect(report.findings.map(brief)).toEqual(['KEY_UNKNOWN warning in 2']);
    expect(report.checkpoints).toEqual({ count: 1, last_tree_size: null, unsealed: 2 });
    const promised = genesis([manager()], { signing: { events: 'required', checkpoints: 'required' } });
    expect(await codes(ledger(by(a, promised)))).toEqual([]);
    expect(await codes(ledger(by(a, promised), by(a, note(1))))).toEqual(['CHECKPOINT_MISSING in 3']);
    expect(await codes(ledger(by(a, promised), ...lines))).toEqual([
      'KEY_UNKNOWN in 2',
      'CHECKPOINT_MISSING in 3',
    ]);
  });

  it('the tail follows the record of the checkpoint', async () => {
    const report = await verify(ledger(first, seal(a), by(a, note(1)), by(a, note(2))));
    expect(report.findings.map(brief)).toEqual(['TAIL_UNSEALED info in 2']);
    expect(report.checkpoints).toMatchObject({ count: 1, last_tree_size: 1, unsealed: 2 });
    const most = (n: number) => ({
      trust: policy({ keys: [manager()], require: { max_unsealed_records: n } }),
    });
    const bytes = ledger(first, seal(a), by(a, note(1)), by(a, note(2)));
    expect(await codes(bytes, most(2))).toEqual(['TAIL_UNSEALED info in 2']);
    expect(await codes(bytes, most(1))).toEqual(['TAIL_UNSEALED in 2']);
  });

  it('a key counts after its event, until its revocation', async () => {
    const add = by(a, change('add', keyOf(b)));
    const revoke = by(a, change('revoke', keyOf(b)));
    expect(await codes(ledger(first, by(b, note(1)), add, by(b, note(2))))).toEqual(['KEY_UNKNOWN in 2']);
    const whole = [first, add, by(b, note(1)), seal(a), revoke];
    expect(await codes(ledger(...whole))).toEqual(['TAIL_UNSEALED info in 4']);
    expect(await codes(ledger(...whole, by(b, note(2))))).toEqual([
      'KEY_NOT_VALID_HERE in 6',
      'TAIL_UNSEALED info in 4',
    ]);
    const again = by(a, change('add', keyOf(b, { roles: ['admin'] })));
    expect(await codes(ledger(...whole, again))).toEqual(['SCHEMA in 6', 'TAIL_UNSEALED info in 4']);
  });

  it('records of a revoked key need a checkpoint, which may come later', async () => {
    const add = by(a, change('add', keyOf(b)));
    const revoke = by(a, change('revoke', keyOf(b)));
    const bare = [first, add, by(b, note(1)), by(b, note(2)), revoke];
    const report = await verify(ledger(...bare));
    expect(report.findings.map((each) => [brief(each), each.folded])).toEqual([
      ['KEY_NOT_VALID_HERE in 3', 1],
    ]);
    expect(report.counts.by_verdict).toEqual({ ok: 3, denied: 0, violation: 0, invalid: 2 });
    expect(report.trust.revoked).toEqual([
      { keyid: b.publicKey.keyid, revoked_at_seq: 4, records: 2, rests_on: 'nothing' },
    ]);
    const mended = await verify(ledger(...bare, seal(a)));
    expect(mended.findings).toEqual([]);
    expect(mended.trust.revoked?.[0]?.rests_on).toBe('checkpoints_by_others');
  });

  it('under a policy the pinned admins decide, and pinned keys stay', async () => {
    const add = by(a, change('add', keyOf(b)));
    const bytes = ledger(first, add, by(b, note(1)));
    expect(await codes(bytes, { trust: policy({ keys: [manager()] }) })).toEqual([]);
    expect(await codes(bytes, { trust: policy({ keys: [keyOf(a)] }) })).toEqual([
      'KEY_NOT_FOR_ROLE in 2',
      'KEY_UNKNOWN in 3',
    ]);
    const pinned = policy({ keys: [manager(), keyOf(b, { principals: ['human:*'] })] });
    expect(await codes(bytes, { trust: pinned })).toEqual(['KEY_NOT_FOR_PRINCIPAL in 3']);
  });

  it('witnesses count when the policy pins them, once each', async () => {
    const w = { roles: ['witness'] as Key['roles'], name: 'w.example' };
    const cosigned = (...by: Signer[]) => ({
      event: attestation((text) =>
        by.map((signer, n) => cosignNote(text, 'w.example', signer, 1_700_000_000 + n)),
      ),
      signers: [a],
    });
    const need = (n: number, ...keys: Key[]) => ({
      trust: policy({ keys: [manager(), ...keys], require: { witness_threshold: n } }),
    });
    const one = ledger(first, seal(a), cosigned(b, b));
    const tail = 'TAIL_UNSEALED info in 2';
    expect(await codes(one, need(1, keyOf(b, w)))).toEqual([tail]);
    expect(await codes(one, need(2, keyOf(b, w), keyOf(c, w)))).toEqual(['WITNESS_QUORUM in 2', tail]);
    const tight = policy({
      keys: [manager(), keyOf(b, w)],
      require: { witness_threshold: 1, max_unsealed_records: 0 },
    });
    expect(await codes(one, { trust: tight })).toEqual([tail]);
    expect(await codes(ledger(first, seal(a), cosigned(b), by(a, note(1))), { trust: tight })).toEqual([
      'TAIL_UNSEALED in 2',
    ]);
    const added = ledger(first, by(a, change('add', keyOf(c, w))), seal(a), cosigned(b, c));
    expect(await codes(added, need(1, keyOf(b, w)))).toEqual(['TAIL_UNSEALED info in 3']);
    const own = ledger(first, by(a, change('add', keyOf(c, w))), seal(a), cosigned(c));
    expect(await codes(own, need(1, keyOf(b, w)))).toEqual([
      'WITNESS_QUORUM in 3',
      'TAIL_UNSEALED info in 3',
    ]);
    // A later checkpoint without them leaves the earlier one standing.
    expect(await codes(ledger(first, seal(a), cosigned(b), seal(a)), need(1, keyOf(b, w)))).toEqual([
      'WITNESS_QUORUM warning in 4',
    ]);
    const vkey = formatPublicKeyAs(b.publicKey, 'cosigner', 'w.example');
    const quorum = parseWitnessPolicy(Buffer.from(`witness W ${vkey}\nquorum W\n`));
    expect(await codes(one, { witnessPolicy: quorum })).toEqual([tail]);
    expect(await codes(ledger(first, seal(a)), { witnessPolicy: quorum })).toEqual(['WITNESS_QUORUM in 2']);
    expect(await codes(ledger(first), { witnessPolicy: quorum })).toEqual(['CHECKPOINT_MISSING in 2']);
  });

  it('bounds the age of checkpoints, in records and in time', async () => {
    const need = (require: TrustPolicy['require']) =>
      policy({ keys: [manager()], ...(require && { require }) });
    const often = { trust: need({ checkpoint_max_records: 2 }) };
    const lines = [first, by(a, note(1)), seal(a), by(a, note(2)), by(a, note(3))];
    const tail = 'TAIL_UNSEALED info in 3';
    expect(await codes(ledger(...lines), often)).toEqual([tail]);
    const overdue = ledger(...lines, by(a, note(4)), by(a, note(5)), seal(a));
    expect(await codes(overdue, often)).toEqual(['CHECKPOINT_MISSING in 6']);
    const trust = need({ checkpoint_max_age_seconds: 60 });
    const bytes = ledger(first, seal(a));
    expect(await codes(bytes, { trust, now: '2026-01-02T00:01:00Z' })).toEqual([]);
    expect(await codes(bytes, { trust, now: '2026-01-02T00:01:00.000000001Z' })).toEqual([
      'CHECKPOINT_MISSING in 2',
    ]);
    expect(await codes(bytes, { trust, now: '2026-01-01T23:58:59Z' })).toEqual(['CHECKPOINT_MISSING in 2']);
  });

  it('held checkpoints find cut and changed ledgers', async () => {
    const bytes = ledger(first, by(a, note(1)), by(a, note(2)));
    const checkpoints = [anchorOf(bytes, a)];
    const lines = bytes.toString().split('\n');
    expect(await codes(bytes, { checkpoints })).toEqual([]);
    expect(await codes(ledger(...lines.slice(0, 3), by(a, note(3))), { checkpoints })).toEqual([
      'TAIL_UNSEALED info in 5',
    ]);
    expect(await codes(Buffer.from(`${lines.slice(0, 2).join('\n')}\n`), { checkpoints })).toEqual([
      'TRUNCATED in 3',
    ]);
    expect(await codes(ledger(first, by(a, note(1)), by(a, note(3))), { checkpoints })).toEqual([
      'FORKED in 4',
    ]);
    const elsewhere = ledger(by(a, genesis([manager()], { origin: 'example.com/other' })));
    expect(await codes(elsewhere, { checkpoints })).toEqual(['ORIGIN_MISMATCH in 1']);
    const forged = {
      name: 'n',
      note: Buffer.from(anchorOf(bytes, a).note.toString().replace('\n3\n', '\n2\n')),
    };
    expect(await codes(bytes, { checkpoints: [forged] })).toEqual([
      'CHECKPOINT_SIGNATURE_INVALID in 1',
      'FORKED in 4',
    ]);
  });
});
