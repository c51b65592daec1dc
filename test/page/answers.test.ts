/** What the page answers about ledgers of which something is missing, was not allowed, or is open. */

import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CASES, fixtureBytes } from '../fixtures/cases.js';
import { CHROMIUM } from '../platform/chromium.js';
import { TestBrowser, type OpenPage } from './browser.js';
import { makeDemo } from './demo.js';
import { mixedLedger } from './mixed-ledger.js';
import { makePage } from './support.js';

const isReady = existsSync(CHROMIUM) && existsSync(new URL('../../dist/page/core.js', import.meta.url));
const demo = makeDemo();

describe.skipIf(!isReady)('the answers of the page', () => {
  let browser: TestBrowser;
  let open: OpenPage;

  beforeAll(async () => {
    browser = await TestBrowser.launch();
    open = await browser.open((await makePage(demo.bytes)).html);
    await open.done();
  });
  afterAll(() => browser.close());

  const card = (question: string, { page }: OpenPage = open): Promise<string> =>
    page.locator('.answer', { has: page.locator('h2', { hasText: question }) }).innerText();

  describe('to whether anything is missing', () => {
    const lines = demo.bytes.toString('latin1').split('\n');
    const cut = Buffer.from(`${lines.slice(0, 180).join('\n')}\n`, 'latin1');
    const CUT =
      /Yes\. At least 11 records are missing at the end: the checkpoint kept\.txt covers 191, and the ledger has 180\. The chain of the records that are there has no gap/;

    it('of a ledger that was cut: how many are, by a checkpoint that was dropped', async () => {
      await open.choose(['cut.jsonl', cut]);
      expect(await card('missing')).toMatch(
        /That cannot be shown\.[^]*no checkpoint kept elsewhere was given/,
      );
      await open.choose(['kept.txt', demo.note]);
      expect(await card('missing')).toMatch(CUT);
      expect(await card('missing')).not.toMatch(/broken|no checkpoint kept/);
    });

    it('and by one that is in the page', async () => {
      const { html } = await makePage(cut, { checkpoints: [{ name: 'kept.txt', note: demo.note }] });
      const other = await browser.open(html);
      await other.done();
      expect(await card('missing', other)).toMatch(CUT);
      await other.page.close();
    });

    it('of a ledger that extends the checkpoint: nothing before it', async () => {
      await open.choose(['all.jsonl', demo.bytes], ['kept.txt', demo.note]);
      expect(await card('missing')).toMatch(
        /No\. All 191 records that the checkpoint kept\.txt covers are there/,
      );
    });

    it('of a fork: that others stood there, and not that the chain is broken', async () => {
      const { ledger, checkpoints = [] } = CASES.find(({ ledger: path }) => path === 'broken/forked.jsonl')!;
      const notes = checkpoints.map((path) => ['kept.txt', fixtureBytes(path)] as const);
      await open.choose(['forked.jsonl', fixtureBytes(ledger)], ...notes);
      expect(await card('missing')).toMatch(
        /Yes, or changed\. The first \d+ records? [^]*kept\.txt[^]*The chain of the records that are there has no gap/,
      );
    });

    it('of a broken chain: where', async () => {
      await open.choose(['p.jsonl', fixtureBytes('broken/prev-mismatch.jsonl')]);
      expect(await card('missing')).toMatch(/Yes, or changed\. The chain of records is broken[^]*#\d/);
    });
  });

  describe('of a ledger in which something was not allowed', () => {
    beforeAll(async () => {
      expect(await open.choose(['mixed.jsonl', mixedLedger()])).toMatchObject({ verdict: 'invalid' });
    });

    it('to whether all of it was: no, and who ran what for how much', async () => {
      expect(await card('allowed?')).toMatch(
        /No\.\s+1 execution was authorized by nothing:\s+#6 agent:a3 ran shell\.rm \(success; used 3 usd\)/,
      );
    });

    it('to what was spent: how much of it nothing authorized, and how much is by wrong records', async () => {
      expect(await card('spent')).toMatch(
        /3\.55 usd[^]*3 usd authorized by nothing\s+0\.35 usd by records in violation\s+3 usd by invalid records/,
      );
      expect(await card('spent')).toContain(
        'Not said to be measured, reported, billed or estimated: 3.2 usd',
      );
    });
  });
});
