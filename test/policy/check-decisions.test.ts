/** Denied actions, decided again at their place: what the grants deny too, what they would have allowed, and what cannot be known. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  authorizeAction,
  checkDecisions,
  draftGrant,
  Ledger,
  meters,
  sha256Digest,
  verifyLedger,
  type ActionRequest,
  type Advice,
  type GrantOptions,
  type Report,
} from '../../src/api/index.js';
import { digestIntent } from '../../src/log/policy/draft-grant.js';
import { digestFromBase64url, fromDigestText } from '../../src/base/value/digest.js';
import { signer, temporaryFolder } from '../writer/support.js';

const AGENT = 'agent:a1';
const at = (second: number): string => new Date(Date.UTC(2026, 2, 1) + second * 1_000).toISOString();
const idOf = (text: string): object => digestFromBase64url(fromDigestText(text));

class Desk {
  readonly path = join(temporaryFolder(), 'ledger.jsonl');
  readonly #ledger: Promise<Ledger>;
  second = 0;

  constructor() {
    this.#ledger = Ledger.open(this.path, {
      signer,
      principalId: AGENT,
      create: { origin: 'example.com/tests/decisions' },
      now: () => at(this.second),
    });
    onTestFinished(async () => (await this.#ledger).close());
  }

  async grant(options: Partial<GrantOptions> = {}): Promise<string> {
    const event = draftGrant({
      principalId: AGENT,
      allowedTools: ['fs.*'],
      meterCaps: { usd: '5' },
      intent: { ...digestIntent('test') },
      ...options,
    });
    return this.append(event);
  }

  async append(event: object): Promise<string> {
    return (await (await this.#ledger).append({ event, isAnew: true })).eventId;
  }

  async ask(more: Partial<ActionRequest> = {}): Promise<string> {
    const ledger = await this.#ledger;
    const { decisionCode } = await authorizeAction(ledger, {
      principalId: AGENT,
      toolName: 'fs.read',
      paramsDigest: sha256Digest(Buffer.from('params')),
      intentDigest: digestIntent('test'),
      now: at(this.second),
      ...more,
    });
    return decisionCode;
  }

  /** A denial as anybody may write it. */
  async deny(
    code: string,
    grantId: string | undefined,
    more: object = {},
    action: object = {},
  ): Promise<string> {
    return this.append({
      event_type: 'authorization',
      principal_id: AGENT,
      occurred_at: at(this.second),
      intents: { intent_digest: digestIntent('test') },
      policy_id: 'northroot/grants/1',
      policy_digest: sha256Digest(Buffer.from('policy')),
      decision: 'deny',
      decision_code: code,
      authorization: {
        kind: 'action',
        ...(grantId === undefined ? {} : { grant_event_id: idOf(grantId) }),
        action: { tool_name: 'fs.read', tool_params_digest: sha256Digest(Buffer.from('params')), ...action },
      },
      ...more,
    });
  }

  async events(): Promise<Readonly<Record<string, unknown>>[]> {
    const lines = (await readFile(this.path, 'utf8')).trimEnd().split('\n');
    return lines.map((line) => (JSON.parse(line) as { event: Readonly<Record<string, unknown>> }).event);
  }

  async verify(): Promise<Report> {
    return verifyLedger(this.path, { checks: [checkDecisions()] });
  }

  /** The outcomes of all denials, and the codes found. */
  async outcome(): Promise<{ decisions: Report['decisions']; found: string[]; gap: string | undefined }> {
    const { decisions, findings, not_checked: gaps, verdict } = await this.verify();
    expect(verdict).toBe('ok');
    const gap = gaps.find(({ code }) => code === 'DECISIONS')?.message;
    return {
      decisions,
      found: findings.map(({ code }) => code).filter((code) => code !== 'TAIL_UNSEALED'),
      gap,
    };
  }
}

const counts = (more: Partial<NonNullable<Report['decisions']>>): Report['decisions'] => ({
  denials: Object.values(more).reduce((sum, count) => sum + count, 0),
  founded: 0,
  unfounded: 0,
  by_others: 0,
  undecided: 0,
  ...more,
});

describe('what the evaluator denied', () => {
  it('is denied again: tool, time, rate, concurrency, revocation, principal, no grant', async () => {
    const desk = new Desk();
    expect(await desk.ask()).toBe('GRANT_NOT_FOUND');
    const grantId = await desk.grant({
      expiresAt: at(100),
      rateLimits: { 'calls.per_min': 1 },
      concurrencyLimit: 1,
    });
    expect(await desk.ask({ toolName: 'net.get', grantId })).toBe('TOOL_NOT_ALLOWED');
    expect(await desk.ask({ grantId: `sha-256:${'A'.repeat(43)}` })).toBe('GRANT_NOT_FOUND');
    expect(await desk.ask({ principalId: 'agent:a2', grantId })).toBe('PRINCIPAL_MISMATCH');
    expect(await desk.ask({ meters: meters({ usd: '1' }) })).toBe('ALLOW');
    desk.second = 100;
    expect(await desk.ask({ grantId })).toBe('GRANT_EXPIRED');
    const { decisions, found, gap } = await desk.outcome();
    expect(decisions).toEqual(counts({ founded: 5 }));
    expect([found, gap]).toEqual([[], undefined]);
  });

  it('is not known where the grant asked for is not recorded; where it is, that grant decides', async () => {
    const desk = new Desk();
    const grantId = await desk.grant();
    await desk.deny('GRANT_NOT_FOUND', undefined);
    const named = (id: string): object => ({
      checks: [
        { check: 'grant', result: 'fail', code: 'GRANT_NOT_FOUND' },
        { check: `grant:${id.slice('sha-256:'.length)}`, result: 'fail', code: 'GRANT_NOT_FOUND' },
      ],
    });
    await desk.deny('GRANT_NOT_FOUND', undefined, named(`sha-256:${'A'.repeat(43)}`));
    await desk.deny('GRANT_NOT_FOUND', undefined, named(grantId));
    const { decisions, found, gap } = await desk.outcome();
    expect(decisions).toEqual(counts({ founded: 1, unfounded: 1, undecided: 1 }));
    expect(found).toEqual(['DENIAL_UNFOUNDED']);
    expect(gap).toContain('the grant asked for (1)');
  });

  it('is not known where the amounts decided, unless they are recorded', async () => {
    const desk = new Desk();
    const grantId = await desk.grant({ actionCaps: { usd: '2' } });
    await desk.deny('RESERVATION_OVER_CAP', grantId);
    await desk.deny('ACTION_CAP_EXCEEDED', grantId);
    await desk.deny('RESERVATION_OVER_CAP', grantId, {}, { meter_reservation: meters({ usd: '6' }) });
    const { decisions, found, gap } = await desk.outcome();
    expect(decisions).toEqual(counts({ founded: 1, undecided: 2 }));
    expect(found).toEqual([]);
    expect(gap).toContain('the amounts asked for (2)');
  });

  it('is not known where resources, approvals, hygiene or an expiry decided that are not recorded', async () => {
    const desk = new Desk();
    const grantId = await desk.grant({ resources: [{ kind: 'file', reference: '/a' }] });
    for (const code of ['RESOURCE_NOT_GRANTED', 'APPROVAL_REUSED', 'HYGIENE_NOT_OK', 'ACTION_EXPIRED'])
      await desk.deny(code, grantId);
    const { decisions, found } = await desk.outcome();
    expect([decisions, found]).toEqual([counts({ undecided: 4 }), []]);
  });

  it('waited for an approval that was not there; once it is there, the denial is unfounded or not known', async () => {
    const desk = new Desk();
    const grantId = await desk.grant({ approvals: [{ tools: ['fs.read'], approvers: ['human:*'] }] });
    expect(await desk.ask({ meters: meters({ usd: '1' }) })).toBe('APPROVAL_REQUIRED');
    await desk.append({
      event_type: 'approval',
      principal_id: 'human:h1',
      occurred_at: at(0),
      grant_event_id: idOf(grantId),
      decision: 'approve',
      decision_code: 'APPROVED',
      tool_name: 'fs.read',
      tool_params_digest: sha256Digest(Buffer.from('params')),
    });
    await desk.deny('APPROVAL_REQUIRED', grantId);
    const { decisions, found } = await desk.outcome();
    expect([decisions, found]).toEqual([counts({ founded: 1, undecided: 1 }), []]);
  });

  it('is as the accounts were there, not as they are at the end', async () => {
    const desk = new Desk();
    const grantId = await desk.grant({ meterCaps: { usd: '1' } });
    const asked = { meter_reservation: meters({ usd: '1' }) };
    await desk.deny('RESERVATION_OVER_CAP', grantId, {}, asked);
    expect(await desk.ask({ meters: meters({ usd: '1' }) })).toBe('ALLOW');
    await desk.deny('RESERVATION_OVER_CAP', grantId, {}, asked);
    const { findings, decisions } = await desk.verify();
    expect(decisions).toEqual(counts({ founded: 1, unfounded: 1 }));
    const found = findings.filter(({ code }) => code === 'DENIAL_UNFOUNDED');
    expect(found).toEqual([
      expect.objectContaining({
        severity: 'info',
        class: 'none',
        seq: 2,
        at: expect.objectContaining({ pointer: '/event/decision' }) as unknown,
        expected: `allow, as ${grantId} allows it, with 0 of 1 usd left`,
        actual: 'deny with RESERVATION_OVER_CAP',
        related: [expect.objectContaining({ event_id: grantId, seq: 1 })],
      }),
    ]);
  });
});

describe('what others denied', () => {
  const adviser: Advice = {
    policyId: 'northroot/gate/1',
    policyDigest: sha256Digest(Buffer.from('advisers')),
    checks: [{ check: 'adviser:opa', result: 'fail', code: 'POLICY_DENIED' }],
    denial: { code: 'POLICY_DENIED', reason: 'no' },
  };

  it('is theirs: an adviser, one that asks, another policy, a code that no grant gives', async () => {
    const desk = new Desk();
    const grantId = await desk.grant();
    expect(await desk.ask({ advice: adviser })).toBe('POLICY_DENIED');
    const asks: Advice = {
      policyId: 'northroot/gate/1',
      policyDigest: sha256Digest(Buffer.from('advisers')),
      checks: [{ check: 'adviser:ask', result: 'pass', code: 'APPROVAL_ASKED' }],
      approval: { approvers: ['human:*'] },
    };
    expect(await desk.ask({ advice: asks })).toBe('APPROVAL_REQUIRED');
    expect(await desk.ask({ advice: { ...asks, checks: [] } })).toBe('APPROVAL_REQUIRED');
    await desk.deny('TOOL_NOT_ALLOWED', grantId, { policy_id: 'example/policy/1' });
    await desk.deny('TOOL_UNLISTED', grantId);
    const { decisions, found } = await desk.outcome();
    expect([decisions, found]).toEqual([counts({ by_others: 5 }), []]);
  });

  it('is theirs too where their advice names neither a policy nor a check', async () => {
    const desk = new Desk();
    await desk.grant();
    const denial = { code: 'TOOL_NOT_ALLOWED', reason: 'no' };
    expect(await desk.ask({ advice: { checks: [], denial } })).toBe('TOOL_NOT_ALLOWED');
    const coverage = [{ check: 'coverage', result: 'pass', code: 'SDK' }] as const;
    const approval = { approvers: ['human:*'] };
    expect(await desk.ask({ advice: { checks: coverage, approval } })).toBe('APPROVAL_REQUIRED');
    const { decisions, found } = await desk.outcome();
    expect([decisions, found]).toEqual([counts({ by_others: 2 }), []]);
    const [denied, asked] = (await desk.events()).slice(-2);
    expect(denied).toMatchObject({
      policy_id: 'northroot/gate/1',
      checks: [{ check: 'advice', result: 'fail', code: 'TOOL_NOT_ALLOWED' }],
    });
    expect(asked).toMatchObject({ policy_id: 'northroot/gate/1' });
    expect(asked?.['checks']).toContainEqual({ check: 'advice', result: 'pass', code: 'APPROVAL_ASKED' });
  });

  it('is the grants where they ask for an approval, whatever way the call came', async () => {
    const desk = new Desk();
    const grantId = await desk.grant();
    const checks = [{ check: 'coverage', result: 'pass', code: 'HOOK' }];
    await desk.deny('APPROVAL_REQUIRED', grantId, { checks });
    const { decisions, found } = await desk.outcome();
    expect([decisions, found]).toEqual([counts({ unfounded: 1 }), ['DENIAL_UNFOUNDED']]);
  });

  it('is the grants where they refused after an adviser permitted', async () => {
    const desk = new Desk();
    const grantId = await desk.grant();
    const checks = [{ check: 'adviser:opa', result: 'pass', code: 'PERMITTED' }];
    await desk.deny('TOOL_NOT_ALLOWED', grantId, { policy_id: 'northroot/gate/1', checks });
    const { decisions, found } = await desk.outcome();
    expect([decisions, found]).toEqual([counts({ unfounded: 1 }), ['DENIAL_UNFOUNDED']]);
  });
});

describe('a check of decisions', () => {
  it.each([
    'TOOL_NOT_ALLOWED',
    'GRANT_EXPIRED',
    'GRANT_REVOKED',
    'CONCURRENCY_EXCEEDED',
    'RATE_LIMIT_EXCEEDED',
  ])('tells of a denial with %s that the grant does not give', async (code) => {
    const desk = new Desk();
    const grantId = await desk.grant({ rateLimits: { 'calls.per_min': 5 } });
    await desk.deny(code, grantId);
    const { decisions, found } = await desk.outcome();
    expect([decisions, found]).toEqual([counts({ unfounded: 1 }), ['DENIAL_UNFOUNDED']]);
  });

  it('says what it does not decide: denied grants', async () => {
    const desk = new Desk();
    await desk.append({
      event_type: 'authorization',
      occurred_at: at(0),
      intents: { intent_digest: digestIntent('test') },
      policy_id: 'northroot/grants/1',
      policy_digest: sha256Digest(Buffer.from('policy')),
      decision: 'deny',
      decision_code: 'DENIED',
      authorization: { kind: 'grant', bounds: {} },
    });
    const { decisions, gap } = await desk.outcome();
    expect(decisions).toEqual(counts({}));
    expect(gap).toContain('denied grants');
  });

  it('tries at most 32 grants for a denial that names none', async () => {
    const desk = new Desk();
    for (let n = 0; n < 32; n += 1) await desk.grant({ intent: { ...digestIntent(`test ${n}`) } });
    await desk.deny('TOOL_NOT_ALLOWED', undefined, {
      intents: { intent_digest: { ...digestIntent('test 31') } },
    });
    await desk.grant({ intent: { ...digestIntent('test 32') } });
    await desk.deny('TOOL_NOT_ALLOWED', undefined);
    const { decisions, gap } = await desk.outcome();
    expect(decisions).toEqual(counts({ unfounded: 1, undecided: 1 }));
    expect(gap).toContain('more than 32 grants');
  });

  it('is not possible from a saved state, and not made unless asked for', async () => {
    const desk = new Desk();
    const grantId = await desk.grant();
    await desk.deny('TOOL_NOT_ALLOWED', grantId);
    const plain = await verifyLedger(desk.path);
    const checked = await desk.verify();
    expect(plain.decisions).toBeUndefined();
    expect(checked.findings_total).toBe(plain.findings_total + 1);
    const { findings: a, findings_total: b, decisions: c, ...rest } = checked;
    const { findings: d, findings_total: e, ...other } = plain;
    void [a, b, c, d, e];
    expect(rest).toEqual(other);
    const from = {} as never;
    await expect(verifyLedger(desk.path, { from, checks: [checkDecisions()] })).rejects.toThrow(RangeError);
  });
});
