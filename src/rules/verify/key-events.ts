/**
 * Key events (SPEC §3.4, §7): they add or revoke a key from their position on, if a key that is an admin there signed them. Under a trust
 * policy they start from the keys that the policy pins.
 */

import type { ExaminedLine } from '../../format/record/examine-line.js';
import { relatedTo } from './checkpoints.js';
import type { LineFindings } from './line-findings.js';
import type { RecordPlace } from './seals.js';
import type { VerifyState } from './state.js';

/** The characters remembered of a reason for revocation. */
const MAX_REASON_LENGTH = 512;

/** MUST be called after the signatures of the record were judged. An event without an entitled signer has its finding and no effect. */
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
    // The ledger cannot change a key that the user pins.
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
