/** What the tests of OpenClaw share: the recorded run, edits of it, and files of lines made here. */

import { openclaw } from '../../../src/hosts/openclaw/index.js';
import { verifyLedger } from '../../../src/api/index.js';
import { accountFor } from '../../../src/hosts/shared/account.js';
import type { HostFile, HostOptions } from '../../../src/hosts/shared/host.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { canonicalText } from '../../../src/base/json/canonicalize.js';
import { recordedText } from '../recorded.js';

const RUN = 'openclaw/run-2026.3.13';

export const hooksText = (): string => recordedText(`${RUN}/plugin-hooks.jsonl`);
export const transcriptText = (): string => recordedText(`${RUN}/session-transcript.jsonl`);
export const cliText = (): string => recordedText(`${RUN}/agent-cli-output.json`);

/** The session and run of the recording. */
export const RUN_ID = 'a1797c36-3b0b-4156-affc-90650c9d2d9c';

export function fileOf(name: string, text: string): HostFile {
  return { name, bytes: Buffer.from(text) };
}

export const hooks = (text: string): HostFile => fileOf('hooks.jsonl', text);
export const transcript = (text: string): HostFile => fileOf('transcript.jsonl', text);
export const cli = (text: string): HostFile => fileOf('cli.json', text);

/** A file of one JSON text a line. */
export function linesOf(...lines: readonly object[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

/** The text with lines that `edit` changes; it fails where nothing changes. */
export function edited(text: string, edit: (line: string) => string | undefined): string {
  const lines = text.split('\n').map((line) => edit(line));
  const changed = lines.filter((line) => line !== undefined).join('\n');
  if (changed === text) throw new Error('the edit changes nothing');
  return changed;
}

/** Rules and codes of the findings, in order; without what is only said for information. */
export function findingsOf(files: readonly HostFile[], options?: HostOptions): string[] {
  return openclaw
    .read(files, options)
    .findings.filter(({ severity }) => severity !== 'info')
    .map(({ rule, code }) => `${rule} ${code}`);
}

/** Counts by rule and code of all findings. */
export function countsOf(
  findings: readonly { readonly rule: string; readonly code: string }[],
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { rule, code } of findings) counts[`${rule} ${code}`] = (counts[`${rule} ${code}`] ?? 0) + 1;
  return counts;
}

/** What an import makes of the files, and what verifying that says. */
export async function imported(files: readonly HostFile[], options?: HostOptions) {
  const plan = planImport(openclaw, files, options);
  const text = plan.events.map(({ event }) => `${canonicalText(event)}\n`).join('');
  return { plan, account: accountFor(plan.reading.items), report: await verifyLedger(Buffer.from(text)) };
}
