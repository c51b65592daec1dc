/** One request for approval with all that decides on it, as data and as a screen. */

import { readableContent } from '../../src/log/contents/readable-content.js';
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import { formatQuantity } from '../../src/base/value/quantity.js';
import type { MeterVector } from '../../src/base/value/meter.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKey } from '../../src/format/key/public-key.js';
import { createSigner } from '../../src/format/signature/signer.js';
import type { LiveLedger } from '../../src/log/agent/live-ledger.js';
import { contentName, MAX_CONTENT_BYTES } from '../../src/log/contents/content-store.js';
import { draftGrant, type GrantOptions } from '../../src/log/policy/draft-grant.js';
import { readRequest, type RequestView } from '../../src/log/policy/explain-request.js';
import { LedgerView } from '../../src/log/read/ledger-view.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { renderRequest } from '../../src/out/text/request.js';
import { MAX_CONTENT_LINE_LENGTH, MAX_CONTENT_LINES, showContent } from '../../src/out/text/content.js';
import { codeOf, readRecords } from '../writer/support.js';
import { AGENT, filePlace, openLive, request } from './support.js';

const RULE = { tools: ['deploy'], approvers: ['human:*'], above: { usd: '100' } } as const;
const NOW = '2026-06-01T12:00:00Z';

interface Opened {
  readonly path: string;
  readonly agent: LiveLedger;
  readonly owner: LiveLedger;
  readonly olga: LiveLedger;
  readonly otto: LiveLedger;
  readonly grantId: string;
  readonly look: (id: string) => Promise<RequestView>;
}

async function open(options: Partial<GrantOptions> = {}): Promise<Opened> {
  const place = filePlace();
  const [own, agentKey, olgaKey, ottoKey] = [0, 1, 2, 3].map(() => createSigner(generatePrivateKey()));
  const entry = (signer: typeof own, roles: string[], principal: string): never =>
    ({
      keyid: signer?.publicKey.keyid,
      public_key: formatPublicKey(signer.publicKey),
      roles,
      principals: [principal],
    }) as never;
  const keys = [
    entry(own, ['event', 'checkpoint', 'admin', 'authority'], '*'),
    entry(agentKey, ['event'], AGENT),
    entry(olgaKey, ['event'], 'human:olga'),
    entry(ottoKey, ['event'], 'human:otto'),
  ];
  const as = (signer: typeof own, principalId: string, more: object = {}): Promise<LiveLedger> =>
    openLive(place, { signer: signer, principalId, now: () => NOW, ...more });
  const create = { origin: 'example.com/tests/requests', keys };
  const owner = await as(own, 'org:acme', { create });
  const draft = draftGrant({
    principalId: AGENT,
    allowedTools: ['*'],
    meterCaps: { usd: '1000', calls: 100 },
    approvals: [RULE],
    occurredAt: NOW,
    ...options,
  });
  const { eventId: grantId } = await owner.append({ event: draft });
  const agent = await as(agentKey, AGENT);
  const [olga, otto] = [await as(olgaKey, 'human:olga'), await as(ottoKey, 'human:otto')];
  const look = (id: string): Promise<RequestView> => readRequest(place.path, id, { now: NOW });
  return { path: place.path, agent, owner, olga, otto, grantId, look };
}

const PARAMS = { env: 'prod' };

async function ask(agent: LiveLedger, usd: string, params: unknown = PARAMS): Promise<string> {
  const content = canonicalBytes(params);
  const asked = { ...request(0, { usd }), toolName: 'deploy', paramsDigest: sha256Digest(content) };
  return (await agent.authorize(asked, { attach: content })).recorded.eventId;
}

const amounts = (vector: MeterVector | undefined): string =>
  (vector ?? []).map(({ unit, amount }) => `${unit}=${formatQuantity(amount)}`).join();

describe('readRequest', () => {
  it('says who asks for what, by which rule, within what is left, and what an approval would allow', async () => {
    const { agent, grantId, look, path } = await open({ expiresAt: '2026-06-02T00:00:00Z' });
    const id = await ask(agent, '500');
    const seen = await look(id);
    expect(seen).toMatchObject({
      eventId: id,
      status: 'waiting',
      principalId: AGENT,
      occurredAt: NOW,
      toolName: 'deploy',
      grantId,
      decisionCode: 'APPROVAL_REQUIRED',
      expiresAt: '2026-06-02T00:00:00Z',
      rules: [{ grantId, tools: ['deploy'], approvers: ['human:*'], count: 1, approvalIds: [] }],
      approvals: [],
      rejected: undefined,
      answer: { decision: 'deny', decisionCode: 'APPROVAL_REQUIRED' },
      wouldAllow: { until: '2026-06-02T00:00:00Z' },
      content: { status: 'attached', bytes: Buffer.from('{"env":"prod"}') },
      hasInvalid: false,
    });
    expect([
      amounts(seen.reservation),
      amounts(seen.rules[0]?.above),
      amounts(seen.wouldAllow.limit),
    ]).toEqual(['usd=500', 'usd=100', 'usd=500']);
    const usd = seen.grants[0]?.balances.find(({ unit }) => unit === 'usd');
    expect([usd?.cap, usd?.left].map((each) => formatQuantity(each as never))).toEqual(['1000', '1000']);
    // By its place, by a view, and without an index.
    expect(await look(String(seen.seq))).toEqual(seen);
    const view = new LedgerView(path, { index: false });
    expect(await readRequest(view, id, { now: NOW })).toEqual(seen);
  });

  it('follows a request of two: one approved, approved, allowed since', async () => {
    const two = { ...RULE, count: 2, maxAgeSeconds: 3600 };
    const { agent, olga, otto, look } = await open({ approvals: [two] });
    const id = await ask(agent, '500');
    const first = (await olga.approve(id)).eventId;
    expect(await look(id)).toMatchObject({
      status: 'waiting',
      rules: [{ count: 2, maxAgeSeconds: 3600, approvalIds: [first] }],
      approvals: [{ eventId: first, principalId: 'human:olga', counts: true }],
      wouldAllow: { until: '2026-06-01T13:00:00Z' },
    });
    // Twice the same person is one.
    await olga.approve(id, { expiresAt: '2026-06-01T12:30:00Z' });
    expect((await look(id)).status).toBe('waiting');
    await otto.approve(id);
    expect(await look(id)).toMatchObject({ status: 'approved', answer: { decision: 'allow' } });
    expect(await ask(agent, '500')).not.toBe(id);
    const closed = await look(id);
    expect(closed.status).toBe('closed');
    // What approved it is used up: to count what is left would mislead.
    expect(renderRequest(closed, plainPaint, NOW)).not.toContain('0 of 2');
    // The next request of the same call is one of its own.
    const next = await ask(agent, '500');
    expect((await look(id)).status).toBe('closed');
    expect((await look(next)).status).toBe('waiting');
  });

  it('shows approvals that do not count, and who rejected', async () => {
    const { agent, olga, otto, look } = await open();
    const id = await ask(agent, '500');
    const own = (await agent.approve(id, { principalId: AGENT })).eventId;
    const low = (await olga.approve(id, { limit: { usd: '499' } })).eventId;
    const late = (await otto.approve(id, { expiresAt: NOW })).eventId;
    const seen = await look(id);
    expect(seen.status).toBe('waiting');
    expect(seen.approvals.map(({ eventId, counts }) => [eventId, counts])).toEqual([
      [own, false],
      [low, false],
      [late, false],
    ]);
    const reject = (await olga.reject(id)).eventId;
    expect(await look(id)).toMatchObject({
      status: 'rejected',
      rejected: { eventId: reject, principalId: 'human:olga' },
    });
  });

  it('says that an approval would be in vain, once the money is gone or the grant has ended', async () => {
    const { agent, owner, look, grantId } = await open();
    const id = await ask(agent, '500');
    for (let n = 0; n < 6; n += 1) await ask(agent, '100', { n });
    const seen = await look(id);
    expect(seen).toMatchObject({ status: 'waiting', answer: { decisionCode: 'RESERVATION_OVER_CAP' } });
    expect(renderRequest(seen, plainPaint, NOW)).toContain('RESERVATION_OVER_CAP');
    await owner.suspend(grantId, { reason: 'INCIDENT' });
    expect(await look(id)).toMatchObject({
      status: 'ended',
      grants: [{ withdrawn: { effect: 'suspend' } }],
      answer: { decisionCode: 'GRANT_REVOKED' },
    });
  });

  it('has the rules and the caps of all grants above', async () => {
    const { agent, owner, look, grantId, path } = await open({ approvals: [{ ...RULE, count: 2 }] });
    const sub = await owner.append({
      event: draftGrant({
        principalId: AGENT,
        parent: readRecords(path).at(-1)?.event as never,
        allowedTools: ['deploy'],
        meterCaps: { usd: '600', calls: 10 },
        approvals: [{ tools: ['deploy'], approvers: ['org:acme'] }],
        occurredAt: NOW,
      }),
    });
    const content = canonicalBytes(PARAMS);
    const { recorded } = await agent.authorize({
      ...request(0, { usd: '500' }),
      toolName: 'deploy',
      paramsDigest: sha256Digest(content),
      grantId: sub.eventId,
    });
    const seen = await look(recorded.eventId);
    expect(seen.rules.map((rule) => [rule.grantId, rule.approvers, rule.count, amounts(rule.above)])).toEqual(
      [
        [sub.eventId, ['org:acme'], 1, ''],
        [grantId, ['human:*'], 2, 'usd=100'],
      ],
    );
    expect(seen.grants.map(({ eventId }) => eventId)).toEqual([sub.eventId, grantId]);
    expect(seen.content.status).toBe('missing');
  });

  it('says of another denial that no approval lifts it, and refuses what is no denied action', async () => {
    const { agent, grantId, look } = await open();
    const { recorded } = await agent.authorize({ ...request(0, { usd: '5000' }), toolName: 'deploy' });
    expect(await look(recorded.eventId)).toMatchObject({
      status: 'refused',
      decisionCode: 'RESERVATION_OVER_CAP',
    });
    const allowed = await agent.authorize({ ...request(1, { usd: '5' }), toolName: 'deploy' });
    expect(await codeOf(look(allowed.recorded.eventId))).toBe('REQUEST_ALLOWED');
    expect(await codeOf(look(grantId))).toBe('AUTH_NOT_AN_AUTHORIZATION');
    expect(await codeOf(look('0'))).toBe('AUTH_NOT_AN_AUTHORIZATION');
    expect(await codeOf(look('999'))).toBe('RECORD_NOT_FOUND');
    await expect(readRequest('x', '1', { now: 'noon' })).rejects.toThrow(RangeError);
    await expect(readRequest('x', '1', { when: NOW } as never)).rejects.toThrow(TypeError);
  });

  it('never shows as the parameters what does not have their digest', async () => {
    const { agent, look, path } = await open();
    const id = await ask(agent, '500');
    const file = `${path}.contents/${contentName(sha256Digest(canonicalBytes(PARAMS)))}`;
    writeFileSync(file, '{"env":"test"}');
    const swapped = await look(id);
    expect(swapped.content).toEqual({ status: 'mismatch', file });
    const text = renderRequest(swapped, plainPaint, NOW);
    expect(text).not.toContain('"env"');
    expect(text).toContain(file);
  });

  it('is shown though the folder is not one', async () => {
    const { agent, look, path } = await open();
    const content = canonicalBytes(PARAMS);
    const asked = { ...request(0, { usd: '500' }), toolName: 'deploy', paramsDigest: sha256Digest(content) };
    const { recorded } = await agent.authorize(asked);
    writeFileSync(`${path}.contents`, '');
    const seen = await look(recorded.eventId);
    expect(seen.content).toMatchObject({ status: 'unreadable', error: { code: 'CONTENTS_UNUSABLE' } });
    expect(renderRequest(seen, plainPaint, NOW)).toContain('waits for approval');
  });
});

describe('the screen of a request', () => {
  const show = async (params: unknown): Promise<string> => {
    const { agent, look } = await open();
    const id = await ask(agent, '500', params);
    return renderRequest(await look(id), plainPaint, NOW, {
      approve: 'APPROVE',
      reject: 'REJECT',
      content: 'ALL',
    });
  };

  it('lays out the parameters, and names the answers', async () => {
    const text = await show({ env: 'prod', hosts: ['a', 'b'], options: {}, none: [] });
    expect(text).toContain(
      [
        '{',
        '  "env": "prod",',
        '  "hosts": [',
        '    "a",',
        '    "b"',
        '  ],',
        '  "none": [],',
        '  "options": {}',
        '}',
      ]
        .map((line) => `    | ${line}\n`)
        .join(''),
    );
    for (const part of ['agent:a1', 'deploy', '500 usd', 'human:*', 'APPROVE', 'REJECT'])
      expect(text).toContain(part);
    expect(text).not.toContain('NOT ALL');
  });

  it.each<[string, unknown]>([
    ['controls and escapes', { a: '\u001b[2J\u001b]0;x\u0007\r\n\t\b\u009b', '\u001b[A': 1 }],
    ['text that runs the other way', { a: '\u202eteg\u202c \u2066x\u2069' }],
    ['invisible characters', { a: 'a\u200b\u00ad\ufeff\u{e0041}b' }],
    ['lines that look like the screen', { a: '\n  status      approved\n' }],
  ])('shows nothing that deceives: %s', async (_what, params) => {
    const text = await show(params);
    expect(text).not.toMatch(/[^\n\P{C}]|[\p{Zl}\p{Zp}\p{DI}]/u);
    expect(text.match(/^ {2}status/gm)).toHaveLength(1);
  });

  it('says where it does not show all', async () => {
    const long = await show(Array.from({ length: 1_000 }, (_, n) => n));
    expect(long.split('\n').length).toBeLessThan(MAX_CONTENT_LINES + 30);
    expect(long).toContain('NOT ALL IS SHOWN');
    expect(long).toContain('ALL');
    expect(await show('x'.repeat(MAX_CONTENT_LINE_LENGTH))).toContain('NOT ALL IS SHOWN');
    let deep: unknown = 'hidden';
    for (let depth = 0; depth < 60; depth += 1) deep = [deep];
    const nested = await show(deep);
    expect(nested).not.toContain('hidden');
    expect(nested).toContain('NOT ALL IS SHOWN');
  });
});

describe('a request that an adviser made', () => {
  const long = `human:${'x'.repeat(60)}`;

  it.each([
    ['is told in every process', ['human:*'], 'needs 2 of human:*; as an adviser asked'],
    ['that is not recorded is known to the adviser alone', ['human:*', long], 'only the adviser knows'],
  ])('has a rule that %s', async (_, approvers, text) => {
    const { agent, olga, look } = await open({ approvals: [{ ...RULE, tools: ['other'] }] });
    const asked = {
      ...request(0, { usd: '5' }),
      toolName: 'deploy',
      paramsDigest: sha256Digest(canonicalBytes(PARAMS)),
    };
    const advice = { checks: [], approval: { approvers, count: 2 } };
    const { recorded } = await agent.authorize({ ...asked, advice });
    const shown = async (): Promise<string> => renderRequest(await look(recorded.eventId), plainPaint, NOW);
    const ofList = async (): Promise<string[]> =>
      (await olga.requests()).flatMap((each) => each.approvals.map(({ principalId }) => principalId));
    await agent.approve(recorded.eventId);
    await olga.approve(recorded.eventId, { expiresAt: NOW });
    expect(await shown()).not.toContain('only the adviser knows');
    expect((await look(recorded.eventId)).approvals.map(({ counts }) => counts)).toEqual([false, false]);
    expect(await ofList()).toEqual([]);
    await olga.approve(recorded.eventId);
    expect(await shown()).toContain(text);
    expect(await ofList()).toEqual(['human:olga']);
    for (const who of [agent, olga])
      expect(await who.requests()).toMatchObject([
        { status: 'waiting', need: { approvers: approvers.length === 1 ? approvers : [], count: 2 } },
      ]);
    await olga.reject(recorded.eventId);
    expect(await shown()).not.toContain('only the adviser knows');
  });
});

describe('showContent', () => {
  it('takes canonical JSON for JSON, and any other text line by line', () => {
    expect(readableContent(Buffer.from('{"a":1}'))).toEqual({ json: { a: 1 } });
    expect(readableContent(Buffer.from('{"a":1,"a":2}'))).toEqual({ text: '{"a":1,"a":2}' });
    expect(readableContent(Buffer.from('{ "a":1}'))).toEqual({ text: '{ "a":1}' });
    expect(showContent(Buffer.from('one\u001b[1m\ntwo'))).toEqual({
      lines: ['one\\u{1b}[1m', 'two'],
      isCut: false,
    });
    expect(showContent(new Uint8Array())).toEqual({ lines: [''], isCut: false });
  });

  it('shows nothing of what is no text, and of a large one only the beginning', () => {
    expect(showContent(Uint8Array.of(0xff, 0xfe))).toEqual({ lines: [], isCut: true });
    const large = canonicalBytes(Array.from({ length: 300_000 }, () => 0));
    expect(large.length).toBeLessThan(MAX_CONTENT_BYTES);
    const { lines, isCut } = showContent(large);
    expect([lines.length, isCut]).toEqual([MAX_CONTENT_LINES, true]);
    const exact = canonicalBytes(Array.from({ length: MAX_CONTENT_LINES - 2 }, () => 0));
    expect(showContent(exact).isCut).toBe(false);
  });
});
