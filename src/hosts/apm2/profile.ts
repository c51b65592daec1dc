/**
 * AgentAdapterProfileV1: how apm2 runs another vendor's agent. A profile is chosen by the BLAKE3 of its canonical form and by nothing else,
 * so that whoever knows the hash knows the profile.
 */

import { printable } from '../../base/bytes/printable.js';
import type { ValueFault } from '../../base/fault.js';
import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { blake3Hex, cacBytes, decodeCacSource } from '../shared/forms/cac.js';
import { numberAt, textAt } from '../shared/values.js';
import { MAX_ARGS_SIZE } from './tool-intent.js';
import { Checked, type ProfileCode } from './checked.js';

export const PROFILE_SCHEMA = 'apm2.agent_adapter_profile.v1';

/** What may be wrong with a profile that is used all the same. */
const REMARKS: ReadonlySet<ProfileCode> = new Set(['SPELLING', 'TIMEOUT_ZERO', 'NOT_CANONICAL']);

/** Whether a profile may be used in spite of the fault. */
export function isRemark(code: ProfileCode): boolean {
  return REMARKS.has(code);
}

/** Caps of an episode as a profile or a budget states them, by unit; 0 is no cap. */
type BudgetCaps = ReadonlyMap<string, string>;

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
  const whole = new Checked(value);
  const { faults } = whole;
  const canonical = cacBytes(value);
  const hash = canonical.ok ? blake3Hex(canonical.value) : undefined;
  if (!canonical.ok) whole.fault('NO_CANONICAL_FORM', canonical.fault.expected, canonical.fault.actual);
  if (value instanceof SourceObject) checkProfile(whole);
  else whole.fault('NOT_AN_OBJECT', 'an object');
  const isUsable = hash !== undefined && faults.every(({ code }) => isRemark(code));
  return { profile: isUsable ? profileOf(value as SourceObject, hash) : undefined, hash, faults };
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

function checkProfile(profile: Checked): void {
  profile.object(REQUIRED, ['tool_bridge']);
  const schema = profile.get('schema').text(MAX_NAME);
  if (schema !== undefined && schema !== PROFILE_SCHEMA)
    profile.get('schema').fault('VALUE_UNKNOWN', PROFILE_SCHEMA);
  profile.get('profile_id').text(MAX_NAME, true);
  checkMode(profile.get('adapter_mode'), ADAPTER_MODES);
  checkMode(profile.get('input_mode'), INPUT_MODES);
  checkMode(profile.get('output_mode'), OUTPUT_MODES);
  for (const path of [profile.get('command'), profile.get('cwd')])
    if (path.text(MAX_TEXT, true)?.includes('..') === true) path.fault('PATH_TRAVERSAL', 'a path without ..');
  profile.get('requires_pty').bool();
  for (const argument of profile.get('args_template').list(256)) argument.text(MAX_TEXT);
  for (const pair of profile.get('env_template').list(128)) checkEnvironment(pair);
  checkMaps(profile);
  checkProbe(profile);
  checkBridge(profile);
  const health = profile.get('health_checks').object([...TIMEOUTS, 'max_stalls']);
  for (const name of TIMEOUTS)
    if (health?.get(name).count() === 0n) health.get(name).fault('TIMEOUT_ZERO', 'more than 0');
  health?.get('max_stalls').count(32);
  const budget = profile.get('budget_defaults').object(Object.keys(BUDGET_UNITS));
  for (const name of Object.keys(BUDGET_UNITS)) budget?.get(name).count(name === 'max_tool_calls' ? 32 : 64);
  const policy = profile.get('evidence_policy').object([...POLICIES, 'max_recorded_output_bytes']);
  for (const name of POLICIES) policy?.get(name).bool();
  policy?.get('max_recorded_output_bytes').count();
}

/** The RFC writes `stream-json`, the code `stream_json`. */
function checkMode(mode: Checked, modes: readonly string[]): void {
  const stated = mode.text(MAX_NAME);
  if (stated === undefined || modes.includes(stated)) return;
  const spelled = stated.replace('-', '_');
  if (modes.includes(spelled)) mode.fault('SPELLING', spelled);
  else mode.fault('VALUE_UNKNOWN', modes.join(', '));
}

function checkEnvironment(pair: Checked): void {
  const [name, value] = Array.isArray(pair.value) && pair.value.length === 2 ? pair.list(2) : [];
  if (name === undefined) return pair.fault('TYPE_MISMATCH', 'a name and a value');
  const text = name.text(MAX_NAME, true);
  value?.text(MAX_TEXT);
  if (text !== undefined && !/^[A-Za-z0-9_]*$/.test(text))
    name.fault('ENV_NAME_INVALID', 'letters, digits and _');
}

function checkMaps(profile: Checked): void {
  for (const [name, flags] of profile.get('permission_mode_map').members(64)) {
    flags.named(name, MAX_NAME);
    for (const flag of flags.list(32)) flag.text(MAX_NAME);
  }
  for (const [name, kernelClass] of profile.get('capability_map').members(128)) {
    kernelClass.named(name, MAX_NAME);
    kernelClass.text(MAX_NAME);
  }
}

/** What only Rust's regular expressions have: they are not compiled here. */
const RUST_ONLY = /\(\?[a-zA-Z-]*[):P]|\\[AzpPx]|\[\[?:/;

function checkProbe(profile: Checked): void {
  const probe = profile.get('version_probe').object(['command', 'regex']);
  probe?.get('command').text(MAX_TEXT, true);
  const regex = probe?.get('regex').text(MAX_REGEX, true);
  if (regex === undefined || regex.length > MAX_REGEX || RUST_ONLY.test(regex) || compiles(regex)) return;
  probe?.get('regex').fault('REGEX_INVALID', 'a regular expression', printable(regex, 80));
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

function checkBridge(profile: Checked): void {
  const bridge = profile.get('tool_bridge').object(BRIDGE);
  if (bridge === undefined) return;
  bridge.get('enabled').bool();
  bridge.get('protocol_version').text(MAX_NAME);
  bridge.get('nonce_prefix').text(MAX_TEXT);
  for (const name of ['max_args_size', 'max_result_size', 'tool_timeout_ms']) {
    const limit = bridge.get(name);
    const count = limit.count();
    if (count === 0n) limit.fault('OUT_OF_RANGE', 'more than 0');
    if (name === 'max_args_size' && count !== undefined && count > MAX_ARGS_SIZE)
      limit.fault('OUT_OF_RANGE', `at most ${MAX_ARGS_SIZE}`);
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
