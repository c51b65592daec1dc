/** The policies that a command asks before the grants decide. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { Adviser } from '../../gate/advisers/adviser.js';
import { cedarAdviser, type CedarModule } from '../../gate/advisers/cedar.js';
import { authZenAdviser, opaAdviser } from '../../gate/advisers/http.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { usageError } from '../command-error.js';

const MAX_POLICIES_BYTES = 4 * 1024 * 1024;

/** Which policies are asked before the grants. */
export interface AdviserChoice {
  readonly cedar?: string;
  readonly opa?: string;
  readonly authzen?: string;
}

/** Adds the options of {@link AdviserChoice}. */
export function withAdvisers(command: Command): Command {
  return command
    .option('--cedar <file>', 'ask these Cedar policies first; needs the package @cedar-policy/cedar-wasm')
    .option(
      '--opa <url>',
      'ask this rule of Open Policy Agent first, such as http://127.0.0.1:8181/v1/data/agents/allow',
    )
    .option('--authzen <url>', 'ask this AuthZEN evaluation endpoint first');
}

/** In this order. Each may deny; the grants decide last. */
export async function advisersOf({ cedar, opa, authzen }: AdviserChoice): Promise<Adviser[]> {
  const advisers: Adviser[] = [];
  if (cedar !== undefined) {
    const policies = Buffer.from(await readSmallFile(cedar, MAX_POLICIES_BYTES)).toString('utf8');
    advisers.push(cedarAdviser(await loadCedar(), { policies }));
  }
  for (const [flag, url, make] of [
    ['--opa', opa, opaAdviser],
    ['--authzen', authzen, authZenAdviser],
  ] as const) {
    if (url === undefined) continue;
    try {
      advisers.push(make({ url }));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw usageError(`${flag}: expected an http URL, found ${printable(url, 80)}`);
    }
  }
  return advisers;
}

async function loadCedar(): Promise<CedarModule> {
  const name = '@cedar-policy/cedar-wasm/nodejs';
  try {
    const loaded = (await import(name)) as CedarModule & { readonly default?: CedarModule };
    return loaded.default ?? loaded;
  } catch (error) {
    throw new NorthrootError('PACKAGE_MISSING', 'the package @cedar-policy/cedar-wasm cannot be loaded', {
      cause: error,
      hint: 'install it beside northroot: npm install @cedar-policy/cedar-wasm',
    });
  }
}
