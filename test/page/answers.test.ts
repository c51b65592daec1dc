/** What the page answers about ledgers of which something is missing, was not allowed, or is open. */

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { CASES, fixtureBytes } from '../fixtures/cases.js';
import { CHROMIUM } from '../platform/chromium.js';
import { anchorOf } from '../docs/grant-kit.js';
import { makeSigner } from '../docs/ledger-kit.js';
import { TestBrowser, type OpenPage } from './browser.js';
import { makeDemo } from './demo.js';
import { mixedLedger } from './mixed-ledger.js';
import { makePage } from './support.js';

const demo = makeDemo();

describe.skipIf(!existsSync(CHROMIUM))('the answers of the page', () => {
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

  it('say who approved what, and what was stopped and still ran', async () => {
    const other = await browser.open(
      (await makePage(fixtureBytes('ledgers/approvals-and-revocations.jsonl'))).html,
    );
    await other.done();
    const approved = await card('Who approved what?', other);
    expect(approved).toContain('All that had to be approved was.');
    expect(approved).toMatch(/#2 human:ada: fs\.read, used by #6\s+#4 human:ada: fs\.read, used by #8/);
    const stopped = await card('What was stopped?', other);
    expect(stopped).toContain('grant suspended, allowed actions may finish: ON_CALL, of #1');
    expect(stopped).toMatch(
      /#10 .*grant revoked, allowed actions stop: ON_CALL, of #1; 1 execution recorded after it: #11/,
    );
    expect(await other.text('main')).toMatch(
      /Revoked: out of force since #10\.\s+Needs approval: \*: 1 of human:\*/,
    );
    await other.close();
  });

  it('say nothing of approvals and revocations where there are none', async () => {
    expect(await open.text('main')).not.toMatch(/Who approved what|What was stopped/);
  });

  describe('before anything is verified', () => {
    // A worker that never answers: as the page is when somebody prints it at once.
    const first =
      'globalThis.Worker = class { postMessage() {} terminate() {} set onerror(_) {} set onmessage(_) {} };';

    it('show the exporter’s verdict as that and never as its own', async () => {
      const { html } = await makePage(mixedLedger());
      const other = await browser.open(html, { first });
      const text = await other.text('main');
      expect(text).toContain('As exported, not yet verified in this browser');
      expect(text).toMatch(/says invalid:[^]*AUTH_NOT_FOUND #6/);
      expect(text).not.toMatch(/Verified (?:just )?now|says the same/);
      expect(await other.page.evaluate("document.getElementById('main').dataset.verdict")).toBeUndefined();
      expect(await other.page.title()).toMatch(/^verifying/);
      await other.close();
    });

    it('show nothing of a report that cannot be read, and nothing of it when they are done', async () => {
      const { html } = await makePage(mixedLedger());
      const damaged = await browser.open(html.replace('"report":{', '"report":7,"was":{'), { first });
      expect(await damaged.text('main')).toContain('Verifying in this browser');
      expect(await damaged.text('main')).not.toContain('As exported');
      await damaged.close();
      const other = await browser.open(html);
      await other.done();
      expect(await other.text('main')).not.toContain('As exported');
      await other.close();
    });
  });

  describe('of a file that is no ledger', () => {
    const NOTE = Buffer.from(demo.note).toString();
    const LIKELY: [string, string, string][] = [
      ['costs.csv', 'seq,tool,usd\n1,llm.chat,0.1\n', 'a table in CSV'],
      ['letter.txt', 'Dear all,\nsee below\n', 'a text'],
      ['package.json', '{\n  "name": "x",\n  "require": {}\n}\n', 'JSON of another kind'],
      ['one.json', '{"a":1}', 'JSON of another kind'],
    ];
    const FILES: [string, string][] = [
      ['key.pub', '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n'],
      ['half.checkpoint', NOTE.slice(0, -20)],
      ['no-root.checkpoint', NOTE.replace(/\n[^\n]{43}=\n/, '\n')],
    ];

    it.each(LIKELY)('%s: what it most likely is, and no verdict', async (name, text, kind) => {
      const shown = await open.choose([name, Buffer.from(text)]);
      expect(shown).toMatchObject({ verdict: 'undecided', exitStatus: '2' });
      expect(await open.text('main')).toContain(`is not a ledger: it looks like ${kind}`);
      expect(await open.text('main')).not.toMatch(/records|Evidence/);
    });

    it.each(FILES)('%s: what it is, as the command line says, and no verdict', async (name, text) => {
      const bytes = Buffer.from(text);
      const shown = await open.choose([name, bytes]);
      expect(shown).toMatchObject({ verdict: 'undecided', exitStatus: '2' });
      const isNote = name.endsWith('.checkpoint');
      const path = join(browser.folder, name);
      writeFileSync(path, bytes);
      const ledger = isNote ? demo.bytes : path;
      const options = isNote ? { checkpoints: [{ name, note: bytes }] } : {};
      const refusal: unknown = await verifyLedger(ledger, options).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: isNote ? 'NOTE_MALFORMED' : 'NOT_A_LEDGER' });
      const { message } = refusal as Error;
      expect(await open.text('main')).toContain(message.slice(message.indexOf(' is not ')));
      expect(await open.text('main')).not.toMatch(/records|Evidence/);
    });
  });

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
      await other.close();
    });

    it('of a ledger that extends the checkpoint: nothing before it', async () => {
      await open.choose(['all.jsonl', demo.bytes], ['kept.txt', demo.note]);
      expect(await card('missing')).toMatch(
        /Up to seq 190: No\. All 191 records that the checkpoint kept\.txt covers are there/,
      );
    });

    it('of one that grew after it: up to there, and no further', async () => {
      const { origin } = (await verifyLedger(demo.bytes)).ledger;
      const checkpoints = [anchorOf(demo.bytes, makeSigner(), 100, origin ?? '')];
      const { html } = await makePage(demo.bytes, { checkpoints });
      const other = await browser.open(html);
      await other.done();
      expect(await card('missing', other)).toMatch(
        /Up to seq 99: No\. All 100 records [^]*134 records are there/,
      );
      await other.close();
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

    it('with what went over by how much, and the grant as a link', async () => {
      expect(await card('allowed?')).toMatch(
        /1 record went beyond what was allowed:[^]*#4 agent:a3, fs\.write: 0\.05 usd over the cap of 0\.5 in grant #1, signed by Bob/,
      );
      const finding = open.page.locator('.findings li', { hasText: 'ACTION_CAP_EXCEEDED' });
      expect(await finding.innerText()).toMatch(
        /agent:a3, fs\.write: 0\.15 usd over the 0\.2 that one action may use under grant #1, signed by Bob/,
      );
      expect(await finding.innerText()).not.toContain('sha-256:');
      expect(await finding.locator('a[href="#seq-1"]').count()).toBe(1);
    });

    it('with what one action may use at most, and that delegated use counts', async () => {
      const grant = open.page.locator('.grants > .grant');
      expect(await grant.locator('table').first().innerText()).toMatch(
        /At most in one action[^]*usd\s[^]*-0\.05\s[^]*0\.5\s+0\.2/,
      );
      expect(await grant.innerText()).toContain('includes that of the grants delegated from it');
    });

    it('with the open action as a link to a record that says so', async () => {
      expect(await card('missing')).toContain('1 allowed action is open, without an execution: #5');
      await open.page.evaluate("location.hash = '#seq-5'");
      await open.page.locator('dialog[open] h2', { hasText: '#5' }).waitFor();
      expect(await open.text('dialog')).toContain('no execution of it is recorded');
      await open.page.keyboard.press('Escape');
    });

    it('with the numbers in the tree told of what', async () => {
      expect(await open.text('.tree')).toContain('signed by Bob; 4 records under it');
    });

    it('with words that are explained, and are those of the report', async () => {
      await open.page.getByText('What the words on this page mean').click();
      for (const word of ['Self-declared', 'To seal', 'Basis', 'Denied', 'Blocked', 'In violation'])
        expect(await open.text('details.words')).toContain(word);
      expect(await open.text('.answers')).toContain('What was denied?');
      expect(await open.text('main')).not.toMatch(/breaks? a bound|Not between/);
    });
  });
});
