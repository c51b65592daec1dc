/** A planned act of one tool, before what all tools have in common. */

import type { ResourceRef } from '../../format/schema/generated/types.js';

export interface Act {
  readonly resources: readonly ResourceRef[];
  /** @param signal - Aborted at the deadline, or by who called */
  readonly act: (signal: AbortSignal) => Promise<Done>;
}

/** How an act ended: a failure where there is a code. */
export interface Done {
  readonly errorCode?: string | undefined;
  readonly output: Uint8Array;
}
