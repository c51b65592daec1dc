/** `northroot serve`: a gate as a service, which keeps a ledger open, until it is stopped. */

import { type Command, InvalidArgumentError } from 'commander';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { fromDist } from '../../base/dist.js';
import type { Face } from '../../gate/service/face.js';
import { endpointOf } from '../../gate/json-client.js';
import type { RoleChange } from '../../gate/service/peers.js';
import type { ServiceEvent, SliceChoice } from '../../gate/service/gate-service.js';
import { serveGate } from '../../gate/service/serve-gate.js';
import { serveGates, type ServedGate } from '../../gate/service/serve-gates.js';
import type { Key } from '../../format/schema/generated/types.js';
import type { Signer } from '../../format/signature/signer.js';
import { LiveLedger } from '../../log/agent/live-ledger.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { besidePath, isStoreUrl } from '../../log/fs/place.js';
import { findEntitledKeys } from '../../rules/trust/key-entry.js';
import { usageError } from '../command-error.js';
import type { Context, Outcome, Run } from '../context.js';
import type { Terminal } from '../terminal.js';
import { readSigner, readTrustPolicy } from '../input.js';
import { collect, listenAddress, principalId, spanMs } from '../options.js';
import { shellWord } from '../shell-word.js';
import { viewOf } from '../view.js';
import { type AdviserChoice, withAdvisers } from './advisers.js';
import { type FaceChoice, facesOf, withFaces } from './serve-faces.js';
import { type DecidingChoice, decidingOptions, forOneOf, withDeciding } from './ledger-key.js';
import {
  aborted,
  logEvent,
  openGate,
  readTokens,
  type SettlingChoice,
  settlingOptions,
  withSettling,
} from './serving.js';

interface ServeCommandOptions extends DecidingChoice, AdviserChoice, SettlingChoice, FaceChoice {
  readonly principal?: string;
  readonly socket?: string;
  readonly listen?: { readonly host: string; readonly port: number };
  readonly tokens?: string;
  readonly approverKey?: readonly Approver[];
  readonly attach?: boolean;
  readonly shadow?: boolean;
  readonly ttl?: number;
  readonly publicUrl?: string;
  readonly peer?: readonly string[];
  readonly sliceFrom?: string;
  readonly sliceToken?: string;
  readonly giveBack?: boolean;
}

/** Where a service of a ledger listens: beside it, out of a folder of segments. */
export function socketPathOf(ledger: string): string {
  return besidePath(ledger, '.sock');
}

const MAX_OPENAPI_BYTES = 1024 * 1024;

const NOTES = `
Calls are decided by POST /v1/decide and settled by POST /v1/settle; GET /openapi.json describes all. Without --tokens, whoever may open
the socket speaks for --principal alone. northroot gate token makes tokens. /approvals is a page for approvers.
Of several ledgers each has its own socket; with --listen each is below /ledgers/NAME, by the name of its file without .jsonl.`;

export function addServe(program: Command, run: Run): void {
  const command = program
    .command('serve')
    .summary('serve a gate: decide before calls, settle after them')
    .description(
      'Keeps ledgers open and decides on calls over HTTP: hooks, proxies and programs ask before a call, and report after it. Prints its URLs on standard output, a line of JSON per request on standard error, and runs until Ctrl-C or SIGTERM.',
    )
    .argument('<ledger...>', 'the file or folder, or several')
    .option('--principal <id>', 'whom calls are for unless they say otherwise', principalId)
    .option('--socket <path>', 'the Unix socket to listen on (default: LEDGER.sock)')
    .option(
      '--listen <address>',
      'HOST:PORT to listen on too; port 0 picks a free one; requires --tokens, or a face that knows its clients',
      listenAddress,
    )
    .option('--tokens <file>', 'whom each client may speak for, and which tools it may call')
    .option(
      '--approver-key <principal=file>',
      'sign approvals of this principal with this private key (repeatable)',
      approverKeys,
    )
    .option('--attach', 'keep the parameters in LEDGER.contents, for who approves and audits')
    .option('--shadow', 'decide and record, but deny nothing')
    .option('--ttl <span>', 'how long a call may take, such as 15m (default: 15m)', spanMs)
    .option(
      '--peer <url>',
      'another service of the ledger: one decides, the others forward to it or take over (repeatable)',
      collect,
    )
    .option(
      '--slice-from <url>',
      'the service of the parent ledger: asked for the next slice when little is left; requires --slice-token',
    )
    .option('--slice-token <file>', 'a file with a token of that service which may take slices')
    .option('--give-back', 'when stopped, close the grants of slices and have the parent take back the rest')
    .option('--public-url <url>', 'the URL by which gateways reach it, for AuthZEN metadata')
    .addHelpText('after', NOTES);
  withDeciding(withSettling(withAdvisers(withFaces(command)))).action(
    (ledgers: string[], options: ServeCommandOptions) => run((context) => serve(context, ledgers, options)),
  );
}

async function serve(
  context: Context,
  paths: readonly string[],
  options: ServeCommandOptions,
): Promise<Outcome> {
  const { terminal, signal } = context;
  if (options.socket !== undefined && paths.length > 1)
    throw usageError('--socket is for one ledger', 'of several, each has its own: LEDGER.sock');
  if (options.peer !== undefined && (options.listen === undefined || options.tokens === undefined))
    throw usageError(
      '--peer requires --listen and --tokens',
      'services reach one another by their addresses, with the tokens of their clients',
    );
  const peers = options.peer?.map((text) => urlOf('--peer', text));
  const slices = await readSlices(terminal, paths.length, options);
  const named = nameLedgers(paths);
  const tokens = await readTokens(options.tokens);
  const openApi = Buffer.from(await readSmallFile(openApiPath(), MAX_OPENAPI_BYTES)).toString('utf8');
  const shared = {
    openApi,
    ...defined({
      tokens,
      listen: options.listen,
      publicUrl: options.publicUrl,
      peers,
      slices,
    }),
    onEvent: options.log ? (event: ServiceEvent) => logEvent(terminal, event) : undefined,
    onRole: (change: RoleChange) => logEvent(terminal, change),
  };
  const faces = new Map<string, readonly Face[]>();
  const gates = new Map<string, Served>();
  const open = async (name: string, path: string): Promise<Served> => {
    const opened = await openServed(context, path, forOneOf(paths, path, options));
    const served = {
      ...opened,
      ...defined({ faces: faces.get(name) }),
      socket: options.socket ?? socketPathOf(path),
      reopen: () => open(name, path),
    };
    gates.set(name, served);
    return served;
  };
  try {
    for (const [name, path] of named) {
      const place = {
        ledger: path,
        ledgers: named.size,
        listen: options.listen,
        attach: options.attach === true,
      };
      faces.set(name, await facesOf(context, place, options));
    }
    if (
      options.listen !== undefined &&
      tokens === undefined &&
      ![...faces.values()].flat().some(({ authenticates }) => authenticates)
    )
      throw usageError('--listen requires --tokens', 'northroot gate token makes them');
    for (const [name, path] of named) await open(name, path);
    const [only, other] = gates.values();
    const server =
      only !== undefined && other === undefined
        ? await serveGate({ ...shared, ...only })
        : await serveGates({ ...shared, gates });
    context.endsInItsTime();
    for (const url of server.urls) await terminal.write(`${url}\n`);
    terminal.say(
      `serves ${paths.map((path) => printable(path)).join(', ')}${options.shadow === true ? ', in shadow: nothing is denied' : ''}`,
    );
    await aborted(signal);
    await server.close();
  } finally {
    for (const face of [...faces.values()].flat()) await face.close?.();
    for (const served of gates.values()) await closeServed(served);
  }
  terminal.say('stopped');
  return { stopped: 0 };
}

interface Served extends ServedGate {
  readonly approvers: ReadonlyMap<string, LiveLedger>;
}

async function openServed(context: Context, path: string, options: ServeCommandOptions): Promise<Served> {
  const approvers = new Map<string, LiveLedger>();
  const gate = await openGate(context, path, options, {
    coverage: 'sdk',
    ...defined({ checkpoints: options.giveBack }),
    ...settlingOptions(context.terminal, options),
  });
  const served = { gate, approvers };
  try {
    const { approverKey = [] } = options;
    const known = approverKey.length === 0 ? undefined : await readKeys(context, path, options);
    for (const approver of approverKey) {
      const signer = await readSigner(context.terminal, approver.file);
      if (known !== undefined)
        assertApprover(context.terminal, path, known, approver.principal, signer.publicKey.keyid);
      approvers.set(approver.principal, await openAs(context, path, options, approver.principal, signer));
    }
  } catch (error) {
    await closeServed(served);
    throw error;
  }
  return served;
}

async function closeServed({ gate, approvers }: Served): Promise<void> {
  await Promise.all([...approvers.values()].map((ledger) => ledger.close()));
  await gate.close();
}

/** Ledgers by the name that stands in paths: of the file or folder, without `.jsonl`; or in the database. */
function nameLedgers(paths: readonly string[]): ReadonlyMap<string, string> {
  const named = new Map<string, string>();
  for (const path of paths) {
    const name = isStoreUrl(path)
      ? path.slice(path.indexOf('#') + 1)
      : basename(path).replace(/\.jsonl$/, '');
    const other = named.get(name);
    if (other !== undefined)
      throw usageError(
        `${printable(other)} and ${printable(path)} are both called ${printable(name)}`,
        'rename one: ledgers that are served together need different names',
      );
    named.set(name, path);
  }
  return named;
}

async function openAs(
  { terminal }: Context,
  path: string,
  options: ServeCommandOptions,
  principal: string,
  signer: Signer,
): Promise<LiveLedger> {
  const writing = await decidingOptions(terminal, path, signer, options);
  return LiveLedger.open(path, { ...writing, principalId: principal });
}

interface KnownKeys {
  readonly keys: readonly Key[];
  readonly revoked: readonly Key[];
  readonly isRequired: boolean;
}

async function readKeys(context: Context, path: string, options: ServeCommandOptions): Promise<KnownKeys> {
  const trust = await readTrustPolicy(options.trust);
  return viewOf(context, path, undefined, options, trust).inspect(({ keyring, signaturesRequired }) => {
    const all = keyring.save();
    return {
      keys: all.filter(({ revokedBy }) => revokedBy === undefined).map(({ key }) => key),
      revoked: all.filter(({ revokedBy }) => revokedBy !== undefined).map(({ key }) => key),
      isRequired: signaturesRequired,
    };
  });
}

/**
 * Refuses a key by which nobody could approve, before an approver meets it. One that was revoked is only told of: what is decided by the
 * service does not wait for who approves no more.
 * @throws NorthrootError `USAGE`
 */
function assertApprover(
  terminal: Terminal,
  path: string,
  { keys, revoked, isRequired }: KnownKeys,
  principal: string,
  keyid: string,
): void {
  const isThis = (key: Key): boolean => key.keyid === keyid;
  const draft = { event_type: 'approval', principal_id: principal };
  const entitled = findEntitledKeys(keys, draft, { at: new Date().toISOString() });
  if (entitled.some(isThis) || !(keys.some(isThis) || isRequired)) return;
  const what = `key ${keyid} may not sign for ${principal} in ${printable(path)}`;
  if (revoked.some(isThis)) {
    terminal.say(`warning: --approver-key: ${what}: it was revoked`);
    return;
  }
  const others = entitled.map((key) => key.keyid).join(', or ');
  throw usageError(
    `--approver-key: ${what}`,
    others === ''
      ? `an admin can add it: northroot key add ${shellWord(path)} FILE --role event --for ${principal}`
      : `give the file of the key ${others}`,
  );
}

interface Approver {
  readonly principal: string;
  readonly file: string;
}

/** Collects `PRINCIPAL=FILE`. */
function approverKeys(text: string, previous: readonly Approver[] = []): Approver[] {
  const [, name = '', file = ''] = /^([^=]*)=(.+)$/s.exec(text) ?? [];
  if (file === '') throw new InvalidArgumentError('Expected PRINCIPAL=FILE, such as human:olga=olga.pem.');
  const principal = principalId(name);
  if (previous.some((other) => other.principal === principal))
    throw new InvalidArgumentError(`Expected each principal once, found ${principal} twice.`);
  return [...previous, { principal, file }];
}

const MAX_TOKEN_BYTES = 1_024;

/** Where the next slices come from. @throws NorthrootError `USAGE`, and as files are read */
async function readSlices(
  terminal: Terminal,
  ledgers: number,
  { sliceFrom, sliceToken, giveBack = false }: ServeCommandOptions,
): Promise<SliceChoice | undefined> {
  if (sliceFrom === undefined) {
    if (sliceToken === undefined && !giveBack) return undefined;
    throw usageError('--slice-token and --give-back require --slice-from');
  }
  if (sliceToken === undefined) throw usageError('--slice-from requires --slice-token');
  if (ledgers > 1) throw usageError('--slice-from is for one ledger');
  const url = urlOf('--slice-from', sliceFrom);
  const token = Buffer.from(await readSmallFile(sliceToken, MAX_TOKEN_BYTES))
    .toString('utf8')
    .trim();
  if (!/^[A-Za-z0-9._~+/=-]{1,512}$/.test(token))
    throw usageError(`${printable(sliceToken)} has no token`, 'northroot gate token prints one');
  const { sliceClient } = await import('../../gate/service/slice-client.js');
  const onEvent = (event: object): void => logEvent(terminal, event);
  return { source: sliceClient({ url, token }), givesBack: giveBack, onEvent };
}

/** What is malformed is not shown: it may have a password. @throws NorthrootError `USAGE` */
function urlOf(option: string, text: string): URL {
  try {
    return endpointOf(option, text);
  } catch (error) {
    throw usageError((error as Error).message);
  }
}

function openApiPath(): string {
  return fileURLToPath(fromDist('../schemas/openapi/gate.json'));
}
