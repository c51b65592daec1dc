/**
 * A process with several agents on one live ledger. Its one argument is JSON. It says a line when it is ready, and begins when it is
 * told a line; it says each guarded call that was acknowledged, and each in the midst of which it is.
 */

import { once } from 'node:events';
import { LiveLedger, createSigner, parsePrivateKey } from '../../../dist/api/index.js';

const { path, key, agents, principalId, reserve, hangs } = JSON.parse(process.argv[2]);
const say = (said) => process.stdout.write(`${JSON.stringify(said)}\n`);
const ledger = await LiveLedger.open(path, {
  signer: createSigner(parsePrivateKey(key)),
  principalId,
  lockTimeoutMs: 60_000,
});

async function act(agent) {
  for (let n = 0; ; n += 1) {
    try {
      const params = { pid: process.pid, agent, n };
      const run = async ({ startId, meter }) => {
        meter.add(reserve);
        if (!hangs) return;
        say({ running: startId });
        await new Promise(() => undefined);
      };
      await ledger.guard('fs.read', params, run, {
        reserve,
        onRecorded: ({ eventId }) => say({ done: eventId }),
      });
    } catch (error) {
      say({ denied: error.code });
      if (error.name !== 'DeniedError' && error.code !== 'GRANT_REVOKED') throw error;
      return;
    }
  }
}

say({ ready: true });
await once(process.stdin, 'data');
await Promise.all(Array.from({ length: agents }, (_, agent) => act(agent)));
await ledger.close();
process.stdin.destroy();
