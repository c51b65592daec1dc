/**
 * Clasper: its adapter API as recordings, its signed envelopes, its evidence bundles. Written from clasper-core at a77f132 (the whole
 * contract v2.1/v2.2) and at 1.0.0 (without signatures, tokens and chain). What goes where is in README.md.
 */

import { CLASPER_RULES, finding } from './rules.js';
import { NorthrootError } from '../../base/error.js';
import { decodeSourceJson, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { parsePublicKey, type PublicKey } from '../../format/key/public-key.js';
import { hashText } from '../shared/forms/stable.js';
import type { Host, HostFile, HostOptions, HostReading } from '../shared/host.js';
import { checkReadOptions, ReadingBuilder } from '../shared/reading.js';
import { listAt, numberAt, textAt, timeOfText } from '../shared/values.js';
import { AuditReader, type ChainHead } from './audit.js';
import { Desk, hostPrincipal, mark } from './desk.js';
import { HttpReader, pathOf } from './http.js';
import { readTelemetryKey, type TelemetryKey } from './keys.js';
import { looksLikeClasper, type Part, payloadTypeOf, takeApart } from './parts.js';
import { textsAt, toolMapOf } from './scope.js';
import { claimId, ClasperState } from './state.js';
import { TelemetryReader } from './telemetry.js';
import { TraceReader } from './trace.js';
import { inFileOrder } from '../shared/order.js';

const AIDS = {
  'pinned-key': 'the public key by which evidence bundles are signed, in any form of keys',
  'adapter-keys': 'the keys by which adapters sign, as public_keys.json has them; no others then count',
  'chain-head': 'the end of the audit chain that somebody kept: {"tenant_id","seq","event_hash"}',
  'tool-capabilities': 'which capabilities a tool needs: {"browser.navigate":["browser"]}',
} as const;

/** Clasper, adapter contract v2. */
export const clasper: Host = {
  name: 'clasper',
  title: 'Clasper',
  rules: CLASPER_RULES,
  aids: AIDS,
  recognises: looksLikeClasper,
  read: readClasper,
};

interface Aids {
  readonly pinnedKey: PublicKey | undefined;
  readonly adapterKeys: readonly TelemetryKey[] | undefined;
  readonly chainHead: ChainHead | undefined;
  readonly toolCapabilities: SourceObject | undefined;
}

function readClasper(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkReadOptions('clasper.read', options, AIDS);
  const builder = new ReadingBuilder(options);
  const aids = readAids(options.aids ?? {}, builder);
  const desk = new Desk(builder);
  const state = new ClasperState();
  state.capabilities.noteTools(aids.toolCapabilities);
  const { parts, bundles } = takeApart(files, builder);
  const executions = new Map<string, { id: string; tenant: string }>();
  // A trace asks for what allows it, and what is reported may be a trace.
  const traces: TraceReader = new TraceReader(desk, state, (at, ids) => {
    const { tenant, executionId: id } = ids;
    executions.set(JSON.stringify([tenant, id]), { id, tenant });
    return telemetry.under(at, ids);
  });
  const telemetry = new TelemetryReader(desk, state, traces, aids.adapterKeys);
  const http = new HttpReader(desk, state, telemetry);
  const audit = new AuditReader(desk, state, telemetry, traces, http);
  state.hasRequests = parts.some(
    ({ kind, value }) => kind === 'http' && pathOf(value) === '/api/execution/request',
  );
  state.hasToolTokens = parts.some(
    ({ kind, value }) =>
      (kind === 'http' && pathOf(value) === '/api/governance/tool/authorize') ||
      (kind === 'chain' && textAt(value, 'eventType') === 'tool_authorization_granted'),
  );
  const readers = readersOf(desk, telemetry, http, audit);
  for (const part of parts) {
    if (part.kind === 'audit') audit.noteRow(part);
    if (part.kind === 'adapter' || part.kind === 'key') noteKey(state, part);
  }
  // The adapter's own reports before what the host kept of them; what authorizes before what is authorized.
  for (const kinds of ORDER)
    for (const part of inTime(
      parts.filter(({ kind }) => kinds.includes(kind)),
      kinds,
    ))
      readers[part.kind](part);
  audit.finish(bundles, aids.pinnedKey, aids.chainHead);
  traces.finish(executions.values());
  // Items were not read in their order; members of archives are in theirs, and aids are after all files.
  const members = [...new Set(parts.map(({ at }) => at.file))].filter((name) => name.includes('!'));
  const named = files.flatMap(({ name }) => [name, ...members.filter((each) => each.startsWith(`${name}!`))]);
  const given = Object.values(options.aids ?? {});
  return inFileOrder(builder.finish(), [...named.map((name) => ({ name })), ...given]);
}

const ORDER: readonly (readonly Part['kind'][])[] = [
  ['http', 'envelope', 'payload', 'export'],
  ...(
    ['adapter', 'key', 'chain', 'audit', 'trace', 'metadata', 'integrity', 'verify', 'unknown'] as const
  ).map((kind) => [kind]),
];

/** An audit log is written with the last row first. */
function inTime(parts: readonly Part[], kinds: readonly Part['kind'][]): readonly Part[] {
  if (!kinds.includes('audit')) return parts;
  const id = ({ value }: Part): number => Number(numberAt(value, 'id') ?? 0);
  return [...parts].sort((a, b) => (a.group === b.group ? id(a) - id(b) : 0));
}

function readersOf(
  desk: Desk,
  telemetry: TelemetryReader,
  http: HttpReader,
  audit: AuditReader,
): Readonly<Record<Part['kind'], (part: Part) => void>> {
  /** Of bundles, as their metadata says. */
  const tenants = new Map<string, string>();
  /** What is used to check other items, and says nothing of its own. */
  const checked = ({ at }: Part, type: string): void => desk.builder.drop(at, type, 'CHECKED_ONLY');
  const report = (part: Part, type: string | undefined, isEnvelope: boolean): void =>
    telemetry.read(part, { type, body: part.value as SourceObject, isEnvelope, accepted: true });
  /** Adapters and keys of a bundle. */
  const readKey = (part: Part): void => {
    const { value } = part;
    const type = part.kind === 'adapter' ? 'adapter' : 'adapter_key';
    const tenant = textAt(value, 'tenant_id') ?? '';
    const key = value instanceof SourceObject ? readTelemetryKey(value) : undefined;
    const time = textAt(value, 'updated_at');
    const adapterId = textAt(value, 'adapter_id');
    if (adapterId === undefined || time === undefined) return checked(part, type);
    const occurredAt = desk.timeOf(part, type, timeOfText(time), adapterId);
    if (occurredAt === undefined) return;
    desk.evidence(part, 'adapter', {
      id: claimId('adapter', tenant, adapterId, mark(part.bytes)),
      occurredAt,
      principalId: hostPrincipal(tenant),
      facts: {
        adapter_id: adapterId,
        key_id: key?.keyId,
        keyid: key?.publicKey?.keyid,
        revoked_at: key?.revokedAt,
      },
    });
  };
  return {
    http: (part) => http.read(part),
    envelope: (part) => report(part, undefined, true),
    payload: (part) => report(part, payloadTypeOf(part.value as SourceObject), false),
    chain: (part) => audit.entry(part),
    audit: (part) => audit.row(part),
    trace: (part) => audit.trace(part),
    adapter: readKey,
    key: readKey,
    metadata: (part) => {
      audit.noteScope(part);
      tenants.set(part.group, textAt(part.value, 'scope', 'tenantId') ?? '');
      checked(part, 'bundle_metadata');
    },
    // That there was a bundle, and what it vouched for.
    integrity: (part) => {
      audit.noteIntegrity(part);
      const occurredAt = desk.timeOf(part, 'bundle', timeOfText(textAt(part.value, 'generated_at')));
      if (occurredAt === undefined) return;
      const hash = hashText(part.bytes);
      desk.evidence(part, 'bundle', {
        id: claimId('bundle', hash),
        occurredAt,
        principalId: hostPrincipal(tenants.get(part.group) ?? ''),
        facts: { integrity_hash: hash, key_id: textAt(part.value, 'key_id') },
      });
    },
    verify: (part) => checked(part, 'bundle_verify'),
    export: (part) => checked(part, 'audit_chain_export'),
    unknown: ({ at }) => {
      desk.find('ITEM_UNKNOWN', at);
      desk.builder.drop(at, 'unknown', 'ITEM_UNKNOWN');
    },
  };
}

/** Whose key is whose, before anything that is signed. */
function noteKey(state: ClasperState, { value }: Part): void {
  const key = value instanceof SourceObject ? readTelemetryKey(value) : undefined;
  if (key !== undefined) state.addKey(textAt(value, 'tenant_id'), key);
  state.capabilities.note(textsAt(value, 'capabilities'));
  state.capabilities.noteTools(toolMapOf(value));
}

/** Aids that cannot be read are reported: without them something would silently not be checked. */
function readAids(given: Readonly<Record<string, HostFile>>, builder: ReadingBuilder): Aids {
  const refuse = (file: HostFile, expected: string): undefined => {
    const at = { file: file.name };
    builder.find(finding('AID_MALFORMED', at, { expected }));
    return undefined;
  };
  const json = <T>(
    name: keyof typeof AIDS,
    expected: string,
    read: (value: SourceValue) => T | undefined,
  ): T | undefined => {
    const file = given[name];
    if (file === undefined) return undefined;
    const decoded = decodeSourceJson(file.bytes);
    return (decoded.ok ? read(decoded.value) : undefined) ?? refuse(file, expected);
  };
  const key = given['pinned-key'];
  return {
    pinnedKey: key === undefined ? undefined : (tryReadKey(key) ?? refuse(key, 'a public key')),
    adapterKeys: json('adapter-keys', 'a list of keys with adapter_id, alg and public_jwk', (value) => {
      const list =
        listAt(value, 'keys') ?? (Array.isArray(value) ? (value as readonly SourceValue[]) : [value]);
      const keys = list.flatMap((each) =>
        each instanceof SourceObject ? (readTelemetryKey(each) ?? []) : [],
      );
      return keys.length === list.length && keys.length > 0 ? keys : undefined;
    }),
    chainHead: json('chain-head', 'seq and event_hash', (value) => {
      const seq = numberAt(value, 'seq') ?? '';
      const hash = textAt(value, 'event_hash') ?? textAt(value, 'eventHash');
      if (!/^\d{1,20}$/.test(seq) || hash === undefined) return undefined;
      return { tenant: textAt(value, 'tenant_id') ?? textAt(value, 'tenantId'), seq: BigInt(seq), hash };
    }),
    toolCapabilities: json('tool-capabilities', 'an object of lists', (value) =>
      value instanceof SourceObject && value.keys().every((tool) => listAt(value, tool) !== undefined)
        ? value
        : undefined,
    ),
  };
}

function tryReadKey(file: HostFile): PublicKey | undefined {
  try {
    return parsePublicKey(file.bytes);
  } catch (error) {
    if (error instanceof NorthrootError) return undefined;
    throw error;
  }
}
