/** `export --csv`, `--parquet`: every record and every amount as a row, in a folder of files. */

import { join } from 'node:path';
import { writeFolderThrough } from '../../log/fs/file-sink.js';
import type { ExportOptions } from '../../log/read/write-records.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { exportCsv, type TableExport } from '../../out/export/table/csv-tables.js';
import { exportParquet } from '../../out/export/table/parquet-tables.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import type { ExitStatus } from '../context.js';
import type { ExportJob, ExportKind } from './export-kind.js';
import { count, sayWritten, verificationOptions } from './export-to.js';

const CSV_FILES = ['events.csv', 'meters.csv', 'verification.csv'] as const;
const PARQUET_FILES = ['events.parquet', 'meters.parquet'] as const;

export const CSV: ExportKind = {
  flags: '--csv <folder>',
  target: 'folder',
  filesAt: (path) => CSV_FILES.map((name) => join(path, name)),
  description: 'a folder of CSV files: events, meters (all amounts), and the verification result',
  write: (job) =>
    writeTables(job, (source, options) =>
      writeFolderThrough(job.path, CSV_FILES, (sinks) =>
        exportCsv(
          source,
          {
            events: sinks['events.csv'],
            meters: sinks['meters.csv'],
            verification: sinks['verification.csv'],
          },
          options,
        ),
      ),
    ),
};

export const PARQUET: ExportKind = {
  flags: '--parquet <folder>',
  target: 'folder',
  filesAt: (path) => PARQUET_FILES.map((name) => join(path, name)),
  description: 'a folder of Parquet files: events, and meters (all amounts)',
  write: (job) =>
    writeTables(job, (source, options) =>
      writeFolderThrough(job.path, PARQUET_FILES, (sinks) =>
        exportParquet(source, { events: sinks['events.parquet'], meters: sinks['meters.parquet'] }, options),
      ),
    ),
};

async function writeTables(
  job: ExportJob,
  run: (source: LedgerSource, options: ExportOptions) => Promise<TableExport>,
): Promise<ExitStatus> {
  const source = await openLedger(job.ledger);
  const made = await run(source, verificationOptions(job));
  return sayWritten(job, [`${count(made.selected, 'event')}, ${count(made.meterRows, 'amount')}`], made);
}
