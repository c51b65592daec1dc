/**
 * Runs an agent as a black box: it proposes, and the kernel alone acts. What it may do is a grant made from its profile's budget; each
 * request is decided by the gate before it is executed, and settled before it is answered. What goes wrong closes the episode: its review
 * is blocked, with a reason.
 */

import { randomBytes } from 'node:crypto';
import { isAbsolute, join, resolve } from 'node:path';
import { encodeBase64url, tryDecodeHex } from '../../../base/bytes/encoding.js';
import { sha256Base64url } from '../../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { defined } from '../../../base/defined.js';
import { NorthrootError } from '../../../base/error.js';
import { canonicalBytes } from '../../../base/json/canonicalize.js';
import { checkOptions, checkString, type OptionTypes } from '../../../base/options.js';
import { sha256Digest, type Digest } from '../../../base/value/digest.js';
import { formatInstant, parseTimestamp } from '../../../base/value/timestamp.js';
import type { Check, Meter } from '../../../format/schema/generated/types.js';
import type { Gate } from '../../../gate/gate.js';
import { isolate } from '../../../gate/kernel/isolation.js';
import type { IsolationLevel, KernelTools } from '../../../gate/kernel/kernel-tool.js';
import { ContentStore } from '../../../log/contents/content-store.js';
import { type FileSystem, nodeFileSystem, placeFile } from '../../../log/fs/file-system.js';
import { draftAdjustment } from '../../../log/policy/draft-adjustment.js';
import { resolveProgram } from '../../../log/fs/program.js';
import { blake3 } from '@noble/hashes/blake3.js';
import { principalOf, toolOf } from '../../shared/names.js';
import { amountOf } from '../../shared/values.js';
import { reasonToBlock } from '../episode-checker.js';
import { deriveNonce, MAX_INTENT_LINE_BYTES } from '../tool-intent.js';
import { type AgentExit, AgentProcess } from './agent-process.js';
import { type Conversation, converseByLines, converseByMessages, converseByProcesses } from './converse.js';
import { type DeskCounts, KernelDesk, MAX_REQUESTS, type Stop } from './kernel-desk.js';
import { type LaunchProfile, readLaunchProfile } from './launch-profile.js';
import { type ProbeFault, probeVersion } from './probe-version.js';
import { makePrompt } from './prompt.js';
import { type EpisodeNames, Recording } from './recording.js';
import { Watch } from './watch.js';

export interface RunAgentOptions {
  /** Decides; its ledger's signer must have the role `authority`, for the grant. */
  readonly gate: Gate;
  readonly tools: KernelTools;
  /** The profile's JSON. Undefined: there is none of the asked hash, which closes the episode. */
  readonly profile: Uint8Array | undefined;
  /** The program and its arguments, for a profile whose `command` is `{command}`; others take none. */
  readonly command?: readonly string[] | undefined;
  /** What the agent is to do. Required but for `input_mode` `stdin`. */
  readonly task?: string | undefined;
  /** A tier of the profile's `permission_mode_map`, whose flags are added. */
  readonly tier?: string | undefined;
  /** Letters, digits, `.`, `_` and `-`, at most 64. Default: one that is made. */
  readonly episodeId?: string | undefined;
  /** At most 128 characters. Default: the episode's id. */
  readonly workId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** Where the episode's folder is made. Default: `LEDGER.episodes`. */
  readonly folder?: string | undefined;
  /** What the profile's `cwd` is relative to. Default: the working folder. */
  readonly workspace?: string | undefined;
  /** How the agent is kept apart. Default `none`. */
  readonly isolation?: IsolationLevel | undefined;
  /** For `container`: files and folders that the agent is not to see, such as the ledger and its key. */
  readonly hide?: readonly string[] | undefined;
  /** What results are named by. Default `blake3`, as apm2 does. */
  readonly resultDigest?: 'blake3' | 'sha-256' | undefined;
  /** The most bytes of a result that are given as a line after the answer. Default 0: none. At most 65,536. */
  readonly excerptBytes?: number | undefined;
  /** How long to wait for approvals, in milliseconds. Default: not at all. */
  readonly waitMs?: number | undefined;
  /** How long after SIGTERM the agent is killed, in milliseconds. Default 5,000. */
  readonly graceMs?: number | undefined;
  /** Where `${NAME}` in the profile's environment is taken from. Default: this process's. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  readonly fileSystem?: FileSystem | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface EpisodeResult extends EpisodeNames {
  /** Whose calls they were, `agent:apm2/EPISODE`. */
  readonly principal: string;
  /** BLAKE3 of the profile's canonical form; undefined for one that has none. */
  readonly profileHash: string | undefined;
  /** The folder with what apm2 would keep; `check --as episode` reads it. */
  readonly record: string;
  /** The file with what it wrote to standard error, at most 1 MiB; undefined where it wrote nothing. */
  readonly stderr: string | undefined;
  readonly review: 'recorded' | 'blocked';
  /** Why it was blocked, by the name of a reason. */
  readonly reason: string | undefined;
  /** In which way, as a code. */
  readonly detail: string | undefined;
  /** Undefined for an agent that was not started. */
  readonly exitStatus: number | undefined;
  readonly counts: Readonly<Pick<DeskCounts, 'requests' | 'allowed' | 'denied' | 'guesses' | 'duplicates'>>;
}

const OPTION_TYPES: OptionTypes<RunAgentOptions> = {
  gate: 'object',
  tools: 'object',
  profile: 'bytes',
  command: 'array',
  task: 'string',
  tier: 'string',
  episodeId: 'string',
  workId: 'string',
  sessionId: 'string',
  folder: 'string',
  workspace: 'string',
  isolation: 'string',
  hide: 'array',
  resultDigest: 'string',
  excerptBytes: 'number',
  waitMs: 'number',
  graceMs: 'number',
  env: 'object',
  fileSystem: 'object',
  signal: 'signal',
};

const ATTRIBUTED = 'x.apm2.episode_run_attributed';
const EPISODE_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;
const ID = /^[^\p{C}]{1,128}$/u;
const NONCE_SALT_BYTES = 16;
const DEFAULT_GRACE_MS = 5_000;
const MAX_EXCERPT_BYTES = 64 * 1024;
/** The most bytes of all that an agent writes. */
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
/** A message of JSON has the lines of a turn in it. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
/** An argument of a process is no longer, in bytes. */
const MAX_ARGUMENT_BYTES = 131_071;
const MAX_STDERR_BYTES = 1024 * 1024;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const NANOSECONDS_PER_MS = 1_000_000n;

/**
 * Runs one episode of an agent.
 * @returns How it ended. What is wrong with the profile or the agent is a blocked review, not an error.
 * @throws NorthrootError of the ledger or of the disk: the agent is ended then, and what was begun can be abandoned; `ISOLATION_UNAVAILABLE`
 * @throws TypeError, RangeError for malformed options. Nothing ran then.
 */
export async function runAgent(options: RunAgentOptions): Promise<EpisodeResult> {
  checkOptions('runAgent', options, OPTION_TYPES);
  const { excerptBytes = 0, resultDigest = 'blake3', isolation = 'none' } = options;
  const { episodeId = `ep-${randomBytes(8).toString('hex')}` } = options;
  const { workId = episodeId, sessionId = episodeId } = options;
  checkString('runAgent', 'episodeId', episodeId);
  if (!EPISODE_ID.test(episodeId))
    throw new RangeError('runAgent: episodeId: expected letters, digits, . _ and -');
  for (const [name, id] of Object.entries({ workId, sessionId }))
    if (!ID.test(id)) throw new RangeError(`runAgent: ${name}: expected 1 to 128 printable characters`);
  if (!(excerptBytes >= 0 && excerptBytes <= MAX_EXCERPT_BYTES))
    throw new RangeError(`runAgent: excerptBytes: expected at most ${MAX_EXCERPT_BYTES}`);
  if (resultDigest !== 'blake3' && resultDigest !== 'sha-256')
    throw new RangeError('runAgent: resultDigest: expected blake3 or sha-256');
  const found =
    options.profile === undefined
      ? { fault: { code: 'PROFILE_NOT_FOUND', pointer: '' } }
      : readLaunchProfile(options.profile);
  if ('launch' in found) checkCommand(found.launch, options);
  const names = { workId, episodeId, sessionId };
  const folder = join(resolve(options.folder ?? `${options.gate.ledger.path}.episodes`), episodeId);
  const episode = new Episode(
    options,
    names,
    folder,
    isolation,
    'launch' in found ? found.launch : undefined,
  );
  return episode.run(
    'fault' in found ? { reason: 'ADAPTER_MISCONFIGURED', detail: found.fault.code } : undefined,
  );
}

function checkCommand(launch: LaunchProfile, { command, task, tier }: RunAgentOptions): void {
  const takes = launch.command === '{command}';
  if (takes && (command === undefined || command.length === 0))
    throw new TypeError('runAgent: command: expected a program, which the profile leaves open');
  if (!takes && command !== undefined && command.length > 0)
    throw new TypeError('runAgent: command: expected none, since the profile names its program');
  if (launch.inputMode !== 'stdin' && task === undefined)
    throw new TypeError('runAgent: task: expected what the agent is to do');
  if (tier !== undefined && !launch.permissionFlags.has(tier))
    throw new RangeError('runAgent: tier: expected one of the profile');
}

class Episode {
  readonly #options: RunAgentOptions;
  readonly #names: EpisodeNames;
  readonly #folder: string;
  readonly #isolation: IsolationLevel;
  readonly #launch: LaunchProfile | undefined;
  readonly #principal: string;
  readonly #fileSystem: FileSystem;
  readonly #stopping = new AbortController();
  #stop: Stop | undefined;
  /** What the ledger or the disk threw. */
  #cause: Error | undefined;
  #agent: AgentProcess | undefined;
  #watch: Watch | undefined;
  #stderr: Uint8Array[] = [];
  #stderrBytes = 0;
  #tokens = 0n;

  constructor(
    options: RunAgentOptions,
    names: EpisodeNames,
    folder: string,
    isolation: IsolationLevel,
    launch: LaunchProfile | undefined,
  ) {
    this.#options = options;
    this.#names = names;
    this.#folder = folder;
    this.#isolation = isolation;
    this.#launch = launch;
    this.#principal = principalOf('agent', 'apm2', names.episodeId);
    this.#fileSystem = options.fileSystem ?? nodeFileSystem;
  }

  async run(fault: Stop | undefined): Promise<EpisodeResult> {
    const launch = this.#launch;
    const { maxEvidenceBytes = Infinity, maxOutputBytes = 0, profile } = launch ?? {};
    await this.#assertRecordable();
    const recording = await Recording.create(join(this.#folder, 'record'), this.#names, {
      maxLogBytes: Math.min(maxOutputBytes, maxEvidenceBytes),
      policy: profile?.hash ?? '0'.repeat(64),
      fileSystem: this.#fileSystem,
    });
    const { signal } = this.#options;
    const onAbort = (): void => this.#end({ reason: 'TIMEOUT', detail: 'INTERRUPTED' });
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      if (signal?.aborted === true) onAbort();
      let ran:
        | { readonly desk: KernelDesk; readonly exit: AgentExit | undefined; readonly grantId: string }
        | undefined;
      if (fault !== undefined) this.#end(fault);
      else if (launch !== undefined) ran = await this.#attempt(() => this.#runProfile(launch, recording));
      return await this.#finish(recording, ran);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#watch?.end();
      this.#agent?.terminate();
      await recording.close().catch((error: unknown) => {
        this.#fail(error);
      });
    }
  }

  /** Without a key that the ledger asks for, say, no folder is made. @throws as `LiveLedger.append` */
  #assertRecordable(): Promise<void> {
    const event = { event_type: ATTRIBUTED, principal_id: this.#principal };
    return this.#options.gate.ledger.use((ledger) =>
      ledger.inspect(() => ledger.assertAdmissible({ event })),
    );
  }

  async #runProfile(
    launch: LaunchProfile,
    recording: Recording,
  ): Promise<{ desk: KernelDesk; exit: AgentExit | undefined; grantId: string } | undefined> {
    const { gate, tools, task, excerptBytes = 0, waitMs } = this.#options;
    const { profile, bridge, wallClockMs } = launch;
    await recording.artifact(launch.canonical);
    const results = join(this.#folder, 'results');
    await this.#fileSystem.makeFolder(results, 0o700);
    const cwd = resolve(this.#options.workspace ?? '.', launch.cwd);
    const salt = randomBytes(NONCE_SALT_BYTES).toString('hex');
    const spawnNs = recording.nowNs();
    const prefix = `${bridge?.noncePrefix ?? ''}${salt}`;
    const nonce = deriveNonce(prefix, this.#names.episodeId, spawnNs);
    const env = this.#environment(launch, { nonce, results });
    if (env === undefined) return undefined;
    const { command = [] } = this.#options;
    const probe = launch.probe.command.split(' ').flatMap((word) => expand(word, command));
    const fault = await this.#probe(launch, probe, env, cwd);
    if (fault !== undefined) return this.#end({ reason: 'ADAPTER_MISCONFIGURED', detail: fault });
    const words = [launch.command, ...launch.args].flatMap((word) => expand(word, command));
    const flags = launch.permissionFlags.get(this.#options.tier ?? '') ?? [];
    const [name = '', ...args] = [...words, ...flags];
    const program = await findIn(name, env['PATH'] ?? PATH, cwd);
    if (program === undefined)
      return this.#end({ reason: 'ADAPTER_MISCONFIGURED', detail: 'AGENT_NOT_FOUND' });
    const { episodeId, workId, sessionId } = this.#names;
    const grantId = await this.#grant(launch, wallClockMs);
    const attributed = {
      work_id: workId,
      episode_id: episodeId,
      session_id: sessionId,
      adapter_profile_hash: profile.hash,
    };
    await gate.ledger.append({
      event: {
        event_type: ATTRIBUTED,
        principal_id: this.#principal,
        ...attributed,
        grant_event_id: grantId,
        kernel_key: recording.publicKey,
        isolation: this.#isolation,
        command_sha256: sha256Base64url(canonicalBytes([program, ...args])),
      },
    });
    await recording.row('episode_run_attributed', attributed, spawnNs);
    await recording.row('episode_spawned', {
      episode_id: episodeId,
      session_id: sessionId,
      spawn_time_ns: spawnNs,
      nonce_prefix: prefix,
    });
    const desk = new KernelDesk({
      gate,
      grantId,
      principal: this.#principal,
      names: this.#names,
      nonce,
      bridge,
      capabilities: profile.capabilityMap,
      tools,
      results: new ContentStore(
        results,
        this.#options.resultDigest === 'sha-256' ? {} : { algorithm: { alg: 'blake3', hash: blake3 } },
        { fileSystem: this.#fileSystem },
      ),
      recording,
      checks: [{ check: 'isolation', result: 'pass', code: this.#isolation.toUpperCase() }],
      caps: defined({ 'time.ms': wallClockMs, 'bytes.evidence': launch.maxEvidenceBytes }),
      waitMs,
      excerptBytes,
      signal: this.#stopping.signal,
      onStop: (stop, cause) => this.#end(stop, cause),
    });
    const watch = new Watch({
      startupMs: launch.startupTimeoutMs,
      stallMs: launch.stallMs,
      maxStalls: launch.maxStalls,
      wallMs: wallClockMs,
      onEnd: (detail) => this.#end({ reason: 'TIMEOUT', detail }),
    });
    this.#watch = watch;
    const start = async (prompt: string): Promise<AgentProcess> => {
      const given = await this.#commandFor(launch, [program, ...args], prompt, cwd, results);
      const agent = new AgentProcess({
        ...given,
        env,
        cwd,
        pty: launch.requiresPty,
        maxLineBytes: launch.inputMode === 'stream_json' ? MAX_MESSAGE_BYTES : MAX_INTENT_LINE_BYTES,
        maxOutputBytes: MAX_OUTPUT_BYTES,
        onOutput: () => watch.touch(),
        onStderr: (bytes) => this.#keepStderr(bytes),
        graceMs: this.#options.graceMs ?? DEFAULT_GRACE_MS,
      });
      this.#agent = agent;
      if (this.#stopping.signal.aborted) agent.terminate();
      return agent;
    };
    const talk: Conversation = {
      listener: { take: (line, isWhole) => watch.during(() => desk.take(line, isWhole)) },
      onFault: (code) =>
        this.#end({
          reason: code === 'TURN_FAILED' ? 'TOOL_FAILED' : 'ADAPTER_PROTOCOL_VIOLATION',
          detail: code,
        }),
      onTokens: (tokens) => this.#spendTokens(tokens, grantId, profile.budget.get('tokens')),
      signal: this.#stopping.signal,
    };
    const prompt =
      task === undefined
        ? undefined
        : makePrompt(
            { task, nonce, tools: [...profile.capabilityMap.keys()], hasExcerpts: excerptBytes > 0 },
            (tool) => profile.capabilityMap.get(tool),
          );
    const exit = await this.#attempt(() => this.#converse(launch, start, talk, prompt));
    watch.end();
    return { desk, exit, grantId };
  }

  async #converse(
    { inputMode }: LaunchProfile,
    start: (prompt: string) => Promise<AgentProcess>,
    talk: Conversation,
    prompt: string | undefined,
  ): Promise<AgentExit> {
    if (inputMode === 'arg') return converseByProcesses(start, talk, prompt ?? '');
    const agent = await start(prompt ?? '');
    if (inputMode === 'stream_json') return converseByMessages(agent, talk, prompt ?? '');
    return converseByLines(agent, talk, inputMode === 'stdin' ? prompt : undefined);
  }

  /** It may be the agent that is asked for its version: it is kept apart in the same way. */
  async #probe(
    { probe: { regex }, startupTimeoutMs }: LaunchProfile,
    [name = '', ...rest]: readonly string[],
    env: Readonly<Record<string, string>>,
    cwd: string,
  ): Promise<ProbeFault | undefined> {
    const program = await findIn(name, env['PATH'] ?? PATH, cwd);
    if (program === undefined) return 'PROBE_NOT_STARTED';
    const { command, args } = await isolate(this.#isolation, program, rest, {
      writable: [cwd],
      hide: this.#hidden,
    });
    const timeoutMs = startupTimeoutMs || undefined;
    return probeVersion([command, ...args], regex, { env, cwd, ...defined({ timeoutMs }) });
  }

  get #hidden(): readonly string[] {
    return (this.#options.hide ?? []).map((path) => resolve(path));
  }

  /** The budget as a grant of the same names and units that an import of the record has. */
  async #grant({ profile }: LaunchProfile, wallClockMs: number | undefined): Promise<string> {
    const { ledger } = this.#options.gate;
    const caps = [...profile.budget].flatMap(([unit, cap]): Meter[] => {
      const amount = cap === '0' ? undefined : amountOf(cap);
      return amount === undefined ? [] : [{ unit, amount }];
    });
    // A grant has a cap at least: where the budget has none, that of the kernel itself.
    if (caps.length === 0) caps.push({ unit: 'calls', amount: { t: 'int', v: String(MAX_REQUESTS) } });
    const now = ledger.now();
    const until =
      wallClockMs === undefined ? undefined : parseTimestamp(now) + BigInt(wallClockMs) * NANOSECONDS_PER_MS;
    const bounds = {
      allowed_tools: [...new Set([...profile.capabilityMap.values()].map(toolOf))].sort(),
      meter_caps: caps.sort((a, b) => (a.unit < b.unit ? -1 : 1)),
      ...(until === undefined ? {} : { expires_at: formatInstant(until) }),
    };
    const checks = [...profile.budget].map(([unit, cap]): Check => ({
      check: `budget.${unit}`,
      result: 'pass',
      code: cap === '0' ? 'NO_CAP' : 'CAP',
    }));
    const { eventId } = await ledger.append({
      event: {
        event_type: 'authorization',
        occurred_at: now,
        principal_id: this.#principal,
        intents: { intent_digest: { ...sha256Digest(canonicalBytes(bounds)) } },
        policy_id: `apm2:profile:${profile.profileId}`.slice(0, 256),
        policy_digest: blake3Digest(profile.hash),
        decision: 'allow',
        decision_code: 'EPISODE_RUN_ATTRIBUTED',
        checks,
        authorization: { kind: 'grant', bounds },
      },
    });
    return eventId;
  }

  /** Tokens are no part of a call: what a turn used is taken from the grant when the agent says it. */
  async #spendTokens(tokens: bigint, grantId: string, cap: string | undefined): Promise<void> {
    this.#tokens += tokens;
    if (tokens === 0n || cap === undefined || cap === '0') return;
    const event = draftAdjustment({
      grantId,
      debit: { tokens: tokens.toString() },
      reason: 'MODEL_TURN',
      principalId: this.#principal,
      meterBasis: 'reported',
    });
    await this.#options.gate.ledger.append({ event });
    if (this.#tokens > BigInt(cap)) this.#end({ reason: 'POLICY_DENIED', detail: 'TOKENS_EXCEEDED' });
  }

  /** All that the agent has as environment; undefined where something is missing. */
  #environment(
    { env }: LaunchProfile,
    { nonce, results }: { readonly nonce: string; readonly results: string },
  ): Record<string, string> | undefined {
    const ambient = this.#options.env ?? process.env;
    const made: Record<string, string> = { PATH };
    for (const [name, template] of env) {
      let isMissing = false;
      made[name] = template.replace(/\$\{([A-Za-z0-9_]+)\}/g, (_, wanted: string) => {
        isMissing ||= ambient[wanted] === undefined;
        return ambient[wanted] ?? '';
      });
      if (isMissing) return this.#end({ reason: 'ADAPTER_MISCONFIGURED', detail: 'ENVIRONMENT_MISSING' });
    }
    return { ...made, TI_NONCE: nonce, TI_EPISODE: this.#names.episodeId, TI_CAS: results };
  }

  async #commandFor(
    { inputMode }: LaunchProfile,
    words: readonly string[],
    prompt: string,
    cwd: string,
    results: string,
  ): Promise<{ readonly command: string; readonly args: readonly string[] }> {
    const file = join(this.#folder, 'prompt.txt');
    if (inputMode === 'file')
      await placeFile(file, encodeUtf8(prompt), { permissions: 0o600, fileSystem: this.#fileSystem });
    const [command = '', ...args] = words.map((word) =>
      word.replaceAll('{prompt_file}', () => file).replaceAll('{prompt}', () => prompt),
    );
    if (args.some((arg) => encodeUtf8(arg).length > MAX_ARGUMENT_BYTES))
      this.#end({ reason: 'ADAPTER_MISCONFIGURED', detail: 'PROMPT_TOO_LONG' });
    const readable = inputMode === 'file' ? [results, file] : [results];
    return isolate(this.#isolation, command, args, { writable: [cwd], readable, hide: this.#hidden });
  }

  /** Ends the episode, by the first reason there is. */
  #end(stop: Stop, cause?: unknown): undefined {
    if (cause !== undefined) this.#fail(cause);
    if (this.#stop !== undefined) return undefined;
    this.#stop = stop;
    this.#stopping.abort(new NorthrootError('EPISODE_STOPPED', `the episode was stopped: ${stop.detail}`));
    this.#agent?.terminate();
    return undefined;
  }

  #fail(cause: unknown): void {
    this.#cause ??= cause instanceof Error ? cause : new Error(String(cause));
  }

  /** Does what may fail: then the agent is ended, and the failure kept. */
  async #attempt<T>(act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof NorthrootError && error.code === 'AGENT_NOT_STARTED')
        return this.#end({ reason: 'ADAPTER_MISCONFIGURED', detail: error.code });
      const detail = error instanceof NorthrootError ? error.code : 'INTERNAL';
      this.#end({ reason: 'ADAPTER_MISCONFIGURED', detail }, error);
      await this.#agent?.exited.catch(() => undefined);
      return undefined;
    }
  }

  #keepStderr(bytes: Uint8Array): void {
    if (this.#stderrBytes < MAX_STDERR_BYTES)
      this.#stderr.push(bytes.slice(0, MAX_STDERR_BYTES - this.#stderrBytes));
    this.#stderrBytes += bytes.length;
  }

  async #finish(
    recording: Recording,
    ran:
      | { readonly desk: KernelDesk; readonly exit: AgentExit | undefined; readonly grantId: string }
      | undefined,
  ): Promise<EpisodeResult> {
    const { episodeId, sessionId } = this.#names;
    const about = { episode_id: episodeId, session_id: sessionId };
    const counts = ran?.desk.counts;
    const exit = ran?.exit;
    let blocked = this.#stop;
    let bundle: string | undefined;
    let log: string | undefined;
    try {
      if (ran !== undefined) {
        const isSuccess = blocked === undefined && exit?.status === 0;
        await recording.row('session_terminated', {
          ...about,
          exit_classification: isSuccess ? 'SUCCESS' : blocked?.reason === 'TIMEOUT' ? 'TIMEOUT' : 'FAILURE',
        });
      }
      if (this.#stderr.length > 0)
        await placeFile(join(this.#folder, 'stderr.txt'), Buffer.concat(this.#stderr), {
          permissions: 0o600,
          fileSystem: this.#fileSystem,
        });
      log = await recording.endLog();
      const index =
        ran === undefined || recording.receipts === 0
          ? undefined
          : await recording.index({ ...ran.desk.counts, tokens: this.#tokens });
      bundle = await recording.artifactOf({
        schema: 'northroot.episode_bundle.v1',
        // By other names than an attribution has, since it is none.
        episode: episodeId,
        profile_hash: this.#launch?.profile.hash,
        grant_event_id: ran?.grantId,
        ledger_event_id: this.#options.gate.ledger.genesisId,
        log_hash: log,
        tool_log_index_hash: index,
      });
      if (blocked === undefined) {
        const found = reasonToBlock(recording.files());
        if (found !== undefined) blocked = { reason: found.reason, detail: found.code };
      }
      await this.#recordReview(recording, blocked, { bundle, log });
    } catch (error) {
      this.#fail(error);
      blocked ??= { reason: 'ADAPTER_MISCONFIGURED', detail: 'EPISODE_NOT_RECORDED' };
    }
    if (this.#cause !== undefined) throw this.#cause;
    return {
      ...this.#names,
      principal: this.#principal,
      profileHash: this.#launch?.profile.hash,
      record: recording.folder,
      stderr: this.#stderr.length > 0 ? join(this.#folder, 'stderr.txt') : undefined,
      review: blocked === undefined ? 'recorded' : 'blocked',
      reason: blocked?.reason,
      detail: blocked?.detail,
      exitStatus: exit?.status,
      counts: {
        requests: counts?.requests ?? 0,
        allowed: counts?.allowed ?? 0,
        denied: counts?.denied ?? 0,
        guesses: counts?.guesses ?? 0,
        duplicates: counts?.duplicates ?? 0,
      },
    };
  }

  async #recordReview(
    recording: Recording,
    blocked: Stop | undefined,
    { bundle, log }: { readonly bundle: string; readonly log: string },
  ): Promise<void> {
    const { episodeId, sessionId, workId } = this.#names;
    const about = { episode_id: episodeId, session_id: sessionId, work_id: workId };
    const facts =
      blocked === undefined
        ? {
            receipt_id: `${episodeId}-review`,
            artifact_bundle_hash: bundle,
            reviewer_actor_id: recording.publicKey,
          }
        : { blocked_id: `${episodeId}-blocked`, reason_code: blocked.reason, blocked_log_hash: log };
    const type = blocked === undefined ? 'review_receipt_recorded' : 'review_blocked_recorded';
    await recording.row(type, { ...about, ...facts });
    if (this.#cause !== undefined) return;
    await this.#options.gate.ledger.append({
      event: {
        event_type: `x.apm2.${type}`,
        principal_id: this.#principal,
        ...about,
        ...facts,
        ...(blocked === undefined ? {} : { detail_code: blocked.detail }),
        ledger_head: recording.head,
      },
    });
  }
}

/** A word of a template: `{args}` stands for what was given after the program. */
function expand(word: string, [program = '', ...args]: readonly string[]): string[] {
  if (word === '{args}') return args;
  return word === '{command}' ? [program] : [word];
}

async function findIn(name: string, path: string, cwd: string): Promise<string | undefined> {
  if (name.includes('/')) {
    const own = isAbsolute(name) ? name : resolve(cwd, name);
    return (await resolveProgram(own)) === undefined ? undefined : own;
  }
  for (const folder of path.split(':')) {
    const own = join(folder, name);
    if (isAbsolute(own) && (await resolveProgram(own)) !== undefined) return own;
  }
  return undefined;
}

function blake3Digest(hex: string): Digest {
  return { alg: 'blake3', b64: encodeBase64url(tryDecodeHex(hex) ?? new Uint8Array(32)) };
}
