/** `northroot slice`: sets amounts aside in one ledger, to be spent in another. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import type { Meter } from '../../base/value/meter.js';
import { formatQuantity, toRational } from '../../base/value/quantity.js';
import { resolveTime } from '../../base/value/when.js';
import { toDigestText } from '../../base/value/digest.js';
import { DeniedError } from '../../log/agent/errors.js';
import { countSlices } from '../../log/fleet/grant-slice.js';
import { openSlice, type OpenedSlice, sliceKey } from '../../log/fleet/slice.js';
import { formatSlice } from '../../log/fleet/slice-json.js';
import { Ledger } from '../../log/writer/ledger.js';
import { SLICE_TOOL } from '../../rules/bounds/tool-set.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { meterList, requestKey } from '../options.js';
import { shellWord } from '../shell-word.js';
import { viewOf } from '../view.js';
import { type DecidingChoice, decidingOptions, findSigner, withDeciding } from './ledger-key.js';

interface SliceCommandOptions extends DecidingChoice {
  readonly grant: string;
  readonly to: string;
  readonly cap: Meter[];
  readonly expires?: string;
  readonly requestKey?: string;
}

/** The parent's grants deny it; that is recorded. */
export const DENIED: ExitStatus = 3;

const NOTES = `
The amounts count as spent in the parent until northroot settle says what the child used. The grant in the parent
must name the tool northroot.slice: no pattern with * allows it. Only amounts and expiry cross to the child.`;

export function addSlice(program: Command, run: Run): void {
  const command = program
    .command('slice')
    .summary('set amounts aside for another ledger')
    .description(
      'Sets amounts aside in a parent ledger for a child ledger, durably, under a grant of the parent, and writes the slice as JSON: northroot grant CHILD --slice takes it. Asked for again, it gives the slice that was set aside and not granted yet. For a new child, northroot init CHILD --slice does all of it. Exits with 3 if the parent denies it.',
    )
    .argument('<parent>', 'the ledger whose grant pays')
    .requiredOption('--grant <id>', 'the grant in the parent (seq, id or id prefix)')
    .requiredOption('--to <path>', 'the child: its path, or its id, sha-256:…')
    .requiredOption('--cap <amounts>', 'what the child may spend, such as usd=10,calls=1000', meterList)
    .option('--expires <time>', 'until when: 1d, 2h, or a time with Z or an offset (default: as the grant)')
    .option(
      '--request-key <key>',
      'your name for this slice: repeated, it gives the same one (default: made from the ids)',
      requestKey,
    )
    .addHelpText('after', NOTES);
  withDeciding(command).action((parent: string, options: SliceCommandOptions) =>
    run((context) => slice(context, parent, options)),
  );
}

async function slice(context: Context, path: string, options: SliceCommandOptions): Promise<ExitStatus> {
  const expiresAt = expiryOf(options.expires);
  const target = await findChild(context, path, options);
  const { grant } = options;
  const asked = {
    grant,
    caps: options.cap,
    expiresAt,
    childId: target.childId,
    requestKey: options.requestKey ?? sliceKey(target.childId, target.number),
  };
  const taken = await setAside(context, path, asked, options);
  if (taken === undefined) return DENIED;
  const { seq, status } = taken;
  await context.terminal.write(`${jsonText({ seq, status, ...formatSlice(taken) })}\n`);
  context.terminal.say(describeSlice(taken));
  return 0;
}

export interface AskedSlice {
  readonly grant: string;
  readonly caps: readonly Meter[];
  readonly expiresAt: string | undefined;
  readonly childId: string;
  readonly requestKey: string;
}

/** Sets amounts aside in the ledger at `path`; undefined, with the reason said, where it is denied. */
export async function setAside(
  context: Context,
  path: string,
  { grant, caps, expiresAt, childId, requestKey: key }: AskedSlice,
  options: DecidingChoice,
): Promise<OpenedSlice | undefined> {
  const { terminal, signal } = context;
  const trust = await readTrustPolicy(options.trust);
  const signer = await findSigner(terminal, path, options.key);
  const grantId = (await viewOf(context, path, undefined, options).findRecord(grant)).eventId;
  const parent = await Ledger.open(path, {
    ...(await decidingOptions(terminal, path, signer, options)),
    decides: true,
    signal,
    ...defined({ trust }),
  });
  try {
    return await openSlice(parent, {
      grantId,
      childId,
      caps: Object.fromEntries(caps.map(({ unit, amount }) => [unit, amount])),
      requestKey: key,
      signal,
      ...defined({ expiresAt, honourImported: options.honourImported }),
    });
  } catch (error) {
    if (error instanceof RangeError) throw usageError(error.message);
    if (!(error instanceof DeniedError)) throw error;
    terminal.say(`denied: ${error.code}: ${error.message}`);
    const hint = deniedHint(path, error);
    if (hint !== undefined) terminal.say(`hint: ${hint}`);
    return undefined;
  } finally {
    await parent.close();
  }
}

function deniedHint(path: string, { code, decision, hint }: DeniedError): string | undefined {
  if (code === 'APPROVAL_REQUIRED')
    return `northroot approve ${shellWord(path)} ${decision.recorded.eventId}, then ask again`;
  if (code === 'TOOL_NOT_ALLOWED')
    return `a grant allows slices if it names the tool in full, not by a pattern: --tool ${SLICE_TOOL}`;
  return hint;
}

/** Until when, from how it is told: a time from now is one from when the command was given. */
export function expiryOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return resolveTime(text, new Date().toISOString());
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CommandError('USAGE', `--expires: ${error.message}`, { cause: error });
  }
}

export function describeSlice({ caps, childId, principalId, expiresAt, status }: OpenedSlice): string {
  const amounts = caps.map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`).join(', ');
  const until = expiresAt === undefined ? 'without an end' : `until ${expiresAt}`;
  const nothing = caps.filter(({ amount }) => toRational(amount).n === 0n).map(({ unit }) => unit);
  const none =
    nothing.length === 0 ? '' : `; of ${nothing.join(', ')}, which the parent caps, nothing may be used`;
  const was = status === 'exists' ? 'was set aside before' : 'set aside';
  return `${was}: ${amounts}, for ${printable(principalId)} in ${childId}, ${until}${none}`;
}

interface Target {
  readonly childId: string;
  /** Of the slice, from 1: the child has taken up those before it. */
  readonly number: number;
}

async function findChild(context: Context, path: string, options: SliceCommandOptions): Promise<Target> {
  const { to } = options;
  if (to.startsWith('sha-256:')) return { childId: to, number: 1 };
  const parentId = (await viewOf(context, path, undefined, options).findRecord('0')).eventId;
  return viewOf(context, to, undefined, options).inspect((state) => {
    const { ledgerId } = state;
    if (ledgerId === undefined || state.genesis === undefined)
      throw new CommandError('NOT_A_LEDGER', `${printable(to)} is not a ledger: it has no genesis`);
    return { childId: toDigestText(ledgerId), number: countSlices(state, parentId) + 1 };
  });
}
