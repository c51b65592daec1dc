/** `northroot show`: one record, found by its number or its id. */

import { Option, type Command } from 'commander';
import { printable } from '../../bytes/printable.js';
import { asBuffer } from '../../bytes/encoding.js';
import { NorthrootError } from '../../error.js';
import { canonicalBytes } from '../../json/canonicalize.js';
import { toDsseEnvelope } from '../../signature/dsse.js';
import { tryParseDigest } from '../../value/digest.js';
import { readRecords, type ReadRecord } from '../../verify/read-records.js';
import type { Context, ExitStatus } from '../context.js';
import { openLedgerInput } from '../input.js';
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
  const matches = matcher(wanted);
  const found: ReadRecord[] = [];
  for await (const record of readRecords(await openLedgerInput(ledger, context))) {
    signal.throwIfAborted();
    if (!matches(record)) continue;
    found.push(record);
    if (found.length > 1) break;
  }
  const [record, other] = found;
  if (record === undefined) {
    throw new NorthrootError('RECORD_NOT_FOUND', `no record ${printable(wanted)} in ${printable(ledger)}`, {
      hint: 'northroot log lists the records',
    });
  }
  if (other !== undefined) {
    throw new NorthrootError('RECORD_AMBIGUOUS', `${printable(wanted)} names more than one record`, {
      hint: `give more of the id: ${record.eventId} or ${other.eventId}`,
    });
  }
  await terminal.write(render(record, format));
  if (format === 'event' && terminal.isShown) await terminal.write('\n');
  return 0;
}

/** A decimal number is a seq; anything else is an id, or the beginning of one, in either of its spellings. */
function matcher(wanted: string): (record: ReadRecord) => boolean {
  if (/^\d{1,16}$/.test(wanted)) return ({ seq }) => seq === Number(wanted);
  const digest = tryParseDigest(wanted);
  if (digest !== undefined) return ({ eventId }) => eventId === `sha-256:${digest.b64}`;
  const prefix = wanted.replace(/^sha-256:/, '');
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(prefix)) {
    throw new NorthrootError('USAGE', `${printable(wanted)} is neither a seq nor an event id`, {
      hint: 'such as 17, sha-256:6QJw61M4h8…, or the first characters of an id',
    });
  }
  const hex = /^[0-9a-fA-F]+$/.test(prefix) ? prefix.toLowerCase() : undefined;
  return ({ eventId }) => {
    const b64 = eventId.slice('sha-256:'.length);
    if (b64.startsWith(prefix)) return true;
    return hex !== undefined && Buffer.from(b64, 'base64url').toString('hex').startsWith(hex);
  };
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
