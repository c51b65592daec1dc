/** Opening a ledger under one write lock: read it, repair its tail, create a genesis if new. */

import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { toDigestText } from '../../base/value/digest.js';
import type { GenesisEvent } from '../../format/schema/generated/types.js';
import { indexFolder } from '../cache/ledger-index.js';
import { nodeFileSystem } from '../fs/file-system.js';
import { FileStore } from '../store/file-store.js';
import { notReplicated, openStore } from '../store/open-store.js';
import type { LedgerStore, WriteLock } from '../store/ledger-store.js';
import { AdmissionRules } from './admission.js';
import { CheckpointTimer } from './checkpoint-timer.js';
import { assertGenesisKeys, makeGenesis } from './genesis.js';
import { GroupCommit } from './group-commit.js';
import { IndexCache } from './index-cache.js';
import { PositionKeeper } from './kept-position.js';
import {
  type CheckpointResult,
  lingerOf,
  lockTimeoutOf,
  nowOf,
  type OpeningOptions,
  willSeal,
} from './options.js';
import { NotePublisher } from './publish-note.js';
import { RecordMaker } from './record-maker.js';
import { type OtherRecord, RunningVerification } from './running-verification.js';
import { SigningThreads } from './signing-threads.js';
import { memoryOnly, type StateCache } from './state-cache.js';
import { LockKeeper } from './lock-keeper.js';
import { Watchers } from './watch.js';

function findCache(store: LedgerStore, { index = true, ...options }: OpeningOptions): StateCache {
  const { fileSystem, signal, onNotice } = options;
  const folder = indexFolder(index);
  // Only files have a place beside them.
  if (index === false || (folder === undefined && !(store instanceof FileStore))) return memoryOnly;
  return new IndexCache(store.name, store, { folder, fileSystem, onNotice }, signal);
}

interface ReadParts {
  readonly store: LedgerStore;
  readonly running: RunningVerification;
  readonly rules: AdmissionRules;
  readonly maker: RecordMaker;
  readonly signing: SigningThreads | undefined;
  readonly cache: StateCache;
  readonly kept: PositionKeeper | undefined;
}

export interface OpenParts extends ReadParts {
  readonly commits: GroupCommit;
  readonly watchers: Watchers;
  readonly publisher: NotePublisher;
}

/**
 * @param place - A path or the URL of a store; or a store, which is closed on failure
 * @param onCheckpoint - Called with each new checkpoint once it is on disk
 */
export async function openParts(
  place: string | LedgerStore,
  options: OpeningOptions,
  onCheckpoint: (made: CheckpointResult) => void,
): Promise<OpenParts> {
  if (typeof place !== 'string' && options.positionWitness !== undefined)
    throw new TypeError('positionWitness: a store is opened with its witness');
  // First, so that a bad option leaves no empty file.
  const genesis = options.create && makeGenesis(options.create, options.signer?.publicKey, nowOf(options));
  const store = typeof place === 'string' ? await openPlace(place, options) : place;
  // Watchers are created after the first read.
  const watched: { by?: Watchers } = {};
  try {
    if (options.durability === 'replicated' && store.durability !== 'replicated')
      throw notReplicated(store.name);
    const cache = options.stateCache ?? findCache(store, options);
    const kept = PositionKeeper.of(store, options, typeof place === 'string');
    const parts = await openLines({ store, cache, kept }, options, genesis, (record) =>
      watched.by?.tell(record),
    );
    const open = connect(parts, options, onCheckpoint);
    watched.by = open.watchers;
    return open;
  } catch (error) {
    await store.close().catch(() => undefined);
    throw error;
  }
}

function connect(
  parts: ReadParts,
  options: OpeningOptions,
  onCheckpoint: (made: CheckpointResult) => void,
): OpenParts {
  const { store, running, cache } = parts;
  const timer = new CheckpointTimer(options, running, () => commits.addDue(nowOf(options)));
  const locks = new LockKeeper(store, {
    timeoutMs: lockTimeoutOf(options),
    lingerMs: lingerOf(options),
    signal: options.signal,
    onWait: () => options.onNotice?.({ code: 'LEDGER_WAITING', path: store.name }),
    cache,
    save: () => running.save(),
    clock: options.clock,
  });
  const commits = new GroupCommit({ ...parts, options, locks, timer, onCheckpoint });
  const watchers = new Watchers(
    store,
    () => running.position,
    () => commits.act(() => Promise.resolve()),
  );
  const publisher = new NotePublisher(commits, options.fileSystem ?? nodeFileSystem);
  timer.set();
  return { ...parts, commits, watchers, publisher };
}

/** Waits for pending requests, and closes everything. @throws as the store does */
export async function closeParts({
  commits,
  watchers,
  publisher,
  signing,
  store,
  kept,
}: OpenParts): Promise<void> {
  const committed = commits.close();
  await watchers.close();
  await committed;
  await publisher.close();
  // Publishing may have acquired the lock again.
  await commits.close();
  await signing?.close();
  try {
    await kept?.close();
  } finally {
    await store.close();
  }
}

function openPlace(
  place: string,
  { create, segmentBytes, fileSystem, durability, positionWitness, signal }: OpeningOptions,
): Promise<LedgerStore> {
  const given = defined({ segmentBytes, fileSystem, requires: durability, positionWitness, signal });
  return openStore(place, { create: create !== undefined, ...given });
}

async function openLines(
  { store, cache, kept }: Pick<ReadParts, 'store' | 'cache' | 'kept'>,
  options: OpeningOptions,
  genesis: GenesisEvent | undefined,
  onOther: (record: OtherRecord) => void,
): Promise<ReadParts> {
  const { trust, signal, decides, strict, checkpointEvery, onNotice } = options;
  const { name } = store;
  const isAsked = decides === true && trust === undefined;
  const running = new RunningVerification(store, {
    // Strictness needs every signature verified.
    depth: willSeal(options) || isAsked || strict === true ? 'all' : 'deciding',
    trust,
    cache,
    signal,
    onOther,
    onTornTail: (saved) => onNotice?.({ code: 'TORN_TAIL_SAVED', ...saved }),
    onDamage: (lines) => onNotice?.({ code: 'LEDGER_DAMAGED', path: name, lines }),
  });
  // Without the lock, so that others may append during most of the reading.
  await running.readAhead();
  let lock: WriteLock;
  try {
    lock = await store.acquire({
      timeoutMs: lockTimeoutOf(options),
      signal,
      onWait: () => onNotice?.({ code: 'LEDGER_WAITING', path: name }),
    });
  } catch (error) {
    if (running.state.lines === 0) await discardEmptyLedger(store);
    throw error;
  }
  try {
    await running.catchUp(true);
    const rules = new AdmissionRules(running);
    const signing = SigningThreads.of(options.signer, options.signingThreads);
    const maker = new RecordMaker(options, running, rules, signing);
    const isBegun = running.state.lines > 0;
    if (isBegun) {
      await running.assertStands(await kept?.open(genesisIdOf(running)), kept?.path);
      await store.confirm();
    } else {
      await kept?.assertNothingKept();
      await begin({ store, running, rules, maker }, options, genesis);
      await kept?.open(genesisIdOf(running));
    }
    running.acknowledge();
    if (checkpointEvery !== undefined) maker.assertNoteSigners();
    await kept?.keep(running.position);
    return { store, running, rules, maker, signing, cache, kept };
  } catch (error) {
    // The first error says more.
    await store.discard().catch(() => undefined);
    throw error;
  } finally {
    await cache.release().catch(() => undefined);
    await lock.release();
  }
}

/** Removes the file created while waiting for the lock, unless another writer has it. */
async function discardEmptyLedger(store: LedgerStore): Promise<void> {
  try {
    const lock = await store.acquire({ timeoutMs: 0 });
    try {
      await store.discard();
    } finally {
      await lock.release();
    }
  } catch {
    // An empty file is no ledger; the next creator uses it.
  }
}

function genesisIdOf({ genesis }: RunningVerification): string {
  return toDigestText(genesis.event_id.b64);
}

async function begin(
  { store, running, rules, maker }: Pick<ReadParts, 'store' | 'running' | 'rules' | 'maker'>,
  { onNotice }: OpeningOptions,
  genesis: GenesisEvent | undefined,
): Promise<void> {
  if (genesis === undefined)
    throw new NorthrootError('LEDGER_EMPTY', `${printable(store.name)} has no records`, {
      hint: 'give the genesis that it is to begin with',
    });
  assertGenesisKeys(genesis);
  running.adopt(genesis);
  const line = maker.makeGenesisLine(genesis);
  const { position } = running;
  await running.begin();
  running.add(line);
  const signatures = line.examined.signatures ?? [];
  rules.check(line.examined, canonicalBytes(genesis), signatures, undefined);
  await store.appendIf(position, [line.bytes]);
  await running.committed(1, false);
  await running.save();
  onNotice?.({ code: 'LEDGER_CREATED', path: store.name, origin: genesis.origin });
}
