/** `northroot llm`: a proxy for the APIs of models, which keeps a ledger open, until it is stopped. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import type { ListenPlace } from '../../base/platform/serve-http.js';
import type { Meter } from '../../base/value/meter.js';
import type { Gate } from '../../gate/gate.js';
import { DEFAULT_MODELS_PORT, modelEnvironment, serveModels } from '../../gate/llm/serve-models.js';
import { openPrices } from '../../gate/price/open-prices.js';
import { isLoopback } from '../../gate/proxy/headers.js';
import { parseUpstream } from '../../gate/proxy/upstream.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Outcome, Run } from '../context.js';
import { jsonText } from '../json-text.js';
import {
  listenAddress,
  meterList,
  principalId,
  repeatable,
  spanMs,
  waitSpan,
  textOrJson,
  wholeNumber,
} from '../options.js';
import { type AdviserChoice, withAdvisers } from './advisers.js';
import { type DecidingChoice, withDeciding } from './ledger-key.js';
import {
  aborted,
  logEvent,
  openGate,
  readTokens,
  sayClearText,
  type SettlingChoice,
  settlingOptions,
  withSettling,
} from './serving.js';

interface LlmOptions extends DecidingChoice, AdviserChoice, SettlingChoice {
  readonly upstream?: string;
  readonly prices?: string;
  readonly provider?: string;
  readonly principal?: string;
  readonly listen?: { readonly host: string; readonly port: number };
  readonly socket?: string;
  readonly allowHost?: string[];
  readonly tokens?: string;
  readonly upstreamKeyEnv?: string;
  readonly maxOutput?: number;
  readonly reserve?: Meter[];
  readonly streamUsage?: boolean;
  readonly wait?: number;
  readonly ttl?: number;
  readonly attach?: boolean;
  readonly dryRun?: boolean;
  readonly fail: 'open' | 'closed';
}

interface EnvOptions {
  readonly listen?: { readonly host: string; readonly port: number };
  readonly format: 'text' | 'json';
}

const NOTES = `
Clients use it in place of their provider: northroot llm env prints the variables for them. A call that its grant does not allow gets 429 in
the form of the API, with the code of the denial and the id of its record. GET /northroot/budget says what is left, /healthz whether it runs.
Keys of providers, prompts and answers pass; they are neither logged nor kept.`;

export function addLlm(program: Command, run: Run): void {
  const command = program
    .command('llm')
    .summary('proxy the APIs of models: bound and record what calls cost')
    .description(
      'Stands between programs and the API of OpenAI, Anthropic or a provider with the same API. Reserves what a call may cost before it is forwarded, and settles it by the usage that its answer states. Prints its URL on standard output, a line of JSON per request on standard error, and runs until Ctrl-C or SIGTERM.',
    )
    .argument('<ledger>', 'the file or folder')
    .usage('[options] <ledger>')
    // Required, but not by the command below.
    .option(
      '--upstream <url>',
      'the provider (required), such as https://api.openai.com or https://api.anthropic.com',
    )
    .option('--prices <file>', 'the price file; without it, grants that bound money allow no call')
    .option(
      '--provider <name>',
      'whose models they are in the price file (default: openai or anthropic, by the API)',
    )
    .option(
      '--principal <id>',
      'whom calls are for, unless a token or their header X-Northroot-Principal says otherwise',
      principalId,
    )
    .option(
      '--listen <address>',
      `HOST:PORT to listen on; port 0 picks a free one (default: 127.0.0.1:${DEFAULT_MODELS_PORT})`,
      listenAddress,
    )
    .option('--socket <path>', 'a Unix socket to listen on instead')
    .addOption(
      repeatable('--allow-host <name>', "a name besides this machine's loopback by which clients reach it"),
    )
    .option('--tokens <file>', 'whom each client may speak for, and which models it may call')
    .option(
      '--upstream-key-env <name>',
      "the environment variable with the provider's key, for clients that have none",
    )
    .option(
      '--max-output <tokens>',
      'the most output of an answer whose request leaves it open (default: 4096)',
      wholeNumber(1, 10_000_000),
    )
    .option(
      '--reserve <amounts>',
      'the least to reserve for calls that their request does not bound, such as usd=0.50; without it they are denied',
      meterList,
    )
    .option('--stream-usage', 'ask for usage in streams that do not; they have one chunk more then')
    .option('--wait <span>', 'where an approval is needed, wait for it so long, such as 10m', waitSpan)
    .option('--ttl <span>', 'how long a call may take, such as 15m (default: 15m)', spanMs)
    .option('--attach', 'keep the parameters in LEDGER.contents, for who approves and audits')
    .option('--dry-run', 'decide and record, but forward all')
    .addOption(
      new Option('--fail <mode>', 'a call where the ledger cannot be asked: closed denies it')
        .choices(['closed', 'open'])
        .default('closed'),
    )
    .addHelpText('after', NOTES);
  withDeciding(withSettling(withAdvisers(command))).action((ledger: string, options: LlmOptions) =>
    run((context) => serve(context, ledger, options)),
  );
  command
    .command('env')
    .summary('print the variables by which clients find the proxy')
    .description('Prints OPENAI_BASE_URL, ANTHROPIC_BASE_URL and others, for the eval of a shell.')
    .option(
      '--listen <address>',
      `HOST:PORT of the proxy (default: 127.0.0.1:${DEFAULT_MODELS_PORT})`,
      listenAddress,
    )
    .addOption(textOrJson())
    // Both are options of the command above too.
    .action((_: unknown, env: Command) => run((context) => printEnvironment(context, env.optsWithGlobals())));
}

async function serve(context: Context, path: string, options: LlmOptions): Promise<Outcome> {
  const { terminal, signal } = context;
  const place = placeOf(options);
  const upstream = upstreamOf(options);
  if (options.tokens === undefined && !('socket' in place) && !isLoopback(place.host))
    throw usageError(
      '--listen on another address than the loopback requires --tokens',
      'northroot gate token makes them',
    );
  const tokens = await readTokens(options.tokens);
  const prices = options.prices === undefined ? undefined : await openPrices(options.prices);
  const upstreamKey = keyOf(options.upstreamKeyEnv);
  const open = (): Promise<Gate> =>
    openGate(context, path, options, {
      coverage: 'proxy',
      shadow: options.dryRun,
      ...settlingOptions(terminal, options),
    });
  const opening = open();
  let last = opening;
  // The server says why, if it is asked before.
  opening.catch(() => undefined);
  const { reserve, provider, maxOutput, streamUsage, wait, dryRun, fail, allowHost } = options;
  const server = await serveModels({
    gate: opening,
    reopen: () => (last = open()),
    upstream,
    place,
    fail,
    ...defined({ prices, provider, tokens, upstreamKey, maxOutput, streamUsage, dryRun }),
    ...defined({ waitMs: wait, hosts: allowHost }),
    reserve: reserve && Object.fromEntries(reserve.map(({ unit, amount }) => [unit, amount])),
    onEvent: options.log ? (event) => logEvent(terminal, event) : undefined,
  });
  try {
    context.endsInItsTime();
    await opening;
    await terminal.write(`${server.url}\n`);
    terminal.say(`forwards to ${printable(new URL(upstream).origin)} within ${printable(path)}`);
    sayClearText(terminal, upstream);
    if (dryRun === true) terminal.say('a dry run: all is forwarded, whatever is decided');
    if (fail === 'open') terminal.say('fails open: calls pass unrecorded when the ledger cannot be asked');
    await aborted(signal);
  } finally {
    await server.close();
    await last.then(
      (gate) => gate.close(),
      () => undefined,
    );
  }
  terminal.say('stopped');
  return { stopped: 0 };
}

async function printEnvironment({ terminal }: Context, { listen, format }: EnvOptions): Promise<ExitStatus> {
  const { host, port } = listen ?? { host: '127.0.0.1', port: DEFAULT_MODELS_PORT };
  const environment = modelEnvironment(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
  const lines = Object.entries(environment).map(([name, value]) => `export ${name}='${value}'\n`);
  await terminal.write(format === 'json' ? `${jsonText(environment)}\n` : lines.join(''));
  return 0;
}

function placeOf({ listen, socket }: LlmOptions): ListenPlace {
  if (listen !== undefined && socket !== undefined)
    throw usageError('--listen and --socket exclude each other', 'give one of them');
  if (socket !== undefined) return { socket };
  return listen ?? { host: '127.0.0.1', port: DEFAULT_MODELS_PORT };
}

function upstreamOf({ upstream }: LlmOptions): string {
  if (upstream === undefined)
    throw usageError('--upstream is missing', 'name the provider, such as https://api.openai.com');
  try {
    parseUpstream(upstream);
    return upstream;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw usageError(`--${error.message}`);
  }
}

function keyOf(name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  const key = process.env[name] ?? '';
  if (!/^[\x21-\x7e]{1,4096}$/.test(key))
    throw usageError(
      `--upstream-key-env: there is no key in the environment variable ${printable(name, 80)}`,
    );
  return key;
}
