/** `northroot report`: its formats, its files, and its exit status. */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { expectError, expectOk, Workshop } from './runner.js';

const shop = new Workshop();
const fixture = (name: string): string => fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url));
const ok = fixture('ledgers/agent-run.jsonl');

interface Json {
  readonly verdict: string;
  readonly groups: readonly { readonly key: string }[];
  readonly totals: { readonly meters: readonly { readonly unit: string; readonly spent: string }[] };
}

describe('report', () => {
  it('has the exit status of verify', () => {
    for (const [ledger, status] of [
      [ok, 0],
      [fixture('broken/meter-cap-exceeded.jsonl'), 3],
      [fixture('broken/event-id-mismatch.jsonl'), 1],
      [fixture('broken/empty.jsonl'), 2],
    ] as const) {
      expect(shop.run(['report', ledger]).status).toBe(status);
    }
  });

  it('sums a part of a ledger by day, from a file as from standard input', () => {
    const args = ['--principal', 'agent:*', '--since', '2026-03-02', '--by', 'day', '--format', 'json'];
    const file = expectOk(shop.run(['report', ok, ...args]));
    const { groups, totals } = JSON.parse(file) as Json;
    expect(groups.map(({ key }) => key)).toEqual(['2026-03-02']);
    expect(totals.meters.find(({ unit }) => unit === 'usd')?.spent).toBe('0.57992');
    const piped = expectOk(shop.run(['report', '-', ...args], { input: readFileSync(ok, 'utf8') }));
    expect((JSON.parse(piped) as Json).totals).toEqual(totals);
  });

  it('writes any number of formats, the same each time', () => {
    const write = (suffix: string): string[] => {
      const files = ['html', 'markdown', 'csv', 'json', 'text'].map((format) => [
        format,
        `${format}.${suffix}`,
      ]);
      const outputs = files.flatMap(([format, file]) => ['--output', `${format}=${file}`]);
      expectOk(shop.run(['report', ok, ...outputs, '--output', 'csv=-']));
      return files.map(([, file = '']) => readFileSync(shop.path(file), 'utf8'));
    };
    const texts = write('1');
    expect(write('2')).toEqual(texts);
    expect(texts[0]).toMatch(/^<!doctype html>/);
  });

  it('writes nothing where the ledger cannot be read, and refuses formats that it does not know', () => {
    expectError(shop.run(['report', 'missing.jsonl', '--output', 'csv=left.csv']), 2, 'FILE_NOT_FOUND');
    expect(existsSync(shop.path('left.csv'))).toBe(false);
    expectError(shop.run(['report', ok, '--output', 'pdf=left.pdf']), 2, 'USAGE');
  });

  it('sums by principal for people, and for programs only where they ask', () => {
    const text = expectOk(shop.run(['report', ok, '--output', 'json=both.json']));
    expect(text).toMatch(/^By principal$/m);
    expect(expectOk(shop.run(['report', ok, '--by', 'tool']))).not.toMatch(/^By principal$/m);
    expect(expectOk(shop.run(['report', ok, '--principal', 'agent:writer']))).not.toMatch(/^By/m);
    expect(readFileSync(shop.path('both.json'), 'utf8')).toBe(
      expectOk(shop.run(['report', ok, '--format', 'json'])),
    );
    expect(readFileSync(shop.path('both.json'), 'utf8')).not.toContain('"groups"');
  });

  it('warns of a principal or a tool that the ledger never names', () => {
    const run = shop.run(['report', ok, '--principal', 'agent:writter', '--tool', 'llm.chat']);
    expect(run.stderr).toMatch(/warning: .*agent:writter.*agent:writer/);
    expect(run.stderr).not.toContain('llm.chat');
    const json = shop.run(['report', ok, '--tool', 'x', '--format', 'json']).stdout;
    const { selection } = JSON.parse(json) as { selection: { unmatched: { of: string }[] } };
    expect(selection.unmatched.map(({ of }) => of)).toEqual(['tool']);
    expect(shop.run(['report', ok, '--principal', 'agent:*']).stderr).not.toContain('warning');
  });

  it.each([
    ['--last', '2026-03-02'],
    ['--last', '7x'],
    ['--grant', '0'],
    ['--grant', '3'],
    ['--since', '7d', '--last', '7d'],
  ])('takes no selection that means something else: %j', (...args) => {
    expectError(shop.run(['report', ok, ...args]), 2, 'USAGE');
  });
});
