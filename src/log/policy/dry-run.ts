/** A hypothetical execution for trying a decision. */

import type { MeterVector } from '../../base/value/meter.js';
import { formatInstant, parseTimestamp } from '../../base/value/timestamp.js';
import { readAmounts } from '../../format/event/outline.js';
import type { ExecutionFacts } from '../../rules/bounds/judge.js';

/** No end can be stated after this nanosecond. */
const LAST_INSTANT = parseTimestamp('9999-12-31T23:59:59.999999999Z');

/** An execution that begins `now` (SPEC §2), uses `meterUsed`, and takes the least time possible. */
export function dryRun(toolName: string, now: string, meterUsed: MeterVector): ExecutionFacts {
  const start = parseTimestamp(now);
  return {
    toolName,
    occurredAt: now,
    startedAt: now,
    endedAt: start === LAST_INSTANT ? now : formatInstant(start + 1n),
    used: readAmounts(meterUsed),
    hasOutputRef: false,
    resources: [],
    isRelease: false,
  };
}
