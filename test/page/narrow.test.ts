/** The page on a telephone, and what its tables and dialogs tell first. */

import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AnyEvent } from '../../src/api/index.js';
import { execution, grant, int, unsigned, usd, action } from '../docs/grant-kit.js';
import { DIGEST, event } from '../docs/ledger-kit.js';
import { CHROMIUM } from '../platform/chromium.js';
import { TestBrowser, type OpenPage } from './browser.js';
import { mixedLedger } from './mixed-ledger.js';
import { makePage } from './support.js';

const PHONE = 390;

interface Box {
  readonly left: number;
  readonly right: number;
  readonly width: number;
  readonly height: number;
}

describe.skipIf(!existsSync(CHROMIUM))('the page in Chromium', () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await TestBrowser.launch();
  });
  afterAll(() => browser.close());

  const boxesOf = ({ page }: OpenPage, selector: string): Promise<readonly Box[]> =>
    page.evaluate(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].map((each) => each.getBoundingClientRect()).filter(({ width }) => width > 0).map(({ left, right, width, height }) => ({ left, right, width, height }))`,
    );

  describe('on a telephone', () => {
    let open: OpenPage;
    beforeAll(async () => {
      open = await browser.open((await makePage(mixedLedger())).html, { width: PHONE });
      await open.done();
    });
    afterAll(() => open.close());

    it('shows every cell of a grant without scrolling', async () => {
      const cells = await boxesOf(open, '.meters td');
      expect(cells.length).toBeGreaterThan(10);
      for (const { left, right } of cells) {
        expect(left).toBeGreaterThanOrEqual(0);
        expect(right).toBeLessThanOrEqual(PHONE);
      }
    });

    it('shows violations in the timeline, as large as on a wide screen', async () => {
      const marks = await boxesOf(open, '.mark.violations');
      expect(marks).toHaveLength(1);
      const [mark] = marks;
      expect(mark?.right).toBeLessThanOrEqual(PHONE);
      expect(mark?.width).toBeGreaterThan(8);
    });

    it('has the word Close on one line', async () => {
      await open.page.evaluate("location.hash = '#seq-4'");
      await open.page.locator('dialog[open] .close').waitFor();
      const [button] = await boxesOf(open, 'dialog .close');
      expect(button?.height).toBeLessThan(50);
      expect(button?.width).toBeGreaterThan(50);
    });
  });

  it('has no starts in the table of events, unless they are asked for', async () => {
    const given = grant();
    const act = action(given, 1);
    const start: AnyEvent = event('x.northroot.start', {
      intents: { intent_digest: DIGEST },
      auth_event_id: act.event_id,
      tool_name: 'fs.read',
      tool_params_digest: DIGEST,
      started_at: '2026-01-02T00:00:00Z',
      meter_known: [],
      recorder: 'A'.repeat(22),
    });
    const bytes = unsigned(given, act, start, execution(act, 1, { prev_event_id: start.event_id }));
    const open = await browser.open((await makePage(bytes)).html);
    await open.done();
    const { page } = open;
    const status = (text: string) => page.locator('#events-status', { hasText: text }).waitFor();
    await status('of 4');
    await page.selectOption('#events-kind', 'any');
    await status('of 5');
    await page.selectOption('#events-kind', 'start');
    await status('of 1');
    await page.selectOption('#events-kind', '');
    await page.fill('#events-search', 'x.northroot.start');
    await status('of 1');
    await page.close();
  });

  it('tells the worst of a record first', async () => {
    const given = grant();
    const tokens = [{ unit: 'tokens', amount: int(1) }, ...usd(11)];
    const bytes = unsigned(given, execution(given, 1, { meter_used: tokens }));
    const open = await browser.open((await makePage(bytes)).html, { hash: '#seq-2' });
    await open.done();
    await open.page.locator('dialog[open] .finding').first().waitFor();
    const shown = await open.page.locator('dialog .finding').allInnerTexts();
    expect(shown.map((text) => /[A-Z]+_[A-Z_]+/.exec(text)?.[0])).toEqual([
      'METER_CAP_EXCEEDED',
      'METER_UNCAPPED',
    ]);
    await open.close();
  });

  it('names a key without a name by whose it is', async () => {
    const { page } = await browser.open((await makePage(mixedLedger())).html, { hash: '#seq-2' });
    await page.locator('dialog[open]').waitFor();
    expect(await page.locator('dialog').innerText()).not.toContain('a key without a name');
    await page.close();
  });
});
