/** Lines that are examined block by block, ahead of their turn, are the ledger's lines, and what is said of them is true. */

import { expect, describe, test } from 'vitest';
import { startWorker } from '#platform';
import type { BlockFacts } from '../../src/fast/blocks/examine-block.js';
import {
  readBlocks,
  type KnownLines,
  type ReadBlocksOptions,
  type FastLine,
} from '../../src/fast/blocks/read-blocks.js';
import type { KnownLine } from '../../src/rules/verify/line-knowledge.js';
import { streamSource } from '../../src/log/fs/source.js';
import { bytesSource } from '../bytes-source.js';
import { examineFully, type ExaminedLine } from '../../src/format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../src/format/record/line-splitter.js';
import { hashLine, readLines } from '../../src/rules/source/read-lines.js';
import type { WorkerThread } from '../../src/base/platform/platform.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { startVerification, type VerifyState } from '../../src/rules/verify/state.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';
import { FILE_CASES, fixtureBytes } from '../fixtures/cases.js';
import { sample } from '../slow.js';
import { inChunks } from '../verify/support.js';
import { testThread } from './threads.js';

const IN_ONE: ReadBlocksOptions = { backend: nodeBackend, keys: [], threads: 1 };
const IN_THREE: ReadBlocksOptions = {
  ...IN_ONE,
  threads: 3,
  worthwhileBytes: 0,
  start: () => testThread(),
};

function* linesOf(block: KnownLines): Generator<KnownLine, void, void> {
  while (block.next()) yield block.line;
}

/** What a step of the verification gives, by a line that nothing is known of and by one that much is known of. */
function step(
  state: VerifyState,
  { line, segment, known }: Omit<KnownLine, 'ordinal' | 'takesPlace'>,
): unknown {
  const { findings, verdict, signatures, folded } = verifyLine(
    state,
    line,
    segment,
    known?.examine(state.layout, true),
    known,
  );
  return { findings, verdict, signatures, folded };
}

async function collect(bytes: Uint8Array, options: ReadBlocksOptions, sizes?: number[]): Promise<unknown[]> {
  const source = sizes === undefined ? bytesSource(bytes, '-') : streamSource(inChunks(bytes, ...sizes), '-');
  const state = startVerification(undefined, nodeBackend);
  const given: unknown[] = [];
  for await (const block of readBlocks(source, options)) {
    for (const { line, ordinal, takesPlace, segment, known } of linesOf(block)) {
      if (takesPlace && known !== undefined) expect(known.leaf).toBe(hashLine(line));
      const { bytes: shown, ...place } = line;
      given.push({ ...place, ordinal, takesPlace, text: Buffer.from(shown).toString('latin1') });
      given.push(step(state, { line, segment, known }));
    }
  }
  return given;
}

async function collectPlain(bytes: Uint8Array): Promise<unknown[]> {
  const state = startVerification(undefined, nodeBackend);
  const given: unknown[] = [];
  for await (const { line, ordinal, takesPlace, segment } of readLines(bytesSource(bytes, '-'))) {
    const { bytes: shown, ...place } = line;
    given.push({ ...place, ordinal, takesPlace, text: Buffer.from(shown).toString('latin1') });
    given.push(step(state, { line, segment, known: undefined }));
  }
  return given;
}

const LEDGERS = [...new Set(FILE_CASES.map(({ ledger }) => ledger))].filter(
  (ledger) => fixtureBytes(ledger).length < 20_000,
);

describe('the same lines with the same findings', () => {
  test.each(sample(LEDGERS, 30))('%s', async (ledger) => {
    const bytes = fixtureBytes(ledger);
    const plain = await collectPlain(bytes);
    expect(await collect(bytes, IN_ONE)).toEqual(plain);
    expect(await collect(bytes, { ...IN_ONE, blockBytes: 700 }, [997])).toEqual(plain);
    expect(await collect(bytes, { ...IN_THREE, blockBytes: 2_500 })).toEqual(plain);
    expect(await collect(bytes, { ...IN_THREE, blockBytes: 1_999 }, [1_500, 3, 1])).toEqual(plain);
  });

  test('blank lines, lines that are too long, and a rest without an end', async () => {
    const long = 'x'.repeat(MAX_LINE_BYTES + 1);
    const ledgers = [
      '',
      '\n',
      '\n\n\n',
      'a',
      `${long}\n`,
      long,
      `a\n${long}\n\nb\n${long}\nc`,
      `${long}${long}\n\n`,
    ];
    for (const text of ledgers) {
      const bytes = Buffer.from(text);
      const plain = await collectPlain(bytes);
      for (const blockBytes of [1, 7, 65_000, 70_000, 1_000_000]) {
        for (const options of [IN_ONE, IN_THREE]) {
          expect(await collect(bytes, { ...options, blockBytes }), `${text.length}, ${blockBytes}`).toEqual(
            plain,
          );
        }
      }
    }
  });
});

test('rooms are used again, and none before the lines in it were used up, however long that takes', async () => {
  const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
  const turns = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  const saidIn = ({ ends, rows, leaves, verdicts }: BlockFacts): string[] =>
    [ends, rows, leaves, verdicts].map((numbers) => numbers.join());
  // Reading goes on while lines are gone through.
  const slowly = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of inChunks(bytes, 6_000)) {
      await turns(1);
      yield chunk;
    }
  };
  for (const options of [IN_ONE, IN_THREE]) {
    const rooms = new Set<ArrayBufferLike>();
    let blocks = 0;
    let at = 0;
    for await (const lines of readBlocks(streamSource(slowly(), '-'), { ...options, blockBytes: 6_000 })) {
      const { bytes: room, facts } = lines as unknown as FastLine;
      const said = saidIn(facts);
      await turns(10);
      expect(Buffer.compare(room, bytes.subarray(at, at + room.length))).toBe(0);
      expect(saidIn(facts)).toEqual(said);
      at += room.length;
      blocks += 1;
      rooms.add(room.buffer);
    }
    expect(at).toBe(bytes.length);
    expect(blocks).toBeGreaterThan(3 * rooms.size);
  }
});

test('threads of the platform say the same', async () => {
  const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
  const real = { ...IN_THREE, threads: 2, start: startWorker, blockBytes: 128 * 1024 };
  expect(await collect(bytes, real)).toEqual(await collectPlain(bytes));
});

test('signatures are computed in the other threads, also by keys that the ledger declares', async () => {
  const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
  let known = 0;
  let lines = 0;
  for await (const block of readBlocks(bytesSource(bytes, '-'), { ...IN_THREE, blockBytes: 100_000 })) {
    for (const line of linesOf(block)) {
      lines += 1;
      if (line.known?.isValid(0) === true) known += 1;
    }
  }
  expect(lines).toBeGreaterThan(900);
  expect(known).toBe(lines);
});

test('what was verified before is only hashed', async () => {
  const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
  for (const options of [IN_ONE, IN_THREE]) {
    let examined = 0;
    const reading = { ...options, blockBytes: 50_000, hashedBytes: bytes.length };
    for await (const block of readBlocks(bytesSource(bytes, '-'), reading)) {
      for (const { line, known } of linesOf(block)) {
        expect(known?.leaf).toBe(hashLine(line));
        if (known?.examine(undefined, true) !== undefined || known?.isValid(0) !== undefined) examined += 1;
      }
    }
    expect(examined).toBe(0);
  }
});

test('what is to be kept stays as it was, whatever becomes of the block', async () => {
  const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
  for (const options of [IN_ONE, IN_THREE]) {
    const kept: { line: Uint8Array; examined: ExaminedLine | undefined }[] = [];
    for await (const block of readBlocks(bytesSource(bytes, '-'), { ...options, blockBytes: 70_000 })) {
      for (const { line, known } of linesOf(block)) {
        kept.push({ line: Uint8Array.from(line.bytes), examined: known?.examine('records', false) });
      }
    }
    const shown = (each: ExaminedLine | undefined): unknown =>
      each && [
        each.seq,
        each.eventId,
        each.principalId,
        each.signatures,
        each.wellFormed && each.outline(),
        each.json(),
        each.span,
      ];
    expect(kept.filter(({ examined }) => examined !== undefined).length).toBeGreaterThan(900);
    for (const { line, examined } of kept) {
      if (examined !== undefined) expect(shown(examined)).toEqual(shown(examineFully(line, 'records')));
    }
  }
});

test('lines are given before the stream continues', async () => {
  async function* slow(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(Buffer.from('a\nb\n'));
    await new Promise(() => undefined);
  }
  for (const options of [IN_ONE, IN_THREE]) {
    const blocks = readBlocks(streamSource(slow(), '-'), options);
    const first = await blocks.next();
    const lines = first.value === undefined ? [] : [...linesOf(first.value)];
    expect(lines.map(({ line }) => line.length)).toEqual([1, 1]);
  }
});

describe('ends early', () => {
  test('with the threads stopped, when the reader stops', async () => {
    const threads = [testThread(), testThread()];
    const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
    const options = { ...IN_THREE, threads: 3, start: () => threads.shift(), blockBytes: 65_536 };
    const [first, second] = threads;
    const blocks = readBlocks(bytesSource(bytes, '-'), options);
    await blocks.next();
    await blocks.next();
    await blocks.return();
    expect([first?.isStopped(), second?.isStopped()]).toEqual([true, true]);
  });

  test('with no thread left behind, where one cannot be started', async () => {
    const first = testThread();
    const threads = [first];
    const start = (): WorkerThread => {
      const thread = threads.pop();
      if (thread === undefined) throw new Error('no more threads');
      return thread;
    };
    const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
    const reading = (async () => {
      const blocks = readBlocks(bytesSource(bytes, '-'), { ...IN_THREE, start, blockBytes: 65_536 });
      for await (const block of blocks) void block;
    })();
    await expect(reading).rejects.toThrow('no more threads');
    expect(first.isStopped()).toBe(true);
  });

  test('with the error of the source, after the lines before it', async () => {
    const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield* inChunks(bytes.subarray(0, 300_000), 10_000);
      throw new Error('the disk is gone');
    }
    for (const options of [IN_ONE, IN_THREE]) {
      let length = 0;
      const reading = (async () => {
        for await (const block of readBlocks(streamSource(failing(), '-'), options))
          for (const { line } of linesOf(block)) length += line.length + 1;
      })();
      await expect(reading).rejects.toThrow('the disk is gone');
      expect(length).toBeGreaterThan(280_000);
    }
  });

  test('with the reason of the signal', async () => {
    const stop = new AbortController();
    const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
    for (const options of [IN_ONE, IN_THREE]) {
      const source = streamSource(inChunks(bytes, 10_000), '-');
      const reading = (async () => {
        for await (const block of readBlocks(source, { ...options, signal: stop.signal })) {
          void block;
          stop.abort(new Error('enough'));
        }
      })();
      await expect(reading).rejects.toThrow('enough');
    }
  });
});
