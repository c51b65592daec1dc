/** The approvers' page in a browser: it shows who waits for what, and approves and rejects. */

import { existsSync } from 'node:fs';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { serveGate } from '../../src/gate/service/serve-gate.js';
import { makeToken, Tokens } from '../../src/gate/service/tokens.js';
import { filePlace } from '../agent/support.js';
import { CHROMIUM } from '../platform/chromium.js';
import { openGate } from './support.js';

const PHONE = { width: 390, height: 844 };

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

  it('runs nothing but its own script', async () => {
    const { page, errors } = await open();
    await page.evaluate(
      "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))",
    );
    expect(await page.evaluate('window.ran')).toBeUndefined();
    expect(errors.join()).toContain('Content Security Policy');
  });
});
