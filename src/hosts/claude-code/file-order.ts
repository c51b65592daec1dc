/** The order of items and findings of several files that are read by who is heard first. */

import type { HostFile, HostReading } from '../shared/host.js';

/** The reading with its items and findings in the order of the files and their lines. */
export function inFileOrder(reading: HostReading, files: readonly HostFile[]): HostReading {
  const order = new Map(files.map(({ name }, index) => [name, index]));
  const compare = (
    { at: a }: { readonly at: HostReading['items'][number]['at'] },
    { at: b }: { readonly at: HostReading['items'][number]['at'] },
  ): number => (order.get(a.file) ?? 0) - (order.get(b.file) ?? 0) || (a.line ?? 0) - (b.line ?? 0);
  return {
    ...reading,
    items: [...reading.items].sort(compare),
    findings: [...reading.findings].sort(compare),
  };
}
