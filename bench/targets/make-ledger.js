/**
 * Writes large ledgers fast: northroot begins each (genesis, keys, grants), threads make and sign the events that follow, and this thread
 * numbers, chains and seals them. It verifies nothing of what it writes: who measures does.
 */

import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import {
  canonicalBytes,
  createSigner,
  generatePrivateKey,
  Ledger,
  makeKeyEntry,
  signEvent,
} from '../../dist/api/index.js';
import {
  appendLeaf,
  buildCheckpoint,
  emptyRange,
  formatCheckpoint,
  formatNote,
  hashToBase64url,
  leafHash,
  rangeRoot,
  signNote,
} from '../../dist/api/internals.js';
import { idOf } from '../ledger.js';
import { at, BLOCK, KINDS } from './kinds.js';

const ORIGIN = 'example.com/bench';
const SEAL_EVERY = 10_000;
const FLUSH_BYTES = 4 << 20;

/**
 * Writes a ledger of `records` records, of which `growth` come last, after a checkpoint in a kind that has these.
 *
 * @returns `records`; `baseRecords` and `baseBytes`, which are without the growth; `bytes`; and the tree's `root`.
 */
export async function makeLedger(path, kind, records, growth = 0) {
  const { signed, keys: keyCount } = KINDS[kind];
  const own = generatePrivateKey();
  const signer = createSigner(own);
  const others = Array.from({ length: keyCount }, generatePrivateKey);
  const { ledgerId, grantId } = await begin(path, KINDS[kind], signer, others);
  const chain = new Chain(path, signer, ledgerId);
  const signing = keyCount === 0 ? [own] : others;
  const keys = signed ? signing.map(({ publicKey, pkcs8 }) => ({ keyid: publicKey.keyid, pkcs8 })) : [];
  const pool = new Pool({ kind, grantId, ledgerId, keys });
  const base = records - growth;
  let ofBase;
  try {
    for (const until of growth > 0 ? [base, records] : [records]) {
      // A checkpoint may be due within, and one is at the end.
      const seals = signed ? 0 : Math.ceil((until - chain.seq) / SEAL_EVERY);
      await extend(chain, pool, until - seals, signed ? Infinity : SEAL_EVERY);
      while (!signed && chain.seq < until) chain.seal();
      if (chain.seq !== until) throw new Error(`expected ${until} records, made ${chain.seq}`);
      ofBase ??= { baseRecords: chain.seq, baseBytes: chain.bytes };
    }
  } finally {
    await pool.close();
    chain.close();
  }
  return { records, ...ofBase, bytes: chain.bytes, root: chain.root };
}

/** The first records, which northroot itself writes. */
async function begin(path, { signed, grants }, signer, others) {
  rmSync(path, { force: true });
  const signing = signed ? {} : { signatures: 'optional', checkpoints: 'required' };
  const ledger = await Ledger.open(path, {
    signer,
    create: { origin: ORIGIN, ...signing },
    now: () => at(0),
    index: false,
  });
  let grantId;
  for (const draft of grants) ({ eventId: grantId } = await ledger.append({ event: draft(grantId) }));
  await Promise.all(
    others.map(({ publicKey }) =>
      ledger.append({
        event: {
          event_type: 'key',
          principal_id: 'service:ledger',
          action: 'add',
          key: makeKeyEntry(publicKey, { roles: ['event'] }),
        },
      }),
    ),
  );
  const { genesisId: ledgerId } = ledger;
  await ledger.close();
  return { ledgerId, grantId };
}

/** Adds records until there are `until`, with checkpoints between them that are counted beside. */
async function extend(chain, pool, until, sealEvery) {
  let begun = 0;
  const count = until - chain.seq;
  const first = chain.events;
  const blocks = Math.ceil(count / (2 * BLOCK));
  const startBlock = (number) =>
    pool.run({
      from: first + 2 * BLOCK * number,
      count: Math.min(2 * BLOCK, count - 2 * BLOCK * number),
    });
  const waiting = [];
  for (let number = 0; number < blocks; number += 1) {
    while (begun < blocks && waiting.length < pool.ahead) waiting.push(startBlock(begun++));
    for (const event of await waiting.shift()) {
      chain.add(event);
      if (chain.unsealed >= sealEvery - 1) chain.seal();
    }
  }
}

/** The end of a ledger, and what is needed to go on from it. */
class Chain {
  seq = 0;
  /** Numbers the events, whatever else stands between them. */
  events = 10;
  bytes = 0;
  unsealed = 0;
  #tree = emptyRange();
  #prev;
  #lastId;
  #file;
  #pending = [];
  #pendingBytes = 0;
  #signer;
  #ledgerId;

  constructor(path, signer, ledgerId) {
    this.#signer = signer;
    this.#ledgerId = ledgerId;
    for (const line of readFileSync(path, 'utf8').trimEnd().split('\n')) {
      this.#take(Buffer.from(line));
      this.#lastId = JSON.parse(line).event.event_id.b64;
    }
    this.#file = openSync(path, 'a');
  }

  get root() {
    return `sha-256:${hashToBase64url(rangeRoot(this.#tree))}`;
  }

  add({ text, eventId, signatures }) {
    this.events += 1;
    this.#write(text, eventId, signatures);
  }

  /** Adds a checkpoint of all before it. */
  seal() {
    const root = rangeRoot(this.#tree);
    const text = formatCheckpoint({ origin: ORIGIN, size: this.seq, root, extensions: [] });
    const event = buildCheckpoint(
      {
        principal_id: 'service:ledger',
        occurred_at: at(this.events),
        tree_size: this.seq,
        root: { alg: 'sha-256', b64: hashToBase64url(root) },
        chain_tip_event_id: idOf(`sha-256:${this.#lastId}`),
        note: formatNote({ text, signatures: [signNote(text, ORIGIN, this.#signer)] }),
      },
      { ledgerId: this.#ledgerId },
    );
    const bytes = canonicalBytes(event);
    const { keyid, sig } = signEvent(bytes, this.#signer);
    this.#write(Buffer.from(bytes).toString(), event.event_id.b64, JSON.stringify([{ keyid, sig }]));
    this.unsealed = 0;
  }

  close() {
    this.#flush();
    closeSync(this.#file);
  }

  #write(text, eventId, signatures) {
    const prev = `{"alg":"sha-256","b64":"${this.#prev}"}`;
    const line = Buffer.from(
      `{"event":${text},"prev":${prev},"seq":${this.seq},"signatures":${signatures}}\n`,
    );
    this.#take(line.subarray(0, -1));
    this.#lastId = eventId;
    this.#pending.push(line);
    this.#pendingBytes += line.length;
    if (this.#pendingBytes >= FLUSH_BYTES) this.#flush();
  }

  #take(line) {
    const leaf = leafHash(line);
    appendLeaf(this.#tree, leaf);
    this.#prev = hashToBase64url(leaf);
    this.seq += 1;
    this.unsealed += 1;
    this.bytes += line.length + 1;
  }

  #flush() {
    const bytes = Buffer.concat(this.#pending);
    for (let done = 0; done < bytes.length;) done += writeSync(this.#file, bytes, done);
    this.#pending = [];
    this.#pendingBytes = 0;
  }
}

/** Threads that make events. */
class Pool {
  #workers;
  #jobs = new Map();
  #number = 0;

  constructor(workerData) {
    this.#workers = Array.from({ length: Math.max(1, availableParallelism()) }, () => {
      const worker = new Worker(new URL('make-worker.js', import.meta.url), { workerData });
      worker.on('message', ({ number, events }) => {
        this.#jobs.get(number).resolve(events);
        this.#jobs.delete(number);
      });
      worker.on('error', (error) => {
        for (const { reject } of this.#jobs.values()) reject(error);
      });
      return worker;
    });
  }

  /** How many blocks to have begun: enough that no thread waits, few enough to hold. */
  get ahead() {
    return 3 * this.#workers.length;
  }

  run(task) {
    const number = this.#number++;
    const promise = new Promise((resolve, reject) => this.#jobs.set(number, { resolve, reject }));
    // Whoever waits for an earlier one is told first.
    promise.catch(() => {});
    this.#workers[number % this.#workers.length].postMessage({ number, ...task });
    return promise;
  }

  async close() {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
