/** A gate that answers CGF's adapters, and what they send. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Gate } from '../../../src/gate/gate.js';
import { serveGate, type ServeGateOptions } from '../../../src/gate/service/serve-gate.js';
import { cgfFace, type CgfFaceOptions } from '../../../src/hosts/cgf/index.js';
import type { GrantOptions } from '../../../src/log/policy/draft-grant.js';
import { filePlace } from '../../agent/support.js';
import { type Answer, send } from '../../gate/service-process.js';
import { openGate, reopen } from '../../gate/support.js';
import { temporaryFolder } from '../../writer/support.js';

export type Json = Record<string, unknown>;

/** A policy bundle with one rule of each decision, by the name of the tool. */
export const POLICY = {
  policy_version: '7.1',
  rules: [
    ...['BLOCK', 'DEFER', 'AUDIT'].map((decision) => ruleFor(decision)),
    {
      ...ruleFor('CONSTRAIN'),
      constraint: {
        type: 'quarantine_namespace',
        params: { target_namespace: '_quarantine_', source_namespace: 'default' },
      },
    },
    {
      id: 'costly',
      when: [{ field: 'proposal.estimated_cost.tokens', op: 'gt', value: 1000 }],
      decision: 'BLOCK',
    },
  ],
  fail_modes: [{ action_type: 'tool_call', risk_tier: 'low', fail_mode: 'fail_open' }],
};

function ruleFor(decision: string): Json {
  const when = [{ field: 'proposal.tool_name', op: 'eq', value: `to_${decision.toLowerCase()}` }];
  return { id: `rule-${decision.toLowerCase()}`, priority: 10, when, decision, confidence: 0.7 };
}

export const policyBytes = (): Uint8Array => Buffer.from(JSON.stringify(POLICY));

/** A place for a ledger with a grant for agent:a1, and services of it. */
export class CgfPlace {
  readonly place = filePlace();
  readonly path = this.place.path;
  readonly #bounds: Partial<GrantOptions>;
  #isNew = true;

  constructor(bounds: Partial<GrantOptions> = {}) {
    this.#bounds = {
      allowedTools: ['*'],
      meterCaps: { calls: 100, tokens: 10_000_000, 'time.ms': 10_000_000 },
      ...bounds,
    };
  }

  /** Another service of the ledger, as another process or this one after a restart has it. */
  async serve(
    face: CgfFaceOptions = {},
    { service = {}, gate = {} }: { service?: Partial<ServeGateOptions>; gate?: object } = {},
  ): Promise<CgfServer> {
    if (this.#isNew) {
      const made = await openGate(this.place, this.#bounds);
      await made.gate.close();
      this.#isNew = false;
    }
    const opened = await reopen(this.place, gate);
    const own = cgfFace(face);
    const socket = join(temporaryFolder(), 's.sock');
    const server = await serveGate({ gate: opened, socket, faces: [own], ...service });
    const close = async (): Promise<void> => {
      await server.close();
      await own.close?.();
      await opened.close();
    };
    onTestFinished(close);
    return new CgfServer(opened, socket, close);
  }

  records(): readonly { readonly event: Json }[] {
    const lines = readFileSync(this.path, 'utf8').trim().split('\n');
    return lines.map((line) => JSON.parse(line) as { event: Json });
  }

  eventsOf(type: string): Json[] {
    return this.records().flatMap(({ event }) => (event['event_type'] === type ? [event] : []));
  }
}

/** A service, as an adapter sees it. */
export class CgfServer {
  readonly gate: Gate;
  readonly socket: string;
  readonly close: () => Promise<void>;

  constructor(gate: Gate, socket: string, close: () => Promise<void>) {
    this.gate = gate;
    this.socket = socket;
    this.close = close;
  }

  ask(path: string, body?: unknown, token?: string, type?: string): Promise<Answer> {
    return send(this.socket, path, body, token, type);
  }

  async register(token?: string): Promise<string> {
    const answer = await this.ask('/v1/register', REGISTRATION, token);
    if (answer.status !== 200) throw new Error(JSON.stringify(answer));
    return answer.body['adapter_id'] as string;
  }

  evaluate(adapter: string, proposal: Json, token?: string): Promise<Answer> {
    return this.ask('/v1/evaluate', evaluation(adapter, proposal), token);
  }

  /** What was decided: the decision of the answer, whatever its status. */
  async decide(adapter: string, proposal: Json): Promise<Json> {
    const { status, body } = await this.evaluate(adapter, proposal);
    return { status, ...(body['decision'] as Json | undefined) };
  }

  report(adapter: string, decision: Json, more: Json = {}): Promise<Answer> {
    return this.ask('/v1/outcomes/report', outcomeOf(adapter, decision, more));
  }
}

export const REGISTRATION = {
  schema_version: '0.3.0',
  adapter_type: 'tests',
  host_config: { host_type: 'custom', version: '1.2.3', unknown_member: 1 },
  features: ['tool_call'],
  timestamp: 1790000000.5,
};

/** A proposal to call a tool. */
export function toolCall(id: string, tool: string, more: Json = {}): Json {
  return {
    proposal_id: id,
    timestamp: 1790000000.5,
    action_type: 'tool_call',
    action_params: { tool_name: tool, tool_args_hash: 'ab12', side_effects_hint: ['read'] },
    context_refs: ['session-1'],
    estimated_cost: { tokens: 3, latency_ms: 500 },
    risk_tier: 'low',
    ...more,
  };
}

export function evaluation(adapter: string, proposal: Json): Json {
  const host = { host_type: 'custom' };
  return {
    ...{ schema_version: '0.3.0', adapter_id: adapter, host_config: host },
    ...{ proposal, context: { turn_number: 3 }, capacity_signals: { error_rate: 0.0 } },
  };
}

export function outcomeOf(adapter: string, decision: Json, more: Json = {}): Json {
  return {
    adapter_id: adapter,
    proposal_id: decision['proposal_id'],
    decision_id: decision['decision_id'],
    executed: true,
    executed_at: 1790000001.25,
    duration_ms: 40.06385803222656,
    success: true,
    committed: true,
    errors: [],
    ...more,
  };
}
