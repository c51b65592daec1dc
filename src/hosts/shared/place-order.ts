/** The order of places, for what is found out only when all files are read. */

import type { HostFile, HostPlace } from './host.js';

/** By file, line and member, as the files were given. */
export function placeOrder(files: readonly HostFile[]): (a: HostPlace, b: HostPlace) => number {
  const indexes = new Map<string, number>();
  for (const { name } of files) if (!indexes.has(name)) indexes.set(name, indexes.size);
  const memberOf = ({ pointer }: HostPlace): number => Number(pointer?.split('/').at(-1) ?? 0) || 0;
  return (a, b) =>
    (indexes.get(a.file) ?? -1) - (indexes.get(b.file) ?? -1) ||
    (a.line ?? 0) - (b.line ?? 0) ||
    memberOf(a) - memberOf(b);
}
