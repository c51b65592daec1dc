/** Samples of hosts under `HOST/samples/`, made by us: as they are, edited, and broken at random. */

import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { verifyLedger } from '../../src/api/index.js';
import { accountFor } from '../../src/hosts/shared/account.js';
import type { Host, HostFile, HostReading } from '../../src/hosts/shared/host.js';
import { type ImportPlan, planImport } from '../../src/hosts/shared/import.js';
import { times } from '../slow.js';

/** A sample's file. */
export function sample(host: string, name: string): HostFile {
  return { name, bytes: readFileSync(new URL(`${host}/samples/${name}`, import.meta.url)) };
}

/** The values of a sample of lines. */
export function linesOf(file: HostFile): unknown[] {
  return Buffer.from(file.bytes)
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line): unknown => JSON.parse(line));
}

/** A file of lines. */
export function fileOf(name: string, lines: readonly unknown[]): HostFile {
  return { name, bytes: Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join('')) };
}

/** The sample with the text that `from` is, once, as `to`. */
export function edited(file: HostFile, from: string, to: string): HostFile {
  const text = Buffer.from(file.bytes).toString();
  expect(text.split(from)).toHaveLength(2);
  return { ...file, bytes: Buffer.from(text.replace(from, () => to)) };
}

/** Rules and codes of what a reading finds. */
export function found({ findings }: Pick<HostReading, 'findings'>): string[] {
  return findings.map(({ rule, code }) => `${rule} ${code}`);
}

/** Verifies the bare events that a plan would append. */
export function verifyPlan({ events }: ImportPlan) {
  return verifyLedger(Buffer.from(events.map(({ event }) => `${canonical(event)}\n`).join('')));
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

/** Whatever becomes of the files: nothing throws, the items add up, every claim fits an event, and reading again gives the same. */
export function holdsForBrokenFiles(host: Host, files: readonly HostFile[]): void {
  const file = fc.constantFrom(...files);
  const edit = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    cut: fc.nat({ max: 40 }),
    insert: fc.oneof(
      fc.constantFrom('', '{', '"', ',', 'null', '-1', '[]', '{}', '1e999', '\n', '"\\ud800"', '\u202e'),
      fc.string({ maxLength: 8 }),
    ),
  });
  fc.assert(
    fc.property(fc.array(fc.tuple(file, fc.array(edit, { maxLength: 4 })), { maxLength: 2 }), (given) => {
      const broken = given.map(([{ name, bytes }, edits], index) => {
        let text = Buffer.from(bytes).toString();
        for (const { at, cut, insert } of edits) {
          const from = Math.floor(at * text.length);
          text = text.slice(0, from) + insert + text.slice(from + cut);
        }
        return { name: `${index}-${name}`, bytes: Buffer.from(text) };
      });
      const plan = planImport(host, broken);
      const { total } = accountFor(plan.reading.items);
      expect(total.items).toBe(total.mapped + total.evidence + total.repeated + total.dropped);
      expect(plan.unfit).toBe(0);
      expect(
        plan.reading.items.filter(
          ({ fate, reason }) => (fate === 'dropped' || fate === 'repeated') && reason === undefined,
        ),
      ).toEqual([]);
      const known = new Set(
        host.rules.filter(({ undecidable }) => undecidable === undefined).map(({ id }) => id),
      );
      expect(plan.findings.filter(({ rule }) => rule !== 'INPUT' && !known.has(rule))).toEqual([]);
      expect(planImport(host, broken).events).toEqual(plan.events);
    }),
    { numRuns: times(30, 1_500) },
  );
}
