/** `export --dsse`: the selected events as DSSE envelopes, one a line. */

import { exportDsse } from '../../out/export/dsse.js';
import type { ExportKind } from './export-kind.js';
import { count, exportTo } from './export-to.js';

export const DSSE: ExportKind = {
  flags: '--dsse <file>',
  target: 'file',
  description: 'the events as DSSE envelopes, one JSON object per line',
  write: (job) =>
    exportTo(job, async (ledger, sink, options) => {
      const { skipped, signaturesLeftOut: left, ...pass } = await exportDsse(ledger, sink, options);
      const also = `${count(left, 'signature')} left out: not base64url`;
      return { ...pass, skipped, what: 'envelope', ...(left === 0 ? {} : { also }) };
    }),
};
