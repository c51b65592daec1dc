/** What the tests of the live face share: a ledger with a grant for a tenant, a service over it, and an adapter that talks to it. */

import { createHmac, createPrivateKey, sign as signBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { encodeUtf8 } from '../../../src/base/bytes/text.js';
import { decodeSourceJson, type SourceObject } from '../../../src/base/json/source-json.js';
import { Gate } from '../../../src/gate/gate.js';
import { type GateServer, serveGate } from '../../../src/gate/service/serve-gate.js';
import { envelopeSigningInput } from '../../../src/hosts/clasper/envelope.js';
import { clasperFace, type ClasperFaceOptions } from '../../../src/hosts/clasper/index.js';
import { stableHash } from '../../../src/hosts/shared/forms/stable.js';
import { LiveLedger } from '../../../src/log/agent/live-ledger.js';
import { draftGrant, type GrantOptions } from '../../../src/log/policy/draft-grant.js';
import { filePlace } from '../../agent/support.js';
import { signer, temporaryFolder } from '../../writer/support.js';

export const SECRETS = { adapter: 'adapter-secret', tool: 'tool-secret', decision: 'decision-secret' };
export const TENANT = 'dev-tenant';
/** As whom approvals are given. */
export const OPERATOR = 'human:operator';
export const HOST = `service:clasper/${TENANT}`;
export const ADAPTER = `agent:clasper/${TENANT}/openclaw`;

/** JSON of which each test knows what it looks at. */
export type Json = Record<string, never>;

export interface Reply {
  readonly status: number;
  readonly body: Json;
}

export type Send = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Reply>;

export interface Live {
  readonly path: string;
  readonly gate: Gate;
  readonly server: GateServer;
  readonly grantId: string;
  /** As the adapter, unless headers say otherwise. */
  readonly send: Send;
  readonly ask: (body?: object) => Promise<Reply>;
  readonly events: () => Json[];
  readonly verdict: () => Promise<string>;
  /** Another service over the same ledger. */
  readonly another: (
    options?: Partial<ClasperFaceOptions>,
  ) => Promise<Pick<Live, 'send' | 'gate' | 'server'>>;
}

/** A token as the contract has it. */
export function token(
  claims: object = {},
  secret = SECRETS.adapter,
  header: object = { alg: 'HS256' },
): string {
  const now = Math.floor(Date.now() / 1000);
  const whole = {
    type: 'adapter',
    adapter_id: 'openclaw',
    tenant_id: TENANT,
    workspace_id: TENANT,
    allowed_capabilities: ['filesystem.read', 'shell.exec', 'browser', 'db.drop'],
    sub: 'adapter:openclaw',
    iat: now,
    exp: now + 7200,
    ...claims,
  };
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const input = `${part(header)}.${part(whole)}`;
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

export function claimsOf(text: string): Json {
  return JSON.parse(Buffer.from(text.split('.')[1], 'base64url').toString()) as Json;
}

/** A grant for the tenant, unless bounds say otherwise. */
export const BOUNDS: Partial<GrantOptions> = {
  allowedTools: ['clasper.execution', 'filesystem.*', 'shell.exec', 'browser.*', 'browser'],
  meterCaps: { usd: '10' },
};

export async function live(
  options: Partial<ClasperFaceOptions> = {},
  bounds: Partial<GrantOptions> = BOUNDS,
  now?: () => string,
): Promise<Live> {
  const place = filePlace();
  const ledger = await LiveLedger.open(place.path, {
    signer,
    principalId: HOST,
    create: { origin: 'example.com/tests/clasper' },
    ...(now === undefined ? {} : { now }),
  });
  const grant = draftGrant({
    principalId: HOST,
    ...BOUNDS,
    ...bounds,
    ...(now === undefined ? {} : { occurredAt: now() }),
  });
  const { eventId: grantId } = await ledger.append({ event: grant });
  await ledger.close();
  const another: Live['another'] = async (more = {}) => {
    const gate = await Gate.open(place.path, {
      signer,
      principalId: OPERATOR,
      lockTimeoutMs: 60_000,
      ...(now === undefined ? {} : { now }),
    });
    onTestFinished(() => gate.close().catch(() => undefined));
    const socket = join(temporaryFolder(), 's.sock');
    const face = clasperFace({ secrets: SECRETS, ...options, ...more });
    const server = await serveGate({ gate, socket, faces: [face] });
    onTestFinished(() => server.close());
    return { gate, server, send: sender(socket) };
  };
  const { gate, server, send } = await another();
  const ask = (body: object = {}): Promise<Reply> =>
    send('POST', '/api/execution/request', executionRequest(body));
  return {
    path: place.path,
    ...{ gate, server, send, ask, grantId, another },
    events: () => place.events() as unknown as Json[],
    verdict: place.verdict,
  };
}

export function executionRequest(body: object = {}): object {
  return {
    adapter_id: 'openclaw',
    tenant_id: TENANT,
    workspace_id: TENANT,
    tool_count: 1,
    execution_id: 'exec1',
    requested_capabilities: ['filesystem.read'],
    max_cost: 0.5,
    max_steps: 10,
    ...body,
  };
}

export function sender(socket: string): Send {
  return (method, path, body, headers) =>
    new Promise((resolve, reject) => {
      const sent = httpRequest(
        {
          socketPath: socket,
          path,
          method,
          headers: { 'content-type': 'application/json', 'x-adapter-token': token(), ...headers },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
          response.on('error', reject);
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, body: JSON.parse(text || '{}') as Reply['body'] }),
          );
        },
      );
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body));
    });
}

const SEED = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
const KEY = createPrivateKey({
  key: Buffer.from(`302e020100300506032b657004220420${SEED}`, 'hex'),
  format: 'der',
  type: 'pkcs8',
});
export const JWK = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };

/** A report in an envelope that is signed, and edited after that. */
export function envelope(type: string, payload: object, edit: object = {}): object {
  const whole = {
    tenant_id: TENANT,
    workspace_id: TENANT,
    execution_id: 'exec1',
    trace_id: 'trace1',
    adapter_id: 'openclaw',
    ...payload,
  };
  const head = {
    envelope_version: 'v1',
    adapter_id: 'openclaw',
    adapter_version: '1.0.0',
    issued_at: new Date().toISOString(),
    execution_id: whole.execution_id,
    trace_id: whole.trace_id,
    payload_type: type,
    payload_hash: stableHash(source(whole)),
    ...edit,
  };
  const signature = signBytes(null, envelopeSigningInput(source(head)), KEY).toString('base64url');
  return { ...head, payload: whole, signature, ...edit };
}

/** An envelope whose payload was edited, hashed and signed again. */
export function resign(edited: Json): object {
  const head = { ...edited, payload_hash: stableHash(source(edited.payload)) };
  const signature = signBytes(null, envelopeSigningInput(source(head)), KEY).toString('base64url');
  return { ...head, signature };
}

export function source(value: object): SourceObject {
  const decoded = decodeSourceJson(encodeUtf8(JSON.stringify(value)));
  if (!decoded.ok) throw new Error('not JSON');
  return decoded.value as SourceObject;
}

/** Registers the adapter and its key. */
export async function register(send: Send): Promise<void> {
  const registration = {
    adapter_id: 'openclaw',
    display_name: 'OpenClaw',
    risk_class: 'low',
    capabilities: ['filesystem.read'],
    version: '1.0.0',
    enabled: true,
  };
  const replies = [
    await send('POST', '/adapters/register', registration),
    await send('POST', '/ops/api/adapters/telemetry-key', {
      adapter_id: 'openclaw',
      version: '1.0.0',
      key_alg: 'ed25519',
      public_jwk: JWK,
      key_id: 'k1',
    }),
  ];
  for (const { status, body } of replies) if (status !== 200) throw new Error(JSON.stringify(body));
}

export const COST = {
  cost_usd: 0.25,
  input_tokens: 10,
  output_tokens: 5,
  recorded_at: '2026-02-06T14:12:33Z',
};
export const METRICS = { step_count: 3, duration_ms: 1000, recorded_at: '2026-02-06T14:12:33Z' };

export function authorize(send: Send, body: object = {}): Promise<Reply> {
  return send('POST', '/api/governance/tool/authorize', {
    execution_id: 'exec1',
    adapter_id: 'openclaw',
    tool: 'filesystem.read',
    requested_scope: { path: '/etc/hosts' },
    ...body,
  });
}
