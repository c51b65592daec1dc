/** Writing the page: what it holds, and which bytes it has. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CASES, FIXTURES } from '../fixtures/cases.js';
import { Workshop } from '../cli/runner.js';
import { makeDemo } from './demo.js';
import { ledgerIn, makePage } from './support.js';

const demo = makeDemo();

describe('exportPage', () => {
  it('holds the very bytes of the ledger, of every file of it', async () => {
    expect(ledgerIn((await makePage(demo.bytes)).html).equals(demo.bytes)).toBe(true);
    const folder = CASES.find(({ ledger }) => !ledger.endsWith('.jsonl'))!.ledger;
    const { html, report } = await makePage(`${FIXTURES}${folder}`);
    expect(ledgerIn(html)).toHaveLength(report.ledger.bytes);
  });

  it('has the same bytes each time, and less than 380 kB beside the ledger', async () => {
    const empty = await makePage(new Uint8Array());
    expect((await makePage(new Uint8Array())).html).toBe(empty.html);
    expect(empty.html.length).toBeLessThan(380_000);
    expect((await makePage(demo.bytes)).html).toBe((await makePage(demo.bytes)).html);
  });

  it('takes no selection of records', async () => {
    const made = makePage(demo.bytes, { selection: { principal: 'agent:a1' } });
    await expect(made).rejects.toMatchObject({ name: 'NorthrootError', code: 'USAGE' });
  });

  it('allows nothing from outside, and no script but its own', async () => {
    const { html } = await makePage(demo.bytes);
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toMatch(/script-src 'sha256-\S+' 'sha256-\S+' 'wasm-unsafe-eval';/);
    expect(policy).not.toMatch(/'unsafe|\*|https?:|data:/);
    expect(html).not.toMatch(/<[^>]*\s(?:on[a-z]+|src|href)\s*=/i);
  });

  it('is what the command writes, with the exit status of verify', () => {
    const shop = new Workshop();
    const ledger = `${FIXTURES}broken/meter-cap-exceeded.jsonl`;
    const run = shop.run(['export', ledger, '--html', 'page.html']);
    expect(run.status).toBe(3);
    expect(ledgerIn(readFileSync(shop.path('page.html'), 'utf8'))).toEqual(readFileSync(ledger));
    expect(shop.run(['export', ledger, '--html', 'page.html', '--tool', 'x']).status).toBe(2);
  });

  it('is held against the witness policy that the command is given, as is every other export', () => {
    const shop = new Workshop();
    const policy = ['--witness-policy', `${FIXTURES}witness/two-of-three.policy`];
    const ledger = `${FIXTURES}broken/witness-quorum.jsonl`;
    const { status } = shop.run(['verify', ledger, ...policy]);
    expect(status).toBe(1);
    for (const kind of ['--html', '--dsse', '--bundle'])
      expect(shop.run(['export', ledger, kind, `out${kind}`, ...policy]).status).toBe(status);
    expect(shop.run(['export', ledger, '--dsse', 'without']).status).not.toBe(status);
  });
});
