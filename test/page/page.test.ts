/** The exported page in a real Chromium: its verdicts, what it shows, what it never does, and whether everybody can use it. */

import { existsSync, readdirSync } from 'node:fs';
import axe from 'axe-core';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CASES, findingsOf, FIXTURES, fixtureBytes, optionsOf, type LedgerCase } from '../fixtures/cases.js';
import { parseWitnessPolicy } from '../../src/rules/trust/witness-policy.js';
import { CHROMIUM } from '../platform/chromium.js';
import { TestBrowser, type NamedBytes, type OpenPage } from './browser.js';
import { makeDemo } from './demo.js';
import { HOSTILE_STRINGS } from '../hostile-strings.js';
import { sample } from '../slow.js';
import { hostileLedger, HOSTILE } from './hostile-ledger.js';
import { ledgerIn, makePage, withLedger } from './support.js';

const demo = makeDemo();

/** The last name in a path. */
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

describe.skipIf(!existsSync(CHROMIUM))('the page in Chromium', () => {
  let browser: TestBrowser;
  let demoPage = '';

  beforeAll(async () => {
    browser = await TestBrowser.launch();
    demoPage = (await makePage(demo.bytes)).html;
  });
  afterAll(() => browser.close());

  describe('verifies what it is given', () => {
    let open: OpenPage;

    beforeAll(async () => {
      open = await browser.open(demoPage);
      await open.done();
    });

    function filesOf({
      ledger,
      trust,
      witness_policy: witnesses,
      checkpoints = [],
    }: LedgerCase): NamedBytes[] {
      const isFile = ledger.endsWith('.jsonl');
      const names = isFile
        ? [ledger]
        : readdirSync(`${FIXTURES}${ledger}`).map((name) => `${ledger}/${name}`);
      return [...names, ...[trust, witnesses, ...checkpoints].filter((path) => path !== undefined)].map(
        (path) => [nameOf(path), fixtureBytes(path)],
      );
    }

    // The page is given no parents.
    it.each(
      sample(
        CASES.filter(({ parents }) => parents === undefined),
        6,
      ),
    )('$ledger $trust $witness_policy $checkpoints $predecessor $now', async (fixture) => {
      const { predecessor, now, ledger } = fixture;
      const outcome = await open.verify(filesOf(fixture), {
        now,
        predecessor: predecessor === undefined ? undefined : [nameOf(predecessor), fixtureBytes(predecessor)],
      });
      expect(outcome).toMatchObject({ verdict: fixture.verdict, exit_status: fixture.exit_status });
      const path = ledger.endsWith('.jsonl') ? nameOf(ledger) : 'segments';
      // Files that are chosen have no folder.
      const expected = fixture.findings.map((finding) =>
        finding.file === undefined ? finding : { ...finding, file: nameOf(finding.file) },
      );
      expect(findingsOf(outcome.report!, path)).toEqual(expected);
      expect((await open.done()).verdict).toBe(fixture.verdict);
    });

    it('a chosen ledger, and after it a policy that its keys do not meet', async () => {
      const ledger = fixtureBytes('ledgers/agent-run.jsonl');
      expect(await open.choose(['other.jsonl', ledger])).toMatchObject({ verdict: 'ok', agreement: 'other' });
      const policy = {
        trust_version: '1',
        origins: ['example.com/agents/report'],
        keys: [],
        require: { event_signatures: 'required' },
      };
      const shown = await open.choose(['trust.json', Buffer.from(JSON.stringify(policy))]);
      expect(shown).toMatchObject({ verdict: 'invalid', exitStatus: '1' });
    });

    it('what is no ledger with exit status 2, and says why', async () => {
      const shown = await open.choose(['key.pem', Buffer.from('-----BEGIN PRIVATE KEY-----\n')]);
      expect(shown).toMatchObject({ verdict: 'undecided', exitStatus: '2' });
      expect(await open.text('main')).toContain('private key');
    });

    it('without asking the network for anything, or being refused anything', () => {
      expect({ requests: open.requests, errors: open.errors }).toEqual({ requests: [], errors: [] });
    });
  });

  describe('holds its verdict against the exporter’s', () => {
    it('and says so where they are the same', async () => {
      const open = await browser.open(demoPage);
      expect(await open.done()).toEqual({ verdict: 'violation', exitStatus: '3', agreement: 'same' });
      await open.close();
    });

    it.each(
      sample(
        CASES.filter(
          ({ ledger, predecessor, parents }) =>
            predecessor === undefined && parents === undefined && !ledger.includes('pipeline'),
        ).filter((_, i) => i % 40 === 7),
        6,
      ),
    )('for $ledger $trust $checkpoints', async (fixture) => {
      const { trust, checkpoints = [], now } = optionsOf(fixture);
      const { html, report } = await makePage(`${FIXTURES}${fixture.ledger}`, {
        trust,
        checkpoints,
        ...(now === undefined ? {} : { now }),
      });
      expect(report.verdict).toBe(fixture.verdict);
      const open = await browser.open(html);
      expect(await open.done()).toMatchObject({ verdict: fixture.verdict, agreement: 'same' });
      await open.close();
    });

    const WITNESSED = CASES.filter(
      ({ witness_policy: policy, predecessor }) => policy !== undefined && predecessor === undefined,
    );

    it.each(sample(WITNESSED, 3))(
      'with the witness policy that it was exported with: $ledger',
      async (fixture) => {
        const { html, report } = await makePage(`${FIXTURES}${fixture.ledger}`, optionsOf(fixture));
        expect(report.verdict).toBe(fixture.verdict);
        const open = await browser.open(html);
        expect(await open.done()).toMatchObject({ verdict: fixture.verdict, agreement: 'same' });
        expect(await open.text('.hero')).toContain('witness policy');
        await open.close();
      },
    );

    it('with a witness policy of unknown keys; and not with one that was damaged', async () => {
      const [{ ledger, witness_policy: path } = {}] = WITNESSED;
      const text = fixtureBytes(path!).toString();
      const unknown = `${text}witness old old.example+00000000+AgAA\n`;
      const witnessPolicy = parseWitnessPolicy(Buffer.from(unknown));
      expect(witnessPolicy.skipped).toHaveLength(1);
      const { html, report } = await makePage(`${FIXTURES}${ledger}`, { witnessPolicy });
      const open = await browser.open(html);
      expect(await open.done()).toMatchObject({ verdict: report.verdict, agreement: 'same' });
      await open.close();
      const damaged = await browser.open(html.replace('"witnesses":[', '"witnesses":7,"was":['));
      expect(await damaged.done()).toMatchObject({ verdict: 'undecided', exitStatus: '2' });
      expect(await damaged.text('main')).toContain('witness policy');
      await damaged.close();
    });

    it('of a ledger that was tampered with before the export: both find it', async () => {
      const text = demo.bytes.toString('latin1').replace('"usd"}', '"eur"}');
      const open = await browser.open((await makePage(Buffer.from(text, 'latin1'))).html);
      expect(await open.done()).toEqual({ verdict: 'invalid', exitStatus: '1', agreement: 'same' });
      await open.close();
    });

    it('of a ledger that was tampered with after the export: they differ, and it says so', async () => {
      const bytes = ledgerIn(demoPage);
      expect(bytes.equals(demo.bytes)).toBe(true);
      const tampered = Buffer.from(bytes.toString('latin1').replace('"usd"}', '"eur"}'), 'latin1');
      const open = await browser.open(withLedger(demoPage, tampered));
      expect(await open.done()).toEqual({ verdict: 'invalid', exitStatus: '1', agreement: 'differs' });
      expect(await open.page.locator('.agreement.differs[role=alert]').count()).toBe(1);
      expect(await open.text('.answers')).toMatch(/cannot be relied on[^]*\d grants? (?:is|are) not counted/);
      await open.close();
    });

    it('of a ledger whose end was cut off after the export, and of another report', async () => {
      const lines = demo.bytes.toString().split('\n');
      const cut = Buffer.from(`${lines.slice(0, 180).join('\n')}\n`);
      const size = (html: string): string => html.replace(/"bytes":\d+\}\]/, `"bytes":${cut.length}}]`);
      for (const html of [
        size(withLedger(demoPage, cut)),
        demoPage.replace('"verdict":"violation"', '"verdict":"ok"'),
      ]) {
        const open = await browser.open(html);
        expect((await open.done()).agreement).toBe('differs');
        await open.close();
      }
    });
  });

  describe('given what it cannot use', () => {
    const policy = Buffer.from('{"trust_version":"1","origins":["a.example/x"],"keys":7}');
    const otherCheckpoint = CASES.flatMap(({ checkpoints = [] }) => checkpoints)[0];
    const WRONG: [string, NamedBytes[]][] = [
      ['an archive', [['ledger.zip', Buffer.from('PK\x03\x04\x14\0\0\0\x08\0')]]],
      [
        'two ledgers',
        [
          ['a.jsonl', demo.bytes],
          ['b.jsonl', demo.bytes],
        ],
      ],
      ['an invalid policy', [['trust.json', policy]]],
      ['nothing', [['empty.jsonl', Buffer.alloc(0)]]],
    ];

    it.each(WRONG)('%s: says so, takes nothing for verified, and goes back', async (_, files) => {
      const open = await browser.open(demoPage);
      await open.done();
      expect(await open.choose(...files)).toMatchObject({ verdict: 'undecided', exitStatus: '2' });
      expect(await open.page.title()).toMatch(/^undecided/);
      expect(await open.text('.subject')).not.toContain('ledger.jsonl');
      await open.page.evaluate("document.documentElement.dataset.state = 'asked'");
      await open.page.getByRole('button', { name: 'Back' }).click();
      expect(await open.done()).toMatchObject({ verdict: 'violation', agreement: 'same' });
      expect({ requests: open.requests, errors: open.errors }).toEqual({ requests: [], errors: [] });
      await open.close();
    });

    it('a checkpoint of another log: invalid', async () => {
      const open = await browser.open(demoPage);
      await open.done();
      const shown = await open.choose(['other.txt', fixtureBytes(otherCheckpoint ?? '')]);
      expect(shown).toMatchObject({ verdict: 'invalid', exitStatus: '1' });
      await open.close();
    });

    it('forgets a policy that could not be used', async () => {
      const open = await browser.open(demoPage);
      await open.done();
      expect(await open.choose(['trust.json', policy])).toMatchObject({ verdict: 'undecided' });
      expect(await open.choose(['kept.checkpoint', demo.note])).toMatchObject({ verdict: 'violation' });
      await open.close();
    });

    it('a folder: says to give its files', async () => {
      const open = await browser.open(demoPage);
      await open.done();
      const session = await open.page.context().newCDPSession(open.page);
      await open.page.evaluate("document.documentElement.dataset.state = 'asked'");
      const data = { items: [], files: [browser.folder], dragOperationsMask: 1 };
      for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
        await session.send('Input.dispatchDragEvent', { type, x: 300, y: 300, data });
      expect(await open.done()).toMatchObject({ verdict: 'undecided' });
      expect(await open.text('main')).toContain('give the files in it');
      await open.close();
    });
  });

  describe('given something while it is at work', () => {
    it('shows what was given last, and never the verdict of what was before', async () => {
      const open = await browser.open(demoPage, { hash: '#seq-17' });
      await open.done();
      await open.page.locator('dialog[open] #why-title').waitFor();
      const ok = fixtureBytes('ledgers/agent-run.jsonl');
      const first = open.verify([['slow.jsonl', demo.bytes]]);
      await open.choose(['other.jsonl', ok]);
      expect(await first).toMatchObject({ verdict: expect.stringMatching(/undecided|violation/) as string });
      // The first may have ended before the second was read: what was shown then is replaced.
      await open.page.locator('html[data-state=done] #main[data-verdict=ok]').waitFor();
      expect(await open.done()).toMatchObject({ verdict: 'ok' });
      expect(await open.text('.subject')).toBe('other.jsonl');
      expect(await open.page.title()).toMatch(/^ok: other\.jsonl/);
      // A record of the ledger before is not taken for one of this.
      expect(await open.page.locator('dialog[open]').count()).toBe(0);
      await open.close();
    });

    it('says no verdict until it has one', async () => {
      const open = await browser.open(demoPage);
      await open.done();
      const shown = await open.page.evaluate(
        "(document.querySelector('header button').click(), [document.title, document.getElementById('main').dataset.verdict].join())",
      );
      expect(shown).toMatch(/^verifying[^,]*,$/);
      expect(await open.done()).toMatchObject({ verdict: 'violation' });
      await open.close();
    });

    it('keeps a refusal that came while something else was verified', async () => {
      const open = await browser.open(demoPage);
      await open.done();
      const running = open.verify([['slow.jsonl', demo.bytes]]);
      await open.choose(['a.jsonl', demo.bytes], ['b.jsonl', demo.bytes]);
      await running;
      expect(await open.done()).toMatchObject({ verdict: 'undecided' });
      expect(await open.text('h1')).toContain('could not be verified');
      await open.close();
    });
  });

  it('shows its own verdict where the exporter’s report cannot be read', async () => {
    const open = await browser.open(demoPage.replace('"report":{', '"report":7,"was":{'));
    expect(await open.done()).toEqual({ verdict: 'violation', exitStatus: '3', agreement: 'differs' });
    await open.close();
  });

  it('verifies beside the page where workers are refused', async () => {
    const open = await browser.open(demoPage, {
      first: 'globalThis.Worker = class { constructor() { throw new Error("refused"); } };',
    });
    expect(await open.done()).toEqual({ verdict: 'violation', exitStatus: '3', agreement: 'same' });
    expect(open.errors).toEqual([]);
    await open.close();
  });

  describe('shows hostile texts as texts', () => {
    it('in every part of the page, and runs, loads and obeys none of them', async () => {
      const { html } = await makePage(hostileLedger(HOSTILE_STRINGS));
      const open = await browser.open(html);
      await open.done();
      const count = await open.page.locator('#events-status').innerText();
      expect(count).toContain('Records 1 to');
      for (const link of await open.page.locator('table.events a.record').all()) {
        await link.dispatchEvent('click');
        await open.page.locator('dialog[open] #why-title').waitFor();
        await open.page.keyboard.press('Escape');
      }
      for (const text of HOSTILE.slice(0, 3)) expect(await open.page.content()).not.toContain(text);
      expect(await open.text()).toContain('<img src=x onerror=');
      await open.choose(['<img src=x onerror=northroot.pwned=1>.jsonl', hostileLedger(HOSTILE_STRINGS)]);
      expect(await open.text('.subject')).toContain('<img src=x');
      expect(
        await open.page.evaluate('northroot.pwned === undefined && globalThis.pwned === undefined'),
      ).toBe(true);
      expect(await open.page.locator('img, iframe, object, embed, link').count()).toBe(0);
      expect({ requests: open.requests, errors: open.errors }).toEqual({ requests: [], errors: [] });
      await open.close();
    });

    it('would be refused by its policy to run, load or inject anything', async () => {
      const open = await browser.open(demoPage);
      await open.done();
      const attempts = [
        `fetch('https://example.com/').then(() => 'done', () => 'refused')`,
        `new Promise((resolve) => { const i = new Image(); i.onload = () => resolve('done'); i.onerror = () => resolve('refused'); i.src = 'https://example.com/x.png'; })`,
        `(() => { try { document.body.innerHTML = '<b>x</b>'; return 'done'; } catch { return 'refused'; } })()`,
        `new Promise((resolve) => { const s = document.createElement('script'); try { s.textContent = 'globalThis.pwned = 1'; document.body.append(s); } catch {} resolve(globalThis.pwned === 1 ? 'done' : 'refused'); })`,
      ];
      for (const attempt of attempts) expect(await open.page.evaluate(attempt)).toBe('refused');
      await open.close();
    });
  });

  describe('can be used by everybody', () => {
    async function findFaults({ page }: OpenPage, rules?: readonly string[]): Promise<string[]> {
      await page.evaluate(axe.source);
      const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) };
      const { violations } = await page.evaluate<axe.AxeResults>(
        `axe.run(document, ${JSON.stringify(options)})`,
      );
      return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
    }

    it.each(['light', 'dark'] as const)('axe-core finds nothing, %s', async (colorScheme) => {
      const open = await browser.open(demoPage, { colorScheme });
      // Nothing but colours is another in the dark.
      const rules = colorScheme === 'dark' ? ['color-contrast', 'link-in-text-block'] : undefined;
      await open.done();
      await open.page.locator('.tree .act .toggle').first().click();
      await open.page.locator('.tree .act .branch li').first().waitFor();
      expect(await findFaults(open, rules)).toEqual([]);
      await open.page.evaluate("location.hash = '#seq-189'");
      await open.page.locator('dialog[open] #why-title').waitFor();
      expect(await findFaults(open, rules)).toEqual([]);
      await open.close();
    });

    it('axe-core finds nothing in pages of ledgers that are ok, invalid and empty', async () => {
      for (const ledger of [
        fixtureBytes('ledgers/agent-run.jsonl'),
        demo.bytes.subarray(0, 50_000),
        new Uint8Array(),
      ]) {
        const open = await browser.open((await makePage(ledger)).html);
        await open.done();
        expect(await findFaults(open)).toEqual([]);
        await open.close();
      }
    });

    it('by keyboard: to the verdict, to a record, and back', async () => {
      const open = await browser.open(demoPage);
      await open.done();
      const { page } = open;
      const focused = (): Promise<string> =>
        page.evaluate('document.activeElement.id || document.activeElement.textContent');
      await page.keyboard.press('Tab');
      expect(await focused()).toBe('Skip to the verdict');
      await page.keyboard.press('Enter');
      expect(await focused()).toBe('main');
      const order: string[] = [];
      for (let i = 0; i < 6; i++) {
        await page.keyboard.press('Tab');
        order.push(await focused());
      }
      expect(order).toEqual(['Who spent it', '#189', 'grant #2', '#190', 'Findings', 'Who let whom act']);
      await page.locator('.answer a.record', { hasText: '#189' }).focus();
      await page.keyboard.press('Enter');
      await page.locator('dialog[open] #why-title').waitFor();
      expect(await focused()).toBe('why-title');
      expect(await open.text('dialog')).toContain('METER_CAP_EXCEEDED');
      await page.keyboard.press('Escape');
      expect(await focused()).toBe('#189');
      await page.close();
    });

    it('opens the record that the address names, and says where there is none', async () => {
      const open = await browser.open(demoPage, { hash: '#seq-17' });
      await open.done();
      await open.page.locator('dialog[open] #why-title').waitFor();
      expect(await open.text('dialog h2')).toContain('#17');
      await open.page.evaluate("location.hash = '#seq-99999'");
      await open.page.locator('dialog h2', { hasText: 'no record' }).waitFor();
      await open.close();
    });

    it('at 200 % and on a small screen nothing but tables and pictures has to be scrolled sideways', async () => {
      for (const width of [640, 360]) {
        const open = await browser.open(demoPage, { width });
        await open.done();
        expect(
          await open.page.evaluate('document.scrollingElement.scrollWidth - innerWidth'),
        ).toBeLessThanOrEqual(0);
        await open.close();
      }
    });

    it('in print: what is for a screen alone is left out', async () => {
      const open = await browser.open(demoPage);
      await open.done();
      await open.page.emulateMedia({ media: 'print' });
      expect(await open.page.locator('nav.sections').isVisible()).toBe(false);
      expect(await open.page.locator('.filters').isVisible()).toBe(false);
      expect(await open.page.locator('#verdict-title').isVisible()).toBe(true);
      expect(await open.page.locator('.grant').first().isVisible()).toBe(true);
      await open.page.close();
    });
  });

  describe('answers an auditor’s questions', () => {
    let open: OpenPage;

    beforeAll(async () => {
      open = await browser.open(demoPage);
      await open.done();
    });
    afterAll(() => open.close());

    it('in its first lines', async () => {
      const cards = await open.page.locator('.answer').allInnerTexts();
      expect(cards[0]).toContain('19.41 usd');
      expect(cards[1]).toMatch(/^Was all of it allowed\?\s+No\./);
      expect(cards[2]).toContain('Mira (lead) signed 2 grants for agent:research and agent:publisher');
      expect(cards[3]).toContain('4 actions denied');
      expect(cards[3]).toMatch(/agent:research: mail\.send #67[^]*agent:summary: web\.fetch, blocked #137/);
      expect(cards[4]).toContain('seals the 191 records before it; nothing seals the 42 after it');
    });

    it('with one bar for each capped unit, delegated grants inside', async () => {
      expect(await open.page.locator('.grant').count()).toBe(3);
      expect(await open.page.locator('.grant .grant').count()).toBe(1);
      const label = await open.page.locator('svg.meter').first().getAttribute('aria-label');
      expect(label).toBe('usd: 16.15 used and 0.32 reserved of 20, 3.53 left');
      expect(await open.page.locator('svg.burn').count()).toBe(8);
    });

    it('with a tree from the granter to what was done, each with its signer', async () => {
      const { page } = open;
      const top = page.locator('.tree > .branch > ul > li > .node');
      expect(await top.count()).toBe(1);
      expect(await top.first().innerText()).toMatch(
        /^Mira \(lead\) signed 2 grants\s+key \S{16}… may grant, .*change keys for everybody/,
      );
      const below = (of: string): Locator =>
        page.locator('.tree .node', { has: page.locator(`> a[href="#seq-${of}"]`) });
      const path: [string, string][] = [
        ['1', 'Mira (lead)'],
        ['3', 'research agent'],
        ['32', 'gateway'],
      ];
      for (const [seq, signer] of path) {
        expect(await below(seq).last().innerText()).toContain(`signed by ${signer}`);
        await below(seq).last().locator('> .toggle').click();
      }
      // What was delegated stands before what was allowed.
      expect(await below('1').last().locator('> .branch li').first().innerText()).toContain('agent:summary');
      expect(await below('33').last().innerText()).toMatch(/ran llm\.chat #33 .*signed by gateway/);
    });

    it('with granters that are not known told apart', async () => {
      const [first = '', grant = '', ...rest] = demo.bytes.toString('latin1').split('\n');
      const forged = [first, grant.replace(/"sig":"./, '"sig":"_'), ...rest].join('\n');
      const other = await browser.open((await makePage(Buffer.from(forged, 'latin1'))).html);
      await other.done();
      await other.page.locator('.granter').first().waitFor();
      expect(await other.text('.granter.unknown')).toMatch(/^Granter not known 1 grant\b/);
      expect(await other.text('.granter.known')).toMatch(/^Mira \(lead\) signed 1 grant\b/);
      await other.close();
    });

    it('with a table that is searched and filtered', async () => {
      const { page } = open;
      await page.selectOption('#events-verdict', 'refused');
      await page.locator('#events-status', { hasText: 'of 5' }).waitFor();
      await page.selectOption('#events-verdict', '');
      await page.fill('#events-search', 'social.post');
      await page.locator('#events-status', { hasText: 'of 1' }).waitFor();
      expect(await page.locator('table.events tbody tr').count()).toBe(1);
      await page.fill('#events-search', '');
      await page.locator('#events-status', { hasText: 'of 234' }).waitFor();
      await page.getByRole('button', { name: 'Next' }).click();
      await page.locator('#events-status', { hasText: 'Records 51 to 100' }).waitFor();
    });

    it('with what an event did to the grants above it', async () => {
      await open.page.evaluate("location.hash = '#seq-189'");
      await open.page.locator('dialog[open] #why-title').waitFor();
      expect(await open.text('dialog')).toMatch(/2\.16 → 3\.26/);
    });
  });
});
