/** Episodes of apm2, made with the published test key of RFC 8032, so that single members can be made wrong and signed again. */

import { createPrivateKey, sign } from 'node:crypto';
import { accountFor } from '../../../src/hosts/shared/account.js';
import { eventsOfClaims } from '../../../src/hosts/shared/claims.js';
import { apm2 } from '../../../src/hosts/apm2/index.js';
import { ledgerRowHash, ledgerRowOf } from '../../../src/hosts/apm2/ledger-rows.js';
import { readToolReceipt, receiptSigningBytes } from '../../../src/hosts/apm2/receipt.js';
import { deriveNonce, type ToolIntent, type ToolResponse } from '../../../src/hosts/apm2/tool-intent.js';
import { blake3Hex, cacBytes } from '../../../src/hosts/shared/forms/cac.js';
import type { HostFile, HostFinding, HostOptions, HostReading } from '../../../src/hosts/shared/host.js';
import { canonicalText } from '../../../src/base/json/canonicalize.js';
import { decodeSourceJson, type SourceObject } from '../../../src/base/json/source-json.js';
import type { Report } from '../../../src/rules/report/report.js';
import { verifyLedger } from '../../../src/log/read/verify-ledger.js';

/** RFC 8032, test 1. */
export const PUBLIC = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
const SEED = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
const b64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64url');
const KEY = createPrivateKey({
  key: { kty: 'OKP', crv: 'Ed25519', d: b64(SEED), x: b64(PUBLIC) },
  format: 'jwk',
});

export const EPISODE = 'ep-001';
export const SPAWN = 1_700_000_000_000_000_000n;
export const NONCE = deriveNonce('demo', EPISODE, SPAWN);
export const POLICY = '11'.repeat(32);
export const RESULT = '33'.repeat(32);
export const ARGS = { path: '/tmp/test.txt' };
export const ARGS_HASH = blake3Hex(Buffer.from(JSON.stringify(ARGS)));

export function fileOf(text: string, name: string): HostFile {
  return { name, bytes: Buffer.from(text) };
}

export function sourceOf(text: string): SourceObject {
  const decoded = decodeSourceJson(Buffer.from(text));
  if (!decoded.ok) throw new Error(decoded.fault.expected);
  return decoded.value as SourceObject;
}

/** The canonical form of JSON text. */
export function canonical(text: string): string {
  const bytes = cacBytes(sourceOf(text));
  if (!bytes.ok) throw new Error(bytes.fault.code);
  return Buffer.from(bytes.value).toString();
}

type Members = Readonly<Record<string, unknown>>;

const PROFILE: Members = {
  schema: 'apm2.agent_adapter_profile.v1',
  profile_id: 'demo-agent-v1',
  adapter_mode: 'black_box',
  command: '/usr/bin/demo-agent',
  args_template: ['-p', '{prompt}', ''],
  env_template: [['DEMO_HOME', '/home/agent']],
  cwd: '/workspace',
  requires_pty: true,
  input_mode: 'arg',
  output_mode: 'raw',
  permission_mode_map: { strict: ['--tools', ''] },
  tool_bridge: {
    enabled: true,
    protocol_version: 'TI1',
    nonce_prefix: 'demo',
    max_args_size: 1_048_576,
    max_result_size: 1_048_576,
    tool_timeout_ms: 60_000,
  },
  capability_map: { read_file: 'Read', write_file: 'Write' },
  version_probe: { command: 'demo-agent --version', regex: 'demo-agent 2\\.1\\.[0-9]+' },
  health_checks: {
    startup_timeout_ms: 30_000,
    heartbeat_interval_ms: 5000,
    heartbeat_timeout_ms: 15_000,
    stall_threshold_ms: 120_000,
    max_stalls: 3,
  },
  budget_defaults: {
    max_tool_calls: 100,
    max_tokens: 1_000_000,
    max_wall_clock_ms: 3_600_000,
    max_evidence_bytes: 104_857_600,
  },
  evidence_policy: {
    record_full_output: true,
    record_tool_traces: true,
    record_timing: true,
    record_token_usage: true,
    max_recorded_output_bytes: 10_485_760,
    redact_sensitive: true,
  },
};

/** A profile in its canonical form; `edits` replaces members, `undefined` leaves one out. */
export function profile(edits: Members = {}): string {
  return canonical(JSON.stringify({ ...PROFILE, ...edits }));
}

export function hashOf(text: string): string {
  return blake3Hex(Buffer.from(text));
}

const bytes32 = (hex: string): number[] => [...Buffer.from(hex, 'hex')];

/** A receipt as it is stored, signed. Hashes are hexadecimal. */
export function receipt(edits: Members = {}, signature?: Uint8Array): string {
  const fields: Members = {
    schema: 'apm2.tool_execution_receipt.v1',
    schema_version: '1.0.0',
    episode_id: EPISODE,
    policy_hash: POLICY,
    request_id: 'req-001',
    capability_id: 'cap-001',
    tool_class: 'Read',
    args_hash: ARGS_HASH,
    result_hash: RESULT,
    time_envelope_ref: '44'.repeat(32),
    started_at_ns: 1_700_000_004_500_000_000n,
    duration_ns: 5_000_000n,
    signer_identity: PUBLIC,
    ...edits,
  };
  const write = (with64: Uint8Array): string =>
    `{${Object.entries({ ...fields, signature: [...with64] })
      .map(([name, value]) => {
        const isHash = /_hash$|_ref$/.test(name) && typeof value === 'string';
        const text =
          typeof value === 'bigint' ? String(value) : JSON.stringify(isHash ? bytes32(value) : value);
        return `${JSON.stringify(name)}:${text}`;
      })
      .join(',')}}`;
  const unsigned = readToolReceipt(sourceOf(write(new Uint8Array(64))));
  const signed = unsigned.ok ? sign(null, receiptSigningBytes(unsigned.value), KEY) : Buffer.alloc(64);
  return write(signature ?? signed);
}

/** An index over receipts as they are stored. */
export function index(receipts: readonly string[], edits: Members = {}): string {
  const count = receipts.length;
  const counts = {
    total_executions: count,
    successful_executions: count,
    failed_executions: 0,
    total_tokens: 0,
    total_bytes_io: 0,
    total_wall_ms: 5 * count,
    ...(edits['counts'] as Members | undefined),
  };
  const { continuation_hashes: more, ...others } = edits;
  return JSON.stringify({
    schema: 'apm2.tool_log_index.v1',
    schema_version: '1.0.0',
    episode_id: EPISODE,
    tool_execution_receipt_hashes: receipts.map(hashOf),
    first_sequence: 0,
    ...(more === undefined ? {} : { continuation_hashes: more }),
    is_final_chunk: true,
    ...others,
    counts,
  });
}

/** One event to be put into a ledger. */
export interface Draft {
  readonly type: string;
  readonly payload: Members;
  /** Columns that say something else than they ought to; the hash is taken over them. */
  readonly columns?: Members;
  /** What is changed when hash and signature are there already. */
  readonly after?: Members;
}

/** Rows of `ledger_events`, linked and signed. */
export function ledger(drafts: readonly Draft[]): string {
  let prev = 'genesis';
  const lines: string[] = [];
  for (const [i, { type, payload, columns = {}, after = {} }] of drafts.entries()) {
    const time = SPAWN + BigInt(i + 1) * 1_000_000_000n;
    const text = canonical(JSON.stringify({ event_type: type, ...payload, prev_hash: prev }));
    const row: Record<string, unknown> = {
      event_id: `EVT-${i + 1}`,
      event_type: type,
      work_id: 'W-1',
      actor_id: 'kernel',
      timestamp_ns: String(time),
      payload: text,
      prev_hash: prev,
      ...columns,
    };
    const domain = `apm2.event.${String(row['event_type'])}:`;
    row['signature'] ??= sign(null, Buffer.concat([Buffer.from(domain), Buffer.from(text)]), KEY).toString(
      'hex',
    );
    row['event_hash'] = ledgerRowHash(ledgerRowOf(sourceOf(JSON.stringify({ ...row, event_hash: prev })))!);
    prev = String(row['event_hash']);
    lines.push(JSON.stringify({ ...row, ...after }));
  }
  return lines.map((line) => `${line}\n`).join('');
}

/** One row of the core's table: JSON under a domain, as the kernel's verified append signs it, or only the row's hash. */
export interface CoreDraft {
  readonly type: string;
  readonly payload: string;
  /** `hash`: the signature is over the row's hash. */
  readonly signed?: 'domain' | 'hash' | 'none';
  readonly columns?: Members;
  readonly after?: Members;
}

/** Rows of `events`: BLAKE3 of the hash before and the payload. `frozen`: payloads are the daemon's, with `prev_hash` in them. */
export function coreLedger(drafts: readonly CoreDraft[], isFrozen = false): string {
  let prev: string | null = null;
  const lines: string[] = [];
  for (const [i, { type, payload, signed = 'domain', columns = {}, after = {} }] of drafts.entries()) {
    const text = isFrozen
      ? canonical(JSON.stringify({ ...(JSON.parse(payload) as Members), prev_hash: prev ?? 'genesis' }))
      : payload;
    const row: Record<string, unknown> = {
      seq_id: i + 1,
      event_type: type,
      session_id: 'W-1',
      actor_id: PUBLIC,
      payload: Buffer.from(text).toString('hex'),
      timestamp_ns: Number(SPAWN / 1_000_000_000n) * 1_000_000_000 + i * 1_000_000_000,
      prev_hash: prev,
      ...columns,
    };
    const hash = ledgerRowHash(ledgerRowOf(sourceOf(JSON.stringify(row)))!);
    const domain = Buffer.from(`apm2.event.${type}:`);
    const message = signed === 'hash' ? Buffer.from(hash, 'hex') : Buffer.concat([domain, Buffer.from(text)]);
    if (signed !== 'none') row['signature'] = sign(null, message, KEY).toString('hex');
    lines.push(JSON.stringify({ ...row, event_hash: hash, ...after }));
    prev = hash;
  }
  return lines.map((line) => `${line}\n`).join('');
}

export const BUNDLE = '{"review":"text"}';

/** The events of an episode in which one file is read. */
export function drafts(
  profileText: string,
): Record<'attributed' | 'spawned' | 'requested' | 'decided' | 'executed' | 'reviewed', Draft> {
  const request_id = 'req-001';
  return {
    attributed: {
      type: 'episode_run_attributed',
      payload: {
        work_id: 'W-1',
        episode_id: EPISODE,
        session_id: 'S-1',
        adapter_profile_hash: hashOf(profileText),
      },
    },
    spawned: {
      type: 'episode_spawned',
      payload: { episode_id: EPISODE, session_id: 'S-1', spawn_time_ns: String(SPAWN) },
    },
    requested: {
      type: 'tool_requested',
      payload: {
        request_id,
        session_id: 'S-1',
        tool_name: 'read_file',
        tool_args_hash: ARGS_HASH,
        dedupe_key: 'd-1',
        episode_id: EPISODE,
      },
    },
    decided: {
      type: 'tool_decided',
      payload: {
        request_id,
        decision: 'ALLOW',
        rule_id: 'rule-7',
        policy_hash: POLICY,
        rationale_code: 'CAPABILITY_GRANTED',
        budget_consumed: 0,
        episode_id: EPISODE,
      },
    },
    executed: {
      type: 'tool_executed',
      payload: { request_id, outcome: 'SUCCESS', result_hash: RESULT, duration_ms: 5, episode_id: EPISODE },
    },
    reviewed: {
      type: 'review_receipt_recorded',
      payload: {
        receipt_id: 'rr-1',
        changeset_digest: '55'.repeat(32),
        artifact_bundle_hash: hashOf(BUNDLE),
        reviewer_actor_id: 'reviewer',
      },
    },
  };
}

/** A request as an agent writes it. */
export function intentLine({ nonce, requestId, toolName, args }: IntentDraft): string {
  const encoded = Buffer.from(canonical(JSON.stringify(args))).toString('base64url');
  return `\u27E6TI1 ${nonce}\u27E7 ${requestId} ${toolName} ${encoded}\n`;
}

type IntentDraft = Pick<ToolIntent, 'nonce' | 'requestId' | 'toolName'> & { readonly args: unknown };

/** An answer as the kernel writes it. */
export function responseLine(response: ToolResponse): string {
  const word = response.status === 'ok' ? response.resultHash : response.reasonCode;
  return `\u27E6TR1 ${response.nonce}\u27E7 ${response.requestId} ${response.status} ${word}\n`;
}

export const ASK = intentLine({
  nonce: NONCE,
  requestId: 'req-001',
  toolName: 'read_file',
  args: ARGS,
});
export const ANSWER = responseLine({
  nonce: NONCE,
  requestId: 'req-001',
  status: 'ok',
  resultHash: RESULT,
});

/** What an episode's files are made of. */
export interface Parts {
  readonly profile?: string;
  readonly events?: (events: ReturnType<typeof drafts>) => readonly Draft[];
  readonly receipts?: readonly string[];
  readonly index?: string | undefined;
  readonly log?: string;
}

/** An episode's files: ledger, receipts, index, profile, captured log, artifact. */
export function episode({
  profile: text = profile(),
  events,
  receipts = [receipt()],
  log,
  ...parts
}: Parts = {}): HostFile[] {
  const made = drafts(text);
  const list = events === undefined ? Object.values(made) : events(made);
  const chunk = 'index' in parts ? parts.index : index(receipts);
  return [
    fileOf(ledger(list), 'ledger.jsonl'),
    fileOf(receipts.map((line) => `${line}\n`).join(''), 'receipts.jsonl'),
    ...(chunk === undefined ? [] : [fileOf(chunk, 'index.jsonl')]),
    fileOf(text, 'profile.json'),
    fileOf(log ?? `Thinking.\n${ASK}${ANSWER}{"verdict":"approve"}\n`, 'agent.log'),
    fileOf(BUNDLE, `cas/${hashOf(BUNDLE)}`),
  ];
}

export const KEYS: HostOptions = { aids: { keys: fileOf(`${PUBLIC}\n`, 'keys.txt') } };

/** Reads files, and fails where the items do not add up. */
export function read(files: readonly HostFile[], options: HostOptions = KEYS): HostReading {
  const reading = apm2.read(files, options);
  const { items, mapped, evidence, repeated, dropped } = accountFor(reading.items).total;
  if (items !== mapped + evidence + repeated + dropped) throw new Error('items do not add up');
  return reading;
}

/** `RULE CODE` of what is found, but for remarks of severity info. */
export function codesOf({ findings }: { readonly findings: readonly HostFinding[] }): string[] {
  return findings.filter(({ severity }) => severity !== 'info').map(({ rule, code }) => `${rule} ${code}`);
}

/** The report on the events of a reading's claims, as bare events. */
export async function verifyClaims({ claims }: Pick<HostReading, 'claims'>): Promise<Report> {
  const { events, unfit } = eventsOfClaims(claims, { system: 'apm2' });
  if (unfit.length > 0) throw unfit[0].error;
  return verifyLedger(Buffer.from(events.map(({ event }) => `${canonicalText(event)}\n`).join('')));
}
