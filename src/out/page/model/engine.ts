/** Verifies what the page is given, and answers what it asks about the result. Runs in a worker, or beside the page where there is none. */

import { printable } from '../../../base/bytes/printable.js';
import { defaultBackend } from '../../../format/signature/default-backend.js';
import { refuseOtherFiles } from '../../../log/fs/other-file.js';
import { MAX_BUNDLE_BYTES } from '../../../proof/bundle/bundle-file.js';
import { verifyBundle } from '../../../proof/bundle/verify-bundle.js';
import { toChunkSource } from '../../../rules/report/verify-chunks.js';
import type { LedgerSource, Segment } from '../../../rules/source/ledger-source.js';
import { parseTrustPolicy } from '../../../rules/trust/trust-policy.js';
import { runVerification } from '../../../rules/verify/run-verification.js';
import type { VerifyState } from '../../../rules/verify/state.js';
import { readWitnessPolicy } from './given-policy.js';
import { LedgerModel } from './ledger-model.js';
import { type HostCrypto, isExact, NativeSignatures } from './native-signatures.js';
import type { BundleInputs, BundleOverview, Bytes, Inputs, Methods, Overview, Progress } from './protocol.js';

/** Bytes that are verified between pauses. The first piece is the first line alone. */
const PIECE_BYTES = 256 * 1024;

/** Milliseconds between pauses without a worker. */
const SLICE_MS = 40;

const NEWLINE = 0x0a;

/** The environment of the engine. */
export interface Host {
  readonly crypto: HostCrypto | undefined;
  /** Unpacks raw deflate: all of it, or where that is more than `size` bytes, some that are more. */
  inflate(bytes: Bytes, size: number): Promise<Bytes>;
  /** Milliseconds. */
  readonly now: () => number;
  /** Yields to the event loop; undefined in a worker. */
  readonly pause: (() => Promise<void>) | undefined;
  onProgress(progress: Progress): void;
}

export class Engine implements Methods {
  readonly #host: Host;
  #model: LedgerModel | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** @throws NorthrootError for policies, checkpoints and ledgers that are none; what the bytes' stream rejects with. */
  async verify(inputs: Inputs): Promise<Overview> {
    this.#model = undefined;
    const { crypto, now } = this.#host;
    const begun = now();
    const native = crypto !== undefined && (await isExact(crypto)) ? new NativeSignatures(crypto) : undefined;
    const starts = new Map<string, number>();
    let end = 0;
    for (const { file, bytes: size } of inputs.segments) {
      if (!starts.has(file)) starts.set(file, end);
      end += size;
    }
    const bytes = inputs.isCompressed ? await this.#host.inflate(inputs.bytes, end) : inputs.bytes;
    if (bytes.size !== end) throw new Error('the ledger in the page has another size than the page says');
    const model = new LedgerModel(
      async ({ offset, size }) => new Uint8Array(await bytes.slice(offset, offset + size).arrayBuffer()),
      starts,
    );
    const turns = this.#takeTurns();
    const result = await runVerification(toSource(inputs, bytes, native), {
      trust: inputs.trust && parseTrustPolicy(inputs.trust),
      witnessPolicy: inputs.witnessPolicy && readWitnessPolicy(inputs.witnessPolicy),
      checkpoints: inputs.checkpoints,
      ...(inputs.predecessor === undefined
        ? {}
        : { predecessor: toChunkSource(inputs.predecessor, 'predecessor') }),
      now: inputs.now,
      backend: native?.backend ?? defaultBackend,
      onFinding: (finding) => model.tell(finding),
      onRecord: (record) => {
        model.add(record);
        return turns();
      },
      onProgress: (done) => this.#host.onProgress({ bytes: done, size: bytes.size }),
    });
    const seconds = (now() - begun) / 1_000;
    const overview = model.finish(result, { seconds, nativeSignatures: native?.used ?? 0 });
    this.#model = model;
    return overview;
  }

  /** @throws NorthrootError for policies and checkpoints that are none. */
  async verifyBundle(inputs: BundleInputs): Promise<BundleOverview> {
    this.#model = undefined;
    const { now } = this.#host;
    const begun = now();
    const turns = this.#takeTurns();
    const { bundle, name } = inputs;
    // One byte more is enough to see that it is too large.
    const head = bundle.slice(0, Math.min(bundle.size, MAX_BUNDLE_BYTES + 1));
    const lines: Uint8Array[] = [];
    const model = new LedgerModel(({ index }) => Promise.resolve(lines[index] ?? new Uint8Array()));
    let state: VerifyState | undefined;
    let done = 0;
    const result = await verifyBundle(new Uint8Array(await head.arrayBuffer()), {
      trust: inputs.trust && parseTrustPolicy(inputs.trust),
      witnessPolicy: inputs.witnessPolicy && readWitnessPolicy(inputs.witnessPolicy),
      checkpoints: inputs.checkpoints,
      now: inputs.now,
      name: printable(name),
      onRecord: (record, isSelected) => {
        lines.push(record.bytes?.slice() ?? new Uint8Array());
        state = record.state;
        model.add(record, !isSelected);
        done += record.byteLength;
        this.#host.onProgress({ bytes: Math.min(done, head.size), size: head.size });
        return turns();
      },
    });
    const scope = result.scope === 'whole' ? 'whole' : 'selection';
    const overview = { result, ...model.finishBundle(scope, state, result.findings) };
    this.#model = model;
    return { ...overview, seconds: (now() - begun) / 1_000 };
  }

  /** Without a worker: pauses when it is time. */
  #takeTurns(): () => Promise<void> | undefined {
    const { now, pause } = this.#host;
    let slice = now();
    return () => {
      if (pause === undefined || now() - slice < SLICE_MS) return undefined;
      return pause().then(() => {
        slice = now();
      });
    };
  }

  rows(...[query]: Parameters<Methods['rows']>): ReturnType<Methods['rows']> {
    return Promise.resolve(this.#model?.rows(query) ?? { total: 0, rows: [] });
  }

  grants(...[at]: Parameters<Methods['grants']>): ReturnType<Methods['grants']> {
    return Promise.resolve(this.#model?.grants(at) ?? { total: 0, grants: [] });
  }

  granters(...[at]: Parameters<Methods['granters']>): ReturnType<Methods['granters']> {
    return Promise.resolve(this.#model?.granters(at) ?? { total: 0, granters: [] });
  }

  branch(...[at]: Parameters<Methods['branch']>): ReturnType<Methods['branch']> {
    return Promise.resolve(this.#model?.branch(at) ?? { total: 0, rows: [] });
  }

  async why({ ordinal }: { readonly ordinal: number }): ReturnType<Methods['why']> {
    return this.#model?.why(ordinal);
  }
}

function toSource(inputs: Inputs, bytes: Bytes, native: NativeSignatures | undefined): LedgerSource {
  const { published, growth, faults } = inputs;
  return {
    paths: inputs.paths,
    size: bytes.size,
    segments: segmentsOf(inputs, bytes, native),
    ...(published === undefined ? {} : { published }),
    findGrowth: () => Promise.resolve(growth),
    ...(faults === undefined ? {} : { findFaults: () => Promise.resolve(faults) }),
  };
}

async function* segmentsOf(
  { segments, isGuess = false }: Inputs,
  bytes: Bytes,
  native: NativeSignatures | undefined,
): AsyncGenerator<Segment, void, void> {
  let start = 0;
  for (const { file, firstSeq, bytes: size } of segments) {
    const pieces = readPieces(bytes.slice(start, start + size), native);
    const chunks = refuseOtherFiles(pieces, file, { likely: isGuess });
    start += size;
    yield await Promise.resolve({ file, firstSeq, chunks });
  }
}

/** The bytes in pieces of whole lines, whose signatures the host has verified. */
async function* readPieces(
  bytes: Bytes,
  native: NativeSignatures | undefined,
): AsyncGenerator<Uint8Array, void, void> {
  let rest: Uint8Array = new Uint8Array();
  let isFirst = true;
  const reader = bytes.stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (value === undefined || value.length === 0) continue;
    let piece = value;
    if (rest.length > 0) {
      piece = new Uint8Array(rest.length + value.length);
      piece.set(rest);
      piece.set(value, rest.length);
    }
    let start = 0;
    while (start < piece.length) {
      const end = isFirst
        ? piece.indexOf(NEWLINE, start) + 1
        : piece.lastIndexOf(NEWLINE, Math.min(piece.length, start + PIECE_BYTES) - 1) + 1;
      if (end <= start) break;
      isFirst = false;
      const lines = piece.subarray(start, end);
      await native?.prepare(lines);
      yield lines;
      start = end;
    }
    rest = piece.subarray(start);
    if (rest.length < PIECE_BYTES) continue;
    // A line that is too long: nothing in it is worth preparing.
    isFirst = false;
    yield rest;
    rest = new Uint8Array();
  }
  if (rest.length > 0) yield rest;
}
