/** The program of a signing thread; see `signing-threads.ts`. */

import { type KeyObject, sign } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';

interface SigningKey {
  readonly key: KeyObject;
  /** As `crypto.sign` takes it. */
  readonly digest: 'sha256' | null;
}

/** Concatenated messages. */
export interface SigningTask {
  readonly id: number;
  readonly bytes: ArrayBuffer;
  /** The end offset of each. */
  readonly ends: readonly number[];
}

/** Concatenated signatures, 64 bytes each. */
export interface SigningResult {
  readonly id: number;
  readonly signatures: ArrayBuffer;
}

const { key, digest } = workerData as SigningKey;
// The bare key is OpenSSL's fastest path.
const options = digest === null ? key : ({ key, dsaEncoding: 'ieee-p1363' } as const);
parentPort?.on('message', ({ id, bytes, ends }: SigningTask) => {
  const messages = new Uint8Array(bytes);
  let start = 0;
  const parts = ends.map((end) => {
    const message = messages.subarray(start, end);
    start = end;
    return sign(digest, message, options);
  });
  const signatures = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    signatures.set(part, at);
    at += part.length;
  }
  const result: SigningResult = { id, signatures: signatures.buffer };
  parentPort?.postMessage(result, [signatures.buffer]);
});
