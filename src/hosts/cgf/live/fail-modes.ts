/** What is done while CGF does not answer: by the table that the server gave last, else by the defaults of CGF's documents. */

import { canonicalBytes } from '../../../base/json/canonicalize.js';
import { SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import type { JsonValue } from '../../../base/json/value.js';
import { type Digest, sha256Digest } from '../../../base/value/digest.js';
import { plainJson, textAt } from '../../shared/values.js';
import { type FailMode, isFailMode } from '../vocabulary.js';

export interface FailModeRow {
  readonly action_type: string;
  readonly risk_tier: string;
  readonly fail_mode: FailMode;
}

const MAX_ROWS = 256;
const ACTIONS = ['tool_call', 'message_send', 'memory_write', 'workflow_step'] as const;
const DEFAULTS: readonly FailModeRow[] = ACTIONS.flatMap((action_type): FailModeRow[] => [
  { action_type, risk_tier: 'high', fail_mode: 'fail_closed' },
  {
    action_type,
    risk_tier: 'medium',
    fail_mode: action_type === 'memory_write' ? 'fail_closed' : 'defer',
  },
  { action_type, risk_tier: 'low', fail_mode: 'fail_open' },
]);

/** A table of fail modes, and the digest that names it in records. */
export class FailModes {
  static readonly defaults = new FailModes(DEFAULTS, DEFAULTS as unknown as JsonValue);
  /** Of the rows as they were given. */
  readonly digest: Digest;
  /** The rows as they were given, to keep them. */
  readonly rows: JsonValue;
  readonly #modes: ReadonlyMap<string, FailMode>;

  private constructor(rows: readonly FailModeRow[], given: JsonValue) {
    this.rows = given;
    this.digest = sha256Digest(canonicalBytes(given));
    this.#modes = new Map(rows.map((row) => [`${row.action_type}:${row.risk_tier}`, row.fail_mode]));
  }

  /** Of an answer's rows; undefined where they are none that can be relied on, each row known and each pair once. */
  static read(value: SourceValue | undefined): FailModes | undefined {
    if (!Array.isArray(value) || value.length === 0 || value.length > MAX_ROWS) return undefined;
    const rows: FailModeRow[] = [];
    const pairs = new Set<string>();
    for (const each of value as readonly SourceValue[]) {
      const row = each instanceof SourceObject ? each : undefined;
      const [action_type, risk_tier, fail_mode] = ['action_type', 'risk_tier', 'fail_mode'].map((name) =>
        textAt(row, name),
      );
      if (action_type === undefined || risk_tier === undefined || !isFailMode(fail_mode)) return undefined;
      if (pairs.has(`${action_type}:${risk_tier}`)) return undefined;
      pairs.add(`${action_type}:${risk_tier}`);
      rows.push({ action_type, risk_tier, fail_mode });
    }
    const given = plainJson(value as readonly SourceValue[]);
    return given === undefined ? undefined : new FailModes(rows, given);
  }

  /** Of rows that an operator gives. @throws RangeError unless each is one */
  static of(rows: readonly FailModeRow[]): FailModes {
    const plain = rows.map(({ action_type, risk_tier, fail_mode }) => ({
      action_type,
      risk_tier,
      fail_mode,
    }));
    if (plain.length > MAX_ROWS || plain.some((row) => !isFailMode(row.fail_mode)))
      throw new RangeError(
        `failModes: expected at most ${MAX_ROWS} rows of action_type, risk_tier, fail_mode`,
      );
    return new FailModes(plain, plain);
  }

  /** Whether a row is about it. */
  has(actionType: string, riskTier: string): boolean {
    return this.#modes.has(`${actionType}:${riskTier}`);
  }

  /** For what no row is about: the defaults, and for an unknown tier `fail_closed`. */
  modeOf(actionType: string, riskTier: string): FailMode {
    const key = `${actionType}:${riskTier}`;
    return this.#modes.get(key) ?? FailModes.defaults.#modes.get(key) ?? 'fail_closed';
  }
}
