/**
 * What of an adapter profile says how its agent is run. A profile is chosen by its content address: what was not in the profile whose hash
 * is recorded does not run.
 */

import { sha256Base64url } from '../../../base/bytes/sha256.js';
import { SourceNumber, type SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import { cacBytes, decodeCacSource } from '../../shared/forms/cac.js';
import { listAt, numberAt, textAt, valueAt } from '../../shared/values.js';
import { type AdapterProfile, readAdapterProfile } from '../profile.js';
import { MAX_ARGS_SIZE } from '../tool-intent.js';

/** How a prompt is given to an agent, and how it is answered. */
export type InputMode = 'arg' | 'stdin' | 'file' | 'stream_json';

export interface LaunchProfile {
  readonly profile: AdapterProfile;
  /** The canonical form, which the hash is of. */
  readonly canonical: Uint8Array;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly (readonly [name: string, value: string])[];
  readonly cwd: string;
  readonly requiresPty: boolean;
  readonly inputMode: InputMode;
  readonly outputMode: string;
  /** Flags by the tiers of permission that they stand for. */
  readonly permissionFlags: ReadonlyMap<string, readonly string[]>;
  readonly probe: { readonly command: string; readonly regex: string };
  /** Undefined where the profile has no bridge, or says that it is off. */
  readonly bridge: ToolBridge | undefined;
  /** In milliseconds; 0 is no limit. */
  readonly startupTimeoutMs: number;
  readonly stallMs: number;
  readonly maxStalls: number;
  /** Undefined: no cap. */
  readonly wallClockMs: number | undefined;
  readonly maxEvidenceBytes: number | undefined;
  /** Of the agent's own output, what its log keeps. */
  readonly maxOutputBytes: number;
}

export interface ToolBridge {
  readonly noncePrefix: string;
  readonly maxArgsSize: number;
  readonly maxResultSize: number;
  readonly toolTimeoutMs: number;
}

/** Why a profile cannot be run: a code of the profile's own check, or one of these. */
export type LaunchFault = { readonly code: string; readonly pointer: string };

/** The longest profile, in bytes. */
export const MAX_PROFILE_BYTES = 1024 * 1024;

const DEFAULT_ARGS_SIZE = 1024 * 1024;
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Reads a profile to run it. Another spelling of its JSON is the same profile. */
export function readLaunchProfile(
  bytes: Uint8Array,
): { readonly launch: LaunchProfile } | { readonly fault: LaunchFault } {
  if (bytes.length > MAX_PROFILE_BYTES) return { fault: { code: 'TOO_LONG', pointer: '' } };
  const { profile, faults } = readAdapterProfile(bytes);
  const decoded = decodeCacSource(bytes);
  const canonical = decoded.ok ? cacBytes(decoded.value) : undefined;
  if (profile === undefined || !decoded.ok || canonical?.ok !== true) {
    const [fault = { code: 'NO_CANONICAL_FORM', pointer: '' }] = faults;
    return { fault: { code: fault.code, pointer: fault.pointer } };
  }
  return { launch: launchOf(decoded.value as SourceObject, profile, canonical.value) };
}

/** The names of a profile: its content address, and the SHA-256 of the same bytes; undefined for what has none. */
export function namesOfProfile(
  bytes: Uint8Array,
): { readonly blake3: string; readonly sha256: string } | undefined {
  const { hash } = readAdapterProfile(bytes);
  const decoded = decodeCacSource(bytes);
  const canonical = decoded.ok ? cacBytes(decoded.value) : undefined;
  if (hash === undefined || canonical?.ok !== true) return undefined;
  return { blake3: hash, sha256: sha256Base64url(canonical.value) };
}

function launchOf(value: SourceObject, profile: AdapterProfile, canonical: Uint8Array): LaunchProfile {
  const wall = countAt(value, 'budget_defaults', 'max_wall_clock_ms');
  const evidence = countAt(value, 'budget_defaults', 'max_evidence_bytes');
  const keepsOutput = valueAt(value, 'evidence_policy', 'record_full_output') === true;
  return {
    profile,
    canonical,
    command: textAt(value, 'command') ?? '',
    args: textsOf(listAt(value, 'args_template')),
    env: (listAt(value, 'env_template') ?? []).map((pair) => {
      const [name = '', content = ''] = textsOf(pair as readonly SourceValue[]);
      return [name, content] as const;
    }),
    cwd: textAt(value, 'cwd') ?? '',
    requiresPty: valueAt(value, 'requires_pty') === true,
    inputMode: (textAt(value, 'input_mode') ?? '').replace('-', '_') as InputMode,
    outputMode: profile.outputMode,
    permissionFlags: new Map(
      (value.get('permission_mode_map') as SourceObject)
        .entries()
        .map(([tier, flags]) => [tier, textsOf(flags as readonly SourceValue[])]),
    ),
    probe: {
      command: textAt(value, 'version_probe', 'command') ?? '',
      regex: profile.versionRegex,
    },
    bridge: bridgeOf(value),
    startupTimeoutMs: countAt(value, 'health_checks', 'startup_timeout_ms') ?? 0,
    stallMs: countAt(value, 'health_checks', 'stall_threshold_ms') ?? 0,
    maxStalls: countAt(value, 'health_checks', 'max_stalls') ?? 0,
    wallClockMs: wall === 0 ? undefined : wall,
    maxEvidenceBytes: evidence === 0 ? undefined : evidence,
    maxOutputBytes: keepsOutput ? (countAt(value, 'evidence_policy', 'max_recorded_output_bytes') ?? 0) : 0,
  };
}

function bridgeOf(value: SourceObject): ToolBridge | undefined {
  if (valueAt(value, 'tool_bridge', 'enabled') !== true) return undefined;
  const maxArgsSize = countAt(value, 'tool_bridge', 'max_args_size') ?? DEFAULT_ARGS_SIZE;
  return {
    noncePrefix: textAt(value, 'tool_bridge', 'nonce_prefix') ?? '',
    maxArgsSize: Math.min(maxArgsSize, MAX_ARGS_SIZE),
    maxResultSize: countAt(value, 'tool_bridge', 'max_result_size') ?? Number.MAX_SAFE_INTEGER,
    toolTimeoutMs: Math.min(countAt(value, 'tool_bridge', 'tool_timeout_ms') ?? MAX_TIMER_MS, MAX_TIMER_MS),
  };
}

/** A count of 64 bits as a number; what is beyond all that is ever counted here is the largest. */
function countAt(value: SourceObject, ...path: readonly string[]): number | undefined {
  const text = numberAt(value, ...path);
  return text === undefined ? undefined : Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

function textsOf(list: readonly SourceValue[] | undefined): string[] {
  return (list ?? []).map((each) =>
    each instanceof SourceNumber ? each.text : typeof each === 'string' ? each : '',
  );
}
