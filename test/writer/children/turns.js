/**
 * A process that takes the lock of a ledger again and again, by one append each. Its one argument is JSON: `path`, and `then`: `end` does
 * nothing more, not even close; `hold` keeps the lock. It says a line of JSON: its children.
 */

import { readFileSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Ledger } from '../../../dist/api/index.js';

const { path, then } = JSON.parse(process.argv[2]);
const ledger = await Ledger.open(path, {
  create: { origin: 'example.com/tests/turns', binding: 'optional' },
  principalId: 'agent:t',
  now: () => '2026-01-01T12:00:00Z',
  lingerMs: 0,
  lockTimeoutMs: 60_000,
});
for (let n = 0; n < 5; n += 1) await ledger.append({ event: { event_type: 'x.turn', n } });
const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8')
  .split(' ')
  .filter((pid) => pid !== '')
  .map(Number);
const say = () => writeSync(1, `${JSON.stringify({ children })}\n`);
if (then === 'hold') {
  void ledger.inspect(() => {
    say();
    return sleep(600_000);
  });
} else say();
