/** What was promised beforehand of a ledger and of what it is reconciled with: read strictly, and checked against what is there. */

import { printable } from '../../base/bytes/printable.js';
import type { NorthrootError } from '../../base/error.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import { matchesToolPattern } from '../../base/value/tool.js';
import type { ReconcileExpectation, ReconcileExpected } from '../../format/schema/generated/types.js';
import { validateReconcileExpectation } from '../../format/schema/validators.js';
import { type DocumentKind, documentRefused, readDocument } from '../../format/schema/read-document.js';
import type { ReconcileCode } from './reconcile-compare.js';
import type { ReconcileSource } from './reconcile-sources.js';

/** The largest file of expectations, in bytes. */
export const MAX_EXPECTATION_BYTES = 1024 * 1024;

const KIND: DocumentKind = {
  code: 'EXPECTATION_INVALID',
  name: 'what is expected',
  schema: 'reconcile-expectation',
  maxBytes: MAX_EXPECTATION_BYTES,
  validate: validateReconcileExpectation,
};

/** The most numbers of one sequence. */
const MAX_SEQUENCE = 1_000_000;

/** Stands for the ledger where a source could be named. */
const LEDGER = 'ledger';

/**
 * Reads what was promised from JSON text (any layout, no duplicate keys), as the schema reconcile-expectation has it.
 *
 * @throws NorthrootError `EXPECTATION_INVALID`, saying where and why; TypeError for what is no Uint8Array
 */
export function parseExpectation(bytes: Uint8Array): ReconcileExpectation {
  const expectation = readDocument(bytes, KIND) as ReconcileExpectation;
  assertSense(expectation);
  return expectation;
}

/** What no ledger can meet is a mistake, and better told of at once. */
function assertSense({ window = {}, tools = [], counts = [], sequences = [] }: ReconcileExpectation): void {
  for (const name of ['from', 'until'] as const) {
    const time = window[name];
    if (time !== undefined && !isTimestamp(time)) throw refuse(`/window/${name}`, 'a date that exists', time);
  }
  const { from, until } = window;
  if (from !== undefined && until !== undefined && compareTimestamps(from, until) >= 0)
    throw refuse('/window/until', `a time after ${from}`, until);
  for (const [list, ranges] of Object.entries({ tools, counts }))
    for (const [index, { min = 0, max }] of ranges.entries())
      if (max !== undefined && max < min) throw refuse(`/${list}/${index}/max`, `at least ${min}`, `${max}`);
  for (const [index, { of, prefix, first, last }] of sequences.entries()) {
    const pointer = `/sequences/${index}`;
    if (last < first) throw refuse(`${pointer}/last`, `at least ${first}`, `${last}`);
    if (last - first >= MAX_SEQUENCE)
      throw refuse(`${pointer}/last`, `at most ${MAX_SEQUENCE} numbers`, `${last - first + 1}`);
    if ((prefix === undefined) !== (of === LEDGER))
      throw refuse(`${pointer}/prefix`, 'one for each source, and none for the ledger', prefix ?? 'none');
  }
}

function refuse(pointer: string, expected: string, found: string): NorthrootError {
  return documentRefused(KIND, pointer, expected, found);
}

interface Broken {
  readonly code: ReconcileCode;
  readonly class: 'invalid' | 'violation';
  readonly expected: string;
  readonly actual: string;
}
interface PromisedCall {
  readonly tool: string | undefined;
  readonly occurredAt: string | undefined;
  readonly inLedger: boolean;
}

interface Sequence {
  readonly of: string;
  readonly prefix: string;
  readonly first: number;
  readonly last: number;
  readonly there: Uint8Array;
  others: number;
}

/** Counts what is there, and says at the end what of it was promised. */
export class Expectations {
  readonly #expectation: ReconcileExpectation;
  readonly #tools: { readonly tool: string; readonly min: number; readonly max?: number; calls: number }[];
  readonly #counts = new Map<string, number>();
  readonly #sequences: readonly Sequence[];

  /** @throws NorthrootError `EXPECTATION_INVALID` for a promise of a source that is not given. */
  constructor(expectation: ReconcileExpectation, sources: readonly Pick<ReconcileSource, 'name'>[]) {
    this.#expectation = expectation;
    const { tools = [], counts = [], sequences = [] } = expectation;
    const names = [LEDGER, ...sources.map(({ name }) => name)];
    for (const [list, promises] of Object.entries({ counts, sequences }))
      for (const [index, { of }] of promises.entries())
        if (!names.includes(of)) throw refuse(`/${list}/${index}/of`, names.join(' or '), printable(of));
    this.#tools = tools.map(({ tool, min = 1, max }) => ({
      tool,
      min,
      calls: 0,
      ...(max === undefined ? {} : { max }),
    }));
    this.#sequences = sequences.map(({ of, prefix = '', first, last }) => ({
      of,
      prefix,
      first,
      last,
      there: new Uint8Array(last - first + 1),
      others: 0,
    }));
  }
  record(seq: number): void {
    for (const sequence of this.#sequences) if (sequence.of === LEDGER) note(sequence, seq);
  }

  /** A source has a call under these ids. */
  observed(name: string, ids: readonly string[]): void {
    this.#count(name);
    for (const sequence of this.#sequences) {
      if (sequence.of !== name) continue;
      for (const id of ids) {
        if (!id.startsWith(sequence.prefix)) continue;
        const digits = id.slice(sequence.prefix.length);
        if (/^\d{1,15}$/.test(digits)) note(sequence, Number(digits));
      }
    }
  }

  /** A call is there, in the ledger or in a source only. It returns what was not promised of it. */
  *call({ tool, occurredAt, inLedger }: PromisedCall): Generator<Broken, void, void> {
    if (inLedger) this.#count(LEDGER);
    const { window, tools } = this.#expectation;
    const matching = this.#tools.filter((each) => tool !== undefined && matchesToolPattern(each.tool, tool));
    for (const each of matching) each.calls += 1;
    if (tools !== undefined && matching.length === 0 && tool !== undefined) {
      const expected = tools.map((each) => each.tool);
      const more = expected.length > 8 ? `, and ${expected.length - 8} more` : '';
      yield notPromised('TOOL_NOT_PROMISED', `${expected.slice(0, 8).join(', ')}${more}`, tool);
    }
    if (window === undefined || occurredAt === undefined) return;
    const { from, until } = window;
    if (from !== undefined && compareTimestamps(occurredAt, from) < 0)
      yield notPromised('OUTSIDE_WINDOW', `${from} or later`, occurredAt);
    if (until !== undefined && compareTimestamps(occurredAt, until) >= 0)
      yield notPromised('OUTSIDE_WINDOW', `before ${until}`, occurredAt);
  }

  /** What was promised and is not there, and of how much there is more. */
  *finish(): Generator<Broken, void, void> {
    for (const { tool, min, max, calls } of this.#tools) {
      if (calls < min) yield missing('TOOL_MISSING', `at least ${min} of ${tool}`, `${calls}`);
      if (max !== undefined && calls > max)
        yield notPromised('COUNT_EXCEEDED', `at most ${max} of ${tool}`, `${calls}`);
    }
    for (const { of, min = 0, max } of this.#expectation.counts ?? []) {
      const calls = this.#counts.get(of) ?? 0;
      if (calls < min) yield missing('COUNT_MISSING', `at least ${callsOf(min, of)}`, `${calls}`);
      if (max !== undefined && calls > max)
        yield notPromised('COUNT_EXCEEDED', `at most ${callsOf(max, of)}`, `${calls}`);
    }
    for (const sequence of this.#sequences) {
      const { of, prefix, first, last, others } = sequence;
      const name = `${prefix}${first} to ${prefix}${last} of ${of}`;
      const gaps = gapsIn(sequence);
      if (gaps !== '') yield missing('SEQUENCE_MISSING', name, `missing: ${gaps}`);
      if (others > 0)
        yield notPromised(
          'SEQUENCE_NOT_PROMISED',
          name,
          `${others} ${others === 1 ? 'number' : 'numbers'} besides`,
        );
    }
  }

  toJson(): ReconcileExpected {
    const { window, counts = [] } = this.#expectation;
    return {
      ...(window === undefined ? {} : { window: { ...window } }),
      tools: this.#tools.map((each) => ({ ...each })),
      counts: counts.map((each) => ({ ...each, calls: this.#counts.get(each.of) ?? 0 })),
      sequences: this.#sequences.map(({ of, prefix, first, last, there }) => {
        const present = there.reduce((sum, each) => sum + each, 0);
        return {
          of,
          ...(of === LEDGER ? {} : { prefix }),
          first,
          last,
          there: present,
          missing: there.length - present,
        };
      }),
    };
  }

  #count(of: string): void {
    this.#counts.set(of, (this.#counts.get(of) ?? 0) + 1);
  }
}

function callsOf(n: number, of: string): string {
  return `${n} ${n === 1 ? 'call' : 'calls'} of ${of}`;
}

function missing(code: ReconcileCode, expected: string, actual: string): Broken {
  return { code, class: 'invalid', expected, actual };
}

function notPromised(code: ReconcileCode, expected: string, actual: string): Broken {
  return { code, class: 'violation', expected, actual };
}

function note(sequence: Sequence, number: number): void {
  if (number < sequence.first || number > sequence.last) sequence.others += 1;
  else sequence.there[number - sequence.first] = 1;
}
const MAX_GAPS = 8;

/** `3, 7–9`; empty where there is none. */
function gapsIn({ there, first }: Sequence): string {
  const gaps: string[] = [];
  for (let at = there.indexOf(0); at >= 0;) {
    const next = there.indexOf(1, at);
    const end = next < 0 ? there.length : next;
    if (gaps.length === MAX_GAPS) return `${gaps.join(', ')}, …`;
    gaps.push(end - at === 1 ? `${first + at}` : `${first + at}–${first + end - 1}`);
    at = next < 0 ? -1 : there.indexOf(0, end);
  }
  return gaps.join(', ');
}
