/** `northroot witness`: serves a witness of other ledgers' checkpoints until it is stopped. */

import { type Command, InvalidArgumentError } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { isKeyName } from '../../format/key/vkey.js';
import { canBeLogKey, formatNoteKey, type NoteKey, parseNoteKey } from '../../format/note/note-key.js';
import { serveWitness } from '../../proof/witness/serve-witness.js';
import {
  createWitness,
  isSubmissionPrefix,
  type LogKey,
  originOf,
  type WitnessEvent,
} from '../../proof/witness/witness-service.js';
import { witnessPolicyKeys } from '../../rules/trust/witness-policy.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, Outcome, Run } from '../context.js';
import { readSigner, readWitnessPolicy } from '../input.js';
import { listenAddress } from '../options.js';
import type { Terminal } from '../terminal.js';
import { aborted } from './serving.js';

interface WitnessCommandOptions {
  readonly key: string;
  readonly name: string;
  readonly state: string;
  readonly log: readonly LogKey[];
  readonly policy?: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly prefix: string;
}

export function addWitness(program: Command, run: Run): void {
  program
    .command('witness')
    .summary("serve a witness that cosigns logs' checkpoints")
    .description(
      'Serves a witness (C2SP tlog-witness) over HTTP. It cosigns checkpoints of the logs that it knows, each only if it is proven to extend the last one. Prints its URL on standard output, and runs until Ctrl-C or SIGTERM.',
    )
    .requiredOption('--key <file>', "the witness's Ed25519 or ML-DSA-44 key; use it for nothing else")
    .requiredOption('--name <name>', 'the name that it cosigns under, such as witness.example/w1', keyName)
    .requiredOption(
      '--state <folder>',
      'the checkpoints that it cosigned; created if missing; never delete it',
    )
    .option(
      '--log <vkey>',
      'a log that it knows: a vkey, or "ORIGIN VKEY" if the origin is not the name in the vkey (repeatable)',
      logKeys,
      [],
    )
    .option('--policy <file>', 'a C2SP tlog-policy file: its logs are known too')
    .option('--listen <address>', 'HOST:PORT to listen on; port 0 picks a free one', listenAddress, {
      host: '127.0.0.1',
      port: 8787,
    })
    .option('--prefix <path>', 'the path before /add-checkpoint, such as /w1', prefixPath, '')
    .action((options: WitnessCommandOptions) => run((context) => witness(context, options)));
}

async function witness(context: Context, options: WitnessCommandOptions): Promise<Outcome> {
  const { terminal, signal } = context;
  const policy = await readWitnessPolicy(options.policy, terminal);
  const logs = [...options.log, ...(policy === undefined ? [] : witnessPolicyKeys(policy).logs)];
  if (logs.length === 0)
    throw usageError(
      'a witness must know at least one log',
      'give --log with the vkey of a log, or --policy with a file that has log lines',
    );
  const witness = await createWitness({
    name: options.name,
    signer: await readSigner(terminal, options.key),
    logs,
    stateFolder: options.state,
    prefix: options.prefix,
    onEvent: (event) => tell(terminal, event),
  });
  try {
    const server = await serveWitness(witness, options.listen);
    context.endsInItsTime();
    terminal.say(`listening on ${server.url}`);
    terminal.say(`vkey of this witness: ${printable(formatNoteKey(witness.key), 1_000)}`);
    for (const origin of new Set(logs.map(originOf))) {
      const last = witness.lastCheckpoint(origin);
      const state = last === undefined ? 'never cosigned here' : `cosigned at size ${last.size}`;
      terminal.say(`knows ${printable(origin)}: ${state}`);
    }
    await terminal.write(`${server.url}\n`);
    await aborted(signal);
    await server.close();
  } finally {
    await witness.close();
  }
  terminal.say('stopped');
  return { stopped: 0 };
}

function tell(terminal: Terminal, event: WitnessEvent): void {
  if (event.kind === 'failed') {
    const { error } = event;
    terminal.fail(
      error instanceof NorthrootError
        ? error
        : new CommandError('INTERNAL_ERROR', `a checkpoint could not be cosigned: ${String(error)}`),
    );
    return;
  }
  const { origin, size } = event.checkpoint;
  const place = `${printable(origin)} at size ${size}`;
  terminal.say(
    event.kind === 'cosigned'
      ? `cosigned ${place}`
      : `refused ${place}: signed by the log, but not proven to extend the last cosigned checkpoint`,
  );
}

function keyName(text: string): string {
  if (isKeyName(text)) return text;
  throw new InvalidArgumentError('Expected a name without white space and "+", such as witness.example/w1.');
}

/** A vkey; an origin before it may have spaces, a vkey has none. */
function logKeys(text: string, previous: readonly LogKey[]): readonly LogKey[] {
  const split = text.lastIndexOf(' ');
  const origin = text.slice(0, Math.max(0, split));
  let key: NoteKey;
  try {
    key = parseNoteKey(text.slice(split + 1));
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    throw new InvalidArgumentError(`Expected the vkey of a log: ${error.message}.`);
  }
  if (!canBeLogKey(key))
    throw new InvalidArgumentError(
      "Expected the vkey of a log (type 0x01 or 0x06), found a witness's (type 0x04).",
    );
  return [...previous, split === -1 ? key : { ...key, origin }];
}

function prefixPath(text: string): string {
  if (isSubmissionPrefix(text)) return text;
  throw new InvalidArgumentError('Expected a path such as /w1, of letters, digits and . _ ~ -.');
}
