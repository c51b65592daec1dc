/** The order of what is found out only when all files are read, and of claims whose sources keep none. */

import { compareTimestamps } from '../../base/value/timestamp.js';
import type { Claim, HostPlace, HostReading } from './host.js';

/**
 * The reading with its items and findings in the order of the files and their lines; what is in one place keeps its order.
 *
 * @param files - What is in none of them comes first; a member of an archive that is none is where the archive is.
 * @param byMember - Whether the members of a list in one line are in their order too.
 */
export function inFileOrder<T extends Pick<HostReading, 'items' | 'findings'>>(
  reading: T,
  files: readonly { readonly name: string }[],
  byMember = false,
): T {
  const indexes = new Map<string, number>();
  for (const { name } of files) if (!indexes.has(name)) indexes.set(name, indexes.size);
  const indexOf = (file: string): number =>
    indexes.get(file) ?? indexes.get(file.slice(0, Math.max(0, file.indexOf('!')))) ?? -1;
  const memberOf = ({ pointer }: HostPlace): number =>
    byMember ? Number(pointer?.split('/').at(-1) ?? 0) || 0 : 0;
  const sort = <P extends { readonly at: HostPlace }>(list: readonly P[]): P[] =>
    list
      .map((each) => ({
        each,
        file: indexOf(each.at.file),
        line: each.at.line ?? 0,
        member: memberOf(each.at),
      }))
      .sort((a, b) => a.file - b.file || a.line - b.line || a.member - b.member)
      .map(({ each }) => each);
  return { ...reading, items: sort(reading.items), findings: sort(reading.findings) };
}

/**
 * Claims by time, those of one time as they were, and none before what authorizes it.
 *
 * @param timeOf - When each claim counts as made; it is called in the order of the claims.
 */
export function inTimeOrder(
  claims: readonly Claim[],
  timeOf: (claim: Claim) => string = ({ occurredAt }) => occurredAt,
): readonly Claim[] {
  const timed = claims.map((claim) => ({ claim, time: timeOf(claim) }));
  timed.sort((a, b) => compareTimestamps(a.time, b.time));
  const byId = new Map(timed.map(({ claim }) => [claim.id, claim]));
  const placed = new Set<Claim>();
  const ordered: Claim[] = [];
  const place = (claim: Claim): void => {
    if (placed.has(claim)) return;
    placed.add(claim);
    // At most an execution, its action, and the grant of that.
    const id = authorityOf(claim);
    const authority = id === undefined ? undefined : byId.get(id);
    if (authority !== undefined) place(authority);
    ordered.push(claim);
  };
  for (const { claim } of timed) place(claim);
  return ordered;
}

/** The id of the claim that authorizes another; undefined where none does. */
export function authorityOf(claim: Claim): string | undefined {
  if (claim.kind === 'evidence') return undefined;
  return claim.kind === 'execution' ? claim.authorization : claim.grant;
}

/** For {@link inTimeOrder}: each file keeps its own order, as nothing in it is earlier than what is before it. */
export function latestOfFile(): (claim: Claim) => string {
  const latest = new Map<string, string>();
  return ({ at: { file }, occurredAt }) => {
    const before = latest.get(file);
    const time = before === undefined || compareTimestamps(occurredAt, before) > 0 ? occurredAt : before;
    latest.set(file, time);
    return time;
  };
}
