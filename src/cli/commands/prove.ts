/** `northroot prove`: proves that a record is in a ledger, or that the ledger extends an older checkpoint. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { MAX_NOTE_BYTES } from '../../format/note/signed-note.js';
import { readSmallFile, writeNewFile } from '../../log/fs/file-system.js';
import { count } from '../../out/text/words.js';
import { proveConsistency, proveRecord, proveRecordByReceipt } from '../../proof/prove.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readSigner, STDIN } from '../input.js';
import { type IndexChoice, INDEX, NO_INDEX, viewOf } from '../view.js';

interface ProveOptions extends IndexChoice {
  readonly checkpoint?: string;
  readonly consistency?: string;
  readonly out?: string;
  readonly entryOut?: string;
  readonly format: 'tlog-proof' | 'cose';
  readonly key?: string;
}

export function addProve(program: Command, run: Run): void {
  program
    .command('prove')
    .summary('prove that a record is in a ledger')
    .description(
      'Writes a proof (c2sp.org/tlog-proof@v1) that a record is in a ledger. The proof contains the record: to verify it, nothing is needed but the public key of the ledger. With --consistency, writes a proof that the ledger extends an older checkpoint. Signatures are not checked; northroot verify-proof does that. With --format cose, writes a COSE receipt (RFC 9942), signed with the key of the log, for tools that read COSE. It does not contain the record, which --entry-out writes; it is not a SCITT transparent statement.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('[event]', 'a seq such as 17, an id (sha-256:…, base64url or hex), or a prefix of one')
    .option('--checkpoint <note>', "prove against the checkpoint in this file, not the ledger's last one")
    .option('--consistency <note>', 'prove that the ledger extends the older checkpoint in this file')
    .option('--out <file>', 'the file to create (default: standard output)')
    .option(
      '--entry-out <file>',
      'write the record to this file instead of the proof: for COSE receipts, and for records of more than 49,146 bytes, whose proofs some tools cannot read',
    )
    .addOption(
      new Option('--format <format>', 'format of the proof of a record')
        .choices(['tlog-proof', 'cose'])
        .default('tlog-proof'),
    )
    .option('--key <file>', "for --format cose: the log's private key, ed25519 or p256")
    .option(...INDEX)
    .option(...NO_INDEX)
    .action((ledger: string, event: string | undefined, options: ProveOptions) =>
      run((context) => prove(context, ledger, event, options)),
    );
}

async function prove(
  context: Context,
  ledger: string,
  event: string | undefined,
  options: ProveOptions,
): Promise<ExitStatus> {
  if (ledger === STDIN) throw usageError('prove reads the ledger more than once: name a file or folder');
  if ((event === undefined) === (options.consistency === undefined))
    throw usageError('expected an event to prove, or --consistency and no event');
  if (options.entryOut !== undefined && options.consistency !== undefined)
    throw usageError('--entry-out is for the proof of a record, not for --consistency');
  if (options.format === 'cose' && options.consistency !== undefined)
    throw usageError('--format cose is for the proof of a record, not for --consistency');
  if ((options.format === 'cose') !== (options.key !== undefined))
    throw usageError('--format cose needs --key, the private key of the log, and nothing else does');
  const view = viewOf(context, ledger, event, options);
  const checkpoint = await readNoteFile(options.checkpoint);
  const settings = { signal: context.signal, ...defined({ checkpoint }) };
  const oldNote = await readNoteFile(options.consistency);
  if (oldNote !== undefined) {
    const { bytes, oldCheckpoint: old, checkpoint: now } = await proveConsistency(view, oldNote, settings);
    const done = `the checkpoint of ${count(now.size, 'record')} of ${printable(now.origin)} extends that of ${old.size}`;
    return writeProof(context, bytes, done, options.out);
  }
  const { entryOut, key } = options;
  const wanted = event as string;
  const {
    bytes,
    entry,
    index,
    checkpoint: tree,
  } = key === undefined
    ? await proveRecord(view, wanted, { ...settings, extra: entryOut === undefined })
    : await proveRecordByReceipt(view, wanted, {
        ...settings,
        signer: await readSigner(context.terminal, key),
      });
  if (entryOut !== undefined) await writeNewFile(entryOut, entry, 0o644);
  const done = `seq ${index} is in the checkpoint of ${count(tree.size, 'record')} of ${printable(tree.origin)}`;
  return writeProof(context, bytes, done, options.out);
}

async function writeProof(
  { terminal }: Context,
  bytes: Uint8Array,
  done: string,
  out: string | undefined,
): Promise<ExitStatus> {
  if (out === undefined) await terminal.write(bytes);
  else await writeNewFile(out, bytes, 0o644);
  terminal.say(out === undefined ? done : `made ${printable(out)}: ${done}`);
  return 0;
}

async function readNoteFile(path: string | undefined): Promise<Uint8Array | undefined> {
  return path === undefined ? undefined : readSmallFile(path, MAX_NOTE_BYTES);
}
