/**
 * apm2 and the agents behind its adapters: kernel events, ledger rows, receipts, indexes, profiles and captured logs of ToolIntent lines.
 * docs/hosts/apm2.md says what becomes of each field.
 */

import { checkOptions, type OptionTypes } from '../../base/options.js';
import type { Host, HostFile, HostOptions, HostPlace, HostReading } from '../shared/host.js';
import { ReadingBuilder } from '../shared/reading.js';
import { casesOf } from './cases.js';
import { checkAll, pinnedKeys } from './checks.js';
import { mapEntries } from './mapping.js';
import { looksLikeApm2, readEntries } from './reader.js';
import { APM2_RULES } from './rules.js';

export { adapterProfileChecker } from './profile-checker.js';
export { episodeChecker } from './episode-checker.js';

const AIDS = {
  profile: 'the adapter profile of the episodes: tools, limits, budget, prefix of the nonce',
  keys: 'public keys that are trusted, as 64 hexadecimal digits each',
} as const;

/** The host apm2 and agents behind its kernel. */
export const apm2: Host = {
  name: 'apm2',
  title: 'apm2 and agent adapters',
  rules: APM2_RULES,
  aids: AIDS,
  recognises: looksLikeApm2,
  read: readApm2,
};

const OPTIONS: OptionTypes<HostOptions> = { occurredAt: 'string', aids: 'object' };

function readApm2(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkOptions('apm2.read', options, OPTIONS);
  for (const name of Object.keys(options.aids ?? {}))
    if (!Object.hasOwn(AIDS, name)) throw new RangeError(`apm2.read: there is no aid ${name}`);
  const builder = new ReadingBuilder(options);
  const entries = readEntries(files, builder);
  const cases = casesOf(entries, options);
  const mapped = mapEntries(entries, cases, builder);
  const found = checkAll({ entries, cases, pinned: pinnedKeys(options) });
  const built = builder.finish();
  const order = orderOf(files);
  return {
    items: sortedBy([...built.items, ...entries.items, ...mapped.items], order),
    claims: mapped.claims,
    observations: mapped.observations,
    findings: sortedBy(
      [...cases.findings, ...built.findings, ...entries.findings, ...mapped.findings, ...found],
      order,
    ),
  };
}

function orderOf(files: readonly HostFile[]): (at: HostPlace) => readonly [number, number] {
  const positions = new Map<string, number>();
  for (const [i, { name }] of files.entries()) if (!positions.has(name)) positions.set(name, i);
  return ({ file, line }) => [positions.get(file) ?? -1, line ?? 0];
}

/** In the order of the files and their lines; what is in one place keeps its order. */
function sortedBy<T extends { readonly at: HostPlace }>(
  list: readonly T[],
  order: (at: HostPlace) => readonly [number, number],
): readonly T[] {
  return list
    .map((each) => ({ each, key: order(each.at) }))
    .sort((a, b) => a.key[0] - b.key[0] || a.key[1] - b.key[1])
    .map(({ each }) => each);
}
