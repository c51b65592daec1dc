/** What runs in another thread: examines the blocks that it is given, one after the other. */

import { parentPort } from 'node:worker_threads';
import { defaultBackend } from '../signature/default-backend.js';
import { examineBlock, type Depth } from './examine-block.js';
import { KnownKeys } from './known-keys.js';
import type { BlockAnswer, BlockRequest } from './worker-pool.js';

const keys = new KnownKeys(defaultBackend);

parentPort?.on('message', ({ room, length, depth, declared }: BlockRequest) => {
  keys.add(declared);
  parentPort?.postMessage(answer(new Uint8Array(room, 0, length), depth));
});

function answer(bytes: Uint8Array, depth: Depth): BlockAnswer {
  try {
    const { lines, ends, leaves, verdictsAt, verdicts, declared } = examineBlock(bytes, keys, depth);
    return { facts: { lines, ends, leaves, verdictsAt, verdicts, declared: [...declared] } };
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
