/** The code of a thread: examines blocks sequentially. */

import { parentPort } from 'node:worker_threads';
import { viewBytes } from '#platform';
import { NorthrootError } from '../../base/error.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { type BlockFacts, type Depth, examineBlock, type Examiner, makeExaminer } from './examine-block.js';
import { type SharedFacts, writeFacts } from './shared-facts.js';
import type { BlockAnswer, BlockRequest } from './worker-pool.js';

let examiner: Examiner | undefined;

parentPort?.on('message', ({ room, length, depth, given, declared, threads }: BlockRequest) => {
  examiner ??= makeExaminer(defaultBackend, [], threads);
  examiner.keys.add(declared);
  const found = answer(viewBytes(room, 0, length), examiner, depth, given);
  const shared = 'facts' in found ? writeFacts(room, length, found.facts) : undefined;
  const message: BlockAnswer = shared === undefined ? found : { shared };
  parentPort?.postMessage(message, 'facts' in message ? buffersOf(message.facts) : []);
});

/** Buffers to transfer instead of copying. */
function buffersOf(facts: BlockFacts): ArrayBuffer[] {
  const { ends, leaves, nodes, rowAt, rows, verdictsAt, verdicts } = facts;
  return [ends, leaves, nodes, rowAt, rows, verdictsAt, verdicts].map(({ buffer }) => buffer as ArrayBuffer);
}

function answer(
  bytes: Uint8Array,
  examiner: Examiner,
  depth: Depth,
  given: Uint8Array | undefined,
): Exclude<BlockAnswer, { readonly shared: SharedFacts }> {
  try {
    const { examined, ...facts } = examineBlock(bytes, examiner, depth, given);
    void examined;
    return { facts };
  } catch (error) {
    if (error instanceof NorthrootError) {
      const { code, message, hint } = error;
      return { refusal: { code, message, hint } };
    }
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
