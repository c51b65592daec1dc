/**
 * A small world: two deciders and an owner over one ledger, hosts that ask for calls, time that passes, programs that end. A state is what
 * is stored, what each program has in hand, and what everybody was told; its successors are all that can happen next.
 */

import { emptyHistory, type Answer as Heard, type History } from '../history.js';
import { type Broken, findBroken } from '../invariants.js';
import type { Ledgers, Outcome } from './ledgers.js';
import { type Answer, type CallPlan, type Effect, GRANTS, type InFlight, type Step } from './programs.js';

/** What is made wrong, at the doors of writers and stores. */
export type Weakness =
  /** Appends what was decided on an earlier ledger, as decided. */
  | 'decides-before-lock'
  /** The store appends whatever is expected. */
  | 'no-compare'
  /** A crash takes the last record along, told or not. */
  | 'loses-acknowledged'
  /** Whoever asks is told before anything is stored. */
  | 'tells-before-stored'
  /** A host that asks again asks for something new. */
  | 'forgets-requests'
  /** What is settled is released too. */
  | 'frees-twice'
  /** Two that were appended are told in the wrong order. */
  | 'tells-backwards'
  /** A decider that another took over from, paused and back, appends what it had decided. */
  | 'comes-back';

export interface WorldOptions {
  readonly calls: readonly CallPlan[];
  /** How often each call may be asked for. */
  readonly asks: number;
  /** What the owner does, each once, in any order. */
  readonly owner: readonly OwnerStep[];
  readonly crashes: number;
  /** How far time goes: 0 to 2. */
  readonly times: number;
  /** How many deciders there are. */
  readonly deciders: 1 | 2;
  /** Whether what dead hosts have begun is settled by others. */
  readonly abandons: boolean;
  /** Whether a host that is not answered yet may ask another decider. */
  readonly isImpatient?: boolean;
  /** Where one of the deciders leads at a time, how often the other takes over; default: both decide. */
  readonly takeovers?: number;
  readonly bounds: History['grants'];
  readonly weakness?: Weakness | undefined;
}

export type OwnerStep = 'approve' | 'note' | readonly [Effect, grant: 0 | 1, inFlight?: InFlight];

/**
 * What a program has in hand: it has read and decided, or the ledger has changed since (`stale`), or its records are stored and not answered.
 * `out` is the number of an outcome. A crash and a new start leave nothing of it.
 */
type Actor =
  | null
  | readonly [phase: 'read' | 'stale' | 'stored', step: Step, out: number, stopsBefore: number];

/** What the host of a call knows. */
type Stage =
  | 'new'
  | 'asking'
  | 'unheard'
  | 'refused'
  | 'allowed'
  | 'beginning'
  | 'begun'
  | 'running'
  | 'ran'
  | 'settling'
  | 'lost'
  | 'over';

type CallState = readonly [stage: Stage, asks: number, auth: number, start: number];

/** Plain data: two states are one if their texts are. */
export interface State {
  readonly node: number;
  readonly time: number;
  readonly actors: readonly Actor[];
  readonly calls: readonly CallState[];
  /** What the owner has not done yet, by number. */
  readonly left: readonly number[];
  readonly crashes: number;
  /** The decider that leads; absent where both decide. */
  readonly leader?: number;
  readonly takeovers?: number;
  /** Ledgers that end with a record of which somebody was told; those told of before they were stored are negative. */
  readonly told: readonly number[];
  /** The records of two that were asked for at once, as told. */
  readonly order: readonly number[];
  readonly answers: readonly (readonly [
    call: number,
    effect: string,
    node: number,
    isRepeated: 0 | 1,
    stops: number,
  ])[];
  readonly runs: readonly (readonly [call: number, node: number, isRunning: 0 | 1])[];
  readonly stops: readonly (readonly [node: number, effect: Effect, grant: 0 | 1])[];
  /** How many requests were never answered. */
  readonly unanswered: number;
}

/** What a program does; the rest is done by hosts and time. */
export type Act =
  | { readonly kind: 'begin'; readonly actor: number; readonly step: Step }
  /** Tries to append: what was decided by an earlier ledger is decided anew. */
  | { readonly kind: 'write'; readonly actor: number }
  | { readonly kind: 'answer'; readonly actor: number; readonly answer: Answer }
  /** `stored`: how many records of its group are written before it ends. */
  | { readonly kind: 'end'; readonly actor: number; readonly stored: number };

type Add = (label: string, next: State, act?: Act) => void;

export interface Successor {
  /** What happens, in words. */
  readonly label: string;
  readonly act: Act | undefined;
  readonly state: State;
}

const NAMES = ['P1', 'P2', 'owner'] as const;
const OWNER = 2;
const NO_RECORD = -1;
/** Genesis and the grants. */
const SETUP_SIZE = 3;

export class World {
  readonly ledgers: Ledgers;
  readonly options: WorldOptions;
  readonly #broken = new WeakMap<History['lines'], Broken>();

  constructor(ledgers: Ledgers, options: WorldOptions) {
    this.ledgers = ledgers;
    this.options = options;
  }

  async begin(): Promise<State> {
    const { number } = await this.ledgers.begin();
    return {
      node: number,
      time: 0,
      actors: [null, null, null],
      calls: this.options.calls.map(() => ['new', 0, NO_RECORD, NO_RECORD]),
      left: this.options.owner.map((_, index) => index),
      crashes: 0,
      told: [],
      order: [],
      answers: [],
      runs: [],
      stops: [],
      unanswered: 0,
      ...(this.options.takeovers === undefined ? {} : { leader: 0, takeovers: 0 }),
    };
  }

  /** All that can happen next, in an order that is always the same. */
  async successorsOf(state: State): Promise<Successor[]> {
    const found: Successor[] = [];
    const add: Add = (label, next, act) => void found.push({ label, act, state: this.#normal(next) });
    for (let actor = 0; actor < NAMES.length; actor += 1) {
      if (actor < OWNER && actor >= this.options.deciders) continue;
      if (state.actors[actor] !== null) await this.#goOn(state, actor, add);
      else if (!isDeposed(state, actor)) await this.#begin(state, actor, add);
    }
    const { leader, takeovers = 0 } = state;
    if (leader !== undefined && takeovers < (this.options.takeovers ?? 0)) {
      // Whoever leads may be paused with something in hand, and knows nothing of it.
      const other = 1 - leader;
      add(`${NAMES[other]} takes over`, { ...state, leader: other, takeovers: takeovers + 1 });
    }
    for (const [call, [stage]] of state.calls.entries()) this.#host(state, call, stage, add);
    if (state.time < this.options.times) add('time passes', { ...state, time: state.time + 1 });
    return found;
  }

  /** What an idle program may be asked for. */
  async #begin(state: State, actor: number, add: Add): Promise<void> {
    const name = NAMES[actor];
    if (actor === OWNER) {
      for (const index of state.left) {
        const asked = this.options.owner[index];
        const step: Step =
          typeof asked === 'string'
            ? asked === 'note'
              ? { kind: asked, at: state.time }
              : { kind: asked }
            : {
                kind: 'withdraw',
                at: state.time,
                effect: asked[0],
                grant: asked[1],
                ...(asked[2] === undefined ? {} : { inFlight: asked[2] }),
              };
        const left = state.left.filter((each) => each !== index);
        const what = typeof asked === 'string' ? asked : asked.join(' ');
        add(`${name}: ${what}`, await this.#read({ ...state, left }, actor, step), {
          kind: 'begin',
          actor,
          step,
        });
      }
      return;
    }
    for (const [call, [stage, asks, auth, start]] of state.calls.entries()) {
      const ask = async (step: Step, next: Stage, asked = asks): Promise<void> => {
        const calls = state.calls.with(call, [next, asked, auth, start]);
        add(`${name}: ${step.kind} ${call}`, await this.#read({ ...state, calls }, actor, step), {
          kind: 'begin',
          actor,
          step,
        });
      };
      const isToAsk =
        stage === 'new' ||
        stage === 'unheard' ||
        stage === 'refused' ||
        (stage === 'asking' && this.options.isImpatient === true);
      if (isToAsk && asks < this.options.asks && start === NO_RECORD) {
        const key = this.options.weakness === 'forgets-requests' ? `${call}/${asks}` : `${call}`;
        await ask({ kind: 'ask', call, key }, 'asking', asks + 1);
      }
      if (stage === 'allowed') {
        await ask({ kind: 'begin', call, auth }, 'beginning');
        await ask({ kind: 'release', call, auth, at: state.time }, 'settling');
      }
      if (stage === 'ran') await ask({ kind: 'settle', call, auth, start, at: state.time }, 'settling');
      if (stage === 'lost' && auth !== NO_RECORD) await ask({ kind: 'abandon', call, auth }, 'settling');
    }
  }

  /** Reads the ledger, and decides by it. What needs no record is answered by what was read. */
  async #read(state: State, actor: number, step: Step, stopsBefore = state.stops.length): Promise<State> {
    // What is not decided under the lock is dated when it is asked for.
    const time = step.kind === 'withdraw' || step.kind === 'note' ? step.at : state.time;
    const out = await this.ledgers.outcomeOf(state.node, time, step);
    const phase = out.made.length === 0 ? 'stored' : 'read';
    return { ...state, actors: state.actors.with(actor, [phase, step, out.number, stopsBefore]) };
  }

  async #goOn(state: State, actor: number, add: Add): Promise<void> {
    const [phase, step, number, stopsBefore] = state.actors[actor] as NonNullable<Actor>;
    const { weakness } = this.options;
    const name = NAMES[actor];
    if (phase === 'stale' && weakness === undefined && isDeposed(state, actor)) {
      add(`${name} is refused, and drops what it had decided`, this.#ended(state, actor));
      return;
    }
    if (phase === 'stale' && weakness === undefined) {
      // That it ends is the same as if it had ended before.
      add(`${name} reads again`, await this.#read(state, actor, step, stopsBefore), { kind: 'write', actor });
      return;
    }
    const out = this.ledgers.outcomes[number];
    const isCurrent = out.from === state.node;
    if (phase === 'stored') {
      if (out.settled === 0)
        add(`${name} is never answered`, { ...this.#ended(state, actor), unanswered: state.unanswered + 1 });
      else
        add(`${name} answers`, this.#tell(state, actor, step, out, stopsBefore, true), {
          kind: 'answer',
          actor,
          answer: out.answer,
        });
    } else {
      const stored = await this.#store(state, actor, step, out);
      const last = stored?.made.at(-1);
      if (stored !== undefined && last !== undefined) {
        const actors = state.actors.with(actor, ['stored', step, stored.number, stopsBefore]);
        add(`${name} stores`, { ...state, actors, node: last }, { kind: 'write', actor });
      } else
        add(`${name} reads again`, await this.#read(state, actor, step, stopsBefore), {
          kind: 'write',
          actor,
        });
      if (weakness === 'tells-before-stored')
        add(`${name} answers early`, this.#tell(state, actor, step, out, stopsBefore, false));
    }
    if (state.crashes >= this.options.crashes) return;
    const crashed = { ...this.#ended(state, actor), crashes: state.crashes + 1 };
    const before = this.ledgers.recordsOf(state.node).at(-2)?.number ?? NO_RECORD;
    if (weakness === 'loses-acknowledged' && this.ledgers.sizeOf(state.node) > SETUP_SIZE)
      add(`${name} ends, and the last record with it`, { ...crashed, node: before });
    add(`${name} ends`, crashed, { kind: 'end', actor, stored: 0 });
    // A group that was being written may be there in part.
    if (phase === 'read' && isCurrent)
      for (const [index, node] of out.made.slice(0, -1).entries())
        add(
          `${name} stores ${index + 1} of ${out.made.length}, and ends`,
          { ...crashed, node },
          { kind: 'end', actor, stored: index + 1 },
        );
  }

  /** What storing leads to; undefined where the ledger has changed, and is read again. */
  async #store(state: State, actor: number, step: Step, out: Outcome): Promise<Outcome | undefined> {
    const { weakness } = this.options;
    const isCurrent = out.from === state.node;
    if (weakness === 'comes-back' && !isCurrent && isDeposed(state, actor))
      return this.ledgers.appendedTo(state.node, out);
    if (weakness === 'no-compare' && !isCurrent) return this.ledgers.moved(state.node, out);
    if (weakness === 'decides-before-lock' && !isCurrent) return this.ledgers.appendedTo(state.node, out);
    if (!isCurrent) return undefined;
    if (weakness !== 'frees-twice' || step.kind !== 'settle') return out;
    return this.ledgers.releasedToo(out, state.time);
  }

  /** A program hears that what it asked for is done, and whoever asked it does. */
  #tell(
    state: State,
    actor: number,
    step: Step,
    out: Outcome,
    stopsBefore: number,
    isStored: boolean,
  ): State {
    const next = this.#ended(state, actor);
    const { answer } = out;
    const end = out.made.at(-1) ?? out.from;
    const records = this.ledgers.recordsOf(end);
    const nodeAt = (seq: number): number => records[seq]?.number ?? NO_RECORD;
    const nodes = answer.told.map((seq) => (isStored ? nodeAt(seq) : -nodeAt(seq)));
    const told = [...new Set([...state.told, ...nodes])].sort((one, other) => one - other);
    const heard: State = { ...next, told };
    if (step.kind === 'approve') return heard;
    if (step.kind === 'note') {
      const order = this.options.weakness === 'tells-backwards' ? answer.told.toReversed() : answer.told;
      return { ...heard, order: order.map(nodeAt) };
    }
    if (step.kind === 'withdraw') {
      if (answer.error !== undefined) return heard;
      const [seq = NO_RECORD] = answer.told;
      return { ...heard, stops: [...state.stops, [nodeAt(seq), step.effect, step.grant]] };
    }
    const [stage, asks, auth, start] = next.calls[step.call];
    // Who was answered already acts by the first answer.
    const isLate = step.kind === 'ask' && stage !== 'unheard';
    const known = isLate ? undefined : answered(step, answer, [asks, auth, start]);
    const calls = known === undefined ? next.calls : next.calls.with(step.call, known);
    if (step.kind !== 'ask' || answer.effect === undefined) return { ...heard, calls };
    const isRepeated = answer.isRepeated === true ? 1 : 0;
    const own = [
      step.call,
      answer.effect,
      nodeAt(answer.auth ?? NO_RECORD),
      isRepeated,
      stopsBefore,
    ] as const;
    return { ...heard, calls, answers: sorted([...state.answers, own]) };
  }

  /** A program has nothing in hand; if it was asked by a host, that one has heard nothing. */
  #ended(state: State, actor: number): State {
    const [, step] = state.actors[actor] as NonNullable<Actor>;
    const actors = state.actors.with(actor, null);
    if (!('call' in step)) return { ...state, actors };
    const [stage, asks, auth, start] = state.calls[step.call];
    if (step.kind === 'ask' && stage !== 'asking') return { ...state, actors };
    const calls = state.calls.with(step.call, [unheard(step), asks, auth, start]);
    return { ...state, actors, calls };
  }

  #host(state: State, call: number, stage: Stage, add: Add): void {
    const [, asks, auth, start] = state.calls[call];
    const to = (next: Stage): State['calls'] => state.calls.with(call, [next, asks, auth, start]);
    const node =
      auth === NO_RECORD ? NO_RECORD : (this.ledgers.recordsOf(state.node)[auth]?.number ?? NO_RECORD);
    if (stage === 'begun') {
      const runs = sorted([...state.runs, [call, node, 1] as const]);
      add(`host runs ${call}`, { ...state, calls: to('running'), runs });
    }
    if (stage === 'running') {
      const runs = sorted(state.runs.map((run) => (run[0] === call ? ([call, run[1], 0] as const) : run)));
      add(`host has run ${call}`, { ...state, calls: to('ran'), runs });
    }
    const isLost = stage === 'begun' || stage === 'allowed' || (stage === 'ran' && start !== NO_RECORD);
    if (isLost && this.options.abandons) add(`host of ${call} ends`, { ...state, calls: to('lost') });
  }

  /** The same state under its usual name: of two deciders it does not matter which is which. */
  #normal(state: State): State {
    const actors = state.actors.map((actor): Actor => {
      if (actor === null || actor[0] !== 'read') return actor;
      const [, step, number, stops] = actor;
      const out = this.ledgers.outcomes[number];
      if (out.from === state.node) return actor;
      // What was read is of no use any more, but to a program that does not look again.
      return ['stale', step, this.options.weakness === undefined ? NO_RECORD : number, stops];
    });
    const [one = null, other = null, owner = null] = actors;
    const isSwapped = JSON.stringify(other) < JSON.stringify(one);
    if (!isSwapped) return { ...state, actors: [one, other, owner] };
    const leads = state.leader === undefined ? {} : { leader: 1 - state.leader };
    return { ...state, actors: [other, one, owner], ...leads };
  }

  /** What is known in a state, for the invariants. */
  async historyOf(state: State): Promise<History> {
    const { ledgers } = this;
    const records = ledgers.recordsOf(state.node);
    const known = await ledgers.knownOf(state.node);
    const idOf = (node: number): string => ledgers.nodes[node]?.id ?? '';
    const told = state.told.map((node) => {
      const { id: eventId, size } = ledgers.nodes[Math.abs(node)] as {
        readonly id: string;
        readonly size: number;
      };
      return { ms: 0, by: 'anyone', eventId, seq: size - 1, isStored: node >= 0 };
    });
    const order = state.order.map((node) => ({
      ms: 0,
      by: 'owner',
      eventId: idOf(node),
      seq: ledgers.sizeOf(node) - 1,
      isStored: true,
      isInOrder: true,
    }));
    return {
      ...emptyHistory(),
      acknowledged: [...told, ...order],
      answers: state.answers.map(([call, effect, node, isRepeated, stops]): Heard => ({
        ms: stops + 0.5,
        askedMs: stops + 0.5,
        by: 'host',
        ref: `call ${call}`,
        effect,
        code: '',
        authorization: idOf(node),
        isRepeated: isRepeated === 1,
      })),
      runs: state.runs.map(([call, node, isRunning]) => ({
        ref: `call ${call}`,
        authorization: idOf(node),
        begunMs: 0,
        endedMs: isRunning === 1 ? Infinity : 0,
      })),
      asked: Array.from({ length: state.unanswered }, () => ({ by: 'host', what: 'a request', settled: 0 })),
      stops: state.stops.map(([node, effect, grant], index) => ({
        ms: index + 1,
        eventId: idOf(node),
        grantId: records[GRANTS[grant]]?.id ?? '',
        effect,
      })),
      grants: this.options.bounds.map((bounds, index) => ({
        ...bounds,
        grantId: records[GRANTS[index as 0 | 1]]?.id ?? '',
      })),
      ...known,
    };
  }

  /** What does not hold in a state. What depends on the ledger alone is found once. */
  async brokenOf(state: State): Promise<Broken> {
    const history = await this.historyOf(state);
    let ofLedger = this.#broken.get(history.lines);
    if (ofLedger === undefined) {
      ofLedger = findBroken(history, ({ isOfLedger }) => isOfLedger === true);
      this.#broken.set(history.lines, ofLedger);
    }
    return { ...ofLedger, ...findBroken(history, ({ isOfLedger }) => isOfLedger !== true) };
  }
}

/** Whether another decider leads. */
function isDeposed({ leader }: State, actor: number): boolean {
  return leader !== undefined && actor !== OWNER && actor !== leader;
}

/** What a host knows that was not answered. */
function unheard(step: Step & { readonly call: number }): Stage {
  switch (step.kind) {
    case 'ask':
      return 'unheard';
    case 'begin':
      return 'lost';
    case 'release':
      return 'allowed';
    case 'settle':
      return 'ran';
    default:
      return 'lost';
  }
}

/** What a host knows that was answered. */
function answered(
  step: Step & { readonly call: number },
  { effect, auth = NO_RECORD, start = NO_RECORD, error }: Answer,
  [asks, ownAuth, ownStart]: readonly [asks: number, auth: number, start: number],
): CallState {
  switch (step.kind) {
    case 'ask':
      if (effect !== 'allow') return ['refused', asks, NO_RECORD, NO_RECORD];
      if (start !== NO_RECORD) return ['begun', asks, auth, start];
      // Begun by who never answered, or not to be begun.
      return [error === undefined ? 'allowed' : 'lost', asks, auth, NO_RECORD];
    case 'begin':
      return start === NO_RECORD ? ['lost', asks, ownAuth, NO_RECORD] : ['begun', asks, ownAuth, start];
    default:
      return ['over', asks, ownAuth, ownStart];
  }
}

function sorted<T>(list: readonly T[]): T[] {
  return list.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}
