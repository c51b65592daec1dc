/** Bundles on the page, in a real Chromium: what it verifies of them, and that none of them looks like a ledger. */

import { existsSync } from 'node:fs';
import axe from 'axe-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attachContents } from '../../src/proof/bundle/disclose.js';
import { digestOf } from '../../src/proof/bundle/contents.js';
import { verifyBundle } from '../../src/proof/bundle/verify-bundle.js';
import { Engine } from '../../src/out/page/model/engine.js';
import type { JsonObject } from '../../src/base/json/value.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import { bundleOf, eventOf, exporter, seal, sealFixture } from '../bundle/support.js';
import { HOSTILE_STRINGS } from '../hostile-strings.js';
import { event, genesis, keyOf, ledger, makeSigner } from '../docs/ledger-kit.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { CHROMIUM } from '../platform/chromium.js';
import { linesOf } from '../verify/support.js';
import { TestBrowser, type NamedBytes, type OpenPage } from './browser.js';
import { hostileLedger } from './hostile-ledger.js';
import { makePage } from './support.js';

const run = sealFixture('ledgers/agent-run.jsonl');
const trust: NamedBytes = ['trust.json', Buffer.from(JSON.stringify(run.trust))];

describe('verifying a bundle', () => {
  it('lets others have their turn where there is no worker, and says how far it is', async () => {
    const { file } = await bundleOf(run.ledger, { checkpoint: run.note });
    const selected = { selection: { tool: 'web.search' } };
    for (const bundle of [file, (await bundleOf(run.ledger, { checkpoint: run.note, ...selected })).file]) {
      let time = 0;
      let pauses = 0;
      const told: number[] = [];
      const engine = new Engine({
        inflate: (packed) => Promise.resolve(packed),
        now: () => (time += 100),
        pause: () => {
          pauses += 1;
          return Promise.resolve();
        },
        onProgress: ({ bytes, size }) => {
          expect(size).toBe(bundle.length);
          told.push(bytes);
        },
      });
      const { result } = await engine.verifyBundle({
        name: 'audit.nrb',
        bundle: new Blob([Uint8Array.from(bundle)]),
        trust: undefined,
        witnessPolicy: undefined,
        checkpoints: [],
        now: undefined,
      });
      expect(pauses).toBe(result.records.held);
      expect(told).toHaveLength(result.records.held);
      expect(told.every((bytes, index) => bytes > (told[index - 1] ?? 0) && bytes <= bundle.length)).toBe(
        true,
      );
    }
  });
});

describe.skipIf(!existsSync(CHROMIUM))('a bundle on the page', () => {
  let browser: TestBrowser;
  let open: OpenPage;
  let selection: Buffer;
  let whole: Buffer;

  beforeAll(async () => {
    browser = await TestBrowser.launch();
    open = await browser.open((await makePage(fixtureBytes('ledgers/agent-run.jsonl'))).html);
    await open.done();
    const made = { checkpoint: run.note, signer: exporter };
    const chosen = { selection: { tool: 'web.search' }, complete: [{ from: 2, to: 12 }] };
    selection = (await bundleOf(run.ledger, { ...made, ...chosen })).file;
    whole = (await bundleOf(run.ledger, made)).file;
  });
  afterAll(() => browser.close());

  const open$ = (selector: string): Promise<number> => open.page.locator(selector).count();

  it('that holds a selection says so first, what that shows, and what not', async () => {
    const expected = await verifyBundle(selection, { trust: run.trust, name: 'audit.nrb' });
    expect(expected).toMatchObject({ verdict: 'ok', scope: 'selection' });
    const outcome = await open.verify([['audit.nrb', selection], trust]);
    expect(outcome.bundle).toEqual(expected);
    expect(outcome).toMatchObject({ verdict: 'ok', exit_status: 0 });
    expect(await open.done()).toEqual({ verdict: 'ok', exitStatus: '0', scope: 'selection' });
    expect(await open.text('.scope')).toMatch(/selection of records, not a ledger/);
    expect(await open.text('h1')).toContain('this selection of');
    expect(await open.page.title()).toContain('bundle audit.nrb');
    const codes = await open.page.locator('dl.not-checked dt').allInnerTexts();
    expect(codes).toEqual(expected.not_checked.map(({ code }) => code));
    expect(codes).toEqual(expect.arrayContaining(['SELECTION', 'BUDGETS', 'SINGLE_USE', 'ABSENCE']));
    expect(await open.text('.stretches [data-claim]')).toContain('seq 2..12');
    expect(await open.page.locator('.stretches [data-claim]').getAttribute('data-claim')).toBe(
      expected.stretches[0]?.claim,
    );
    // What only a ledger has.
    for (const id of ['spent', 'grants', 'timeline', 'tree']) expect(await open$(`#${id}`)).toBe(0);
    expect(await open$('.answers')).toBe(0);
    const anchors = await open.page.locator('nav.sections a').all();
    for (const anchor of anchors) {
      expect(await open$((await anchor.getAttribute('href')) ?? '')).toBe(1);
    }
  });

  it('has its records in the table, and of each why, as far as that goes', async () => {
    const { bundle: result } = await open.verify([['audit.nrb', selection], trust]);
    await open.page.locator('#events-status', { hasText: `of ${result?.records.held}` }).waitFor();
    const links = open.page.locator('table.events th a.record');
    const places = await links.allInnerTexts();
    expect(places.length).toBe(result?.records.held);
    expect(places.length).toBeLessThan(run.lines.length);
    expect(await open.page.locator('table.events th small').count()).toBe(result?.records.linked);
    const place = run.lines.findIndex((line) => {
      const { event_type: type, tool_name: tool } = eventOf(line);
      return type === 'execution' && tool === 'web.search';
    });
    await open.page.evaluate(`location.hash = '#seq-${place}'`);
    await open.page.locator('dialog[open] #why-title').waitFor();
    const { event_id: id } = eventOf(run.lines[place]) as { event_id: JsonObject };
    expect(await open.text('dialog')).toContain(`sha-256:${id['b64'] as string}`);
    expect(await open.text('dialog')).toContain('cannot be said');
    expect(await open.text('dialog')).not.toMatch(/→/);
    const absent = run.lines.findIndex((_, seq) => !places.includes(`#${seq}`));
    await open.page.evaluate(`location.hash = '#seq-${absent}'`);
    await open.page.locator('dialog h2', { hasText: 'no record' }).waitFor();
    await open.page.keyboard.press('Escape');
  });

  it('with a changed byte is invalid, and so is one that is cut off', async () => {
    const changed = Buffer.from(selection);
    const at = changed.indexOf('web.search');
    changed[at] = 0x78;
    const outcome = await open.verify([['audit.nrb', changed], trust]);
    expect(outcome).toMatchObject({ verdict: 'invalid', exit_status: 1 });
    expect(outcome.bundle?.problems.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['BUNDLE_DIGEST_MISMATCH', 'PROOF_INVALID']),
    );
    const shown = await open.page.locator('.problems code').allInnerTexts();
    expect(shown).toEqual(outcome.bundle?.problems.map(({ code }) => code));
    expect(await open$('table.events tr.invalid')).toBeGreaterThan(0);
    const cut = await open.verify([['audit.nrb', selection.subarray(0, 300)]]);
    expect(cut).toMatchObject({ verdict: 'invalid', exit_status: 1, bundle: { scope: 'none' } });
    expect(await open.done()).toMatchObject({ verdict: 'invalid', scope: 'none' });
    expect(await open$('table.events')).toBe(0);
  });

  it('of a whole ledger says up to where it goes, and no more', async () => {
    const outcome = await open.verify([['whole.nrb', whole], trust]);
    expect(outcome).toMatchObject({ verdict: 'ok', bundle: { scope: 'whole' } });
    expect(await open.text('.scope')).toContain('up to a checkpoint');
    expect(await open.page.locator('dl.not-checked dt').allInnerTexts()).toContain('AFTER_CHECKPOINT');
    expect(await open$('#spent')).toBe(0);
    expect(await open.text('.stretches')).toContain(`all ${run.lines.length} records`);
  });

  it('alone has nobody who vouches for its checkpoint, until a policy is dropped', async () => {
    expect(await open.choose(['audit.nrb', selection])).toMatchObject({
      verdict: 'undecided',
      exitStatus: '2',
    });
    expect(await open.choose(trust)).toMatchObject({ verdict: 'ok', scope: 'selection' });
    expect(await open.choose(['a.nrb', selection], ['b.nrb', whole])).toMatchObject({ verdict: 'undecided' });
    expect(await open.text('main')).toContain('one bundle at a time');
    expect(await open.choose(['ledger.jsonl', run.ledger])).toMatchObject({ agreement: 'other' });
    expect((await open.done()) as object).not.toHaveProperty('scope');
    expect(await open$('nav.sections a[href="#spent"]')).toBe(1);
  });

  it('shows which records name the contents that are attached', async () => {
    const signer = makeSigner();
    const content = Buffer.from('the report\n<script>globalThis.pwned=1</script>\u202e\u001b[2J');
    const note = event('x.note', { context_digest: sha256Digest(content) });
    const sealed = seal(
      linesOf(
        ledger({ event: genesis([keyOf(signer)]), signers: [signer] }, { event: note, signers: [signer] }),
      ),
    );
    const { file } = await bundleOf(sealed.ledger, { checkpoint: sealed.note });
    const attached = attachContents(file, [{ name: 'report', bytes: content }]);
    const policy: NamedBytes = ['trust.json', Buffer.from(JSON.stringify(sealed.trust))];
    const outcome = await open.verify([['notes.nrb', attached], policy]);
    expect(outcome).toMatchObject({ verdict: 'ok', bundle: { contents: [{ named_total: 1 }] } });
    expect(await open.text('.contents')).toContain(digestOf(content));
    expect(await open.page.locator('.contents a.record').getAttribute('href')).toBe('#seq-1');
    await open.page.locator('.contents summary').click();
    expect(await open.text('.contents pre')).toBe(
      'the report\n<script>globalThis.pwned=1</script>\\u{202e}\\u{1b}[2J',
    );
    expect(await open.text('.contents')).not.toContain('Not all of it is shown');
  });

  describe('with hostile texts in it', () => {
    const LONG = 'agent:' + 'a'.repeat(250);
    const names = [
      '</script><script>globalThis.pwned=1</script>.nrb',
      'javascript:globalThis.pwned=1',
      '\u202ebrn.tidua\u2066\u0007\u001b[2J.nrb',
      `${'long'.repeat(2_000)}.nrb`,
    ];

    it('runs, loads and obeys none of them, whatever it is called', async () => {
      const hostile = seal(linesOf(Buffer.from(hostileLedger(HOSTILE_STRINGS))));
      const policy: NamedBytes = ['trust.json', Buffer.from(JSON.stringify(hostile.trust))];
      const all = { from: 0, to: hostile.lines.length - 1 };
      const made = { checkpoint: hostile.note, signer: exporter };
      const bundles = [
        await bundleOf(hostile.ledger, made),
        await bundleOf(hostile.ledger, {
          ...made,
          selection: { principal: 'agent:*', tool: 't' },
          complete: [all],
        }),
      ];
      const other = await browser.open((await makePage(hostileLedger())).html);
      await other.done();
      for (const [index, name] of names.entries()) {
        const { file } = bundles[index % 2];
        const shown = await other.choose([name, file], policy);
        expect(shown.scope).toBe((await verifyBundle(file)).scope);
        const links = other.page.locator('table.events th a.record');
        for (let i = 1; i < 12; i += 4) {
          await links.nth(i).click();
          await other.page.locator('dialog[open] #why-title').waitFor();
          await other.page.keyboard.press('Escape');
        }
        expect(await other.page.content()).not.toMatch(
          /<img|<iframe|<svg onload|[\u202a-\u202e\u2066-\u2069\u0007\u001b]/,
        );
        expect(await other.page.title()).not.toMatch(/[\u202e\u2066\u0007\u001b]/);
        expect(await other.page.evaluate('document.scrollingElement.scrollWidth - innerWidth')).toBe(0);
      }
      expect(
        await other.page.locator('img, iframe, object, embed, link, [src], [href^=javascript]').count(),
      ).toBe(0);
      expect(await other.page.evaluate('[northroot.pwned, globalThis.pwned].join()')).toBe(',');
      expect({ requests: other.requests, errors: other.errors }).toEqual({ requests: [], errors: [] });
      await other.close();
    });

    it('of names as long as the format allows', async () => {
      const signer = makeSigner();
      const note = event('x.note', { principal_id: LONG });
      const entry = { ...keyOf(signer), name: 'k'.repeat(64) };
      const sealed = seal(
        linesOf(ledger({ event: genesis([entry]), signers: [signer] }, { event: note, signers: [signer] })),
      );
      const { file } = await bundleOf(sealed.ledger, { checkpoint: sealed.note });
      const narrow = await browser.open((await makePage(sealed.ledger)).html, { width: 360 });
      await narrow.done();
      const width = 'document.scrollingElement.scrollWidth - innerWidth';
      expect(await narrow.page.evaluate(width)).toBe(0);
      await narrow.choose(['long.nrb', file]);
      expect(await narrow.text('table.events')).toContain(LONG.slice(0, 150));
      expect(await narrow.page.evaluate(width)).toBe(0);
      await narrow.close();
    });
  });

  it('is verified beside the page where workers are refused', async () => {
    const beside = await browser.open((await makePage(fixtureBytes('ledgers/agent-run.jsonl'))).html, {
      first: 'globalThis.Worker = class { constructor() { throw new Error("refused"); } };',
    });
    await beside.done();
    expect(await beside.choose(['audit.nrb', selection], trust)).toMatchObject({ verdict: 'ok' });
    expect(beside.errors).toEqual([]);
    await beside.close();
  });

  it.each(['light', 'dark'] as const)(
    'can be used by everybody: axe-core finds nothing, %s',
    async (scheme) => {
      await open.page.emulateMedia({ colorScheme: scheme });
      for (const files of [
        [['audit.nrb', selection] as const, trust],
        [['audit.nrb', selection] as const],
        [['audit.nrb', selection.subarray(0, 300)] as const],
      ]) {
        await open.verify(files);
        await open.page.evaluate(axe.source);
        const { violations } = await open.page.evaluate<axe.AxeResults>(
          'axe.run(document, { resultTypes: ["violations"] })',
        );
        expect(
          violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`)),
        ).toEqual([]);
      }
    },
  );

  it('asks the network for nothing', () => {
    expect({ requests: open.requests, errors: open.errors }).toEqual({ requests: [], errors: [] });
  });
});
