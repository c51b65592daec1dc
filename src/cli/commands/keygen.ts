/** `northroot keygen`: makes a private key. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import type { KeyAlgorithm } from '../../format/key/key-form.js';
import { formatPrivateKey, generatePrivateKey, type PrivateKeyForm } from '../../format/key/private-key.js';
import { formatPublicKey } from '../../format/key/public-key.js';
import { writeNewFile } from '../../log/fs/file-system.js';
import type { Run } from '../context.js';
import { withNewline } from './key.js';

const ALGORITHMS: readonly KeyAlgorithm[] = ['ed25519', 'p256', 'ml-dsa-44'];

export function addKeygen(program: Command, run: Run): void {
  program
    .command('keygen')
    .summary('make a private key')
    .description(
      'Makes a private key. With --out, writes it to a new file that only its owner may read, and prints the public key; otherwise prints the private key.',
    )
    .option('--out <file>', 'the file to create')
    .addOption(
      new Option(
        '--type <name>',
        'the algorithm (default: ed25519); ml-dsa-44 signs notes, not records',
      ).choices(ALGORITHMS),
    )
    .addOption(new Option('--alg <name>', 'another name for --type').choices(ALGORITHMS).hideHelp())
    .addOption(new Option('--form <form>', 'the form of the file').choices(['pem', 'jwk']).default('pem'))
    .action((options: { out?: string; type?: KeyAlgorithm; alg?: KeyAlgorithm; form: PrivateKeyForm }) =>
      run(async ({ terminal }) => {
        const key = generatePrivateKey(options.type ?? options.alg ?? 'ed25519');
        const text = withNewline(formatPrivateKey(key, options.form));
        const about = `${JSON.stringify({ keyid: key.publicKey.keyid, public_key: formatPublicKey(key.publicKey) })}`;
        if (options.out === undefined) {
          await terminal.write(text);
          terminal.say(about);
        } else {
          await writeNewFile(options.out, Buffer.from(text), 0o600);
          terminal.say(`made ${printable(options.out)}: keep it secret, and keep a copy`);
          await terminal.write(`${about}\n`);
        }
        return 0;
      }),
    );
}
