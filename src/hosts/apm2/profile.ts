/**
 * AgentAdapterProfileV1: how apm2 runs another vendor's agent. A profile is chosen by the BLAKE3 of its canonical form and by nothing else,
 * so that whoever knows the hash knows the profile.
 */

import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import type { ValueFault } from '../../base/fault.js';
import { jsonPointer } from '../../base/json/pointer.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { blake3Hex, cacBytes, decodeCacSource } from '../shared/forms/cac.js';
import { numberAt, textAt } from '../shared/values.js';
import { MAX_ARGS_SIZE } from './tool-intent.js';

export const PROFILE_SCHEMA = 'apm2.agent_adapter_profile.v1';

/** What is wrong with a profile. The last three are remarks: the profile may be used. */
export type ProfileCode =
  | 'NOT_AN_OBJECT'
  | 'MEMBER_MISSING'
  | 'MEMBER_UNKNOWN'
  | 'TYPE_MISMATCH'
  | 'VALUE_UNKNOWN'
  | 'EMPTY'
  | 'TOO_LONG'
  | 'TOO_MANY'
  | 'OUT_OF_RANGE'
  | 'PATH_TRAVERSAL'
  | 'ENV_NAME_INVALID'
  | 'REGEX_INVALID'
  | 'NO_CANONICAL_FORM'
  | 'SPELLING'
  | 'TIMEOUT_ZERO'
  | 'NOT_CANONICAL';

const REMARKS: ReadonlySet<ProfileCode> = new Set(['SPELLING', 'TIMEOUT_ZERO', 'NOT_CANONICAL']);

/** Whether a profile may be used in spite of the fault. */
export function isRemark(code: ProfileCode): boolean {
  return REMARKS.has(code);
}

/** Caps of an episode as a profile or a budget states them, by unit; 0 is no cap. */
type BudgetCaps = ReadonlyMap<string, string>;

/** What is read of a profile. */
export interface AdapterProfile {
  /** 64 hexadecimal digits: BLAKE3 of the canonical form. */
  readonly hash: string;
  readonly profileId: string;
  readonly adapterMode: string;
  readonly outputMode: string;
  /** Kernel tool classes by the tools that the agent names. */
  readonly capabilityMap: ReadonlyMap<string, string>;
  readonly noncePrefix: string | undefined;
  readonly maxArgsSize: number | undefined;
  readonly versionRegex: string;
  readonly budget: BudgetCaps;
}

/** What {@link readAdapterProfile} finds. */
export interface ProfileReading {
  /** Undefined where a fault that is no remark stands against it. */
  readonly profile: AdapterProfile | undefined;
  /** The content address: also of a profile that may not be used, where it has a canonical form. */
  readonly hash: string | undefined;
  readonly faults: readonly ValueFault<ProfileCode>[];
}

const BUDGET_UNITS: Readonly<Record<string, string>> = {
  max_tool_calls: 'calls',
  max_tokens: 'tokens',
  max_wall_clock_ms: 'time.ms',
  max_evidence_bytes: 'bytes.evidence',
};

/** Reads a profile from the bytes of its JSON, in whatever spelling. Whether that spelling is the canonical one is among the remarks. */
export function readAdapterProfile(bytes: Uint8Array): ProfileReading {
  const decoded = decodeCacSource(bytes);
  if (!decoded.ok) {
    const { expected, actual } = decoded.fault;
    return {
      profile: undefined,
      hash: undefined,
      faults: [{ code: 'NO_CANONICAL_FORM', pointer: '', expected, actual }],
    };
  }
  const reading = checkAdapterProfile(decoded.value);
  const canonical = cacBytes(decoded.value);
  if (!canonical.ok || sameBytes(canonical.value, bytes)) return reading;
  const remark = {
    code: 'NOT_CANONICAL',
    pointer: '',
    expected: 'the canonical form, as the content address covers it',
    actual: `${bytes.length} bytes in another spelling`,
  } as const;
  return { ...reading, faults: [...reading.faults, remark] };
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** As {@link readAdapterProfile}, of a value that was read already. */
export function checkAdapterProfile(value: SourceValue): ProfileReading {
  const check = new Check();
  const canonical = cacBytes(value);
  const hash = canonical.ok ? blake3Hex(canonical.value) : undefined;
  if (!canonical.ok) check.fault('NO_CANONICAL_FORM', [], canonical.fault.expected, canonical.fault.actual);
  if (value instanceof SourceObject) checkProfile(check, value);
  else check.fault('NOT_AN_OBJECT', [], 'an object', describe(value));
  const { faults } = check;
  const isUsable = hash !== undefined && faults.every(({ code }) => isRemark(code));
  return { profile: isUsable ? profileOf(value as SourceObject, hash) : undefined, hash, faults };
}

type Path = readonly (string | number)[];

class Check {
  readonly faults: ValueFault<ProfileCode>[] = [];

  fault(code: ProfileCode, path: Path, expected: string, actual: string): void {
    this.faults.push({ code, pointer: jsonPointer([...path]), expected, actual });
  }

  /** Looks at members; what is missing or not known is a fault. */
  members(
    object: SourceObject,
    path: Path,
    required: readonly string[],
    optional: readonly string[] = [],
  ): void {
    for (const name of required)
      if (!object.has(name)) this.fault('MEMBER_MISSING', [...path, name], 'a value', 'absent');
    for (const name of object.keys())
      if (!required.includes(name) && !optional.includes(name))
        this.fault('MEMBER_UNKNOWN', [...path, name], 'no such member', describe(object.get(name)!));
  }

  object(value: SourceValue | undefined, path: Path): SourceObject | undefined {
    if (value instanceof SourceObject) return value;
    if (value !== undefined) this.fault('TYPE_MISMATCH', path, 'an object', describe(value));
    return undefined;
  }

  list(value: SourceValue | undefined, path: Path, most: number): readonly SourceValue[] {
    if (value === undefined) return [];
    if (!Array.isArray(value)) {
      this.fault('TYPE_MISMATCH', path, 'an array', describe(value));
      return [];
    }
    const list = value as readonly SourceValue[];
    if (list.length > most) this.fault('TOO_MANY', path, `at most ${most}`, String(list.length));
    return list.slice(0, most);
  }

  /** A text of at most so many bytes of UTF-8. */
  text(value: SourceValue | undefined, path: Path, most: number, isRequired = false): string | undefined {
    if (value === undefined) return undefined;
    if (typeof value !== 'string') {
      this.fault('TYPE_MISMATCH', path, 'a text', describe(value));
      return undefined;
    }
    const size = encodeUtf8(value).length;
    if (size > most) this.fault('TOO_LONG', path, `at most ${most} bytes`, `${size} bytes`);
    if (isRequired && value === '') this.fault('EMPTY', path, 'at least one character', 'none');
    return value;
  }

  bool(value: SourceValue | undefined, path: Path): void {
    if (value !== undefined && typeof value !== 'boolean')
      this.fault('TYPE_MISMATCH', path, 'true or false', describe(value));
  }

  /** A whole number without sign. */
  count(value: SourceValue | undefined, path: Path, bits: 32 | 64): bigint | undefined {
    if (value === undefined) return undefined;
    if (!(value instanceof SourceNumber) || !/^\d{1,20}$/.test(value.text)) {
      this.fault('TYPE_MISMATCH', path, `a whole number of ${bits} bits`, describe(value));
      return undefined;
    }
    const count = BigInt(value.text);
    if (count >= 2n ** BigInt(bits))
      this.fault('OUT_OF_RANGE', path, `a whole number of ${bits} bits`, value.text);
    return count;
  }
}

function describe(value: SourceValue): string {
  if (value === null) return 'null';
  if (value instanceof SourceNumber) return printable(value.text, 40);
  if (value instanceof SourceObject) return 'an object';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  return printable(value as string, 40);
}

const REQUIRED = [
  ...[
    'schema',
    'profile_id',
    'adapter_mode',
    'command',
    'args_template',
    'env_template',
    'cwd',
    'requires_pty',
  ],
  ...['input_mode', 'output_mode', 'permission_mode_map', 'capability_map', 'version_probe', 'health_checks'],
  ...['budget_defaults', 'evidence_policy'],
];
const ADAPTER_MODES = ['black_box', 'structured_output', 'mcp_bridge', 'hooked_vendor'];
const INPUT_MODES = ['arg', 'stdin', 'file', 'stream_json'];
const OUTPUT_MODES = ['raw', 'json', 'jsonl', 'stream_json'];
const TIMEOUTS = [
  'startup_timeout_ms',
  'heartbeat_interval_ms',
  'heartbeat_timeout_ms',
  'stall_threshold_ms',
];
const POLICIES = [
  'record_full_output',
  'record_tool_traces',
  'record_timing',
  'record_token_usage',
  'redact_sensitive',
];
const BRIDGE = [
  'enabled',
  'protocol_version',
  'nonce_prefix',
  'max_args_size',
  'max_result_size',
  'tool_timeout_ms',
];
const MAX_TEXT = 4096;
const MAX_NAME = 256;
const MAX_REGEX = 1024;

function checkProfile(check: Check, profile: SourceObject): void {
  check.members(profile, [], REQUIRED, ['tool_bridge']);
  const schema = check.text(profile.get('schema'), ['schema'], MAX_NAME);
  if (schema !== undefined && schema !== PROFILE_SCHEMA)
    check.fault('VALUE_UNKNOWN', ['schema'], PROFILE_SCHEMA, printable(schema, 40));
  check.text(profile.get('profile_id'), ['profile_id'], MAX_NAME, true);
  checkMode(check, profile, 'adapter_mode', ADAPTER_MODES);
  checkMode(check, profile, 'input_mode', INPUT_MODES);
  checkMode(check, profile, 'output_mode', OUTPUT_MODES);
  for (const name of ['command', 'cwd']) {
    const path = check.text(profile.get(name), [name], MAX_TEXT, true);
    if (path?.includes('..') === true)
      check.fault('PATH_TRAVERSAL', [name], 'a path without ..', printable(path, 80));
  }
  check.bool(profile.get('requires_pty'), ['requires_pty']);
  for (const [i, argument] of check.list(profile.get('args_template'), ['args_template'], 256).entries())
    check.text(argument, ['args_template', i], MAX_TEXT);
  checkEnvironment(check, profile);
  checkMaps(check, profile);
  checkProbe(check, profile);
  checkBridge(check, profile);
  const health = check.object(profile.get('health_checks'), ['health_checks']);
  if (health !== undefined) {
    check.members(health, ['health_checks'], [...TIMEOUTS, 'max_stalls']);
    for (const name of TIMEOUTS) {
      const path = ['health_checks', name];
      if (check.count(health.get(name), path, 64) === 0n)
        check.fault('TIMEOUT_ZERO', path, 'more than 0', '0');
    }
    check.count(health.get('max_stalls'), ['health_checks', 'max_stalls'], 32);
  }
  const budget = check.object(profile.get('budget_defaults'), ['budget_defaults']);
  if (budget !== undefined) {
    check.members(budget, ['budget_defaults'], Object.keys(BUDGET_UNITS));
    for (const name of Object.keys(BUDGET_UNITS))
      check.count(budget.get(name), ['budget_defaults', name], name === 'max_tool_calls' ? 32 : 64);
  }
  const policy = check.object(profile.get('evidence_policy'), ['evidence_policy']);
  if (policy !== undefined) {
    check.members(policy, ['evidence_policy'], [...POLICIES, 'max_recorded_output_bytes']);
    for (const name of POLICIES) check.bool(policy.get(name), ['evidence_policy', name]);
    const name = 'max_recorded_output_bytes';
    check.count(policy.get(name), ['evidence_policy', name], 64);
  }
}

/** The RFC writes `stream-json`, the code `stream_json`. */
function checkMode(check: Check, profile: SourceObject, name: string, modes: readonly string[]): void {
  const mode = check.text(profile.get(name), [name], MAX_NAME);
  if (mode === undefined || modes.includes(mode)) return;
  const actual = printable(mode, 40);
  if (modes.includes(mode.replace('-', '_'))) check.fault('SPELLING', [name], mode.replace('-', '_'), actual);
  else check.fault('VALUE_UNKNOWN', [name], modes.join(', '), actual);
}

function checkEnvironment(check: Check, profile: SourceObject): void {
  for (const [i, pair] of check.list(profile.get('env_template'), ['env_template'], 128).entries()) {
    const path = ['env_template', i];
    if (!Array.isArray(pair) || pair.length !== 2) {
      check.fault('TYPE_MISMATCH', path, 'a name and a value', describe(pair));
      continue;
    }
    const [name, value] = pair as readonly SourceValue[];
    const text = check.text(name, [...path, 0], MAX_NAME, true);
    check.text(value, [...path, 1], MAX_TEXT);
    if (text !== undefined && !/^[A-Za-z0-9_]*$/.test(text))
      check.fault('ENV_NAME_INVALID', [...path, 0], 'letters, digits and _', printable(text, 40));
  }
}

function checkMaps(check: Check, profile: SourceObject): void {
  const modes = check.object(profile.get('permission_mode_map'), ['permission_mode_map'])?.entries() ?? [];
  if (modes.length > 64) check.fault('TOO_MANY', ['permission_mode_map'], 'at most 64', String(modes.length));
  for (const [name, flags] of modes.slice(0, 64)) {
    const path = ['permission_mode_map', name];
    check.text(name, path, MAX_NAME);
    for (const [i, flag] of check.list(flags, path, 32).entries()) check.text(flag, [...path, i], MAX_NAME);
  }
  const tools = check.object(profile.get('capability_map'), ['capability_map'])?.entries() ?? [];
  if (tools.length > 128) check.fault('TOO_MANY', ['capability_map'], 'at most 128', String(tools.length));
  for (const [name, kernelClass] of tools.slice(0, 128)) {
    check.text(name, ['capability_map', name], MAX_NAME);
    check.text(kernelClass, ['capability_map', name], MAX_NAME);
  }
}

/** What only Rust's regular expressions have: they are not compiled here. */
const RUST_ONLY = /\(\?[a-zA-Z-]*[):P]|\\[AzpPx]|\[\[?:/;

function checkProbe(check: Check, profile: SourceObject): void {
  const probe = check.object(profile.get('version_probe'), ['version_probe']);
  if (probe === undefined) return;
  check.members(probe, ['version_probe'], ['command', 'regex']);
  check.text(probe.get('command'), ['version_probe', 'command'], MAX_TEXT, true);
  const path = ['version_probe', 'regex'];
  const regex = check.text(probe.get('regex'), path, MAX_REGEX, true);
  if (regex === undefined || regex.length > MAX_REGEX || RUST_ONLY.test(regex) || compiles(regex)) return;
  check.fault('REGEX_INVALID', path, 'a regular expression', printable(regex, 80));
}

/** It is compiled and never run. */
function compiles(regex: string): boolean {
  try {
    return new RegExp(regex) instanceof RegExp;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

function checkBridge(check: Check, profile: SourceObject): void {
  const bridge = check.object(profile.get('tool_bridge'), ['tool_bridge']);
  if (bridge === undefined) return;
  check.members(bridge, ['tool_bridge'], BRIDGE);
  check.bool(bridge.get('enabled'), ['tool_bridge', 'enabled']);
  check.text(bridge.get('protocol_version'), ['tool_bridge', 'protocol_version'], MAX_NAME);
  check.text(bridge.get('nonce_prefix'), ['tool_bridge', 'nonce_prefix'], MAX_TEXT);
  for (const name of ['max_args_size', 'max_result_size', 'tool_timeout_ms']) {
    const path = ['tool_bridge', name];
    const count = check.count(bridge.get(name), path, 64);
    if (count === 0n) check.fault('OUT_OF_RANGE', path, 'more than 0', '0');
    if (name === 'max_args_size' && count !== undefined && count > MAX_ARGS_SIZE)
      check.fault('OUT_OF_RANGE', path, `at most ${MAX_ARGS_SIZE}`, String(count));
  }
}

function profileOf(value: SourceObject, hash: string): AdapterProfile {
  const tools = value.get('capability_map') as SourceObject;
  const maxArgsSize = numberAt(value, 'tool_bridge', 'max_args_size');
  const mode = textAt(value, 'output_mode') ?? '';
  return {
    hash,
    profileId: textAt(value, 'profile_id') ?? '',
    adapterMode: textAt(value, 'adapter_mode') ?? '',
    outputMode: mode.replace('-', '_'),
    capabilityMap: new Map(
      tools
        .entries()
        .map(([name, kernelClass]) => [name, typeof kernelClass === 'string' ? kernelClass : '']),
    ),
    noncePrefix: textAt(value, 'tool_bridge', 'nonce_prefix'),
    maxArgsSize: maxArgsSize === undefined ? undefined : Number(maxArgsSize),
    versionRegex: textAt(value, 'version_probe', 'regex') ?? '',
    budget: new Map(
      Object.entries(BUDGET_UNITS).map(([name, unit]) => [
        unit,
        numberAt(value, 'budget_defaults', name) ?? '0',
      ]),
    ),
  };
}
