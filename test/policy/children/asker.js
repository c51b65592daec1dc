/**
 * A process that asks for authorizations, as fast as it can. Its one argument is JSON; it says each answer in a line of JSON
 * on standard output.
 */

import { authorizeAction } from '../../../dist/api/index.js';

const { path, times, request } = JSON.parse(process.argv[2]);
for (let n = 0; n < times; n += 1) {
  const { decision, decisionCode, recorded } = await authorizeAction(path, request, {
    lockTimeoutMs: 60_000,
  });
  console.log(JSON.stringify({ decision, decisionCode, seq: recorded.seq, eventId: recorded.eventId }));
}
