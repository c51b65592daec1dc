/**
 * A verifier in another language, written from `docs/spec` and `schemas` alone, says what the product says: of all fixtures, and of random
 * ledgers. Skipped where there is no Python 3 with `cryptography`.
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { buildReport, type Report } from '../../src/rules/report/report.js';
import { runVerification } from '../../src/rules/verify/run-verification.js';
import { bytesSource } from '../bytes-source.js';
import {
  CASES,
  FILE_CASES,
  findingsOf,
  fixtureBytes,
  FIXTURES,
  optionsOf,
  POLICIES,
} from '../fixtures/cases.js';
import { sample, times } from '../slow.js';
import { askPython, difference, formOf, PYTHON, type Answer } from './kit.js';
import { NOW, pathsOf, randomLedger, type RandomLedger } from './ledgers.js';

const RUNS = Number(process.env['SECOND_RUNS'] ?? times(25, 200));
const SEED = Number(process.env['SEED'] ?? 20_261_127);
/** So many ledgers are on disk at a time. */
const BATCH = 200;
const MANY = 100_000;
/** Of what comes to a verdict, so that whoever ports it knows what that takes. */
const MOST_LINES = 1500;
/** What writes the report and what speaks the protocol of conformance. */
const EDGES = ['report.py', 'adapter.py'];
const HERE = fileURLToPath(new URL('.', import.meta.url));

const folder = mkdtempSync(join(tmpdir(), 'northroot-second-'));
afterAll(() => rmSync(folder, { recursive: true }));

if (PYTHON === undefined) console.warn('no Python 3 with cryptography: the second verifier is not run');

describe.skipIf(PYTHON === undefined)('the second verifier', () => {
  test('finds in every fixture what is expected, where it is expected', { timeout: 300_000 }, () => {
    const answers = askPython(
      CASES.map((one) => ({ path: FIXTURES + one.ledger, ...pathsOf(one), now: one.now })),
    );
    const wrong = CASES.filter((fixture, index) => {
      const found = answers[index] as Report;
      if (found.verdict !== fixture.verdict || found.exit_status !== fixture.exit_status) return true;
      const named = (path: string): string => path.replace(FIXTURES, '');
      const findings = findingsOf(found, FIXTURES + fixture.ledger).map((finding) =>
        finding.file === undefined ? finding : { ...finding, file: named(finding.file) },
      );
      return JSON.stringify(findings) !== JSON.stringify(inOrder(fixture.findings));
    });
    expect(wrong.map(({ ledger }) => ledger)).toEqual([]);
    expect(answers).toHaveLength(CASES.length);
  });

  test('reports of the fixtures what the product reports', { timeout: 300_000 }, async () => {
    const differences = await compare(
      sample(FILE_CASES, 120).map((fixture) => ({
        kind: fixture.ledger,
        bytes: fixtureBytes(fixture.ledger),
        how: pathsOf(fixture),
        options: { now: NOW, ...optionsOf(fixture) },
      })),
    );
    expect(differences).toEqual([]);
  });

  test('is of the length that its README states', () => {
    const files = readdirSync(HERE).filter((name) => name.endsWith('.py'));
    const linesOf = (name: string): string[] => readFileSync(join(HERE, name), 'utf8').trimEnd().split('\n');
    const lines = files.filter((name) => !EDGES.includes(name)).flatMap(linesOf);
    const [, stated] = /^They .* ([0-9,]+) lines/m.exec(readFileSync(join(HERE, 'README.md'), 'utf8')) ?? [];
    expect(lines.length).toBe(Number(stated.replace(',', '')));
    expect(lines.length).toBeLessThanOrEqual(MOST_LINES);
    expect(files.flatMap(linesOf).filter((line) => line.length > 140)).toEqual([]);
  });

  test('refuses the policies that are to be refused', () => {
    const path = `${FIXTURES}ledgers/unsigned.jsonl`;
    const answers = askPython(POLICIES.map(({ file }) => ({ path, policy: FIXTURES + file, now: NOW })));
    const valid = answers.map((answer) => !('error' in answer));
    expect(valid).toEqual(POLICIES.map((policy) => policy.valid));
  });

  test('reports of random ledgers what the product reports', { timeout: 36_000_000 }, async () => {
    const differences: string[] = [];
    for (let from = 0; from < RUNS; from += BATCH) {
      const seeds = Array.from({ length: Math.min(BATCH, RUNS - from) }, (_, n) => SEED + from + n);
      const found = await compare(seeds.map(randomLedger), (n) => `SECOND_RUNS=1 SEED=${seeds[n]}`);
      differences.push(...found);
      if (RUNS > BATCH) console.log(new Date().toISOString(), from + seeds.length, differences.length, found);
    }
    expect(differences).toEqual([]);
    if (RUNS >= 100) expect(codes.size).toBeGreaterThan(70);
  });
});

const codes = new Set<string>();

async function compare(
  ledgers: readonly RandomLedger[],
  name: (n: number) => string = String,
): Promise<string[]> {
  const paths = ledgers.map((_, n) => join(folder, `${n}.jsonl`));
  for (const [n, { bytes }] of ledgers.entries()) writeFileSync(paths[n], bytes);
  const answers = askPython(ledgers.map(({ how }, n) => ({ ...how, path: paths[n] })));
  const differences: string[] = [];
  for (const [n, { bytes, options, kind }] of ledgers.entries()) {
    const source = bytesSource(bytes, paths[n]);
    const report = buildReport(await runVerification(source, { ...options, maxFindings: MANY, threads: 1 }));
    for (const { code } of report.findings) codes.add(code);
    const found = differs(answers[n], report);
    if (found !== undefined) differences.push(`${name(n)} (${kind}): ${found}`);
  }
  return differences;
}

function differs(answer: Answer, report: Report): string | undefined {
  if ('error' in answer) return answer.error;
  return difference(formOf(answer), formOf(report));
}

/** The members of a finding in the order that {@link findingsOf} has. */
function inOrder(findings: readonly object[]): object[] {
  const names = ['code', 'line', 'pointer', 'severity', 'folded', 'file'];
  return findings.map((finding) =>
    Object.fromEntries(names.filter((name) => name in finding).map((name) => [name, finding[name as never]])),
  );
}
