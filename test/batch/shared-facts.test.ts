/** Facts that threads share are read as they were written, wherever they lie, or there is no room for them. */

import { expect, test } from 'vitest';
import { examineBlock, makeExaminer } from '../../src/fast/blocks/examine-block.js';
import { readFacts, writeFacts } from '../../src/fast/blocks/shared-facts.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { fixtureBytes } from '../fixtures/cases.js';

const BLOCKS: [string, Uint8Array][] = [
  ['records', fixtureBytes('ledgers/pipeline-1000.jsonl').subarray(0, 300_001)],
  ['blank lines', Buffer.from('\n'.repeat(1_000))],
  ['nothing', Buffer.alloc(0)],
];

/** What can be written: the lines as they were examined stay behind. */
function factsOf(block: Uint8Array): Omit<ReturnType<typeof examineBlock>, 'examined'> {
  const { examined, ...facts } = examineBlock(block, makeExaminer(nodeBackend), 'all');
  void examined;
  return facts;
}

test.each(BLOCKS)('%s', (_, block) => {
  const facts = factsOf(block);
  for (const from of [0, 1, 2, 3, 100]) {
    const memory = new SharedArrayBuffer(400_000);
    const shared = writeFacts(memory, from, facts);
    if (shared === undefined) throw new Error('no room');
    const read = readFacts(memory, from, structuredClone(shared));
    expect(read.lines).toBe(facts.lines);
    expect(read.ordinal).toBe(facts.ordinal);
    expect(read.declared).toEqual(facts.declared);
    for (const name of ['ends', 'rowAt', 'verdictsAt', 'rows', 'leaves', 'nodes', 'verdicts'] as const)
      expect([...read[name]], name).toEqual([...facts[name]]);
  }
});

test('what there is no room for is not written', () => {
  const facts = factsOf(Buffer.from('a\nb\n'));
  const least = 3 * 4 + 2 * 2 * 4 + 2 * 32;
  const memory = new SharedArrayBuffer(least - 1);
  expect(writeFacts(memory, 0, facts)).toBeUndefined();
  expect(new Uint8Array(memory)).toEqual(new Uint8Array(least - 1));
  expect(writeFacts(new SharedArrayBuffer(least), 0, facts)).toBeDefined();
});
