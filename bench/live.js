/**
 * Measures decisions of one program that keeps a ledger open (`LiveLedger`), signed and on disk: one process with many in flight, and
 * several processes with several agents each under one grant, whose cap is not to be exceeded.
 *
 *     node bench/live.js [--seconds 5 --in-flight 100,1000 --processes 5 --agents 5 --folder /tmp]
 */

import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  LiveLedger,
  createSigner,
  draftGrant,
  formatPrivateKey,
  formatQuantity,
  generatePrivateKey,
  meters,
  parsePrivateKey,
  sha256Digest,
  verifyLedger,
} from '../dist/api/index.js';

const TARGET = 1_000;
const DIGEST = sha256Digest(Buffer.from('the benchmark'));
const REQUEST = {
  principalId: 'agent:bench',
  toolName: 'fs.read',
  paramsDigest: DIGEST,
  intentDigest: DIGEST,
  meters: meters({ calls: 1, usd: '0.001' }),
};

if (process.send === undefined) await measure();
else process.once('message', (task) => void runAgents(task));

async function measure() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '5' },
      'in-flight': { type: 'string', default: '100,1000' },
      processes: { type: 'string', default: '5' },
      agents: { type: 'string', default: '5' },
      folder: { type: 'string', default: tmpdir() },
    },
  });
  const seconds = Number(values.seconds);
  const folder = mkdtempSync(join(values.folder, 'northroot-live-'));
  try {
    for (const inFlight of values['in-flight'].split(',').map(Number)) {
      const { rate, cpu } = await measureOne(join(folder, `one-${inFlight}.jsonl`), inFlight, seconds);
      console.log(
        `1 process, ${inFlight} in flight: ${rate.toFixed(0)} decisions/s (target: at least ${TARGET}), ${cpu.toFixed(0)} µs of CPU each`,
      );
    }
    await measureMany(join(folder, 'many.jsonl'), Number(values.processes), Number(values.agents));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function makeLedger(path, caps) {
  const key = formatPrivateKey(generatePrivateKey(), 'pem');
  const signer = createSigner(parsePrivateKey(key));
  const create = { origin: 'example.com/bench/live' };
  const ledger = await LiveLedger.open(path, { signer, create });
  const grant = { principalId: REQUEST.principalId, allowedTools: ['fs.*'], meterCaps: caps };
  const { eventId } = await ledger.append({ event: draftGrant(grant) });
  return { ledger, key, grantId: eventId };
}

async function measureOne(path, inFlight, seconds) {
  const { ledger } = await makeLedger(path, { calls: 10n ** 9n, usd: 10n ** 9n });
  let [decided, isOver] = [0, false];
  const ask = async (_, agent) => {
    for (let n = 0; !isOver; n += 1) {
      const paramsDigest = sha256Digest(Buffer.from(`${agent} ${n}`));
      const { decision } = await ledger.authorize({ ...REQUEST, paramsDigest });
      if (decision !== 'allow') throw new Error('expected an allow');
      decided += 1;
    }
  };
  const start = performance.now();
  const before = process.cpuUsage();
  const asking = Promise.all(Array.from({ length: inFlight }, ask));
  await sleep(seconds * 1000);
  isOver = true;
  await asking;
  const rate = (decided * 1000) / (performance.now() - start);
  const { user, system } = process.cpuUsage(before);
  await ledger.close();
  return { rate, cpu: (user + system) / decided };
}

async function measureMany(path, processes, agents) {
  const cap = processes * agents * 20;
  const { ledger, key, grantId } = await makeLedger(path, { calls: cap });
  await ledger.close();
  const start = performance.now();
  const counts = await Promise.all(
    Array.from({ length: processes }, () => {
      const child = fork(fileURLToPath(import.meta.url));
      child.send({ path, key, agents });
      return new Promise((resolve, reject) => {
        child.once('message', resolve);
        child.once('exit', (status) => reject(new Error(`an agent's process ended with ${status}`)));
      });
    }),
  );
  const elapsed = (performance.now() - start) / 1000;
  const allowed = counts.reduce((sum, count) => sum + count, 0);
  const { verdict, grants } = await verifyLedger(path);
  const balance = grants.find(({ event_id: id }) => id === grantId)?.meters?.[0];
  const used = balance === undefined ? allowed : formatQuantity(balance.used);
  console.log(
    `${processes} processes of ${agents} agents: ${allowed} guarded calls in ${elapsed.toFixed(1)} s, ${used} of ${cap} used, ` +
      `${verdict} (target: cap never exceeded, and reached)`,
  );
}

/** As many guarded calls as are allowed. */
async function runAgents({ path, key, agents }) {
  const ledger = await LiveLedger.open(path, {
    signer: createSigner(parsePrivateKey(key)),
    principalId: REQUEST.principalId,
    lockTimeoutMs: 60_000,
  });
  let done = 0;
  const act = async (_, agent) => {
    for (let n = 0; ; n += 1) {
      try {
        await ledger.guard('fs.read', { agent, n }, () => undefined);
        done += 1;
      } catch (error) {
        if (error.code === 'METER_CAP_EXCEEDED' || error.code === 'RESERVATION_OVER_CAP') return;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: agents }, act));
  await ledger.close();
  process.send(done, () => process.disconnect());
}
