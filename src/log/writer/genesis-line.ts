/** A ledger's first line, which MUST be a genesis. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { CANONICAL_PROFILE_ID } from '../../base/json/profile.js';
import { examineLine } from '../../format/record/examine-line.js';
import type { GenesisEvent } from '../../format/schema/generated/types.js';
import { findKeyFault } from '../../rules/verify/genesis.js';

/** In canonical order `event` comes first, and `canonical_profile_id` within it. */
const GENESIS_START = `{"event":{"canonical_profile_id":"${CANONICAL_PROFILE_ID}",`;

/** @throws NorthrootError `NOT_A_LEDGER` for any other line */
export function parseGenesis(name: string, firstLine: Uint8Array): GenesisEvent {
  const first = examineLine(firstLine, 'records');
  if (first.type === 'genesis') return first.event();
  throw notALedger(name, 'its first record is no genesis');
}

/** Whether bytes without a newline may be a torn genesis. */
export function isStartOfGenesis(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes).toString('latin1', 0, GENESIS_START.length);
  return GENESIS_START.startsWith(text);
}

export function notALedger(name: string, why: string): NorthrootError {
  return new NorthrootError('NOT_A_LEDGER', `${printable(name)} is not a ledger: ${why}`, {
    hint: 'check the path; nothing was changed',
  });
}

/** @throws NorthrootError `KEY_MALFORMED` for an inconsistent or repeated key */
export function assertGenesisKeys({ keys }: GenesisEvent): void {
  const seen = new Set<string>();
  for (const key of keys) {
    const fault = findKeyFault(key, seen);
    seen.add(key.keyid);
    if (fault === undefined) continue;
    const { pointer, expected, actual } = fault;
    throw new NorthrootError(
      'KEY_MALFORMED',
      `genesis key ${pointer}: expected ${expected}, found ${actual}`,
    );
  }
}
