/** `northroot revoke`, `suspend` and `resume`: withdraws grants, with all that hangs below them. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import {
  draftRevocation,
  findGrants,
  isChanged,
  type RevocationOptions,
  withdrawGrants,
} from '../../log/policy/revoke.js';
import { toDigestText } from '../../base/value/digest.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { jsonText } from '../json-text.js';
import { principalId } from '../options.js';
import { viewOf } from '../view.js';
import { OptionProblems, withEntitledKeys } from './append-draft.js';
import { openSigned, principalOfKey, type SigningChoice, withSigning } from './ledger-key.js';

interface RevokeCommandOptions extends SigningChoice {
  readonly all?: boolean;
  readonly inFlight?: 'finish' | 'stop';
  readonly reason?: string;
  readonly principal?: string;
}

const FLAGS: Readonly<Record<keyof RevocationOptions, string>> = {
  effect: 'effect',
  inFlight: '--in-flight',
  reason: '--reason',
  principalId: '--principal',
  occurredAt: 'occurredAt',
};

const NOTES = `
Nothing more is allowed under a grant that is withdrawn, nor under those delegated from it. What was allowed
before may still be done, unless --in-flight stop says otherwise; what was begun before may be recorded.
A grant is withdrawn by a key with the role authority, by its own principal, or by that of a grant above it.`;

export function addRevoke(program: Command, run: Run): void {
  const command = program
    .command('revoke')
    .summary('take grants back, for good')
    .description('Appends a revocation of each grant: from there on nothing is allowed under it.')
    .addHelpText('after', NOTES);
  addWithdrawal(command, 'revoke', run);
}

export function addSuspend(program: Command, run: Run): void {
  const command = program
    .command('suspend')
    .summary('stop grants until they are resumed')
    .description('Appends a suspension of each grant: nothing is allowed under it until it is resumed.')
    .addHelpText('after', NOTES);
  addWithdrawal(command, 'suspend', run);
}

export function addResume(program: Command, run: Run): void {
  const command = program
    .command('resume')
    .summary('end the suspension of grants')
    .description(
      'Appends a resumption of each grant: calls are allowed under it again. What --in-flight stop has met stays stopped.',
    );
  addWithdrawal(command, 'resume', run);
}

function addWithdrawal(command: Command, effect: RevocationOptions['effect'], run: Run): void {
  command
    .argument('<ledger>', 'the file or folder')
    .argument('[grant...]', 'the grants: seqs, ids, or prefixes of ids')
    .option('--all', `${effect} every root grant`)
    .option('--reason <code>', 'why, such as INCIDENT; required');
  if (effect !== 'resume')
    command.addOption(
      new Option('--in-flight <what>', 'what was allowed and has not begun (default: finish)').choices([
        'finish',
        'stop',
      ]),
    );
  command.option(
    '--principal <id>',
    'who does so (default: the one principal that the key is for, or who made the ledger)',
    principalId,
  );
  withSigning(command).action((ledger: string, grants: string[], options: RevokeCommandOptions) =>
    run((context) => withdraw(context, ledger, grants, effect, options)),
  );
}

const SOME_ID = toDigestText('A'.repeat(43));
const DONE = { revoke: 'revoked', suspend: 'suspended', resume: 'resumed' } as const;

async function withdraw(
  context: Context,
  path: string,
  wanted: readonly string[],
  effect: RevocationOptions['effect'],
  options: RevokeCommandOptions,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const { all = false } = options;
  if (all === wanted.length > 0) throw usageError('expected the grants, or --all');
  const problems = new OptionProblems();
  const said = {
    effect,
    reason: options.reason as string,
    ...defined({ inFlight: options.inFlight, principalId: options.principal }),
  };
  problems.try(FLAGS, () => draftRevocation(SOME_ID, said));
  problems.end(effect);
  const ids: string[] = [];
  for (const each of wanted)
    ids.push((await viewOf(context, path, undefined, options).findRecord(each)).eventId);
  const { ledger, signer } = await openSigned(context, path, options);
  try {
    const own = principalOfKey(await ledger.listKeys(), signer);
    const asked = { ...said, principalId: options.principal ?? own ?? ledger.principalId };
    const now = (): string => new Date().toISOString();
    // A stop that comes after a revocation still stops what was begun.
    const idle = await ledger.inspect((_, state) =>
      findGrants(state, ids).filter((grant) => effect !== 'revoke' && !isChanged(grant, effect)),
    );
    const appended = await withdrawGrants(ledger, all ? 'all' : ids, asked, now, { signal }).catch(
      (error: unknown) => {
        throw withEntitledKeys(error, [], { event_type: 'revocation', principal_id: asked.principalId });
      },
    );
    for (const { seq, eventId, status } of appended)
      await terminal.write(`${jsonText({ seq, event_id: eventId, status })}\n`);
    const by = signer === undefined ? 'not signed' : `signed by key ${signer.publicKey.keyid}`;
    const done = appended.length - idle.length;
    const count = `${done} ${done === 1 ? 'grant' : 'grants'}`;
    terminal.say(`${DONE[effect]} ${count} in the name of ${printable(asked.principalId)}, ${by}`);
    for (const { place, withdrawal } of idle) {
      const is = withdrawal === undefined ? 'in force' : DONE[withdrawal.effect];
      terminal.say(`note: the grant of seq ${place.seq} is ${is}, and stays so`);
    }
    return 0;
  } finally {
    await ledger.close();
  }
}
