/**
 * Rate units, SPEC §2: `U.per_W`, where U is a Unit or `calls` and W is one of `sec min hour day week`, or a number from 1 to 9999
 * and one of `s m h d`: `usd.per_5h`, `tokens.output.per_30d`.
 */

export interface RateUnit {
  /** The limited unit; `calls` counts executions. */
  readonly meter: string;
  /** Nanoseconds. */
  readonly window: bigint;
}

const RATE_UNIT = /^([a-z][a-z0-9_.-]{0,63})\.per_(?:(sec|min|hour|day|week)|([1-9][0-9]{0,3})([smhd]))$/;

const SECOND = 1_000_000_000n;
const LENGTHS: Readonly<Record<string, bigint>> = {
  sec: SECOND,
  min: 60n * SECOND,
  hour: 3_600n * SECOND,
  day: 86_400n * SECOND,
  week: 604_800n * SECOND,
  s: SECOND,
  m: 60n * SECOND,
  h: 3_600n * SECOND,
  d: 86_400n * SECOND,
};

export function isRateUnit(text: string): boolean {
  return RATE_UNIT.test(text);
}

/** The parts of a rate unit; `undefined` for other text. */
export function tryParseRateUnit(text: string): RateUnit | undefined {
  const match = RATE_UNIT.exec(text);
  if (match === null) return undefined;
  const [, meter = '', name, count = '1', letter] = match;
  const length = LENGTHS[name ?? letter ?? ''];
  return length === undefined ? undefined : { meter, window: BigInt(count) * length };
}
