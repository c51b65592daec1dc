/**
 * Verifies a source: applies the step function to each line, collects the worst findings, reports progress. Everything asynchronous
 * about verification is here.
 */

import { FastStep, isFastPathOn, readBlocks, rememberKeys } from '#fast/step';
import { defined } from '../../base/defined.js';
import type { Finding } from '../../format/finding/finding.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { chainIds, type Grant } from '../bounds/grant.js';
import type { LedgerSource, SourceGrowth } from '../source/ledger-source.js';
import { type Anchor, AnchorWatch } from './anchors.js';
import { type Ending, finishVerification } from './ending.js';
import { EventIndex } from './event-index.js';
import type { KnownLine } from './line-knowledge.js';
import { ParentLedger, ParentLedgers, Parents, SliceWatch } from './parents.js';
import { viewPredecessor } from './predecessor.js';
import { FurtherChecks, type FurtherResult } from './record-check.js';
import { FindingList, ShownFindings } from './shown-findings.js';
import { validOutcomes } from './signatures.js';
import { startVerification, type VerifyState } from './state.js';
import {
  type Beginning,
  beginReading,
  type SavedVerification,
  SkippedLines,
  type VerifiedPrefix,
} from './verified-prefix.js';
import type { VerifiedRecord } from './verified-record.js';
import { verifyLine } from './verify-line.js';
import {
  type CheckedOptions,
  checkVerifyOptions,
  DEFAULT_MAX_FINDINGS,
  type VerifyOptions,
} from './verify-options.js';

export {
  DEFAULT_MAX_FINDINGS,
  MAX_THREADS,
  MIN_MAX_MEMORY,
  VERIFY_OPTIONS,
  type VerifyOptions,
} from './verify-options.js';

/** The lines after a saved state are examined in one thread up to this size: further threads take longer to start and to warm up. */
const WORTHWHILE_REST_BYTES = 32 * 1024 * 1024;

export interface VerificationResult {
  /** `saveVerification` saves it, to resume from when the ledger has grown. */
  readonly state: VerifyState;
  readonly paths: readonly string[];
  /** The worst, worst first, then in ledger order. */
  readonly findings: readonly Finding[];
  /** How many there are, listed or not. */
  readonly total: number;
  /** What is known only at the end. Its findings are among the others. */
  readonly ending: Ending;
  /** Whether any evidence is broken or missing, in the lines or at the end. */
  readonly hasInvalid: boolean;
  /** Whether any bound is broken, likewise. */
  readonly hasViolation: boolean;
  /** How many of the findings are warnings. */
  readonly warnings: number;
  /** Where reading ended in a ledger that has grown meanwhile; undefined when all was read. */
  readonly growth: SourceGrowth | undefined;
  /**
   * The findings that do not depend on where the ledger ends, in ledger order, to be saved with the state. At least the first 1,000 of
   * each rank; complete if they are as many as `state.findings`.
   */
  readonly kept: readonly Finding[];
  /** The bytes that were read, as a whole; undefined without `keepPrefix`, and where the last line has no end. */
  readonly prefix: VerifiedPrefix | undefined;
  /** What `checks` say, in their order; absent without any. */
  readonly further?: readonly FurtherResult[];
}

/**
 * Verifies a whole source.
 *
 * @throws NorthrootError when the source cannot be read to its end; `STATE_MISMATCH` when it is not the ledger that
 *   `options.from` comes from; `NOTE_MALFORMED` when one of `options.checkpoints` is none. TypeError and RangeError for a bad option.
 */
export async function runVerification(
  source: LedgerSource,
  options: VerifyOptions = {},
): Promise<VerificationResult> {
  const checked = checkVerifyOptions(options);
  const parents =
    checked.parents && new Parents(new ParentLedgers(await readParents(checked.parents, checked)));
  const run = new Verification(source, checked, defined({ parents }));
  const prefix = await run.verifyLines();
  return run.finish(prefix);
}

/** A verified ledger, and what it says of the slices that it set aside for others. */
export interface VerifiedParent {
  readonly result: VerificationResult;
  /** For `parents` of any number of verifications. */
  readonly parent: ParentLedger;
}

/**
 * Verifies a whole source once, for the ledgers that spend its slices (SPEC §8 rule 17).
 *
 * @param known - Parents that many verifications share, instead of `parents`
 * @throws As {@link runVerification}; RangeError with `from`, since a saved state does not have all slices.
 */
export async function verifyParent(
  source: LedgerSource,
  options: VerifyOptions = {},
  known?: ParentLedgers,
): Promise<VerifiedParent> {
  const checked = checkVerifyOptions(options);
  if (checked.from !== undefined)
    throw new RangeError('verifyParent: from is not possible, as a saved state does not have all slices');
  const given = known ?? (checked.parents && new ParentLedgers(await readParents(checked.parents, checked)));
  const parents = given && new Parents(given);
  const sliceWatch = new SliceWatch();
  const run = new Verification(source, checked, { sliceWatch, ...defined({ parents }) });
  const prefix = await run.verifyLines();
  const result = await run.finish(prefix);
  const { state, hasInvalid, ending, paths } = result;
  const [name = ''] = paths;
  const about = { name, ledgerId: state.ledgerId, isInvalid: hasInvalid, sealedSize: ending.sealedSize ?? 0 };
  return { result, parent: new ParentLedger(about, sliceWatch.slices) };
}

/** Verifies those that are not verified yet, one after the other. */
async function readParents(
  parents: readonly (LedgerSource | ParentLedger)[],
  { trust, witnessPolicy, now, backend, threads, maxMemory, signal }: CheckedOptions,
): Promise<ParentLedger[]> {
  const options = {
    maxFindings: 0,
    now,
    threads,
    maxMemory,
    ...defined({ trust, witnessPolicy, backend, signal }),
  };
  const verified: ParentLedger[] = [];
  for (const each of parents)
    verified.push(each instanceof ParentLedger ? each : (await verifyParent(each, options)).parent);
  return verified;
}

type Pending = Promise<void> | undefined;

class Verification {
  readonly #source: LedgerSource;
  readonly #options: CheckedOptions;
  readonly #backend: SignatureBackend;
  readonly #state: VerifyState;
  readonly #anchors: AnchorWatch;
  readonly #skipped: SkippedLines;
  readonly #kept: FindingList;
  readonly #shown: ShownFindings;
  readonly #checks: FurtherChecks | undefined;
  /** The grant of the last record on the fast path, which most records share, and the ids of its chain. */
  #grant: Grant | undefined;
  #grantIds = chainIds(undefined);

  /** Begins the state, or restores it. */
  constructor(
    source: LedgerSource,
    options: CheckedOptions,
    slices: Pick<VerifyState, 'parents' | 'sliceWatch'> = {},
  ) {
    const { from, maxFindings, backend = defaultBackend } = options;
    this.#source = source;
    this.#options = options;
    this.#anchors = new AnchorWatch(options.checkpoints ?? [], source.published, options.earlierCheckpoints);
    this.#backend = rememberKeys(backend);
    const state = from?.state ?? startVerification(options.trust, this.#backend, options.witnessPolicy);
    this.#state = Object.assign(state, slices);
    if (source.given !== undefined) state.believesParts = true;
    // A later run may show more of them.
    this.#kept = new FindingList(Math.max(maxFindings, DEFAULT_MAX_FINDINGS));
    this.#shown = new ShownFindings(maxFindings, options);
    this.#skipped = new SkippedLines(state, this.#anchors);
    const { checks = [] } = options;
    this.#checks = checks.length === 0 ? undefined : new FurtherChecks(checks);
    if (from === undefined) return;
    this.#kept.add(from.findings);
    this.#shown.addSaved(from.findings, new Set(state.foldRoots.values()));
    // Records added from here on are kept apart from the earlier ones, wherever the anchors end.
    state.seals.intervalStart = state.records;
  }

  /** Skips the verified prefix and verifies the lines after it. @returns All that was read, where it is to be kept. */
  async verifyLines(): Promise<VerifiedPrefix | undefined> {
    const { from, keepPrefix, signal, maxMemory } = this.#options;
    const { events } = this.#state;
    const index = events instanceof EventIndex ? events : undefined;
    const { openScratch } = this.#source;
    const verified = { state: this.#state, prefix: from?.prefix };
    const begun = await beginReading(this.#source, verified, this.#anchors, { keepPrefix, signal });
    if (begun.from !== undefined) this.#skipped.skipAll();
    try {
      if (openScratch !== undefined) index?.bound(maxMemory, openScratch);
      await this.#stepOver(this.#readBlocks(begun));
    } catch (error) {
      index?.close();
      throw error;
    } finally {
      await begun.close();
    }
    this.#skipped.assertDone();
    const prefix = begun.hasher?.prefix();
    return prefix && { ...prefix, roots: this.#anchors.roots() };
  }

  /** Adds what is known only at the end. */
  async finish(prefix: VerifiedPrefix | undefined): Promise<VerificationResult> {
    const state = this.#state;
    // No line of an empty ledger has told where it ends.
    state.end.file ||= this.#source.paths[0] ?? '';
    const { now, signal, predecessor } = this.#options;
    const { faults, total: faultCount } = (await this.#source.findFaults?.()) ?? { faults: [], total: 0 };
    const view =
      predecessor && (await viewPredecessor(predecessor, state.genesis?.continues?.tree_size, signal));
    const ending = finishVerification(state, {
      anchors: this.#anchors,
      now,
      sourceFaults: faults,
      ...(view === undefined ? {} : { predecessor: view }),
    });
    this.#shown.add(ending.findings);
    const sums = sumUp(state, ending);
    const { total: furtherTotal = 0, warnings: furtherWarnings = 0 } = this.#checks ?? {};
    return {
      ...sums,
      warnings: sums.warnings + furtherWarnings,
      growth: await this.#source.findGrowth?.(),
      paths: this.#source.paths,
      findings: this.#shown.worst(),
      total: state.findings + ending.findings.length + faultCount - faults.length + furtherTotal,
      kept: this.#kept.inOrder(),
      prefix,
      ...(this.#checks === undefined ? {} : { further: this.#checks.finish() }),
    };
  }

  #readBlocks({ source, from }: Beginning): ReturnType<typeof readBlocks> {
    const { backend = defaultBackend, threads, signal } = this.#options;
    return readBlocks(source, {
      // Other threads can use only the platform's own backend.
      threads: backend === defaultBackend ? threads : 1,
      backend: this.#backend,
      keys: this.#state.keyring.save().map(({ key }) => ({ keyid: key.keyid, publicKey: key.public_key })),
      ...(from === undefined
        ? { hashedBytes: this.#state.bytes }
        : { from, worthwhileBytes: WORTHWHILE_REST_BYTES }),
      signal,
      onPartOfLine: () => this.#reportProgress(),
    });
  }

  /** Steps over each line: by the fast path where that applies. */
  async #stepOver(blocks: ReturnType<typeof readBlocks>): Promise<void> {
    const { show, onRecord } = this.#options;
    // With `show` or `onRecord`, folded findings are reported too.
    const canFold = show === undefined && onRecord === undefined;
    const fastStep = isFastPathOn() ? FastStep.of(this.#state, { canFold }) : undefined;
    const [anchors, skipped] = [this.#anchors, this.#skipped];
    for await (const lines of blocks) {
      while (lines.next()) {
        const { fast } = lines;
        let pending: Pending;
        if (fastStep === undefined || fast === undefined || !skipped.isDone) {
          pending = this.#skipOrVerify(lines.line);
        } else if (fastStep.tryApply(fast)) {
          const isTold =
            onRecord !== undefined ||
            this.#checks?.wants(fastStep.verdict, () => lines.line.line.bytes) === true;
          if (fastStep.treeSize < anchors.nextSize && !isTold) continue;
          fastStep.flush();
          this.#observeAnchors();
          if (isTold) pending = this.#reportFast(lines.line, fastStep);
        } else {
          fastStep.flush();
          fastStep.reset();
          pending = this.#skipOrVerify(lines.line);
        }
        if (pending !== undefined) await pending;
      }
      fastStep?.flush();
      this.#reportProgress();
    }
  }

  #skipOrVerify(each: KnownLine): Pending {
    return this.#skipped.skip(each) ? undefined : this.#verify(each);
  }

  #verify(each: KnownLine): Pending {
    const { line, segment, takesPlace, known } = each;
    const state = this.#state;
    const { onRecord } = this.#options;
    // Without a listener nothing of the line is kept.
    const isBrief = onRecord === undefined && state.observer === undefined;
    const given = known?.examine(state.layout, isBrief);
    const result = verifyLine(state, line, segment, given, known);
    const { examined, findings, folded, verdict, own, signatures } = result;
    this.#observeAnchors();
    if (findings.length > 0) {
      this.#kept.add(findings);
      this.#shown.add(findings);
    }
    for (const finding of folded) this.#shown.addFolded(finding);
    if (!takesPlace || (onRecord === undefined && this.#checks?.wants(verdict, () => line.bytes) !== true))
      return undefined;
    const { grantIds = [] } = result.context;
    return this.#report(each, { examined, verdict, findings: own, signatures, grantIds });
  }

  /** Records that an anchor may cover are kept apart from those after it. */
  #observeAnchors(): void {
    if (this.#anchors.observe(this.#state.tree)) this.#state.seals.intervalStart = this.#state.records;
  }

  #reportFast(each: KnownLine, { verdict, grant }: FastStep): Pending {
    const examined = each.known?.examine('records', false);
    if (examined?.wellFormed !== true) throw new Error('a scannable record is malformed');
    if (grant !== this.#grant) [this.#grant, this.#grantIds] = [grant, chainIds(grant)];
    const signatures = validOutcomes(this.#state, examined);
    return this.#report(each, { examined, verdict, findings: [], signatures, grantIds: this.#grantIds });
  }

  #report(
    { line, segment, ordinal }: KnownLine,
    found: Pick<VerifiedRecord, 'examined' | 'verdict' | 'findings' | 'signatures' | 'grantIds'>,
  ): Pending {
    const record: VerifiedRecord = {
      ordinal,
      file: segment.file,
      line: line.number,
      byteOffset: line.offset,
      byteLength: line.length,
      bytes: found.examined === undefined ? undefined : line.bytes,
      ...found,
      state: this.#state,
    };
    const further = this.#checks?.check(record, line) ?? [];
    if (further.length > 0) this.#shown.add(further);
    return this.#options.onRecord?.(record);
  }

  #reportProgress(): void {
    this.#options.onProgress?.(this.#state.bytes, this.#source.size);
  }
}

/**
 * Ends a verification whose lines were all verified before.
 *
 * @param findings - The first finding of each rank in those lines. Only the worst of all is listed.
 * @param now - The time of verification, a timestamp.
 */
export function endVerification(
  state: VerifyState,
  findings: readonly Finding[],
  paths: readonly string[],
  now: string,
): VerificationResult {
  const ending = finishVerification(state, { now });
  const list = new FindingList(1);
  list.add(findings);
  list.add(ending.findings);
  return {
    ...sumUp(state, ending),
    growth: undefined,
    paths,
    findings: list.worst(),
    total: state.findings + ending.findings.length,
    kept: [],
    prefix: undefined,
  };
}

function sumUp(
  state: VerifyState,
  ending: Ending,
): Pick<VerificationResult, 'state' | 'ending' | 'hasInvalid' | 'hasViolation' | 'warnings'> {
  return {
    state,
    ending,
    hasInvalid: state.hasInvalid || ending.findings.some((finding) => finding.class === 'invalid'),
    hasViolation: state.hasViolation || ending.findings.some((finding) => finding.class === 'violation'),
    warnings: state.warnings + ending.findings.filter(({ severity }) => severity === 'warning').length,
  };
}

/**
 * Whether a saved verification can be resumed with these checkpoints. It cannot where one of them ends among records of which only the
 * sum was kept, so that which of them it covers is not known.
 *
 * @throws NorthrootError `NOTE_MALFORMED`
 */
export function canGoOn({ state }: SavedVerification, checkpoints: readonly Anchor[]): boolean {
  const groups = [...state.seals.unsealed.values()];
  return new AnchorWatch(checkpoints)
    .sizes()
    .every((size) => groups.every(({ begin, last }) => size <= begin || size > last));
}
