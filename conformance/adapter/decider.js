/** The class decider, by `LiveLedger` and slices. */

import { readFileSync } from 'node:fs';
import { parseDigest } from '../../dist/api/format.js';
import { DeniedError, grantSlice, LiveLedger, openSlice, settleSlices } from '../../dist/api/log.js';
import { base64, orRefused, signerOf, writeLedger } from './ledgers.js';

/** By name: the ledger, its path, and the present of its clock. */
const handles = new Map();
/** By the name of the handle that opened it: the path of each ledger of the trace. */
const paths = new Map();
/** By the id of its action: what was set aside. */
const slices = new Map();

async function closeAll() {
  const open = [...handles.values()];
  for (const known of [handles, paths, slices]) known.clear();
  for (const { live } of open) await live.close();
}

function handleAt({ handle: name, now }) {
  const handle = handles.get(name);
  handle.now = now;
  return handle;
}

/** An operation on an open handle, at its time. */
function at(work) {
  return ({ handle: name, now, ...input }) =>
    orRefused(() => work(handleAt({ handle: name, now }).live, input, now));
}

const idOf = ({ eventId }) => ({ event_id: eventId });
const amountsOf = (meters) => Object.fromEntries(meters.map(({ unit, amount }) => [unit, amount]));

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
    const { auth_event_id: id, start_event_id: start, error_code: errorCode, ended_at: ended } = input;
    const recorded = await live.record(id, {
      ...(start && { start }),
      ...(errorCode && { errorCode }),
      outcome: input.outcome,
      meterUsed: input.meter_used,
      startedAt: input.started_at ?? now,
      endedAt: ended ?? now,
      isDatedNow: true,
    });
    return idOf(recorded);
  }),

  sweep: at(async (live) => {
    const { settled } = await live.abandonOpen({ expired: true });
    return { released: settled.map(({ authorizationId }) => authorizationId) };
  }),

  approve: at(async (live, { request_event_id: request }) => idOf(await live.approve(request))),
  reject: at(async (live, { request_event_id: request }) => idOf(await live.reject(request))),

  revoke: at(async (live, { grant_event_id: grant, effect, in_flight: inFlight }) => {
    const options = { reason: 'CONFORMANCE', ...(inFlight && { inFlight }) };
    const [recorded] = await live[effect](grant, options);
    return idOf(recorded);
  }),

  delegate: at(async (live, input) => {
    const recorded = await live.delegate({
      parent: input.grant_event_id,
      to: input.principal_id,
      caps: amountsOf(input.meter_caps),
      ...(input.allowed_tools && { tools: input.allowed_tools }),
      ...(input.expires_at && { expires: input.expires_at }),
    });
    return idOf(recorded);
  }),

  slice: at(async (live, input, now) => {
    const options = {
      now: () => now,
      grantId: input.grant_event_id,
      childId: input.ledger_id,
      caps: amountsOf(input.meter_caps),
      ...(input.request_key && { requestKey: input.request_key }),
      ...(input.expires_at && { expiresAt: input.expires_at }),
    };
    try {
      const opened = await live.use((ledger) => openSlice(ledger, options));
      slices.set(opened.eventId, opened);
      return { decision: 'allow', ...idOf(opened), recorded: opened.status === 'appended' };
    } catch (error) {
      if (!(error instanceof DeniedError)) throw error;
      const { decision, decisionCode, recorded } = error.decision;
      return { decision, decision_code: decisionCode, ...idOf(recorded), recorded: true };
    }
  }),

  spend: at(async (live, input, now) => {
    const slice = slices.get(input.slice.event_id);
    const { status, ...recorded } = await live.use((ledger) =>
      grantSlice(ledger, slice, {
        allowedTools: input.allowed_tools,
        now: () => now,
        ...(input.meter_caps && { meterCaps: amountsOf(input.meter_caps) }),
        ...(input.expires_at && { expiresAt: input.expires_at }),
      }),
    );
    return { ...idOf(recorded), recorded: status === 'appended' };
  }),

  'settle-slice': at(async (live, { child: name }, now) => {
    const child = handleAt({ handle: name, now }).live;
    const [settled] = await live.use((parent) =>
      child.use((ledger) => settleSlices(parent, ledger, { now: () => now })),
    );
    const { recorded, status } = settled;
    return { ...(recorded && idOf(recorded)), recorded: status === 'appended' };
  }),
};

export const DECIDER = {
  ...STEPS,

  async open({ handle: name, of, beside, now, secret, principal_id: principalId, ledger }) {
    if (of === undefined && beside === undefined) await closeAll();
    const path = of === undefined ? writeLedger(ledger) : paths.get(of);
    if (of === undefined) paths.set(name, path);
    const handle = { now };
    const options = { signer: signerOf(secret), principalId, now: () => handle.now };
    handle.live = await LiveLedger.open(path, { ...options, ...(of === undefined && { checkpoints: true }) });
    handles.set(name, handle);
    return { records: handle.live.size };
  },

  race: async ({ requests }) => ({
    results: await Promise.all(requests.map(({ op, ...input }) => STEPS[op](input))),
  }),

  async leave({ handle: name }) {
    await handles.get(name).live.close();
    handles.delete(name);
    return {};
  },

  async close() {
    const own = [...paths];
    await closeAll();
    return { ledgers: Object.fromEntries(own.map(([name, path]) => [name, base64(readFileSync(path))])) };
  },
};
