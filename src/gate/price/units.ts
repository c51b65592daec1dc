/** The units of prices and of usage: one table, from which costs, bounds and meters are made. */

import type { ModelUsage } from '../../log/agent/model-usage.js';
import type { UnitPrice } from '../../format/schema/generated/types.js';

/** A unit that may have a price. A unit is a part of those that it begins with: `tokens.input.audio` of `tokens.input`. */
export type PriceUnit = UnitPrice['unit'];

export const USD = 'usd';

export interface CountedPart {
  readonly member: Exclude<keyof ModelUsage, 'input' | 'output'>;
  readonly unit: PriceUnit;
  /** Whose price it has where it has none itself; the first that has one. */
  readonly else: readonly PriceUnit[];
  /** Which must have no price then: it would cost more than those of `else`. */
  readonly unless?: PriceUnit;
}

export const INPUT_PARTS: readonly CountedPart[] = [
  { member: 'cacheRead', unit: 'tokens.input.cache_read', else: ['tokens.input'] },
  {
    member: 'cacheReadAudio',
    unit: 'tokens.input.cache_read.audio',
    else: ['tokens.input.audio', 'tokens.input.cache_read', 'tokens.input'],
  },
  {
    member: 'cacheReadImage',
    unit: 'tokens.input.cache_read.image',
    else: ['tokens.input.image', 'tokens.input.cache_read', 'tokens.input'],
  },
  { member: 'cacheWrite', unit: 'tokens.input.cache_creation', else: ['tokens.input'] },
  {
    member: 'cacheWrite1h',
    unit: 'tokens.input.cache_creation.1h',
    else: ['tokens.input'],
    unless: 'tokens.input.cache_creation',
  },
  { member: 'inputAudio', unit: 'tokens.input.audio', else: ['tokens.input'] },
  { member: 'inputImage', unit: 'tokens.input.image', else: ['tokens.input'] },
  { member: 'inputVideo', unit: 'tokens.input.video', else: ['tokens.input'] },
];

export const OUTPUT_PARTS: readonly CountedPart[] = [
  { member: 'reasoning', unit: 'tokens.output.reasoning', else: ['tokens.output'] },
  { member: 'outputAudio', unit: 'tokens.output.audio', else: ['tokens.output'] },
  { member: 'outputImage', unit: 'tokens.output.image', else: ['tokens.output'] },
  { member: 'outputVideo', unit: 'tokens.output.video', else: ['tokens.output'] },
];

/** What is no token. */
export const OTHER_PARTS: readonly CountedPart[] = [
  { member: 'requests', unit: 'requests', else: [] },
  { member: 'webSearches', unit: 'web_searches', else: [] },
  { member: 'images', unit: 'images', else: [] },
];

export const ALL_PARTS: readonly CountedPart[] = [...INPUT_PARTS, ...OUTPUT_PARTS, ...OTHER_PARTS];

/** Every unit that a price file may have. */
export const PRICE_UNITS: readonly PriceUnit[] = [
  'tokens.input',
  'tokens.output',
  ...ALL_PARTS.map(({ unit }) => unit),
];
