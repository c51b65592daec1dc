/** Reports for the tests of formats: real ones, and one whose every outside text is chosen. */

import { readFileSync } from 'node:fs';
import { verifyLedger, type FindingJson, type Report } from '../../src/api/index.js';

/** The bytes of a ledger of `fixtures/`. */
export function fixture(path: string): Uint8Array {
  return readFileSync(new URL(`../../fixtures/${path}`, import.meta.url));
}

export function reportOn(path: string): Promise<Report> {
  return verifyLedger(fixture(path));
}

const base = await reportOn('broken/auth-not-found-folded.jsonl');

/** A ledger of 5 records, and a checkpoint kept elsewhere that is of 9. */
export function cutReport(): Promise<Report> {
  const lines = Buffer.from(fixture('ledgers/agent-run.jsonl')).toString().split('\n').slice(0, 5);
  const root = Buffer.alloc(32).toString('base64');
  const note = Buffer.from(`example.com/agents/report\n9\n${root}\n\n\u2014 x AAAAAAAA\n`);
  return verifyLedger(Buffer.from(`${lines.join('\n')}\n`), { checkpoints: [{ name: 'held', note }] });
}

/** A report in which everything that comes from outside is `text`. */
export function reportOf(text: string): Report {
  const [finding] = base.findings as [FindingJson];
  const hostile: FindingJson = {
    ...finding,
    at: { ...finding.at, file: text, pointer: text },
    expected: text,
    actual: text,
    related: [{ file: text, line: 1, seq: 0, event_id: null }],
    message: text,
  };
  return {
    ...base,
    ledger: { ...base.ledger, paths: [text], origin: text },
    findings: [hostile, { ...hostile, severity: 'warning', class: 'none', code: 'TIME_REGRESSION' }],
    findings_total: 2,
    not_checked: [{ code: 'TRUST', message: text }],
  };
}

/** A report with so many findings, of which so many are listed. */
export function reportWith(total: number, listed: number): Report {
  const [finding] = base.findings as [FindingJson];
  const findings = Array.from({ length: listed }, (_, seq) => ({
    ...finding,
    seq,
    event_id: null,
    line_digest: `sha-256:${String(seq).padStart(42, 'A')}A`,
  }));
  return { ...base, findings, findings_total: total };
}

/** Everything that may not stand in a report as it is: it moves cursors, or turns or hides text. */
export const UNSAFE = /[^\n\P{Cc}]|[\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
