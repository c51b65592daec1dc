/** Drafts of events, as a pipeline would send them: one JSON object a line. */

import { sha256Digest, type Digest } from '../../src/base/value/digest.js';

const digest = (text: string): Digest => sha256Digest(Buffer.from(text));

/** The digest that an event id of the command line (`sha-256:…`) is. */
export function digestOfId(id: string): Digest {
  return { alg: 'sha-256', b64: id.slice('sha-256:'.length) };
}

/** An extension event, made different from others by `n`. */
export function note(n: unknown, members: object = {}): object {
  return { event_type: 'x.note', principal_id: 'agent:a1', n, ...members };
}

/** Values as lines. */
export function ndjson(values: readonly unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

const intents = { intent_digest: digest('write a report') };
const decision = {
  event_type: 'authorization',
  principal_id: 'agent:a1',
  intents,
  policy_id: 'example/1',
  policy_digest: digest('policy'),
};

/** An allowed grant over `fs.*` with caps on calls and on `usd`, which is given as a JSON value of any form. */
export function grant(usd: unknown = { t: 'dec', m: '500', s: 2 }): object {
  return {
    ...decision,
    occurred_at: '2026-03-01T10:00:00Z',
    decision: 'allow',
    decision_code: 'ALLOW',
    authorization: {
      kind: 'grant',
      bounds: {
        allowed_tools: ['fs.*'],
        meter_caps: [
          { unit: 'calls', amount: { t: 'int', v: '10' } },
          { unit: 'usd', amount: usd },
        ],
      },
    },
  };
}

/** An allowed action of `tool` under a grant. */
export function action(grantId: string, tool = 'fs.read'): object {
  return {
    ...decision,
    occurred_at: '2026-03-01T11:00:00Z',
    decision: 'allow',
    decision_code: 'ALLOW',
    authorization: {
      kind: 'action',
      grant_event_id: digestOfId(grantId),
      action: {
        tool_name: tool,
        tool_params_digest: digest('params'),
        meter_reservation: [{ unit: 'calls', amount: { t: 'int', v: '1' } }],
      },
    },
  };
}

/** A denied action of `tool`. */
export function denial(tool = 'net.send'): object {
  return {
    ...decision,
    occurred_at: '2026-03-01T12:00:00Z',
    decision: 'deny',
    decision_code: 'TOOL_FORBIDDEN',
    authorization: { kind: 'action', action: { tool_name: tool, tool_params_digest: digest('params') } },
  };
}

/** The execution of an action. */
export function execution(actionId: string, tool = 'fs.read'): object {
  return {
    event_type: 'execution',
    principal_id: 'agent:a1',
    occurred_at: '2026-03-02T00:00:00Z',
    intents,
    auth_event_id: digestOfId(actionId),
    tool_name: tool,
    tool_params_digest: digest('params'),
    meter_used: [{ unit: 'calls', amount: { t: 'int', v: '1' } }],
    outcome: 'success',
  };
}
