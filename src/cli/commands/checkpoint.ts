/** `northroot checkpoint`: seals a ledger, publishes the note, and has witnesses cosign it. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { canBeWitnessKey, isSignedBy, type NoteKey, parseNoteKey } from '../../format/note/note-key.js';
import type { NoteSignature } from '../../format/note/signed-note.js';
import type { Signer } from '../../format/signature/signer.js';
import { Ledger } from '../../log/writer/ledger.js';
import type { CheckpointResult } from '../../log/writer/options.js';
import { attestCheckpoint, type AttestResult } from '../../proof/witness/attest.js';
import { type Collected, submissionUrl } from '../../proof/witness/witness-client.js';
import {
  describeQuorum,
  meetsQuorum,
  type WitnessPolicy,
  witnessPolicyKeys,
} from '../../rules/trust/witness-policy.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readSigner, readWitnessPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { principalId, repeatable, seconds } from '../options.js';
import { assertApart } from '../targets.js';
import { viewOf } from '../view.js';
import {
  findSigner,
  notePathOf,
  prepareStateFolder,
  withWriting,
  type WritingChoice,
  writingOptions,
} from './ledger-key.js';

interface CheckpointCommandOptions extends WritingChoice {
  readonly key: readonly string[];
  readonly note?: string;
  readonly principal?: string;
  readonly witness: readonly string[];
  readonly witnessKey: readonly string[];
  readonly witnessPolicy?: string;
  readonly witnessTimeout: number;
}

export function addCheckpoint(program: Command, run: Run): void {
  const command = program
    .command('checkpoint')
    .summary('seal a ledger with a signed checkpoint')
    .description(
      'Verifies the ledger and appends a checkpoint that covers all its records, signed by a key with the role checkpoint (Ed25519 or ML-DSA-44; with one of each, the note is hybrid). Also writes the signed note to LEDGER.checkpoint. Keep a copy elsewhere: verify --checkpoint then detects later changes and truncation. With --witness, asks witnesses to cosign and appends their cosignatures as an attestation; only this uses the network. Refuses to seal broken evidence.',
    )
    .argument('<ledger>', 'the file or folder')
    .addOption(
      repeatable(
        '--key <file>',
        'private key that signs the note; the first that is not ML-DSA-44 signs the record too (default: NORTHROOT_KEY, then LEDGER.key)',
      ).default([]),
    )
    .option('--note <file>', 'where to write the note (default: LEDGER.checkpoint)')
    .option('--principal <id>', 'who makes the checkpoint (default: the creator of the ledger)', principalId)
    .addOption(repeatable('--witness <url>', 'ask the witness at this URL to cosign').default([]))
    .addOption(repeatable('--witness-key <vkey>', 'the public key of a witness').default([]))
    .option(
      '--witness-policy <file>',
      'a C2SP tlog-policy file: its witnesses are asked and trusted, and its quorum is required',
    )
    .option('--witness-timeout <seconds>', 'how long to wait for each witness', seconds, 10);
  withWriting(command).action((path: string, options: CheckpointCommandOptions) =>
    run((context) => checkpoint(context, path, options)),
  );
}

async function checkpoint(
  context: Context,
  path: string,
  options: CheckpointCommandOptions,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const policy = await readWitnessPolicy(options.witnessPolicy, terminal);
  const policyKeys = policy === undefined ? [] : witnessPolicyKeys(policy).witnesses;
  const keys = [...options.witnessKey.map(readWitnessKey), ...policyKeys];
  const urls = [
    ...new Set([...options.witness, ...(policy?.witnesses ?? []).flatMap(({ url }) => url ?? [])]),
  ];
  // Wrong options are reported before anything is sealed.
  for (const url of urls) submissionUrl(url);
  if (urls.length === 0 && keys.length > 0)
    throw usageError('there is no witness to ask', 'name it with --witness URL');
  await assertApart(options.note, path);
  const noteSigners: Signer[] = [];
  for (const file of options.key) noteSigners.push(await readSigner(terminal, file));
  const signer =
    noteSigners.find(({ publicKey }) => publicKey.alg !== 'ml-dsa-44') ??
    (await findSigner(terminal, path, undefined));
  const { principal } = options;
  const withLedger = async <T>(use: (ledger: Ledger) => Promise<T>): Promise<T> => {
    const ledger = await Ledger.open(path, {
      ...(await writingOptions(terminal, path, signer, options)),
      signal,
      checkpoints: true,
      ...(noteSigners.length === 0 ? {} : { noteSigners }),
    });
    try {
      return await use(ledger);
    } finally {
      await ledger.close();
    }
  };
  const notePath = options.note ?? notePathOf(path);
  await prepareStateFolder(path);
  const made = await withLedger(async (ledger) => {
    if (
      urls.length > 0 &&
      keys.length === 0 &&
      !(await ledger.listKeys()).some(({ roles }) => roles.includes('witness'))
    )
      terminal.say(
        'no key of a witness is known, so that no cosignature can count: give it with --witness-key',
      );
    const checkpointed = await ledger.checkpoint(principal);
    await ledger.publishNote(notePath, checkpointed.note);
    return checkpointed;
  });
  const attested =
    urls.length === 0
      ? undefined
      : await attestCheckpoint(withLedger, made, {
          urls,
          keys,
          view: viewOf(context, path, undefined, options),
          onAttested: (note, ledger) => ledger.publishNote(notePath, note),
          timeoutMs: options.witnessTimeout * 1000,
          signal,
          onProgress: (answer) => terminal.say(describeAnswer(answer)),
          ...defined({ principalId: principal }),
        });
  for (const line of attested?.refused ?? []) terminal.say(describeRefused(line, attested?.unknown ?? []));
  await terminal.write(`${jsonText(toResult(made, notePath, attested))}\n`);
  if (attested !== undefined) assertCosigned(attested, policy, policyKeys);
  return 0;
}

function readWitnessKey(vkey: string): NoteKey {
  const key = parseNoteKey(vkey);
  if (canBeWitnessKey(key)) return key;
  throw usageError(
    `--witness-key ${printable(vkey)} is not the key of a witness`,
    'witnesses have vkeys of type 0x04 or 0x06; northroot witness prints its own',
  );
}

function toResult(made: CheckpointResult, notePath: string, attested: AttestResult | undefined): object {
  const { seq, eventId, treeSize } = made;
  return {
    seq,
    event_id: eventId,
    tree_size: treeSize,
    note: notePath,
    ...(attested === undefined
      ? {}
      : {
          attestation: attested.attestation && {
            seq: attested.attestation.seq,
            event_id: attested.attestation.eventId,
          },
          cosignatures: attested.cosignatures.map((line) => ({
            name: line.name,
            key_id: line.keyId,
            verified: true,
            ...(attested.declared.includes(line) ? { declared: true } : {}),
          })),
        }),
  };
}

function describeAnswer({ url, lines, error }: Collected): string {
  const where = printable(url);
  if (error !== undefined) return `${where}: ${error.code}: ${printable(error.message, 500)}`;
  return `${where}: answered with lines by ${lines.map(({ name }) => printable(name)).join(', ')}`;
}

function describeRefused(line: NoteSignature, unknown: readonly NoteSignature[]): string {
  const name = printable(line.name);
  return unknown.includes(line)
    ? `refused a line by ${name}+${line.keyId}: its key is not known; give it with --witness-key`
    : `refused a line by ${name}+${line.keyId}: it does not count as a cosignature of this checkpoint`;
}

/** Fails if cosignatures are missing; the checkpoint itself was made. */
function assertCosigned(
  { cosignatures, refused }: AttestResult,
  policy: WitnessPolicy | undefined,
  policyKeys: readonly NoteKey[],
): void {
  const hint = 'the checkpoint stands; the next one asks the witnesses again';
  const cosigned = new Set(
    (policy?.witnesses ?? [])
      .filter((_, index) => cosignatures.some((line) => isSignedBy(line, policyKeys[index] as NoteKey)))
      .map(({ name }) => name),
  );
  if (policy !== undefined && !meetsQuorum(policy, (name) => cosigned.has(name))) {
    const actual = [...cosigned].map((name) => printable(name)).join(', ') || 'none';
    const message = `expected cosignatures by ${describeQuorum(policy)}, found ${actual}`;
    throw new CommandError('WITNESS_QUORUM', message, { hint });
  }
  if (cosignatures.length > 0) return;
  const what = refused.length > 0 ? 'no cosignature was valid and by a known witness' : 'no witness cosigned';
  throw new CommandError('WITNESS_QUORUM', what, { hint });
}
