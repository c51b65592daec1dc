/** What the tests of CGF's adapter share: a server that decides as a test says, and an adapter with a ledger of its own. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import {
  CgfAdapter,
  type CgfAction,
  type CgfAdapterOptions,
  cgf,
  grantsWhereAny,
} from '../../../src/hosts/cgf/index.js';
import type { HostFinding } from '../../../src/hosts/shared/host.js';
import { AGENT, filePlace, grant, openLive } from '../../agent/support.js';
import type { GrantOptions } from '../../../src/log/policy/draft-grant.js';
import {
  type Asked,
  type Json,
  type Said,
  type ScriptedServer,
  serveScript,
} from '../live/scripted-server.js';

export const TABLE = [
  ['tool_call', 'high', 'fail_closed'],
  ['tool_call', 'medium', 'defer'],
  ['tool_call', 'low', 'fail_open'],
  ['memory_write', 'low', 'fail_closed'],
].map(([action_type, risk_tier, fail_mode]) => ({
  ...{ action_type, risk_tier, fail_mode, timeout_ms: 500, rationale: 'test' },
}));

export const READ: CgfAction = {
  actionType: 'tool_call',
  params: { tool_name: 'fs.read', tool_args: { path: '/x' } },
  riskTier: 'low',
};

let count = 0;

/** A decision as the server nests it. */
export function decides(asked: Asked, members: Record<string, unknown> = {}): Said {
  count += 1;
  return {
    body: {
      schema_version: '0.3.0',
      decision: {
        schema_version: '0.3.0',
        decision_id: `dec-${String(count).padStart(12, '0')}`,
        proposal_id: asked.body.proposal.proposal_id,
        decision: 'ALLOW',
        confidence: 0.9,
        justification: 'as the test says',
        reason_code: 'DEFAULT_ALLOW',
        constraint: null,
        policy_version: '1.0.0',
        matched_rule_ids: ['default-allow'],
        ...members,
      },
    },
  };
}

/** Serves CGF: registers everybody and takes every outcome, unless the script says otherwise. */
export function serveCgf(
  evaluate: (asked: Asked) => Said | Promise<Said> = decides,
  other: (asked: Asked) => Said | undefined = () => undefined,
  port = 0,
): Promise<ScriptedServer> {
  return serveScript((asked) => {
    const said = other(asked);
    if (said !== undefined) return said;
    if (asked.path === '/v1/register') {
      const now = Date.now() / 1000;
      return {
        body: {
          ...{ schema_version: '0.3.0', adapter_id: 'adp-0a1b2c3d4e5f', registered_at: now },
          ...{ expires_at: now + 3600, endpoints: [], fail_mode_table: TABLE },
        },
      };
    }
    if (asked.path === '/v1/evaluate') return evaluate(asked);
    if (asked.path === '/v1/outcomes/report') return { body: { received: true } };
    return { status: 404, body: { detail: 'Not Found' } };
  }, port);
}

export interface OpenedAdapter {
  readonly adapter: CgfAdapter;
  readonly path: string;
  /** The last record that decides on an action. */
  readonly decided: () => Json;
  readonly events: () => Json[];
  readonly verdict: () => Promise<string>;
  /** Rules and codes of what an import of the adapter's own log finds. */
  readonly found: () => string[];
  readonly log: string;
  readonly problems: unknown[];
}

/** An adapter over a new ledger; with bounds, a grant is in it. */
export async function openAdapter(
  endpoint: string,
  options: Partial<CgfAdapterOptions> = {},
  bounds?: Partial<GrantOptions>,
): Promise<OpenedAdapter> {
  const place = filePlace();
  const ledger = await openLive(place, { policy: grantsWhereAny() });
  if (bounds !== undefined) await grant(ledger, bounds);
  const log = join(place.path, '..', 'events.jsonl');
  const problems: unknown[] = [];
  const adapter = new CgfAdapter({
    endpoint,
    ledger,
    hostConfig: { hostType: 'custom' },
    principal: AGENT,
    timeoutMs: 5_000,
    events: log,
    onProblem: (error) => problems.push(error),
    ...options,
  });
  onTestFinished(() => adapter.close());
  const events = (): Json[] => place.events();
  return {
    ...{ adapter, path: place.path, events, verdict: place.verdict, log, problems },
    decided: () => events().findLast((each) => each.authorization?.kind === 'action'),
    found: () => codesIn(log),
  };
}

/** What CGF's own rules find in a log. */
export function codesIn(log: string): string[] {
  return cgf
    .read([{ name: 'events.jsonl', bytes: readFileSync(log) }])
    .findings.map(({ rule, code }: HostFinding) => `${rule} ${code}`);
}
