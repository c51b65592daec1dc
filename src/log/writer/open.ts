/** Opening a ledger: its store is read, what a crash left is settled, and a new one gets its genesis, all in one turn. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { toDigestText } from '../../base/value/digest.js';
import type { GenesisEvent } from '../../format/schema/generated/types.js';
import { nodeFileSystem } from '../fs/file-system.js';
import { FileStore } from '../store/file-store.js';
import type { LedgerStore, Turn } from '../store/ledger-store.js';
import { AdmissionRules } from './admission.js';
import { CheckpointTimer } from './checkpoint-timer.js';
import { assertGenesisKeys } from './genesis-line.js';
import { makeGenesis } from './genesis.js';
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
import { Requests } from './requests.js';
import { type OtherRecord, RunningVerification } from './running-verification.js';
import { SigningThreads } from './signing-threads.js';
import { memoryOnly, type StateCache } from './state-cache.js';
import { TurnKeeper } from './turn-keeper.js';
import { Watchers } from './watch.js';

/** A ledger in files gets an index beside it as soon as it is large, unless it is to have none. */
function findCache(store: LedgerStore, { index = true, ...options }: OpeningOptions): StateCache {
  const { fileSystem, signal, onNotice } = options;
  if (!index || !(store instanceof FileStore)) return memoryOnly;
  return new IndexCache(store.name, store, { fileSystem, onNotice }, signal);
}

/** What is there when a ledger was read. */
interface ReadParts {
  readonly store: LedgerStore;
  readonly running: RunningVerification;
  readonly rules: AdmissionRules;
  readonly maker: RecordMaker;
  readonly signing: SigningThreads | undefined;
  readonly cache: StateCache;
  readonly kept: PositionKeeper | undefined;
}

/** What an open ledger is made of. */
export interface OpenParts extends ReadParts {
  readonly commits: GroupCommit;
  readonly requests: Requests;
  readonly watchers: Watchers;
  readonly publisher: NotePublisher;
}

/**
 * Opens a ledger, or makes it.
 *
 * @param place - A path, or a store, which is closed when that fails.
 * @param onCheckpoint - Told of each checkpoint that was made, once it is on disk.
 */
export async function openParts(
  place: string | LedgerStore,
  options: OpeningOptions,
  onCheckpoint: (made: CheckpointResult) => void,
): Promise<OpenParts> {
  // Made before anything is touched: a bad option leaves no empty file behind.
  const genesis = options.create && makeGenesis(options.create, options.signer?.publicKey, nowOf(options));
  const store = typeof place === 'string' ? await openFiles(place, options) : place;
  // Those who watch come later than the first look at the ledger.
  const watched: { by?: Watchers } = {};
  try {
    const cache = options.stateCache ?? findCache(store, options);
    const parts = await openStore(store, options, cache, genesis, (record) => watched.by?.tell(record));
    const open = connect(parts, options, onCheckpoint);
    watched.by = open.watchers;
    return open;
  } catch (error) {
    await store.close().catch(() => undefined);
    throw error;
  }
}

/** Puts the queue before what was opened. */
function connect(
  parts: ReadParts,
  options: OpeningOptions,
  onCheckpoint: (made: CheckpointResult) => void,
): OpenParts {
  const { store, running, cache } = parts;
  const timer = new CheckpointTimer(options, running, () => commits.addDue(nowOf(options)));
  const turns = new TurnKeeper(store, {
    timeoutMs: lockTimeoutOf(options),
    lingerMs: lingerOf(options),
    signal: options.signal,
    onWait: () => options.onNotice?.({ code: 'LEDGER_WAITING', path: store.name }),
    cache,
  });
  const commits = new GroupCommit({ ...parts, options, turns, timer, onCheckpoint });
  const watchers = new Watchers(
    store,
    () => running.position,
    () => commits.act(() => Promise.resolve()),
  );
  const publisher = new NotePublisher(commits, options.fileSystem ?? nodeFileSystem);
  timer.set();
  return { ...parts, commits, requests: new Requests({ ...parts, commits }, options), watchers, publisher };
}

/** Settles what was asked for, and gives all of it up. @throws as the store does when closing fails */
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
  // Publishing may have taken the turn again.
  await commits.close();
  await signing?.close();
  await Promise.resolve(kept?.close()).finally(() => store.close());
}

function openFiles(path: string, { create, segmentBytes, fileSystem }: OpeningOptions): Promise<FileStore> {
  return FileStore.open(path, {
    create: create !== undefined,
    ...(segmentBytes === undefined ? {} : { segmentBytes }),
    ...(fileSystem === undefined ? {} : { fileSystem }),
  });
}

async function openStore(
  store: LedgerStore,
  options: OpeningOptions,
  cache: StateCache,
  genesis: GenesisEvent | undefined,
  onOther: (record: OtherRecord) => void,
): Promise<ReadParts> {
  const { trust, signal, decides, strict, checkpointEvery, onNotice } = options;
  const { name } = store;
  const isAsked = decides === true && trust === undefined;
  const running = new RunningVerification(store, {
    // What would make a ledger invalid is asked of one whose every signature was looked at.
    depth: willSeal(options) || isAsked || strict === true ? 'all' : 'deciding',
    trust,
    cache,
    signal,
    onOther,
    onTornTail: (saved) => onNotice?.({ code: 'TORN_TAIL_SAVED', ...saved }),
    onDamage: (lines) => onNotice?.({ code: 'LEDGER_DAMAGED', path: name, lines }),
  });
  // Others may append while the most of it is read.
  await running.readAhead();
  let turn: Turn;
  try {
    turn = await store.acquire({
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
    const kept = PositionKeeper.of(store, options);
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
    await kept?.keep(running.position);
    if (checkpointEvery !== undefined) maker.assertNoteSigners();
    return { store, running, rules, maker, signing, cache, kept };
  } catch (error) {
    // The error that led here says more.
    await store.discard().catch(() => undefined);
    throw error;
  } finally {
    await cache.release().catch(() => undefined);
    await turn.release();
  }
}

/** Takes away what waiting for the turn has made, unless somebody else has it. */
async function discardEmptyLedger(store: LedgerStore): Promise<void> {
  try {
    const turn = await store.acquire({ timeoutMs: 0 });
    await store.discard().finally(() => turn.release());
  } catch {
    // An empty file is no ledger, and whoever makes one takes it.
  }
}

function genesisIdOf({ genesis }: RunningVerification): string {
  return toDigestText(genesis.event_id.b64);
}

/** Writes the genesis record of a new ledger. */
async function begin(
  { store, running, rules, maker }: Pick<ReadParts, 'store' | 'running' | 'rules' | 'maker'>,
  { onNotice }: OpeningOptions,
  genesis: GenesisEvent | undefined,
): Promise<void> {
  if (genesis === undefined) {
    throw new NorthrootError('LEDGER_EMPTY', `${printable(store.name)} has no records`, {
      hint: 'give the genesis that it is to begin with',
    });
  }
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
  onNotice?.({ code: 'LEDGER_CREATED', path: store.name, origin: genesis.origin });
}
