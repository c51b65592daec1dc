/**
 * Keys that come and go within the ledger (SPEC §3.4, §7): a key event adds or revokes a key from its own position on, when a key
 * that was an admin there signed it. Under a trust policy this goes on from the keys that the policy pins.
 */

import type { ExaminedLine } from '../ledger/examine-line.js';
import type { KeyEvent } from '../schema/generated/types.js';
import { relatedTo } from './checkpoints.js';
import type { LineFindings } from './line-findings.js';
import type { RecordPlace } from './seals.js';
import type { VerifyState } from './state.js';

/** Call after the signatures of the record were judged. One that nobody entitled signed has its finding, and changes nothing. */
export function applyKeyEvent(
  state: VerifyState,
  line: ExaminedLine,
  place: RecordPlace,
  findings: LineFindings,
): void {
  if (!line.wellFormed || line.layout !== 'records' || line.event?.['event_type'] !== 'key') return;
  if (findings.signers.length === 0 || findings.isUnbound) return;
  const { action, key } = line.event as unknown as KeyEvent;
  if (action === 'add') {
    // What the user pinned is not changed by what the ledger says of the same key.
    if (state.policy?.keys.some(({ keyid }) => keyid === key.keyid) === true) return;
    const problem = state.keyring.add(key, findings.signers);
    if (problem !== undefined) {
      const { pointer, expected, actual } = problem;
      findings.addToEvent({ code: 'SCHEMA', pointer: `/key${pointer}`, expected, actual });
    }
    return;
  }
  if (state.keyring.revoke(key.keyid, relatedTo(place))) return;
  findings.addToEvent({
    code: 'KEY_UNKNOWN',
    pointer: '/key/keyid',
    expected: 'a known key to revoke',
    actual: key.keyid,
    severity: 'warning',
  });
}
