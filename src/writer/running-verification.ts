/**
 * The verification of a ledger that is being written: read once from its files, and then one step further with each record that is
 * added. It tells what every record gives, which keys count, what the clock is, and whether the ledger may be sealed.
 */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import type { Finding } from '../finding/finding.js';
import type { FileSystem } from '../fs/file-system.js';
import type { ExaminedLine } from '../ledger/examine-line.js';
import type { RawLine } from '../ledger/line-splitter.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import { startVerification, type EventVerdict, type VerifyState } from '../verify/state.js';
import { verifyLine, type SegmentName } from '../verify/verify-line.js';
import type { ChainTip } from './chain-tip.js';
import { firstSeqOf, type LedgerFiles } from './ledger-files.js';
import { surveyLedger, type Survey } from './survey.js';

/** Which signatures are verified when the files are read. */
export type SignatureDepth =
  /** All: the ledger may be sealed, and decided upon. */
  | 'all'
  /** Those that decide what counts: not those of executions and of extension events, which are taken as they are. */
  | 'deciding';

/** What one record gave. */
export interface Judged {
  /** Each of its own, none folded under another record's. */
  readonly findings: readonly Finding[];
  readonly verdict: EventVerdict;
}

/** The line of a record, with its `\n`, and what `examineLine` says of it. */
export interface MadeLine {
  readonly bytes: Uint8Array;
  readonly examined: ExaminedLine;
}

/** See the head of this file. */
export class RunningVerification {
  readonly depth: SignatureDepth;
  readonly state: VerifyState = startVerification(undefined, nodeVerifier);
  /** What decisions rest on: the state under the trust policy, where there is one, and else the same. */
  readonly deciding: VerifyState;
  readonly #path: string;
  #checkpoint: ChainTip['checkpoint'];
  #unreadable = 0;
  /** Where the next line begins in the file that is appended to, and its number there. */
  #offset = 0;
  #number = 1;

  private constructor(path: string, depth: SignatureDepth, trust: TrustPolicy | undefined) {
    this.#path = path;
    this.deciding = trust === undefined ? this.state : startVerification(trust, nodeVerifier);
    this.depth = depth;
    if (depth === 'deciding') this.state.assumedSignatures = 'ordinary';
  }

  /**
   * Verifies what the files hold, by the keys that the ledger declares, up to its last whole line.
   *
   * @param trust - A policy by which it is verified besides, every signature of it, for decisions.
   * @param signal - Aborting ends it with its reason.
   * @throws as the file system does.
   */
  static async read(
    fileSystem: FileSystem,
    files: LedgerFiles,
    depth: SignatureDepth,
    trust?: TrustPolicy,
    signal?: AbortSignal,
  ): Promise<{ readonly running: RunningVerification; readonly survey: Survey }> {
    const running = new RunningVerification(files.path, depth, trust);
    const survey = await surveyLedger(fileSystem, files, (line, file) => {
      signal?.throwIfAborted();
      running.#step(line, { file, firstSeq: files.isFolder ? firstSeqOf(file) : undefined });
    });
    // What is added was signed, or its signatures verified, when it was admitted.
    running.state.assumedSignatures = 'all';
    return { running, survey };
  }

  /** Where the next record goes. */
  get tip(): ChainTip {
    const { chain, tipEventId, tree } = this.state;
    return { seq: chain.seq, prev: chain.prev, eventId: tipEventId, tree, checkpoint: this.#checkpoint };
  }

  /** Lines that are no records, or not of the form of one. */
  get unreadable(): number {
    return this.#unreadable;
  }

  /** Takes the line of a record that is added to `file`. */
  add({ bytes: line, examined }: MadeLine, file: string): Judged {
    const { state } = this;
    const bytes = line.subarray(0, -1);
    const raw: RawLine = {
      bytes,
      length: bytes.length,
      offset: this.#offset,
      number: this.#number,
      terminated: true,
      longLeafHash: undefined,
    };
    // What is alike in an earlier record is told of this one too.
    state.foldRoots.clear();
    const { findings, waiting, verdict, eventId } = this.#step(raw, { file, firstSeq: undefined }, examined);
    // What an earlier execution waited for is told of that one.
    const own = findings.filter((finding) => finding.eventId === eventId);
    return { findings: waiting === undefined ? own : [...own, waiting], verdict };
  }

  /** From here on records are added to another file. */
  beginFile(): void {
    this.#offset = 0;
    this.#number = 1;
  }

  /** @throws NorthrootError `LEDGER_INVALID`, exit status 1, when any evidence is broken or missing. */
  assertSound(): void {
    if (!this.state.hasInvalid) return;
    throw new NorthrootError(
      'LEDGER_INVALID',
      `${printable(this.#path)} does not verify, and was not sealed`,
      {
        exitStatus: 1,
        hint: `northroot verify ${printable(this.#path)} says what is wrong with it`,
      },
    );
  }

  /** @throws NorthrootError `LEDGER_INVALID`, exit status 1, when nothing can be decided upon it. */
  assertDecidable(): void {
    assertDecidable(this.deciding, this.#path);
  }

  #step(
    line: RawLine,
    segment: SegmentName,
    given?: ExaminedLine,
  ): Judged & { readonly eventId: string | undefined; readonly waiting: Finding | undefined } {
    const seq = this.state.records;
    if (this.deciding !== this.state) verifyLine(this.deciding, line, segment, given);
    const { findings, waiting, examined, verdict } = verifyLine(this.state, line, segment, given);
    if (examined?.eventId === undefined) this.#unreadable += 1;
    if (examined?.wellFormed === true && examined.event?.['event_type'] === 'checkpoint')
      this.#checkpoint = { seq, occurredAt: examined.event['occurred_at'] as string };
    this.#offset = line.offset + line.length + 1;
    this.#number = line.number + 1;
    const eventId = examined?.eventId === undefined ? undefined : `sha-256:${examined.eventId}`;
    return { findings, waiting, verdict, eventId };
  }
}

/** @throws NorthrootError `LEDGER_INVALID`, exit status 1, when the evidence in a ledger is broken. */
export function assertDecidable(state: VerifyState, path: string): void {
  if (!state.hasInvalid) return;
  throw new NorthrootError(
    'LEDGER_INVALID',
    `${printable(path)} is not valid: nothing can be decided upon it`,
    { exitStatus: 1, hint: `northroot verify ${printable(path)} says what is wrong` },
  );
}
