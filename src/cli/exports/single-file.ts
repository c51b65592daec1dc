/** The exports of one file: `--html`, `--dsse`, `--journal`, `--ocsf` and `--otlp`. */

import { exportDsse } from '../../out/export/dsse.js';
import { exportJournal } from '../../out/export/journal/export-journal.js';
import { exportOcsf } from '../../out/export/telemetry/ocsf.js';
import { exportOtlp } from '../../out/export/telemetry/otlp.js';
import { exportPage } from '../../out/page/export-page.js';
import type { ExportKind } from './export-kind.js';
import { count, exportTo, type ExportRun } from './export-to.js';

export const HTML = singleFile(
  '--html <file>',
  'one HTML file that verifies the ledger in a browser and shows it; takes no selection',
  async (...args) => ({ ...(await exportPage(...args)), unmatched: [], what: 'record' }),
);

export const DSSE = singleFile(
  '--dsse <file>',
  'the events as DSSE envelopes, one JSON object per line',
  async (...args) => {
    const { signaturesLeftOut: left, ...pass } = await exportDsse(...args);
    const also = left === 0 ? undefined : `${count(left, 'signature')} left out: not base64url`;
    return { ...pass, what: 'envelope', also };
  },
);

export const JOURNAL = singleFile(
  '--journal <file>',
  'a Northroot journal (.nrj): only the events, without signatures and chain',
  async (...args) => ({ ...(await exportJournal(...args)), what: 'event' }),
);

export const OCSF = singleFile(
  '--ocsf <file>',
  'OCSF API Activity events with agent and delegation, one JSON object per line',
  async (...args) => ({ ...(await exportOcsf(...args)), what: 'event' }),
);

export const OTLP = singleFile(
  '--otlp <file>',
  'OpenTelemetry spans of authorizations, executions and adjustments, as OTLP JSON',
  async (...args) => {
    const { spans, ...pass } = await exportOtlp(...args);
    return { ...pass, selected: spans + pass.skipped, what: 'span', why: 'no span' };
  },
);

function singleFile(flags: string, description: string, run: ExportRun): ExportKind {
  return { flags, description, target: 'file', write: (job) => exportTo(job, run) };
}
