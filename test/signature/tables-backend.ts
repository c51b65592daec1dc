/** `BatchVerifier` as a backend that takes one signature at a time: every key has a table, and nothing is left to the sample. */

import type { SignatureBackend } from '../../src/format/signature/backend.js';
import { BatchVerifier } from '../../src/fast/signature/batch-verifier.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';

const verifier = new BatchVerifier({ uses: 0, sample: Infinity });

export const tablesBackend: SignatureBackend = {
  name: 'tables',
  importKey: (publicKey) => {
    const key = nodeBackend.importKey(publicKey);
    return {
      publicKey,
      usable: key.usable,
      verify: (message, signature) => {
        verifier.addMessage(key, message, signature);
        return verifier.flush()[0] === 1;
      },
    };
  },
};
