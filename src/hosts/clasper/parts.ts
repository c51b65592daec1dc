/** Clasper's files taken apart: archives into members, files into items, each by what it looks like, and what belongs to one bundle. */

import { decodeSourceJson, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { isArchive, readArchive } from '../shared/archive.js';
import { stableBytes } from '../shared/forms/stable.js';
import type { HostFile, HostPlace } from '../shared/host.js';
import { MAX_ITEM_BYTES, type ReadingBuilder, splitLines } from '../shared/reading.js';
import { listAt, numberAt, textAt } from '../shared/values.js';
import { BUNDLE_NAMES } from './bundle.js';
import { isChainEntry } from './chain.js';
import { isEnvelope } from './envelope.js';

type PartKind =
  | 'http'
  | 'envelope'
  | 'payload'
  | 'chain'
  | 'audit'
  | 'trace'
  | 'adapter'
  | 'key'
  | 'metadata'
  | 'integrity'
  | 'verify'
  | 'export'
  | 'unknown';

export interface Part {
  readonly kind: PartKind;
  readonly at: HostPlace;
  readonly bytes: Uint8Array;
  readonly value: SourceValue;
  /** The bundle that it is of, or its file. */
  readonly group: string;
}

export interface BundleParts {
  readonly group: string;
  readonly files: ReadonlyMap<string, HostFile>;
}

const KINDS: Readonly<Record<string, PartKind>> = {
  'adapters.json': 'adapter',
  'public_keys.json': 'key',
  'metadata.json': 'metadata',
  'integrity.json': 'integrity',
  'verify.sha256': 'verify',
  'audit_chain.jsonl': 'chain',
  'audits.jsonl': 'audit',
  'traces.jsonl': 'trace',
};

const LONE = { loneSurrogates: true } as const;

/** Takes the files apart. What cannot be read is dropped, with a finding. */
export function takeApart(
  files: readonly HostFile[],
  builder: ReadingBuilder,
): { readonly parts: readonly Part[]; readonly bundles: readonly BundleParts[] } {
  const groups = new Map<string, Map<string, HostFile>>();
  const all = files.flatMap((file) => expand(file, builder));
  for (const { file, isMember } of all) {
    const { group, name } = placeOf(file);
    if (!isMember && !BUNDLE_NAMES.includes(name)) continue;
    const members = groups.get(group) ?? new Map<string, HostFile>();
    groups.set(group, members);
    if (!members.has(name)) members.set(name, file);
  }
  const bundles = [...groups].flatMap(([group, members]) =>
    members.has('integrity.json') || members.has('metadata.json') || members.has('verify.sha256')
      ? [{ group, files: members }]
      : [],
  );
  const bundled = new Set(bundles.map(({ group }) => group));
  const parts = all.flatMap(({ file }) => {
    const { group, name } = placeOf(file);
    const kind = bundled.has(group) ? KINDS[name] : undefined;
    return [...partsOf(file, kind, bundled.has(group) ? group : file.name, builder)];
  });
  return { parts, bundles };
}

/** Whether a file looks like one of this host's. */
export function looksLikeClasper(file: HostFile): boolean {
  if (isArchive(file.bytes)) {
    const names = readArchive(file).members.map((member) => placeOf(member).name);
    return names.includes('integrity.json') && names.includes('traces.jsonl');
  }
  const { name } = placeOf(file);
  const whole = decodeSourceJson(file.bytes, LONE);
  const [first] = splitLines(file);
  const line = whole.ok || first === undefined ? whole : decodeSourceJson(first.bytes, LONE);
  if (name === 'verify.sha256') return true;
  if (!line.ok) return false;
  const value: SourceValue = Array.isArray(line.value)
    ? ((line.value as SourceValue[])[0] ?? null)
    : line.value;
  if (!(value instanceof SourceObject)) return false;
  if (name === 'integrity.json') return value.has('files') && value.has('generated_at');
  if (name === 'metadata.json') return value.has('counts') && value.has('scope');
  if (name === 'adapters.json' || name === 'public_keys.json') return value.has('adapter_id');
  const kind = kindOf(value);
  if (kind !== 'http') return kind !== 'unknown';
  return /^(?:https?:\/\/[^/]+)?\/(?:adapters|api\/(?:execution|ingest|governance|decisions)|ops\/api)\//.test(
    textAt(value, 'path') ?? '',
  );
}

/** The members of an archive, with what is wrong with it; of any other file the file. */
function expand(file: HostFile, builder: ReadingBuilder): { file: HostFile; isMember: boolean }[] {
  if (!isArchive(file.bytes)) return [{ file, isMember: false }];
  const { members, faults } = readArchive(file);
  for (const { code, member, expected, actual } of faults) {
    const at = { file: member === undefined ? file.name : `${file.name}!${member}` };
    builder.find({ rule: 'INPUT', code, severity: 'error', class: 'invalid', at, expected, actual });
    builder.drop(at, 'unknown', code);
  }
  return members.map((member) => ({ file: member, isMember: true }));
}

function placeOf({ name }: HostFile): { group: string; name: string } {
  const end = Math.max(name.lastIndexOf('/'), name.lastIndexOf('!'), name.lastIndexOf('\\')) + 1;
  return { group: name.slice(0, end), name: name.slice(end) };
}

function* partsOf(
  file: HostFile,
  kind: PartKind | undefined,
  group: string,
  builder: ReadingBuilder,
): Generator<Part, void, void> {
  if (kind === 'verify') {
    yield { kind, at: { file: file.name }, bytes: file.bytes, value: null, group };
    return;
  }
  const whole = kind === undefined || file.name.endsWith('.json') ? wholeOf(file) : undefined;
  if (whole !== undefined) {
    yield* membersOf({ at: { file: file.name }, bytes: file.bytes, value: whole }, kind, group);
  } else if (kind === undefined || file.name.endsWith('.jsonl')) {
    for (const item of builder.lines(file, LONE)) yield* membersOf(item, kind, group);
  } else {
    const item = builder.json({ at: { file: file.name }, bytes: file.bytes }, LONE);
    if (item !== undefined) yield* membersOf(item, kind, group);
  }
}

/** A file that is one value on several lines; on one line it is a file of lines. */
function wholeOf(file: HostFile): SourceValue | undefined {
  const [first, second] = splitLines(file);
  if (first === undefined || second === undefined || file.bytes.length > MAX_ITEM_BYTES) return undefined;
  const decoded = decodeSourceJson(file.bytes, LONE);
  return decoded.ok ? decoded.value : undefined;
}

/** The members of an array, and those of a chain that was exported; of anything else the value itself. */
function* membersOf(
  { at, bytes, value }: { at: HostPlace; bytes: Uint8Array; value: SourceValue },
  kind: PartKind | undefined,
  group: string,
): Generator<Part, void, void> {
  if (Array.isArray(value)) {
    for (const [i, member] of (value as readonly SourceValue[]).entries()) {
      const place = { ...at, pointer: `${at.pointer ?? ''}/${i}` };
      const part = { kind: kind ?? kindOf(member), at: place, bytes: stableBytes(member), value: member };
      yield { ...part, group };
      yield* chainOf(place, member);
    }
    return;
  }
  const own = kind ?? kindOf(value);
  // An entry of a chain is written by the host in bundles and in answers, not always alike: it counts in one form.
  yield { kind: own, at, bytes: own === 'chain' ? stableBytes(value) : bytes, value, group };
  yield* chainOf(at, value);
}

/** The entries of a chain that is in an answer. */
function* chainOf(at: HostPlace, value: SourceValue): Generator<Part, void, void> {
  const [chain, within] = chainIn(value);
  const pointer = `${at.pointer ?? ''}${within}`;
  const group = `${at.line === undefined ? at.file : `${at.file}:${at.line}`}${pointer}`;
  for (const [i, member] of chain.entries()) {
    const place = { ...at, pointer: `${pointer}/${i}` };
    yield { kind: 'chain', at: place, bytes: stableBytes(member), value: member, group };
  }
}

/** The entries of an export of the audit chain, or of the answer that holds one. */
function chainIn(value: SourceValue): readonly [readonly SourceValue[], string] {
  const own = listAt(value, 'chain');
  if (own !== undefined) return [own, '/chain'];
  return [listAt(value, 'response', 'chain') ?? [], '/response/chain'];
}

function kindOf(value: SourceValue): PartKind {
  if (!(value instanceof SourceObject)) return 'unknown';
  if (textAt(value, 'method') !== undefined && textAt(value, 'path') !== undefined) return 'http';
  if (isEnvelope(value)) return 'envelope';
  if (isChainEntry(value)) return 'chain';
  if (listAt(value, 'chain')?.some(isChainEntry) === true) return 'export';
  if (textAt(value, 'eventType') !== undefined && value.has('eventData')) return 'audit';
  if (listAt(value, 'steps') !== undefined && textAt(value, 'id') !== undefined) return 'trace';
  if (value.has('telemetry_public_jwk')) return 'adapter';
  if (value.has('public_jwk') && value.has('adapter_id')) return 'key';
  return payloadTypeOf(value) === undefined ? 'unknown' : 'payload';
}

/** The type of a payload that is without its envelope. */
export function payloadTypeOf(value: SourceObject): string | undefined {
  if (textAt(value, 'execution_id') === undefined || textAt(value, 'trace_id') === undefined)
    return undefined;
  if (numberAt(value, 'cost_usd') !== undefined) return 'cost';
  if (numberAt(value, 'step_count') !== undefined) return 'metrics';
  if (value.has('trace')) return 'trace';
  if (value.has('violation_type')) return 'violations';
  return value.has('event_type') ? 'audit' : undefined;
}
