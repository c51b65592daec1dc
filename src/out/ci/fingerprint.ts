/**
 * What a finding *is*, as one text: the same wherever its record is, in whichever file, and however often it is verified. By it
 * code scanning, Code Quality and baselines know a finding again.
 */

import { sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import type { FindingJson } from '../../format/schema/generated/types.js';

const PREFIX = 'northroot:finding:v1';

/** These are about what other lines hold, too: when that changes, it is another finding. */
const RESTS_ON_OTHERS: ReadonlySet<string> = new Set([
  'SEQ_GAP',
  'PREV_MISMATCH',
  'CHECKPOINT_ROOT_MISMATCH',
  'CHECKPOINT_SIZE_MISMATCH',
  'TRUNCATED',
  'FORKED',
  'LEDGER_MISMATCH',
  // Of one checkpoint several things may be missing.
  'CHECKPOINT_MISSING',
]);

/**
 * What such findings say besides what they rest on: the time of verification, and how the checkpoint that is held, or the
 * predecessor, is called.
 */
const PASSING: Readonly<Record<string, RegExp>> = {
  CHECKPOINT_MISSING: /(?<= seconds of )\S+$/,
  TRUNCATED: /, as .* says$| in .*$/s,
  FORKED: /, as .* says$| in .*$/s,
};

/** A fault in a file beside the ledger is identified by that file. */
const NAMED_BY_FILE = /^TILE_/;

/**
 * 43 characters of base64url: the SHA-256 of the finding's code, the record that it is about (its line's digest where the line has
 * faults of its own, else its event's id; where there is no record, what was expected), and its pointer.
 */
export function fingerprintFinding(finding: FindingJson): string {
  const { code, at, event_id: id, line_digest: line, expected = null, actual = null } = finding;
  const subject = line ?? id;
  const lasting = (text: string | null): string | null => text?.replace(PASSING[code] ?? '', '') ?? null;
  const details = subject === null || RESTS_ON_OTHERS.has(code) ? [expected, actual].map(lasting) : [];
  const file = NAMED_BY_FILE.test(code) ? [at.file] : [];
  const parts = [PREFIX, code, subject, at.pointer ?? null, ...details, ...file];
  return sha256Base64url(encodeUtf8(JSON.stringify(parts)));
}
