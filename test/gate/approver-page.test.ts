/** The approvers' page in a browser: it shows who waits for what, and approves and rejects. */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { serveGate } from '../../src/gate/service/serve-gate.js';
import { makeToken, Tokens } from '../../src/gate/service/tokens.js';
import { filePlace } from '../agent/support.js';
import { CHROMIUM } from '../platform/chromium.js';
import { openGate } from './support.js';
import { parsePasskey } from '../../src/format/key/passkey.js';
import { makeKeyEntry } from '../../src/rules/trust/key-entry.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Gate } from '../../src/gate/gate.js';

const PHONE = { width: 390, height: 844 };

interface SignedRecord {
  readonly event: { readonly event_type: string };
  readonly signatures: readonly { readonly keyid: string }[];
}

async function recordsOf(gate: Gate, type: string): Promise<SignedRecord[]> {
  const text = await readFile(gate.ledger.path, 'utf8');
  const records = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as SignedRecord);
  return records.filter(({ event }) => event.event_type === type);
}

describe.skipIf(!existsSync(CHROMIUM))('the approvers’ page', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  });
  afterAll(() => browser.close());

  async function open() {
    const rule = { tools: ['fs.*'], approvers: ['human:*'] };
    const bounds = { meterCaps: { calls: 9, usd: '100' }, approvals: [rule] };
    const { gate } = await openGate(filePlace(), bounds, { attach: true });
    const { token, entry } = makeToken({
      name: 'olga',
      principals: ['human:olga'],
      may: ['approve', 'read'],
    });
    const tokens = Tokens.parse(Buffer.from(JSON.stringify({ tokens: [entry] })));
    const server = await serveGate({ gate, tokens, listen: { port: 0 } });
    onTestFinished(() => server.close());
    const page = await browser.newPage({ viewport: PHONE });
    onTestFinished(() => page.close());
    const errors: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text());
    });
    page.on('pageerror', (error) => errors.push(error.message));
    await page.goto(`${server.urls[0]}/approvals`);
    return { gate, token, page, errors };
  }

  async function show(page: Page, token: string): Promise<void> {
    await page.fill('#token', token);
    await page.click('form button');
  }

  it('shows each request on one screen; approving lets the call run', async () => {
    const { gate, token, page, errors } = await open();
    const params = { path: '/x', note: 'a\u202eb<img src=x>' };
    const call = { ref: 'c1', tool: 'fs.write', params, reserve: { usd: '12.50' } };
    const { authorization } = await gate.decide(call);
    await show(page, token);
    await page.waitForSelector('pre:has-text("/x")');
    const text = await page.innerText('article');
    for (const part of [
      'agent:a1',
      'fs.write',
      '12.5 usd',
      '1 of human:*',
      'nobody yet',
      authorization,
      'a\\u{202e}b<img src=x>',
    ])
      expect(text).toContain(part);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(PHONE.width);
    await page.click('[data-verb=approve]');
    await page.waitForSelector('article', { state: 'detached' });
    expect(await page.innerText('#state')).toContain('approved');
    expect((await gate.decide(call)).effect).toBe('allow');
    expect(errors).toEqual([]);
  });

  it('rejects, and tells of a wrong token', async () => {
    const { gate, token, page } = await open();
    await gate.decide({ ref: 'c1', tool: 'fs.write', params: {} });
    await show(page, 'nr_wrong');
    await page.waitForSelector('#state:has-text("TOKEN_INVALID")');
    await show(page, token);
    await page.click('[data-verb=reject]');
    await page.waitForSelector('article', { state: 'detached' });
    expect((await gate.ledger.requests())[0]?.status).toBe('rejected');
  });

  it('shows the first of many, and asks for the parameters of each once', async () => {
    const { gate, token, page } = await open();
    const refs = Array.from({ length: 101 }, (_, n) => `c${n}`);
    await Promise.all(refs.map((ref) => gate.decide({ ref, tool: 'fs.write', params: { ref } })));
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    const lists = (): number => asked.filter((url) => url.includes('/v1/approvals?')).length;
    await show(page, token);
    await page.waitForSelector('pre:has-text("c99")');
    expect(await page.locator('article').count()).toBe(100);
    expect(await page.innerText('#state')).toContain('first 100');
    const before = lists();
    await expect.poll(lists, { timeout: 30_000 }).toBeGreaterThan(before);
    expect(asked.length - lists()).toBe(100);
    expect(await gate.ledger.requests({ waiting: 1 })).toHaveLength(1);
    for (const waiting of [0, -1, 1.5, Number.NaN])
      await expect(gate.ledger.requests({ waiting })).rejects.toThrow(RangeError);
    expect(await gate.ledger.requests()).toHaveLength(101);
  });

  describe('with a passkey', () => {
    /** The page by a name: an RP id is a domain. */
    async function openNamed() {
      const { page, ...opened } = await open();
      await page.goto(page.url().replace('127.0.0.1', 'localhost'));
      const session = await page.context().newCDPSession(page);
      await session.send('WebAuthn.enable');
      const options = {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      } as const;
      const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', { options });
      const verifyUser = (isUserVerified: boolean) =>
        session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
      return { page, verifyUser, ...opened };
    }

    /** Makes a passkey on the page, and adds it for a principal. */
    async function addPasskey({ gate, page }: Pick<Awaited<ReturnType<typeof openNamed>>, 'gate' | 'page'>) {
      await page.click('summary');
      await page.fill('#name', 'Olga');
      await page.click('#make button');
      await page.waitForSelector('#made:not([hidden])');
      const { publicKey, webauthn } = parsePasskey(await page.innerText('#made'));
      const key = makeKeyEntry(publicKey, { principals: ['human:olga'], webauthn });
      await gate.ledger.append({ event: { event_type: 'key', action: 'add', key } });
      return key;
    }

    it('approves by it alone, after it was made there', async () => {
      const opened = await openNamed();
      const { gate, page, token, errors } = opened;
      const key = await addPasskey(opened);
      expect(key.webauthn).toMatchObject({ rp_id: 'localhost', origins: [new URL(page.url()).origin] });
      const call = { ref: 'c1', tool: 'fs.write', params: {}, reserve: { usd: '12.50' } };
      await gate.decide(call);
      await show(page, token);
      await page.click('[data-verb=approve]');
      await page.waitForSelector('article', { state: 'detached' });
      expect(await page.innerText('#state')).toContain('approved');
      expect((await gate.decide(call)).effect).toBe('allow');
      const [approval] = await recordsOf(gate, 'approval');
      expect(approval?.signatures.map(({ keyid }) => keyid)).toEqual([key.keyid]);
      const report = await verifyLedger(gate.ledger.path);
      expect(report.findings).toEqual([]);
      expect(report.approvals).toMatchObject([{ principal_id: 'human:olga', signers: [key.keyid] }]);
      expect(errors).toEqual([]);
    });

    it('rejects by it, and records nothing where its user was not verified', async () => {
      const opened = await openNamed();
      const { gate, page, token, verifyUser } = opened;
      await addPasskey(opened);
      await gate.decide({ ref: 'c1', tool: 'fs.write', params: {} });
      await show(page, token);
      await page.waitForSelector('article');
      await verifyUser(false);
      await page.click('[data-verb=reject]');
      await page.waitForSelector('#state:has-text("NotAllowedError"), #state:has-text("not allowed")');
      expect(await recordsOf(gate, 'approval')).toEqual([]);
      await verifyUser(true);
      await page.click('[data-verb=reject]');
      await page.waitForSelector('article', { state: 'detached' });
      expect((await gate.ledger.requests())[0]?.status).toBe('rejected');
    });

    it('refuses a token without it', async () => {
      const opened = await openNamed();
      const { gate, page, token } = opened;
      await addPasskey(opened);
      const { authorization } = await gate.decide({ ref: 'c1', tool: 'fs.write', params: {} });
      const path = `/v1/approvals/${encodeURIComponent(authorization)}/approve`;
      const response = await fetch(new URL(path, page.url()), {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: '{}',
      });
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ error: { code: 'NOT_ALLOWED' } });
      expect(await recordsOf(gate, 'approval')).toEqual([]);
    });
  });

  it('runs nothing but its own script', async () => {
    const { page, errors } = await open();
    await page.evaluate(
      "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))",
    );
    expect(await page.evaluate('window.ran')).toBeUndefined();
    expect(errors.join()).toContain('Content Security Policy');
  });
});
