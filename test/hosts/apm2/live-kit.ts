/** Episodes of small agents that are scripted in a shell, run by the kernel over a new ledger. */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { generatePrivateKey } from '../../../src/format/key/private-key.js';
import { createSigner } from '../../../src/format/signature/signer.js';
import { Gate, type GateOptions } from '../../../src/gate/gate.js';
import type { KernelTools } from '../../../src/gate/kernel/kernel-tool.js';
import {
  apm2,
  episodeChecker,
  type EpisodeResult,
  runAgent,
  type RunAgentOptions,
} from '../../../src/hosts/apm2/index.js';
import { appendImport, firstTimeOf, planReading, readKnownLedger } from '../../../src/hosts/shared/import.js';
import { reportImport } from '../../../src/hosts/shared/import-report.js';
import { Ledger } from '../../../src/log/writer/ledger.js';
import { readHost } from '../../../src/hosts/shared/read-host.js';
import type { HostFile, HostFinding } from '../../../src/hosts/shared/host.js';
import { readRecords } from '../../../src/log/read/read-records.js';
import { verifyLedger } from '../../../src/log/read/verify-ledger.js';
import type { Report } from '../../../src/rules/report/report.js';
import { openLedger } from '../../../src/log/tile/tile-tree.js';

type Members = Readonly<Record<string, unknown>>;

/** What every agent's script begins with. */
export const SHELL = [
  "b64() { printf '%s' \"$1\" | base64 -w0 | tr '+/' '-_' | tr -d '='; }",
  'ask() { echo "⟦TI1 $TI_NONCE⟧ $1 $2 $(b64 "$3")"; read -r answer; }',
  '',
].join('\n');

export const PROFILE: Members = {
  schema: 'apm2.agent_adapter_profile.v1',
  profile_id: 'local-test',
  adapter_mode: 'black_box',
  command: '{command}',
  args_template: ['{args}'],
  env_template: [],
  cwd: '.',
  requires_pty: false,
  input_mode: 'stdin',
  output_mode: 'raw',
  permission_mode_map: {},
  tool_bridge: {
    enabled: true,
    protocol_version: 'TI1',
    nonce_prefix: 'local',
    max_args_size: 1024,
    max_result_size: 1024,
    tool_timeout_ms: 60_000,
  },
  capability_map: { 'fs.read': 'fs.read', look: 'fs.list' },
  version_probe: { command: 'echo local 1.0', regex: '^local 1\\.0$' },
  health_checks: {
    startup_timeout_ms: 30_000,
    heartbeat_interval_ms: 5000,
    heartbeat_timeout_ms: 15_000,
    stall_threshold_ms: 60_000,
    max_stalls: 0,
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
    redact_sensitive: false,
    max_recorded_output_bytes: 1_048_576,
  },
};

/** The profile with members of its parts changed. */
export function profileWith(changes: Members = {}): Uint8Array {
  const changed = Object.entries(changes).map(([name, value]): [string, unknown] => {
    const isPart = typeof value === 'object' && value !== null && !Array.isArray(value);
    const isWhole = name === 'capability_map' || name === 'permission_mode_map';
    return [name, isPart && !isWhole ? { ...(PROFILE[name] as Members), ...(value as Members) } : value];
  });
  return Buffer.from(JSON.stringify({ ...PROFILE, ...Object.fromEntries(changed) }));
}

/** Tools that touch nothing: `fs.read` gives back the path, in as many copies as `times` says. */
export function fakeTools(act?: (args: Members, signal?: AbortSignal) => Promise<Uint8Array>): KernelTools {
  return {
    names: ['fs.read'],
    definitions: [],
    isolation: 'none',
    plan(tool, args) {
      if (tool !== 'fs.read') return { denied: 'TOOL_DISABLED', reason: 'it is off' };
      const { path } = args as { path?: unknown };
      if (typeof path !== 'string') return { denied: 'INVALID_ARGUMENTS', reason: 'no path' };
      return {
        toolName: 'fs.read',
        resources: [{ kind: 'path', reference: path }],
        reserve: { calls: 1, 'time.ms': 1000, 'bytes.evidence': 4096 },
        async run(signal) {
          const since = performance.now();
          const used = (bytes: number) => ({
            calls: 1,
            'time.ms': Math.min(1000, Math.ceil(performance.now() - since)),
            'bytes.evidence': bytes,
          });
          try {
            const output = act === undefined ? Buffer.from(path) : await act(args as Members, signal);
            return { outcome: 'success', output, used: used(output.length) };
          } catch {
            const output = Buffer.from('{"error":"FAILED"}');
            return { outcome: 'failure', errorCode: 'FAILED', output, used: used(output.length) };
          }
        },
      };
    },
    close: () => Promise.resolve(),
  };
}

export interface Ran {
  readonly result: EpisodeResult;
  readonly folder: string;
  readonly ledger: string;
  /** The captured log. */
  readonly log: string;
}

/** A folder that is gone after the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kernel-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens a gate over a new ledger of the folder. */
export async function openGate(folder: string, options: GateOptions = {}): Promise<Gate> {
  const gate = await Gate.open(join(folder, 'ledger.jsonl'), {
    create: { origin: 'example.com/kernel' },
    signer: createSigner(generatePrivateKey()),
    ...options,
  });
  onTestFinished(() => gate.close());
  return gate;
}

/** Runs a script as an agent. */
export async function runScript(
  script: string,
  options: Partial<RunAgentOptions> = {},
  folder = makeFolder(),
): Promise<Ran> {
  const gate = options.gate ?? (await openGate(folder));
  const workspace = join(folder, 'work');
  mkdirSync(workspace, { recursive: true });
  const agent = join(folder, 'agent.sh');
  writeFileSync(agent, `${SHELL}${script}\n`);
  const result = await runAgent({
    gate,
    tools: fakeTools(),
    profile: profileWith(),
    command: ['bash', agent],
    workspace,
    graceMs: 300,
    ...options,
  });
  return {
    result,
    folder,
    ledger: join(folder, 'ledger.jsonl'),
    log: readFileSync(join(result.record, 'log.txt'), 'utf8'),
  };
}

/** The files of a record. */
export function filesOf(record: string): HostFile[] {
  return readdirSync(record)
    .sort()
    .map((name) => ({ name: join(record, name), bytes: readFileSync(join(record, name)) }));
}

/** What the conformance check finds that is wrong: its rules with their codes. */
export function wrongIn(record: string): string[] {
  return severe(episodeChecker.check(filesOf(record)).findings);
}

export function severe(findings: readonly HostFinding[]): string[] {
  return findings.filter(({ severity }) => severity === 'error').map(({ rule, code }) => `${rule} ${code}`);
}

/** The events of a ledger. */
export async function eventsOf(ledger: string): Promise<Members[]> {
  const events: Members[] = [];
  for await (const { event } of readRecords(await openLedger(ledger))) events.push(event);
  return events;
}

export function verify(ledger: string): Promise<Report> {
  return verifyLedger(ledger);
}

/** What an import of a record makes of it. */
export function importOf(record: string): {
  readonly events: readonly object[];
  readonly report: ReturnType<typeof reportImport>;
} {
  const plan = planReading(apm2, readHost(apm2, filesOf(record)));
  return {
    events: plan.events.map(({ event }) => event),
    report: reportImport(plan, undefined, { files: [] }),
  };
}

/** The verdict of a ledger into which a record was imported. */
export async function importedVerdict(record: string): Promise<string> {
  const path = join(record, '..', '..', '..', 'imported.jsonl');
  const reading = readHost(apm2, filesOf(record));
  const time = firstTimeOf(reading) ?? '';
  const ledger = await Ledger.open(path, {
    create: { origin: 'example.com/imported' },
    now: () => time,
    signer: createSigner(generatePrivateKey()),
    stopsAtRefusal: true,
  });
  try {
    const plan = planReading(apm2, reading, await readKnownLedger(await openLedger(path), apm2.name));
    await appendImport(ledger, plan);
  } finally {
    await ledger.close();
  }
  return (await verify(path)).verdict;
}

/** Whether a process runs: one that has ended and that nobody has asked after yet does not. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
