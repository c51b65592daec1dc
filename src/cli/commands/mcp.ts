/** `northroot mcp`: a guard in the path of MCP, and the gate's own tools as a server of MCP. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import type { Coverage, Gate } from '../../gate/gate.js';
import type { KernelEvent } from '../../gate/kernel/serve-kernel-tools.js';
import { serveGateTools } from '../../gate/mcp/gate-tools.js';
import type { McpSubject } from '../../gate/mcp/guarded-call.js';
import type { McpEvent, McpGuardOptions } from '../../gate/mcp/mcp-calls.js';
import { McpGuard } from '../../gate/mcp/mcp-guard.js';
import { MAX_MCP_MESSAGE_BYTES, type McpProxyOptions, serveMcpProxy } from '../../gate/mcp/http-proxy.js';
import { isLoopback } from '../../gate/proxy/headers.js';
import { tapMcp } from '../../gate/mcp/stdio-tap.js';
import { kindOfPath } from '../../log/fs/file-system.js';
import { assertStartsWithGenesis } from '../../log/writer/genesis.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Outcome, Run } from '../context.js';
import { readTrustPolicy } from '../input.js';
import {
  amountsOf,
  byteSize,
  collect,
  listenAddress,
  principalId,
  repeatable,
  spanMs,
  waitSpan,
} from '../options.js';
import { shellWord } from '../shell-word.js';
import type { Terminal } from '../terminal.js';
import { type AdviserChoice, withAdvisers } from './advisers.js';
import { type DecidingChoice, noLedger, withDeciding } from './ledger-key.js';
import { findKernelOption, type KernelChoice, openKernel, withKernel } from './kernel-options.js';
import {
  aborted,
  openGate,
  sayClearText,
  type SettleAfterChoice,
  settleAfterOptions,
  withSettleAfter,
} from './serving.js';

interface McpCommandOptions extends DecidingChoice, AdviserChoice, KernelChoice, SettleAfterChoice {
  readonly server?: string;
  readonly gate?: boolean;
  readonly serveTools?: boolean;
  readonly principal: string;
  readonly reserve?: string[];
  readonly ttl?: number;
  readonly wait?: number;
  readonly fail: 'closed' | 'open';
  readonly denyAs: 'result' | 'error';
  readonly guard?: readonly McpSubject[];
  readonly hide?: boolean;
  readonly pin?: boolean;
  readonly attach?: boolean;
  readonly shadow?: boolean;
  readonly maxMessage?: number;
  readonly http?: string;
  readonly listen?: { readonly host: string; readonly port: number };
  readonly allowOrigin?: string[];
  readonly allowHost?: string[];
  readonly legacy?: boolean;
}

const DEFAULT_MCP_PORT = 8791;

const SUBJECTS: readonly McpSubject[] = ['resources', 'prompts', 'sampling'];

const NOTES = `
Put it before the command of a server in the settings of its client, or give it the URL of a server, and the client the URL that it prints. A call of the tool T is recorded as mcp.NAME.T: grant it by that
name, or all by 'mcp.NAME.*'. Messages other than calls pass at once; the server's standard error is not touched. The exit status is the
server's. With --gate an agent can ask what is left of its grants, what was decided, and for approvals. With --serve-tools it
acts through this alone, if its own tools are switched off: grant fs.read, fs.list, fs.write, exec and net.fetch by these names.`;

export function addMcp(program: Command, run: Run): void {
  const command = program
    .command('mcp')
    .summary('guard the calls of tools of an MCP server')
    .description(
      'Starts a server of the Model Context Protocol, and stands between it and its client on standard input and output: each call of a tool is decided by the grants of a ledger before the server gets it, and its outcome is recorded while the client gets it.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('[command...]', 'after --: the server and its arguments')
    .option('--server <name>', 'what grants call the server')
    .option('--gate', "serve the gate's own tools instead: budget, why, request_approval")
    .option('--serve-tools', 'serve tools that act instead, for an agent that has no others')
    .option('--principal <id>', 'who calls', principalId, 'agent:mcp')
    .option('--reserve <amounts>', 'the most that one call may use, such as usd=0.05 (repeatable)', collect)
    .option('--ttl <span>', 'how long a call may take, such as 15m (default: 15m)', spanMs)
    .option('--wait <span>', 'where an approval is needed, wait for it so long, such as 10m', waitSpan)
    .addOption(
      new Option(
        '--deny-as <form>',
        'how a denied call is answered: by a result that the model sees, or an error',
      )
        .choices(['result', 'error'])
        .default('result'),
    )
    .option('--guard <list>', 'guard these too: resources, prompts, sampling', readSubjects)
    .option('--hide', 'leave tools that no grant names out of lists of tools')
    .option('--pin', 'deny tools whose definition is another than when they were last allowed')
    .addOption(
      new Option('--fail <mode>', 'a call where the ledger cannot be asked: closed denies it')
        .choices(['closed', 'open'])
        .default('closed'),
    )
    .option('--attach', 'keep the parameters in LEDGER.contents, for who approves and audits')
    .option('--shadow', 'decide and record, but deny nothing')
    .option('--max-message <size>', 'the longest message (default: 16MiB)', byteSize)
    .option(
      '--http <url>',
      'guard the server at this URL, such as https://mcp.example/mcp, instead of a command',
    )
    .option(
      '--listen <address>',
      `with --http: HOST:PORT to listen on; port 0 picks a free one (default: 127.0.0.1:${DEFAULT_MCP_PORT})`,
      listenAddress,
    )
    .option('--legacy', 'with --http: let in clients of versions before 2026-07-28, which have sessions')
    .addOption(repeatable('--allow-origin <origin>', 'with --http: an Origin whose web pages are let in'))
    .addOption(
      repeatable(
        '--allow-host <name>',
        "with --http: a name besides this machine's loopback by which clients reach it",
      ),
    )
    .addHelpText('after', NOTES);
  withKernel(command, 'with --serve-tools: ');
  withDeciding(withSettleAfter(withAdvisers(command))).action(
    (ledger: string, server: readonly string[], options: McpCommandOptions) =>
      run((context) => {
        refuseStray(options);
        if (options.serveTools === true) return serveKernel(context, ledger, server, options);
        if (options.gate === true) return serveTools(context, ledger, server, options);
        if (options.http !== undefined) return guardHttp(context, ledger, server, options.http, options);
        return guardServer(context, ledger, server, options);
      }),
  );
}

/** A client shows little of what its servers say: one that could only deny is not started. */
async function refuseNoLedger(path: string, { fail }: McpCommandOptions): Promise<void> {
  if (fail === 'open' || path.includes('://')) return;
  if ((await kindOfPath(path)) !== 'missing') return assertStartsWithGenesis(path);
  throw await noLedger(path, `northroot init ${shellWord(path)} makes one`);
}

async function guardServer(
  context: Context,
  path: string,
  command: readonly string[],
  options: McpCommandOptions,
): Promise<Outcome> {
  const { terminal, signal } = context;
  if (command.length === 0)
    throw usageError('expected the command of a server after --, or the URL of one in --http');
  refuseHttpOptions(options);
  let opened: Gate | undefined;
  const open = async (): Promise<Gate> => {
    opened = await openOwn(context, path, options);
    return opened;
  };
  const guard = makeGuard(terminal, path, open, options);
  await refuseNoLedger(path, options);
  if (options.fail === 'open')
    terminal.say('northroot: where no ledger can be asked, calls are forwarded without a record');
  // A server has its own time to end, and what it did is to be recorded.
  context.endsInItsTime();
  try {
    const status = await tapMcp({
      command,
      guard,
      signal,
      onNotOpen: (error) => sayNotOpen(terminal, error),
      ...defined({ maxMessageBytes: options.maxMessage }),
    });
    // Some say nothing themselves, and the client only that its server is gone.
    if (status !== 0 && !signal.aborted) terminal.say(`northroot: the server ended with status ${status}`);
    return { stopped: status as ExitStatus };
  } finally {
    await opened?.close();
  }
}

async function guardHttp(
  context: Context,
  path: string,
  command: readonly string[],
  upstream: string,
  options: McpCommandOptions,
): Promise<Outcome> {
  const { terminal, signal } = context;
  if (command.length > 0) throw usageError('--http guards the server at a URL: it takes no command');
  const { listen = { host: '127.0.0.1', port: DEFAULT_MCP_PORT }, legacy, fail, shadow } = options;
  let opened: Gate | undefined;
  const open = async (): Promise<Gate> => {
    opened = await openOwn(context, path, options);
    return opened;
  };
  const guard = makeGuard(terminal, path, open, options);
  try {
    const opening = guard.open();
    // It is looked at below.
    opening.catch(() => undefined);
    const proxy = await startProxy({
      guard,
      upstream,
      listen,
      legacy,
      origins: options.allowOrigin,
      hosts: options.allowHost,
      maxMessageBytes: options.maxMessage ?? MAX_MCP_MESSAGE_BYTES,
      ...defined({ idleTimeoutMs: options.ttl }),
    });
    context.endsInItsTime();
    try {
      if (fail === 'closed') await opening;
      await terminal.write(`${proxy.url}\n`);
      terminal.say(`guards ${printable(new URL(upstream).origin)} within ${printable(path)}`);
      sayClearText(terminal, upstream);
      if (!isLoopback(listen.host))
        terminal.say(`whoever reaches it calls as ${printable(options.principal)}: let nobody else`);
      if (shadow === true) terminal.say('in shadow: nothing is denied');
      if (fail === 'open')
        terminal.say('fails open: where no ledger can be asked, calls are forwarded without a record');
      await aborted(signal);
    } finally {
      await proxy.close();
    }
  } finally {
    await opened?.close();
  }
  terminal.say('stopped');
  return { stopped: 0 };
}

async function startProxy(options: McpProxyOptions): ReturnType<typeof serveMcpProxy> {
  try {
    return await serveMcpProxy(options);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    const problem = error.message.replace(/^serveMcpProxy: /, '');
    throw usageError(problem.startsWith('upstream') ? problem.replace('upstream', '--http') : problem);
  }
}

function refuseStray(options: McpCommandOptions): void {
  const stray = options.serveTools === true ? undefined : findKernelOption(options);
  if (stray !== undefined) throw usageError(`--${stray} requires --serve-tools`);
}

function refuseHttpOptions({ listen, legacy, allowOrigin, allowHost }: McpCommandOptions): void {
  for (const [flag, value] of Object.entries({
    listen,
    legacy,
    'allow-origin': allowOrigin,
    'allow-host': allowHost,
  }))
    if (value !== undefined) throw usageError(`--${flag} requires --http`);
}

async function serveTools(
  context: Context,
  path: string,
  command: readonly string[],
  options: McpCommandOptions,
): Promise<Outcome> {
  const { terminal, signal } = context;
  if (command.length > 0 || options.server !== undefined || options.http !== undefined)
    throw usageError('--gate serves tools of its own: it takes no --server, no --http and no command');
  refuseHttpOptions(options);
  const { principal, maxMessage } = options;
  await refuseNoLedger(path, options);
  const trust = await readTrustPolicy(options.trust);
  let opened: Gate | undefined;
  const open = async (): Promise<Gate> => {
    try {
      opened = await openOwn(context, path, options);
      return opened;
    } catch (error) {
      sayNotOpen(terminal, error);
      throw error;
    }
  };
  context.endsInItsTime();
  try {
    await serveGateTools({
      open,
      principal,
      signal,
      howToApprove: (id) => `northroot approve ${shellWord(path)} ${id}`,
      ...defined({ trust, maxMessageBytes: maxMessage }),
    });
  } finally {
    await opened?.close();
  }
  terminal.finish();
  return { stopped: 0 };
}

/** Tools that act, for an agent that has no others. */
async function serveKernel(
  context: Context,
  path: string,
  command: readonly string[],
  options: McpCommandOptions,
): Promise<Outcome> {
  const { terminal, signal } = context;
  if (
    command.length > 0 ||
    options.server !== undefined ||
    options.http !== undefined ||
    options.gate === true
  )
    throw usageError(
      '--serve-tools serves tools of its own: it takes no --server, no --http, no --gate and no command',
    );
  if (options.fail === 'open')
    throw usageError('--serve-tools does nothing that nobody can decide on: it takes no --fail');
  if (options.ttl !== undefined) throw usageError('--serve-tools takes --call-timeout, and no --ttl');
  refuseHttpOptions(options);
  const { principal, wait, attach, maxMessage, key, trust } = options;
  const tools = await openKernel(options, path, [key, trust, process.env['NORTHROOT_KEY'] || undefined]);
  let opened: Gate | undefined;
  try {
    if (tools.names.length === 0) throw usageError('--serve-tools needs --workspace, --host, or both');
    await refuseNoLedger(path, options);
    const { serveKernelTools } = await import('../../gate/kernel/serve-kernel-tools.js');
    context.endsInItsTime();
    terminal.say(`serves ${tools.names.join(', ')} within ${printable(path)}; isolation: ${tools.isolation}`);
    await serveKernelTools({
      tools,
      open: async () => {
        try {
          opened = await openOwn(context, path, options, 'kernel');
          return opened;
        } catch (error) {
          sayNotOpen(terminal, error);
          throw error;
        }
      },
      principal,
      signal,
      howToApprove: (id) => `northroot approve ${shellWord(path)} ${id}`,
      onEvent: (event) => sayKernelEvent(terminal, event),
      ...defined({ waitMs: wait, attach, maxMessageBytes: maxMessage }),
    });
  } finally {
    await tools.close();
    await opened?.close();
  }
  terminal.finish();
  return { stopped: 0 };
}

function sayKernelEvent(terminal: Terminal, event: KernelEvent): void {
  if (event.event === 'unsettled')
    terminal.say(`northroot: how ${event.tool} ended is not recorded: ${event.code}`);
  else if (event.decision.effect === 'deny' || event.decision.effect === 'ask')
    terminal.say(`northroot: denied ${event.tool}: ${printable(event.decision.code, 64)}`);
}

function makeGuard(
  terminal: Terminal,
  path: string,
  open: () => Promise<Gate>,
  { server, principal, reserve = [], ttl, wait, fail, denyAs, guard, hide, pin }: McpCommandOptions,
): McpGuard {
  if (server === undefined) throw usageError('expected --server, the name by which grants call it');
  const own: McpGuardOptions = {
    open,
    server,
    principal,
    reserve: reserve.length === 0 ? undefined : amountsOf(reserve, refuseReserve),
    ttlMs: ttl,
    waitMs: wait,
    fail,
    denyAs,
    guard,
    hide,
    pin,
    howToApprove: (id) => `northroot approve ${shellWord(path)} ${id}`,
    onEvent: (event) => sayEvent(terminal, path, event),
  };
  try {
    return new McpGuard(own);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usageError(`--${error.message.replace(/^McpGuard: /, '')}`);
  }
}

function openOwn(
  context: Context,
  path: string,
  options: McpCommandOptions,
  coverage: Coverage = 'proxy',
): Promise<Gate> {
  const { terminal } = context;
  return openGate(context, path, options, {
    coverage,
    ...settleAfterOptions(options, ({ tool }) =>
      terminal.say(`northroot: how ${printable(tool, 128)} ended was not seen: settled as unknown`),
    ),
  });
}

/** Of what passes without ado nothing is said: the client shows standard error to people. */
function sayEvent(terminal: Terminal, path: string, event: McpEvent): void {
  const tool = 'tool' in event ? printable(event.tool, 128) : '';
  switch (event.event) {
    case 'decided':
      if (event.effect === 'deny' || event.effect === 'ask')
        terminal.say(`northroot: denied ${tool}: ${event.code}`);
      return;
    case 'waiting': {
      const who = event.approvers.map((each) => printable(each, 256)).join(', ') || 'somebody';
      terminal.say(
        `northroot: ${tool} waits for approval by ${who}: northroot approve ${shellWord(path)} ${event.authorization}`,
      );
      return;
    }
    case 'unrecorded':
      terminal.say(`northroot: ${tool} is forwarded without a record: ${event.code}`);
      return;
    case 'unsettled':
      terminal.say(`northroot: how ${tool} ended is not recorded: ${event.code}`);
      return;
    case 'changed':
      terminal.say(`northroot: the server changed the definition of its tool ${tool}`);
      return;
    case 'dropped':
      terminal.say(`northroot: a message of the ${event.from} is not forwarded: ${event.code}`);
      return;
    case 'unread':
    case 'settled':
  }
}

function sayNotOpen(terminal: Terminal, error: unknown): void {
  if (error instanceof NorthrootError) terminal.fail(error);
  else terminal.say(`northroot: the ledger cannot be opened: ${printable(String(error), 400)}`);
}

function readSubjects(text: string, before: readonly McpSubject[] = []): McpSubject[] {
  const subjects = text.split(',').map((each) => {
    const found = SUBJECTS.find((subject) => subject === each.trim());
    if (found === undefined) throw new InvalidArgumentError(`Expected a list of ${SUBJECTS.join(', ')}.`);
    return found;
  });
  return [...new Set([...before, ...subjects])];
}

function refuseReserve(problem: string): never {
  throw usageError(`--reserve: ${problem}`);
}
