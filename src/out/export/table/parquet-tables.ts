/** A verified ledger as Parquet: the tables of `rows.ts`, with types, written in groups of rows so that memory stays bounded. */

import type { ByteWriter, KeyValue, ParquetWriter, SchemaElement } from 'hyparquet-writer';
import type * as Parquet from 'hyparquet-writer';
import type { ByteSink } from '../../../base/bytes/byte-sink.js';
import { VERSION } from '../../../base/version.js';
import type { LedgerInput } from '../../../log/read/verify-ledger.js';
import { type ExportOptions, writeRecords } from '../../../log/read/write-records.js';
import { type AboutEntry, describeExport } from '../about.js';
import type { TableExport } from './csv-tables.js';
import {
  type Cell,
  type ColumnKind,
  type Columns,
  DECIMAL_PRECISION,
  DECIMAL_SCALE,
  EVENT_COLUMNS,
  eventRow,
  METER_COLUMNS,
  meterRows,
  type Row,
} from './rows.js';

/** A group of rows has at most this many, and about as many characters of text. */
export const MAX_GROUP_ROWS = 16_384;
const MAX_GROUP_CHARACTERS = 16 * 1024 * 1024;

export interface ParquetSinks {
  /** A row for each record. */
  readonly events: ByteSink;
  /** A row for each amount. */
  readonly meters: ByteSink;
}

/**
 * Writes the selected records, and every amount that they name, as Parquet. The metadata of both files says what was verified and
 * what was not, under names that begin with `northroot.`. Outside text is not escaped: viewers MUST escape it.
 *
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; what a sink rejects with.
 */
export async function exportParquet(
  ledger: LedgerInput,
  sinks: ParquetSinks,
  options: ExportOptions = {},
): Promise<TableExport> {
  // Loaded lazily: no other command needs it.
  const library = await import('hyparquet-writer');
  const events = new ParquetTable(EVENT_COLUMNS, sinks.events, library);
  const meters = new ParquetTable(METER_COLUMNS, sinks.meters, library);
  let written = 0;
  const pass = await writeRecords('exportParquet', ledger, options, (record, subject) => {
    const rows = meterRows(record, subject);
    written += rows.length;
    const first = events.add(eventRow(record));
    for (const row of rows) meters.take(row);
    const second = meters.flushIfFull();
    return first === undefined ? second : first.then(() => second);
  });
  const about = describeExport(pass, options.selection);
  await events.finish(about);
  await meters.finish(about);
  return { ...pass, meterRows: written };
}

type Library = Pick<typeof Parquet, 'ByteWriter' | 'ParquetWriter'>;

interface GroupColumn {
  readonly name: string;
  readonly kind: ColumnKind;
  data: (Cell | null)[];
}

/** One file. Its rows are kept, column by column, until they make a group. */
class ParquetTable<C extends Columns> {
  readonly #columns: readonly GroupColumn[];
  readonly #sink: ByteSink;
  readonly #bytes: ByteWriter;
  readonly #writer: ParquetWriter;
  #rows = 0;
  #characters = 0;

  constructor(columns: C, sink: ByteSink, { ByteWriter, ParquetWriter }: Library) {
    this.#columns = Object.entries(columns).map(([name, kind]) => ({ name, kind, data: [] }));
    this.#sink = sink;
    this.#bytes = new ByteWriter();
    this.#writer = new ParquetWriter({
      writer: this.#bytes,
      schema: [
        { name: 'northroot', num_children: Object.keys(columns).length },
        ...Object.entries(columns).map(([name, kind]): SchemaElement => ({
          name,
          repetition_type: 'OPTIONAL',
          ...elementOf(kind),
        })),
      ],
      createdBy: `northroot ${VERSION}`,
    });
  }

  add(row: Row<C>): Promise<void> | undefined {
    this.take(row);
    return this.flushIfFull();
  }

  take(row: Row<C>): void {
    this.#rows += 1;
    for (const { name, kind, data } of this.#columns) {
      const cell: Cell = row[name];
      if (typeof cell === 'string') this.#characters += cell.length;
      data.push(toValue(kind, cell));
    }
  }

  flushIfFull(): Promise<void> | undefined {
    const isFull = this.#rows >= MAX_GROUP_ROWS || this.#characters >= MAX_GROUP_CHARACTERS;
    return isFull ? this.#flush() : undefined;
  }

  async finish(about: readonly AboutEntry[]): Promise<void> {
    if (this.#rows > 0) await this.#flush();
    this.#writer.kvMetadata = about.map(([name, value]): KeyValue => ({ key: `northroot.${name}`, value }));
    await this.#writer.finish();
    await this.#drain();
  }

  async #flush(): Promise<void> {
    const rows = this.#rows;
    const columnData = this.#columns.map(({ name, data }) => ({ name, data }));
    this.#rows = 0;
    this.#characters = 0;
    for (const column of this.#columns) column.data = [];
    await this.#writer.write({ columnData, rowGroupSize: rows });
    await this.#drain();
  }

  /** Passes the written bytes on, and reuses the buffer; the writer's `offset` continues. */
  async #drain(): Promise<void> {
    await this.#sink.write(this.#bytes.getBytes());
    this.#bytes.index = 0;
  }
}

function toValue(kind: ColumnKind, cell: Cell): Cell | null {
  if (cell === undefined) return null;
  return kind === 'integer' && typeof cell === 'number' ? BigInt(cell) : cell;
}

function elementOf(kind: ColumnKind): Omit<SchemaElement, 'name'> {
  switch (kind) {
    case 'text':
      return { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } };
    case 'integer':
      return { type: 'INT64' };
    case 'boolean':
      return { type: 'BOOLEAN' };
    case 'decimal':
      return {
        type: 'FIXED_LEN_BYTE_ARRAY',
        type_length: 16,
        converted_type: 'DECIMAL',
        precision: DECIMAL_PRECISION,
        scale: DECIMAL_SCALE,
        logical_type: { type: 'DECIMAL', precision: DECIMAL_PRECISION, scale: DECIMAL_SCALE },
      };
    case 'instant':
      return {
        type: 'INT64',
        converted_type: 'TIMESTAMP_MICROS',
        logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
      };
  }
}
