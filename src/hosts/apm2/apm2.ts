/**
 * apm2 and the agents behind its adapters: kernel events, ledger rows, receipts, indexes, profiles and captured logs of ToolIntent lines.
 * README.md says what becomes of each field.
 */

import type { Host, HostFile, HostOptions, HostReading } from '../shared/host.js';
import { checkReadOptions, ReadingBuilder } from '../shared/reading.js';
import { casesOf } from './cases.js';
import { checkAll, pinnedKeys } from './checks.js';
import { mapEntries } from './mapping.js';
import { looksLikeApm2, readEntries } from './reader.js';
import { APM2_RULES } from './rules.js';
import { inFileOrder } from '../shared/order.js';

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

function readApm2(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkReadOptions('apm2.read', options, AIDS);
  const builder = new ReadingBuilder(options);
  const entries = readEntries(files, builder);
  const cases = casesOf(entries, options, builder);
  mapEntries(entries, cases, builder);
  checkAll({ builder, entries, cases, pinned: pinnedKeys(options) });
  return inFileOrder(builder.finish(), files);
}
