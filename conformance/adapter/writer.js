/** The class writer, by what `northroot/format` and `northroot/log` export. */

import { readFileSync } from 'node:fs';
import {
  buildEvent,
  canonicalBytes,
  canonicalText,
  formatRecord,
  sha256Digest,
  signEvent,
} from '../../dist/api/format.js';
import { Ledger } from '../../dist/api/log.js';
import { base64, bytesOf, orRefused, signerOf, writeLedger } from './ledgers.js';

export const WRITER = {
  record: ({ previous, seq, event: draft, secrets, meta }) =>
    orRefused(() => {
      const event = buildEvent(draft);
      const bytes = canonicalBytes(event);
      const hashed = previous === null ? Buffer.alloc(0) : Buffer.concat([Buffer.of(0), bytesOf(previous)]);
      const line = formatRecord({
        eventText: canonicalText(event),
        meta,
        prev: sha256Digest(hashed).b64,
        seq,
        signatures: secrets.map((secret) => signEvent(bytes, signerOf(secret))),
      });
      return { line: base64(line.subarray(0, -1)) };
    }),

  async append({ ledger: given, secret, drafts }) {
    const path = writeLedger(given);
    const ledger = await Ledger.open(path, { signer: signerOf(secret), strict: true });
    const results = [];
    try {
      for (const draft of drafts) {
        results.push(
          await orRefused(async () => {
            const { seq, status } = await ledger.append({ event: draft });
            return status === 'exists' ? { exists: seq } : { seq };
          }),
        );
      }
    } finally {
      await ledger.close();
    }
    return { results, bytes: base64(readFileSync(path)) };
  },

  async checkpoint({ ledger: given, secret, principal_id: principalId, now }) {
    const path = writeLedger(given);
    const ledger = await Ledger.open(path, { signer: signerOf(secret), now: () => now, checkpoints: true });
    await ledger.checkpoint(principalId);
    await ledger.close();
    const line = readFileSync(path).toString().trimEnd().split('\n').at(-1);
    return { line: base64(Buffer.from(line)) };
  },
};
