/** `export --html`: the page that shows the ledger and verifies it in the reader's browser. */

import { exportPage } from '../../out/page/export-page.js';
import type { ExportKind } from './export-kind.js';
import { exportTo } from './export-to.js';

export const HTML: ExportKind = {
  flags: '--html <file>',
  target: 'file',
  description: 'one HTML file that verifies the ledger in a browser and shows it; takes no selection',
  write: (job) =>
    exportTo(job, async (ledger, sink, options) => ({
      ...(await exportPage(ledger, sink, options)),
      unmatched: [],
      what: 'record',
    })),
};
