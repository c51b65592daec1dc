/**
 * A small world of two ledgers: a parent that has set a slice aside, and a child that spends it. Programs of both act in any order, settle
 * the slice and die at any append; what a settler has in hand may be recorded at any time after. Each state is looked at.
 */

import { NorthrootError } from '../../src/base/error.js';
import type { LiveLedger } from '../../src/log/agent/live-ledger.js';
import { grantSlice } from '../../src/log/fleet/grant-slice.js';
import { closeSlices, recordSettlement, type SliceSettlement } from '../../src/log/fleet/settle.js';
import { type GivenSlice, openSlice } from '../../src/log/fleet/slice.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import { verifyChunks } from '../../src/rules/report/verify-chunks.js';
import { signer } from '../writer/support.js';
import { HeldStore, type Lines } from './held-store.js';
import { A_DIGEST } from './ledgers.js';
import { AGENT, openLive, TIMES, untilQuiet } from './programs.js';

/** What is made wrong. */
export type SliceWeakness =
  /** The slice is not begun in the parent, which could give it back. */
  | 'not-begun'
  /** The slice is settled by a checkpoint of a child that is not stopped. */
  | 'not-stopped';

export interface SliceState {
  /** The ledgers, by number. */
  readonly parent: number;
  readonly child: number;
  /** The grant in the child, by its seq. */
  readonly grant: number | undefined;
  /** How often each may still ask. */
  readonly asks: readonly [parent: number, child: number];
  /** What was begun in the child and has not ended: the seqs of action and start. */
  readonly running: readonly (readonly [auth: number, start: number])[];
  /** How many calls were begun, in both. */
  readonly runs: number;
  /** What a settler has in hand. */
  readonly closed: SliceSettlement | undefined;
  /** How often the slice may still be closed: each time the child is sealed anew. */
  readonly closes: number;
  readonly crashes: number;
}

export interface SliceExploration {
  readonly states: number;
  readonly depth: number;
  /** How often there was what answer. */
  readonly answers: Readonly<Record<string, number>>;
  readonly found: { readonly steps: readonly string[]; readonly broken: string } | undefined;
}

/** What the parent may spend, and what it sets aside of that. */
const CAP = 2;
const SLICE = 1;
const PARAMS = { alg: 'sha-256', b64: 'A'.repeat(43) } as const;
const ONE = [{ unit: 'calls', amount: { t: 'int', v: '1' } }] as const;
const NOW = TIMES[0];
const now = (): string => NOW;
/** The most appends of one program's step. */
const MOST_APPENDS = 4;

interface Outcome<T> {
  readonly node: number;
  /** Undefined for who is no more. */
  readonly answer: T | undefined;
}

/** What was asked for and begun, if it was. */
interface Begun {
  readonly auth: number;
  readonly start: number | undefined;
}

interface Judged {
  /** What is used and reserved under the first grant. */
  readonly counted: number;
  readonly findings: readonly string[];
}

type Successor = readonly [label: string, state: SliceState];

export class SliceWorld {
  readonly answers: Record<string, number> = {};
  readonly #weakness: SliceWeakness | undefined;
  readonly #ledgers: Lines[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #outcomes = new Map<string, Promise<Outcome<unknown>>>();
  readonly #known = new Map<string, Promise<Judged>>();
  #slice: GivenSlice | undefined;

  constructor(weakness?: SliceWeakness) {
    this.#weakness = weakness;
  }

  /** @param until - What is to be broken. Default: anything */
  async explore(until = ''): Promise<SliceExploration> {
    const first = await this.#begin();
    const seen = new Set([JSON.stringify(first)]);
    let level: { readonly state: SliceState; readonly steps: readonly string[] }[] = [
      { state: first, steps: [] },
    ];
    let depth = 0;
    const end = (found?: SliceExploration['found']): SliceExploration => {
      return { states: seen.size, depth, answers: this.answers, found };
    };
    for (; level.length > 0; depth += 1) {
      const next: typeof level = [];
      for (const { state, steps } of level) {
        for (const [label, reached] of await this.#successorsOf(state)) {
          const name = JSON.stringify(reached);
          if (seen.has(name)) continue;
          seen.add(name);
          const way = [...steps, label];
          const broken = await this.#brokenOf(reached);
          if (broken !== '' && broken.includes(until)) return end({ steps: way, broken });
          next.push({ state: reached, steps: way });
        }
      }
      level = next;
    }
    return end();
  }

  async #begin(): Promise<SliceState> {
    const [parentLines, childLines]: [Lines, Lines] = [[], []];
    const parent = await open(parentLines, 'example.com/parent');
    const child = await open(childLines, 'example.com/child');
    const grant = draftGrant({
      principalId: AGENT,
      allowedTools: ['*', 'northroot.slice'],
      meterCaps: { calls: CAP },
    });
    const { eventId: grantId } = await parent.append({ event: grant });
    const given = await parent.use((ledger) =>
      openSlice(ledger, { grantId, childId: child.genesisId, caps: { calls: SLICE } }),
    );
    this.#slice = given;
    await Promise.all([parent.close(), child.close()]);
    // As if the program had not begun it.
    if (this.#weakness === 'not-begun') parentLines.pop();
    return {
      ...{ parent: this.#numberOf(parentLines), child: this.#numberOf(childLines) },
      ...{
        grant: undefined,
        asks: [CAP, SLICE],
        running: [],
        runs: 0,
        closed: undefined,
        closes: 2,
        crashes: 1,
      },
    };
  }

  async #successorsOf(state: SliceState): Promise<Successor[]> {
    const slice = this.#slice as GivenSlice;
    const found: Successor[] = [];
    const { parent, child, grant, asks, running, runs, closed, closes, crashes } = state;
    const bounds = { allowedTools: ['*'], now };
    if (grant === undefined) {
      const { node, answer } = await this.#once('grant', child, (live) =>
        live.use((ledger) => grantSlice(ledger, slice, bounds)),
      );
      if (answer !== undefined)
        found.push(['the child grants the slice', { ...state, child: node, grant: answer.seq }]);
    }
    for (const [index, side] of (['parent', 'child'] as const).entries()) {
      const left = asks[index];
      if (left === 0 || (side === 'child' && grant === undefined)) continue;
      const { node, answer } = await this.#ask(side, state);
      const next = { ...state, asks: asks.with(index, left - 1) as [number, number], [side]: node };
      const { auth, start } = answer ?? {};
      found.push([
        `the ${side} is asked`,
        auth === undefined || start === undefined
          ? next
          : { ...next, running: side === 'child' ? [...running, [auth, start]] : running, runs: runs + 1 },
      ]);
    }
    for (const each of running) {
      const [auth, start] = each;
      const { node } = await this.#once(`done ${auth} ${start}`, child, (live, lines) =>
        live.record(idAt(lines, auth), {
          ...{ startedAt: NOW, endedAt: NOW, meterUsed: ONE, outcome: 'success' },
          start: idAt(lines, start),
        }),
      );
      const left = running.filter((other) => other !== each);
      found.push(['the child has run', { ...state, child: node, running: left }]);
    }
    const released = await this.#once('release', parent, (live) => live.abandon(slice.eventId));
    found.push(['the parent releases the slice', { ...state, parent: released.node }]);
    if (grant !== undefined && closes > 0) {
      const next = { ...state, closes: closes - 1 };
      const whole = await this.#close(child, MOST_APPENDS);
      if (whole.answer !== undefined)
        found.push(['the slice is closed', { ...next, child: whole.node, closed: whole.answer }]);
      for (let appends = 1; appends < MOST_APPENDS && crashes > 0; appends += 1) {
        const { node } = await this.#close(child, appends);
        found.push([`who closes ends after ${appends}`, { ...state, child: node, crashes: crashes - 1 }]);
      }
    }
    if (closed !== undefined) {
      const { node } = await this.#once(`settle ${JSON.stringify(closed)}`, parent, (live) =>
        live.use((ledger) => recordSettlement(ledger, closed, { now })),
      );
      found.push(['the slice is settled', { ...state, parent: node }]);
    }
    return found;
  }

  #ask(side: 'parent' | 'child', state: SliceState): Promise<Outcome<Begun>> {
    const grant = side === 'child' ? state.grant : 1;
    return this.#once('ask', state[side], async (live, lines) => {
      const asked = { principalId: AGENT, toolName: 'fs.read', paramsDigest: PARAMS, intentDigest: PARAMS };
      const { recorded, started, decisionCode } = await live.authorize(
        { ...asked, meters: ONE, grantId: idAt(lines, grant as number) },
        { start: {} },
      );
      this.#count(`${side} ${decisionCode}`);
      return { auth: recorded.seq, start: started?.recorded.seq };
    });
  }

  #close(child: number, appends: number): Promise<Outcome<SliceSettlement>> {
    const { eventId } = this.#slice as GivenSlice;
    return this.#once(
      `close ${appends}`,
      child,
      async (live) => {
        if (this.#weakness === 'not-stopped') {
          const { note } = await live.checkpoint();
          return { sliceId: eventId, used: [{ unit: 'calls', amount: { t: 'int', v: '0' } }], note };
        }
        const [closed] = await live.use((ledger) => closeSlices(ledger, [eventId], { abandon: true, now }));
        if (closed === undefined) throw new Error('the child has no grant of the slice');
        return { sliceId: eventId, used: closed.used, note: closed.checkpoint.note };
      },
      appends,
    );
  }

  /** What a program does that is alone with a ledger, and ends after so many appends. What is refused changes nothing. */
  #once<T>(
    step: string,
    number: number,
    act: (live: LiveLedger, lines: Lines) => Promise<T>,
    appends = MOST_APPENDS,
  ): Promise<Outcome<T>> {
    const name = `${number} ${step}`;
    const known = this.#outcomes.get(name);
    if (known !== undefined) return known as Promise<Outcome<T>>;
    const made = this.#run(step, number, act, appends);
    this.#outcomes.set(name, made);
    return made;
  }

  async #run<T>(
    step: string,
    number: number,
    act: (live: LiveLedger, lines: Lines) => Promise<T>,
    appends: number,
  ): Promise<Outcome<T>> {
    const lines = [...this.#ledgers[number]];
    let left = appends;
    const store = new HeldStore(lines, () => {
      left -= 1;
      return left < 0 ? new Promise(() => undefined) : Promise.resolve();
    });
    // It seals when it is asked to, and when it closes.
    const live = await openLive(store, now, { signer, checkpoints: step.startsWith('close') });
    try {
      const answer = await untilQuiet(act(live, lines));
      if (answer !== undefined && !step.startsWith('close')) await live.close();
      return { node: this.#numberOf(lines), answer };
    } catch (error) {
      if (!(error instanceof NorthrootError)) throw error;
      this.#count(`${step.split(' ')[0]} ${error.code}`);
      return { node: this.#numberOf(lines), answer: undefined };
    }
  }

  #count(answer: string): void {
    this.answers[answer] = (this.answers[answer] ?? 0) + 1;
  }

  /** One number for all ledgers that differ only in what is drawn, or follows from that. */
  #numberOf(lines: Lines): number {
    const ids: string[] = [];
    const texts = lines.map((line) => {
      const { event } = JSON.parse(Buffer.from(line).toString()) as { event: Record<string, unknown> };
      const { event_id: id, payload_digest: digest, recorder, note, root, ...rest } = event;
      void [digest, recorder, note, root];
      const text = JSON.stringify(rest).replace(A_DIGEST, (b64) => {
        const at = ids.indexOf(b64);
        return at === -1 ? b64 : `#${at}`;
      });
      ids.push((id as { b64: string }).b64);
      return text;
    });
    const name = texts.join('\n');
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    this.#numbers.set(name, this.#ledgers.length);
    this.#ledgers.push(lines);
    return this.#ledgers.length - 1;
  }

  /** What does not hold, in words; empty where all does. */
  async #brokenOf({ parent, child, runs }: SliceState): Promise<string> {
    const own = await this.#judge(`${parent}`, parent);
    const other = await this.#judge(`${parent} ${child}`, child, parent);
    if (runs > CAP) return `${runs} calls were begun, of ${CAP}`;
    // What runs elsewhere is counted where it was set aside.
    if (own.counted < runs) return `${runs} calls were begun, and ${own.counted} are counted`;
    return [...own.findings, ...other.findings].join(' ');
  }

  #judge(name: string, number: number, parent?: number): Promise<Judged> {
    const known = this.#known.get(name) ?? this.#verify(number, parent);
    this.#known.set(name, known);
    return known;
  }

  async #verify(number: number, parent: number | undefined): Promise<Judged> {
    const bytesOf = (each: number): Buffer => Buffer.concat(this.#ledgers[each]);
    const parents = parent === undefined ? [] : [bytesOf(parent)];
    const report = await verifyChunks(bytesOf(number), { threads: 1, now: NOW, parents });
    const [{ meters = [] } = {}] = report.grants;
    return {
      counted: meters.reduce((sum, { used, reserved }) => sum + countOf(used) + countOf(reserved), 0),
      findings: report.findings.flatMap(({ code, severity }) => (severity === 'info' ? [] : [code])),
    };
  }
}

function open(lines: Lines, origin: string): Promise<LiveLedger> {
  return openLive(new HeldStore(lines), now, { create: { origin }, signer });
}

function idAt(lines: Lines, seq: number): string {
  const { event } = JSON.parse(Buffer.from(lines[seq]).toString()) as {
    event: { event_id: { b64: string } };
  };
  return `sha-256:${event.event_id.b64}`;
}

function countOf(quantity: { readonly t: string; readonly v?: string }): number {
  return Number(quantity.v ?? Number.NaN);
}
