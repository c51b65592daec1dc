/** The class witness, by what `northroot/witness` exports. */

import { parseNoteKey } from '../../dist/api/verify.js';
import { createWitness } from '../../dist/api/witness.js';
import { base64, bytesOf, makeFolder, signerOf } from './ledgers.js';

let witness;
let time = 0;

export const WITNESS = {
  async witness({ name, secret, logs }) {
    await witness?.close();
    const options = { name, signer: signerOf(secret), logs: logs.map((log) => parseNoteKey(log)) };
    witness = await createWitness({ ...options, stateFolder: makeFolder(), now: () => time });
    return { name: witness.key.name };
  },

  async 'add-checkpoint'({ now, body }) {
    time = Date.parse(now);
    const answer = await witness.handle({ method: 'POST', path: '/add-checkpoint', body: bytesOf(body) });
    return { status: answer.status, body: base64(Buffer.from(answer.body)) };
  },
};
