/**
 * A process that acts by a live ledger, and kills itself at one of its operations on files or on its index. Its one argument is JSON.
 * What it is told, and what it does, it says in lines that are written at once.
 */

import { writeSync } from 'node:fs';
import { Level } from 'level';
import { LiveLedger, createSigner, meters, parsePrivateKey, sha256Digest } from '../../../dist/api/index.js';
import { nodeFileSystem } from '../../../dist/api/internals.js';

const { path, key, principalId, killAt, manner } = JSON.parse(process.argv[2]);
const say = (said) => writeSync(1, `${JSON.stringify(said)}\n`);

let operations = 0;

/** Kills before an operation, or while the kernel is at it. */
async function operate(run) {
  operations += 1;
  if (operations !== killAt) return run();
  if (manner === 'during') void run();
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => undefined);
}

/** Every operation of an object goes through `operate`. */
function hook(object, names) {
  return new Proxy(object, {
    get(target, name) {
      const member = target[name];
      if (typeof member !== 'function') return member;
      const bound = member.bind(target);
      return names.has(name) ? (...given) => operate(() => bound(...given)) : bound;
    },
  });
}

const OF_FILES = new Set(['size', 'read', 'write', 'datasync', 'truncate', 'close', 'isInPlace']);
const OF_FOLDERS = new Set(['kindOf', 'list', 'makeFolder', 'remove', 'renameNew', 'syncFolderOf']);
const fileSystem = new Proxy(hook(nodeFileSystem, OF_FOLDERS), {
  get: (target, name) =>
    name === 'open'
      ? async (...given) => hook(await operate(() => nodeFileSystem.open(...given)), OF_FILES)
      : target[name],
});
for (const name of ['open', 'batch', 'close']) {
  const own = Level.prototype[name];
  Level.prototype[name] = function (...given) {
    return operate(() => own.apply(this, given));
  };
}

const request = (n) => ({
  toolName: 'fs.read',
  paramsDigest: sha256Digest(Buffer.from(String(n))),
  intentDigest: sha256Digest(Buffer.from('test')),
  meters: meters({ calls: 1, usd: 2 }),
});
const acknowledge = ({ seq, eventId }) => say({ acknowledged: { seq, eventId } });

const ledger = await LiveLedger.open(path, {
  signer: createSigner(parsePrivateKey(key)),
  principalId,
  checkpoints: true,
  lockTimeoutMs: 60_000,
  fileSystem,
});

async function allow(n) {
  const { recorded } = await ledger.authorize(request(n));
  acknowledge(recorded);
  return recorded.eventId;
}

async function start(id, n) {
  const { startedAt, recorded } = await ledger.start(id, { paramsDigest: request(n).paramsDigest });
  acknowledge(recorded);
  return startedAt;
}

function guard(n) {
  const run = ({ startId, meter }) => {
    say({ ran: startId });
    meter.add('usd', '0.5');
  };
  return ledger.guard('fs.read', { n }, run, { reserve: { usd: '1' }, onRecorded: acknowledge });
}

const id = await allow(1);
const startedAt = await start(id, 1);
const done = { startedAt, endedAt: startedAt, outcome: 'success', meterUsed: meters({ calls: 1, usd: 1 }) };
acknowledge(await ledger.record(id, done));
await Promise.all([guard(2), guard(3), allow(4)]);
acknowledge(await ledger.checkpoint());
await start(await allow(5), 5);
await ledger.close();
say({ operations });
