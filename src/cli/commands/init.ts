/** `northroot init`: makes a new ledger with its genesis record and, by default, its key. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import type { NorthrootError } from '../../base/error.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Meter } from '../../base/value/meter.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { isToolPattern } from '../../base/value/tool.js';
import { MAX_KEY_BYTES } from '../../format/key/key-form.js';
import type { PublicKey } from '../../format/key/public-key.js';
import type { Key } from '../../format/schema/generated/types.js';
import type { Signer } from '../../format/signature/signer.js';
import { grantSlice } from '../../log/fleet/grant-slice.js';
import { sliceKey } from '../../log/fleet/slice.js';
import { formatSlice } from '../../log/fleet/slice-json.js';
import { describePredecessor } from '../../log/read/describe-predecessor.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { isEmptyLedger, ownKeyEntry } from '../../log/writer/genesis.js';
import { Ledger } from '../../log/writer/ledger.js';
import { makeKeyEntry } from '../../rules/trust/key-entry.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { parseFile, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { assertPatterns, meterList, pastInstant, principalId, repeatable } from '../options.js';
import { viewOf } from '../view.js';
import { readPublicHalf } from './key.js';
import {
  assertOneSigning,
  asUsageError,
  findNamedSigner,
  forOneOf,
  LOCK_TIMEOUT,
  openSigned,
  openWithNewKey,
  type PlaceChoice,
  placeOptions,
  withPlace,
} from './ledger-key.js';
import { describeNotice } from './notices.js';
import { DENIED, describeSlice, expiryOf, setAside } from './slice.js';

interface InitOptions extends PlaceChoice {
  readonly origin?: string;
  readonly key?: string;
  readonly recoveryKey?: readonly string[];
  readonly unsigned?: boolean;
  readonly requireCheckpoints?: boolean;
  readonly continues?: string;
  readonly principal: string;
  readonly at?: string;
  readonly slice?: string;
  readonly grant?: string;
  readonly tool?: readonly string[];
  readonly cap?: Meter[];
  readonly expires?: string;
  readonly parentKey?: string;
}

export function addInit(program: Command, run: Run): void {
  const command = program
    .command('init')
    .summary('make a new ledger')
    .description(
      'Makes a new ledger and its genesis record. It signs with --key, or the key that NORTHROOT_KEY names; without either it uses LEDGER.key, which is made if missing. A path that ends in / becomes a folder of segments.',
    )
    .argument('<ledger>', 'the file, or folder, to make')
    .option(
      '--origin <name>',
      "the ledger's unique name, a URL without a scheme (default: localhost/ and a random name)",
    )
    .option('--key <file>', 'private key to sign with (default: NORTHROOT_KEY, then a new one)')
    .addOption(
      repeatable(
        '--recovery-key <file>',
        'also declare this key, with the role admin only, to be kept offline: if the first key is lost, it can add another',
      ),
    )
    .option('--unsigned', 'declare no key and require no signatures')
    .option('--require-checkpoints', 'a ledger with records and no checkpoint is invalid')
    .option('--continues <path>', 'the predecessor of this ledger, in its present state')
    .option('--principal <id>', 'who creates the ledger', principalId, 'service:ledger')
    .option(
      '--at <time>',
      'when its history begins, to record the past: 7d (ago), or a time that is not in the future (default: now)',
      pastInstant,
    )
    .option(
      '--slice <path>',
      'set amounts aside in this ledger for the new one, and grant them there: with --grant, --cap and --tool; given again after a crash, it goes on',
    )
    .option('--grant <id>', 'with --slice: the grant in the parent (seq, id or id prefix)')
    .option('--cap <amounts>', 'with --slice: what may be spent, such as usd=10,calls=1000', meterList)
    .addOption(repeatable('--tool <pattern>', "with --slice: what may be called, such as 'fs.*'"))
    .option('--expires <time>', 'with --slice: until when: 1d, 2h, or a time with Z or an offset')
    .option(
      '--parent-key <file>',
      'with --slice: private key to sign with in the parent (default: NORTHROOT_KEY, then PARENT.key)',
    );
  withPlace(command).action((ledger: string, options: InitOptions) =>
    run((context) => init(context, ledger, options)),
  );
}

async function init(context: Context, path: string, options: InitOptions): Promise<ExitStatus> {
  if (path === STDIN)
    throw usageError('a ledger is made in a file or a folder', 'name it: ./- for the file -');
  const slice = readSliceOptions(options);
  // Nothing is made for a slice of what is not there.
  if (slice !== undefined)
    await ofParent(context, slice, () =>
      viewOf(context, slice.parent, undefined, { index: true }).findRecord(slice.grant),
    );
  const isMadeBefore = slice !== undefined && !(await isEmptyLedger(path));
  const made = isMadeBefore ? await findMade(context, path, options) : await make(context, path, options);
  if (slice === undefined) {
    await context.terminal.write(`${jsonText(made)}\n`);
    return 0;
  }
  return spendSlice(context, path, made, slice, options);
}

/** What `init` says of a ledger. */
interface Made {
  readonly seq: 0;
  readonly event_id: string;
  readonly origin: string;
  readonly keyid: string | null;
}

async function make({ terminal, signal }: Context, path: string, options: InitOptions): Promise<Made> {
  const { unsigned = false, key, origin, principal, requireCheckpoints = false, at } = options;
  if (at !== undefined && compareTimestamps(at, new Date().toISOString()) > 0) {
    // Keys would be valid only from then.
    throw usageError(`--at ${at} is in the future`, 'expected a time in the past');
  }
  assertOneSigning(options);
  const recovery = await readRecoveryKeys(options);
  if (!(await isEmptyLedger(path))) throw ledgerExists(path);
  const { continues: old } = options;
  const continues = old === undefined ? undefined : await describePredecessor(() => openLedger(old), signal);
  let isMade = false;
  const open = async (signer: Signer | undefined): Promise<Ledger> => {
    try {
      return await Ledger.open(path, {
        create: {
          ...defined({ origin }),
          ...(requireCheckpoints ? { checkpoints: 'required' } : {}),
          ...(signer === undefined || recovery.length === 0
            ? {}
            : { keys: [ownKeyEntry(signer.publicKey), ...besides(signer, recovery)] }),
          ...defined({ continues }),
          principalId: principal,
        },
        onNotice: (notice) => {
          isMade ||= notice.code === 'LEDGER_CREATED';
          terminal.say(describeNotice(notice));
        },
        signal,
        ...(await placeOptions(path, ofChild(path, options))),
        ...(at === undefined ? {} : { now: () => at }),
        ...defined({ signer }),
      });
    } catch (error) {
      throw asUsageError(error);
    }
  };
  const named = unsigned ? undefined : await findNamedSigner(terminal, key);
  const isAlone = unsigned || named !== undefined;
  const { ledger, signer } = isAlone
    ? { ledger: await open(named), signer: named }
    : await openWithNewKey(terminal, path, open);
  const keyid = signer?.publicKey.keyid ?? null;
  const result: Made = { seq: 0, event_id: ledger.genesisId, origin: ledger.origin, keyid };
  await ledger.close();
  // Another process may have made it.
  if (!isMade) throw ledgerExists(path);
  return result;
}

interface SliceChoice {
  readonly parent: string;
  readonly grant: string;
  readonly caps: readonly Meter[];
  readonly tools: readonly string[];
  readonly expiresAt: string | undefined;
}

function readSliceOptions({
  slice,
  grant,
  cap,
  tool,
  expires,
  parentKey,
}: InitOptions): SliceChoice | undefined {
  if (slice === undefined) {
    const given = Object.entries({
      '--grant': grant,
      '--cap': cap,
      '--tool': tool,
      '--expires': expires,
      '--parent-key': parentKey,
    });
    const [name] = given.find(([, value]) => value !== undefined) ?? [];
    if (name !== undefined)
      throw usageError(`${name} belongs to --slice`, 'northroot init --help has examples');
    return undefined;
  }
  if (grant === undefined || cap === undefined || tool === undefined)
    throw usageError('--slice needs --grant, --cap and --tool', 'northroot init --help has examples');
  assertPatterns({ tool: tool.find((each) => !isToolPattern(each)) });
  return { parent: slice, grant, caps: cap, tools: tool, expiresAt: expiryOf(expires) };
}

/** A ledger that an earlier attempt made: it has nothing but its genesis, and perhaps its first grant of this parent's slice. */
async function findMade(context: Context, path: string, options: InitOptions): Promise<Made> {
  const view = viewOf(context, path, undefined, { index: true });
  const found = await view.inspect(({ records, genesis, ledgerId, origin, keyring }) => ({
    records,
    isLedger: genesis !== undefined,
    id: ledgerId,
    origin: origin ?? '',
    keyids: keyring.save().map(({ key }) => key.keyid),
  }));
  const first = found.records < 2 ? undefined : (await view.findRecord('1')).event;
  const { slice } = (first?.['authorization'] ?? {}) as { readonly slice?: unknown };
  if (!found.isLedger || found.id === undefined || (found.records > 1 && slice === undefined))
    throw ledgerExists(path);
  if (options.origin !== undefined && options.origin !== found.origin) throw ledgerExists(path);
  return { seq: 0, event_id: toDigestText(found.id), origin: found.origin, keyid: found.keyids[0] ?? null };
}

/** Sets the slice aside in the parent, once, and grants it in the child, once. */
async function spendSlice(
  context: Context,
  path: string,
  made: Made,
  slice: SliceChoice,
  options: InitOptions,
): Promise<ExitStatus> {
  const { parent, grant, caps, tools, expiresAt } = slice;
  const { terminal, signal } = context;
  const childId = made.event_id;
  const { position, positionWitness, durability } = options;
  const choice = {
    lockTimeout: LOCK_TIMEOUT[3],
    index: true,
    ...defined({ position: position === false ? position : undefined, positionWitness, durability }),
  };
  const taken = await ofParent(context, slice, () =>
    setAside(
      context,
      parent,
      { grant, caps, expiresAt, childId, requestKey: sliceKey(childId) },
      forOneOf([parent, path], parent, { ...choice, ...defined({ key: options.parentKey }) }),
    ),
  );
  if (taken === undefined) {
    terminal.say(`${printable(path)} was made, and has no grant`);
    return DENIED;
  }
  const { key } = options;
  const child = { ...choice, ...defined({ position, key }) };
  const { ledger } = await openSigned(context, path, ofChild(path, { ...child, slice: parent }), {
    decides: true,
  });
  try {
    const granted = await grantSlice(ledger, taken, { allowedTools: tools }, { signal });
    const { seq, eventId, status } = granted;
    await terminal.write(
      `${jsonText({ ...made, grant: { seq, event_id: eventId, status }, slice: { seq: taken.seq, status: taken.status, ...formatSlice(taken) } })}\n`,
    );
    terminal.say(describeSlice(taken));
    return 0;
  } finally {
    await ledger.close();
  }
}

/** Does what concerns the parent: hints of its failures name that ledger. */
async function ofParent<T>(
  { terminal }: Context,
  { parent }: SliceChoice,
  act: () => Promise<T>,
): Promise<T> {
  const child = terminal.ledger;
  terminal.ledger = parent;
  const result = await act();
  terminal.ledger = child;
  return result;
}

/** What is asked of the new ledger's place, where the parent may have another kind. */
function ofChild<T extends PlaceChoice & { readonly slice?: string }>(path: string, choice: T): T {
  return forOneOf([path, ...(choice.slice === undefined ? [] : [choice.slice])], path, choice);
}

/** Either half of each key is accepted. */
async function readRecoveryKeys({ recoveryKey = [], unsigned }: InitOptions): Promise<PublicKey[]> {
  if (unsigned === true && recoveryKey.length > 0)
    throw usageError('--recovery-key and --unsigned exclude each other');
  const keys: PublicKey[] = [];
  for (const file of recoveryKey) {
    const key = await parseFile(file, MAX_KEY_BYTES, readPublicHalf);
    if (keys.some(({ keyid }) => keyid === key.keyid))
      throw usageError(`--recovery-key ${printable(file)}: expected each key once`);
    keys.push(key);
  }
  return keys;
}

function besides(signer: Signer, recovery: readonly PublicKey[]): Key[] {
  if (recovery.some(({ keyid }) => keyid === signer.publicKey.keyid))
    throw usageError(
      '--recovery-key: expected another key than the one that signs',
      'make one with northroot keygen --out FILE, and keep it elsewhere',
    );
  return recovery.map((key) => makeKeyEntry(key, { roles: ['admin'], name: 'recovery' }));
}

function ledgerExists(path: string): NorthrootError {
  return new CommandError('LEDGER_EXISTS', `${printable(path)} exists already`, {
    hint: 'if it is a ledger, append to it; if not, choose another path; nothing was changed',
  });
}
