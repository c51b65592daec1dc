/** What the verifier's tests share: ledgers as streams of chunks, and a verifier that does not repeat itself. */

import { hash } from 'node:crypto';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import type { VerificationKey, SignatureBackend } from '../../src/format/signature/backend.js';

/** `bytes` in pieces of these sizes, over and over; each piece is wiped when the next is asked for. */
export async function* inChunks(bytes: Uint8Array, ...sizes: number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const chunk = Uint8Array.from(bytes.subarray(at, at + sizes[index % sizes.length]));
    at += chunk.length;
    yield await Promise.resolve(chunk);
    chunk.fill(0x58);
  }
}

/** The lines of a ledger without their newlines. */
export function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(0x0a, at);
    lines.push(bytes.subarray(at, end));
    at = end + 1;
  }
  return lines;
}

/** Lines as a ledger. */
export function ledgerOf(lines: readonly Uint8Array[]): Buffer {
  return Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]));
}

/** node:crypto, asked only once about each key and each signature: for tests that verify one ledger thousands of times. */
export function rememberingBackend(): SignatureBackend {
  const keys = new Map<string, VerificationKey>();
  const answers = new Map<string, boolean>();
  return {
    name: 'remembering',
    importKey: (publicKey) => {
      const known = keys.get(publicKey.keyid);
      if (known !== undefined) return known;
      const imported = nodeBackend.importKey(publicKey);
      const key: VerificationKey = {
        ...imported,
        verify: (message, signature) => {
          const question = `${publicKey.keyid} ${Buffer.from(signature).toString('base64url')} ${hash('sha256', message, 'base64url')}`;
          const answer = answers.get(question) ?? imported.verify(message, signature);
          answers.set(question, answer);
          return answer;
        },
      };
      keys.set(publicKey.keyid, key);
      return key;
    },
  };
}
