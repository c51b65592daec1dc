/** `northroot hook`: stands in the hooks of coding agents, and writes itself into their settings. */

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { decodeUtf8, encodeUtf8 } from '../../base/bytes/text.js';
import { defined } from '../../base/defined.js';
import { Gate } from '../../gate/gate.js';
import type { Desk } from '../../gate/hook/desk.js';
import { GateDesk } from '../../gate/hook/gate-desk.js';
import { hostTimeout } from '../../gate/hook/options.js';
import type { HookName, HookProfile } from '../../gate/hook/profile.js';
import { HOOK_PROFILES } from '../../gate/hook/profiles.js';
import { type HookAnswer, runHook } from '../../gate/hook/run-hook.js';
import {
  hookCommand,
  installHooks,
  isEmptySettings,
  MAX_SETTINGS_BYTES,
  uninstallHooks,
} from '../../gate/hook/settings.js';
import { WireDesk } from '../../gate/hook/wire-desk.js';
import { kindOfPath, readSmallFile, removeFile, rewriteFile } from '../../log/fs/file-system.js';
import { isStoreUrl, placeUrl } from '../../log/fs/place.js';
import { grantChain } from '../../rules/bounds/grant.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Outcome, Run } from '../context.js';
import { readStandardInput } from '../hook-client.js';
import { FLAGS, type HookChoice, type HookFlags, readHookFlags, USUAL } from '../hook-flags.js';
import { ofFile, readTrustPolicy } from '../input.js';
import { shellWord } from '../shell-word.js';
import { viewOf } from '../view.js';
import {
  type DecidingChoice,
  decidingOptions,
  findSigner,
  isMissing,
  noLedger,
  POSITION_WITNESS,
  withDeciding,
} from './ledger-key.js';

type RunChoice = HookFlags & DecidingChoice;

interface PlaceChoice {
  readonly project?: boolean;
  readonly settings?: string;
  readonly print?: boolean;
}

const HOSTS = Object.keys(HOOK_PROFILES).join(', ');
const HOST_ARGUMENT = `the agent: ${HOSTS}`;
/** Of a token, in bytes. */
const MAX_TOKEN_BYTES = 4_096;

export function addHook(program: Command, run: Run): void {
  const hook = program
    .command('hook')
    .summary('guard a coding agent by its hooks')
    .description(
      'Decides on each tool call of a coding agent, and records what came of it. northroot hook AGENT answers one call of a hook; northroot hook install AGENT has the agent call it.',
    );
  const answer = hook
    .command('run', { isDefault: true })
    .summary('answer one call of a hook')
    .description(
      'Reads a hook call on standard input, and answers it on standard output, as the agent expects it. Asks the service at the socket; if none answers, opens the ledger itself. A call that cannot be decided is denied. The word run may be left out.',
    )
    .argument('<agent>', HOST_ARGUMENT);
  withRunning(answer).action((host: string, options: RunChoice) =>
    run((context) => answerOne(context, profileOf(host), options)),
  );
  const install = hook
    .command('install')
    .summary('have an agent call northroot before each tool call')
    .description(
      "Writes hooks into the agent's settings; what else is there stays. The other options are those that the hooks are to run with.",
    )
    .argument('<agent>', HOST_ARGUMENT);
  withPlace(withRunning(install)).action((host: string, options: RunChoice & PlaceChoice) =>
    run((context) => installInto(context, profileOf(host), options)),
  );
  const uninstall = hook
    .command('uninstall')
    .summary("take northroot out of an agent's settings")
    .description('Removes the hooks that northroot hook install wrote; what else is there stays.')
    .argument('<agent>', HOST_ARGUMENT);
  withPlace(uninstall).action((host: string, options: PlaceChoice) =>
    run((context) => uninstallFrom(context, profileOf(host), options)),
  );
}

function withRunning(command: Command): Command {
  return withDeciding(
    command
      .option('--ledger <path>', 'the ledger to decide by, where no service answers')
      .option('--socket <path>', 'the socket of the service (default: NORTHROOT_SOCKET, then LEDGER.sock)')
      .option('--token-file <file>', 'what the service knows the client by (default: NORTHROOT_TOKEN)')
      .option('--principal <id>', 'who acts (default: agent:AGENT)')
      .option(
        '--subagents <prefix>',
        'subagents act as this and their kind, such as agent:claude-code/, under grants of their own (default: as who acts)',
      )
      .addOption(
        new Option('--on-allow <answer>', "allow: an allowed call skips the agent's own rules")
          .choices(['none', 'allow'])
          .default(USUAL.onAllow),
      )
      .addOption(
        new Option(
          '--on-ask <answer>',
          'where an approval is needed: deny, and say who can approve; or have the agent ask its user, whose answer the ledger does not know',
        )
          .choices(['deny', 'ask'])
          .default(USUAL.onAsk),
      )
      .addOption(
        new Option('--fail <mode>', 'a call where neither service nor ledger can be asked: closed denies it')
          .choices(['closed', 'open'])
          .default(USUAL.fail),
      )
      .option('--wait <span>', 'where an approval is needed, wait for it so long, such as 10m', USUAL.wait)
      .option('--deadline <span>', 'answer within this time, the wait not counted', USUAL.deadline),
  );
}

function withPlace(command: Command): Command {
  return command
    .option('--project', 'the settings of the project in this folder, not those of the user')
    .option('--settings <file>', 'another settings file')
    .option('--print', 'print the settings instead of writing them');
}

function profileOf(host: string): HookProfile {
  const profile = Object.hasOwn(HOOK_PROFILES, host) ? HOOK_PROFILES[host as HookName] : undefined;
  if (profile === undefined) throw usageError(`no agent ${printable(host)} is known`, `one of ${HOSTS}`);
  return profile;
}

function optionsOf(profile: HookProfile, flags: HookFlags): HookChoice {
  try {
    return readHookFlags(profile, flags, process.env);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usageError(error.message);
  }
}

async function answerOne(context: Context, profile: HookProfile, choice: RunChoice): Promise<Outcome> {
  const options = optionsOf(profile, choice);
  const input = context.input ?? (await readStandardInput());
  let service: WireDesk | undefined;
  let gate: Gate | undefined;
  const openLedger = async (): Promise<Desk> => {
    gate ??= await openGate(context, options, choice);
    return new GateDesk(gate);
  };
  const open = async (): Promise<Desk> => {
    const { socket } = options;
    service = socket === undefined ? undefined : await WireDesk.connect(socket, await readToken(options));
    return service ?? openLedger();
  };
  let answer = await runHook(profile, input, open, options);
  service?.close();
  if (service?.isBroken === true) answer = await runHook(profile, input, openLedger, options);
  await print(context, answer);
  const close = gate?.close().catch(() => undefined);
  if (answer.status === 0) await close;
  // What is late may wait for a lock, and the host for its end.
  else process.exit(answer.status);
  return 0;
}

async function print({ terminal }: Context, { stdout, stderr }: HookAnswer): Promise<void> {
  await terminal.write(stdout);
  if (stderr !== '') terminal.say(stderr.trimEnd());
}

async function openGate(context: Context, options: HookChoice, choice: RunChoice): Promise<Gate> {
  const { terminal, signal } = context;
  const { ledger, principal } = options;
  if (ledger === undefined)
    throw new CommandError('SERVICE_FAILED', 'no service answers, and --ledger names no ledger');
  const trust = await readTrustPolicy(choice.trust);
  const signer = await findSigner(terminal, ledger, choice.key);
  return Gate.open(ledger, {
    ...(await decidingOptions(terminal, ledger, signer, choice)),
    principalId: principal,
    coverage: 'hook',
    create: undefined,
    signal,
    ...defined({ trust, honourImported: choice.honourImported }),
  });
}

async function readToken({ tokenFile }: HookChoice): Promise<string | undefined> {
  if (tokenFile === undefined) return process.env['NORTHROOT_TOKEN'] || undefined;
  return decodeUtf8(await readSmallFile(tokenFile, MAX_TOKEN_BYTES)).trim();
}

async function installInto(
  context: Context,
  profile: HookProfile,
  choice: RunChoice & PlaceChoice,
): Promise<ExitStatus> {
  const options = optionsOf(profile, choice);
  if (options.socket === undefined) throw usageError('expected --ledger, --socket or both');
  const { ledger } = options;
  if (ledger !== undefined) {
    await assertGranted(context, ledger, options.principal, choice);
    if ([ledger, choice.positionWitness ?? ''].some((place) => placeUrl(place) !== place))
      context.terminal.say(
        "warning: settings do not take a URL's password and options: set PGPASSWORD or PGPASSFILE, and the like, where the agent runs",
      );
  }
  const path = settingsPathOf(profile, choice);
  const text = await readSettings(path);
  const after = ofFile(path, () =>
    installHooks(profile, text, commandOf(profile, choice), hostTimeout(options)),
  );
  return write(context, profile, choice, { path, text, after });
}

async function uninstallFrom(
  context: Context,
  profile: HookProfile,
  choice: PlaceChoice,
): Promise<ExitStatus> {
  const path = settingsPathOf(profile, choice);
  const text = await readSettings(path);
  if (text === undefined) {
    context.terminal.say(`there is no ${printable(path)}`);
    return 0;
  }
  const after = ofFile(path, () => uninstallHooks(profile, text));
  return write(context, profile, choice, { path, text, after });
}

async function write(
  { terminal }: Context,
  profile: HookProfile,
  { print: isPrinted = false, project }: PlaceChoice,
  { path, text, after }: { readonly path: string; readonly text: string | undefined; readonly after: string },
): Promise<ExitStatus> {
  if (isPrinted) {
    await terminal.write(after);
    return 0;
  }
  if (after === text) {
    terminal.say(`${printable(path)} is as it should be`);
    return 0;
  }
  // A file that is northroot's alone goes with its hooks.
  const isLeft = profile.settings.isProjectOnly !== true || !isEmptySettings(profile, after);
  if (isLeft) await rewriteFile(path, encodeUtf8(after));
  else await removeFile(path);
  terminal.say(`${isLeft ? 'wrote' : 'removed'} ${printable(path)}`);
  const { remark, isProjectOnly } = profile.settings;
  if (after.length <= (text ?? '').length) return 0;
  if (remark !== undefined) terminal.say(`note: ${remark}`);
  if (project === true || isProjectOnly === true)
    terminal.say(
      'note: it names paths of this machine: where they are missing, agents may run calls without asking; install hooks on each machine, and do not commit this file',
    );
  return 0;
}

async function readSettings(path: string): Promise<string | undefined> {
  if ((await kindOfPath(path)) === 'missing') return undefined;
  return decodeUtf8(await readSmallFile(path, MAX_SETTINGS_BYTES));
}

function settingsPathOf({ settings }: HookProfile, { project, settings: named }: PlaceChoice): string {
  if (named !== undefined) return resolve(named);
  const { folder, variable, file, isProjectOnly } = settings;
  if (project === true || isProjectOnly === true) return resolve(folder, file);
  const own = variable === undefined ? undefined : process.env[variable] || undefined;
  return resolve(own ?? resolve(homedir(), folder), file);
}

/** Before a host is told to ask a ledger that allows nothing. */
async function assertGranted(
  context: Context,
  ledger: string,
  principal: string,
  choice: RunChoice,
): Promise<void> {
  const name = shellWord(ledger);
  const grant = `northroot grant ${name} --to ${principal} --tool '*' --cap calls=500 --expires 12h`;
  if (await isMissing(ledger)) throw await noLedger(ledger, `northroot init ${name} && ${grant}`);
  const trust = await readTrustPolicy(choice.trust);
  const { isGranted, isTimed } = await viewOf(context, ledger, undefined, choice, trust).inspect((state) => {
    const grants = [...state.links.grants.allowedTo(principal)];
    const all = grants.flatMap((grant) => grantChain(grant));
    return {
      isGranted: grants.length > 0,
      isTimed: all.some(({ rates, concurrency }) => rates.length > 0 || concurrency !== undefined),
    };
  });
  if (!isGranted)
    throw new CommandError(
      'GRANT_NOT_FOUND',
      `${printable(ledger)} grants ${principal} nothing: every call would be denied`,
      { exitStatus: 2, hint: grant },
    );
  if (isTimed)
    context.terminal.say(
      'warning: a hook does not say when a call begins: calls that the agent makes at the same time can exceed rates and concurrency limits, which verification then shows; caps hold',
    );
}

/** What the host is to run: this very program, from wherever the host is. */
export function hookWords(name: HookName): string[] {
  const [node = 'node', script = ''] = process.argv;
  return [node, resolve(script), 'hook', name];
}

/** A path from wherever the host runs it; a folder stays one. */
function fromAnywhere(path: string): string {
  if (isStoreUrl(path)) return path;
  return path.endsWith('/') ? join(resolve(path), '/') : resolve(path);
}

function commandOf({ name }: HookProfile, choice: RunChoice): string {
  const words = hookWords(name);
  const paths = {
    ledger: FLAGS.ledger,
    socket: FLAGS.socket,
    tokenFile: FLAGS.tokenFile,
    key: '--key',
    trust: '--trust',
    positionWitness: POSITION_WITNESS[0].split(' ')[0] as string,
  };
  const others = { ...FLAGS, durability: '--durability' };
  for (const [member, flag] of Object.entries({ ...paths, ...others })) {
    const value = choice[member as keyof typeof paths | keyof typeof others];
    const usual = Object.hasOwn(USUAL, member) ? USUAL[member as keyof typeof USUAL] : undefined;
    if (value !== undefined && value !== usual)
      words.push(flag, Object.hasOwn(paths, member) ? fromAnywhere(value) : value);
  }
  for (const system of choice.honourImported ?? []) words.push('--honour-imported', system);
  return hookCommand(words);
}
