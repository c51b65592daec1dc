/** Keeps numbers in an outbox that nobody takes anything from, and says which it has kept, until it is killed. */

import { Outbox } from '../../../../dist/api/internals.js';

const [, , path, from] = process.argv;
const outbox = await Outbox.open(path, { send: async () => 'later', onRefused: () => undefined });
for (let n = Number(from); ; n += 1) {
  await outbox.put('x', { n });
  process.stdout.write(`${n}\n`);
}
