/** One valid document of each kind, with every optional member: what the tests then break. */

import { meters } from '../../src/base/value/meter.js';
import type {
  AdjustmentEvent,
  ApprovalEvent,
  AttestationEvent,
  AuthorizationEvent,
  CheckpointEvent,
  EventEnvelope,
  ExecutionEvent,
  GenesisEvent,
  Key,
  KeyEvent,
  LedgerRecord,
  ReportJson,
  RevocationEvent,
  TrustPolicy,
} from '../../src/format/schema/generated/types.js';

const B64 = '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU';
const TEXT = `sha-256:${B64}`;
const APPROVAL = {
  event_id: TEXT,
  seq: 1,
  principal_id: 'human:h1',
  grant_event_id: TEXT,
  tool_name: 'fs.read',
};
const sha256 = { alg: 'sha-256', b64: B64 };
const blake3 = { alg: 'blake3', b64: 'AAA' };

const envelope = {
  event_version: '1',
  event_id: sha256,
  occurred_at: '2026-03-01T00:00:00Z',
  principal_id: 'agent:a1',
  canonical_profile_id: 'northroot-jcs-v1',
  payload_digest: sha256,
  prev_event_id: sha256,
  ledger_id: sha256,
  context_digest: blake3,
} as const;

/** Genesis is what the others are bound to. */
const unbound: Omit<typeof envelope, 'ledger_id'> & { ledger_id?: never } = (({ ledger_id: _, ...rest }) =>
  rest)(envelope);
const source = { system: 'other', id: 'run-1/7', digest: blake3 };

const contentRef = { digest: blake3, size_bytes: 12, media_type: 'text/plain' };
const intents = { intent_digest: sha256, intent_ref: contentRef, user_intent_digest: blake3 };
const resource = { kind: 'file', reference: '/a' };
const vector = meters({
  a: 1n,
  b: '0.25',
  c: { t: 'rat', n: '1', d: '3' },
  d: { t: 'f64', bits: '3fb999999999999a' },
});

export const key: Key = {
  keyid: B64,
  public_key: `ed25519:${B64}`,
  roles: ['event', 'authority', 'checkpoint', 'witness', 'admin'],
  principals: ['*', 'agent:*', 'hum*', 'org:x'],
  name: 'k',
  valid_from: '2026-01-01T00:00:00Z',
  valid_until: '2027-01-01T00:00:00.5Z',
};

/** It signs notes, and no records. */
export const noteKey: Key = {
  keyid: B64,
  public_key: `ml-dsa-44:${'A'.repeat(1750)}`,
  roles: ['checkpoint', 'witness'],
  principals: ['*'],
};

const authorization: Omit<AuthorizationEvent, 'authorization'> = {
  event_type: 'authorization',
  ...envelope,
  intents,
  policy_id: 'policy/1',
  policy_digest: blake3,
  decision: 'allow',
  decision_code: 'ALLOW',
  checks: [{ check: 'c', result: 'pass', code: 'OK' }],
  hygiene: {
    status: 'Lossy',
    warnings: ['NUMBER_COERCED', 'NUMBER_INEXACT'],
    metrics: { NUMBER_COERCED: 1 },
    profile_id: 'northroot-jcs-v1',
  },
  hygiene_digest: sha256,
  source,
};

export const grant: AuthorizationEvent = {
  ...authorization,
  authorization: {
    kind: 'grant',
    bounds: {
      allowed_tools: ['fs.*', 'http.get', '*'],
      meter_caps: vector,
      action_caps: vector,
      not_before: '2026-03-01T00:00:00Z',
      expires_at: '2026-04-01T00:00:00Z',
      rate_limits: meters({ 'calls.per_min': 60, 'usd.per_5h': '0.5', 'usd.per_week': 1 }),
      max_delegation_depth: 3,
      concurrency_limit: { t: 'int', v: '4' },
      output_mode: 'digest_only',
      resources: [resource],
      approvals: [
        {
          tools: ['fs.*', 'deploy'],
          approvers: ['human:*', 'service:board'],
          above: vector,
          count: 2,
          max_age_s: 3600,
        },
      ],
    },
    grant_event_id: sha256,
  },
};

export const action: AuthorizationEvent = {
  ...authorization,
  authorization: {
    kind: 'action',
    grant_event_id: sha256,
    action: {
      tool_name: 'fs.read',
      tool_params_digest: blake3,
      meter_reservation: vector,
      expires_at: '2026-04-01T00:00:00Z',
      approval_event_ids: [sha256],
      request_key: 'job-1/step-2',
    },
  },
};

export const execution: ExecutionEvent = {
  event_type: 'execution',
  ...envelope,
  intents,
  auth_event_id: sha256,
  tool_name: 'fs.read',
  tool_params_digest: blake3,
  started_at: '2026-03-01T00:00:00Z',
  ended_at: '2026-03-01T00:00:01Z',
  meter_used: vector,
  outcome: 'failure',
  error_code: 'ABANDONED',
  output_digest: blake3,
  output_ref: contentRef,
  resources_touched: [resource],
  model_id: 'm',
  provider: 'p',
  pricing_snapshot_digest: blake3,
  meter_basis: 'measured',
  source,
};

export const adjustment: AdjustmentEvent = {
  event_type: 'adjustment',
  ...envelope,
  grant_event_id: sha256,
  direction: 'credit',
  meters: vector,
  reason: 'REFUND',
  execution_event_id: sha256,
  meter_basis: 'billed',
  evidence: contentRef,
  source,
};

export const approval: ApprovalEvent = {
  event_type: 'approval',
  ...envelope,
  grant_event_id: sha256,
  decision: 'approve',
  decision_code: 'REVIEWED',
  tool_name: 'fs.read',
  tool_params_digest: blake3,
  meter_limit: vector,
  expires_at: '2026-04-01T00:00:00Z',
  request_event_id: sha256,
  reason_digest: blake3,
  source,
};

export const revocation: RevocationEvent = {
  event_type: 'revocation',
  ...envelope,
  grant_event_id: sha256,
  effect: 'suspend',
  in_flight: 'stop',
  reason: 'INCIDENT',
  reason_digest: blake3,
  source,
};

export const genesis: GenesisEvent = {
  event_type: 'genesis',
  ...unbound,
  origin: 'example.com/agents/prod',
  ledger_version: '1',
  signing: { events: 'required', checkpoints: 'optional', binding: 'required' },
  keys: [key, noteKey],
  continues: { ledger_id: sha256, tree_size: 9, root: sha256, note: 'n' },
};

export const checkpoint: CheckpointEvent = {
  event_type: 'checkpoint',
  ...envelope,
  tree_size: 4,
  root: sha256,
  chain_tip_event_id: sha256,
  note: 'n',
};

export const attestation: AttestationEvent = {
  event_type: 'attestation',
  ...envelope,
  checkpoint_event_id: sha256,
  note: 'n',
};

export const keyEvent: KeyEvent = { event_type: 'key', ...envelope, action: 'add', key, reason: 'r' };

export const extension: EventEnvelope = { event_type: 'x.build', ...envelope, anything: [{ at: 'all' }] };

export const record: LedgerRecord = {
  event: {},
  meta: { trace: 't' },
  prev: sha256,
  seq: 0,
  signatures: [{ keyid: B64, sig: 'AA' }],
};

export const trustPolicy: TrustPolicy = {
  trust_version: '1',
  origins: ['example.com/agents/prod'],
  keys: [key],
  require: { event_signatures: 'required' },
};

const place = { seq: 1, event_id: TEXT, file: 'l.jsonl', line: 2 };
const none = { seq: null, event_id: null, file: 'l.jsonl', line: 1 };

export const report: ReportJson = {
  report_version: '1',
  tool: { name: 'northroot', version: '0.1.0' },
  ledger: {
    paths: ['l.jsonl'],
    origin: 'o',
    records: 1,
    bytes: 2,
    tree_size: 1,
    root: TEXT,
    tip_event_id: TEXT,
  },
  verdict: 'invalid',
  exit_status: 1,
  trust: {
    mode: 'self-declared',
    signatures: { valid: 1, invalid: 0, unverified: 0, missing: 0 },
    signers: [{ keyid: B64, principals: ['*'], records: 1 }],
  },
  checkpoints: { count: 0, last_tree_size: null, unsealed: 1 },
  not_checked: [{ code: 'NO_POLICY', message: 'm' }],
  counts: { by_type: { genesis: 1 }, by_verdict: { ok: 1, denied: 0, violation: 0, invalid: 0 } },
  grants: [
    {
      event_id: TEXT,
      seq: 1,
      principal_id: 'agent:a1',
      expires_at: '2026-04-01T00:00:00Z',
      signers: [B64],
      executions: 1,
      meters: [
        {
          unit: 'usd',
          cap: { t: 'int', v: '1' },
          used: { t: 'dec', m: '15', s: 1 },
          estimated: { t: 'dec', m: '5', s: 1 },
          reserved: { t: 'int', v: '0' },
          left: { t: 'dec', m: '-5', s: 1 },
        },
      ],
    },
  ],
  open_authorizations: [{ event_id: TEXT, seq: 1, tool_name: 'fs.read' }],
  approvals: [
    { ...APPROVAL, signers: [B64], used_by: TEXT },
    { ...APPROVAL, signers: [], used_by: null },
  ],
  revocations: [
    {
      event_id: TEXT,
      seq: 1,
      principal_id: 'human:h1',
      grant_event_id: TEXT,
      effect: 'suspend',
      in_flight: 'stop',
      signers: [B64],
    },
  ],
  open_starts: [
    { event_id: TEXT, seq: 1, auth_event_id: TEXT, tool_name: 'fs.read', started_at: '2026-03-01T10:00:00Z' },
  ],
  findings: [
    {
      code: 'SCHEMA',
      severity: 'error',
      class: 'invalid',
      at: { file: 'l.jsonl', line: 1, byte_offset: 0, byte_length: 3, pointer: '/event' },
      seq: null,
      event_id: null,
      expected: 'e',
      actual: 'a',
      related: [place, none],
      folded: 1,
      message: 'm',
    },
  ],
  findings_total: 2,
};
