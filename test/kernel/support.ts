/** What the tests of a kernel's tools share. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openKernelTools, type KernelTools, type KernelToolsOptions } from '../../src/api/gate.js';
import { temporaryFolder } from '../writer/support.js';

export interface Kernel {
  /** What lies outside of the root. */
  readonly outside: string;
  readonly root: string;
  readonly tools: KernelTools;
  /** The code of a denial, of a failure, or `ok`; and what was given. */
  readonly call: (tool: string, args: unknown, signal?: AbortSignal) => Promise<Called>;
}

export interface Called {
  readonly code: string;
  readonly text: string;
  readonly json: Record<string, unknown>;
  readonly used: Readonly<Record<string, unknown>>;
}

/** Tools over a root of their own, with a file `secret` outside of it. */
export async function openKernel(options: KernelToolsOptions = {}): Promise<Kernel> {
  const outside = temporaryFolder();
  const root = join(outside, 'root');
  mkdirSync(root);
  writeFileSync(join(outside, 'secret'), 'SECRET');
  const tools = await openKernelTools({ root, ...options });
  onTestFinished(() => tools.close());
  return { outside, root, tools, call: (tool, args, signal) => callTool(tools, tool, args, signal) };
}

async function callTool(
  tools: KernelTools,
  tool: string,
  args: unknown,
  signal?: AbortSignal,
): Promise<Called> {
  const plan = tools.plan(tool, args);
  if ('denied' in plan) return { code: `denied ${plan.denied}`, text: '', json: {}, used: {} };
  const { errorCode = 'ok', output, used } = await plan.run(signal);
  const text = Buffer.from(output).toString();
  return { code: errorCode, text, json: parse(text), used };
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
