/** `northroot init`: makes a new ledger with its genesis record and, by default, its key. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import type { NorthrootError } from '../../base/error.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { MAX_KEY_BYTES } from '../../format/key/key-form.js';
import type { PublicKey } from '../../format/key/public-key.js';
import type { Key } from '../../format/schema/generated/types.js';
import type { Signer } from '../../format/signature/signer.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { describePredecessor } from '../../log/read/describe-predecessor.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { isEmptyLedger, ownKeyEntry } from '../../log/writer/genesis.js';
import { Ledger } from '../../log/writer/ledger.js';
import { makeKeyEntry } from '../../rules/trust/key-entry.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { jsonText } from '../json-text.js';
import { pastInstant, principalId, repeatable } from '../options.js';
import { readPublicHalf } from './key.js';
import { assertOneSigning, asUsageError, findNamedSigner, openWithNewKey } from './ledger-key.js';
import { describeNotice } from './notices.js';

interface InitOptions {
  readonly origin?: string;
  readonly key?: string;
  readonly recoveryKey?: readonly string[];
  readonly unsigned?: boolean;
  readonly requireCheckpoints?: boolean;
  readonly continues?: string;
  readonly principal: string;
  readonly at?: string;
}

export function addInit(program: Command, run: Run): void {
  program
    .command('init')
    .summary('make a new ledger')
    .description(
      'Makes a new ledger and its genesis record. It signs with --key, or the key that NORTHROOT_KEY names; without either it uses LEDGER.key, which is made if missing. A path that ends in / becomes a folder of segments.',
    )
    .argument('<ledger>', 'the file, or folder, to make')
    .option(
      '--origin <name>',
      "the ledger's unique name, a URL without a scheme (default: localhost/ and a random name)",
    )
    .option('--key <file>', 'private key to sign with (default: NORTHROOT_KEY, then a new one)')
    .addOption(
      repeatable(
        '--recovery-key <file>',
        'also declare this key, with the role admin only, to be kept offline: if the first key is lost, it can add another',
      ),
    )
    .option('--unsigned', 'declare no key and require no signatures')
    .option('--require-checkpoints', 'a ledger with records and no checkpoint is invalid')
    .option('--continues <path>', 'the predecessor of this ledger, in its present state')
    .option('--principal <id>', 'who creates the ledger', principalId, 'service:ledger')
    .option(
      '--at <time>',
      'when its history begins, to record the past: 7d (ago), or a time that is not in the future (default: now)',
      pastInstant,
    )
    .action((ledger: string, options: InitOptions) => run((context) => init(context, ledger, options)));
}

async function init({ terminal, signal }: Context, path: string, options: InitOptions): Promise<ExitStatus> {
  const { unsigned = false, key, origin, principal, requireCheckpoints = false, at } = options;
  if (at !== undefined && compareTimestamps(at, new Date().toISOString()) > 0) {
    // Keys would be valid only from then.
    throw usageError(`--at ${at} is in the future`, 'expected a time in the past');
  }
  assertOneSigning(options);
  const recovery = await readRecoveryKeys(options);
  if (!(await isEmptyLedger(path))) throw ledgerExists(path);
  const { continues: old } = options;
  const continues = old === undefined ? undefined : await describePredecessor(() => openLedger(old), signal);
  let isMade = false;
  const open = async (signer: Signer | undefined): Promise<Ledger> => {
    try {
      return await Ledger.open(path, {
        create: {
          ...defined({ origin }),
          ...(requireCheckpoints ? { checkpoints: 'required' } : {}),
          ...(signer === undefined || recovery.length === 0
            ? {}
            : { keys: [ownKeyEntry(signer.publicKey), ...besides(signer, recovery)] }),
          ...defined({ continues }),
          principalId: principal,
        },
        onNotice: (notice) => {
          isMade ||= notice.code === 'LEDGER_CREATED';
          terminal.say(describeNotice(notice));
        },
        signal,
        ...(at === undefined ? {} : { now: () => at }),
        ...defined({ signer }),
      });
    } catch (error) {
      throw asUsageError(error);
    }
  };
  const named = unsigned ? undefined : await findNamedSigner(terminal, key);
  const isAlone = unsigned || named !== undefined;
  const { ledger, signer } = isAlone
    ? { ledger: await open(named), signer: named }
    : await openWithNewKey(terminal, path, open);
  const keyid = signer?.publicKey.keyid ?? null;
  const result = { seq: 0, event_id: ledger.genesisId, origin: ledger.origin, keyid };
  await ledger.close();
  // Another process may have made it.
  if (!isMade) throw ledgerExists(path);
  await terminal.write(`${jsonText(result)}\n`);
  return 0;
}

/** Either half of each key is accepted. */
async function readRecoveryKeys({ recoveryKey = [], unsigned }: InitOptions): Promise<PublicKey[]> {
  if (unsigned === true && recoveryKey.length > 0) {
    throw usageError('--recovery-key and --unsigned exclude each other');
  }
  const keys: PublicKey[] = [];
  for (const file of recoveryKey) {
    const key = readPublicHalf(await readSmallFile(file, MAX_KEY_BYTES));
    if (keys.some(({ keyid }) => keyid === key.keyid)) {
      throw usageError(`--recovery-key ${printable(file)}: expected each key once`);
    }
    keys.push(key);
  }
  return keys;
}

function besides(signer: Signer, recovery: readonly PublicKey[]): Key[] {
  if (recovery.some(({ keyid }) => keyid === signer.publicKey.keyid)) {
    throw usageError(
      '--recovery-key: expected another key than the one that signs',
      'make one with northroot keygen --out FILE, and keep it elsewhere',
    );
  }
  return recovery.map((key) => makeKeyEntry(key, { roles: ['admin'], name: 'recovery' }));
}

function ledgerExists(path: string): NorthrootError {
  return new CommandError('LEDGER_EXISTS', `${printable(path)} exists already`, {
    hint: 'append to it, or choose another path; nothing was changed',
  });
}
