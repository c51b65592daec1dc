/** The class decider, by `LiveLedger`. */

import { readFileSync } from 'node:fs';
import { parseDigest } from '../../dist/api/format.js';
import { LiveLedger } from '../../dist/api/log.js';
import { base64, orRefused, signerOf, writeLedger } from './ledgers.js';

/** By name: the ledger, its path, and the present of its clock. */
const handles = new Map();

async function closeAll() {
  const open = [...handles.values()];
  handles.clear();
  for (const { live } of open) await live.close();
  return open[0]?.path;
}

/** An operation on an open handle, at its time. */
function at(work) {
  return ({ handle: name, now, ...input }) =>
    orRefused(() => {
      const handle = handles.get(name);
      handle.now = now;
      return work(handle.live, input, now);
    });
}

const idOf = ({ eventId }) => ({ event_id: eventId });

const STEPS = {
  decide: at(async (live, input) => {
    const { decision, decisionCode, recorded } = await live.authorize({
      principalId: input.principal_id,
      toolName: input.tool_name,
      paramsDigest: parseDigest(input.params_digest),
      intentDigest: parseDigest(input.intent_digest),
      ...(input.meters && { meters: input.meters }),
      ...(input.grant_event_id && { grantId: input.grant_event_id }),
      ...(input.request_key && { requestKey: input.request_key }),
      ...(input.expires_at && { expiresAt: input.expires_at }),
    });
    const isRecorded = recorded.status === 'appended';
    return { decision, decision_code: decisionCode, event_id: recorded.eventId, recorded: isRecorded };
  }),

  start: at(async (live, { auth_event_id: id, params_digest: params }) => {
    const { recorded } = await live.start(id, { paramsDigest: parseDigest(params) });
    return idOf(recorded);
  }),

  settle: at(async (live, input, now) => {
    const { auth_event_id: id, start_event_id: start, error_code: errorCode } = input;
    const recorded = await live.record(id, {
      ...(start && { start }),
      ...(errorCode && { errorCode }),
      outcome: input.outcome,
      meterUsed: input.meter_used,
      startedAt: now,
      endedAt: now,
    });
    return idOf(recorded);
  }),

  approve: at(async (live, { request_event_id: request }) => idOf(await live.approve(request))),
  reject: at(async (live, { request_event_id: request }) => idOf(await live.reject(request))),

  revoke: at(async (live, { grant_event_id: grant, effect, in_flight: inFlight }) => {
    const options = { reason: 'CONFORMANCE', ...(inFlight && { inFlight }) };
    const [recorded] = await live[effect](grant, options);
    return idOf(recorded);
  }),
};

export const DECIDER = {
  ...STEPS,

  async open({ handle: name, of, now, secret, principal_id: principalId, ledger }) {
    if (of === undefined) await closeAll();
    const path = of === undefined ? writeLedger(ledger) : handles.get(of).path;
    const handle = { path, now };
    const options = { signer: signerOf(secret), principalId, now: () => handle.now };
    handle.live = await LiveLedger.open(path, options);
    handles.set(name, handle);
    return { records: handle.live.size };
  },

  race: async ({ requests }) => ({
    results: await Promise.all(requests.map(({ op, ...input }) => STEPS[op](input))),
  }),

  async close() {
    return { bytes: base64(readFileSync(await closeAll())) };
  },
};
