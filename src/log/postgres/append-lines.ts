/** One statement that appends lines if the ledger ends as expected, all of them or none. */

import { LOCK_SPACE } from './schema.js';
import { SETTINGS } from './durability.js';
import type { NorthrootError } from '../../base/error.js';
import { countOf, type Head, tipOf } from './head.js';
import { codeOf, malformed } from './postgres-error.js';
import type { Answer, Session } from './session.js';

/**
 * A longer group is parsed anew: its server then sees a statement begun, not a silent holder of the lock, while the lines are on their way.
 */
const MAX_PREPARED_BYTES = 64 * 1024;

/** Lines to be appended, each with its `\n`, and where the ledger ends after them. */
export interface Group {
  readonly lines: readonly Uint8Array[];
  readonly expected: Head;
  readonly size: number;
  readonly tip: string;
  readonly endOffset: number;
}

/**
 * One parameter has all lines; two have where each begins and ends in it. Where the tables were changed by hand so that not all are taken,
 * it fails, and moves nothing.
 */
const PARTS = `added as (
  insert into northroot.line (ledger, seq, end_offset, bytes)
  select moved.id, moved.size + part.n - 1, moved.end_offset + part.ends, substring($1::bytea from part.starts + 1 for part.ends - part.starts)
  from moved, unnest($2::int[], $3::int[]) with ordinality as part(starts, ends, n)
  returning 1
)
select count(*)::int as lines, 1 / (count(*) = cardinality($2::int[]) * (select count(*) from moved))::int as whole from added`;
const DIVISION_BY_ZERO = '22012';

/** A session that is not the one it was has lost its lock, and a server with other settings keeps less: then nothing is appended. */
const NEXT = `with moved as (
  update northroot.head set size = $4, tip = $5, end_offset = $6
  where name = $7 and pg_backend_pid() = $8 and ${SETTINGS} = $9
    and size = $10 and tip = $11 and end_offset = $12
  returning id, $10::bigint as size, $12::bigint as end_offset
), ${PARTS}`;

const FIRST = `with moved as (
  insert into northroot.head (size, tip, end_offset, name) select $4, $5, $6, $7 where pg_backend_pid() = $8 and ${SETTINGS} = $9
  on conflict (name) do nothing
  returning id, 0::bigint as size, 0::bigint as end_offset
), ${PARTS}`;

const TOUCH = `update northroot.head set touched = touched + 1
where name = $1 and pg_backend_pid() = $2 and ${SETTINGS} = $3 and size = $4 and tip = $5`;

export function groupOf(expected: Head, lines: readonly Uint8Array[]): Group {
  const bytes = lines.reduce((sum, line) => sum + line.length, 0);
  return {
    lines,
    expected,
    size: expected.size + lines.length,
    tip: tipOf(lines.at(-1) as Uint8Array),
    endOffset: expected.endOffset + bytes,
  };
}

/**
 * The answer's count is that of the lines, or 0 if the ledger ends otherwise, or the server has other settings.
 * @param settings - Those that its promises were judged by
 * @throws NorthrootError `STORE_MALFORMED` for tables that do not take all lines; as the session does
 */
export async function sendGroup(
  session: Session,
  ledger: string,
  group: Group,
  settings: string,
): Promise<Pick<Answer, 'count' | 'isUncertain'>> {
  const { lines, expected, size, tip, endOffset } = group;
  const starts: number[] = [];
  const ends: number[] = [];
  let at = 0;
  for (const line of lines) {
    starts.push(at);
    at += line.length;
    ends.push(at);
  }
  const values = [
    Buffer.concat(lines, at),
    starts,
    ends,
    size,
    tip,
    endOffset,
    ledger,
    session.pid,
    settings,
  ];
  const name = at > MAX_PREPARED_BYTES ? undefined : 'northroot-next';
  const asking =
    expected.size === 0
      ? session.ask(FIRST, values)
      : session.ask(NEXT, [...values, expected.size, expected.tip, expected.endOffset], name);
  const { rows, isUncertain } = await asking.catch((error: unknown) => {
    throw codeOf(error) === DIVISION_BY_ZERO ? notTaken(session.name) : error;
  });
  const count = countOf(rows[0] ?? {}, 'lines');
  if (count === undefined) throw notTaken(session.name);
  return { count, isUncertain };
}

function notTaken(name: string): NorthrootError {
  return malformed(name, 'its tables do not take all lines');
}

/**
 * Commits a change that says nothing: once it is where commits are to be, so is all before it. The answer's count is 0 as for
 * {@link sendGroup}.
 */
export function touch(
  session: Session,
  ledger: string,
  { size, tip }: { size: number; tip: string },
  settings: string,
): Promise<Answer> {
  return session.ask(TOUCH, [ledger, session.pid, settings, size, tip], 'northroot-touch');
}

/** The two keys of a ledger's lock. */
export function lockKeys(number: number): string {
  return `${LOCK_SPACE}, ${number}`;
}
