/**
 * Keys that come and go within the ledger (SPEC §3.4, §7): a key event adds or revokes a key from its own position on, when a key
 * that was an admin there signed it. Under a trust policy this goes on from the keys that the policy pins.
 */

import type { ExaminedLine } from '../../format/record/examine-line.js';
import { relatedTo } from './checkpoints.js';
import type { LineFindings } from './line-findings.js';
import type { RecordPlace } from './seals.js';
import type { VerifyState } from './state.js';

/** So many characters are remembered of why a key was revoked. */
const MAX_REASON_LENGTH = 512;

/** Call after the signatures of the record were judged. One that nobody entitled signed has its finding, and changes nothing. */
export function applyKeyEvent(
  state: VerifyState,
  line: ExaminedLine,
  place: RecordPlace,
  findings: LineFindings,
): void {
  if (line.type !== 'key' || line.layout !== 'records') return;
  if (findings.signers.length === 0 || findings.isUnbound) return;
  const { action, key, reason } = line.event();
  const at = relatedTo(place);
  if (action === 'add') {
    // What the user pinned is not changed by what the ledger says of the same key.
    if (state.policy?.keys.some(({ keyid }) => keyid === key.keyid) === true) return;
    const problem = state.keyring.add(key, findings.signers, at);
    if (problem !== undefined) {
      const { pointer, expected, actual } = problem;
      findings.addToEvent({ code: 'SCHEMA', pointer: `/key${pointer}`, expected, actual });
    }
    return;
  }
  const revocation = {
    ...at,
    signers: findings.signers,
    ...(reason === undefined ? {} : { reason: reason.slice(0, MAX_REASON_LENGTH) }),
  };
  if (state.keyring.revoke(key.keyid, revocation)) return;
  findings.addToEvent({
    code: 'KEY_UNKNOWN',
    pointer: '/key/keyid',
    expected: 'a known key to revoke',
    actual: key.keyid,
    severity: 'warning',
  });
}
