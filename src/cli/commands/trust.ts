/** `northroot trust init` makes a trust policy from a ledger; `trust show` shows one. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import type { GenesisEvent, Key, TrustPolicy } from '../../format/schema/generated/types.js';
import { writeNewFile } from '../../log/fs/file-system.js';
import { findCheckpoint } from '../../log/read/find-checkpoint.js';
import { readRecords } from '../../log/read/read-records.js';
import { passkeyRows } from '../../out/text/key-list.js';
import { count } from '../../out/text/words.js';
import { listKeys } from '../../rules/report/accounts.js';
import { draftTrustPolicy, fingerprintsOf } from '../../rules/trust/draft-policy.js';
import type { SavedKey } from '../../rules/trust/keyring.js';
import { runVerification } from '../../rules/verify/run-verification.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { CommandError, usageError } from '../command-error.js';
import { canAsk, confirm } from '../confirm.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { openLedgerInput, readTrustPolicy, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { repeatable, textOrJson } from '../options.js';
import { shellWord } from '../shell-word.js';

export function addTrust(program: Command, run: Run): void {
  const trust = program
    .command('trust')
    .summary('make or show a trust policy')
    .description('Makes or shows a trust policy: the keys that verify trusts.');
  trust
    .command('init')
    .summary('make a trust policy from a ledger')
    .description(
      "Shows the ledger's origin, the fingerprints of the keys in its genesis, and later key events. Asks whether they match what you were told by another channel, and writes a policy that pins them. Keys that its admins add or revoke later are followed. A revoked key is pinned only on request. The ledger must verify.",
    )
    .argument('<ledger>', 'the file or folder')
    .option('--out <file>', 'where to write the policy (default: standard output)')
    .addOption(
      repeatable(
        '--include-revoked <keyid>',
        'pin this revoked key too: what it signed before counts',
      ).default([]),
    )
    .option('--anchor-out <file>', "where to write the ledger's last checkpoint, for verify --checkpoint")
    .option('--yes', 'do not ask: the fingerprints were compared')
    .action((path: string, options: InitOptions) => run((context) => init(context, path, options)));
  trust
    .command('show')
    .summary('show what a trust policy pins')
    .description('Shows the origins, keys with their fingerprints, and requirements of a trust policy.')
    .argument('<policy>', 'the file')
    .addOption(textOrJson())
    .action((path: string, { format }: { format: 'text' | 'json' }) =>
      run(async ({ terminal }) => {
        const policy = (await readTrustPolicy(path)) as TrustPolicy;
        await terminal.write(format === 'json' ? `${jsonText(describe(policy), 2)}\n` : render(policy));
        return 0;
      }),
    );
}

interface InitOptions {
  readonly out?: string;
  readonly yes?: boolean;
  readonly includeRevoked: readonly string[];
  readonly anchorOut?: string;
}

async function init(
  context: Context,
  path: string,
  { out, yes = false, includeRevoked, anchorOut }: InitOptions,
): Promise<ExitStatus> {
  const { terminal } = context;
  if (path === STDIN) throw usageError('trust init reads the ledger twice: name a file or folder');
  const { genesis, state } = await readSound(path, context);
  if (genesis.keys.length === 0)
    throw new CommandError('KEY_UNKNOWN', 'the ledger declares no keys, so there is nothing to pin', {
      exitStatus: 2,
      hint: 'write a policy with the keys that you know: northroot schema trust-policy shows the form',
    });
  const keys = listKeys(state);
  const policy = draftTrustPolicy(genesis, { keys, includeRevoked });
  const anchor = await findAnchor(path, state, context);
  assertRevoked(keys, genesis, includeRevoked);
  process.stderr.write(render(policy));
  process.stderr.write(renderHistory(keys, policy, state));
  if (policy.keys.length === 0)
    throw new CommandError(
      'KEY_UNKNOWN',
      'every key that genesis declares was revoked, so there is nothing to pin',
      {
        exitStatus: 2,
        hint: 'pin those that you trust for what they signed before with --include-revoked',
      },
    );
  if (anchorOut !== undefined && anchor === undefined)
    throw new CommandError(
      'CHECKPOINT_MISSING',
      `no checkpoint seals ${printable(path)}, so there is none to keep`,
      {
        hint: `northroot checkpoint ${shellWord(path)} makes one`,
      },
    );
  if (!yes) await confirmFingerprints(context);
  const text = `${jsonText(policy, 2)}\n`;
  if (anchorOut !== undefined && anchor !== undefined) {
    await writeNewFile(anchorOut, Buffer.from(anchor.note), 0o644);
    terminal.say(`wrote ${printable(anchorOut)}, a checkpoint over ${count(anchor.size, 'record')}`);
  }
  if (out === undefined) await terminal.write(text);
  else {
    await writeNewFile(out, Buffer.from(text), 0o644);
    const held = anchorOut === undefined ? '' : ` --checkpoint ${printable(anchorOut)}`;
    terminal.say(
      `wrote ${printable(out)}: northroot verify --trust ${shellWord(out)}${held} ${shellWord(path)}`,
    );
  }
  if (anchor !== undefined && anchorOut === undefined)
    terminal.say(
      `its last checkpoint covers ${count(anchor.size, 'record')}: --anchor-out FILE keeps it, and verify --checkpoint FILE then finds what is cut off or changed`,
    );
  return 0;
}

function assertRevoked(keys: readonly SavedKey[], genesis: GenesisEvent, named: readonly string[]): void {
  const declared = new Set(genesis.keys.map(({ keyid }) => keyid));
  const isOne = (keyid: string): boolean =>
    declared.has(keyid) && keys.some(({ key, revokedBy }) => key.keyid === keyid && revokedBy !== undefined);
  const wrong = named.find((keyid) => !isOne(keyid));
  if (wrong === undefined) return;
  throw usageError(
    `${printable(wrong)} is not a key of genesis that was revoked`,
    'other keys of genesis are pinned anyway, and keys that were added later are followed',
  );
}

/** The note of the last checkpoint that seals the ledger, with the cosignatures that were added to it. */
async function findAnchor(
  path: string,
  { seals, records }: VerifyState,
  context: Context,
): Promise<{ readonly note: string | Uint8Array; readonly size: number } | undefined> {
  const source = await openLedgerInput(path, context);
  if (source.published !== undefined) return { note: source.published.note, size: records };
  const found = await findCheckpoint(source, { signal: context.signal });
  if (found === undefined || found.checkpoint.size !== seals.signed?.treeSize) return undefined;
  return { note: found.note, size: found.checkpoint.size };
}

/** The genesis of a ledger, which must verify by its own keys. */
async function readSound(
  path: string,
  context: Context,
): Promise<{ readonly genesis: GenesisEvent; readonly state: VerifyState }> {
  const { signal } = context;
  const { hasInvalid, state } = await runVerification(await openLedgerInput(path, context), {
    signal,
    maxFindings: 0,
  });
  if (state.records === 0)
    throw new CommandError('LEDGER_EMPTY', `${printable(path)} has no records`, {
      hint: 'nothing in it can be trusted, or verified',
    });
  if (hasInvalid || state.layout !== 'records')
    throw new CommandError('LEDGER_INVALID', `${printable(path)} does not verify`, {
      hint: `northroot verify ${shellWord(path)} says what is wrong with it`,
    });
  for await (const { event } of readRecords(await openLedgerInput(path, context)))
    return { genesis: event as unknown as GenesisEvent, state };
  throw new CommandError('FILE_CHANGED', `${printable(path)} was changed while it was read`);
}

async function confirmFingerprints({ terminal, signal }: Context): Promise<void> {
  if (!canAsk())
    throw usageError(
      'cannot ask whether the fingerprints are right: there is no terminal',
      'compare them with what you were told by another channel, then give --yes',
    );
  terminal.say('');
  await confirm(
    'Do the fingerprints match those that you were told by another channel?',
    signal,
    "ask the ledger's operator for the fingerprints, by another channel than the one that the file came by",
  );
}

function describe(policy: TrustPolicy): object {
  const [origin] = policy.origins ?? [];
  return {
    ...policy,
    fingerprints: policy.keys.map((key) => {
      const { openssh, vkey } = fingerprintsOf(key, origin) ?? {};
      return {
        keyid: key.keyid,
        ...defined({ openssh, vkey }),
      };
    }),
  };
}

const REQUIREMENTS: Readonly<Record<string, string>> = {
  event_signatures: 'signatures of records',
  checkpoints: 'checkpoints',
  checkpoint_quorum: 'keys that must sign a checkpoint',
  checkpoint_max_records: 'records without a checkpoint, at most',
  checkpoint_max_age_seconds: 'age of the last checkpoint in seconds, at most',
  witness_threshold: 'witnesses that must cosign',
  max_unsealed_records: 'records after the last checkpoint, at most',
};

function render({ origins, keys, require = {} }: TrustPolicy): string {
  const lines = [
    `origins: ${origins === undefined ? 'any' : origins.map((each) => printable(each)).join(', ')}`,
  ];
  for (const key of keys) lines.push('', ...renderKey(key, origins?.[0]));
  if (keys.length === 0) lines.push('keys: none, so that no signature is trusted');
  const demands = Object.entries(require).map(([name, value]) => `  ${REQUIREMENTS[name] ?? name}: ${value}`);
  if (demands.length > 0) lines.push('', 'demands', ...demands);
  return lines.map((line) => `${line}\n`).join('');
}

/** Later key events: which keys were added or revoked, where, by whom and why. */
function renderHistory(keys: readonly SavedKey[], policy: TrustPolicy, state: VerifyState): string {
  const pinned = new Set(policy.keys.map(({ keyid }) => keyid));
  const lines: string[] = [];
  for (const { key, addedAt, addedBy, revokedBy } of keys) {
    if (addedAt === undefined && revokedBy === undefined) continue;
    const isPinned = pinned.has(key.keyid);
    const records = state.signers.get(key.keyid)?.records ?? 0;
    lines.push('', ...(isPinned ? [`key ${key.keyid}, pinned`] : renderKey(key, policy.origins?.[0])));
    if (addedAt !== undefined)
      lines.push(`  added       at seq ${addedAt.seq} by ${signersText(addedBy)}: followed, not pinned`);
    if (revokedBy === undefined) continue;
    const reason = revokedBy.reason === undefined ? 'no reason given' : printable(revokedBy.reason);
    lines.push(`  revoked     at seq ${revokedBy.seq} by ${signersText(revokedBy.signers)}: ${reason}`);
    if (addedAt === undefined && !isPinned)
      lines.push(
        `  not pinned  of the records that it signed (${records}) none is trusted (--include-revoked ${key.keyid} pins it)`,
      );
  }
  if (lines.length > 0) lines.unshift('', 'by key events');
  return lines.map((line) => `${line}\n`).join('');
}

function signersText(keyids: readonly string[] = []): string {
  return keyids.join(' and ');
}

function renderKey(key: Key, origin: string | undefined): string[] {
  const { openssh, vkey } = fingerprintsOf(key, origin) ?? {};
  const row = (name: string, text: string): string => `  ${name.padEnd(11)} ${text}`;
  return [
    `key ${key.keyid}`,
    ...(key.name === undefined ? [] : [row('name', printable(key.name))]),
    row('roles', key.roles.join(', ')),
    row('principals', printable(key.principals.join(', '))),
    ...passkeyRows(key.webauthn).map(([name, text]) => row(name, text)),
    ...(openssh === undefined ? [] : [row('openssh', openssh)]),
    ...(vkey === undefined ? [] : [row('vkey', printable(vkey))]),
    ...(key.valid_from === undefined ? [] : [row('valid from', key.valid_from)]),
    ...(key.valid_until === undefined ? [] : [row('valid until', key.valid_until)]),
  ];
}
