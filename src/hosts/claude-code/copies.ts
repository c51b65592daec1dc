/**
 * Lines that sessions copied from the one they continue from. A copy is under a session of its own; its parent, its time and even its uuid
 * may be new. What tells it are its message's id or its results' ids, with the same content, and its place before others of these.
 */

import { addTo, jcsDigest, textAt } from '../shared/values.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { sha256Digest } from '../../base/value/digest.js';
import type { HostPlace } from '../shared/host.js';
import { compactJson } from '../shared/reading.js';
import { blocksOf, type TranscriptLine } from './lines.js';

/** The line that another is a copy of. */
interface Original {
  readonly at: HostPlace;
  /** Whether both say the same. */
  readonly isSame: boolean;
}

interface Seen {
  readonly content: string;
  readonly at: HostPlace;
}

export class Copies {
  /** By uuid. */
  readonly #lines = new Map<string, Seen>();
  readonly #copies = new Map<TranscriptLine, Original>();

  constructor(lines: readonly TranscriptLine[]) {
    /** Lines that name a message or a tool use, by their content. */
    const named = new Map<string, HostPlace>();
    /** Lines that name none, of each content, in the order of all files. */
    const unnamed = new Map<string, HostPlace[]>();
    for (const file of filesOf(lines)) this.#file(file, named, unnamed);
  }

  /** What the line is a copy of; undefined where it is none. */
  of(line: TranscriptLine): Original | undefined {
    return this.#copies.get(line);
  }

  /** Whether a line of that uuid is there, wherever it stands. */
  has(uuid: string): boolean {
    return this.#lines.has(uuid);
  }

  #file(
    lines: readonly TranscriptLine[],
    named: Map<string, HostPlace>,
    unnamed: Map<string, HostPlace[]>,
  ): void {
    const contents = lines.map(contentOf);
    let lastCopy = -1;
    for (const [index, line] of lines.entries()) {
      const { uuid, item, value } = line;
      if (uuid === undefined) continue;
      const content = contents[index]!;
      const before =
        this.#lines.get(uuid) ?? this.#lines.get(textAt(value, 'forkedFrom', 'messageUuid') ?? '');
      const at = before?.at ?? (isNamed(line) ? named.get(content) : undefined);
      if (at !== undefined) {
        this.#copies.set(line, { at, isSame: (before?.content ?? content) === content });
        if (at.file !== item.at.file) lastCopy = index;
      } else if (isNamed(line)) named.set(content, item.at);
      if (!this.#lines.has(uuid)) this.#lines.set(uuid, { content, at: item.at });
    }
    const taken = new Map<string, number>();
    const own: (readonly [string, HostPlace])[] = [];
    for (const [index, line] of lines.entries()) {
      if (line.uuid === undefined || isNamed(line)) continue;
      const content = contents[index]!;
      const nth = taken.get(content) ?? 0;
      taken.set(content, nth + 1);
      if (this.#copies.has(line)) continue;
      const at = index < lastCopy ? unnamed.get(content)?.[nth] : undefined;
      if (at === undefined) own.push([content, line.item.at]);
      else this.#copies.set(line, { at, isSame: true });
    }
    for (const [content, at] of own) addTo(unnamed, content, at);
  }
}

function filesOf(lines: readonly TranscriptLine[]): Iterable<readonly TranscriptLine[]> {
  const files = new Map<string, TranscriptLine[]>();
  for (const line of lines) {
    const { file } = line.item.at;
    addTo(files, file, line);
  }
  return files.values();
}

/** Whether its content names what it is about: a message of the model, or a tool use. */
function isNamed(line: TranscriptLine): boolean {
  return textAt(line.value, 'message', 'id') !== undefined || blocksOf(line, 'tool_result').length > 0;
}

function contentOf({ type, value }: TranscriptLine): string {
  const said = ['message', 'subtype', 'content'].map((name) => value.get(name) ?? null);
  const digest = jcsDigest([type, ...said]);
  return (digest ?? sha256Digest(encodeUtf8(compactJson([type, ...said])))).b64;
}
