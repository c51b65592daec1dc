/** Appends one drafted event; if the key may not sign it, names the keys that may. */

import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { isPrincipalId } from '../../base/value/principal.js';
import type { Key } from '../../format/schema/generated/types.js';
import { OptionsError } from '../../log/policy/option-problems.js';
import type { Ledger } from '../../log/writer/ledger.js';
import type { Appended } from '../../log/writer/options.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { findEntitledKeys } from '../../rules/trust/key-entry.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context } from '../context.js';
import { jsonText } from '../json-text.js';
import { openSigned, type SigningChoice } from './ledger-key.js';
import { describeAppended } from './notices.js';

interface AppendedDraft {
  readonly event: object;
  readonly appended: Appended;
  readonly signer: string | undefined;
}

/**
 * Appends an event and writes its result line.
 *
 * @param draft - Called with the present and the open ledger.
 * @param grantPrincipalId - The principal of the grant that the event names, on which the keys that may sign depend.
 * @param check - Throws unless the event may be the next record: it is then appended as a decision.
 */
export async function appendDraft(
  context: Context,
  path: string,
  options: SigningChoice,
  draft: (now: string, ledger: Ledger) => object,
  grantPrincipalId?: string,
  check?: (state: VerifyState, now: string) => void,
): Promise<AppendedDraft> {
  const { terminal, signal } = context;
  const decides = check !== undefined;
  const { ledger, signer } = await openSigned(context, path, options, decides ? { decides } : {});
  const keyid = signer?.publicKey.keyid;
  try {
    const now = new Date().toISOString();
    const event = draft(now, ledger);
    const entry = { event, isAnew: true };
    const append = (): Promise<Appended> =>
      check === undefined
        ? ledger.append(entry)
        : ledger.decide(
            (state) => {
              check(state, now);
              return entry;
            },
            { signal },
          );
    const appended = await append().catch(async (error: unknown) => {
      const entitled = findEntitledKeys(await ledger.listKeys(), event, {
        at: now,
        ...defined({ grantPrincipalId }),
      });
      throw withEntitledKeys(error, entitled, event);
    });
    const { seq, eventId, status } = appended;
    await terminal.write(`${jsonText({ seq, event_id: eventId, status })}\n`);
    for (const finding of appended.findings) terminal.say(describeAppended(finding));
    return { event, appended, signer: keyid };
  } finally {
    await ledger.close();
  }
}

/** The error of a refused key, with the keys that may sign. */
export function withEntitledKeys(error: unknown, entitled: readonly Key[], event: object): unknown {
  if (!(error instanceof NorthrootError) || !/^(?:KEY_|SIGNATURE_MISSING$)/.test(error.code)) return error;
  const named = (keys: readonly Key[]): string =>
    keys.map(({ keyid, name }) => printable(name === undefined ? keyid : `${keyid} (${name})`)).join(', or ');
  const passkeys = entitled.filter(({ webauthn }) => webauthn !== undefined);
  const plain = entitled.filter(({ webauthn }) => webauthn === undefined);
  const ways = [
    ...(plain.length === 0 ? [] : [`sign with the key ${named(plain)}: --key`]),
    ...(passkeys.length === 0 ? [] : [`sign by the passkey ${named(passkeys)}: approve --passkey`]),
  ];
  const hint =
    ways.join('; or ') ||
    'no key of the ledger may sign this; an admin can add one: northroot key add LEDGER FILE --role authority';
  return new CommandError(error.code, error.message, {
    hint: error.code === 'KEY_NOT_FOR_PRINCIPAL' ? `${patternHint(event)}${hint}` : hint,
    cause: error,
  });
}

/** A key signs for the principals of events; the principal of a grant is its grantee. */
function patternHint(event: object): string {
  const {
    event_type: type,
    principal_id: principal,
    authorization,
  } = event as Readonly<Record<string, unknown>>;
  // The delegator may sign a delegated grant too: the list of keys says more.
  if (type === 'authorization' && Object.hasOwn(Object(authorization) as object, 'grant_event_id')) return '';
  const of = type === 'authorization' ? ' (of a grant, the grantee)' : '';
  const name = typeof principal === 'string' && isPrincipalId(principal) ? principal : "'agent:*'";
  return `key add --for names the principals of the events that the key signs${of}, such as --for ${name}; `;
}

/** Collects the problems of a command's options, to report them in one error. */
export class OptionProblems {
  readonly #problems: string[] = [];

  add(flag: string, message: string): void {
    this.#problems.push(`${flag}: ${message}`);
  }

  /**
   * What a builder makes of the options; undefined, and problems, if it refuses them.
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

  /** The result of `read`; undefined, and a problem, if it throws a RangeError. */
  read<T>(flag: string, read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.add(flag, error.message);
      return undefined;
    }
  }

  /** @throws NorthrootError `USAGE` with all problems */
  end(command: string): void {
    if (this.#problems.length === 0) return;
    throw usageError(this.#problems.join('; '), `northroot ${command} --help has examples`);
  }
}
