/** Opens a kernel's tools; see kernel-tool.ts. */

import { basename, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { startDeadline } from '../../base/deadline.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { printable } from '../../base/bytes/printable.js';
import { RootedFolder } from '../../log/fs/rooted-folder.js';
import { makeSharedAbort } from '../shared-abort.js';
import type { Act, Done } from './act.js';
import { ArgumentFault } from './arguments.js';
import { defineTool } from './definitions.js';
import { DEFAULT_ENV, findLimiters, planExec, resolvePrograms } from './exec-tool.js';
import { checkMethods, planFetch } from './fetch-tool.js';
import { planList, planRead, planWrite } from './file-tools.js';
import { parseHostRules } from './host-rules.js';
import { isolate } from './isolation.js';
import type {
  KernelDenial,
  KernelPlan,
  KernelResult,
  KernelToolName,
  KernelTools,
  KernelToolsOptions,
} from './kernel-tool.js';
import { failure } from './output.js';

const OPTION_TYPES: OptionTypes<KernelToolsOptions> = {
  root: 'string',
  write: 'boolean',
  keepOut: 'array',
  programs: 'array',
  env: 'object',
  isolation: 'string',
  hosts: 'array',
  methods: 'array',
  ca: ['string', 'array'],
  timeoutMs: 'number',
  maxOutputBytes: 'number',
  maxWriteBytes: 'number',
};

export const KERNEL_TOOL_NAMES: readonly KernelToolName[] = [
  'fs.read',
  'fs.list',
  'fs.write',
  'exec',
  'net.fetch',
];

/** How long a call may take by default, in milliseconds. */
const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_TIMEOUT_MS = 24 * 3_600_000;
/** What is reserved besides, for ending what is over its time, in milliseconds. */
const ENDING_MS = 5_000;
/** What a call gives back by default, in bytes. */
const DEFAULT_MAX_OUTPUT_BYTES = 262_144;
const MIN_OUTPUT_BYTES = 16_384;
/** What a call gives back at most, in bytes: as much as is kept as a content. */
const MAX_OUTPUT_BYTES = 1_048_576;
const DEFAULT_MAX_WRITE_BYTES = 1_048_576;
const MAX_WRITE_BYTES = 16_777_216;

/**
 * Opens tools over one root, a list of programs and a list of hosts. They decide nothing: plan a call, ask a `Gate`, run the plan if it is
 * allowed, and settle with what it gives.
 * @throws NorthrootError `ROOT_UNUSABLE`, `ROOT_HOLDS_KEPT_OUT`, `PROGRAM_NOT_FOUND`, `PROGRAM_IN_ROOT`, `ISOLATION_UNAVAILABLE`,
 *   `PLATFORM_UNSUPPORTED` on Windows; for a root as `FILE_NOT_FOUND`, `NOT_A_FOLDER`
 * @throws TypeError, RangeError naming the malformed option
 * @example
 * const tools = await openKernelTools({ root: 'work', hosts: ['example.com'] });
 * const plan = tools.plan('fs.read', { path: 'notes.txt' });
 * if (!('denied' in plan)) {
 *   const { toolName: tool, reserve, resources } = plan;
 *   const decision = await gate.decide({ tool, params: { path: 'notes.txt' }, reserve, resources, principal: 'agent:a1' });
 *   if (decision.effect === 'allow') await gate.settle(decision.ref, await plan.run());
 * }
 */
export async function openKernelTools(options: KernelToolsOptions): Promise<KernelTools> {
  checkOptions('openKernelTools', options, OPTION_TYPES);
  const { timeoutMs = DEFAULT_TIMEOUT_MS, isolation = 'none', env = DEFAULT_ENV, programs = [] } = options;
  const { maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES, maxWriteBytes = DEFAULT_MAX_WRITE_BYTES } = options;
  checkRange('timeoutMs', timeoutMs, 1, MAX_TIMEOUT_MS);
  checkRange('maxOutputBytes', maxOutputBytes, MIN_OUTPUT_BYTES, MAX_OUTPUT_BYTES);
  checkRange('maxWriteBytes', maxWriteBytes, 1, MAX_WRITE_BYTES);
  checkEnv(env);
  const rules = parseHostRules(options.hosts ?? []);
  const methods = checkMethods(options.methods);
  if (process.platform === 'win32')
    throw new NorthrootError('PLATFORM_UNSUPPORTED', 'kernel tools need a system of the POSIX kind', {
      hint: 'such as Linux, macOS, or Linux within Windows',
    });
  if (options.root === undefined && (programs.length > 0 || isolation !== 'none'))
    throw new TypeError('openKernelTools: programs and isolation need a root to run in');
  // What is not to be had is refused at once.
  await isolate(isolation, '/', []);
  const acts = new Map<KernelToolName, (args: unknown) => Act>();
  const root = options.root === undefined ? undefined : await RootedFolder.open(options.root);
  try {
    if (root !== undefined) {
      const { write = true } = options;
      const keepOut = (options.keepOut ?? []).map((path) => resolve(path));
      await assertKeptOut(root, keepOut);
      const ofFiles = { root, maxOutputBytes, maxWriteBytes };
      acts.set('fs.read', (args) => planRead(ofFiles, args));
      acts.set('fs.list', (args) => planList(ofFiles, args));
      if (write) acts.set('fs.write', (args) => planWrite(ofFiles, args));
      const found = await resolvePrograms(root, programs);
      if (found.length > 0) {
        const limiters = await findLimiters(root);
        const ofPrograms = { root, programs: found, env, isolation, hide: keepOut, maxOutputBytes, limiters };
        acts.set('exec', (args) => planExec(ofPrograms, args));
      }
    }
    if (rules.length > 0) {
      const ca = options.ca === undefined ? undefined : [options.ca].flat();
      acts.set('net.fetch', (args) => planFetch({ rules, methods, ca, maxOutputBytes }, args));
    }
    const listed = { programs: programs.map((path) => basename(path)), hosts: options.hosts ?? [], methods };
    return new Tools(acts, root, {
      timeoutMs,
      maxOutputBytes,
      isolation,
      definitions: [...acts.keys()].map((name) => defineTool(name, listed)),
    });
  } catch (error) {
    await root?.close();
    throw error;
  }
}

interface Common {
  readonly isolation: KernelTools['isolation'];
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly definitions: KernelTools['definitions'];
}

class Tools implements KernelTools {
  readonly names: readonly KernelToolName[];
  readonly definitions: KernelTools['definitions'];
  readonly isolation: KernelTools['isolation'];
  readonly #acts: ReadonlyMap<KernelToolName, (args: unknown) => Act>;
  readonly #root: RootedFolder | undefined;
  readonly #common: Common;
  readonly #closing = makeSharedAbort();
  readonly #running = new Set<Promise<unknown>>();

  constructor(
    acts: ReadonlyMap<KernelToolName, (args: unknown) => Act>,
    root: RootedFolder | undefined,
    common: Common,
  ) {
    this.names = [...acts.keys()];
    this.definitions = common.definitions;
    this.isolation = common.isolation;
    this.#acts = acts;
    this.#root = root;
    this.#common = common;
  }

  plan(tool: string, args: unknown): KernelPlan | KernelDenial {
    const toolName = KERNEL_TOOL_NAMES.find((each) => each === tool);
    if (toolName === undefined) return { denied: 'UNKNOWN_TOOL', reason: 'there is no such tool' };
    const planAct = this.#acts.get(toolName);
    if (planAct === undefined) return { denied: 'TOOL_DISABLED', reason: `${toolName} is not offered here` };
    try {
      return this.#toPlan(toolName, planAct(args));
    } catch (error) {
      if (error instanceof ArgumentFault) return error.denial;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#running);
    await this.#root?.close();
  }

  #toPlan(toolName: KernelToolName, { resources, act }: Act): KernelPlan {
    const { timeoutMs, maxOutputBytes } = this.#common;
    let isRun = false;
    return {
      toolName,
      resources,
      reserve: { calls: 1, 'time.ms': timeoutMs + ENDING_MS, 'bytes.evidence': maxOutputBytes },
      run: async (signal) => {
        if (isRun) throw new TypeError('run: a plan is run once');
        isRun = true;
        const running = this.#run(act, signal);
        this.#running.add(running);
        try {
          return await running;
        } finally {
          this.#running.delete(running);
        }
      },
    };
  }

  async #run(act: Act['act'], signal: AbortSignal | undefined): Promise<KernelResult> {
    const since = performance.now();
    const deadline = startDeadline(this.#common.timeoutMs, [signal, this.#closing.signal]);
    const { errorCode, output } = deadline.signal.aborted
      ? cancelled()
      : await act(deadline.signal).catch(unknownFailure);
    deadline.clear();
    return {
      outcome: errorCode === undefined ? 'success' : errorCode === UNKNOWN ? 'unknown' : 'failure',
      ...(errorCode === undefined || errorCode === UNKNOWN ? {} : { errorCode }),
      output,
      used: {
        calls: 1,
        'time.ms': Math.ceil(performance.now() - since),
        'bytes.evidence': output.length,
      },
    };
  }
}

/** Where a tool itself is at fault, nobody knows what it did. */
const UNKNOWN = 'INTERNAL_ERROR';

function unknownFailure(): Done {
  return { errorCode: UNKNOWN, output: failure(UNKNOWN) };
}

function cancelled(): Done {
  return { errorCode: 'CANCELLED', output: failure('CANCELLED') };
}

async function assertKeptOut(root: RootedFolder, paths: readonly string[]): Promise<void> {
  for (const path of paths)
    if (await root.holds(path))
      throw new NorthrootError('ROOT_HOLDS_KEPT_OUT', `${printable(path)} lies within the root`, {
        hint: 'an agent could change it: keep the ledger, its key and its contents elsewhere',
      });
}

function checkRange(name: string, value: number, least: number, most: number): void {
  if (!Number.isSafeInteger(value) || value < least || value > most)
    throw new RangeError(`openKernelTools: ${name}: expected a whole number from ${least} to ${most}`);
}

function checkEnv(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env))
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || typeof value !== 'string' || value.includes('\0'))
      throw new TypeError(`openKernelTools: env: expected names of variables, and texts`);
}
