/** What is said of passkeys that protect nobody. */

import { printable } from '../base/bytes/printable.js';
import { listPasskeyGaps, type PasskeyGap } from '../rules/trust/passkey-gaps.js';
import type { VerifyState } from '../rules/verify/state.js';
import type { Context } from './context.js';

const MAX_NOTES = 3;

/** Says which other keys may approve in the names of people with passkeys. */
export function sayPasskeyGaps({ terminal }: Pick<Context, 'terminal'>, gaps: readonly PasskeyGap[]): void {
  for (const { keyid, principal, other } of gaps.slice(0, MAX_NOTES))
    terminal.say(`note: key ${other} may approve as ${printable(principal)} without the passkey ${keyid}`);
  if (gaps.length > MAX_NOTES)
    terminal.say(`note: likewise of ${gaps.length - MAX_NOTES} more passkeys: key list names them`);
}

/** The passkeys of a ledger, at its end. */
export function passkeyGapsOf({ keyring }: VerifyState): PasskeyGap[] {
  if (keyring.passkeys().length === 0) return [];
  return listPasskeyGaps(
    keyring.save().flatMap(({ key, revokedBy }) => (revokedBy === undefined ? key : [])),
  );
}
