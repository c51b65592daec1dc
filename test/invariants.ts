/**
 * What must hold whatever fails. Each has one name and one sentence; simulation, exploration and models use the same names.
 * They read the last lines as any program may, without the code that wrote them; `sound` alone asks the verifier.
 */

import type { Account, Amount, Event, History, Line } from './history.js';

export interface Invariant {
  readonly sentence: string;
  /** Whether the ledger decides it, with what is said of it, and not what anybody was told or did. */
  readonly isOfLedger?: true;
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
    isOfLedger: true,
    check: ({ lines, hashes }) =>
      lines.flatMap(({ seq, prev }, at) => [
        ...(seq === at ? [] : [`line ${at} says ${seq}`]),
        ...(at === 0 || prev.b64 === hashes[at - 1] ? [] : [`line ${at} is not over line ${at - 1}`]),
      ]),
  },
  sound: {
    sentence: 'The verifier finds nothing invalid and no violation.',
    isOfLedger: true,
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
    isOfLedger: true,
    check: ({ lines }) =>
      repeated(
        actionsOf(lines).flatMap(({ event }) => event.authorization?.action?.request_key ?? []),
        'request key',
      ),
  },
  'done-once': {
    sentence: 'An action is begun once and executed once.',
    isOfLedger: true,
    check: ({ lines }) => {
      const of = (type: string): string[] =>
        lines.flatMap(({ event }) => (event.event_type === type ? (event.auth_event_id?.b64 ?? []) : []));
      return [...repeated(of('execution'), 'execution of'), ...repeated(of('x.northroot.start'), 'start of')];
    },
  },
  'cap-held': {
    sentence:
      'What was used and what is reserved is at no place of the ledger more than the cap, nor is what was done.',
    check: ({ lines, grants, runs }) => {
      const found = accounts(lines);
      return grants.flatMap(({ grantId, calls = Infinity }) => {
        const over = found.flatMap((at, place) => {
          const { used, reserved } = at.get(idOf(grantId)) ?? NOTHING;
          return used + reserved <= calls
            ? []
            : [`${used} used and ${reserved} reserved at ${place}, cap ${calls}`];
        });
        const done = runsUnder(runs, lines, grantId).length;
        return done <= calls ? over : [...over, `${done} were done, cap ${calls}`];
      });
    },
  },
  'rate-held': {
    sentence: 'No minute has more executions than the rate allows.',
    isOfLedger: true,
    check: ({ lines, grants }) => {
      const chains = chainsOf(lines);
      return grants.flatMap(({ grantId, perMinute = Infinity }) => {
        const times = lines
          .flatMap(({ event }) =>
            event.event_type === 'execution' &&
            event.error_code !== ABANDONED &&
            isUnder(chains, event, grantId)
              ? [Date.parse(event.started_at ?? event.occurred_at)]
              : [],
          )
          .sort((one, other) => one - other);
        return times.flatMap((time, at) => {
          const count = times.filter((each, index) => index <= at && each > time - 60_000).length;
          return count <= perMinute ? [] : [`${count} in the minute before ${time}, rate ${perMinute}`];
        });
      });
    },
  },
  'concurrency-held': {
    sentence: 'No more is begun and not settled, and no more is done at a time, than may be.',
    check: ({ lines, grants, runs }) => {
      const chains = chainsOf(lines);
      return grants.flatMap(({ grantId, concurrency = Infinity }) => {
        let open = 0;
        const found = lines.flatMap(({ event }, at) => {
          if (!isUnder(chains, event, grantId)) return [];
          if (event.event_type === 'x.northroot.start') open += 1;
          if (event.event_type === 'execution' && event.prev_event_id !== undefined) open -= 1;
          return open <= concurrency ? [] : [`${open} are begun at ${at}, limit ${concurrency}`];
        });
        const real = runsUnder(runs, lines, grantId);
        const most = Math.max(
          0,
          ...real.map(
            (run) => real.filter((each) => each.begunMs <= run.begunMs && run.begunMs < each.endedMs).length,
          ),
        );
        return most <= concurrency ? found : [...found, `${most} ran at a time, limit ${concurrency}`];
      });
    },
  },
  'nothing-after-stop': {
    sentence:
      'Between a stop and its end nothing is allowed and nothing begins, nor does what it met begin later.',
    check: ({ lines, answers, stops }) => [...actsUnderStops(lines), ...lateAnswers(lines, answers, stops)],
  },
  'approval-once': {
    sentence: 'An approval serves one action.',
    isOfLedger: true,
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
    isOfLedger: true,
    check: ({ lines, live, reported }) => {
      const found = accounts(lines).at(-1);
      const differs = (name: string, said: typeof live): string[] =>
        [...(said ?? [])].flatMap(([grantId, other]) => {
          const own = found?.get(idOf(grantId)) ?? NOTHING;
          return other.used === own.used && other.reserved === own.reserved
            ? []
            : [`${name}: ${JSON.stringify(other)}, by the lines ${JSON.stringify(own)}`];
        });
      return [...differs('who decides', live), ...differs('the report', reported)];
    },
  },
} as const satisfies Record<string, Invariant>;

export type InvariantName = keyof typeof INVARIANTS;

/** What does not hold, by the name of the invariant. */
export type Broken = Partial<Record<InvariantName, string[]>>;

/** @param which - Default: all */
export function findBroken(history: History, which: (invariant: Invariant) => boolean = () => true): Broken {
  return Object.fromEntries(
    Object.entries<Invariant>(INVARIANTS)
      .filter(([, invariant]) => which(invariant))
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

/** Remembers what lines come to: many histories have the same. */
function ofLines<T>(compute: (lines: readonly Line[]) => T): (lines: readonly Line[]) => T {
  const known = new WeakMap<readonly Line[], { readonly value: T }>();
  return (lines) => {
    const found = known.get(lines) ?? { value: compute(lines) };
    known.set(lines, found);
    return found.value;
  };
}

const placesOf = ofLines(
  (lines): ReadonlyMap<string, number> => new Map(lines.map(({ event }, at) => [event.event_id.b64, at])),
);

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

const releasesOf = ofLines((lines): string[] =>
  lines.flatMap(({ event }) => (event.error_code === ABANDONED ? (event.auth_event_id?.b64 ?? []) : [])),
);

function runsUnder(runs: History['runs'], lines: readonly Line[], grantId: string): History['runs'] {
  const chains = chainsOf(lines);
  return runs.filter(
    ({ authorization }) => chains.get(idOf(authorization))?.includes(idOf(grantId)) === true,
  );
}

/** Of each authorization, by its id: the grants that it is under, itself included if it is one. */
type Chains = ReadonlyMap<string, readonly string[]>;

const chainsOf = ofLines((lines): Chains => {
  const chains = new Map<string, readonly string[]>();
  for (const { event } of lines) {
    const { event_id: own, authorization } = event;
    if (authorization === undefined) continue;
    const above = chains.get(authorization.grant_event_id?.b64 ?? '') ?? [];
    chains.set(own.b64, authorization.kind === 'grant' ? [own.b64, ...above] : above);
  }
  return chains;
});

/** The grants that an event is under: an authorization's own, or those of what it executes or starts. */
function chainOf(chains: Chains, event: Event): readonly string[] {
  return chains.get((event.auth_event_id ?? event.event_id).b64) ?? [];
}

function isUnder(chains: Chains, event: Event, grantId: string): boolean {
  return chainOf(chains, event).includes(idOf(grantId));
}

const actsUnderStops = ofLines((lines): string[] => {
  const chains = chainsOf(lines);
  /** What is withdrawn, and how. */
  const withdrawn = new Map<string, { readonly effect: string; readonly inFlight: string }>();
  /** Actions that were allowed and have not begun, and those of them that a stop met. */
  const waiting = new Set<string>();
  const met = new Set<string>();
  return lines.flatMap(({ event }, at) => {
    const { event_type: type, effect, in_flight: inFlight = 'finish', auth_event_id: of } = event;
    if (type === 'revocation') {
      const grant = event.grant_event_id?.b64 ?? '';
      const before = withdrawn.get(grant);
      if (effect !== 'resume') {
        const isFinal = effect === 'revoke' || before?.effect === 'revoke';
        const stops = inFlight === 'stop' || before?.inFlight === 'stop';
        withdrawn.set(grant, {
          effect: isFinal ? 'revoke' : 'suspend',
          inFlight: stops ? 'stop' : 'finish',
        });
        if (stops) for (const id of waiting) if (chains.get(id)?.includes(grant) === true) met.add(id);
      } else if (before?.effect === 'suspend') withdrawn.delete(grant);
      return [];
    }
    const above = chainOf(chains, event).flatMap((grant) => withdrawn.get(grant) ?? []);
    if (isAction(event)) {
      waiting.add(event.event_id.b64);
      return above.length === 0 ? [] : [`line ${at} allows under a stop`];
    }
    if (type !== 'x.northroot.start') return [];
    waiting.delete(of?.b64 ?? '');
    if (met.has(of?.b64 ?? '')) return [`line ${at} begins what a stop met`];
    return above.some((each) => each.inFlight === 'stop') ? [`line ${at} begins under a stop`] : [];
  });
});

/** Whoever asks after a stop is acknowledged hears of nothing new until it ends. */
function lateAnswers(lines: readonly Line[], answers: History['answers'], stops: History['stops']): string[] {
  const places = placesOf(lines);
  const chains = chainsOf(lines);
  return answers.flatMap(({ ref, effect, authorization, isRepeated, askedMs }) => {
    const place = places.get(idOf(authorization));
    if (place === undefined || effect !== 'allow' || isRepeated) return [];
    const chain = chains.get(idOf(authorization)) ?? [];
    const isLate = stops.some((stop) => {
      const from = places.get(idOf(stop.eventId));
      const isBefore = stop.effect !== 'resume' && stop.ms < askedMs && chain.includes(idOf(stop.grantId));
      if (!isBefore || from === undefined || place < from) return false;
      const isEnded = lines.some(
        ({ seq, event }) =>
          seq > from &&
          seq < place &&
          event.effect === 'resume' &&
          event.grant_event_id?.b64 === idOf(stop.grantId),
      );
      return !(stop.effect === 'suspend' && isEnded);
    });
    return isLate ? [`${ref} was allowed after a stop`] : [];
  });
}

function callsOf(amounts: readonly Amount[] | undefined): number | undefined {
  const found = amounts?.find(({ unit }) => unit === 'calls');
  return found === undefined ? undefined : Number(found.amount.v);
}

const NOTHING: Account = { used: 0, reserved: 0 };

/** Calls used and reserved under each grant, by its id, after each line. */
const accounts = ofLines((lines): readonly ReadonlyMap<string, Account>[] => {
  const chains = chainsOf(lines);
  const open = new Map<string, number>();
  let now: ReadonlyMap<string, Account> = new Map();
  const change = (event: Event, { used, reserved }: Account): void => {
    const next = new Map(now);
    for (const grant of chainOf(chains, event)) {
      const before = next.get(grant) ?? NOTHING;
      next.set(grant, { used: before.used + used, reserved: before.reserved + reserved });
    }
    now = next;
  };
  return lines.map(({ event }) => {
    const of = event.auth_event_id?.b64 ?? '';
    if (isAction(event)) {
      const reserved = callsOf(event.authorization?.action?.meter_reservation) ?? 0;
      open.set(event.event_id.b64, reserved);
      change(event, { used: 0, reserved });
    }
    if (event.event_type === 'execution') {
      const reserved = open.get(of) ?? 0;
      open.delete(of);
      const used = event.error_code === ABANDONED ? 0 : (callsOf(event.meter_used) ?? reserved);
      change(event, { used, reserved: -reserved });
    }
    return now;
  });
});

function repeated(values: readonly string[], what: string): string[] {
  const seen = new Set<string>();
  return values.flatMap((value) => {
    if (seen.has(value)) return [`${what} ${value.slice(0, 30)} twice`];
    seen.add(value);
    return [];
  });
}
