/** `northroot run-agent`: an agent as a black box, whose only actuator is the kernel. */

import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import type { Gate } from '../../gate/gate.js';
import type { ToolBridge } from '../../hosts/apm2/live/launch-profile.js';
import type { EpisodeResult } from '../../hosts/apm2/live/run-agent.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { besidePath } from '../../log/fs/place.js';
import { listFiles } from '../../log/fs/plain-file.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { jsonText } from '../json-text.js';
import { byteSize, waitSpan, textOrJson } from '../options.js';
import { type AdviserChoice, withAdvisers } from './advisers.js';
import { keptOut, type KernelChoice, openKernel, withKernel } from './kernel-options.js';
import { type DecidingChoice, withDeciding } from './ledger-key.js';
import { openGate } from './serving.js';

interface RunAgentCommandOptions extends DecidingChoice, AdviserChoice, KernelChoice {
  readonly profile?: string;
  readonly profiles?: string;
  readonly task?: string;
  readonly tier?: string;
  readonly episode?: string;
  readonly work?: string;
  readonly session?: string;
  readonly folder?: string;
  readonly resultDigest: 'blake3' | 'sha-256';
  readonly excerpt?: number;
  readonly wait?: number;
  readonly format: 'text' | 'json';
}

const MAX_TASK_BYTES = 1024 * 1024;
/** What tools can be held to. */
const MAX_CALL_MS = 86_400_000;
const MIN_OUTPUT_BYTES = 16 * 1024;
const MAX_OUTPUT_BYTES = 1024 * 1024;

const NOTES = `
A profile says how an agent is run, which tools it may ask for, and its budget: the JSON of AgentAdapterProfileV1. A file is known by the
hash of its canonical form, which is recorded; blake3:HASH or sha-256:HASH finds it in the folder of --profiles.

The agent writes one line for each request, and reads one for each answer. It has no tools of its own only where the profile switches them
off, and it can act by itself as far as --isolation, which holds for it too, lets it.

Exit status: 0 the episode ended well and its review was recorded, 1 its review was blocked, or the ledger does not stand, 2 it could not be run
or recorded.`;

export function addRunAgent(program: Command, run: Run): void {
  const command = program
    .command('run-agent')
    .summary('run an agent without tools of its own, and execute what it asks for')
    .description(
      'Starts an agent that has no tools but those it asks for, line by line. Each request is decided by a grant that is made from the budget of its profile, executed by this program, recorded and answered. What goes wrong ends the agent, and blocks its review with a reason.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('[command...]', 'after --: the agent and its arguments, where the profile leaves them open')
    .option('--profile <file>', 'the profile: a file, or its hash; required')
    .option('--profiles <folder>', 'where profiles are looked for by their hash (default: LEDGER.profiles)')
    .option('--task <text>', 'what the agent is to do: a text, or @FILE')
    .option('--tier <name>', "a tier of the profile's permission_mode_map, whose flags are added")
    .option('--episode <id>', 'the id of the episode (default: one that is made)')
    .option('--work <id>', 'the id of the work that it is for (default: the id of the episode)')
    .option('--session <id>', 'the id of the session (default: the id of the episode)')
    .option('--folder <folder>', 'where the folder of the episode is made (default: LEDGER.episodes)')
    .addOption(
      new Option('--result-digest <mode>', 'what results are named by')
        .choices(['blake3', 'sha-256'])
        .default('blake3'),
    )
    .option(
      '--excerpt <size>',
      'give so much of each result as a line too, such as 16KiB (at most 64KiB)',
      byteSize,
    )
    .option('--wait <span>', 'where an approval is needed, wait for it so long, such as 10m', waitSpan)
    .addOption(textOrJson())
    .addHelpText('after', NOTES);
  withDeciding(withAdvisers(withKernel(command))).action(
    (ledger: string, agent: readonly string[], options: RunAgentCommandOptions) =>
      run((context) => runOne(context, ledger, agent, options)),
  );
}

async function runOne(
  context: Context,
  path: string,
  command: readonly string[],
  options: RunAgentCommandOptions,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  if (options.profile === undefined) throw usageError('--profile is missing', 'a file, or blake3:HASH');
  const { workspace } = options;
  if (workspace === undefined)
    throw usageError(
      '--workspace is missing',
      'the one folder that the agent works in, apart from the ledger',
    );
  // What few commands need is loaded for those.
  const { runAgent } = await import('../../hosts/apm2/live/run-agent.js');
  const { readLaunchProfile } = await import('../../hosts/apm2/live/launch-profile.js');
  const profile = await findProfile(path, options.profile, options.profiles);
  const task = await readTask(options.task);
  const read = profile === undefined ? undefined : readLaunchProfile(profile);
  const launch = read !== undefined && 'launch' in read ? read.launch : undefined;
  const folder = resolve(options.folder ?? besidePath(path, '.episodes'));
  const secrets = [folder, options.key];
  const limits = limitsOf(launch?.bridge);
  const tools = await openKernel({ ...limits, ...defined({ ...options }) }, path, secrets);
  let gate: Gate | undefined;
  // The agent has its own time to end, and what it did is to be recorded.
  context.endsInItsTime();
  try {
    gate = await openGate(context, path, options, { coverage: 'kernel' });
    const result = await runAgent({
      gate,
      tools,
      profile,
      command,
      folder,
      workspace,
      signal,
      isolation: tools.isolation,
      hide: keptOut(path, secrets),
      resultDigest: options.resultDigest,
      ...defined({
        task,
        tier: options.tier,
        episodeId: options.episode,
        workId: options.work,
        sessionId: options.session,
        excerptBytes: options.excerpt,
        waitMs: options.wait,
      }),
    });
    await terminal.write(options.format === 'json' ? `${jsonText(toJson(result))}\n` : describe(result));
    return result.review === 'recorded' ? 0 : 1;
  } catch (error) {
    if (
      !(error instanceof TypeError || error instanceof RangeError) ||
      !error.message.startsWith('runAgent: ')
    )
      throw error;
    throw usageError(error.message.replace(/^runAgent: /, ''));
  } finally {
    await tools.close();
    await gate?.close();
  }
}

/** What a profile says of its calls, as far as tools can be held to it; the rest is looked at when a call has ended. */
function limitsOf(bridge: ToolBridge | undefined): Pick<KernelChoice, 'callTimeout' | 'maxOutput'> {
  if (bridge === undefined) return {};
  return {
    callTimeout: Math.min(bridge.toolTimeoutMs, MAX_CALL_MS),
    maxOutput: Math.max(MIN_OUTPUT_BYTES, Math.min(bridge.maxResultSize, MAX_OUTPUT_BYTES)),
  };
}

const HASH = /^(?:(blake3|sha-256):)?([0-9a-f]{64}|[A-Za-z0-9_-]{43})$/;

const NAMED_HASH = /^(?:blake3|sha-256):/;

/** The profile's JSON; undefined where nothing has the hash. */
async function findProfile(
  ledger: string,
  wanted: string,
  folder = besidePath(ledger, '.profiles'),
): Promise<Uint8Array | undefined> {
  const { MAX_PROFILE_BYTES, namesOfProfile } = await import('../../hosts/apm2/live/launch-profile.js');
  const [, alg, hash] = HASH.exec(wanted) ?? [];
  if (hash === undefined && NAMED_HASH.test(wanted))
    throw usageError(`--profile: ${printable(wanted, 80)} is no hash`, '64 digits of hex, or base64url');
  if (hash === undefined) return readSmallFile(wanted, MAX_PROFILE_BYTES);
  for (const path of await listFiles(folder)) {
    const bytes = await readSmallFile(path, MAX_PROFILE_BYTES).catch(tooBig);
    const names = bytes === undefined ? undefined : namesOfProfile(bytes);
    if (names === undefined) continue;
    if ((alg !== 'sha-256' && names.blake3 === hash) || (alg !== 'blake3' && names.sha256 === hash))
      return bytes;
  }
  return undefined;
}

function tooBig(error: unknown): undefined {
  if (!(error instanceof NorthrootError) || error.code !== 'FILE_TOO_BIG') throw error;
}

async function readTask(text: string | undefined): Promise<string | undefined> {
  if (text?.startsWith('@') !== true) return text;
  return Buffer.from(await readSmallFile(text.slice(1), MAX_TASK_BYTES)).toString('utf8');
}

function toJson(result: EpisodeResult): object {
  const { counts } = result;
  return {
    episode_id: result.episodeId,
    work_id: result.workId,
    session_id: result.sessionId,
    principal_id: result.principal,
    ...defined({ adapter_profile_hash: result.profileHash }),
    record: result.record,
    ...defined({ stderr: result.stderr }),
    review: result.review,
    ...defined({ reason_code: result.reason, detail_code: result.detail, exit_status: result.exitStatus }),
    requests: counts.requests,
    allowed: counts.allowed,
    denied: counts.denied,
    other_nonces: counts.guesses,
    repeated_ids: counts.duplicates,
  };
}

function describe(result: EpisodeResult): string {
  const { counts, review, reason, detail } = result;
  const why = reason === undefined ? '' : `: ${printable(reason, 64)} (${printable(detail ?? '', 64)})`;
  const lines = [
    `episode ${result.episodeId}  review ${review}${why}`,
    `${counts.requests} requests, ${counts.allowed} allowed, ${counts.denied} denied`,
    `record ${printable(result.record)}`,
    ...(result.stderr === undefined ? [] : [`stderr ${printable(result.stderr)}`]),
  ];
  return `${lines.join('\n')}\n`;
}
