/** `northroot show`: one record, found by its number or its id. */

import { Option, type Command } from 'commander';
import { printable } from '../../bytes/printable.js';
import { asBuffer } from '../../bytes/encoding.js';
import { canonicalBytes } from '../../json/canonicalize.js';
import { toDsseEnvelope } from '../../signature/dsse.js';
import { findRecord } from '../../verify/find-record.js';
import type { ReadRecord } from '../../verify/read-records.js';
import type { Context, ExitStatus } from '../context.js';
import { openLedgerOf } from '../input.js';
import { jsonText } from '../json-text.js';

type ShowFormat = 'text' | 'record' | 'event' | 'dsse';

export function addShow(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  program
    .command('show')
    .summary('show one record')
    .description(
      'Shows one record of a ledger, found by its seq, its event id, or any unambiguous prefix of the id. Nothing is verified.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input')
    .argument('<record>', 'a seq such as 17, an id (sha-256:…, base64url or hex), or a prefix of one')
    .addOption(
      new Option(
        '--format <format>',
        'text: indented; record: the bytes of the line; event: the canonical bytes of the event; dsse: a DSSE envelope',
      )
        .choices(['text', 'record', 'event', 'dsse'])
        .default('text'),
    )
    .action((ledger: string, record: string, options: { format: ShowFormat }) =>
      run((context) => show(context, ledger, record, options.format)),
    );
}

async function show(
  context: Context,
  ledger: string,
  wanted: string,
  format: ShowFormat,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const record = await findRecord(await openLedgerOf(ledger, wanted, context), wanted, signal);
  await terminal.write(render(record, format));
  if (format === 'event' && terminal.isShown) await terminal.write('\n');
  return 0;
}

const NEWLINE = Buffer.from('\n');

function render(record: ReadRecord, format: ShowFormat): string | Uint8Array {
  switch (format) {
    case 'text': {
      const text = jsonText(JSON.parse(asBuffer(record.bytes).toString('utf8')), 2);
      return `# ${printable(record.file)}:${record.line}  seq ${record.seq}  ${record.eventId}\n${text}\n`;
    }
    case 'record':
      return Buffer.concat([record.bytes, NEWLINE]);
    case 'event':
      return canonicalBytes(record.event);
    case 'dsse':
      return `${JSON.stringify(toDsseEnvelope(canonicalBytes(record.event), record.signatures))}\n`;
  }
}
