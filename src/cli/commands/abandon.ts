/** `northroot abandon`: settles what was reserved or begun and nobody will end. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { type AbandonedOpen, LiveLedger } from '../../log/agent/live-ledger.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { seconds, spanMs } from '../options.js';
import { NO_INDEX, viewOf } from '../view.js';
import { decidingOptions, findSigner, NO_POSITION, POSITION, type PositionChoice } from './ledger-key.js';

interface AbandonCommandOptions extends PositionChoice {
  readonly expired?: boolean;
  readonly olderThan?: number;
  readonly grant?: string;
  readonly key?: string;
  readonly trust?: string;
  readonly lockTimeout: number;
  readonly index: boolean;
}

/** So many that could not be settled are told of. */
const MAX_TOLD = 20;

export function addAbandon(program: Command, run: Run): void {
  program
    .command('abandon')
    .summary('settle what was reserved or begun and nobody will end')
    .description(
      'Settles what northroot budget lists as open, and writes a line for each. An action that was not started is released: what it reserved is given back. Of what was started it is recorded that how it ended is unknown, and what was reserved is charged. One of them by itself is settled by northroot record --abandon. The exit status is 1 when some could not be settled, such as what another key has to sign for.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--expired', 'release the actions that have expired and were not started')
    .option(
      '--older-than <span>',
      'settle whatever was allowed, or started, longer ago than this, such as 90s, 30m, 2h or 7d; only where nothing of that age runs any more',
      spanMs,
    )
    .option('--grant <id>', 'only what is under this grant: its seq, its id, or a prefix of it')
    .option('--key <file>', 'private key to sign with (default: NORTHROOT_KEY, then LEDGER.key)')
    .option('--trust <file>', 'verify the ledger with this trust policy first')
    .option('--lock-timeout <seconds>', 'how long to wait for another writer', seconds, 10)
    .option(...POSITION)
    .option(...NO_POSITION)
    .option(...NO_INDEX)
    .action((ledger: string, options: AbandonCommandOptions) =>
      run((context) => abandon(context, ledger, options)),
    );
}

async function abandon(context: Context, path: string, options: AbandonCommandOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const { expired, olderThan: olderThanMs, grant } = options;
  if (expired === undefined && olderThanMs === undefined) {
    throw usageError('expected --expired or --older-than', 'northroot budget LEDGER lists what is open');
  }
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
  for (const { authorizationId, error } of refused.slice(0, MAX_TOLD)) {
    const why = error instanceof NorthrootError ? `${error.code}: ${error.message}` : String(error);
    terminal.say(`not settled: ${authorizationId}: ${printable(why, 400)}`);
  }
  const more = refused.length - MAX_TOLD;
  if (more > 0) terminal.say(`not settled: ${more} more`);
}
