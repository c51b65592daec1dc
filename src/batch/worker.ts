/** What runs in another thread: examines the blocks that it is given, one after the other. */

import { parentPort } from 'node:worker_threads';
import { NorthrootError } from '../error.js';
import { defaultBackend } from '../signature/default-backend.js';
import { examineBlock, type Depth } from './examine-block.js';
import { KnownKeys } from './known-keys.js';
import type { BlockAnswer, BlockRequest } from './worker-pool.js';

const keys = new KnownKeys(defaultBackend);

parentPort?.on('message', ({ room, length, depth, given, declared }: BlockRequest) => {
  keys.add(declared);
  parentPort?.postMessage(answer(new Uint8Array(room, 0, length), depth, given));
});

function answer(bytes: Uint8Array, depth: Depth, given: Uint8Array | undefined): BlockAnswer {
  try {
    const { lines, ends, leaves, verdictsAt, verdicts, declared } = examineBlock(bytes, keys, depth, given);
    return { facts: { lines, ends, leaves, verdictsAt, verdicts, declared: [...declared] } };
  } catch (error) {
    if (error instanceof NorthrootError) {
      const { code, message, hint } = error;
      return { refusal: { code, message, hint } };
    }
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
