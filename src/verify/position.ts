/** Where a state of the verification stands in what is stored: from there it is gone on with. */

import type { StorePosition } from '../store/ledger-store.js';
import type { VerifyState } from './state.js';

/** The position behind the last line that a state has seen; of one that has seen none, the beginning. */
export function positionOf({ lines, chain, end }: VerifyState): StorePosition {
  return { size: lines, tip: chain.prev, file: end.file, line: end.line, byteOffset: end.byteOffset };
}
