/** Exit statuses by verdict (SPEC §8). */

import type { ReportJson } from '../../format/schema/generated/types.js';

export const EXIT_STATUS = { ok: 0, invalid: 1, undecided: 2, violation: 3 } as const satisfies Readonly<
  Record<ReportJson['verdict'], 0 | 1 | 2 | 3>
>;
