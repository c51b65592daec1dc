/** Where an index differs from the ledger. */

import { compareRationals } from '../../base/value/rational.js';
import { readTimeline, type TimelineStep } from '../../rules/bounds/timeline.js';
import type { GrantForm } from '../../rules/verify/state-form.js';
import { IndexFault } from './entry-store.js';
import { type Entries, keyNumber, readNode } from './tables.js';

/**
 * The keys whose entries differ. A timeline is a tree whose shape depends on when it was saved, so its steps are compared; its key is
 * `t:GRANT:LIMIT`.
 * @param own - The index under test. If an entry cannot be read, the key before it is reported, and nothing after it is compared.
 */
export async function compareEntries(own: Entries, expected: Entries): Promise<string[]> {
  const differences: string[] = [];
  /** Nodes of each timeline on either side. */
  const timelines = new Map<string, { own: number; expected: number }>();
  const countNode = (side: 'own' | 'expected', key: string | undefined): void => {
    const [, name] = TIMELINE_NODE.exec(key ?? '') ?? [];
    if (name === undefined) return;
    const counts = timelines.get(name) ?? { own: 0, expected: 0 };
    counts[side] += 1;
    timelines.set(name, counts);
  };
  const [a, b] = [own.listTexts(), expected.listTexts()];
  let last = '';
  try {
    let [left, right] = [await a.next(), await b.next()];
    while (left.done !== true || right.done !== true) {
      const [key, text] = left.done === true ? [] : left.value;
      const [otherKey, otherText] = right.done === true ? [] : right.value;
      const order =
        key === undefined ? 1 : otherKey === undefined || key < otherKey ? -1 : key > otherKey ? 1 : 0;
      const at = (order > 0 ? otherKey : key) as string;
      last = key ?? last;
      if (order <= 0) countNode('own', key);
      if (order >= 0) countNode('expected', otherKey);
      const isAlike = order === 0 && essence(at, text as string) === essence(at, otherText as string);
      if (!isAlike && !TIMELINE_NODE.test(at)) differences.push(at);
      if (order <= 0) left = await a.next();
      if (order >= 0) right = await b.next();
    }
  } catch (error) {
    if (!(error instanceof IndexFault)) throw error;
    return [...differences, last];
  } finally {
    await a.return(undefined);
    await b.return(undefined);
  }
  for (const [name, counts] of timelines)
    if (counts.own !== counts.expected || !isSameTimeline(own, expected, name)) differences.push(`t:${name}`);
  return differences;
}

const TIMELINE_NODE = /^t:(\d{16}:\d+):\d{16}$/;

/** An entry without what depends on chance, or on file times. */
function essence(key: string, text: string): string {
  if (key === 'h') return text.replace(/,"stamp":"[^"]*"/, '');
  return key.startsWith('g:')
    ? text.replace(/"timeline":\{"root":\d+,"saved":\d+\}/g, '"timeline":{}')
    : text;
}

function isSameTimeline(own: Entries, expected: Entries, name: string): boolean {
  try {
    const steps = readSteps(own, name);
    for (const step of readSteps(expected, name)) {
      const { done, value } = steps.next();
      if (done === true || !isSameStep(step, value)) return false;
    }
    return steps.next().done === true;
  } catch (error) {
    if (error instanceof IndexFault || error instanceof RangeError) return false;
    throw error;
  }
}

function readSteps(entries: Entries, name: string): Generator<TimelineStep, void> {
  const [grant, limit] = name.split(':').map(Number) as [number, number];
  const { rates, concurrency } = (entries.get(`g:${keyNumber(grant)}`) ?? {}) as Partial<GrantForm>;
  const limits = Array.isArray(rates) ? [...(rates as GrantForm['rates']), concurrency] : [];
  const timeline = limits[limit]?.timeline;
  if (timeline === undefined) throw new IndexFault('a timeline is of no limit');
  return readTimeline(timeline, (id) => readNode(entries, grant, limit, id));
}

function isSameStep(a: TimelineStep, b: TimelineStep): boolean {
  return a.at === b.at && compareRationals(a.overlap, b.overlap) === 0 && a.denominator === b.denominator;
}
