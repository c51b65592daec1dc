/** `northroot abandon`: settles actions that nothing will finish. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { type AbandonedOpen, LiveLedger } from '../../log/agent/live-ledger.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { spanMs } from '../options.js';
import { viewOf } from '../view.js';
import { decidingOptions, findSigner, type SigningChoice, withSigning } from './ledger-key.js';

interface AbandonCommandOptions extends SigningChoice {
  readonly expired?: boolean;
  readonly olderThan?: number;
  readonly grant?: string;
  readonly trust?: string;
}

/** The most failures that are listed. */
const MAX_LISTED = 20;

export function addAbandon(program: Command, run: Run): void {
  const command = program
    .command('abandon')
    .summary('settle actions that will not finish')
    .description(
      'Settles open actions (northroot budget lists them) and prints one line for each. An action that was not started is released: its reservation is given back. A started action is recorded with the outcome unknown, and its reservation is charged. To settle a single action, use northroot record --abandon. Exits with 1 if any action could not be settled, for example because another key must sign.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--expired', 'release expired actions that were not started')
    .option(
      '--older-than <span>',
      'settle all actions allowed or started longer ago than 90s, 30m, 2h or 7d; make sure that none is still running',
      spanMs,
    )
    .option('--grant <id>', 'only actions under this grant (seq, id or id prefix)')
    .option('--trust <file>', 'verify the ledger with this trust policy first');
  withSigning(command).action((ledger: string, options: AbandonCommandOptions) =>
    run((context) => abandon(context, ledger, options)),
  );
}

async function abandon(context: Context, path: string, options: AbandonCommandOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const { expired, olderThan: olderThanMs, grant } = options;
  if (expired === undefined && olderThanMs === undefined)
    throw usageError('expected --expired or --older-than', 'northroot budget LEDGER lists what is open');
  const trust = await readTrustPolicy(options.trust);
  const signer = await findSigner(terminal, path, options.key);
  const grantId =
    grant === undefined
      ? undefined
      : (await viewOf(context, path, undefined, options).findRecord(grant)).eventId;
  const ledger = await LiveLedger.open(path, {
    ...(await decidingOptions(terminal, path, signer, options)),
    signal,
    ...defined({ trust }),
  });
  try {
    const { settled, refused } = await ledger.abandonOpen({ expired, olderThanMs, grantId, signal });
    for (const { authorizationId, startId, recorded } of settled) {
      const { seq, eventId } = recorded;
      const outcome = startId === undefined ? 'released' : 'unknown';
      const settles = { auth_event_id: authorizationId, start_event_id: startId ?? null };
      await terminal.write(`${jsonText({ seq, event_id: eventId, outcome, ...settles })}\n`);
    }
    if (settled.length === 0 && refused.length === 0) terminal.say('nothing to settle');
    sayRefused(context, refused);
    return refused.length === 0 ? 0 : 1;
  } finally {
    await ledger.close();
  }
}

function sayRefused({ terminal }: Context, refused: AbandonedOpen['refused']): void {
  for (const { authorizationId, error } of refused.slice(0, MAX_LISTED)) {
    const why = error instanceof NorthrootError ? `${error.code}: ${error.message}` : String(error);
    terminal.say(`not settled: ${authorizationId}: ${printable(why, 400)}`);
  }
  const more = refused.length - MAX_LISTED;
  if (more > 0) terminal.say(`not settled: ${more} more`);
}
