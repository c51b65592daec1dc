/** `northroot init`: makes a new ledger with its genesis record and, unless told otherwise, its key. */

import type { Command } from 'commander';
import { NorthrootError } from '../../error.js';
import { nodeFileSystem } from '../../fs/file-system.js';
import { printable } from '../../bytes/printable.js';
import { Ledger } from '../../writer/ledger.js';
import type { Signer } from '../../signature/signer.js';
import type { Context, ExitStatus } from '../context.js';
import { readSigner } from '../input.js';
import { isMissing, makeLedgerKey } from './ledger-key.js';
import { describeNotice } from './notices.js';

interface InitOptions {
  readonly origin?: string;
  readonly key?: string;
  readonly unsigned?: boolean;
  readonly principal?: string;
}

export function addInit(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  program
    .command('init')
    .summary('make a new ledger')
    .description(
      'Makes a new ledger and its genesis record. Unless --key or --unsigned is given, a new key is made and kept as LEDGER.key. A path that ends in / becomes a folder of segments.',
    )
    .argument('<ledger>', 'the file, or folder, to make')
    .option(
      '--origin <name>',
      "the ledger's unique name, a URL without a scheme (default: localhost/ and a random name)",
    )
    .option('--key <file>', 'sign with this private key instead of a new one')
    .option('--unsigned', 'declare no key and require no signatures')
    .option('--principal <id>', 'who makes the ledger', 'service:ledger')
    .action((ledger: string, options: InitOptions) => run((context) => init(context, ledger, options)));
}

async function init({ terminal }: Context, path: string, options: InitOptions): Promise<ExitStatus> {
  if (options.unsigned && options.key !== undefined) {
    throw new NorthrootError('USAGE', '--key and --unsigned exclude each other');
  }
  await assertNew(path);
  let signer: Signer | undefined;
  let keyPath: string | undefined;
  if (options.key !== undefined) signer = await readSigner(options.key);
  else if (!options.unsigned) ({ signer, path: keyPath } = await makeLedgerKey(path));
  try {
    const ledger = await Ledger.open(path, {
      ...(signer === undefined ? {} : { signer }),
      create: {
        ...(options.origin === undefined ? {} : { origin: options.origin }),
        ...(options.principal === undefined ? {} : { principalId: options.principal }),
      },
      onNotice: (notice) => terminal.say(describeNotice(notice)),
    });
    const { origin, genesisId } = ledger;
    await ledger.close();
    if (keyPath !== undefined)
      terminal.say(`made its key ${printable(keyPath)}: keep it secret, and keep a copy`);
    await terminal.write(
      `${JSON.stringify({ seq: 0, event_id: genesisId, origin, keyid: signer?.publicKey.keyid ?? null })}\n`,
    );
    return 0;
  } catch (error) {
    // A key without its ledger would only stand in the way of the next attempt.
    if (keyPath !== undefined) await nodeFileSystem.remove(keyPath).catch(() => undefined);
    throw error;
  }
}

async function assertNew(path: string): Promise<void> {
  if (await isMissing(path)) return;
  throw new NorthrootError('LEDGER_EXISTS', `${printable(path)} exists already`, {
    hint: 'append to it, or choose another path; nothing was changed',
  });
}
