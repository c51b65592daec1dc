/** What is read of an answer of another system, whoever asks it. */

import { concatBytes } from './bytes/concat.js';

/** The body, or of a longer one at most `most` bytes of its beginning. */
export async function readBounded(
  { body }: Pick<Response, 'body'>,
  most: number,
): Promise<{ readonly bytes: Uint8Array; readonly isWhole: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    // Leaving the loop ends the connection.
    if (size > most) return { bytes: concatBytes(chunks), isWhole: false };
    chunks.push(chunk);
  }
  return { bytes: concatBytes(chunks), isWhole: true };
}

/** Why there is none, such as `ECONNREFUSED`. The error's own text may have parts of the request. */
export function connectionFault(error: unknown): string {
  const { code } = ((error as Error | undefined)?.cause ?? error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : 'no reason given';
}
