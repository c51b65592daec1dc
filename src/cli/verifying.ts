/** The options of commands that verify a ledger, and the files that they name. */

import type { Command } from 'commander';
import type { TrustPolicy } from '../format/schema/generated/types.js';
import type { WitnessPolicy } from '../rules/trust/witness-policy.js';
import type { Anchor } from '../rules/verify/anchors.js';
import { readAnchors, readTrustPolicy, readWitnessPolicy } from './input.js';
import { instant, repeatable } from './options.js';
import type { Terminal } from './terminal.js';

export interface VerifyingOptions {
  readonly trust?: string;
  readonly witnessPolicy?: string;
  readonly checkpoint: readonly string[];
  readonly now?: string;
}

/** The options, with the files read. */
export interface Verifying {
  readonly trust: TrustPolicy | undefined;
  readonly witnessPolicy: WitnessPolicy | undefined;
  readonly checkpoints: readonly Anchor[];
  /** The time of verification, where it is given. */
  readonly now: string | undefined;
}

/** Adds `--trust`, `--witness-policy`, `--checkpoint` and `--now`. */
export function addVerifying(command: Command): Command {
  return command
    .option('--trust <file>', 'the trust policy: trusted origins and keys, and what must be signed')
    .option('--witness-policy <file>', 'a C2SP tlog-policy file: logs, witnesses and their quorum')
    .addOption(
      repeatable(
        '--checkpoint <file>',
        'a checkpoint that you hold (a signed note): the ledger must extend it, and export proves records against it',
      ).default([]),
    )
    .option('--now <time>', 'the time that the age of checkpoints is judged by (default: now)', instant);
}

/** The files that {@link readVerifying} reads. */
export function filesOfVerifying({
  trust,
  witnessPolicy,
  checkpoint,
}: VerifyingOptions): (string | undefined)[] {
  return [trust, witnessPolicy, ...checkpoint];
}

export async function readVerifying(
  { trust, witnessPolicy, checkpoint, now }: VerifyingOptions,
  terminal: Terminal,
): Promise<Verifying> {
  return {
    trust: await readTrustPolicy(trust),
    witnessPolicy: await readWitnessPolicy(witnessPolicy, terminal),
    checkpoints: await readAnchors(checkpoint),
    now,
  };
}
