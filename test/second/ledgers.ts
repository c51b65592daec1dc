/** Random ledgers of every sort that tests make, each by its seed, and how they are verified. */

import { makeSequence, TOPICS } from '../bounds/sequences.js';
import { bare, genesis, keyOf, ledger, makeSigner } from '../docs/ledger-kit.js';
import { FILE_CASES, FIXTURES, fixtureBytes, optionsOf, type LedgerCase } from '../fixtures/cases.js';
import { makeRandom } from '../ledger/scan-kit.js';
import { makeLedger } from '../verify/differential-kit.js';
import { fixtureOrigins, makeOrigin, mutateLedger } from '../verify/mutation-kit.js';
import { ledgerNearBounds } from '../verify/near-bounds.js';
import type { VerifyOptions } from '../../src/rules/verify/run-verification.js';
import type { AnyEvent } from '../../src/format/event/build.js';
import type { Case } from './kit.js';

export const NOW = '2026-11-22T00:00:00Z';

export interface RandomLedger {
  readonly kind: string;
  readonly bytes: Buffer;
  readonly how: Omit<Case, 'path'>;
  readonly options: VerifyOptions;
}

const MOST = 16_000;
const SIGNERS = [makeSigner(), makeSigner(), makeSigner('p256')] as const;
const CASES = FILE_CASES.filter((fixture) => fixtureBytes(fixture.ledger).length <= MOST);
const ORIGINS = fixtureOrigins(MOST);

export function pathsOf(fixture: LedgerCase): Omit<Case, 'path'> {
  const path = (file: string): string => FIXTURES + file;
  const maybe = (file: string | undefined): string | undefined => file && path(file);
  return {
    policy: maybe(fixture.trust),
    witness: maybe(fixture.witness_policy),
    checkpoints: (fixture.checkpoints ?? []).map(path),
    parents: (fixture.parents ?? []).map(path),
    predecessor: maybe(fixture.predecessor),
    now: fixture.now ?? NOW,
  };
}

export function randomLedger(seed: number): RandomLedger {
  const random = makeRandom(seed);
  const below = (end: number): number => Math.floor(random() * end);
  const plain = { how: { now: NOW }, options: { now: NOW } };
  switch (seed % 8) {
    case 0:
      return { kind: 'short', bytes: makeLedger(random, 1 + below(9)).bytes, ...plain };
    case 1:
      return { kind: 'near', bytes: ledgerNearBounds(random, SIGNERS[0], 10 + below(30)), ...plain };
    case 2:
      return { kind: 'sequence', bytes: signed(sequence(below), below), ...plain };
    case 3:
      return { kind: 'bare sequence', bytes: bare(...sequence(below)), ...plain };
    case 4:
    case 5: {
      const made = makeOrigin(random);
      const bytes = mutateLedger(made, random() < 0.5 ? ORIGINS : [made], random);
      return { kind: 'made', bytes, ...plain };
    }
    default: {
      const index = below(ORIGINS.length);
      const fixture = CASES[index];
      const bytes = mutateLedger(ORIGINS[index], ORIGINS, random);
      return {
        kind: fixture.ledger,
        bytes,
        how: pathsOf(fixture),
        options: { now: NOW, ...optionsOf(fixture) },
      };
    }
  }
}

function sequence(below: (end: number) => number): AnyEvent[] {
  const seeds = Array.from({ length: 5 + below(40) }, () => below(2 ** 32));
  return makeSequence(seeds, TOPICS[below(TOPICS.length)]).map(({ event }) => event as AnyEvent);
}

/** The events as records of a ledger in which some keys may do more than others. */
function signed(events: readonly AnyEvent[], below: (end: number) => number): Buffer {
  const [one, two, three] = SIGNERS;
  const roles = below(2) === 0 ? (['event'] as const) : (['event', 'authority'] as const);
  const keys = [
    keyOf(one, { roles: [...roles] }),
    keyOf(two, { principals: [['agent:a1', 'human:*', 'agent:*'][below(3)]] }),
    keyOf(three, { roles: below(2) === 0 ? ['event'] : ['authority'], principals: ['human:*', 'service:*'] }),
  ];
  const items = events.map((event) => ({
    event,
    signers: below(8) === 0 ? [two, three] : [below(4) === 0 ? two : below(6) === 0 ? three : one],
  }));
  const signing = { events: below(2) === 0 ? 'required' : 'optional', checkpoints: 'optional' };
  return ledger({ event: genesis(keys, { signing }), signers: [one] }, ...items);
}
