/** The prices of one model at one time. */

import type { UnitPrice } from '../../format/schema/generated/types.js';

export interface ModelPrice {
  readonly provider: string;
  readonly model: string;
  /** How the name that was asked for was found: it is one of the model's names, or begins with one of its prefixes. */
  readonly found: 'name' | 'prefix';
  /** Since when these prices hold, a timestamp; undefined for the first. */
  readonly from: string | undefined;
  /** What one of each unit costs: decimals, usd. */
  readonly prices: readonly UnitPrice[];
}
