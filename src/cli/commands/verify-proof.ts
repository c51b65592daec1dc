/** `northroot verify-proof`: verifies a proof with only a key. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { MAX_KEY_BYTES } from '../../format/key/key-form.js';
import { looksLikePasskey, parsePasskey } from '../../format/key/passkey.js';
import type { PublicKey } from '../../format/key/public-key.js';
import { MAX_NOTE_BYTES } from '../../format/note/signed-note.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import type { Guide, Paint } from '../../out/text/guide.js';
import {
  renderConsistencyResult,
  renderProofResult,
  renderReceiptResult,
  renderStatementResult,
} from '../../out/text/proof-result.js';
import { parseProofKey, type ProofKey, type ProofTrust } from '../../proof/proof-keys.js';
import { hashLedger } from '../../proof/statement/export-statement.js';
import { isStatement, verifyStatement } from '../../proof/statement/verify-statement.js';
import { verifyConsistencyProof } from '../../proof/verify-consistency.js';
import { MAX_ENTRY_BYTES, type ProofOutcome, verifyProof } from '../../proof/verify-proof.js';
import { isReceipt, verifyReceipt } from '../../proof/verify-receipt.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import {
  openLedgerInput,
  parseFile,
  readInput,
  readTrustPolicy,
  readWitnessPolicy,
  STDIN,
} from '../input.js';
import { jsonText } from '../json-text.js';
import { repeatable, textOrJson } from '../options.js';
import { commandGuide, statementGuide } from '../remedies.js';
import { shellWord } from '../shell-word.js';
import type { Terminal } from '../terminal.js';

interface VerifyProofOptions {
  readonly key?: readonly string[];
  readonly trust?: string;
  readonly witnessPolicy?: string;
  readonly consistency?: string;
  readonly entry?: string;
  readonly ledger?: string;
  readonly format: 'text' | 'json';
}

/** A vkey, rather than the name of a file that holds a key. */
const VKEY = /^[^+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*$/;

export function addVerifyProof(program: Command, run: Run): void {
  program
    .command('verify-proof')
    .summary('verify a proof with only a key')
    .description(
      "Verifies a tlog-proof offline, without the ledger: the signature of the checkpoint, the inclusion of the entry and, if the entry is a northroot record, the record and its signatures. Proofs of other logs are verified too; the result says that their entry is not a northroot record. A COSE receipt (RFC 9942) is detected by its first byte, and needs --entry, its record. A DSSE envelope must hold an in-toto statement with the result of a verification (export --in-toto, or the SLSA Verification Summary of another tool): --key is the verifier's public key, --ledger the ledger that it must be about, which is not verified again. A statement that does not say PASSED is invalid. Exit status: 0 ok, 1 invalid, 2 undecided: without a key that signed, or without the entry, nothing is proven.",
    )
    .argument('<file>', 'the proof or statement; - for standard input')
    .addOption(
      repeatable(
        '--key <key>',
        'the public key of the ledger, of a witness or of a signer of events: a file in any format, the registration of a passkey, or a vkey',
      ).conflicts('trust'),
    )
    .option('--trust <file>', 'the trust policy: trusted origins and keys, and what must be signed')
    .option('--witness-policy <file>', 'a C2SP tlog-policy file: logs, witnesses and their quorum')
    .option('--entry <file>', 'the entry, if the proof does not contain it')
    .option('--ledger <path>', 'for a statement: the ledger that it must be about, by the hash of its bytes')
    .option('--consistency <note>', 'the proof is that the ledger extends the older checkpoint in this file')
    .addOption(textOrJson())
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
  if (options.entry !== undefined && options.consistency !== undefined)
    throw usageError('--entry is for the proof of an entry, not for --consistency');
  const bytes = await readInput(file, context);
  assertNotALedger(bytes, file);
  if (isStatement(bytes)) return verifyStatementFile(context, file, bytes, options);
  if (options.ledger !== undefined)
    throw usageError('--ledger is for statements; a proof is verified without the ledger');
  const trust = await readTrust(options, terminal);
  const { consistency, entry } = options;
  if (consistency !== undefined) {
    const oldNote = await readSmallFile(consistency, MAX_NOTE_BYTES);
    return show(verifyConsistencyProof(bytes, oldNote, trust), renderConsistencyResult);
  }
  const beside = entry === undefined ? {} : { entry: await readSmallFile(entry, MAX_ENTRY_BYTES) };
  return isReceipt(bytes)
    ? show(verifyReceipt(bytes, trust, beside), renderReceiptResult)
    : show(verifyProof(bytes, trust, beside), renderProofResult);

  async function show<R extends ProofOutcome>(
    result: R,
    render: (result: R, file: string, paint: Paint, guide: Guide) => string,
  ): Promise<ExitStatus> {
    return writeResult(context, result, render(result, file, terminal.paint, commandGuide), options);
  }
}

/** Options that say nothing of a statement. */
const OF_PROOFS = ['trust', 'witnessPolicy', 'entry', 'consistency'] as const;

async function verifyStatementFile(
  context: Context,
  file: string,
  bytes: Uint8Array,
  options: VerifyProofOptions,
): Promise<ExitStatus> {
  const wrong = OF_PROOFS.find((name) => options[name] !== undefined);
  if (wrong !== undefined) {
    const flag = wrong === 'witnessPolicy' ? 'witness-policy' : wrong;
    throw usageError(
      `--${flag} is for proofs, and this is a DSSE envelope with a statement`,
      "verify a statement with --key, the signer's public key, and --ledger",
    );
  }
  const { key, ledger } = options;
  if (file === STDIN && ledger === STDIN)
    throw usageError('only one of the statement and the ledger can be standard input');
  const keys = await readKeys(key);
  const sha256 = ledger === undefined ? undefined : await hashLedger(await openLedgerInput(ledger, context));
  const result = verifyStatement(bytes, { keys: signersOf(keys), sha256, requirePassed: true });
  const text = renderStatementResult(result, file, context.terminal.paint, statementGuide);
  return writeResult(context, result, text, options);
}

/** Without the keys of witnesses, which cosign only checkpoints. */
function signersOf(keys: readonly ProofKey[]): PublicKey[] {
  return keys.flatMap((each) => {
    if (each.kind === 'public-key') return each.webauthn === undefined ? [each.key] : [];
    return each.key.type === 'ed25519' ? [each.key.verification.publicKey] : [];
  });
}

async function writeResult(
  { terminal }: Context,
  result: ProofOutcome,
  text: string,
  { format }: VerifyProofOptions,
): Promise<ExitStatus> {
  await terminal.write(format === 'json' ? `${jsonText(result, 2)}\n` : text);
  return result.exit_status;
}

/** @throws NorthrootError `NOT_A_PROOF` for a ledger. */
function assertNotALedger(bytes: Uint8Array, file: string): void {
  if (!/^\{"(?:event|canonical_profile_id)":/.test(Buffer.from(bytes.subarray(0, 64)).toString('latin1')))
    return;
  throw new CommandError('NOT_A_PROOF', `${printable(file)} is not a proof: it looks like a ledger`, {
    hint: `northroot verify ${shellWord(file)} verifies a ledger; northroot prove makes a proof of one`,
  });
}

async function readTrust(
  { key, trust, witnessPolicy: path }: VerifyProofOptions,
  terminal: Terminal,
): Promise<ProofTrust> {
  const policy = await readTrustPolicy(trust);
  const witnessPolicy = await readWitnessPolicy(path, terminal);
  return {
    keys: await readKeys(key),
    ...defined({ policy, witnessPolicy }),
  };
}

function readKey(text: string | Uint8Array): ProofKey {
  if (!looksLikePasskey(text)) return parseProofKey(text);
  const { publicKey: key, webauthn } = parsePasskey(text);
  return { kind: 'public-key', key, webauthn };
}

async function readKeys(given: readonly string[] = []): Promise<ProofKey[]> {
  const keys: ProofKey[] = [];
  for (const each of given)
    keys.push(VKEY.test(each) ? readKey(each) : await parseFile(each, MAX_KEY_BYTES, readKey));
  return keys;
}
