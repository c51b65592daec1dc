/** What the recorded runs give. */

import { describe, expect, it } from 'vitest';
import { accountFor, verdictOf } from '../../../src/hosts/shared/account.js';
import { hasRecordings, recordedFile, recordedText } from '../recorded.js';
import {
  BUNDLE,
  countsOf,
  DOWN,
  fileOf,
  HTTP,
  LANGGRAPH,
  ledgerCodes,
  LIVE,
  OPENCLAW,
  PACK,
  read,
  SERVER,
  verifyClaims,
} from './kit.js';

interface Golden {
  readonly items: readonly [
    items: number,
    mapped: number,
    evidence: number,
    repeated: number,
    dropped: number,
  ];
  readonly findings: Readonly<Record<string, number>>;
  readonly types: Readonly<Record<string, number>>;
  readonly denied: number;
  readonly open: number;
}

const GOLDEN: readonly [title: string, files: readonly string[], golden: Golden][] = [
  [
    'the log of the server',
    [SERVER],
    {
      items: [17, 7, 10, 0, 0],
      findings: { 'CGF-11 SERVER_FORM': 1, 'CGF-4 OUTCOME_MISSING': 1 },
      types: {
        authorization: 4,
        execution: 2,
        'x.cgf.action_blocked': 2,
        'x.cgf.adapter_registered': 4,
        'x.cgf.digests': 4,
        'x.cgf.proposal_received': 4,
      },
      denied: 2,
      open: 0,
    },
  ],
  [
    'the log of the OpenClaw adapter',
    [OPENCLAW],
    {
      items: [8, 3, 5, 0, 0],
      findings: { 'CGF-4 OUTCOME_MISSING': 1 },
      types: {
        authorization: 2,
        execution: 1,
        'x.cgf.action_blocked': 1,
        'x.cgf.adapter_registered': 2,
        'x.cgf.digests': 2,
        'x.cgf.proposal_received': 2,
      },
      denied: 1,
      open: 0,
    },
  ],
  [
    'the log of the LangGraph adapter',
    [LANGGRAPH],
    {
      items: [9, 4, 5, 0, 0],
      findings: {},
      types: {
        authorization: 2,
        execution: 1,
        'x.cgf.action_blocked': 1,
        'x.cgf.adapter_registered': 2,
        'x.cgf.digests': 2,
        'x.cgf.proposal_received': 2,
      },
      denied: 1,
      open: 0,
    },
  ],
  [
    'the three logs of one run',
    [SERVER, OPENCLAW, LANGGRAPH],
    {
      items: [34, 7, 10, 17, 0],
      findings: { 'CGF-11 SERVER_FORM': 1, 'CGF-4 OUTCOME_MISSING': 1 },
      types: {
        authorization: 4,
        execution: 2,
        'x.cgf.action_blocked': 2,
        'x.cgf.adapter_registered': 4,
        'x.cgf.digests': 4,
        'x.cgf.proposal_received': 4,
      },
      denied: 2,
      open: 0,
    },
  ],
  [
    'a live run',
    [LIVE],
    {
      items: [27, 16, 11, 0, 0],
      findings: { 'CGF-4 OUTCOME_MISSING': 3, 'CGF-8 AUDIT_NOT_SHOWN': 3 },
      types: {
        authorization: 9,
        execution: 5,
        'x.cgf.action_blocked': 1,
        'x.cgf.adapter_registered': 1,
        'x.cgf.decision_made': 2,
        'x.cgf.digests': 9,
        'x.cgf.proposal_received': 9,
      },
      denied: 1,
      open: 3,
    },
  ],
  [
    'a run while nobody decides',
    [DOWN],
    {
      items: [9, 3, 6, 0, 0],
      findings: { 'CGF-4 PROPOSAL_OPEN': 2 },
      types: { authorization: 3, 'x.cgf.adapter_registered': 1, 'x.cgf.proposal_received': 5 },
      denied: 3,
      open: 0,
    },
  ],
  [
    'recorded requests',
    [HTTP],
    {
      items: [25, 21, 4, 0, 0],
      findings: {
        'CGF-11 SERVER_FORM': 1,
        'CGF-4 ACTION_MISSING': 1,
        'CGF-4 OUTCOME_MISSING': 3,
        'CGF-8 AUDIT_NOT_SHOWN': 3,
      },
      types: {
        authorization: 13,
        execution: 8,
        'x.cgf.action_blocked': 1,
        'x.cgf.adapter_registered': 3,
        'x.cgf.digests': 13,
      },
      denied: 2,
      open: 3,
    },
  ],
  [
    'requests and logs of one run',
    [LIVE, DOWN, HTTP],
    {
      items: [61, 25, 9, 27, 0],
      findings: {
        'CGF-11 SERVER_FORM': 1,
        'CGF-4 OUTCOME_MISSING': 4,
        'CGF-4 PROPOSAL_OPEN': 2,
        'CGF-8 AUDIT_NOT_SHOWN': 3,
      },
      types: {
        authorization: 16,
        execution: 9,
        'x.cgf.action_blocked': 1,
        'x.cgf.adapter_registered': 3,
        'x.cgf.digests': 13,
        'x.cgf.proposal_received': 5,
      },
      denied: 5,
      open: 2,
    },
  ],
  [
    'a replay pack',
    [PACK],
    {
      items: [6, 3, 0, 3, 0],
      findings: {},
      types: { authorization: 1, execution: 1 },
      denied: 0,
      open: 0,
    },
  ],
];

describe.skipIf(!hasRecordings)('recorded runs of CGF', () => {
  it.each(GOLDEN)('%s', async (_, files, golden) => {
    const reading = read(files);
    const { items, mapped, evidence, repeated, dropped } = accountFor(reading.items).total;
    expect([items, mapped, evidence, repeated, dropped]).toEqual(golden.items);
    expect(countsOf(reading)).toEqual(golden.findings);
    expect(verdictOf(reading)).toBe('ok');
    const report = await verifyClaims(reading);
    expect(report.verdict).toBe('ok');
    expect(report.counts.by_type).toEqual(golden.types);
    expect(report.counts.by_verdict.denied).toBe(golden.denied);
    expect(report.open_authorizations).toHaveLength(golden.open);
    // What was reserved and is not reported.
    expect(Object.keys(ledgerCodes(report)).filter((code) => code !== 'METER_UNREPORTED')).toEqual([]);
  });

  it.each(['one after the other', 'sorted by time'])('tell the same in one file, %s', (order) => {
    const lines = [SERVER, OPENCLAW, LANGGRAPH].flatMap((path) => recordedText(path).trimEnd().split('\n'));
    const timeOf = (line: string): number => Number(/"timestamp": ([\d.]+)/.exec(line)?.[1]);
    if (order === 'sorted by time') lines.sort((a, b) => timeOf(a) - timeOf(b));
    const reading = read([fileOf(`${lines.join('\n')}\n`)]);
    const { items, mapped, evidence, repeated } = accountFor(reading.items).total;
    expect([items, mapped, evidence, repeated]).toEqual([34, 7, 10, 17]);
    expect(countsOf(reading)).toEqual({ 'CGF-11 SERVER_FORM': 1, 'CGF-4 OUTCOME_MISSING': 1 });
  });

  it('keep amounts as they are written', () => {
    const { claims } = read([HTTP]);
    const execution = claims.find(({ id }) => id === 'execution:lg-prop-1795291474206-96ce94');
    expect(execution).toMatchObject({
      startedAt: '2026-11-21T20:04:34.214902Z',
      occurredAt: '2026-11-21T20:04:34.217338Z',
      outcome: 'success',
      meterBasis: 'reported',
      meters: [
        { unit: 'time.ms', amount: { t: 'dec', m: '4006385803222656', s: 14 } },
        { unit: 'calls', amount: { t: 'int', v: '1' } },
      ],
    });
  });

  it('have digests that are computed again where the content is in the files', () => {
    const { claims } = read([LIVE, HTTP]);
    const digests = claims.flatMap(({ foreignDigests = [] }) => foreignDigests);
    const params = digests.filter(({ of, form }) => of === 'action_params' && form !== 'not-verifiable');
    expect(params).toHaveLength(9);
    expect(params.map(({ check }) => check)).toEqual(params.map(() => 'match'));
  });

  it('bind a constrained action to its constraint', () => {
    const reading = read([HTTP]);
    const [decision, execution] = [
      'decision:dec-63cbc6b9eade',
      'execution:prop-mem-1795291447105-5896a1',
    ].map((id) => reading.claims.find((claim) => claim.id === id));
    expect(decision).toMatchObject({ decision: 'allow', decisionCode: 'LARGE_MEMORY_WRITE' });
    expect(execution).toMatchObject({
      resources: [{ kind: 'cgf.quarantine', reference: '_quarantine_1795291447.129216' }],
      paramsDigest: (decision as { paramsDigest?: unknown }).paramsDigest,
    });
    const proposed = read([HTTP]).observations.find(({ callIds }) => callIds.includes('dec-7399911215bd'));
    expect(proposed?.decision).toBe('allow');
    expect(proposed?.outcome).toBeUndefined();
  });

  it('name the policy of the bundle that is given', () => {
    const { claims } = read([HTTP], { aids: { 'policy-bundle': recordedFile(BUNDLE) } });
    expect(claims.find(({ kind }) => kind === 'action')).toMatchObject({
      policyId: 'cgf:1.0.0',
      policyDigest: {
        alg: 'sha-256',
        b64: Buffer.from('085b6d282eb9ecc26e1e20d3c0320553e0b21871032a37129b81e2814105af28', 'hex').toString(
          'base64url',
        ),
      },
    });
  });

  it('give the same claims of a log that ends after a proposal and of one that goes on', () => {
    const { bytes } = recordedFile(LIVE);
    const whole = read([LIVE]).claims;
    let ends = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, end + 1)) {
      const next = bytes.subarray(end + 1, bytes.indexOf(10, end + 1)).toString();
      if (!next.includes('"proposal_received"')) continue;
      const { claims } = read([{ name: LIVE, bytes: bytes.subarray(0, end + 1) }]);
      expect(claims).toEqual(whole.slice(0, claims.length));
      ends++;
    }
    expect(ends).toBe(9);
  });

  it('give the same claims of requests wherever the recording ends, also before their replays', () => {
    const lines = recordedText(HTTP).trimEnd().split('\n');
    const whole = new Map(read([HTTP]).claims.map((claim) => [claim.id, claim]));
    for (let count = 1; count < lines.length; count++) {
      const { claims } = read([fileOf(`${lines.slice(0, count).join('\n')}\n`, HTTP)]);
      for (const claim of claims) expect(claim).toEqual(whole.get(claim.id));
    }
  });

  it('give the same ids wherever a log ends', () => {
    const { bytes } = recordedFile(LIVE);
    const whole = new Set(read([LIVE]).claims.map(({ id }) => id));
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, end + 1)) {
      const { claims } = read([{ name: LIVE, bytes: bytes.subarray(0, end + 1) }]);
      expect(claims.filter(({ id }) => !whole.has(id))).toEqual([]);
    }
  });
});
