/** What the tests of Clasper's adapter share: a server that answers as the contract says, and a client with a ledger of its own. */

import { createHmac } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { stableHash } from '../../../src/hosts/shared/forms/stable.js';
import { ClasperClient, type ClasperClientOptions } from '../../../src/hosts/clasper/index.js';
import { createSigner } from '../../../src/format/signature/signer.js';
import { generatePrivateKey } from '../../../src/format/key/private-key.js';
import { filePlace, openLive } from '../../agent/support.js';
import {
  type Asked,
  type Json,
  type Said,
  type ScriptedServer,
  serveScript,
} from '../live/scripted-server.js';
import { parse } from './kit.js';

export const IDS = { adapter_id: 'openclaw', tenant_id: 't1', workspace_id: 'w1' };
export const SIGNERS = {
  ed25519: createSigner(generatePrivateKey('ed25519')),
  p256: createSigner(generatePrivateKey('p256')),
};
export const READ = { capabilities: ['fs.read'], toolCount: 1 };

/** A token as Clasper signs it. */
export function jwt(claims: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: 'HS256' })}.${part(claims)}`;
  return `${signed}.${createHmac('sha256', 'S3CRET').update(signed).digest('base64url')}`;
}

export function scope(members: object = {}): object {
  const expires_at = new Date(Date.now() + 900_000).toISOString();
  return { capabilities: ['fs.read'], max_steps: 10, max_cost: 0.5, expires_at, ...members };
}

/** The answer that allows what was asked. */
export function allows({ body }: Asked, members: object = {}, granted: object = {}): Said {
  return {
    body: {
      ...{ allowed: true, execution_id: body.execution_id, granted_scope: scope(granted), decision: 'allow' },
      ...{ matched_policies: [], decision_trace: [{ policy_id: 'p', result: 'skipped' }], ...members },
    },
  };
}

export function pends({ body }: Asked, id = 'd-1'): Said {
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  return {
    body: {
      ...{ allowed: false, execution_id: body.execution_id, requires_approval: true, decision: 'pending' },
      ...{ decision_id: id, expires_at, required_role: 'release_manager', granted_scope: scope() },
    },
  };
}

let count = 0;

/** The claims of a token for what was asked. */
export function claims({ body }: Asked, members: object = {}): object {
  count += 1;
  const iat = Math.floor(Date.now() / 1000);
  return {
    ...{ typ: 'tool_auth', ...IDS, execution_id: body.execution_id, tool: body.tool },
    ...{ scope: body.requested_scope, scope_hash: stableHash(parse(JSON.stringify(body.requested_scope))) },
    ...{ iat, exp: iat + 30, jti: `S3CRET-jti-${count}`, ...members },
  };
}

export function issues(asked: Asked, members: object = {}): Said {
  return {
    body: {
      decision: 'allow',
      tool_token: jwt(claims(asked, members)),
      policy: { matched_policies: ['p1'] },
    },
  };
}

/** Clasper as the contract has it; the script says what it answers otherwise. */
export function serveClasper(
  other: (asked: Asked) => Said | undefined | Promise<Said | undefined> = () => undefined,
  port = 0,
): Promise<ScriptedServer> {
  return serveScript(async (asked) => {
    const said = await other(asked);
    if (said !== undefined) return said;
    if (asked.path === '/api/execution/request') return allows(asked);
    if (asked.path === '/api/governance/tool/authorize') return issues(asked);
    if (asked.path.startsWith('/api/ingest/')) return { body: { status: 'ok' } };
    return { status: 404, body: { error: 'Not found' } };
  }, port);
}

export interface OpenedClient {
  readonly client: ClasperClient;
  readonly path: string;
  readonly events: () => Json[];
  /** The last authorization of a kind. */
  readonly last: (kind: 'grant' | 'action') => Json;
  readonly verdict: () => Promise<string>;
  readonly problems: unknown[];
}

export async function openClient(
  endpoint: string,
  options: Partial<ClasperClientOptions> = {},
): Promise<OpenedClient> {
  const place = filePlace();
  const ledger = await openLive(place, { honourImported: ['clasper'] });
  const problems: unknown[] = [];
  const client = new ClasperClient({
    ...{
      endpoint,
      ledger,
      adapterId: IDS.adapter_id,
      tenantId: IDS.tenant_id,
      workspaceId: IDS.workspace_id,
    },
    ...{ adapterToken: 'S3CRET-adapter-token', version: '0.4.1', telemetrySigner: SIGNERS.ed25519 },
    timeoutMs: 60_000,
    onProblem: (error) => problems.push(error),
    ...options,
  });
  onTestFinished(() => client.close());
  const events = (): Json[] => place.events();
  return {
    ...{ client, path: place.path, events, verdict: place.verdict, problems },
    last: (kind) => events().findLast((each) => each.authorization?.kind === kind),
  };
}
