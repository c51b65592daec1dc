/**
 * Runs both extensions in one pipeline, prints what its stages decide, and writes `stages.jsonl` for
 * `northroot check --as openclaw-pipeline stages.jsonl`.
 */

import { appendFileSync } from 'node:fs';
import { createPipeline, createRecorder } from 'northroot/hosts/openclaw';
import { telegram, toEvent, toRequest } from './telegram.js';
import { threadOwnership } from './thread-ownership.js';

const pipeline = createPipeline({
  record: createRecorder((line) => appendFileSync('stages.jsonl', line)),
  onProblem: ({ code, stage }) => console.log(`problem ${code} at ${stage}`),
});

// What a service that all agents share would say.
const owners = new Map([['C1:7.1', 'other']]);
const ownership = threadOwnership({
  name: 'claw',
  claim: (thread) => {
    if (thread === 'C1:7.3') return Promise.reject(new Error('the service is down'));
    if (!owners.has(thread)) owners.set(thread, 'claw');
    return Promise.resolve(owners.get(thread) === 'claw');
  },
});
const { contributions, delivered } = telegram({ accounts: { main: [], support: ['99'] } });
for (const each of [...ownership, ...contributions]) pipeline.register(each);

const slack = { agentId: 'claw', conversationRef: 'C1', metadata: { channelId: 'slack' } };

async function send(given, message) {
  const event = { ...given, messageRef: null };
  const prepared = await pipeline.run({ ...event, family: 'egress.preparing' }, { working: message });
  const { decision, reason, selected, working } = prepared;
  console.log(decision, selected ?? '-', reason ?? '-');
  if (decision === 'cancel') {
    await pipeline.run({ ...event, family: 'egress.cancelled', payload: { reason } });
    return undefined;
  }
  await pipeline.run({ ...event, family: 'egress.sending' });
  // The host sends it here, and is told the message's id.
  await pipeline.run({ ...event, family: 'egress.sent', messageRef: '13', payload: working });
  return toRequest({ ...working, accountId: selected });
}

// Another agent's thread, then one where this one is mentioned, one that is free, and one where nobody can tell.
await send({ ...slack, threadRef: '7.1', correlationId: 'r1' }, { to: 'C1', text: 'hello' });
await pipeline.run(
  { ...slack, family: 'ingress.normalized', threadRef: '7.1', correlationId: 'r2' },
  { working: { text: 'what do you think, @claw?' } },
);
await send({ ...slack, threadRef: '7.1', correlationId: 'r2' }, { to: 'C1', text: 'this' });
await send({ ...slack, threadRef: '7.2', correlationId: 'r3' }, { to: 'C1', text: 'mine' });
await send({ ...slack, threadRef: '7.3', correlationId: 'r4' }, { to: 'C1', text: 'anyway' });

const update = {
  update_id: 5,
  message: {
    ...{ message_id: 12, message_thread_id: 3, date: 1_774_000_000, text: ' hi ' },
    chat: { id: 99, type: 'supergroup' },
    from: { id: 4, username: 'olga' },
  },
};
const received = toEvent(update, { agentId: 'claw' });
await pipeline.run(received);
const { working, context } = await pipeline.run({ ...received, family: 'ingress.normalized' });
console.log(working.text, working.isGroup, context.senders.join());
const request = await send(received, {
  to: received.conversationRef,
  threadId: received.threadRef,
  text: 'hi olga',
});
console.log(request.accountId, JSON.stringify(request.body), delivered.get('99'));
