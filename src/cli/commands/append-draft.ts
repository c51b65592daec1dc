/** Appending one event that a command has drafted: its key, its result line, and who could have signed where the key may not. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { isPrincipalId } from '../../base/value/principal.js';
import type { Key } from '../../format/schema/generated/types.js';
import { OptionsError } from '../../log/policy/option-problems.js';
import type { Ledger } from '../../log/writer/ledger.js';
import type { Appended } from '../../log/writer/options.js';
import { findEntitledKeys } from '../../rules/trust/key-entry.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context } from '../context.js';
import { jsonText } from '../json-text.js';
import { seconds } from '../options.js';
import { NO_INDEX } from '../view.js';
import { NO_POSITION, openSigned, POSITION, type PositionChoice } from './ledger-key.js';

/** The options of every command that appends one event. */
export interface DraftOptions extends PositionChoice {
  readonly key?: string;
  readonly lockTimeout: number;
  readonly index: boolean;
}

/** Adds the options of {@link DraftOptions}. */
export function withDraftOptions(command: Command): Command {
  return command
    .option('--key <file>', 'private key to sign with (default: NORTHROOT_KEY, then LEDGER.key)')
    .option('--lock-timeout <seconds>', 'how long to wait for another writer', seconds, 10)
    .option(...POSITION)
    .option(...NO_POSITION)
    .option(...NO_INDEX);
}

/** What was appended, and by whom it was signed. */
export interface AppendedDraft {
  readonly event: object;
  readonly appended: Appended;
  readonly signer: string | undefined;
}

/**
 * Appends an event and writes its result line.
 *
 * @param draft - Called with the ledger, which is held from then on, and the present.
 * @param grantPrincipalId - The principal of the grant that the event names: whose key may sign depends on it.
 */
export async function appendDraft(
  context: Context,
  path: string,
  options: DraftOptions,
  draft: (now: string, ledger: Ledger) => object,
  grantPrincipalId?: string,
): Promise<AppendedDraft> {
  const { terminal } = context;
  const { ledger, signer } = await openSigned(context, path, options);
  const keyid = signer?.publicKey.keyid;
  try {
    const now = new Date().toISOString();
    const event = draft(now, ledger);
    const appended = await ledger.append({ event, isAnew: true }).catch(async (error: unknown) => {
      const entitled = findEntitledKeys(await ledger.listKeys(), event, {
        at: now,
        ...defined({ grantPrincipalId }),
      });
      throw withEntitledKeys(error, entitled, event);
    });
    const { seq, eventId, status } = appended;
    await terminal.write(`${jsonText({ seq, event_id: eventId, status })}\n`);
    return { event, appended, signer: keyid };
  } finally {
    await ledger.close();
  }
}

/** What refuses a key says which would do, and for whom a key has to be. */
export function withEntitledKeys(error: unknown, entitled: readonly Key[], event: object): unknown {
  if (!(error instanceof NorthrootError) || !/^(?:KEY_|SIGNATURE_MISSING$)/.test(error.code)) return error;
  const keys = entitled.map(({ keyid, name }) => (name === undefined ? keyid : `${keyid} (${name})`));
  const hint =
    keys.length === 0
      ? 'no key of the ledger may sign this; an admin can add one: northroot key add LEDGER FILE --role authority'
      : `sign with the key ${keys.map((each) => printable(each)).join(', or ')}: --key`;
  return new CommandError(error.code, error.message, {
    hint: error.code === 'KEY_NOT_FOR_PRINCIPAL' ? `${patternHint(event)}${hint}` : hint,
    cause: error,
  });
}

/** A key is for those in whose name events are: of a grant that is the grantee, and not whoever grants. */
function patternHint(event: object): string {
  const {
    event_type: type,
    principal_id: principal,
    authorization,
  } = event as Readonly<Record<string, unknown>>;
  // A delegated grant is the delegator's too: which keys would do says more.
  if (type === 'authorization' && Object.hasOwn(Object(authorization) as object, 'grant_event_id')) return '';
  const of = type === 'authorization' ? 'of a grant the grantee, and not who signs' : 'and not who signs';
  const name = typeof principal === 'string' && isPrincipalId(principal) ? principal : "'agent:*'";
  return `key add --for names in whose name the events are that a key signs, ${of}, such as --for ${name}; `;
}

/** What is wrong with the options of a command, collected to be told at once. */
export class OptionProblems {
  readonly #problems: string[] = [];

  add(flag: string, message: string): void {
    this.#problems.push(`${flag}: ${message}`);
  }

  /**
   * What a builder makes of the options; undefined where it finds fault with them.
   *
   * @param flags - The command's options by the names of the builder's.
   */
  try<T>(flags: Readonly<Record<string, string>>, build: () => T): T | undefined {
    try {
      return build();
    } catch (error) {
      if (!(error instanceof OptionsError)) throw error;
      for (const { option, message } of error.problems) this.add(flags[option] ?? option, message);
      return undefined;
    }
  }

  /** What `read` gives; undefined, and a problem, where it throws a RangeError. */
  read<T>(flag: string, read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.add(flag, error.message);
      return undefined;
    }
  }

  /** @throws NorthrootError `USAGE` with everything that was wrong. */
  end(command: string): void {
    if (this.#problems.length === 0) return;
    throw usageError(this.#problems.join('; '), `northroot ${command} --help has examples`);
  }
}
