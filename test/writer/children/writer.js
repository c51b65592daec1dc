/**
 * A process that appends. Its one argument is JSON (see `WriterTask` in ../processes.ts); it says what it does in lines of
 * JSON on standard output, each written at once, so that what was said before a kill -9 is not lost.
 */

import { writeSync } from 'node:fs';
import { createSigner, Ledger, parsePrivateKey } from '../../../dist/api/index.js';

const task = JSON.parse(process.argv[2]);
const { path, tag, sessions = 1, groups = 1, groupSize = 1, text = '', hold = false } = task;
const signer = task.key === undefined ? {} : { signer: createSigner(parsePrivateKey(task.key)) };

function say(words) {
  writeSync(1, `${JSON.stringify(words)}\n`);
}

function sayError(error) {
  say({ error: error.code ?? error.name, cause: error.cause?.code });
}

let n = 0;
let failed = false;

async function append(ledger) {
  const event = { event_type: 'x.child', principal_id: `agent:${tag}`, n, text };
  n += 1;
  try {
    const { seq, eventId } = await ledger.append({ event });
    say({ seq, eventId });
  } catch (error) {
    failed = true;
    sayError(error);
  }
}

say({ doing: 'open' });
try {
  for (let session = 0; session < sessions; session += 1) {
    const ledger = await Ledger.open(path, {
      ...signer,
      ...task.options,
      now: () => '2026-01-01T12:00:00Z',
      onNotice: ({ code }) => say({ notice: code }),
    });
    say({ doing: 'append' });
    // null: until somebody ends this process.
    for (let group = 0; (groups === null || group < groups) && !failed; group += 1) {
      const size = 1 + Math.floor(Math.random() * groupSize);
      await Promise.all(Array.from({ length: task.exactly ?? size }, () => append(ledger)));
    }
    if (hold) {
      say({ doing: 'hold' });
      await new Promise((resolve) => process.stdin.once('end', resolve).resume());
    }
    await ledger.close();
  }
  say({ doing: 'end' });
} catch (error) {
  sayError(error);
}
