/**
 * Writes the page: one HTML file that holds a ledger, what it was verified against, the exporter's report, and a program that
 * verifies it all again in the reader's browser and shows it. Its program was bundled when northroot was built (`app/build.js`).
 */

import { createHash } from 'node:crypto';
import { Transform } from 'node:stream';
import { finished } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync, createDeflateRaw, deflateRawSync } from 'node:zlib';
import type { ByteSink } from '../../base/bytes/byte-sink.js';
import { encodeBase64 } from '../../base/bytes/encoding.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { defined } from '../../base/defined.js';
import { fromDist } from '../../base/dist.js';
import { NorthrootError } from '../../base/error.js';
import type { FileFault } from '../../base/fault.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { type LedgerInput, openVerifiable } from '../../log/read/verify-ledger.js';
import { COMMON_OPTIONS, type CommonOptions, PASS_OPTIONS } from '../../log/read/write-records.js';
import { buildReport, type Report } from '../../rules/report/report.js';
import { isWhole, type RecordSelection } from '../../rules/selection.js';
import type { LedgerSource, Segment, TileFaultCode } from '../../rules/source/ledger-source.js';
import {
  runVerification,
  type VerificationResult,
  type VerifyOptions,
} from '../../rules/verify/run-verification.js';
import { CORE_ID, type Embedded, EMBEDDED_ID, type EmbeddedSegment, LEDGER_TYPE } from './embedded.js';

/** What the ledger is verified against; all of it goes into the page. */
export interface PageOptions extends CommonOptions, Pick<VerifyOptions, 'witnessPolicy' | 'checkpoints'> {
  /** A page holds the whole ledger, or it could not verify it: only the empty selection is taken. */
  readonly selection?: RecordSelection | undefined;
}

const PAGE_OPTIONS: OptionTypes<PageOptions> = {
  ...COMMON_OPTIONS,
  witnessPolicy: PASS_OPTIONS.witnessPolicy,
  checkpoints: PASS_OPTIONS.checkpoints,
  selection: 'object',
};

/** What {@link exportPage} wrote. */
export interface PageExport {
  readonly result: VerificationResult;
  readonly report: Report;
  /** How many records the page holds: all. */
  readonly selected: number;
}

/** The most bytes of the page's own program and style, each. */
const MAX_ASSET_BYTES = 4 * 1024 * 1024;

/** Base64 is written in elements of about so many characters: no browser has to hold the whole of it in one text. */
const BLOCK_BYTES = 768 * 1024;

const ASSETS = fromDist('out/page/');

/**
 * Writes the page of a ledger. The ledger is read once and in bounded memory; its findings are in the page, and in the
 * report that is returned. The same ledger and options give the same bytes.
 *
 * @param sink - Receives HTML in UTF-8. SHOULD be a file that appears whole or not at all (`writeThrough`).
 * @throws NorthrootError `USAGE` for a selection, and as `verifyLedger` for a ledger that cannot be read; TypeError and RangeError
 *   for a bad option; what `sink` rejects with.
 */
export async function exportPage(
  ledger: LedgerInput,
  sink: ByteSink,
  options: PageOptions = {},
): Promise<PageExport> {
  checkOptions('exportPage', options, PAGE_OPTIONS);
  const { selection = {}, ...passed } = options;
  if (!isWhole(selection))
    throw new NorthrootError('USAGE', 'a page holds the whole ledger, and takes no selection of records', {
      hint: 'export it whole: the page has filters of its own',
    });
  const source = await openVerifiable('exportPage', ledger);
  const [style, app, core] = await Promise.all(['page.css', 'app.js', 'core.js'].map(readAsset));
  const now = options.now ?? (isTimed(options) ? new Date().toISOString() : undefined);
  await sink.write(headOf(style as string, app as string, core as string));
  const packer = new Packer(sink);
  const tapped = new Tapped(source, packer);
  let result: VerificationResult;
  try {
    result = await runVerification(tapped.source, { ...passed, now });
    await packer.end();
  } catch (error) {
    packer.stop();
    throw error;
  }
  const report = buildReport(result);
  const embedded: Embedded = {
    paths: report.ledger.paths,
    segments: tapped.segments,
    ...defined({ trust: options.trust, witness_policy: options.witnessPolicy }),
    checkpoints: (options.checkpoints ?? []).map(toNote),
    ...(source.published === undefined ? {} : { published: toNote(source.published) }),
    ...defined({ faults: tapped.faults, growth: result.growth, now }),
    report,
  };
  await sink.write(
    `<script type="application/json" id="${EMBEDDED_ID}">${jsonInHtml(embedded)}</script>\n` +
      `<script type="${LEDGER_TYPE}" id="${CORE_ID}" data-hash="${hashOf(core as string)}">${encodeBase64(deflateRawSync(core as string, { level: 9 }))}</script>\n` +
      `<script>${app}</script>\n</body>\n</html>\n`,
  );
  return { result, report, selected: report.ledger.records };
}

/** Whether the time of verification decides anything. */
function isTimed({ trust }: PageOptions): boolean {
  return trust?.require?.checkpoint_max_age_seconds !== undefined;
}

function toNote({ name, note }: { readonly name: string; readonly note: Uint8Array }): {
  readonly name: string;
  readonly note: string;
} {
  return { name, note: encodeBase64(note) };
}

async function readAsset(name: string): Promise<string> {
  const bytes = await readSmallFile(fileURLToPath(new URL(`${name}.br`, ASSETS)), MAX_ASSET_BYTES);
  return decodeUtf8(brotliDecompressSync(bytes, { maxOutputLength: MAX_ASSET_BYTES }));
}

/** JSON that ends no script element, whatever its strings hold. */
function jsonInHtml(value: object): string {
  return JSON.stringify(value).replace(/</g, '\\u003c');
}

/**
 * Nothing is loaded from anywhere: the policy names the scripts and the style by their hashes. The verifier runs in a worker made of
 * the page's own bytes; `blob:` is for that. No text becomes HTML or a script (`require-trusted-types-for`).
 */
function headOf(style: string, app: string, core: string): string {
  const policy = [
    "default-src 'none'",
    // Signatures are verified in WebAssembly, a hundred times as fast as without: that alone, no text becomes a program.
    `script-src '${hashOf(app)}' '${hashOf(core)}' 'wasm-unsafe-eval'`,
    `style-src '${hashOf(style)}'`,
    'worker-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types northroot',
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>northroot audit page</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<noscript><p>This page verifies a ledger in the browser, and needs JavaScript for it. Without it nothing here is verified; the command line of northroot does the same.</p></noscript>
`;
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

/** Writes what it is given, compressed and in base64, as data blocks of the page. */
class Packer {
  readonly #deflate = createDeflateRaw({ level: 6 });
  readonly #ended: Promise<void>;
  #failure: unknown;

  constructor(sink: ByteSink) {
    let kept: Buffer[] = [];
    let size = 0;
    const flush = async (all: boolean): Promise<void> => {
      const bytes = Buffer.concat(kept, size);
      let at = 0;
      for (; bytes.length - at >= BLOCK_BYTES || (all && at < bytes.length); at += BLOCK_BYTES)
        await sink.write(blockOf(bytes.subarray(at, at + BLOCK_BYTES)));
      kept = at < bytes.length ? [bytes.subarray(at)] : [];
      size = kept[0]?.length ?? 0;
    };
    const writer = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        kept.push(chunk);
        size += chunk.length;
        if (size < BLOCK_BYTES) done();
        else flush(false).then(() => done(), done);
      },
      flush: (done) => {
        flush(true).then(() => done(), done);
      },
    });
    this.#ended = finished(this.#deflate.pipe(writer).resume());
    this.#ended.catch((error: unknown) => {
      this.#failure = error;
      this.#deflate.destroy();
    });
  }

  /** Copies `bytes`. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#failure !== undefined) await this.#ended;
    if (this.#deflate.write(Uint8Array.from(bytes))) return;
    await Promise.race([new Promise((resolve) => this.#deflate.once('drain', resolve)), this.#ended]);
  }

  stop(): void {
    this.#deflate.destroy();
  }

  async end(): Promise<void> {
    this.#deflate.end();
    await this.#ended;
  }
}

function blockOf(bytes: Uint8Array): string {
  return `<script type="${LEDGER_TYPE}">${encodeBase64(bytes)}</script>\n`;
}

/** A source whose bytes go to a packer as they are read. */
class Tapped {
  readonly source: LedgerSource;
  readonly segments: EmbeddedSegment[] = [];
  faults: { readonly faults: readonly FileFault<TileFaultCode>[]; readonly total: number } | undefined;

  constructor(source: LedgerSource, packer: Packer) {
    const { findFaults } = source;
    this.source = {
      ...source,
      segments: this.#tap(source.segments, packer),
      ...(findFaults === undefined
        ? {}
        : {
            findFaults: async () => {
              this.faults = await findFaults();
              return this.faults;
            },
          }),
    };
  }

  async *#tap(segments: AsyncIterable<Segment>, packer: Packer): AsyncGenerator<Segment, void, void> {
    for await (const segment of segments) {
      const { file, firstSeq } = segment;
      let bytes = 0;
      const chunks = (async function* () {
        for await (const chunk of segment.chunks) {
          bytes += chunk.length;
          await packer.write(chunk);
          yield chunk;
        }
      })();
      yield { ...segment, chunks };
      this.segments.push({ file, first_seq: firstSeq ?? null, bytes });
    }
  }
}
