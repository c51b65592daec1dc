/** `northroot key show` shows a key in any format; `key list`, `key add` and `key revoke` are about the keys of a ledger. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { isPrincipalPattern } from '../../base/value/principal.js';
import { MAX_KEY_BYTES } from '../../format/key/key-form.js';
import { looksLikePasskey, parsePasskey, type Passkey } from '../../format/key/passkey.js';
import { parsePrivateKey } from '../../format/key/private-key.js';
import {
  formatPublicKeyAs,
  parsePublicKey,
  type PublicKey,
  type PublicKeyForm,
} from '../../format/key/public-key.js';
import { isKeyName } from '../../format/key/vkey.js';
import type { Key } from '../../format/schema/generated/types.js';
import { kindOfPath } from '../../log/fs/file-system.js';
import { renderKeyList } from '../../out/text/key-list.js';
import { type ListedKey, readKeyList } from '../../rules/report/key-list.js';
import type { Role } from '../../rules/trust/authority.js';
import { findEntitledKeys, makeKeyEntry } from '../../rules/trust/key-entry.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { openLedgerInput, parseFile, readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { instant, principalId, repeatable, textOrJson } from '../options.js';
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
    .description("Shows a public key in other formats; or lists, adds or revokes a ledger's keys.");
  addShow(key, run);
  addList(key, run);
  withChangeOptions(key.command('add'))
    .summary('add a key to a ledger')
    .description(
      'Appends a key event: from then on the key may sign, in its roles and for its principals. The event must be signed by a key with the role admin. The role event signs what was done; only authority signs grants, actions without a grant, and credits. Give an agent a key with the role event only, for its own principal: it cannot authorize itself, but may delegate its own grants. Give a grantor a key with the role authority, for the principals that it may grant to, such as agent:*; --name says whose key it is. A passkey, from its registration, signs approvals alone.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('<public-key>', 'a file with the public or private key, in any format that key show reads')
    .addOption(repeatable('--role <role>', 'event, authority, checkpoint, witness or admin (default: event)'))
    .addOption(
      repeatable('--for <pattern>', 'the principals that it signs for; of grants, the grantees (default: *)'),
    )
    .option('--name <name>', 'the name of the key; for a witness, the name that it cosigns under')
    .option('--valid-from <time>', 'not valid before then', instant)
    .option('--valid-until <time>', 'not valid from then on', instant)
    .action((ledger: string, file: string, options: AddOptions) =>
      run(async (context) => {
        const half = await parseFile(file, MAX_KEY_BYTES, readKeyFile);
        return change(context, ledger, options, () => ({ action: 'add', key: newEntry(half, options) }));
      }),
    );
  withChangeOptions(key.command('revoke'))
    .summary("revoke a ledger's key")
    .description(
      'Appends a key event: from then on the key may not sign. What it signed before stays valid where a checkpoint covers it: run northroot checkpoint, before or after. The event must be signed by a key with the role admin.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument(
      '<key>',
      'its keyid, or a prefix of it, after -- if it is short and begins with -; or a file with the public or private key',
    )
    .action((ledger: string, key: string, options: ChangeOptions) =>
      run(async (context) => {
        const keyid = await keyidOf(key);
        return change(context, ledger, options, (keys) => ({
          action: 'revoke',
          key: findEntry(keys, keyid),
        }));
      }),
    );
}

/** The keyid of a file with a key; what names no file is one. */
async function keyidOf(key: string): Promise<string> {
  if ((await kindOfPath(key).catch(() => 'missing')) !== 'file') return key;
  return (await parseFile(key, MAX_KEY_BYTES, readKeyFile)).publicKey.keyid;
}

function withChangeOptions(command: Command): Command {
  return withSigning(
    command
      .option('--principal <id>', 'who changes the keys (default: the creator of the ledger)', principalId)
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
    if (event.action === 'revoke') await sayAfterRevoking(context, path, event.key.keyid);
    else sayWhoElseApproves(context, await ledger.listKeys(), event.key);
  } finally {
    await ledger.close();
  }
  return 0;
}

/** A passkey protects nobody in whose name another key may approve. */
function sayWhoElseApproves({ terminal }: Context, keys: readonly Key[], added: Key): void {
  const at = new Date().toISOString();
  const isNew = added.webauthn !== undefined;
  const others = (isNew ? keys : [added]).filter(({ webauthn }) => webauthn === undefined);
  for (const { keyid, principals } of isNew
    ? [added]
    : keys.filter(({ webauthn }) => webauthn !== undefined)) {
    for (const principal of principals) {
      const event = { event_type: 'approval', principal_id: principal };
      const [other] = findEntitledKeys(others, event, { at });
      if (other === undefined) continue;
      terminal.say(
        `note: key ${other.keyid} may approve as ${printable(principal)} without the passkey ${keyid}`,
      );
      return;
    }
  }
}

/** By default, commands sign with the key beside the ledger. */
async function sayAfterRevoking({ terminal }: Context, path: string, revoked: string): Promise<void> {
  terminal.say(
    'seal the ledger with another key: what the revoked one signed is valid only where a checkpoint covers it',
  );
  const own = await findOwnSigner(terminal, path).catch(() => undefined);
  if (own?.publicKey.keyid !== revoked) return;
  const file = printable(keyPathOf(path));
  terminal.say(`${file} holds the revoked key: replace it, or name another with --key or NORTHROOT_KEY`);
}

/** A key, or a passkey. */
type KeyFile = Partial<Pick<Passkey, 'webauthn'>> & Pick<Passkey, 'publicKey'>;

function newEntry({ publicKey, webauthn }: KeyFile, options: AddOptions): Key {
  const { role = [], for: principals = [], name, validFrom, validUntil } = options;
  const roles = role.map((each) => {
    const found = ROLES.find((known) => known === each);
    if (found === undefined)
      throw usageError(`--role ${printable(each)}: expected one of ${ROLES.join(', ')}`);
    return found;
  });
  for (const pattern of principals)
    if (!isPrincipalPattern(pattern))
      throw usageError(`--for ${printable(pattern)}: expected a principal such as agent:a1, agent:* or *`);
  if (roles.includes('witness') && (name === undefined || !isKeyName(name)))
    throw usageError('a witness needs the --name that it cosigns under, without white space and "+"');
  return makeKeyEntry(publicKey, {
    roles,
    principals,
    ...defined({ name, validFrom, validUntil, webauthn }),
  });
}

function findEntry(keys: readonly Key[], keyid: string): Key {
  const found = keys.filter((key) => key.keyid.startsWith(keyid));
  const [key, other] = found;
  if (key === undefined || keyid === '')
    throw usageError(
      `the ledger has no key ${printable(keyid)} that is not revoked`,
      `it has ${keys.map((each) => each.keyid).join(', ')}`,
    );
  if (other !== undefined)
    throw usageError(`${printable(keyid)} begins more than one keyid`, 'give more of it');
  return key;
}

function addList(key: Command, run: Run): void {
  key
    .command('list')
    .summary("list a ledger's keys")
    .description(
      'Lists the current and revoked keys of a ledger: their roles, the principals that they sign for, since which record, and where and why they were revoked. A key event without the signature of an admin changes nothing.',
    )
    .argument('<ledger>', 'the file, the folder, a tile tree, or - for standard input')
    .addOption(textOrJson())
    .option('--trust <file>', "list the keys that this trust policy pins, and the ledger's keys they admit")
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
    .summary('show a public key')
    .description(
      "Shows a public key in another format. Reads private and public keys as PKCS#8 or SPKI PEM, OpenSSH, C2SP vkey, did:key, JWK, or ed25519:… text; and the registration of a passkey, as the approvers' page or JSON.stringify writes it.",
    )
    .argument('<file>', 'the key file')
    .addOption(
      new Option('--form <form>', 'the format to show')
        .choices(['entry', 'wire', 'pem', 'openssh', 'vkey', 'cosigner', 'did', 'jwk'])
        .default('entry', 'entry: as genesis and trust policies list it'),
    )
    .option('--name <name>', "the key's name, for vkey, cosigner and openssh")
    .action((file: string, options: { form: PublicKeyForm | 'entry'; name?: string }) =>
      run(async ({ terminal }) => {
        const { publicKey, webauthn } = await parseFile(file, MAX_KEY_BYTES, readKeyFile);
        const { form, name } = options;
        if ((form === 'vkey' || form === 'cosigner') && name === undefined)
          throw usageError(`a ${form} needs a --name`, "a ledger's vkey is named by its origin");
        const text =
          form === 'entry'
            ? JSON.stringify(makeKeyEntry(publicKey, { webauthn }))
            : formatPublicKeyAs(publicKey, form, name);
        await terminal.write(withNewline(text));
        return 0;
      }),
    );
}

function readKeyFile(bytes: Uint8Array): KeyFile {
  return looksLikePasskey(bytes) ? parsePasskey(bytes) : { publicKey: readPublicHalf(bytes) };
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

export function withNewline(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
