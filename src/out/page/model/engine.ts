/** Verifies what the page is given, and answers what it asks about the result. Runs in a worker, or beside the page where there is none. */

import { printable } from '../../../base/bytes/printable.js';
import { defined } from '../../../base/defined.js';
import { refuseOtherFiles } from '../../../log/fs/other-file.js';
import type { BundleResult } from '../../../format/schema/generated/types.js';
import { decodeBundle, MAX_BUNDLE_BYTES } from '../../../proof/bundle/bundle-file.js';
import { digestOf } from '../../../proof/bundle/contents.js';
import { verifyBundle } from '../../../proof/bundle/verify-bundle.js';
import { toChunkSource } from '../../../rules/report/verify-chunks.js';
import type { LedgerSource, Segment } from '../../../rules/source/ledger-source.js';
import { parseTrustPolicy } from '../../../rules/trust/trust-policy.js';
import { runVerification } from '../../../rules/verify/run-verification.js';
import type { VerifyState } from '../../../rules/verify/state.js';
import { showContent } from '../../text/content.js';
import { readWitnessPolicy } from './given-policy.js';
import { LedgerModel } from './ledger-model.js';
import type { BundleInputs, BundleOverview, Bytes, Inputs, Methods, Overview, Progress } from './protocol.js';

/** Milliseconds between pauses without a worker. */
const SLICE_MS = 40;

/** The environment of the engine. */
export interface Host {
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
    const { now } = this.#host;
    const begun = now();
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
    const result = await runVerification(toSource(inputs, bytes), {
      trust: inputs.trust && parseTrustPolicy(inputs.trust),
      witnessPolicy: inputs.witnessPolicy && readWitnessPolicy(inputs.witnessPolicy),
      checkpoints: inputs.checkpoints,
      ...(inputs.predecessor === undefined
        ? {}
        : { predecessor: toChunkSource(inputs.predecessor, 'predecessor') }),
      now: inputs.now,
      onFinding: (finding) => model.tell(finding),
      onRecord: (record) => {
        model.add(record);
        return turns();
      },
      onProgress: (done) => this.#host.onProgress({ bytes: done, size: bytes.size }),
    });
    const overview = model.finish(result, (now() - begun) / 1_000);
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
    const file = new Uint8Array(await head.arrayBuffer());
    const result = await verifyBundle(file, {
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
    const contents = showContents(file, result);
    const overview = { result, contents, ...model.finishBundle(scope, state, result.findings) };
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

/** The contents whose first lines are shown, and the largest of them, in bytes. */
const MAX_SHOWN_CONTENTS = 50;
const MAX_SHOWN_CONTENT_BYTES = 1_048_576;

function showContents(file: Uint8Array, { contents }: BundleResult): BundleOverview['contents'] {
  const meant = contents.filter(
    ({ named_total: total, size_bytes: size }) => total > 0 && size <= MAX_SHOWN_CONTENT_BYTES,
  );
  const decoded = meant.length === 0 ? undefined : decodeBundle(file);
  if (decoded?.ok !== true) return new Map();
  const digests = new Set(meant.slice(0, MAX_SHOWN_CONTENTS).map(({ digest }) => digest));
  return new Map(
    decoded.value.attachments.flatMap((bytes) => {
      const digest = digestOf(bytes);
      return digests.has(digest) ? [[digest, showContent(bytes)] as const] : [];
    }),
  );
}

function toSource(inputs: Inputs, bytes: Bytes): LedgerSource {
  const { published, growth, faults } = inputs;
  return {
    paths: inputs.paths,
    size: bytes.size,
    segments: segmentsOf(inputs, bytes),
    ...defined({ published }),
    findGrowth: () => Promise.resolve(growth),
    ...(faults === undefined ? {} : { findFaults: () => Promise.resolve(faults) }),
  };
}

async function* segmentsOf(
  { segments, isGuess = false }: Inputs,
  bytes: Bytes,
): AsyncGenerator<Segment, void, void> {
  let start = 0;
  for (const { file, firstSeq, bytes: size } of segments) {
    const chunks = refuseOtherFiles(readChunks(bytes.slice(start, start + size)), file, { likely: isGuess });
    start += size;
    yield await Promise.resolve({ file, firstSeq, chunks });
  }
}

async function* readChunks(bytes: Bytes): AsyncGenerator<Uint8Array, void, void> {
  const reader = bytes.stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (value !== undefined) yield value;
  }
}
