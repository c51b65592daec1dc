/** The worker: the engine behind messages. Without workers the page loads it and gives it a port. */

import { NorthrootError } from '../../../base/error.js';
import { Engine } from '../model/engine.js';
import type { Bytes } from '../model/protocol.js';
import type { Answer, Question, Serve } from './messages.js';

/** The least time between reports of progress, in milliseconds. */
const PROGRESS_MS = 100;

/** Unpacked bytes are handed to the browser in parts of so many, which keeps them elsewhere than in this process. */
const PART_BYTES = 4 * 1024 * 1024;

async function inflate(bytes: Bytes, size: number): Promise<Blob> {
  const packed = bytes as unknown as Blob;
  const reader = packed.stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader();
  const parts: Blob[] = [];
  let waiting: Uint8Array<ArrayBuffer>[] = [];
  let waitingBytes = 0;
  let total = 0;
  const hand = (): void => {
    parts.push(new Blob(waiting));
    waiting = [];
    waitingBytes = 0;
  };
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    waiting.push(part.value);
    waitingBytes += part.value.length;
    total += part.value.length;
    // Too large already: the rest is not read.
    if (total > size) {
      await reader.cancel();
      break;
    }
    if (waitingBytes >= PART_BYTES) hand();
  }
  hand();
  return new Blob(parts);
}

const serve: Serve = (port, isAlone) => {
  let told = 0;
  const engine = new Engine({
    inflate,
    now: () => performance.now(),
    pause: isAlone ? undefined : () => new Promise((resolve) => setTimeout(resolve)),
    onProgress: (progress) => {
      const now = performance.now();
      if (now - told < PROGRESS_MS) return;
      told = now;
      port.postMessage({ progress } satisfies Answer);
    },
  });
  const answer = async ({ id, method, argument }: Question): Promise<Answer> => {
    try {
      const call = engine[method].bind(engine) as (argument: unknown) => Promise<unknown>;
      return { id, result: await call(argument) };
    } catch (error) {
      if (error instanceof NorthrootError) {
        const { code, message, hint } = error;
        return { id, error: { code, message, hint } };
      }
      return { id, error: { code: 'INTERNAL', message: String(error), hint: undefined } };
    }
  };
  port.onmessage = ({ data }) => {
    void answer(data as Question).then((said) => port.postMessage(said));
  };
};

if ('document' in globalThis) (globalThis as { northrootCore?: Serve }).northrootCore = serve;
else serve(globalThis as unknown as Parameters<Serve>[0], true);
