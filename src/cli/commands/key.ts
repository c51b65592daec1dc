/**
 * `northroot key show` tells of a key in any form that other tools read; `key list` of those of a ledger; `key add` and `key revoke` record that a ledger's keys
 * change from here on.
 */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { isPrincipalPattern } from '../../base/value/principal.js';
import { MAX_KEY_BYTES } from '../../format/key/key-form.js';
import { parsePrivateKey } from '../../format/key/private-key.js';
import {
  formatPublicKeyAs,
  parsePublicKey,
  type PublicKey,
  type PublicKeyForm,
} from '../../format/key/public-key.js';
import { isKeyName } from '../../format/key/vkey.js';
import type { Key } from '../../format/schema/generated/types.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { renderKeyList } from '../../out/text/key-list.js';
import { type ListedKey, readKeyList } from '../../rules/report/key-list.js';
import type { Role } from '../../rules/trust/authority.js';
import { makeKeyEntry } from '../../rules/trust/key-entry.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { openLedgerInput, readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { collect, instant, principalId } from '../options.js';
import { findOwnSigner, keyPathOf, openSigned, type SigningChoice, withSigning } from './ledger-key.js';

const ROLES: readonly Role[] = ['event', 'authority', 'checkpoint', 'witness', 'admin'];

interface ChangeOptions extends SigningChoice {
  readonly principal?: string;
  readonly reason?: string;
}

interface AddOptions extends ChangeOptions {
  readonly role?: readonly string[];
  readonly for?: readonly string[];
  readonly name?: string;
  readonly validFrom?: string;
  readonly validUntil?: string;
}

export function addKey(program: Command, run: Run): void {
  const key = program
    .command('key')
    .summary("show a key, or change a ledger's keys")
    .description(
      "Shows a key's public half, as trust policies and other tools want it; lists a ledger's keys; or records that a key comes to a ledger, or goes.",
    );
  addShow(key, run);
  addList(key, run);
  withChangeOptions(key.command('add'))
    .summary('let a ledger know a further key')
    .description(
      'Appends a key event: from its position on the key may sign, in its roles and for its principals. Signed with a key that has the role admin. The role event signs what was done; only authority signs grants, actions without a grant, and credits. So an agent gets a key with the role event alone, for itself: it cannot authorize itself, though it may delegate from grants of its own. Somebody who grants gets one with the role authority, for those whom they may grant something, such as agent:*; whose key it is, --name says.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument(
      '<public-key>',
      'a file with the new key, public or private half, in any form that key show reads',
    )
    .option(
      '--role <role>',
      'event, authority, checkpoint, witness or admin; may be given again (default: event)',
      collect,
    )
    .option(
      '--for <pattern>',
      'the principals of the events that it signs, of grants the grantees; may be given again (default: *)',
      collect,
    )
    .option('--name <name>', 'the name of the key; a witness needs the one that it cosigns under')
    .option('--valid-from <time>', 'not valid before', instant)
    .option('--valid-until <time>', 'not valid from then on', instant)
    .action((ledger: string, file: string, options: AddOptions) =>
      run(async (context) => {
        const publicKey = readPublicHalf(await readSmallFile(file, MAX_KEY_BYTES));
        return change(context, ledger, options, () => ({ action: 'add', key: newEntry(publicKey, options) }));
      }),
    );
  withChangeOptions(key.command('revoke'))
    .summary('take a key from a ledger')
    .description(
      'Appends a key event: from its position on the key signs nothing more. What it signed before stays valid where a checkpoint covers it: make one with northroot checkpoint, before or after. Signed with a key that has the role admin.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('<keyid>', 'the keyid, or the beginning of it (behind -- if that is short and begins with -)')
    .action((ledger: string, keyid: string, options: ChangeOptions) =>
      run((context) =>
        change(context, ledger, options, (keys) => ({ action: 'revoke', key: findEntry(keys, keyid) })),
      ),
    );
}

function withChangeOptions(command: Command): Command {
  return withSigning(
    command
      .option('--principal <id>', 'who changes the keys (default: who made the ledger)', principalId)
      .option('--reason <text>', 'why'),
  );
}

/** Appends a key event, and says what it was. */
async function change(
  context: Context,
  path: string,
  options: ChangeOptions,
  make: (keys: readonly Key[]) => { readonly action: 'add' | 'revoke'; readonly key: Key },
): Promise<ExitStatus> {
  const { principal, reason } = options;
  const { ledger } = await openSigned(context, path, options);
  try {
    const event = {
      event_type: 'key',
      principal_id: principal ?? ledger.principalId,
      ...make(await ledger.listKeys()),
      ...defined({ reason }),
    };
    const { seq, eventId, status } = await ledger.append({ event });
    const result = { seq, event_id: eventId, status, action: event.action, key: event.key };
    await context.terminal.write(`${jsonText(result)}\n`);
    if (event.action === 'revoke') await sayUseless(context, path, event.key.keyid);
  } finally {
    await ledger.close();
  }
  return 0;
}

/** Every command signs with the key beside the ledger unless it is told another. */
async function sayUseless({ terminal }: Context, path: string, revoked: string): Promise<void> {
  const own = await findOwnSigner(terminal, path).catch(() => undefined);
  if (own?.publicKey.keyid !== revoked) return;
  const file = printable(keyPathOf(path));
  terminal.say(
    `${file} holds the key that is revoked now: put another in its place, or name one with --key or NORTHROOT_KEY`,
  );
}

function newEntry(publicKey: PublicKey, options: AddOptions): Key {
  const { role = [], for: principals = [], name, validFrom, validUntil } = options;
  const roles = role.map((each) => {
    const found = ROLES.find((known) => known === each);
    if (found === undefined) throw usage(`--role ${printable(each)}: expected one of ${ROLES.join(', ')}`);
    return found;
  });
  for (const pattern of principals) {
    if (!isPrincipalPattern(pattern)) {
      throw usage(`--for ${printable(pattern)}: expected a principal such as agent:a1, agent:* or *`);
    }
  }
  if (roles.includes('witness') && (name === undefined || !isKeyName(name))) {
    throw usage('a witness needs the --name that it cosigns under, without white space and "+"');
  }
  return makeKeyEntry(publicKey, {
    roles,
    principals,
    ...defined({ name, validFrom, validUntil }),
  });
}

function findEntry(keys: readonly Key[], keyid: string): Key {
  const found = keys.filter((key) => key.keyid.startsWith(keyid));
  const [key, other] = found;
  if (key === undefined || keyid === '') {
    throw usage(
      `the ledger has no key ${printable(keyid)} that is not revoked`,
      `it has ${keys.map((each) => each.keyid).join(', ')}`,
    );
  }
  if (other !== undefined) throw usage(`${printable(keyid)} begins more than one keyid`, 'give more of it');
  return key;
}

function usage(message: string, hint?: string): NorthrootError {
  return usageError(message, hint);
}

function addList(key: Command, run: Run): void {
  key
    .command('list')
    .summary("list a ledger's keys")
    .description(
      'Lists the keys that count in a ledger, and those that were revoked: their roles, for whom they sign, from which record on, and where and why they were revoked. A key event that no admin signed changes nothing.',
    )
    .argument('<ledger>', 'the file, the folder, a tile tree, or - for standard input')
    .addOption(
      new Option('--format <format>', 'text for people, json for programs')
        .choices(['text', 'json'])
        .default('text'),
    )
    .option(
      '--trust <file>',
      "list the keys that this trust policy pins, and the ledger's that follow from them",
    )
    .action((ledger: string, { format, trust }: { format: 'text' | 'json'; trust?: string }) =>
      run(async (context) => {
        const policy = await readTrustPolicy(trust);
        const list = await readKeyList(await openLedgerInput(ledger, context), {
          signal: context.signal,
          ...defined({ trust: policy }),
        });
        const { origin = null, keys, hasInvalid } = list;
        const { terminal } = context;
        await terminal.write(
          format === 'text' ? renderKeyList(list) : `${jsonText({ origin, keys: keys.map(toJson) }, 2)}\n`,
        );
        if (hasInvalid) terminal.say('warning: the ledger is not valid; northroot verify says what is wrong');
        return 0;
      }),
    );
}

function toJson({ key, since, addedBy, revoked }: ListedKey): object {
  return {
    ...key,
    since: since === undefined ? null : { seq: since.seq, event_id: since.eventId },
    added_by: addedBy,
    revoked:
      revoked === undefined
        ? null
        : { seq: revoked.seq, event_id: revoked.eventId, reason: revoked.reason ?? null },
  };
}

function addShow(key: Command, run: Run): void {
  key
    .command('show')
    .summary('show the public half of a key')
    .description(
      'Shows the public half of a key in another form. Reads private and public keys as PKCS#8 or SPKI PEM, OpenSSH, C2SP vkey, did:key, JWK, or ed25519:… text.',
    )
    .argument('<file>', 'the key file')
    .addOption(
      new Option('--form <form>', 'the form to show')
        .choices(['entry', 'wire', 'pem', 'openssh', 'vkey', 'cosigner', 'did', 'jwk'])
        .default('entry', 'entry: as genesis and trust policies list it'),
    )
    .option('--name <name>', "the key's name, for vkey, cosigner and openssh")
    .action((file: string, options: { form: PublicKeyForm | 'entry'; name?: string }) =>
      run(async ({ terminal }) => {
        const publicKey = readPublicHalf(await readSmallFile(file, MAX_KEY_BYTES));
        const { form, name } = options;
        if ((form === 'vkey' || form === 'cosigner') && name === undefined) {
          throw usage(`a ${form} needs a --name`, "a ledger's vkey is named by its origin");
        }
        const text =
          form === 'entry'
            ? JSON.stringify(makeKeyEntry(publicKey))
            : formatPublicKeyAs(publicKey, form, name);
        await terminal.write(withNewline(text));
        return 0;
      }),
    );
}

/** The key of a file that holds either half. */
export function readPublicHalf(bytes: Uint8Array): PublicKey {
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
