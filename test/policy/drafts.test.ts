/** Grants and adjustments from options, as the exported builders make them. */

import { describe, expect, it } from 'vitest';
import {
  OptionsError,
  canonicalBytes,
  draftAdjustment,
  draftGrant,
  meters,
  sha256Digest,
  type AuthorizationEvent,
  type GrantOptions,
} from '../../src/api/index.js';
import { buildEvent } from '../../src/format/event/build.js';
import { validateEvent } from '../../src/format/event/validate.js';
import { digestIntent } from '../../src/log/policy/draft-grant.js';

const OCCURRED_AT = '2026-03-01T12:00:00Z';
const base = {
  principalId: 'agent:a1',
  allowedTools: ['fs.*'],
  meterCaps: { usd: '5', calls: 100 },
} as const;

const buildAuthorization = (draft: object) => buildEvent(draft) as unknown as AuthorizationEvent;

function grant(options: Partial<GrantOptions> = {}): AuthorizationEvent {
  return buildAuthorization(draftGrant({ ...base, occurredAt: OCCURRED_AT, ...options }));
}

function boundsOf({ authorization }: AuthorizationEvent) {
  return authorization.kind === 'grant' ? authorization.bounds : undefined;
}

/** The options that were refused, each once. */
function refusedBy(draft: () => unknown): string[] {
  try {
    draft();
  } catch (error) {
    expect(error).toBeInstanceOf(OptionsError);
    return [...new Set((error as OptionsError).problems.map(({ option }) => option))].sort();
  }
  return [];
}

describe('draftGrant', () => {
  it('makes a valid event with the bounds that were said, exactly', () => {
    const event = grant({
      actionCaps: { usd: '0.5' },
      rateLimits: { 'usd.per_5h': '1.25', 'calls.per_min': 10 },
      notBefore: '2026-03-01T12:00:00Z',
      expiresAt: '2026-03-02T12:00:00Z',
      concurrencyLimit: 2,
      maxDelegationDepth: 0,
      outputMode: 'digest_only',
      resources: [{ kind: 'file', reference: '/srv' }],
      source: { system: 'jira', id: 'OPS-1' },
      policyId: 'team/1',
    });
    expect(validateEvent(event)).toEqual([]);
    expect(event).toMatchObject({ principal_id: 'agent:a1', decision: 'allow', policy_id: 'team/1' });
    expect(boundsOf(event)).toEqual({
      allowed_tools: ['fs.*'],
      meter_caps: meters({ calls: 100, usd: '5' }),
      action_caps: meters({ usd: '0.5' }),
      rate_limits: meters({ 'calls.per_min': 10, 'usd.per_5h': '1.25' }),
      not_before: '2026-03-01T12:00:00Z',
      expires_at: '2026-03-02T12:00:00Z',
      concurrency_limit: { t: 'int', v: '2' },
      max_delegation_depth: 0,
      output_mode: 'digest_only',
      resources: [{ kind: 'file', reference: '/srv' }],
    });
  });

  it('tells of all options that are wrong at once, and names none that is right', () => {
    const wrong = {
      principalId: 'bob',
      allowedTools: ['fs.*', 'f s'],
      meterCaps: { usd: 0.25 },
      actionCaps: { USD: '1' },
      rateLimits: { usd: '1' },
      notBefore: 'soon',
      concurrencyLimit: 0,
      maxDelegationDepth: 32,
      outputMode: 'all',
      resources: [{ kind: '' }],
      intentDigest: 'none',
      policyId: '',
      source: { system: 'jira' },
      policyDigest: { alg: 'sha-256', b64: 'short' },
      expires: '2h',
    };
    const right = { expiresAt: '2026-03-02T12:00:00Z', occurredAt: OCCURRED_AT };
    const refused = refusedBy(() => draftGrant({ ...wrong, ...right } as unknown as GrantOptions));
    expect(refused).toEqual(Object.keys(wrong).sort());
  });

  it.each<[string, Partial<GrantOptions>, string]>([
    ['no tool', { allowedTools: [] }, 'allowedTools'],
    ['no cap', { meterCaps: {} }, 'meterCaps'],
    ['one window twice', { rateLimits: { 'usd.per_hour': 1, 'usd.per_60m': 2 } }, 'rateLimits'],
    ['an end before its beginning', { notBefore: OCCURRED_AT, expiresAt: OCCURRED_AT }, 'expiresAt'],
    ['an end that has passed', { expiresAt: '2026-03-01T11:59:59Z', occurredAt: OCCURRED_AT }, 'expiresAt'],
    ['two intents', { intent: 'a', intentDigest: digestIntent('a') }, 'intent'],
  ])('refuses %s', (_what, options, option) => {
    expect(refusedBy(() => draftGrant({ ...base, ...options }))).toEqual([option]);
  });

  it('digests an intent as its canonical JSON; without one the bounds are the intent', () => {
    expect(digestIntent('release 1.2')).toEqual(sha256Digest(Buffer.from('"release 1.2"')));
    expect(grant({ intent: { b: 1, a: 2 } }).intents.intent_digest).toEqual(
      sha256Digest(Buffer.from('{"a":2,"b":1}')),
    );
    const event = grant();
    expect(event.intents).toEqual({
      intent_digest: sha256Digest(canonicalBytes(boundsOf(event) as unknown as object as never)),
    });
  });
});

describe('a delegated grant', () => {
  const parent = grant({
    rateLimits: { 'usd.per_60m': '1', 'calls.per_min': 5 },
    actionCaps: { usd: '0.5' },
    notBefore: OCCURRED_AT,
    expiresAt: '2026-03-02T12:00:00Z',
    concurrencyLimit: 2,
    maxDelegationDepth: 1,
    outputMode: 'digest_only',
    resources: [{ kind: 'file', reference: '/srv' }],
    intent: 'report',
  });

  it('takes over from its parent what it does not say', () => {
    const child = buildAuthorization(
      draftGrant({ principalId: 'agent:a2', parent, occurredAt: OCCURRED_AT }),
    );
    const { max_delegation_depth: depth, ...bounds } = boundsOf(parent) ?? {};
    expect(depth).toBe(1);
    expect(boundsOf(child)).toEqual(bounds);
    expect(child.authorization).toMatchObject({ grant_event_id: parent.event_id });
    expect(child.intents).toEqual(parent.intents);
    expect(validateEvent(child)).toEqual([]);
  });

  it('keeps the units and windows that it does not name', () => {
    const child = draftGrant({
      principalId: 'agent:a2',
      parent,
      meterCaps: { usd: '1' },
      rateLimits: { 'usd.per_hour': '0.1' },
      expiresAt: '2026-03-01T13:00:00Z',
    });
    expect(child.authorization).toMatchObject({
      bounds: {
        meter_caps: meters({ calls: 100, usd: '1' }),
        rate_limits: meters({ 'calls.per_min': 5, 'usd.per_hour': '0.1' }),
        expires_at: '2026-03-01T13:00:00Z',
      },
    });
  });

  it("names its parent's intent where it has another, through any number of them", () => {
    const child = grant({ parent, intent: 'write the summary' });
    expect(child.intents.user_intent_digest).toEqual(digestIntent('report'));
    const grandchild = grant({ parent: child, intent: 'spell-check' });
    expect(grandchild.intents.user_intent_digest).toEqual(digestIntent('report'));
    expect(refusedBy(() => grant({ parent, intent: 'x', userIntent: 'another' }))).toEqual(['userIntent']);
  });

  it.each<[string, Partial<GrantOptions>, string]>([
    ['a cap that is too high', { meterCaps: { usd: '5.01' } }, 'DELEGATION_EXCEEDED'],
    ['a tool that the parent does not cover', { allowedTools: ['net.get'] }, 'DELEGATION_EXCEEDED'],
    ['a later end', { expiresAt: '2026-03-03T00:00:00Z' }, 'DELEGATION_EXCEEDED'],
    ['a date before the parent’s', { occurredAt: '2026-03-01T11:59:59Z' }, 'AUTHORIZATION_BEFORE_GRANT'],
  ])('is refused with %s', (_what, options, code) => {
    expect(() => grant({ parent, ...options })).toThrow(expect.objectContaining({ code }) as Error);
  });

  it('is refused under what is no grant, or a denied one', () => {
    const codeOf = (of: object): unknown => {
      try {
        return draftGrant({ ...base, parent: of as AuthorizationEvent });
      } catch (error) {
        return (error as { code?: unknown }).code;
      }
    };
    const draft = draftGrant({ ...base, intent: 'report', occurredAt: OCCURRED_AT });
    expect(codeOf(buildAuthorization({ ...draft, decision: 'deny' }))).toBe('GRANT_DENIED');
    const action = { kind: 'action', action: { tool_name: 'fs.read', tool_params_digest: digestIntent(1) } };
    expect(codeOf(buildAuthorization({ ...draft, decision: 'deny', authorization: action }))).toBe(
      'GRANT_NOT_A_GRANT',
    );
    expect(codeOf({})).toBe('GRANT_NOT_A_GRANT');
    expect(codeOf({ ...parent, authorization: null })).toBe('GRANT_NOT_A_GRANT');
  });
});

describe('draftAdjustment', () => {
  const grantId = `sha-256:${digestIntent('grant').b64}`;
  const adjustment = { grantId, credit: { usd: '0.3' }, reason: 'REFUND' } as const;

  it('makes a valid event', () => {
    const evidence = { digest: digestIntent('bill'), size_bytes: 12 };
    const options = { ...adjustment, executionId: grantId, meterBasis: 'billed', evidence } as const;
    const defaults = { occurredAt: OCCURRED_AT, principalId: 'human:anna' };
    const event = buildEvent(draftAdjustment(options), defaults);
    expect(validateEvent(event)).toEqual([]);
    expect(event).toMatchObject({
      direction: 'credit',
      meters: meters({ usd: '0.3' }),
      reason: 'REFUND',
      grant_event_id: digestIntent('grant'),
      execution_event_id: digestIntent('grant'),
      meter_basis: 'billed',
      evidence,
    });
    const { credit, ...rest } = adjustment;
    expect(draftAdjustment({ ...rest, debit: credit })).toMatchObject({ direction: 'debit' });
  });

  it.each<[string, object, string[]]>([
    ['neither a credit nor a debit', { credit: undefined }, ['credit']],
    ['both', { debit: { usd: 1 } }, ['credit']],
    ['an empty credit', { credit: {} }, ['credit']],
    ['a double', { credit: { usd: 0.3 } }, ['credit']],
    ['a negative amount', { credit: { usd: '-1' } }, ['credit']],
    ['a reason in words', { reason: 'refund it' }, ['reason']],
    ['ids that are none', { grantId: 'x', executionId: 'y' }, ['executionId', 'grantId']],
    ['an unknown option', { amount: 1 }, ['amount']],
    [
      'several',
      { reason: '', meterBasis: 'felt', principalId: 'bob' },
      ['meterBasis', 'principalId', 'reason'],
    ],
  ])('refuses %s', (_what, options, refused) => {
    const draft = (): unknown => draftAdjustment({ ...adjustment, ...options });
    expect(refusedBy(draft)).toEqual(refused);
  });
});
