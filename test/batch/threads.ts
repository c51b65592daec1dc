/** Threads for tests: they examine in this one, some time later, and are sent what could be sent. */

import { examineBlock, makeExaminer } from '../../src/fast/blocks/examine-block.js';
import { writeFacts } from '../../src/fast/blocks/shared-facts.js';
import type { BlockAnswer, BlockRequest } from '../../src/fast/blocks/worker-pool.js';
import type { WorkerThread } from '../../src/base/platform/platform.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';

export interface TestThread extends WorkerThread {
  /** As if it ended by itself. */
  die(): void;
  readonly isStopped: () => boolean;
}

/** @param answer - What it says in place of the facts; `silence` for nothing. */
export function testThread(answer?: BlockAnswer | 'silence'): TestThread {
  const examiner = makeExaminer(nodeBackend);
  let told: (message: unknown) => void = () => undefined;
  let ended: (cause: unknown) => void = () => undefined;
  let isStopped = false;
  return {
    post(message) {
      const { room, length, depth, declared } = structuredClone(message as BlockRequest);
      if (answer === 'silence') return;
      setImmediate(() => {
        if (isStopped) return;
        examiner.keys.add(declared);
        const { examined, ...facts } = examineBlock(new Uint8Array(room, 0, length), examiner, depth);
        void examined;
        const shared = writeFacts(room, length, facts);
        told(structuredClone(answer ?? (shared === undefined ? { facts } : { shared })));
      });
    },
    onMessage: (listener) => (told = listener),
    onEnd: (listener) => (ended = listener),
    die: () => ended(new Error('it died')),
    isStopped: () => isStopped,
    stop: () => {
      isStopped = true;
      return Promise.resolve();
    },
  };
}
