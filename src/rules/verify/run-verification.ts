/**
 * Drives the step function over a source: splits it into lines, keeps the worst findings, tells of progress. All that is
 * asynchronous about verification is here.
 */

import { defaultThreads, FastStep, isFastPathOn, readBlocks, rememberKeys } from '#fast/step';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import {
  type Finding,
  type FindingContext,
  type FindingRank,
  rankOf,
  RANKS,
  withoutFolded,
} from '../../format/finding/finding.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { appendLeaf, emptyRange, rangeRoot } from '../../format/tree/compact-range.js';
import { chainIds, type Grant } from '../bounds/grant.js';
import type { LedgerSource, SourceGrowth } from '../source/ledger-source.js';
import { hashLine } from '../source/read-lines.js';
import type { WitnessPolicy } from '../trust/witness-policy.js';
import { type Anchor, AnchorWatch } from './anchors.js';
import { type Ending, finishVerification } from './ending.js';
import { EventIndex } from './event-index.js';
import type { KnownLine } from './line-knowledge.js';
import type { FoldedFinding } from './line-result.js';
import { viewPredecessor } from './predecessor.js';
import { validOutcomes } from './signatures.js';
import { startVerification, type VerifyState } from './state.js';
import { beginReading, type SavedVerification, type VerifiedPrefix } from './verified-prefix.js';
import type { VerifiedRecord } from './verified-record.js';
import { verifyLine } from './verify-line.js';

/** How many findings a report lists unless told otherwise (SPEC §9). */
export const DEFAULT_MAX_FINDINGS = 1_000;

/** The most threads that may be asked for. */
export const MAX_THREADS = 256;

/** How many bytes the ids of events and their places may take in memory unless told otherwise: enough for two million events. */
export const DEFAULT_MAX_MEMORY = 96 * 1024 * 1024;

/** The least that they can do with. */
export const MIN_MAX_MEMORY = 64 * 1024;

/** What has come since a state was saved is examined in one thread up to this size: others take longer to start and to become fast. */
const WORTHWHILE_REST_BYTES = 32 * 1024 * 1024;

/** What to verify against, and whom to tell. */
export interface VerifyOptions {
  /** The keys, origins and requirements that the user pins; without it the ledger's own keys count, and the report says so. */
  readonly trust?: TrustPolicy | undefined;
  /** The logs, witnesses and quorum that checkpoints are held against. */
  readonly witnessPolicy?: WitnessPolicy | undefined;
  /** Checkpoints that the user holds: the ledger must extend each. */
  readonly checkpoints?: readonly Anchor[] | undefined;
  /** The ledger that this one is to go on from: its genesis says where that one ended. */
  readonly predecessor?: LedgerSource | undefined;
  /** The time of verification, for policies that bound the age of checkpoints. Default: the present. */
  readonly now?: string | undefined;
  /** The signature backend; the platform's own unless given. */
  readonly backend?: SignatureBackend | undefined;
  /** At most so many findings are kept for the report, the worst ones. Default 1,000. */
  readonly maxFindings?: number | undefined;
  /**
   * Which findings are listed and given to `onFinding`; all are counted. Default: all. Of findings that fold under one that is not
   * shown, the first that is shown is listed in its place, and those after it fold under that; not so of what folded before `from`
   * was saved.
   */
  readonly show?: ((finding: Finding) => boolean) | undefined;
  /**
   * Asked of each finding once, in ledger order, and not of those that fold under it: one that is acknowledged is counted, but
   * neither listed nor given to `onFinding`. Its `folded` may grow later. Default: none.
   */
  readonly acknowledge?: ((finding: Finding) => boolean) | undefined;
  /** Called with each finding as it is found, in ledger order, however many there are. Its `folded` may grow later. */
  readonly onFinding?: ((finding: Finding) => void) | undefined;
  /**
   * Called with each line that takes a place, in ledger order, when it is verified; not with those before `from`. A promise that it
   * returns is waited for before the next line.
   */
  readonly onRecord?: ((record: VerifiedRecord) => Promise<void> | undefined) | undefined;
  /** Called after each chunk with the bytes verified so far, and the size in bytes where it is known. */
  readonly onProgress?: ((bytes: number, size: number | undefined) => void) | undefined;
  /**
   * Goes on from a state that was saved, and changes it; the lines before it are only hashed, to see that they are the same.
   * It was saved under the same `trust` and `witnessPolicy`, and {@link canGoOn} with these `checkpoints`, or the report is not
   * that of one pass.
   */
  readonly from?: SavedVerification | undefined;
  /**
   * Whether the ledger's bytes are hashed as a whole too, so that the result, saved with `prefix`, can be gone on from without a look
   * at the lines before it. Costs about a microsecond a record. Default false.
   */
  readonly keepPrefix?: boolean | undefined;
  /**
   * How many threads examine lines, 1 to 256; 1 is the caller's own. Small ledgers are examined in one. Default: as many as there are
   * processors, up to 16. The result does not depend on it.
   */
  readonly threads?: number | undefined;
  /**
   * How many bytes the ids of events and their places may take in memory, at least 64 KiB; default: 96 MiB, enough for some two million
   * events. Further ids go to temporary files where the source can make some (files and streams on Node can), and take 4 bytes each. What
   * else memory grows with, such as open actions, stays there. The result does not depend on it.
   */
  readonly maxMemory?: number | undefined;
  /** Aborting makes verification end with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What each of {@link VerifyOptions} may be. */
export const VERIFY_OPTIONS: OptionTypes<VerifyOptions> = {
  trust: 'object',
  witnessPolicy: 'object',
  checkpoints: 'array',
  predecessor: 'object',
  now: 'string',
  backend: 'object',
  maxFindings: 'number',
  show: 'function',
  acknowledge: 'function',
  onFinding: 'function',
  onRecord: 'function',
  onProgress: 'function',
  from: 'object',
  keepPrefix: 'boolean',
  threads: 'number',
  maxMemory: 'number',
  signal: 'signal',
};

/** The end of a verification. */
export interface VerificationResult {
  /** It can be saved, see `saveVerification`, and gone on from when the ledger has grown. */
  readonly state: VerifyState;
  readonly paths: readonly string[];
  /** Worst first, then in the order in which they were found. */
  readonly findings: readonly Finding[];
  /** How many there are, listed or not. */
  readonly total: number;
  /** What is known only at the end; its findings are among the others. */
  readonly ending: Ending;
  /** Whether any evidence is broken or missing: the state's own word, and the ending's. */
  readonly hasInvalid: boolean;
  /** How many of the findings are warnings. */
  readonly warnings: number;
  /** Where reading ended in a ledger that has grown meanwhile; undefined when all was read. */
  readonly growth: SourceGrowth | undefined;
  /**
   * The findings that do not depend on the ledger's ending here, as they were found: what goes on with the state. Of each rank
   * the first 1,000 at least; they are all that there are when they are as many as `state.findings`.
   */
  readonly kept: readonly Finding[];
  /** What was read, as a whole; undefined unless `keepPrefix` asks for it, and where the last line has no end. */
  readonly prefix: VerifiedPrefix | undefined;
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
  checkOptions('runVerification', options, VERIFY_OPTIONS);
  const maxFindings = options.maxFindings ?? DEFAULT_MAX_FINDINGS;
  if (!Number.isSafeInteger(maxFindings) || maxFindings < 0) {
    throw new RangeError('maxFindings must be an integer of at least 0');
  }
  const { from, threads = defaultThreads() } = options;
  if (!Number.isSafeInteger(threads) || threads < 1 || threads > MAX_THREADS) {
    throw new RangeError(`threads must be an integer from 1 to ${MAX_THREADS}`);
  }
  const { maxMemory = DEFAULT_MAX_MEMORY } = options;
  if (!Number.isSafeInteger(maxMemory) || maxMemory < MIN_MAX_MEMORY) {
    throw new RangeError(`maxMemory must be an integer of at least ${MIN_MAX_MEMORY}`);
  }
  const { now = new Date().toISOString() } = options;
  if (!isTimestamp(now)) throw new RangeError('now must be a timestamp');
  const anchors = new AnchorWatch(options.checkpoints ?? [], source.published);
  const { backend: given = defaultBackend } = options;
  const backend = rememberKeys(given);
  const state = from?.state ?? startVerification(options.trust, backend, options.witnessPolicy);
  if (source.given !== undefined) state.believesParts = true;
  const index = state.events instanceof EventIndex ? state.events : undefined;
  const { show = () => true, acknowledge = () => false, onFinding = () => undefined } = options;
  // What is gone on from may be shown with another limit.
  const kept = new FindingList(Math.max(maxFindings, DEFAULT_MAX_FINDINGS));
  const shown = new FindingList(maxFindings);
  const add = (findings: readonly Finding[], asTold = (finding: Finding): Finding => finding): void => {
    const chosen = findings.filter((finding) => !acknowledge(finding) && show(finding));
    shown.add(chosen);
    for (const finding of chosen) onFinding(asTold(finding));
  };
  // By the finding that they folded under: at most as many as causes are remembered.
  const standIns = new Map<Finding, Finding>();
  // By the context of the finding that is waited for: at most one for each.
  const waiting = new Map<FindingContext, Finding>();
  const standIn = ({ finding, root, waits = false }: FoldedFinding): void => {
    if (options.show === undefined || show(root) || !show(finding)) return;
    const first = waits ? waiting.get(root.context) : standIns.get(root);
    if (first !== undefined) {
      first.folded = (first.folded ?? 0) + 1;
    } else if (waits) {
      waiting.set(root.context, finding);
    } else {
      standIns.set(root, finding);
      add([finding]);
    }
  };
  const settle = (findings: readonly Finding[]): void => {
    for (const { context, code, related } of waiting.size === 0 ? [] : findings) {
      const finding = waiting.get(context);
      if (finding === undefined) continue;
      waiting.delete(context);
      add([{ ...finding, code, ...(related === undefined ? {} : { related }) }]);
    }
  };
  const growing = new Set(state.foldRoots.values());
  kept.add(from?.findings ?? []);
  // In one pass they would be told of before anything folds under them.
  add(from?.findings ?? [], (finding) => (growing.has(finding) ? withoutFolded(finding) : finding));
  let toSkip = state.lines;
  // What is passed over must be, byte for byte, what was verified then: its tree says so at the cost of its hashes.
  const skipped = emptyRange();
  const root = rangeRoot(state.tree);

  anchors.observe(skipped);
  // What is added from here on is kept apart from what was there, wherever the anchors end.
  if (from !== undefined) state.seals.intervalStart = state.records;
  const { onRecord } = options;
  const tell = (
    { line, segment, ordinal }: KnownLine,
    said: Pick<VerifiedRecord, 'examined' | 'verdict' | 'findings' | 'signatures' | 'grantIds'>,
  ): Promise<void> | undefined =>
    onRecord?.({
      ordinal,
      file: segment.file,
      line: line.number,
      byteOffset: line.offset,
      byteLength: line.length,
      bytes: said.examined === undefined ? undefined : line.bytes,
      ...said,
      state,
    });
  const take = (each: KnownLine): Promise<void> | undefined => {
    const { line, segment, takesPlace, known } = each;
    if (toSkip > 0) {
      toSkip -= 1;
      if (takesPlace) appendLeaf(skipped, known?.leaf ?? hashLine(line));
      anchors.observe(skipped);
      if (toSkip === 0 && rangeRoot(skipped) !== root) throw mismatch();
      return undefined;
    }
    // Where nobody is told of the line, nobody keeps what it says.
    const isBrief = onRecord === undefined && state.observer === undefined;
    const examined = known?.examine(state.layout, isBrief);
    const result = verifyLine(state, line, segment, examined, known);
    const { findings, folded, verdict, own, signatures, context } = result;
    // What an anchor may cover is kept apart from what comes after it.
    if (anchors.observe(state.tree)) state.seals.intervalStart = state.records;
    if (findings.length > 0) {
      kept.add(findings);
      add(findings);
      settle(findings);
    }
    for (const other of folded) standIn(other);
    if (!takesPlace || onRecord === undefined) return undefined;
    const { grantIds = [] } = context;
    return tell(each, { examined: result.examined, verdict, findings: own, signatures, grantIds });
  };
  let above: Grant | undefined;
  let grantIds = chainIds(above);
  const reportFast = (each: KnownLine, { verdict, grant }: FastStep): Promise<void> | undefined => {
    const examined = each.known?.examine('records', false);
    if (examined?.wellFormed !== true) throw new Error('a scannable line is malformed');
    // Most are under the grant of the one before.
    if (grant !== above) [above, grantIds] = [grant, chainIds(grant)];
    const signatures = validOutcomes(state, examined);
    return tell(each, { examined, verdict, findings: [], signatures, grantIds });
  };
  const onProgress = (): void => options.onProgress?.(state.bytes, source.size);
  const { keepPrefix, signal } = options;
  const verified = { state, prefix: from?.prefix };
  const begun = await beginReading(source, verified, anchors, { keepPrefix, signal, threads });
  if (begun.from !== undefined) toSkip = 0;
  const blocks = readBlocks(begun.source, {
    // Other threads know the platform's own backend alone.
    threads: given === defaultBackend ? threads : 1,
    backend,
    keys: state.keyring.save().map(({ key }) => ({ keyid: key.keyid, publicKey: key.public_key })),
    ...(begun.from === undefined
      ? { hashedBytes: state.bytes }
      : { from: begun.from, worthwhileBytes: WORTHWHILE_REST_BYTES }),
    signal,
    onPartOfLine: onProgress,
  });
  // Who is told of each record is told of findings that fold, too.
  const canFold = options.show === undefined && onRecord === undefined;
  const fastStep = isFastPathOn() ? FastStep.of(state, { canFold }) : undefined;
  try {
    if (source.openScratch !== undefined) index?.bound(maxMemory, source.openScratch);
    for await (const lines of blocks) {
      while (lines.next()) {
        const { fast } = lines;
        if (fastStep !== undefined && fast !== undefined && toSkip === 0) {
          if (fastStep.tryApply(fast)) {
            if (fastStep.treeSize < anchors.nextSize && onRecord === undefined) continue;
            fastStep.flush();
            if (anchors.observe(state.tree)) state.seals.intervalStart = state.records;
            const told = onRecord && reportFast(lines.line, fastStep);
            if (told !== undefined) await told;
            continue;
          }
          fastStep.flush();
          fastStep.reset();
        }
        const told = take(lines.line);
        if (told !== undefined) await told;
      }
      fastStep?.flush();
      onProgress();
    }
  } catch (error) {
    index?.close();
    throw error;
  } finally {
    await begun.close();
  }
  if (toSkip > 0) throw mismatch();
  const { faults: sourceFaults, total: faults } = (await source.findFaults?.()) ?? { faults: [], total: 0 };
  const predecessor =
    options.predecessor &&
    (await viewPredecessor(options.predecessor, state.genesis?.continues?.tree_size, options.signal));
  const ending = finishVerification(state, {
    anchors,
    now,
    sourceFaults,
    ...(predecessor === undefined ? {} : { predecessor }),
  });
  add(ending.findings);
  settle(ending.findings);
  const prefix = begun.hasher?.prefix();
  return {
    ...sumUp(state, ending),
    growth: await source.findGrowth?.(),
    paths: source.paths,
    findings: shown.list().slice(0, maxFindings),
    total: state.findings + ending.findings.length + faults - sourceFaults.length,
    kept: kept.inOrder(),
    prefix: prefix && { ...prefix, roots: anchors.roots() },
  };
}

/**
 * Ends a verification whose lines were all verified before, as one of them in one pass would end.
 *
 * @param findings - Of each rank the first of those lines' findings: the worst of all is listed, and no other.
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
    findings: list.list().slice(0, 1),
    total: state.findings + ending.findings.length,
    kept: [],
    prefix: undefined,
  };
}

function sumUp(
  state: VerifyState,
  ending: Ending,
): Pick<VerificationResult, 'state' | 'ending' | 'hasInvalid' | 'warnings'> {
  return {
    state,
    ending,
    hasInvalid: state.hasInvalid || ending.findings.some((finding) => finding.class === 'invalid'),
    warnings: state.warnings + ending.findings.filter(({ severity }) => severity === 'warning').length,
  };
}

/**
 * Whether a saved verification can be gone on from with these checkpoints: it cannot where one of them ends among records of which
 * only the sum was kept, so that nobody could say any more which of them it covers.
 *
 * @throws NorthrootError `NOTE_MALFORMED`
 */
export function canGoOn({ state }: SavedVerification, checkpoints: readonly Anchor[]): boolean {
  const groups = [...state.seals.unsealed.values()];
  return new AnchorWatch(checkpoints)
    .sizes()
    .every((size) => groups.every(({ begin, last }) => size <= begin || size > last));
}

/** Findings by rank, of each rank at most so many: enough to list the worst, or the first. */
class FindingList {
  readonly #byRank = new Map<FindingRank, Finding[]>(RANKS.map((rank) => [rank, []]));
  readonly #inOrder: Finding[] = [];
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(findings: readonly Finding[]): void {
    for (const finding of findings) {
      const list = this.#byRank.get(rankOf(finding)) as Finding[];
      if (list.length >= this.#limit) continue;
      list.push(finding);
      this.#inOrder.push(finding);
    }
  }

  /** As they were added. */
  inOrder(): Finding[] {
    return this.#inOrder;
  }

  /** Worst first. */
  list(): Finding[] {
    return RANKS.flatMap((rank) => this.#byRank.get(rank) as Finding[]);
  }
}

function mismatch(): NorthrootError {
  return new NorthrootError('STATE_MISMATCH', 'the ledger is not the one that the saved state comes from', {
    hint: 'its earlier records were changed or cut off since, or it is another ledger: verify it from the beginning',
  });
}
