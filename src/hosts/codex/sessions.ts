/** Sessions, one a file: whose they are, and which lines were there before they began. */

import { addTo, textAt } from '../shared/values.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { sha256Digest } from '../../base/value/digest.js';
import type { Actor } from '../claude-code/calls.js';
import { compactJson, type ReadingBuilder } from '../shared/reading.js';
import type { RolloutLine } from './lines.js';

export interface Session {
  readonly id: string;
  readonly actor: Actor;
  readonly lines: readonly RolloutLine[];
  /** Why a line counts elsewhere: a Code. */
  readonly copies: ReadonlyMap<RolloutLine, string>;
  /** Whether totals of usage may begin with what another session used. */
  readonly isFork: boolean;
}

/** The sessions of all files, in their order. */
export function sessionsOf(lines: readonly RolloutLine[], reading: ReadingBuilder): readonly Session[] {
  const files = new Map<string, RolloutLine[]>();
  for (const line of lines) {
    const { file } = line.item.at;
    addTo(files, file, line);
  }
  const all = [...files].map(([file, own]) => begin(file, own));
  const byId = new Map(all.map((each) => [each.id, each] as const).reverse());
  /** Lines of each session that an earlier file has. */
  const seen = new Map<string, Map<string, number>>();
  return all.map((each) => {
    const copies = new Map<RolloutLine, string>();
    copyHistory(each, byId, copies, reading);
    repeatLines(each, seen, copies);
    const { id, parent, isFork } = each;
    const actor = parent === undefined ? { session: id, agent: undefined } : { session: parent, agent: id };
    return { id, actor, lines: each.lines, copies, isFork };
  });
}

interface Begun {
  readonly id: string;
  readonly parent: string | undefined;
  /** The session whose history it may begin with. */
  readonly from: string | undefined;
  readonly isFork: boolean;
  /** Whether it names another session that it holds lines of. */
  readonly hasForeign: boolean;
  readonly lines: readonly RolloutLine[];
}

function begin(file: string, lines: readonly RolloutLine[]): Begun {
  const metas = lines.filter(({ record }) => record === 'session_meta');
  const own = metas[0]?.payload;
  const id = textAt(own, 'id') ?? textAt(own, 'session_id') ?? idOfFile(file) ?? '';
  const parent = textAt(own, 'source', 'subagent', 'thread_spawn', 'parent_thread_id');
  const foreign = metas
    .map(({ payload }) => textAt(payload, 'id'))
    .find((each) => each !== undefined && each !== id);
  const from = textAt(own, 'forked_from_id') ?? foreign ?? parent;
  return {
    ...{ id, parent: parent === id ? undefined : parent, from },
    ...{ isFork: from !== undefined, hasForeign: foreign !== undefined, lines },
  };
}

/** Files are named `rollout-2026-11-25T07-46-43-UUID.jsonl`. */
function idOfFile(file: string): string | undefined {
  return /rollout-[^/\\]*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/.exec(file)?.[1];
}

/** A fork begins with its own line about itself, then with lines of the session that it continues from. */
function copyHistory(
  session: Begun,
  byId: ReadonlyMap<string, Begun>,
  copies: Map<RolloutLine, string>,
  reading: ReadingBuilder,
): void {
  const { id, from, lines, isFork, hasForeign } = session;
  if (!isFork) return;
  const parent = from === undefined || from === id ? undefined : byId.get(from);
  const end =
    endByTurns(id, lines) ??
    endByMeta(id, lines) ??
    (parent === undefined ? undefined : endByLines(lines, parent));
  const first = lines.findIndex(({ record }) => record === 'session_meta');
  if (end === undefined) {
    if (!hasForeign) return;
    reading.find({
      ...{ rule: 'CX-3', code: 'HISTORY_NOT_TOLD_APART', severity: 'warning', class: 'none' },
      at: (lines[0] as RolloutLine).item.at,
      about: id,
      expected: `the session ${from ?? ''} beside it, or turns with times in their ids`,
      actual: 'neither: all of it is read as its own',
    });
    return;
  }
  const copied = lines.slice(0, end).filter((_, index) => index !== first);
  for (const line of copied) copies.set(line, 'HISTORY_COPIED');
  const [at] = copied;
  if (at === undefined || parent !== undefined) return;
  reading.find({
    ...{ rule: 'CX-3', code: 'PARENT_NOT_GIVEN', severity: 'warning', class: 'none' },
    at: at.item.at,
    about: id,
    expected: `the session ${from ?? ''}, of which ${copied.length} lines are copies`,
    actual: 'none of these files',
  });
}

/** Ids are UUIDs of version 7: what was made before the session was is not its own. Undefined where no turn was. */
function endByTurns(id: string, lines: readonly RolloutLine[]): number | undefined {
  const born = millisecondsOf(id);
  if (born === undefined) return undefined;
  let hasEarlier = false;
  for (const [index, { payload }] of lines.entries()) {
    const made = millisecondsOf(textAt(payload, 'turn_id') ?? '');
    if (made === undefined) continue;
    if (made >= born) return hasEarlier ? index : undefined;
    hasEarlier = true;
  }
  return hasEarlier ? lines.length : undefined;
}

function millisecondsOf(id: string): number | undefined {
  const match = /^([0-9a-f]{8})-([0-9a-f]{4})-7/i.exec(id);
  return match === null ? undefined : Number.parseInt(`${match[1]}${match[2]}`, 16);
}

/** A session that says again what it is after it said what another is. */
function endByMeta(id: string, lines: readonly RolloutLine[]): number | undefined {
  const ids = lines.map(({ record, payload }) =>
    record === 'session_meta' ? (textAt(payload, 'id') ?? '') : undefined,
  );
  const foreign = ids.findIndex((each) => each !== undefined && each !== id);
  const again = foreign < 0 ? -1 : ids.indexOf(id, foreign);
  return again < 0 ? undefined : again;
}

/** Where its lines are not the other's any more, in their order. */
function endByLines(lines: readonly RolloutLine[], parent: Begun): number | undefined {
  const places = new Map<string, number[]>();
  for (const [index, line] of parent.lines.entries()) {
    const content = contentOf(line);
    addTo(places, content, index);
  }
  const taken = new Map<string, number>();
  let from = 0;
  let end: number | undefined;
  for (const [index, line] of lines.entries()) {
    if (line.record === 'session_meta') continue;
    const content = contentOf(line);
    const at = places.get(content) ?? [];
    let nth = taken.get(content) ?? 0;
    while (nth < at.length && (at[nth] as number) < from) nth += 1;
    const place = at[nth];
    if (place === undefined) break;
    taken.set(content, nth + 1);
    from = place + 1;
    end = index + 1;
  }
  return end;
}

/** A session may be in two files: where it was archived, or copied to. */
function repeatLines(
  { id, lines }: Begun,
  seen: Map<string, Map<string, number>>,
  copies: Map<RolloutLine, string>,
): void {
  const before = seen.get(id);
  const counts = new Map<string, number>();
  for (const line of lines) {
    const content = `${line.time ?? ''} ${contentOf(line)}`;
    const nth = (counts.get(content) ?? 0) + 1;
    counts.set(content, nth);
    if (nth <= (before?.get(content) ?? 0) && !copies.has(line)) copies.set(line, 'LINE_REPEATED');
  }
  for (const [content, count] of before ?? []) counts.set(content, Math.max(count, counts.get(content) ?? 0));
  if (id !== '') seen.set(id, counts);
}

const contents = new WeakMap<RolloutLine, string>();

function contentOf(line: RolloutLine): string {
  const known = contents.get(line);
  if (known !== undefined) return known;
  const content = `${line.record} ${sha256Digest(encodeUtf8(compactJson(line.payload))).b64}`;
  contents.set(line, content);
  return content;
}
