/** `export --focus`: FOCUS cost rows, and beside them what was verified. */

import { printable } from '../../base/bytes/printable.js';
import { writeThrough } from '../../log/fs/file-sink.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { currencyOf } from '../../out/export/table/currencies.js';
import { exportFocus, type FocusOptions } from '../../out/export/table/focus.js';
import { usageError } from '../command-error.js';
import type { ExportKind } from './export-kind.js';
import { count, sayWritten, verificationOptions } from './export-to.js';

export const FOCUS: ExportKind = {
  flags: '--focus <file>',
  target: 'files',
  filesAt: (path) => [path, verificationPath(path)],
  description: 'FOCUS 1.2 cost rows as CSV; the verification result goes to FILE.verification.csv',
  further: [
    [
      '--currency-unit <unit=code...>',
      'for --focus: units that are money, such as credits=USD; lower-case ISO 4217 codes always are',
    ],
  ],
  write: async (job) => {
    const { path } = job;
    const options: FocusOptions = {
      ...verificationOptions(job),
      currencyUnits: readCurrencyUnits(job.options['currencyUnit']),
    };
    const source = await openLedger(job.ledger);
    const made = await writeThrough(path, (costs) =>
      writeThrough(verificationPath(path), (verification) =>
        exportFocus(source, { costs, verification }, options),
      ),
    );
    const left = `${count(made.withoutCost, 'execution')} without an amount in a currency`;
    return sayWritten(job, [count(made.rows, 'cost row'), ...(made.withoutCost === 0 ? [] : [left])], made);
  },
};

function verificationPath(path: string): string {
  return `${path.replace(/\.csv$/, '')}.verification.csv`;
}

function readCurrencyUnits(given: unknown): Readonly<Record<string, string>> | undefined {
  if (!Array.isArray(given)) return undefined;
  const pairs = given.map((text: unknown) => {
    const [, unit, code] = /^([a-z][a-z0-9_.-]{0,63})=([A-Z]{3})$/.exec(String(text)) ?? [];
    if (unit === undefined || code === undefined || currencyOf(code.toLowerCase()) === undefined)
      throw usageError(`${printable(String(text))} is not a unit and its currency`, 'such as usd=USD');
    return [unit, code] as const;
  });
  const [twice] = pairs.filter(([unit], i) => pairs.findIndex(([other]) => other === unit) < i);
  if (twice !== undefined) throw usageError(`${twice[0]} is given two currencies`);
  return Object.fromEntries(pairs);
}
