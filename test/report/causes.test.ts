/** The text report names the record where it begins, and puts what follows from it under it. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { renderReport, verifyLedger, type FindingJson } from '../../src/api/index.js';
import { renderGithub, renderMarkdown } from '../../src/api/export.js';
import { findFirstChanged } from '../../src/rules/report/causes.js';
import { cutReport } from '../ci/reports.js';

const lines = readFileSync('fixtures/ledgers/checkpoints.jsonl', 'utf8').trimEnd().split('\n');

async function textOf(ledger: readonly string[]): Promise<string[]> {
  return renderReport(await verifyLedger(Buffer.from(`${ledger.join('\n')}\n`))).split('\n');
}

/** The codes of the findings in a text, those that stand under another with an arrow before them. */
function codesOf(text: readonly string[]): string[] {
  return text.flatMap((line) => {
    const [, indent = '', code] = /^( *)(?:error|warning|info): \S+ \(byte \d+\) ([A-Z_]+):/.exec(line) ?? [];
    return code === undefined ? [] : [`${indent === '' ? '' : '> '}${code}`];
  });
}

describe('a record that was changed', () => {
  const at = lines.findIndex((line) => line.includes('"event_type":"x.')) || 1;
  const changed = lines.map((line, index) =>
    index === at ? line.replace(/"occurred_at":"(\d{3})\d/, '"occurred_at":"$19') : line,
  );

  it('is named first, and what it breaks elsewhere stands under it', async () => {
    expect(changed[at]).not.toBe(lines[at]);
    const text = await textOf(changed);
    expect(text.find((line) => line.startsWith('  first bad'))).toContain(`seq ${at}, -:${at + 1}`);
    const codes = codesOf(text);
    expect(codes.slice(0, 3)).toEqual(['PAYLOAD_DIGEST_MISMATCH', 'EVENT_ID_MISMATCH', 'SIGNATURE_INVALID']);
    expect(codes).toContain('> PREV_MISMATCH');
    expect(codes).toContain('> CHECKPOINT_ROOT_MISMATCH');
    expect(codes).not.toContain('PREV_MISMATCH');
  });

  it('is in the headline of each report, with how much is of it and follows from it', async () => {
    const report = await verifyLedger(Buffer.from(`${changed.join('\n')}\n`));
    const broken = ['PREV_MISMATCH', 'CHECKPOINT_ROOT_MISMATCH'];
    const follow = report.findings.filter(({ code }) => broken.includes(code)).length;
    expect(findFirstChanged(report.findings)).toMatchObject({
      finding: { seq: at },
      own: 3,
      consequences: follow,
    });
    expect(follow).toBeGreaterThan(1);
    for (const text of [renderReport(report), renderMarkdown(report), renderGithub(report)]) {
      const line = text.split('\n').find((each) => each.includes('changed first')) ?? '';
      expect(line).toContain(`seq ${at}`);
      expect(line).toContain(`${follow} more`);
    }
    const whole = await verifyLedger(Buffer.from(`${lines.join('\n')}\n`));
    expect(renderMarkdown(whole)).not.toContain('changed first');
  });
});

it('what is about the ledger as a whole is counted without what is not', async () => {
  const report = await cutReport();
  const [error] = report.findings as [FindingJson];
  const info = { ...error, code: 'TIME_REGRESSION', severity: 'info', class: 'none', seq: 2 } as const;
  const text = renderReport({ ...report, findings: [error, info], findings_total: 2 });
  expect(text.split('\n')[0]).toContain('TRUNCATED');
  expect(text.split('\n')[0]).not.toContain('TIME_REGRESSION');
  expect(text).not.toContain('record at');
  expect(renderReport({ ...report, findings: [] }).split('\n')[0]).not.toContain('0 ');
});

it('every finding stands in the text once', async () => {
  for (const name of ['prev-mismatch', 'checkpoint-root-mismatch', 'meter-cap-exceeded', 'seq-gap']) {
    const report = await verifyLedger(`fixtures/broken/${name}.jsonl`);
    const told = codesOf(renderReport(report).split('\n')).map((code) => code.replace('> ', ''));
    expect(told.sort()).toEqual(report.findings.map(({ code }) => code).sort());
  }
});

it('a ledger without errors names no bad record', async () => {
  expect((await textOf(lines)).some((line) => line.startsWith('  first bad'))).toBe(false);
});

it('what broke independently stands by itself', async () => {
  // Two lines change places: nothing in either was changed.
  const swapped = [...lines.slice(0, 1), lines[2] ?? '', lines[1] ?? '', ...lines.slice(3)];
  const codes = codesOf(await textOf(swapped));
  expect(codes[0]?.startsWith('>')).toBe(false);
});
