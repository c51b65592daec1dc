/** `northroot trust init` makes a trust policy of what a ledger declares; `trust show` says what a policy pins. */

import { createInterface } from 'node:readline/promises';
import { Option, type Command } from 'commander';
import { printable } from '../../bytes/printable.js';
import { NorthrootError } from '../../error.js';
import { writeNewFile } from '../../fs/file-system.js';
import type { GenesisEvent, Key, TrustPolicy } from '../../schema/generated/types.js';
import { draftTrustPolicy, fingerprintsOf } from '../../trust/draft-policy.js';
import { readRecords } from '../../verify/read-records.js';
import { runVerification } from '../../verify/run-verification.js';
import type { Context, ExitStatus } from '../context.js';
import { openLedgerInput, readTrustPolicy, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';

type Run = (action: (context: Context) => Promise<ExitStatus>) => Promise<void>;

export function addTrust(program: Command, run: Run): void {
  const trust = program
    .command('trust')
    .summary('make or show a trust policy')
    .description('Makes a trust policy, which says whom verify believes, or shows one.');
  trust
    .command('init')
    .summary('make a trust policy of what a ledger declares')
    .description(
      "Shows the ledger's origin and the fingerprints of the keys that its genesis declares, asks whether they are those that you were told elsewhere, and writes a policy that pins them. Keys that its admins add or revoke later follow from these. The ledger must verify.",
    )
    .argument('<ledger>', 'the file or folder')
    .option('--out <file>', 'where to write the policy (default: standard output)')
    .option('--yes', 'the fingerprints were compared: do not ask')
    .action((path: string, options: { out?: string; yes?: boolean }) =>
      run((context) => init(context, path, options)),
    );
  trust
    .command('show')
    .summary('show what a trust policy pins')
    .description('Shows the origins, keys with their fingerprints, and requirements of a trust policy.')
    .argument('<policy>', 'the file')
    .addOption(new Option('--format <format>', 'of the output').choices(['text', 'json']).default('text'))
    .action((path: string, { format }: { format: 'text' | 'json' }) =>
      run(async ({ terminal }) => {
        const policy = (await readTrustPolicy(path)) as TrustPolicy;
        await terminal.write(format === 'json' ? `${jsonText(describe(policy), 2)}\n` : render(policy));
        return 0;
      }),
    );
}

async function init(
  context: Context,
  path: string,
  { out, yes = false }: { out?: string; yes?: boolean },
): Promise<ExitStatus> {
  const { terminal } = context;
  if (path === STDIN)
    throw new NorthrootError('USAGE', 'trust init reads the ledger twice: name a file or folder');
  const genesis = await readGenesisOf(path, context);
  if (genesis.keys.length === 0) {
    throw new NorthrootError('KEY_UNKNOWN', 'the ledger declares no keys, so there is nothing to pin', {
      hint: 'write a policy with the keys that you know: northroot schema trust-policy shows the form',
    });
  }
  const policy = draftTrustPolicy(genesis);
  process.stderr.write(render(policy));
  if (!yes) await confirm(context);
  const text = `${jsonText(policy, 2)}\n`;
  if (out === undefined) await terminal.write(text);
  else {
    await writeNewFile(out, Buffer.from(text), 0o644);
    terminal.say(`wrote ${printable(out)}: northroot verify --trust ${printable(out)} ${printable(path)}`);
  }
  return 0;
}

/** The genesis of a ledger that verifies by its own keys: what is broken is no ground for trust. */
async function readGenesisOf(path: string, context: Context): Promise<GenesisEvent> {
  const { signal } = context;
  const { hasInvalid, state } = await runVerification(await openLedgerInput(path, context), {
    signal,
    maxFindings: 0,
  });
  if (hasInvalid || state.records === 0 || state.layout !== 'records') {
    throw new NorthrootError('LEDGER_INVALID', `${printable(path)} does not verify`, {
      exitStatus: state.records === 0 ? 2 : 1,
      hint: `northroot verify ${printable(path)} says what is wrong with it`,
    });
  }
  for await (const { event } of readRecords(await openLedgerInput(path, context)))
    return event as unknown as GenesisEvent;
  throw new NorthrootError('FILE_CHANGED', `${printable(path)} was changed while it was read`);
}

async function confirm({ terminal, signal }: Context): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new NorthrootError('USAGE', 'no terminal to ask on whether the fingerprints are right', {
      hint: 'compare them with what you were told elsewhere, then give --yes',
    });
  }
  terminal.say('');
  const line = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await line.question('Are these the keys that you were told of elsewhere? [y/N] ', {
      signal,
    });
    if (/^y(?:es)?$/i.test(answer.trim())) return;
  } finally {
    line.close();
  }
  throw new NorthrootError('NOT_CONFIRMED', 'nothing was written', {
    hint: "ask the ledger's keeper for the fingerprints, by a way that whoever gave you the file does not control",
  });
}

function describe(policy: TrustPolicy): object {
  const [origin] = policy.origins ?? [];
  return {
    ...policy,
    fingerprints: policy.keys.map((key) => {
      const { openssh, vkey } = fingerprintsOf(key, origin) ?? {};
      return {
        keyid: key.keyid,
        ...(openssh === undefined ? {} : { openssh }),
        ...(vkey === undefined ? {} : { vkey }),
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
  if (keys.length === 0) lines.push('keys: none, so that no signature is believed');
  const demands = Object.entries(require).map(([name, value]) => `  ${REQUIREMENTS[name] ?? name}: ${value}`);
  if (demands.length > 0) lines.push('', 'demands', ...demands);
  return lines.map((line) => `${line}\n`).join('');
}

function renderKey(key: Key, origin: string | undefined): string[] {
  const { openssh, vkey } = fingerprintsOf(key, origin) ?? {};
  const row = (name: string, text: string): string => `  ${name.padEnd(11)} ${text}`;
  return [
    `key ${key.keyid}`,
    ...(key.name === undefined ? [] : [row('name', printable(key.name))]),
    row('roles', key.roles.join(', ')),
    row('principals', printable(key.principals.join(', '))),
    ...(openssh === undefined ? [] : [row('openssh', openssh)]),
    ...(vkey === undefined ? [] : [row('vkey', printable(vkey))]),
    ...(key.valid_from === undefined ? [] : [row('valid from', key.valid_from)]),
    ...(key.valid_until === undefined ? [] : [row('valid until', key.valid_until)]),
  ];
}
