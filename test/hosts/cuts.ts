/** Whether what is imported of a file that goes on later stays as it is: the first part of its lines, and then the whole. */

import { splitLines } from '../../src/hosts/shared/reading.js';
import { planImport, type KnownLedger } from '../../src/hosts/shared/import.js';
import type { Host, HostFile, HostOptions } from '../../src/hosts/shared/host.js';
import { toDigestText } from '../../src/base/value/digest.js';

/** Where two imports leave something else in a ledger than one: `12 SOURCE_CONFLICT decision:dec-1` of a file cut after its line 12. */
export function differencesOfCuts(
  host: Host,
  file: HostFile,
  options: HostOptions = {},
  /** One cut in so many, where there are too many to try. */
  every = 1,
): readonly string[] {
  const whole = eventsOf(host, file, options);
  const differences: string[] = [];
  for (const [i, length] of cutsOf(file).entries()) {
    if (i % every !== 0) continue;
    const part = eventsOf(host, { name: file.name, bytes: file.bytes.subarray(0, length) }, options);
    const openEnds = new Set([...part].filter(([, { isOpen }]) => isOpen).map(([id]) => id));
    const sources = new Map([...part].map(([id, { eventId }]) => [id, eventId]));
    const into: KnownLedger = { ledgerId: undefined, sources, openEnds };
    const plan = planImport(host, [file], { ...options, into });
    const later = new Set<string>();
    const line = linesIn(file.bytes.subarray(0, length));
    for (const { code, about } of plan.findings) {
      if (code === 'OUTCOME_KNOWN_LATER') later.add(about!);
      if (code === 'SOURCE_CONFLICT') differences.push(`${line} ${code} ${about}`);
    }
    const both = new Map(sources);
    for (const { sourceId, event } of plan.events) both.set(sourceId, toDigestText(event.event_id.b64));
    for (const [id, eventId] of both)
      if (whole.get(id)?.eventId !== eventId && !later.has(id)) differences.push(`${line} other ${id}`);
    for (const id of whole.keys()) if (!both.has(id)) differences.push(`${line} missing ${id}`);
  }
  return differences;
}

function eventsOf(
  host: Host,
  file: HostFile,
  options: HostOptions,
): ReadonlyMap<string, { readonly eventId: string; readonly isOpen: boolean }> {
  return new Map(
    planImport(host, [file], options).events.map(({ sourceId, event }) => [
      sourceId,
      { eventId: toDigestText(event.event_id.b64), isOpen: event['outcome'] === 'unknown' },
    ]),
  );
}

function cutsOf(file: HostFile): readonly number[] {
  const cuts: number[] = [];
  for (let at = file.bytes.indexOf(0x0a); at >= 0; at = file.bytes.indexOf(0x0a, at + 1)) cuts.push(at + 1);
  return cuts;
}

function linesIn(bytes: Uint8Array): number {
  return [...splitLines({ name: '', bytes })].length;
}
