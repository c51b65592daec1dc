/** `northroot serve`: a gate as a service, which keeps a ledger open, until it is stopped. */

import type { Command } from 'commander';
import { fileURLToPath } from 'node:url';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { fromDist } from '../../base/dist.js';
import { NorthrootError } from '../../base/error.js';
import type { Adviser } from '../../gate/advisers/adviser.js';
import { cedarAdviser, type CedarModule } from '../../gate/advisers/cedar.js';
import { authZenAdviser, opaAdviser } from '../../gate/advisers/http.js';
import { Gate, type GateOptions } from '../../gate/gate.js';
import type { ServiceEvent } from '../../gate/service/gate-service.js';
import { serveGate } from '../../gate/service/serve-gate.js';
import { Tokens } from '../../gate/service/tokens.js';
import { LiveLedger } from '../../log/agent/live-ledger.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { usageError } from '../command-error.js';
import type { Context, Outcome, Run } from '../context.js';
import { readSigner, readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { collect, listenAddress, principalId, spanMs } from '../options.js';
import type { Terminal } from '../terminal.js';
import { type DecidingChoice, decidingOptions, findSigner, withDeciding } from './ledger-key.js';

interface ServeCommandOptions extends DecidingChoice, AdviserChoice {
  readonly principal?: string;
  readonly socket?: string;
  readonly listen?: { readonly host: string; readonly port: number };
  readonly tokens?: string;
  readonly approverKey?: string[];
  readonly attach?: boolean;
  readonly shadow?: boolean;
  readonly ttl?: number;
  readonly publicUrl?: string;
  readonly log: boolean;
}

/** Where a service of a ledger listens: beside it, out of a folder of segments. */
export function socketPathOf(ledger: string): string {
  return `${ledger.replace(/\/+$/, '')}.sock`;
}

const MAX_TOKENS_BYTES = 4 * 1024 * 1024;
const MAX_POLICIES_BYTES = 4 * 1024 * 1024;
const MAX_OPENAPI_BYTES = 1024 * 1024;

const NOTES = `
Calls are decided by POST /v1/decide and settled by POST /v1/settle; GET /openapi.json describes all. Without --tokens, whoever may open
the socket speaks for --principal alone. northroot gate token makes tokens. /approvals is a page for approvers.`;

export function addServe(program: Command, run: Run): void {
  const command = program
    .command('serve')
    .summary('serve a gate: decide before calls, settle after them')
    .description(
      'Keeps a ledger open and decides on calls over HTTP: hooks, proxies and programs ask before a call, and report after it. Prints its URLs on standard output, a line of JSON per request on standard error, and runs until Ctrl-C or SIGTERM.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--principal <id>', 'whom calls are for unless they say otherwise', principalId)
    .option('--socket <path>', 'the Unix socket to listen on (default: LEDGER.sock)')
    .option(
      '--listen <address>',
      'HOST:PORT to listen on too; port 0 picks a free one; requires --tokens',
      listenAddress,
    )
    .option('--tokens <file>', 'whom each client may speak for, and which tools it may call')
    .option(
      '--approver-key <principal=file>',
      'sign approvals of this principal with this private key; may be given again',
      collect,
    )
    .option('--attach', 'keep the parameters in LEDGER.contents, for who approves and audits')
    .option('--shadow', 'decide and record, but deny nothing')
    .option('--ttl <span>', 'how long a call may take, such as 15m (default: 15m)', spanMs)
    .option('--public-url <url>', 'the URL by which gateways reach it, for AuthZEN metadata')
    .option('--no-log', 'write no line per request')
    .addHelpText('after', NOTES);
  withDeciding(withAdvisers(command)).action((ledger: string, options: ServeCommandOptions) =>
    run((context) => serve(context, ledger, options)),
  );
}

async function serve(context: Context, path: string, options: ServeCommandOptions): Promise<Outcome> {
  const { terminal, signal } = context;
  if (options.listen !== undefined && options.tokens === undefined)
    throw usageError('--listen requires --tokens', 'northroot gate token makes them');
  const tokens =
    options.tokens === undefined
      ? undefined
      : Tokens.parse(await readSmallFile(options.tokens, MAX_TOKENS_BYTES));
  const openApi = Buffer.from(await readSmallFile(openApiPath(), MAX_OPENAPI_BYTES)).toString('utf8');
  const gate = await openGate(context, path, options);
  const approvers = new Map<string, LiveLedger>();
  try {
    for (const text of options.approverKey ?? []) {
      const [principal, file] = approverOf(text);
      approvers.set(principal, await openAs(context, path, options, principal, file));
    }
    const server = await serveGate({
      gate,
      socket: options.socket ?? socketPathOf(path),
      approvers,
      openApi,
      ...defined({ tokens, listen: options.listen, publicUrl: options.publicUrl }),
      onEvent: options.log ? (event) => logEvent(terminal, event) : undefined,
    });
    context.endsInItsTime();
    for (const url of server.urls) await terminal.write(`${url}\n`);
    terminal.say(
      `serves ${printable(path)}${options.shadow === true ? ', in shadow: nothing is denied' : ''}`,
    );
    await aborted(signal);
    await server.close();
  } finally {
    await Promise.all([...approvers.values()].map((ledger) => ledger.close()));
    await gate.close();
  }
  terminal.say('stopped');
  return { stopped: 0 };
}

async function openGate(context: Context, path: string, options: ServeCommandOptions): Promise<Gate> {
  const { terminal } = context;
  const trust = await readTrustPolicy(options.trust);
  const signer = await findSigner(terminal, path, options.key);
  const advisers = await advisersOf(options);
  const own: GateOptions = {
    advisers,
    coverage: 'sdk',
    shadow: options.shadow,
    attach: options.attach,
    ttlMs: options.ttl,
  };
  return Gate.open(path, {
    ...(await decidingOptions(terminal, path, signer, options)),
    honourImported: options.honourImported,
    ...defined({ trust, principalId: options.principal }),
    ...own,
  });
}

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

async function openAs(
  { terminal }: Context,
  path: string,
  options: ServeCommandOptions,
  principal: string,
  file: string,
): Promise<LiveLedger> {
  const signer = await readSigner(terminal, file);
  const writing = await decidingOptions(terminal, path, signer, { ...options, position: false });
  return LiveLedger.open(path, { ...writing, principalId: principal });
}

function approverOf(text: string): readonly [principal: string, file: string] {
  const at = text.indexOf('=');
  if (at === -1) throw usageError(`--approver-key: expected PRINCIPAL=FILE, found ${printable(text, 80)}`);
  return [principalId(text.slice(0, at)), text.slice(at + 1)];
}

function openApiPath(): string {
  return fileURLToPath(fromDist('../schemas/openapi/gate.json'));
}

function logEvent(terminal: Terminal, event: ServiceEvent): void {
  terminal.say(jsonText({ time: new Date().toISOString(), ...event }));
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
