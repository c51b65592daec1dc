/** `verify --decisions` and `--prices`, and `report --bill`: what they add, and what they refuse. */

import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkReport } from '../../src/format/schema/check.js';
import type { Report } from '../../src/rules/report/report.js';
import { LITELLM } from '../gate/samples.js';
import { expectError, expectOk, parse, Workshop } from './runner.js';

const shop = new Workshop();
const ledger = fileURLToPath(new URL('../../fixtures/ledgers/agent-run.jsonl', import.meta.url));
shop.write('litellm.json', LITELLM);
shop.write('bill.csv', 'date,model,amount\n2026-03-01,m-1,1\n');
expectOk(shop.run(['prices', 'import', 'litellm.json', '--as-of', '2026-03-01', '--out', 'prices.json']));

describe('verify', () => {
  it('adds what further checks say to the report, and nothing where they are not asked for', () => {
    const plain = parse<Report>(shop.run(['verify', ledger, '--format', 'json']).stdout);
    const args = ['verify', ledger, '--decisions', '--prices', 'prices.json', '--format', 'json'];
    const checked = parse<Report>(shop.run(args).stdout);
    expect(checkReport(checked)).toEqual([]);
    expect([plain.decisions, plain.prices]).toEqual([undefined, undefined]);
    expect(Object.values(checked.decisions ?? {})).toHaveLength(5);
    expect(Object.values(checked.prices ?? {})).toHaveLength(4);
    expect(checked.verdict).toBe(plain.verdict);
  });

  it.each<[string, string[]]>([
    ['USAGE', ['--require', 'DECISIONS']],
    ['USAGE', ['--require', 'PRICES']],
    ['USAGE', ['--decisions', '--state', 'a.state']],
    ['USAGE', ['--prices', 'prices.json', '--state', 'a.state']],
    ['FILE_NOT_FOUND', ['--prices', 'none.json']],
    ['PRICES_INVALID', ['--prices', 'bill.csv']],
  ])('refuses with %s: %j', (code, args) => {
    expectError(shop.run(['verify', ledger, ...args]), 2, code);
  });
});

describe('report', () => {
  it('has a section of the bill in every format, and its exit status is that of the ledger', () => {
    for (const format of ['text', 'markdown', 'html'])
      expect(expectOk(shop.run(['report', ledger, '--bill', 'bill.csv', '--format', format]))).toContain(
        'What the ledger explains of the bill',
      );
    expect(expectOk(shop.run(['report', ledger, '--bill', 'bill.csv', '--format', 'csv']))).toContain(
      '\nbill,2026-03-01 m-1,bill,usd,0,',
    );
  });

  it.each<[string, string[]]>([
    ['USAGE', ['--bill', 'bill.csv', '--principal', 'agent:a1']],
    ['USAGE', ['--bill-provider', 'acme']],
    ['FILE_NOT_FOUND', ['--bill', 'none.csv']],
    ['BILL_INVALID', ['--bill', 'prices.json']],
  ])('refuses with %s: %j', (code, args) => {
    expectError(shop.run(['report', ledger, ...args]), 2, code);
  });
});
