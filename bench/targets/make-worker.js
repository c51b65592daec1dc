/** A thread of `make-ledger.js`: makes and signs the events of one block. What needs their order is the main thread's. */

import { createPrivateKey } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { EventTemplate, signaturesOf } from './event-template.js';
import { at, contextOf, KINDS, lineDrafts } from './kinds.js';

const { kind, grantId, ledgerId, keys } = workerData;
const { lines, prefix } = KINDS[kind];
const drafts = lineDrafts(grantId, prefix);
const template = ({ draft, slots }) => new EventTemplate(draft, ledgerId, slots);
const [action, execution, underGrant] = [drafts.action, drafts.execution, drafts.underGrant].map(template);
const signers = keys.map(({ keyid, pkcs8 }) => ({
  keyid,
  privateKey: createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' }),
}));

/** The events from number `from` on; each happens in the second of its number. */
function* makeEvents(from, count) {
  if (lines === 'pairs') {
    const actions = Math.ceil(count / 2);
    const ids = [];
    for (let i = 0; i < actions; i += 1) {
      const made = action.make({ occurredAt: at(from + i), context: contextOf(from + i) });
      ids.push(made.eventId);
      yield made;
    }
    for (let i = actions; i < count; i += 1)
      yield execution.make({ ...timesOf(from + i), auth: ids[i - actions] });
    return;
  }
  for (let i = from; i < from + count; i += 1) {
    yield lines === 'actions'
      ? action.make({ occurredAt: at(i), context: contextOf(i) })
      : underGrant.make({ ...timesOf(i), context: contextOf(i) });
  }
}

function timesOf(second) {
  return { occurredAt: at(second), startedAt: at(second - 1), endedAt: at(second) };
}

parentPort.on('message', ({ number, from, count }) => {
  const events = [];
  let index = from;
  for (const { text, eventId } of makeEvents(from, count)) {
    events.push({ text, eventId, signatures: signaturesOf(text, signers[index % signers.length]) });
    index += 1;
  }
  parentPort.postMessage({ number, events });
});
