/** `northroot keygen` makes a key; `northroot key show` tells of one, in any form that other tools read. */

import { Option, type Command } from 'commander';
import { writeNewFile, readSmallFile } from '../../fs/file-system.js';
import { MAX_KEY_BYTES, type KeyAlgorithm } from '../../key/key-form.js';
import {
  formatPrivateKey,
  generatePrivateKey,
  parsePrivateKey,
  type PrivateKeyForm,
} from '../../key/private-key.js';
import {
  formatPublicKey,
  formatPublicKeyAs,
  parsePublicKey,
  type PublicKey,
  type PublicKeyForm,
} from '../../key/public-key.js';
import { NorthrootError } from '../../error.js';
import { printable } from '../../bytes/printable.js';
import type { Context, ExitStatus } from '../context.js';

type Run = (action: (context: Context) => Promise<ExitStatus>) => Promise<void>;

export function addKeygen(program: Command, run: Run): void {
  program
    .command('keygen')
    .summary('make a private key')
    .description(
      'Makes a private key. With --out it goes to a new file that only its owner may read, and standard output says what its public half is; otherwise it goes to standard output.',
    )
    .option('--out <file>', 'the file to make')
    .addOption(new Option('--alg <name>', 'the algorithm').choices(['ed25519', 'p256']).default('ed25519'))
    .addOption(new Option('--form <form>', 'the form of the file').choices(['pem', 'jwk']).default('pem'))
    .action((options: { out?: string; alg: KeyAlgorithm; form: PrivateKeyForm }) =>
      run(async ({ terminal }) => {
        const key = generatePrivateKey(options.alg);
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

export function addKey(program: Command, run: Run): void {
  program
    .command('key')
    .summary("show a key's public half")
    .description("Shows a key's public half, as trust policies and other tools want it.")
    .command('show')
    .summary('show the public half of a key')
    .description(
      'Shows the public half of a key in another form. Reads private and public keys as PKCS#8 or SPKI PEM, OpenSSH, C2SP vkey, did:key, JWK, or ed25519:… text.',
    )
    .argument('<file>', 'the key file')
    .addOption(
      new Option('--form <form>', 'the form to show')
        .choices(['entry', 'wire', 'pem', 'openssh', 'vkey', 'did', 'jwk'])
        .default('entry', 'entry: as genesis and trust policies list it'),
    )
    .option('--name <name>', "the key's name, for vkey and openssh")
    .action((file: string, options: { form: PublicKeyForm | 'entry'; name?: string }) =>
      run(async ({ terminal }) => {
        const publicKey = readPublicHalf(await readSmallFile(file, MAX_KEY_BYTES));
        const { form, name } = options;
        if (form === 'vkey' && name === undefined) {
          throw new NorthrootError('USAGE', 'a vkey needs a --name', {
            hint: "a ledger's vkey is named by its origin",
          });
        }
        const entry = {
          keyid: publicKey.keyid,
          public_key: formatPublicKey(publicKey),
          roles: ['event'],
          principals: ['*'],
        };
        const text = form === 'entry' ? JSON.stringify(entry) : formatPublicKeyAs(publicKey, form, name);
        await terminal.write(withNewline(text));
        return 0;
      }),
    );
}

/** A file may hold either half. */
function readPublicHalf(bytes: Uint8Array): PublicKey {
  try {
    return parsePublicKey(bytes);
  } catch (error) {
    if (!(error instanceof NorthrootError && error.code === 'KEY_IS_PRIVATE')) throw error;
    return parsePrivateKey(bytes).publicKey;
  }
}

function withNewline(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
