/**
 * Whether a ledger that is being written may be sealed: a checkpoint over broken evidence would make it look examined. The
 * ledger is verified once, from its files, when the first checkpoint is to be made; from then on each record that is added is
 * one step more.
 */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import type { FileSystem, OpenFile } from '../fs/file-system.js';
import { LineSplitter } from '../ledger/line-splitter.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import { startVerification, type VerifyState } from '../verify/state.js';
import { verifyLine, type SegmentName } from '../verify/verify-line.js';
import { firstSeqOf, type LedgerFiles } from './ledger-files.js';

const CHUNK_BYTES = 1024 * 1024;

/** The verification of a ledger up to its tip. */
export class Soundness {
  readonly #path: string;
  readonly #state: VerifyState = startVerification(undefined, nodeVerifier);

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * Verifies what the files hold, by the keys that the ledger declares.
   *
   * @param signal - Aborting ends it with its reason.
   * @throws as the file system does.
   */
  static async read(fileSystem: FileSystem, files: LedgerFiles, signal?: AbortSignal): Promise<Soundness> {
    const soundness = new Soundness(files.path);
    for (const path of files.earlier) {
      const file = await fileSystem.open(path, 'read');
      try {
        await soundness.#read(file, files, signal);
      } finally {
        await file.close();
      }
    }
    if (files.last !== undefined) await soundness.#read(files.last, files, signal);
    return soundness;
  }

  /** Takes the line of a record that is added, given with its `\n`. */
  add(line: Buffer): void {
    const [file, firstSeq] = [this.#path, undefined];
    for (const each of new LineSplitter().push(line)) verifyLine(this.#state, each, { file, firstSeq });
  }

  /** @throws NorthrootError `LEDGER_INVALID`, exit status 1, when any evidence is broken or missing. */
  assertSound(): void {
    if (!this.#state.hasInvalid) return;
    throw new NorthrootError(
      'LEDGER_INVALID',
      `${printable(this.#path)} does not verify, and was not sealed`,
      {
        exitStatus: 1,
        hint: `northroot verify ${printable(this.#path)} says what is wrong with it`,
      },
    );
  }

  async #read(file: OpenFile, { isFolder }: LedgerFiles, signal: AbortSignal | undefined): Promise<void> {
    const segment: SegmentName = {
      file: file.path,
      firstSeq: isFolder ? firstSeqOf(file.path) : undefined,
    };
    const splitter = new LineSplitter();
    const buffer = Buffer.alloc(CHUNK_BYTES);
    for (let position = 0; ;) {
      signal?.throwIfAborted();
      const count = await file.read(buffer, position);
      if (count === 0) break;
      for (const line of splitter.push(buffer.subarray(0, count))) verifyLine(this.#state, line, segment);
      position += count;
    }
    const torn = splitter.finish();
    if (torn !== undefined) verifyLine(this.#state, torn, segment);
  }
}
