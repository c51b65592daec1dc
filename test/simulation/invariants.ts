/**
 * What must hold whatever fails. Each has one name and one sentence; the explorations of small ledgers and the models use the same names.
 * They read the last lines as any program may, without the code that wrote them; `sound` alone asks the verifier.
 */

import type { Amount, Event, History, Line } from './history.js';

export interface Invariant {
  readonly sentence: string;
  /** What breaks it, in words; nothing where it holds. */
  readonly check: (history: History) => string[];
}

const ABANDONED = 'ABANDONED';

export const INVARIANTS = {
  'acknowledged-or-told': {
    sentence:
      'What was acknowledged is in the ledger, at the place that was told, or whoever was told so was told LEDGER_ROLLED_BACK.',
    check: ({ acknowledged, told, lines }) => {
      const places = placesOf(lines);
      return acknowledged.flatMap(({ by, eventId, seq }) => {
        const place = places.get(idOf(eventId));
        if (told.has(by)) return [];
        if (place === undefined) return [`${by} was told of ${short(eventId)}, which is gone`];
        return seq === undefined || seq === place
          ? []
          : [`${by} was told that ${short(eventId)} is at ${seq}, and it is at ${place}`];
      });
    },
  },
  'durable-before-told': {
    sentence: 'A record is stored before anybody is told of it.',
    check: ({ acknowledged }) =>
      acknowledged
        .filter(({ isStored }) => !isStored)
        .map(({ by, eventId }) => `${by} was told of ${short(eventId)} before it was stored`),
  },
  'told-in-order': {
    sentence: 'A program is told of what it appends in the order of the ledger.',
    check: ({ acknowledged, told }) => {
      const last = new Map<string, number>();
      return acknowledged.flatMap(({ by, seq, eventId, isInOrder = false }) => {
        if (seq === undefined || !isInOrder || told.has(by)) return [];
        const before = last.get(by) ?? -1;
        last.set(by, Math.max(before, seq));
        return seq > before ? [] : [`${by} was told of ${short(eventId)} at ${seq} after ${before}`];
      });
    },
  },
  'settles-once': {
    sentence: 'What a living program is asked for is answered, once.',
    check: ({ asked }) =>
      asked
        .filter(({ settled }) => settled !== 1)
        .map(({ by, what, settled }) => `${by}: ${what}: ${settled} answers`),
  },
  'one-chain': {
    sentence: 'The lines are one chain: numbers without gaps, each over the hash of the line before.',
    check: ({ lines, hashes }) =>
      lines.flatMap(({ seq, prev }, at) => [
        ...(seq === at ? [] : [`line ${at} says ${seq}`]),
        ...(at === 0 || prev.b64 === hashes[at - 1] ? [] : [`line ${at} is not over line ${at - 1}`]),
      ]),
  },
  sound: {
    sentence: 'The verifier finds nothing invalid and no violation.',
    check: ({ report }) =>
      (report?.findings ?? [])
        .filter((finding) => finding.class === 'invalid' || finding.class === 'violation')
        .map((finding) => `${finding.code} at ${finding.seq ?? '?'}`),
  },
  'one-answer': {
    sentence: 'All who ask for one call are told of one authorization.',
    check: ({ answers, lines }) => {
      const places = placesOf(lines);
      const released = new Set(releasesOf(lines));
      const allowed = new Map<string, Set<string>>();
      for (const { ref, effect, authorization } of answers) {
        // What was lost may be decided anew; what was released too.
        const id = idOf(authorization);
        if (effect !== 'allow' || !places.has(id) || released.has(id)) continue;
        allowed.set(ref, (allowed.get(ref) ?? new Set()).add(id));
      }
      return [...allowed]
        .filter(([, ids]) => ids.size > 1)
        .map(([ref, ids]) => `${ref} was allowed by ${[...ids].map(short).join(', ')}`);
    },
  },
  'one-action-a-request': {
    sentence: 'A request key is in one allowed action.',
    check: ({ lines }) =>
      repeated(
        actionsOf(lines).flatMap(({ event }) => event.authorization?.action?.request_key ?? []),
        'request key',
      ),
  },
  'done-once': {
    sentence: 'An action is begun once and executed once.',
    check: ({ lines }) => {
      const of = (type: string): string[] =>
        lines.flatMap(({ event }) => (event.event_type === type ? (event.auth_event_id?.b64 ?? []) : []));
      return [...repeated(of('execution'), 'execution of'), ...repeated(of('x.northroot.start'), 'start of')];
    },
  },
  'cap-held': {
    sentence:
      'What was used and what is reserved is at no place of the ledger more than the cap, nor is what was done.',
    check: ({ lines, bounds, runs }) => {
      const found = accounts(lines).flatMap(({ used, reserved }, at) =>
        used + reserved <= bounds.calls
          ? []
          : [`${used} used and ${reserved} reserved at ${at}, cap ${bounds.calls}`],
      );
      const done = runsOfLedger(runs, lines).length;
      return done <= bounds.calls ? found : [...found, `${done} were done, cap ${bounds.calls}`];
    },
  },
  'rate-held': {
    sentence: 'No minute has more executions than the rate allows.',
    check: ({ lines, bounds }) => {
      const times = lines
        .flatMap(({ event }) =>
          event.event_type === 'execution' && event.error_code !== ABANDONED
            ? [Date.parse(event.started_at ?? event.occurred_at)]
            : [],
        )
        .sort((one, other) => one - other);
      return times.flatMap((time, at) => {
        const count = times.filter((each, index) => index <= at && each > time - 60_000).length;
        return count <= bounds.perMinute
          ? []
          : [`${count} in the minute before ${time}, rate ${bounds.perMinute}`];
      });
    },
  },
  'concurrency-held': {
    sentence: 'No more is begun and not settled, and no more is done at a time, than may be.',
    check: ({ lines, bounds, runs }) => {
      let open = 0;
      const found = lines.flatMap(({ event }, at) => {
        if (event.event_type === 'x.northroot.start') open += 1;
        if (event.event_type === 'execution' && event.prev_event_id !== undefined) open -= 1;
        return open <= bounds.concurrency ? [] : [`${open} are begun at ${at}, limit ${bounds.concurrency}`];
      });
      const real = runsOfLedger(runs, lines);
      const most = Math.max(
        0,
        ...real.map(
          (run) => real.filter((each) => each.begunMs <= run.begunMs && run.begunMs < each.endedMs).length,
        ),
      );
      return most <= bounds.concurrency
        ? found
        : [...found, `${most} ran at a time, limit ${bounds.concurrency}`];
    },
  },
  'nothing-after-stop': {
    sentence: 'Between a stop and its end nothing is allowed and nothing begins.',
    check: ({ lines, answers, stops }) => {
      let isStopped = false;
      const places = placesOf(lines);
      const inLedger = lines.flatMap(({ event }, at) => {
        if (event.event_type === 'revocation') isStopped = event.effect !== 'resume';
        const acts = event.event_type === 'x.northroot.start' || isAction(event);
        return isStopped && acts ? [`line ${at} is ${event.event_type} under a stop`] : [];
      });
      // Whoever asks after a stop is acknowledged hears of nothing new until it ends.
      const late = answers.flatMap(({ ref, effect, authorization, isRepeated, askedMs }) => {
        const last = stops.filter(({ ms }) => ms < askedMs).at(-1);
        const place = places.get(idOf(authorization));
        if (last === undefined || last.effect === 'resume' || effect !== 'allow' || isRepeated) return [];
        const stop = places.get(idOf(last.eventId));
        const isEnded = lines.some(
          ({ seq, event }) => seq > (stop ?? 0) && seq < (place ?? 0) && event.effect === 'resume',
        );
        return place === undefined || stop === undefined || isEnded || place < stop
          ? []
          : [`${ref} was allowed after a stop`];
      });
      return [...inLedger, ...late];
    },
  },
  'approval-once': {
    sentence: 'An approval serves one action.',
    check: ({ lines }) =>
      repeated(
        actionsOf(lines).flatMap(({ event }) =>
          (event.authorization?.action?.approval_event_ids ?? []).map(({ b64 }) => b64),
        ),
        'approval',
      ),
  },
  'reserved-is-open': {
    sentence:
      'What is reserved is what is open, and what is used what was executed, for who decides and for who verifies.',
    check: ({ lines, live, reported }) => {
      const own = accounts(lines).at(-1) ?? { used: 0, reserved: 0 };
      const differs = (name: string, other: typeof live): string[] =>
        other === undefined || (other.used === own.used && other.reserved === own.reserved)
          ? []
          : [`${name}: ${JSON.stringify(other)}, by the lines ${JSON.stringify(own)}`];
      return [...differs('the gate', live), ...differs('the report', reported)];
    },
  },
} as const satisfies Record<string, Invariant>;

export type InvariantName = keyof typeof INVARIANTS;

/** What does not hold, by the name of the invariant. */
export function findBroken(history: History): Partial<Record<InvariantName, string[]>> {
  return Object.fromEntries(
    Object.entries(INVARIANTS)
      .map(([name, { check }]) => [name, check(history)] as const)
      .filter(([, found]) => found.length > 0),
  );
}

function idOf(eventId: string): string {
  return eventId.replace(/^sha-256:/, '');
}

function short(id: string): string {
  return idOf(id).slice(0, 6);
}

function placesOf(lines: readonly Line[]): Map<string, number> {
  return new Map(lines.map(({ event }, at) => [event.event_id.b64, at]));
}

function isAction(event: Event): boolean {
  return (
    event.event_type === 'authorization' &&
    event.decision === 'allow' &&
    event.authorization?.kind === 'action'
  );
}

function actionsOf(lines: readonly Line[]): Line[] {
  return lines.filter(({ event }) => isAction(event));
}

function releasesOf(lines: readonly Line[]): string[] {
  return lines.flatMap(({ event }) =>
    event.error_code === ABANDONED ? (event.auth_event_id?.b64 ?? []) : [],
  );
}

function runsOfLedger(runs: History['runs'], lines: readonly Line[]): History['runs'] {
  const places = placesOf(lines);
  return runs.filter(({ authorization }) => places.has(idOf(authorization)));
}

function callsOf(amounts: readonly Amount[] | undefined): number | undefined {
  const found = amounts?.find(({ unit }) => unit === 'calls');
  return found === undefined ? undefined : Number(found.amount.v);
}

/** Calls used and reserved after each line. */
function accounts(lines: readonly Line[]): { used: number; reserved: number }[] {
  const open = new Map<string, number>();
  let used = 0;
  return lines.map(({ event }) => {
    const of = event.auth_event_id?.b64 ?? '';
    if (isAction(event))
      open.set(event.event_id.b64, callsOf(event.authorization?.action?.meter_reservation) ?? 0);
    if (event.event_type === 'execution') {
      const reserved = open.get(of) ?? 0;
      open.delete(of);
      if (event.error_code !== ABANDONED) used += callsOf(event.meter_used) ?? reserved;
    }
    return { used, reserved: [...open.values()].reduce((sum, each) => sum + each, 0) };
  });
}

function repeated(values: readonly string[], what: string): string[] {
  const seen = new Set<string>();
  return values.flatMap((value) => {
    if (seen.has(value)) return [`${what} ${value.slice(0, 30)} twice`];
    seen.add(value);
    return [];
  });
}
