/** What a call of a model used, and how it is priced; `northroot/gate` has price files. */

import type { Digest } from '../../base/value/digest.js';
import type { Meter } from '../../base/value/meter.js';

/**
 * Whole numbers from 0 to 10^9. `input` is all input, `output` all output, as in the OpenTelemetry GenAI conventions. All else that is named
 * after a kind of token is a part of one of them; parts do not overlap. What no part names is text.
 */
export interface ModelUsage {
  /** All input tokens, cached ones included. */
  readonly input: number;
  /** All output tokens, reasoning included. */
  readonly output: number;
  /** Input read from a cache: neither audio nor images. */
  readonly cacheRead?: number | undefined;
  readonly cacheReadAudio?: number | undefined;
  readonly cacheReadImage?: number | undefined;
  /** Input written to a cache, but for what is kept for an hour. */
  readonly cacheWrite?: number | undefined;
  /** Input written to a cache that keeps it for an hour. */
  readonly cacheWrite1h?: number | undefined;
  /** Audio that was not read from a cache. */
  readonly inputAudio?: number | undefined;
  /** Images that were not read from a cache. */
  readonly inputImage?: number | undefined;
  readonly inputVideo?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly outputAudio?: number | undefined;
  readonly outputImage?: number | undefined;
  readonly outputVideo?: number | undefined;
  /** Requests made. Default: 1 where the provider charges for requests. */
  readonly requests?: number | undefined;
  readonly webSearches?: number | undefined;
  /** Images made, for models that are priced by image. */
  readonly images?: number | undefined;
}

/** The code of what a provider states of usage and cannot be read: such a call was made, and how much it used is not known. */
export const MODEL_USAGE_INVALID = 'MODEL_USAGE_INVALID';

export interface ModelCall extends ModelUsage {
  /** The model that answered, as its provider names it. */
  readonly model: string;
  readonly provider?: string | undefined;
  /** When it was called, a timestamp of SPEC §2. Default: now. */
  readonly at?: string | undefined;
}

export interface PricedCall {
  readonly usd: Meter;
  readonly provider: string;
  /** Of the bytes of the price file. */
  readonly pricingSnapshotDigest: Digest;
}

export interface CallPricing {
  /** Every unit that a call may be metered in. */
  readonly units: readonly string[];
  /** What a call used, by unit; money is not in it. @throws TypeError, RangeError for a malformed call */
  readonly count: (call: ModelCall) => readonly Meter[];
  /** @throws NorthrootError `MODEL_UNKNOWN`, `MODEL_AMBIGUOUS`, `PRICE_UNKNOWN`; TypeError, RangeError for a malformed call */
  readonly charge: (call: ModelCall) => PricedCall;
}
