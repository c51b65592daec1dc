/** Writing the page: what it holds, and which bytes it has. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isExact, NativeSignatures, type HostCrypto } from '../../src/out/page/model/native-signatures.js';
import { runVerification } from '../../src/rules/verify/run-verification.js';
import { bytesSource } from '../bytes-source.js';
import { CASES, fixtureBytes, FIXTURES, optionsOf } from '../fixtures/cases.js';
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

  it('has the same bytes each time, and less than 420 kB beside the ledger', async () => {
    const empty = await makePage(new Uint8Array());
    expect((await makePage(new Uint8Array())).html).toBe(empty.html);
    expect(empty.html.length).toBeLessThan(420_000);
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

describe('signatures by the host', () => {
  const subtle = crypto.subtle as unknown as HostCrypto;

  it('are taken from one that decides by the cofactorless equation alone', async () => {
    expect(await isExact(subtle)).toBe(true);
    expect(
      await isExact({ ...subtle, importKey: () => Promise.resolve({}), verify: () => Promise.resolve(true) }),
    ).toBe(false);
    expect(
      await isExact({
        importKey: () => Promise.reject(new Error('no')),
        verify: () => Promise.resolve(true),
      }),
    ).toBe(false);
  });

  it('give the findings that each backend gives, also where the host was asked for other bytes', async () => {
    const some = CASES.filter(
      ({ ledger }) => /signature|multi|p256|agent-run/.test(ledger) && ledger.endsWith('.jsonl'),
    );
    expect(some.length).toBeGreaterThan(5);
    for (const fixture of some) {
      const native = new NativeSignatures(subtle);
      const bytes = fixtureBytes(fixture.ledger);
      const lines = bytes
        .toString('latin1')
        .split('\n')
        .map((line) => Buffer.from(`${line}\n`, 'latin1'));
      const source = {
        ...bytesSource(bytes, fixture.ledger),
        segments: (async function* () {
          yield {
            file: fixture.ledger,
            firstSeq: undefined,
            chunks: (async function* () {
              for (const line of lines.slice(0, -1)) {
                await native.prepare(line);
                yield line;
              }
            })(),
          };
          await Promise.resolve();
        })(),
      };
      const result = await runVerification(source, { ...optionsOf(fixture), backend: native.backend });
      expect(result.findings.map(({ code }) => code)).toEqual(fixture.findings.map(({ code }) => code));
      if (fixture.ledger === 'ledgers/agent-run.jsonl' && fixture.trust === undefined)
        expect(native.used).toBeGreaterThan(0);
    }
  });
});
