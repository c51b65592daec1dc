/**
 * `northroot hook NAME` where a service listens: read, asked, told. A host waits for it before and after every tool call, so it is a script
 * of its own (bundle.js) and loads next to nothing. Whatever it does not know it leaves to the whole command line.
 */

import type { HookProfile } from '../gate/hook/profile.js';
import { HOOK_PROFILES, isHookName } from '../gate/hook/profiles.js';
import { MAX_EVENT_BYTES } from '../gate/hook/read-event.js';
import { type HookAnswer, runHook } from '../gate/hook/run-hook.js';
import { WireDesk } from '../gate/hook/wire-desk.js';
import { FLAGS, type HookChoice, readHookFlags } from './hook-flags.js';

/** What is left to the whole command line, and what was read of standard input for it. */
export interface LeftToMain {
  readonly input?: Uint8Array;
}

/**
 * Runs a hook over the service's socket.
 * @param args - What follows `hook`
 * @returns The exit status; or what is left to `main`, where there is no service, or it broke off
 */
export async function runOverService(args: readonly string[]): Promise<number | LeftToMain> {
  const asked = readArgs(args);
  if (asked?.options.socket === undefined) return {};
  const { profile, options } = asked;
  const token = process.env['NORTHROOT_TOKEN'] || undefined;
  const desk = await WireDesk.connect(asked.options.socket, token);
  if (desk === undefined) return {};
  const input = await readStandardInput();
  const answer = await runHook(profile, input, () => Promise.resolve(desk), options);
  desk.close();
  if (desk.isBroken) return { input };
  return print(answer);
}

/** What standard input has, whole, and at most one byte more than an event may have. */
export async function readStandardInput(): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_EVENT_BYTES) break;
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
}

/** A host reads the answer when the process has ended. */
function print({ stdout, stderr, status }: HookAnswer): number {
  // Node would end with 1, which hosts take for no hook.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  if (stderr !== '') process.stderr.write(stderr);
  if (stdout !== '') process.stdout.write(stdout);
  return status;
}

const NAMES = new Map(Object.entries(FLAGS).map(([name, flag]) => [flag as string, name]));
/** What only matters to who opens the ledger. */
const OF_MAIN = new Set([
  '--key',
  '--trust',
  '--lock-timeout',
  '--position',
  '--position-witness',
  '--durability',
  '--honour-imported',
]);

/** Undefined for anything unusual. */
function readArgs([host = '', ...rest]: readonly string[]):
  | { readonly profile: HookProfile; readonly options: HookChoice }
  | undefined {
  if (!isHookName(host)) return undefined;
  const flags: Record<string, string> = {};
  for (let at = 0; at < rest.length; at += 2) {
    const [flag = '', value] = [rest[at], rest[at + 1]];
    const name = NAMES.get(flag);
    if (value === undefined || value.startsWith('-') || (name === undefined && !OF_MAIN.has(flag)))
      return undefined;
    if (name !== undefined) flags[name] = value;
  }
  // Read by who has time for it.
  if (flags['tokenFile'] !== undefined) return undefined;
  const profile = HOOK_PROFILES[host];
  try {
    return { profile, options: readHookFlags(profile, flags, process.env) };
  } catch {
    return undefined;
  }
}
