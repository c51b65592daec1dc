/** How lines are examined in place of the usual way, and what becomes of a block that was given back. */

import type { ReadBlocksOptions } from '../../src/batch/read-blocks.js';

/** Each test file that mocks has one. */
export interface Examining {
  blocks: Partial<ReadBlocksOptions> | 'lines' | undefined;
  /** Who scans the lines, whatever the size of their block. */
  scanner: 'wasm' | 'plain' | undefined;
  /** `at once`: a key has a table from its first signature on, and every verdict of a table is held against the backend's. */
  tables: 'at once' | undefined;
  reset(): void;
}
