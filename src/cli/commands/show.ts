/** `northroot show`: one record, found by its number or its id. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { MAX_KEY_BYTES } from '../../format/key/key-form.js';
import { parsePublicKey, type PublicKey } from '../../format/key/public-key.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import { toDsseEnvelope } from '../../format/signature/dsse.js';
import type { LedgerView } from '../../log/read/ledger-view.js';
import type { ReadRecord } from '../../log/read/read-records.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { parseFile, readTrustPolicy, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { repeatable } from '../options.js';
import { type IndexChoice, INDEX, NO_INDEX, viewOf } from '../view.js';

type ShowFormat = 'text' | 'record' | 'event' | 'dsse';

interface ShowOptions extends IndexChoice {
  readonly format: ShowFormat;
  readonly key?: readonly string[];
  readonly trust?: string;
}

export function addShow(program: Command, run: Run): void {
  program
    .command('show')
    .summary('show one record')
    .description(
      'Shows one record of a ledger, found by its seq, its event id, or an unambiguous prefix of the id. Nothing is verified.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input')
    .argument('<record>', 'a seq such as 17, an id (sha-256:…, base64url or hex), or a prefix of one')
    .addOption(
      new Option(
        '--format <format>',
        'text: indented; record: bytes of the line; event: canonical bytes of the event; dsse: DSSE envelope',
      )
        .choices(['text', 'record', 'event', 'dsse'])
        .default('text'),
    )
    .addOption(
      repeatable('--key <file>', "with dsse: a signer's public key that the ledger does not declare"),
    )
    .option('--trust <file>', 'with dsse: a trust policy with such keys')
    .option(...INDEX)
    .option(...NO_INDEX)
    .action((ledger: string, record: string, options: ShowOptions) =>
      run((context) => show(context, ledger, record, options)),
    );
}

async function show(
  context: Context,
  ledger: string,
  wanted: string,
  options: ShowOptions,
): Promise<ExitStatus> {
  const { format } = options;
  const { terminal } = context;
  const view = viewOf(context, ledger, wanted, options);
  const record = await view.findRecord(wanted);
  if (format === 'dsse') {
    await terminal.write(await toEnvelope(context, ledger === STDIN ? undefined : view, record, options));
    return 0;
  }
  await terminal.write(render(record, format));
  if (format === 'event' && terminal.isShown) await terminal.write('\n');
  return 0;
}

const NEWLINE = Buffer.from('\n');

function render(record: ReadRecord, format: Exclude<ShowFormat, 'dsse'>): string | Uint8Array {
  switch (format) {
    case 'text': {
      const text = jsonText(JSON.parse(new TextDecoder().decode(record.bytes)), 2);
      return `# ${printable(record.file)}:${record.line}  seq ${record.seq}  ${record.eventId}\n${text}\n`;
    }
    case 'record':
      return Buffer.concat([record.bytes, NEWLINE]);
    case 'event':
      return canonicalBytes(record.event);
  }
}

/**
 * Only the key shows whether a signature is P-256; other tools expect those in DER.
 *
 * @param view - Undefined where the ledger cannot be read again.
 */
async function toEnvelope(
  context: Context,
  view: LedgerView | undefined,
  record: ReadRecord,
  { key = [], trust }: ShowOptions,
): Promise<string> {
  const { terminal } = context;
  const known = new Map<string, PublicKey>();
  for (const entry of (await readTrustPolicy(trust))?.keys ?? []) {
    const decoded = decodeWireKey(entry);
    if (decoded.ok) known.set(entry.keyid, decoded.value);
  }
  for (const file of key) {
    const publicKey = await parseFile(file, MAX_KEY_BYTES, parsePublicKey);
    known.set(publicKey.keyid, publicKey);
  }
  const others = record.signatures.map(({ keyid }) => keyid).filter((keyid) => !known.has(keyid));
  if (others.length > 0)
    for (const [keyid, declared] of (await view?.findDeclaredKeys(others)) ?? []) known.set(keyid, declared);
  for (const keyid of others) {
    if (known.has(keyid)) continue;
    terminal.say(
      `the key ${printable(keyid)} is not known: its signature stays as in the record (give --key)`,
    );
  }
  const bytes = canonicalBytes(record.event);
  const envelope = toDsseEnvelope(bytes, record.signatures, (keyid) => known.get(keyid)?.alg);
  return `${JSON.stringify(envelope)}\n`;
}
