/** `export --ocsf`, `--otlp`: records as events for SIEMs, and as spans for tracing. */

import { exportOcsf } from '../../out/export/telemetry/ocsf.js';
import { exportOtlp } from '../../out/export/telemetry/otlp.js';
import type { ExportKind } from './export-kind.js';
import { exportTo } from './export-to.js';

export const OCSF: ExportKind = {
  flags: '--ocsf <file>',
  target: 'file',
  description: 'OCSF API Activity events with agent and delegation, one JSON object per line',
  write: (job) =>
    exportTo(job, async (ledger, sink, options) => ({
      ...(await exportOcsf(ledger, sink, options)),
      what: 'event',
    })),
};

export const OTLP: ExportKind = {
  flags: '--otlp <file>',
  target: 'file',
  description: 'OpenTelemetry spans of authorizations, executions and adjustments, as OTLP JSON',
  write: (job) =>
    exportTo(job, async (ledger, sink, options) => {
      const { skipped, spans, ...pass } = await exportOtlp(ledger, sink, options);
      return { ...pass, selected: spans + skipped, skipped, what: 'span', why: 'no span' };
    }),
};
