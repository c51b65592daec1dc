/** Recordings of CGF, read, edited and verified. */

import { cgf } from '../../../src/hosts/cgf/index.js';
import { accountFor } from '../../../src/hosts/shared/account.js';
import { eventsOfClaims } from '../../../src/hosts/shared/claims.js';
import type { HostFile, HostOptions, HostReading } from '../../../src/hosts/shared/host.js';
import { canonicalText } from '../../../src/base/json/canonicalize.js';
import { verifyLedger } from '../../../src/log/read/verify-ledger.js';
import type { Report } from '../../../src/rules/report/report.js';
import { recordedFile } from '../recorded.js';

export const SERVER = 'cgf/run/contract-suite/server.events.jsonl';
export const OPENCLAW = 'cgf/run/contract-suite/openclaw.events.jsonl';
export const LANGGRAPH = 'cgf/run/contract-suite/langgraph.events.jsonl';
export const LIVE = 'cgf/run/driver/openclaw-v02.live.events.jsonl';
export const DOWN = 'cgf/run/driver/openclaw-v02.cgf-down.events.jsonl';
export const HTTP = 'cgf/run/driver/http.jsonl';
export const BUNDLE = 'cgf/static/policy/policy_bundle_v1.json';
export const PACK = 'cgf/static/fixtures/replaypack_example.json';

export function fileOf(text: string, name = 'edited.jsonl'): HostFile {
  return { name, bytes: Buffer.from(text) };
}

export function linesOf(lines: readonly object[], name?: string): HostFile {
  return fileOf(lines.map((line) => `${JSON.stringify(line)}\n`).join(''), name);
}

/** `RULE CODE`, with the line, in the order in which they are found. */
export function codesOf({ findings }: Pick<HostReading, 'findings'>): string[] {
  return findings.map(({ rule, code, at }) => `${rule} ${code}${at.line === undefined ? '' : ` ${at.line}`}`);
}

/** How many findings there are of each rule and code. */
export function countsOf({ findings }: Pick<HostReading, 'findings'>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { rule, code } of findings) counts[`${rule} ${code}`] = (counts[`${rule} ${code}`] ?? 0) + 1;
  return counts;
}

/** Reads files, and fails where the items do not add up. */
export function read(files: readonly (string | HostFile)[], options?: HostOptions): HostReading {
  const reading = cgf.read(
    files.map((file) => (typeof file === 'string' ? recordedFile(file) : file)),
    options,
  );
  const { total } = accountFor(reading.items);
  const { items, mapped, evidence, repeated, dropped } = total;
  if (items !== mapped + evidence + repeated + dropped) throw new Error('items do not add up');
  return reading;
}

/** The report on the events of a reading's claims, as bare events. */
export async function verifyClaims({ claims }: Pick<HostReading, 'claims'>): Promise<Report> {
  const { events, unfit } = eventsOfClaims(claims, { system: 'cgf' });
  if (unfit.length > 0) throw unfit[0].error;
  const text = events.map(({ event }) => `${canonicalText(event)}\n`).join('');
  return verifyLedger(Buffer.from(text));
}

/** How many findings of each code a ledger's report has, but for notes. */
export function ledgerCodes(report: Report): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { code, severity } of report.findings)
    if (severity !== 'info') counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}
