/**
 * The ways to verify one ledger, each of which gives the report of every other: how it is read, cut, examined, put aside and gone on
 * from. A ledger's own way is the definition: a line at a time, nothing known ahead, no fast path, each signature by the backend.
 */

import assert from 'node:assert/strict';
import { createReadStream, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { examinePart } from '../../src/fast/blocks/examine-part.js';
import { openParts } from '../../src/fast/blocks/open-parts.js';
import { exportBundle } from '../../src/proof/bundle/export-bundle.js';
import { decodeBundle } from '../../src/proof/bundle/bundle-file.js';
import { verifyBundle } from '../../src/proof/bundle/verify-bundle.js';
import { NorthrootError } from '../../src/base/error.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { openScratchFile } from '../../src/log/fs/scratch-file.js';
import { useFastPath } from '../../src/fast/scan/scanned-line.js';
import { MAX_LINE_BYTES } from '../../src/format/record/line-splitter.js';
import { startWorker } from '../../src/base/platform/node.js';
import { buildReport, type Report } from '../../src/rules/report/report.js';
import { readLedgerStatus } from '../../src/log/read/status.js';
import { toChunkSource, verifyChunks } from '../../src/rules/report/verify-chunks.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { emptyRange, hashToBase64url, rangeRoot } from '../../src/format/tree/compact-range.js';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import { MemoryStore } from '../store/memory-store.js';
import type { VerifyState } from '../../src/rules/verify/state.js';
import { endVerification, runVerification } from '../../src/rules/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import type { VerifiedRecord } from '../../src/rules/verify/verified-record.js';
import { LedgerView } from '../../src/log/read/ledger-view.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { Ledger, type LedgerOptions } from '../../src/log/writer/ledger.js';
import { testThread } from '../batch/threads.js';
import type { MadeLedger } from './differential-kit.js';
import { withExamining } from './differential-examining.js';
import { inChunks } from './support.js';

export const NOW = '2026-11-22T00:00:00Z';
export const OPTIONS = { now: NOW, maxFindings: 100_000 } as const;

/** The report without the source's name, which is the only thing that may differ. */
export function formOf(report: object, name = '-'): string {
  if (name === '-') return JSON.stringify(report);
  return JSON.stringify(report).replaceAll(JSON.stringify(name).slice(1, -1), '-');
}

/** A way: what it is called, and what it says; `undefined` where it cannot be gone with this ledger. */
export interface Way {
  readonly kind: string;
  /** With its numbers. */
  readonly name: string;
  readonly report: () => Promise<string | undefined>;
  /** What it must say; the report of all ways unless given. */
  readonly expected?: (() => Promise<string>) | undefined;
}

/** What is done with whole processes, which take too long for each ledger. */
export interface SlowWays {
  /** The report of the verifier as it is bundled for browsers. */
  readonly browser?: ((bytes: Buffer) => Promise<string>) | undefined;
  /** The same in Chromium. */
  readonly chromium?: ((bytes: Buffer) => Promise<string>) | undefined;
  /** What `northroot` prints on standard output, in the folder of the ledgers. */
  readonly run?: ((args: readonly string[], input?: Uint8Array) => string) | undefined;
}

/** How often what takes long is done: with one of so many ledgers. */
export interface Shares {
  readonly browser: number;
  readonly index: number;
  readonly process: number;
  readonly chromium: number;
}

/** Where ledgers are written to. */
export const folder = mkdtempSync(join(tmpdir(), 'northroot-differential-'));

export function removeFolder(): void {
  rmSync(folder, { recursive: true, force: true });
}

/** Line by line, the definition. */
export function byDefinition(bytes: Buffer): Promise<Report> {
  return withExamining({ blocks: 'lines' }, async () => {
    useFastPath(false);
    try {
      return await verifyChunks(bytes, { ...OPTIONS, threads: 1 });
    } finally {
      useFastPath(true);
    }
  });
}

/** The ways for one ledger: some for each, the others in turn. */
export class Ways {
  readonly #made: MadeLedger;
  readonly #bytes: Buffer;
  readonly #below: (end: number) => number;
  /** Behind each newline. */
  readonly #ends: readonly number[];
  readonly #longest: number;
  /** What the definition says. */
  readonly #report: Report;
  readonly #slow: SlowWays;

  constructor(made: MadeLedger, report: Report, below: (end: number) => number, slow: SlowWays) {
    this.#made = made;
    this.#bytes = made.bytes;
    this.#report = report;
    this.#below = below;
    this.#slow = slow;
    const ends: number[] = [];
    for (let at = 0; (at = this.#bytes.indexOf(0x0a, at) + 1) > 0;) ends.push(at);
    this.#ends = ends;
    const lengths = ends.map((end, index) => end - (ends[index - 1] ?? 0));
    this.#longest = Math.max(1, ...lengths, this.#bytes.length - (ends.at(-1) ?? 0));
  }

  /** @param n - Its number: what is done in turn, and what with one of so many, goes by it. */
  list(n: number, isLong: boolean, shares: Shares): Way[] {
    const inTurn: (() => Way)[] = [
      () => this.#oneChunk(),
      () => this.#inThreads(n),
      () => this.#file(),
      () => this.#oneChunk(),
      () => this.#inThreads(n),
      () => this.#parts(),
      () => this.#resumed(isLong ? this.#someEnds() : [0, ...this.#ends]),
      () => this.#bundle(),
      () => this.#inThreads(n),
      () => this.#writer(),
      () => this.#told(n),
      () => this.#resumed(this.#someEnds()),
      () => this.#hashedPrefix(),
      () => this.#oneChunk(),
      () => this.#inThreads(n),
      () => this.#standardInput(),
      () => this.#chunks(this.#bytes.length > MAX_LINE_BYTES ? 61 : 1),
      () => this.#told(n),
      () => this.#scratch(),
    ];
    const { browser, chromium, run } = this.#slow;
    const isTurn = (share: number): boolean => share > 0 && n % share === share - 1;
    return [
      this.#inBlocks(n),
      ...(isLong
        ? [
            this.#oneChunk(),
            this.#inThreads(n),
            this.#chunks(65_535, 65_536, 65_537),
            this.#chunks(4_096),
            this.#resumed(this.#someEnds()),
          ]
        : [inTurn[n % inTurn.length]()]),
      ...(browser !== undefined && isTurn(shares.browser) && this.#bytes.length < 200_000
        ? [
            {
              kind: 'bundled for a browser',
              name: 'bundled for a browser',
              report: () => browser(this.#bytes),
            },
          ]
        : []),
      ...(isTurn(shares.index) ? [this.#index(), this.#view()] : []),
      ...(run !== undefined && isTurn(shares.process) ? this.#processes(run) : []),
      ...(chromium !== undefined && isTurn(shares.chromium)
        ? [{ kind: 'Chromium', name: 'Chromium', report: () => chromium(this.#bytes) }]
        : []),
    ];
  }

  #oneChunk(): Way {
    return {
      kind: 'one chunk',
      name: 'one chunk',
      report: async () => formOf(await verifyChunks([this.#bytes], { ...OPTIONS, threads: 1 })),
    };
  }

  #chunks(...sizes: number[]): Way {
    return {
      kind: 'chunks',
      name: `chunks of ${sizes.join(', ')}`,
      report: async () =>
        formOf(await verifyChunks(inChunks(this.#bytes, ...sizes), { ...OPTIONS, threads: 1 })),
    };
  }

  /** Blocks as small as the longest line lets them be, or that end beside a signature that is refused; chunks about as long. */
  #inBlocks(n: number): Way {
    const blockBytes = this.#blockBytes();
    const sizes = Array.from({ length: 1 + this.#below(5) }, () => {
      const kind = this.#below(3);
      if (kind === 0) return 1 + this.#below(2_000);
      return Math.max(1, kind * blockBytes - 1 + this.#below(3));
    });
    // Long ones are scanned, and their signatures verified, as they are in real blocks.
    const scanner = n % 2 === 0 ? 'wasm' : 'plain';
    const tables = n % 32 < 2 ? 'at once' : undefined;
    return {
      kind: 'blocks',
      name: `blocks of ${blockBytes}, ${scanner}, tables ${tables ?? 'as usual'}, chunks of ${sizes.join(', ')}`,
      report: () =>
        withExamining({ blocks: { blockBytes }, scanner, tables }, async () =>
          formOf(await verifyChunks(inChunks(this.#bytes, ...sizes), { ...OPTIONS, threads: 1 })),
        ),
    };
  }

  #inThreads(n: number): Way {
    const blockBytes = this.#blockBytes();
    const scanner = n % 4 === 0 ? 'plain' : 'wasm';
    return {
      kind: '2 threads',
      name: `2 threads, blocks of ${blockBytes}, ${scanner}`,
      report: () =>
        withExamining(
          { blocks: { blockBytes, worthwhileBytes: 0, start: () => testThread() }, scanner },
          async () => formOf(await verifyChunks(this.#bytes, { ...OPTIONS, threads: 2 })),
        ),
    };
  }

  /** Verified up to the first of these places, saved, restored, gone on from up to the next, and so on. */
  #resumed(ends: readonly number[]): Way {
    const bytes = this.#bytes;
    const blockBytes = this.#blockBytes();
    return {
      kind: 'gone on from',
      name: `gone on from ${ends.join(', ')} in blocks of ${blockBytes}`,
      report: () =>
        withExamining({ blocks: { blockBytes } }, async () => {
          let saved: Uint8Array | undefined;
          const run = (end: number): ReturnType<typeof runVerification> =>
            runVerification(toChunkSource(bytes.subarray(0, end), '-'), {
              ...OPTIONS,
              ...(saved && { from: restoreVerification(saved) }),
            });
          for (const end of ends) {
            const { state, kept } = await run(end);
            saved = saveVerification({ state, findings: kept });
          }
          return formOf(buildReport(await run(bytes.length)));
        }),
    };
  }

  /** The same with files, whose earlier bytes are hashed as a whole and not looked at. */
  #hashedPrefix(): Way {
    const ends = this.#someEnds();
    return {
      kind: 'a file that grew',
      name: `a file that grew, from ${ends.join(', ')}`,
      report: async () => {
        const path = join(folder, 'growing.jsonl');
        let saved: Uint8Array | undefined;
        let report: Report | undefined;
        for (const end of [...ends, this.#bytes.length]) {
          writeFileSync(path, this.#bytes.subarray(0, end));
          const result = await runVerification(await openLedgerSource(path, { patienceMs: 0 }), {
            ...OPTIONS,
            keepPrefix: true,
            threads: 1,
            ...(saved && { from: restoreVerification(saved) }),
          });
          const { state, kept, prefix } = result;
          saved = saveVerification({ state, findings: kept, ...(prefix && { prefix }) });
          report = buildReport(result);
        }
        return formOf(report as Report, path);
      },
    };
  }

  #file(): Way {
    return {
      kind: 'a file',
      name: 'a file',
      report: async () => {
        const path = this.#write('file.jsonl');
        return formOf(await verifyLedger(await openLedgerSource(path, { patienceMs: 0 }), OPTIONS), path);
      },
    };
  }

  #standardInput(): Way {
    const highWaterMark = 1 + this.#below(5_000);
    return {
      kind: 'a stream',
      name: `a stream, ${highWaterMark} bytes at a time`,
      report: async () =>
        formOf(await verifyLedger(createReadStream(this.#write('stream.jsonl'), { highWaterMark }), OPTIONS)),
    };
  }

  /** Ids of events are in a temporary file, as far as they may be. */
  #scratch(): Way {
    return {
      kind: 'ids in temporary files',
      name: 'ids in temporary files',
      report: async () => {
        const source: LedgerSource = {
          ...toChunkSource(this.#bytes, '-'),
          openScratch: openScratchFile,
        };
        return formOf(
          buildReport(await runVerification(source, { ...OPTIONS, threads: 1, maxMemory: 64 * 1_024 })),
        );
      },
    };
  }

  /** A report on parts says besides that they are believed. */
  #parts(): Way {
    const of = 1 + this.#below(5);
    const isMerged = (report: Report): Report => {
      assert.equal(report.not_checked.filter(({ code }) => code === 'PARTS').length, 1);
      return { ...report, not_checked: report.not_checked.filter(({ code }) => code !== 'PARTS') };
    };
    return {
      kind: 'parts',
      name: `${of} parts, merged`,
      report: async () => {
        const parts: Buffer[] = [];
        for (let part = 1; part <= of; part += 1) {
          const pieces: Uint8Array[] = [];
          for await (const piece of examinePart(toChunkSource(this.#bytes, '-'), { part, of }))
            pieces.push(Uint8Array.from(piece));
          parts.push(Buffer.concat(pieces));
        }
        const inputs = parts.map((part, index) => ({
          kind: 'part',
          name: `part ${index + 1}`,
          open: () => inChunks(part, 1_000, 7),
        }));
        const blocks = { blockBytes: this.#blockBytes() };
        return withExamining({ blocks }, async () =>
          formOf(
            isMerged(buildReport(await runVerification(await openParts(inputs), { ...OPTIONS, threads: 1 }))),
          ),
        );
      },
    };
  }

  /** Whoever is told of the records; what they were told of is still so when all others were read. */
  #told(n: number): Way {
    const blockBytes = this.#blockBytes();
    return {
      kind: 'records told',
      name: `records told of, in blocks of ${blockBytes}`,
      report: () =>
        withExamining({ blocks: { blockBytes, worthwhileBytes: 0, start: () => testThread() } }, async () => {
          const told: (VerifiedRecord & { readonly line: number; readonly end: number })[] = [];
          const source = toChunkSource(this.#bytes, '-');
          const result = await runVerification(source, {
            ...OPTIONS,
            threads: 1 + (n % 2),
            onRecord: (record) => {
              told.push({ ...record, end: record.byteOffset + record.byteLength });
              return undefined;
            },
          });
          for (const { examined, byteOffset, end } of told) {
            if (examined?.wellFormed !== true || examined.layout !== 'records') continue;
            const record = JSON.parse(this.#bytes.toString('utf8', byteOffset, end)) as {
              event: object;
              signatures: object;
              seq: number;
            };
            assert.equal(examined.seq, record.seq);
            // Of a record with too many there are none.
            if (examined.signatures !== undefined) assert.deepEqual(examined.signatures, record.signatures);
            assert.deepEqual(examined.json(), record.event);
          }
          return formOf(buildReport(result));
        }),
    };
  }

  /** A bundle of everything, verified without the ledger. It holds what its checkpoint covers, and that checkpoint counts as held. */
  #bundle(): Way {
    let prefix = this.#bytes;
    let note: Uint8Array | undefined;
    return {
      kind: 'a bundle of all records',
      name: 'a bundle of all records',
      report: async () => {
        const isWhole = this.#ends.at(-1) === this.#bytes.length;
        const hasBlank = this.#ends.some((end, index) => end - (this.#ends[index - 1] ?? 0) === 1);
        if (!isWhole || hasBlank || this.#longest > MAX_LINE_BYTES) return undefined;
        let file: Uint8Array = new Uint8Array();
        const sink = {
          write: (piece: Uint8Array | string) => {
            file = Buffer.from(piece as Uint8Array);
            return undefined;
          },
        };
        const open = (): Promise<LedgerSource> => Promise.resolve(toChunkSource(this.#bytes, '-'));
        const { treeSize } = await exportBundle(open, sink, { now: NOW });
        const decoded = decodeBundle(file);
        if (!decoded.ok) throw new Error(`not a bundle: ${decoded.fault.code}`);
        ({ note } = decoded.value.bundle);
        prefix = this.#bytes.subarray(0, treeSize === 0 ? 0 : this.#ends[treeSize - 1]);
        const { report, problems } = await verifyBundle(file, { now: NOW });
        // What is said of its checkpoint, and of who signed it, the ledger says as well.
        assert.deepEqual(
          problems.filter(({ code }) => OWN_PROBLEM.test(code)),
          [],
        );
        return report === undefined ? 'no report' : formOf(report);
      },
      expected: async () => {
        const published = note && { name: 'checkpoint of the bundle', note };
        const source = { ...toChunkSource(prefix, '-'), ...(published && { published }) };
        return formOf(buildReport(await runVerification(source, { now: NOW, threads: 1 })));
      },
    };
  }

  /** A writer that opens the ledger, and reads it all. It lists no findings; of a torn line its store knows nothing. */
  #writer(): Way {
    return {
      kind: 'a writer',
      name: 'a writer',
      report: async () => {
        const store = new MemoryStore({ name: '-', hasLocks: false });
        const filling = store.open();
        const turn = await filling.acquire({ timeoutMs: 0 });
        const lines = this.#ends.map((end, index) => this.#bytes.subarray(this.#ends[index - 1] ?? 0, end));
        await filling.appendIf({ size: 0, tip: EMPTY_TIP }, lines);
        await turn.release();
        const look = (ledger: Ledger): Promise<string> => ledger.inspect((state) => reportOn(state, '-'));
        const seen = await this.#opened(store.open(), look);
        return 'refused' in seen ? undefined : seen.said;
      },
      expected: () => this.#withoutTail(),
    };
  }

  /** A writer with an index beside the ledger: it is made, held against the ledger, and gone on from by another writer, and a reader. */
  #index(): Way {
    const path = join(folder, 'indexed.jsonl');
    return {
      kind: 'a writer with an index',
      name: 'a writer with an index',
      report: async () => {
        this.#write('indexed.jsonl');
        rmSync(`${path}.index`, { recursive: true, force: true });
        mkdirSync(`${path}.index`);
        const look = (ledger: Ledger): Promise<string> =>
          ledger.inspect(({ records, findings, countsByVerdict, tree }) =>
            JSON.stringify({ records, findings, countsByVerdict, tree }),
          );
        const first = await this.#opened(path, look);
        if ('refused' in first) return first.refused;
        const { differences } = await maintainIndex(path, { check: true });
        assert.deepEqual(differences, []);
        assert.deepEqual(await this.#opened(path, look), first);
        return new LedgerView(path).inspect((state) => reportOn(state, path));
      },
      // What is refused is so without an index, too.
      expected: async () => {
        this.#write('indexed.jsonl');
        const plain = await this.#opened(path, () => Promise.resolve(''), { index: false });
        if ('refused' in plain) return plain.refused;
        return this.#withoutTail();
      },
    };
  }

  /** What the index answers of the ledger is what the ledger answers. */
  #view(): Way {
    let path = '';
    return {
      kind: 'the status by the index',
      name: 'the status by the index',
      report: async () => {
        path = this.#write('viewed.jsonl');
        rmSync(`${path}.index`, { recursive: true, force: true });
        mkdirSync(`${path}.index`);
        try {
          return JSON.stringify(await new LedgerView(path).readStatus({ now: NOW }));
        } catch (error) {
          if (!(error instanceof NorthrootError)) throw error;
          return error.code;
        }
      },
      expected: async () => {
        try {
          const source = await openLedgerSource(path, { patienceMs: 0 });
          return JSON.stringify(await readLedgerStatus(source, { now: NOW }));
        } catch (error) {
          if (!(error instanceof NorthrootError)) throw error;
          return error.code;
        }
      },
    };
  }

  /** As the command line has it: standard input, threads, a state that is gone on from, parts. */
  #processes(run: NonNullable<SlowWays['run']>): Way[] {
    const path = join(folder, 'ledger.jsonl');
    const given = ['--format', 'json', '--now', NOW, '--max-findings', '100000'];
    const parse = (text: string): string => formOf(JSON.parse(text) as Report, path);
    const verify = (...args: string[]): string => parse(run(['verify', ...args, ...given]));
    const end = this.#someEnds().at(-1) ?? 0;
    return [
      {
        kind: 'the command, standard input',
        name: 'the command, standard input',
        report: () => Promise.resolve(parse(run(['verify', '-', ...given], this.#bytes))),
      },
      {
        kind: 'the command, a file, 2 threads',
        name: 'the command, a file, 2 threads',
        report: () => Promise.resolve(verify(this.#write('ledger.jsonl'), '--threads', '2')),
      },
      {
        kind: 'the command, with --state',
        name: `the command, with --state at ${end}`,
        report: () => {
          const state = join(folder, 'state');
          rmSync(state, { force: true });
          writeFileSync(path, this.#bytes.subarray(0, end));
          verify(path, '--state', state);
          this.#write('ledger.jsonl');
          const { since, ...report } = JSON.parse(verify(path, '--state', state)) as Report & {
            since?: unknown;
          };
          void since;
          return Promise.resolve(JSON.stringify(report));
        },
      },
      {
        kind: 'the command, --part and --merge',
        name: 'the command, --part and --merge',
        report: () => {
          this.#write('ledger.jsonl');
          const parts = [1, 2].map((part) => {
            const out = join(folder, `part-${part}`);
            run(['verify', path, '--part', `${part}/2`, '--out', out]);
            return out;
          });
          const merged = JSON.parse(verify('--merge', ...parts)) as Report;
          const not_checked = merged.not_checked.filter(({ code }) => code !== 'PARTS');
          return Promise.resolve(JSON.stringify({ ...merged, not_checked }));
        },
      },
      {
        kind: 'threads of their own',
        name: 'threads of their own',
        report: () =>
          withExamining(
            { blocks: { blockBytes: this.#blockBytes(), worthwhileBytes: 0, start: startWorker } },
            async () => formOf(await verifyChunks(this.#bytes, { ...OPTIONS, threads: 2 })),
          ),
      },
    ];
  }

  async #opened(
    place: string | LedgerStore,
    look: (ledger: Ledger) => Promise<string>,
    options: LedgerOptions = {},
  ): Promise<{ readonly refused: string } | { readonly said: string }> {
    let ledger: Ledger;
    try {
      ledger = await Ledger.open(place, { strict: true, position: false, ...options });
    } catch (error) {
      if (!(error instanceof NorthrootError)) throw error;
      // It is not built upon.
      assert.equal(this.#report.verdict, 'invalid');
      return { refused: error.code };
    }
    try {
      return { said: await look(ledger) };
    } finally {
      await ledger.close();
    }
  }

  async #withoutTail(): Promise<string> {
    const whole = this.#bytes.subarray(0, this.#ends.at(-1) ?? 0);
    return withoutFindings(await byDefinition(whole), '-');
  }

  #write(name: string): string {
    const path = join(folder, name);
    writeFileSync(path, this.#bytes);
    return path;
  }

  /** Of a block that every line fits into. */
  #blockBytes(): number {
    const { refused } = this.#made;
    const least = Math.min(this.#longest, MAX_LINE_BYTES) + 1;
    const kind = this.#below(4);
    if (kind === 0) return least;
    const end = this.#ends[refused[this.#below(refused.length)] ?? -1];
    if (kind === 1 && end !== undefined) return Math.max(least, end - 1 + this.#below(3));
    return least + this.#below(Math.min(500_000, this.#bytes.length + 1));
  }

  /** Ends of lines, in order. */
  #someEnds(): number[] {
    const some = Array.from(
      { length: 1 + this.#below(3) },
      () => this.#ends[this.#below(this.#ends.length)] ?? 0,
    );
    return some.sort((a, b) => a - b);
  }
}

/** What a bundle itself can be wrong in. */
const OWN_PROBLEM = /^(?:BUNDLE_|SELECTION_MISMATCH|PROOF_INVALID|CONTENT_)/;
const EMPTY_TIP = hashToBase64url(rangeRoot(emptyRange()));

function reportOn(state: VerifyState, name: string): string {
  return withoutFindings(buildReport(endVerification(state, [], [name], NOW)), name);
}

/** What a state says by itself: no list of findings, and of signers no order, for an index has them by their keyids. */
function withoutFindings(report: Report, name: string): string {
  const signers = [...report.trust.signers].sort((a, b) => (a.keyid < b.keyid ? -1 : 1));
  return formOf({ ...report, findings: [], trust: { ...report.trust, signers } }, name);
}
