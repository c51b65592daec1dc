/** A verified ledger as CSV: a table of records, one of amounts, and one that says what was verified. */

import type { ByteSink } from '../../../base/bytes/byte-sink.js';
import type { LedgerInput } from '../../../log/read/verify-ledger.js';
import { type ExportOptions, type ExportPass, writeRecords } from '../../../log/read/write-records.js';
import { type AboutEntry, describeExport } from '../about.js';
import { csvRow } from './csv.js';
import {
  type Cell,
  type Columns,
  decimalText,
  EVENT_COLUMNS,
  eventRow,
  METER_COLUMNS,
  meterRows,
  type Row,
} from './rows.js';

export interface CsvSinks {
  /** A row for each record. */
  readonly events: ByteSink;
  /** A row for each amount. */
  readonly meters: ByteSink;
  /** What was verified, and what was not: names and values. */
  readonly verification: ByteSink;
}

export interface TableExport extends ExportPass {
  readonly meterRows: number;
}

/**
 * Writes the selected records, and every amount that they name, as CSV with headings (RFC 4180): no field is a formula, and
 * nothing is rounded.
 *
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; what a sink rejects with.
 */
export async function exportCsv(
  ledger: LedgerInput,
  { events, meters, verification }: CsvSinks,
  options: ExportOptions = {},
): Promise<TableExport> {
  await events.write(csvRow(EVENT_HEADINGS));
  await meters.write(csvRow(METER_HEADINGS));
  let written = 0;
  const pass = await writeRecords('exportCsv', ledger, options, (record, subject) => {
    const rows = meterRows(record, subject);
    written += rows.length;
    const first = events.write(toLine(EVENT_HEADINGS, eventRow(record)));
    const second =
      rows.length === 0 ? undefined : meters.write(rows.map((row) => toLine(METER_HEADINGS, row)).join(''));
    return first === undefined ? second : first.then(() => second);
  });
  await verification.write(verificationCsv(describeExport(pass, options.selection)));
  return { ...pass, meterRows: written };
}

/** What an export says of itself, as CSV. */
export function verificationCsv(entries: readonly AboutEntry[]): string {
  return [['name', 'value'] as const, ...entries].map(csvRow).join('');
}

/** Instants are left to tables that have types: their text is beside them. */
function headingsOf(columns: Columns): string[] {
  return Object.keys(columns).filter((name) => columns[name] !== 'instant');
}

const EVENT_HEADINGS = headingsOf(EVENT_COLUMNS);
const METER_HEADINGS = headingsOf(METER_COLUMNS);

function toLine(headings: readonly string[], row: Row<Columns>): string {
  return csvRow(headings.map((name) => toField(row[name])));
}

function toField(cell: Cell): string | number {
  if (cell === undefined) return '';
  if (typeof cell === 'bigint') return decimalText(cell);
  return typeof cell === 'boolean' ? String(cell) : cell;
}
