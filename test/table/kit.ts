/** What the tests of exports share: a sink in memory, a reader of CSV, and a ledger of everything that costs. */

import type { AnyEvent, ByteSink } from '../../src/api/index.js';
import { action, execution, grant, unsigned, usd } from '../docs/grant-kit.js';
import { event } from '../docs/ledger-kit.js';

/** Keeps what is written. */
export class MemorySink implements ByteSink {
  readonly #pieces: Buffer[] = [];

  write(piece: Uint8Array | string): undefined {
    this.#pieces.push(Buffer.from(piece as string));
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  get text(): string {
    return this.bytes.toString();
  }
}

/** The fields of RFC 4180 text, row by row. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const field = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/gy;
  for (let match = field.exec(text); match !== null; match = field.exec(text)) {
    const [, value = '', end] = match;
    row.push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value);
    if (end === '\r\n') {
      rows.push(row);
      row = [];
    }
    if (field.lastIndex === text.length) return rows;
  }
  throw new Error(`not CSV: ${JSON.stringify(text.slice(-80))}`);
}

/** The same by the names of the first row. */
export function csvObjects(text: string): Record<string, string>[] {
  const [names = [], ...rows] = parseCsv(text);
  return rows.map((fields) => {
    if (fields.length !== names.length) throw new Error(`${fields.length} fields of ${names.length}`);
    return Object.fromEntries(names.map((name, i) => [name, fields[i] ?? '']));
  });
}

export const root = grant({ allowed_tools: ['fs.*', 'llm.*'] });
export const delegated = grant(
  {
    allowed_tools: ['fs.*'],
    meter_caps: usd(6),
    rate_limits: [{ unit: 'calls.per_min', amount: usd(9)[0].amount }],
  },
  root,
  { principal_id: 'agent:a2' },
);
export const allowed = action(delegated, 2, { principal_id: 'agent:a2' });
export const denied = action(root, 1, { decision: 'deny', decision_code: 'TOO_DEAR' });
const third = [{ unit: 'usd', amount: { t: 'rat', n: '1', d: '3' } }];

export function adjustment(direction: string, meters: object[], members: object = {}): AnyEvent {
  return event('adjustment', {
    principal_id: 'service:billing',
    occurred_at: '2026-01-02T00:01:00Z',
    grant_event_id: root.event_id,
    direction,
    meters,
    reason: 'BILL',
    ...members,
  });
}

/** Grants, actions, executions of every sort, adjustments: of `root`, 4.75 usd are used in the end. */
export const costly: readonly AnyEvent[] = [
  root,
  delegated,
  allowed,
  denied,
  execution(allowed, 2, { principal_id: 'agent:a2', meter_basis: 'billed' }),
  execution(root, 0, {
    occurred_at: '2026-01-02T00:00:05.25Z',
    started_at: '2026-01-02T00:00:00.123456789Z',
    ended_at: '2026-01-02T00:00:02.5Z',
    tool_name: 'llm.complete',
    model_id: 'claude-opus',
    provider: 'anthropic',
    meter_basis: 'estimated',
    meter_used: [
      { unit: 'usd', amount: { t: 'dec', m: '25', s: 1 } },
      { unit: 'tokens.input', amount: { t: 'int', v: '1200' } },
      { unit: 'tokens.output', amount: { t: 'int', v: '80' } },
    ],
  }),
  execution(denied, 0, { occurred_at: '2026-01-02T00:00:30Z', outcome: 'failure', error_code: 'BLOCKED' }),
  adjustment('debit', usd(1)),
  adjustment('credit', [{ unit: 'usd', amount: { t: 'dec', m: '75', s: 2 } }]),
  adjustment('credit', usd(9)),
];

export const costlyLedger = unsigned(...costly);
/** One whose amounts no decimal holds. */
export const thirdsLedger = unsigned(root, execution(root, 0, { meter_used: third }));

/** What an export says of itself, as in `verification.csv`. */
export const aboutOf = (csv: string): Map<string, string> =>
  new Map(parseCsv(csv).map(([name = '', value = '']) => [name, value]));

/** Some values of a row, in order. */
export const pick = (
  row: Readonly<Record<string, string>> | undefined,
  ...names: string[]
): (string | undefined)[] => names.map((name) => row?.[name]);
