/** Sessions of Claude Code that go on from others begin with copies of their lines, which count once. */

import { describe, expect, it } from 'vitest';
import { accountFor } from '../../../src/hosts/shared/account.js';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { claudeCode } from '../../../src/hosts/claude-code/index.js';
import { fileOf, found, linesOf, sample } from '../samples.js';

const SESSION = '7d3f0c52-0d0c-4a55-9b0e-6f6a4f3f1c11';
const transcript = sample('claude-code', 'transcript.jsonl');

interface Line {
  readonly uuid?: string;
  readonly parentUuid?: string | null;
}
const lines = linesOf(transcript) as Line[];
const changed = (name: string, change: (line: Line, index: number) => object): HostFile =>
  fileOf(name, lines.map(change));

describe('a session that goes on from another', () => {
  const once = claudeCode.read([transcript]);
  const holds = (fork: HostFile): void => {
    for (const files of [
      [transcript, fork],
      [transcript, fork, { ...fork, name: 'again.jsonl' }],
    ]) {
      const reading = claudeCode.read(files);
      expect(found(reading)).toEqual(found(once));
      expect(reading.claims.map(({ id }) => id)).toEqual(once.claims.map(({ id }) => id));
      expect(reading.observations).toEqual(once.observations);
      expect(accountFor(reading.items).byFile.get(fork.name)).toMatchObject({ mapped: 0, evidence: 0 });
    }
  };

  it('counts once where its chain was rebuilt without some lines', () => {
    let parentUuid: string | null = null;
    const kept = lines
      .filter((_, index) => index !== 2)
      .map((line) => {
        const copy = { ...line, sessionId: 'other', ...(line.uuid === undefined ? {} : { parentUuid }) };
        parentUuid = line.uuid ?? parentUuid;
        return copy;
      });
    holds(fileOf('fork.jsonl', kept));
  });

  it('counts once with other times', () => {
    holds(
      changed('fork.jsonl', (line) => ({ ...line, sessionId: 'other', timestamp: '2026-11-21T09:00:00Z' })),
    );
  });

  it('counts once with other uuids, and with other times', () => {
    const renamed = (line: Line): object => ({
      ...line,
      ...(line.uuid === undefined ? {} : { uuid: `n${line.uuid}` }),
      parentUuid: typeof line.parentUuid === 'string' ? `n${line.parentUuid}` : null,
    });
    const restamped = (line: Line): object => ({ ...renamed(line), timestamp: '2026-11-21T09:00:00Z' });
    // The last line names nothing, and nothing that is a copy follows it.
    const copied = lines.slice(0, -1);
    holds(fileOf('fork.jsonl', copied.map(renamed)));
    holds(fileOf('fork.jsonl', copied.map(restamped)));
  });

  it('counts once where only the middle was copied', () => {
    holds(fileOf('fork.jsonl', lines.slice(3, 9)));
  });

  it('does not lower what a message used where its copy ends within it', () => {
    const cut = fileOf('fork.jsonl', [{ ...lines[2], uuid: 'n2' }]);
    expect(claudeCode.read([transcript, cut]).observations).toEqual(once.observations);
    expect(found(claudeCode.read([transcript, cut]))).toEqual(found(once));
  });

  it('names the line that it copied, whose uuid is another', () => {
    const fork = lines.slice(1, 2).map(({ uuid, ...line }) => ({
      ...{ ...line, uuid: 'n1', forkedFrom: { sessionId: SESSION, messageUuid: uuid } },
    }));
    const { items } = claudeCode.read([transcript, fileOf('fork.jsonl', fork)]);
    expect(items.at(-1)).toMatchObject({ fate: 'repeated', reason: 'LINE_REPEATED' });
  });

  it('adds what it says itself, below what it copied', () => {
    const own = { ...lines[1], uuid: 'own', parentUuid: 'n13', timestamp: '2026-11-21T09:00:00Z' };
    const fork = [{ ...lines[13], uuid: 'n13' }, own];
    const reading = claudeCode.read([transcript, fileOf('fork.jsonl', fork)]);
    expect(reading.claims).toHaveLength(once.claims.length + 1);
    // The parent of the copy is a line of no file, which is not held against what is a copy.
    expect(found(reading).filter((each) => each.startsWith('CC-4'))).toEqual([]);
  });

  it('is contradictory where a line of the same uuid says something else', () => {
    const other = changed('fork.jsonl', (line, index) =>
      index === 4 ? { ...line, message: { role: 'user', content: 'something else' } } : line,
    );
    expect(found(claudeCode.read([transcript, other]))).toContain('CC-3 DUPLICATE_UUID');
  });
});
