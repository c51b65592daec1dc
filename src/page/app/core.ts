/** What the worker runs: the engine, behind messages. Where there is no worker, the page loads it and gives it a port. */

import { NorthrootError } from '../../error.js';
import { Engine } from '../model/engine.js';
import type { HostCrypto } from '../model/native-signatures.js';
import type { Answer, Question, Serve } from './messages.js';

/** Progress is told no more often, in milliseconds. */
const PROGRESS_MS = 100;

const serve: Serve = (port, isAlone) => {
  let told = 0;
  const engine = new Engine({
    crypto: globalThis.crypto?.subtle as unknown as HostCrypto | undefined,
    inflate: async (bytes) => {
      const packed = bytes as unknown as Blob;
      const stream = packed.stream().pipeThrough(new DecompressionStream('deflate-raw'));
      return await new Response(stream).blob();
    },
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
