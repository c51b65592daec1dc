/** `export --journal`: the selected events as a Northroot journal. */

import { exportJournal } from '../../out/export/journal/export-journal.js';
import type { ExportKind } from './export-kind.js';
import { exportTo } from './export-to.js';

export const JOURNAL: ExportKind = {
  flags: '--journal <file>',
  target: 'file',
  description: 'a Northroot journal (.nrj): only the events, without signatures and chain',
  write: (job) =>
    exportTo(job, async (ledger, sink, options) => {
      const { skipped, ...pass } = await exportJournal(ledger, sink, options);
      return { ...pass, skipped, what: 'event' };
    }),
};
