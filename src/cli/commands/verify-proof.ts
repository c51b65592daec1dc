/** `northroot verify-proof`: verifies a proof with nothing but a key. */

import { Option, type Command } from 'commander';
import {
  isReceipt,
  MAX_ENTRY_BYTES,
  MAX_KEY_BYTES,
  MAX_NOTE_BYTES,
  parseProofKey,
  printable,
  readSmallFile,
  renderConsistencyResult,
  renderProofResult,
  renderReceiptResult,
  verifyConsistencyProof,
  verifyProof,
  verifyReceipt,
  type ProofKey,
  type ProofTrust,
} from '../../index.js';
import { CommandError } from '../command-error.js';
import type { Context, ExitStatus } from '../context.js';
import { readInput, readTrustPolicy, readWitnessPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { commandGuide } from '../remedies.js';
import type { Terminal } from '../terminal.js';

interface VerifyProofOptions {
  readonly key?: readonly string[];
  readonly trust?: string;
  readonly witnessPolicy?: string;
  readonly consistency?: string;
  readonly entry?: string;
  readonly format: 'text' | 'json';
}

/** A vkey, rather than the name of a file that holds a key. */
const VKEY = /^[^+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*$/;

export function addVerifyProof(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  program
    .command('verify-proof')
    .summary('verify a proof with nothing but a key')
    .description(
      'Verifies a tlog-proof, offline and without the ledger: the signature of the checkpoint, the way from the entry to its root, and, where the entry is a northroot record, the record itself and its signatures. A COSE receipt (RFC 9942) is known by its first byte, and verified with --entry, the record that it is of. Proofs of other logs are verified too; the result says that their entry is not a northroot record. Exit status: 0 ok, 1 invalid, 2 undecided: without a key that signed the checkpoint, or without the entry, nothing is proven.',
    )
    .argument('<file>', 'the proof; - for standard input')
    .addOption(
      new Option(
        '--key <key>',
        "the ledger's public key: a file in any form that keys have, or a vkey; may be given again, for witnesses and signers of events",
      )
        .argParser((value: string, previous: readonly string[] = []) => [...previous, value])
        .conflicts('trust'),
    )
    .option('--trust <file>', 'the trust policy: which origins and keys count, and what must be signed')
    .option('--witness-policy <file>', 'logs, witnesses and their quorum, as a C2SP tlog-policy file')
    .option('--entry <file>', 'the entry that the proof is of, where the proof does not carry it')
    .option('--consistency <note>', 'the proof is that the ledger extends the older checkpoint in this file')
    .addOption(new Option('--format <format>', 'of the result').choices(['text', 'json']).default('text'))
    .action((file: string, options: VerifyProofOptions) =>
      run((context) => runVerifyProof(context, file, options)),
    );
}

async function runVerifyProof(
  context: Context,
  file: string,
  options: VerifyProofOptions,
): Promise<ExitStatus> {
  const { terminal } = context;
  if (options.entry !== undefined && options.consistency !== undefined) {
    throw new CommandError('USAGE', '--entry is of the proof of an entry, not of --consistency');
  }
  const trust = await readTrust(options, terminal);
  const bytes = await readInput(file, context);
  assertNotALedger(bytes, file);
  if (options.consistency === undefined) {
    const { entry } = options;
    const beside = entry === undefined ? {} : { entry: await readSmallFile(entry, MAX_ENTRY_BYTES) };
    if (isReceipt(bytes)) {
      const result = verifyReceipt(bytes, trust, beside);
      const text = renderReceiptResult(result, file, terminal.paint, commandGuide);
      await terminal.write(options.format === 'json' ? `${jsonText(result, 2)}\n` : text);
      return result.exit_status;
    }
    const result = verifyProof(bytes, trust, beside);
    const text = renderProofResult(result, file, terminal.paint, commandGuide);
    await terminal.write(options.format === 'json' ? `${jsonText(result, 2)}\n` : text);
    return result.exit_status;
  }
  const oldNote = await readSmallFile(options.consistency, MAX_NOTE_BYTES);
  const result = verifyConsistencyProof(bytes, oldNote, trust);
  const text = renderConsistencyResult(result, file, terminal.paint, commandGuide);
  await terminal.write(options.format === 'json' ? `${jsonText(result, 2)}\n` : text);
  return result.exit_status;
}

/** @throws NorthrootError `NOT_A_PROOF` for a ledger. */
function assertNotALedger(bytes: Uint8Array, file: string): void {
  if (!/^\{"(?:event|canonical_profile_id)":/.test(Buffer.from(bytes.subarray(0, 64)).toString('latin1')))
    return;
  throw new CommandError('NOT_A_PROOF', `${printable(file)} is not a proof: it looks like a ledger`, {
    hint: `northroot verify ${printable(file)} verifies a ledger; northroot prove makes a proof of one`,
  });
}

async function readTrust(
  { key = [], trust, witnessPolicy: path }: VerifyProofOptions,
  terminal: Terminal,
): Promise<ProofTrust> {
  const policy = await readTrustPolicy(trust);
  const witnessPolicy = await readWitnessPolicy(path, terminal);
  const keys: ProofKey[] = [];
  for (const each of key) {
    keys.push(parseProofKey(VKEY.test(each) ? each : await readSmallFile(each, MAX_KEY_BYTES)));
  }
  return {
    keys,
    ...(policy === undefined ? {} : { policy }),
    ...(witnessPolicy === undefined ? {} : { witnessPolicy }),
  };
}
