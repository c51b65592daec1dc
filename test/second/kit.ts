/** The second verifier, which is Python, and what it says beside what the product says. */

import { spawnSync } from 'node:child_process';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Report } from '../../src/rules/report/report.js';

export const ADAPTER = fileURLToPath(new URL('adapter.py', import.meta.url));

/** How a ledger is verified: everything is a path but the time. */
export interface Case {
  readonly path: string;
  readonly policy?: string | undefined;
  readonly witness?: string | undefined;
  readonly checkpoints?: readonly string[];
  readonly parents?: readonly string[];
  readonly predecessor?: string | undefined;
  readonly now?: string | undefined;
}

/** A Python 3 that has `cryptography`, if there is one. */
export const PYTHON = [process.env['PYTHON'], '/usr/bin/python3', 'python3'].find(
  (program) =>
    program !== undefined &&
    spawnSync(program, ['-c', 'import sys, cryptography.hazmat; assert sys.version_info >= (3, 9)'])
      .status === 0,
);

/** What the second verifier says of each case, in one process. */
export function askPython(cases: readonly Case[]): Answer[] {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-second-'));
  const [input, output] = [join(folder, 'in'), join(folder, 'out')];
  try {
    const frames = cases.map((one, id) => JSON.stringify({ id, op: 'report', input: inputOf(one) }));
    writeFileSync(input, frames.map((frame) => `${frame}\n`).join(''));
    const files = [openSync(input, 'r'), openSync(output, 'w')] as const;
    const { status, stderr } = spawnSync(PYTHON ?? '', ['-B', ADAPTER], {
      stdio: [...files, 'pipe'],
      encoding: 'utf8',
    });
    files.forEach(closeSync);
    if (status !== 0) throw new Error(stderr);
    return readFileSync(output, 'utf8').trimEnd().split('\n').map(answerOf);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The input of the operation `report` (conformance/README.md). */
function inputOf({ path, policy, witness, checkpoints, parents, predecessor, now }: Case): object {
  const bytes = (file: string): string => readFileSync(file, 'base64');
  const named = (file: string): object => ({ name: file, bytes: bytes(file) });
  return {
    ledger: ledgerOf(path),
    now,
    ...(policy === undefined ? {} : { trust: bytes(policy) }),
    ...(witness === undefined ? {} : { witness_policy: bytes(witness) }),
    checkpoints: (checkpoints ?? []).map(named),
    parents: (parents ?? []).map(ledgerOf),
    ...(predecessor === undefined ? {} : { predecessor: ledgerOf(predecessor) }),
  };

  function ledgerOf(name: string): object {
    if (!statSync(name).isDirectory()) return named(name);
    const segments = readdirSync(name).filter((file) => /^[0-9]{20}\.jsonl$/.test(file));
    return { name, segments: segments.sort().map((file) => named(join(name, file))) };
  }
}

function answerOf(line: string): Answer {
  const { result, error } = JSON.parse(line) as {
    readonly result?: { readonly report?: Report; readonly refused?: string };
    readonly error?: string;
  };
  return result?.report ?? { error: result?.refused ?? error ?? '', exit_status: 2 };
}

export type Answer = Report | { readonly error: string; readonly exit_status: number };

/** What is compared: all that is no text for people. */
export function formOf(report: Report): unknown {
  const { trust, checkpoints, counts, verdict, exit_status, not_checked, findings, findings_total } = report;
  const { ledger, grants, open_authorizations, open_starts, approvals, revocations } = report;
  return {
    verdict,
    exit_status,
    ledger: { ...ledger, paths: undefined },
    trust,
    counts,
    checkpoints: {
      ...checkpoints,
      anchors: checkpoints.anchors?.map((anchor) => ({ ...anchor, path: basename(anchor.path) })),
    },
    not_checked: not_checked.map(({ code, shown_before_seq: shown }) => ({ code, shown })),
    grants: grants.map((grant) => ({ ...grant, decimals: undefined })),
    open: [open_authorizations, open_starts ?? []],
    approvals,
    revocations,
    findings: findings.map(({ code, severity, class: kind, at, seq, event_id, folded }) => ({
      ...{ code, severity, class: kind, seq, event_id, folded },
      at: { ...at, file: basename(at.file) },
    })),
    findings_total,
  };
}

/** Where two forms part, or nothing. */
export function difference(mine: unknown, theirs: unknown, at = ''): string | undefined {
  if (typeof mine !== 'object' || typeof theirs !== 'object' || mine === null || theirs === null)
    return mine === theirs ? undefined : `${at}: ${JSON.stringify(mine)}, not ${JSON.stringify(theirs)}`;
  const [a, b] = [mine, theirs] as [Record<string, unknown>, Record<string, unknown>];
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = difference(a[name], b[name], `${at}/${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
