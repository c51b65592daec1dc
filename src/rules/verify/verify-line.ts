/**
 * The verifier's step function: one line in, its findings out (SPEC §8). It opens no file, reads no clock and prints
 * nothing; everything it knows is in the state. The same lines give the same findings however they were cut into chunks.
 */

import { toDigestText } from '../../base/value/digest.js';
import type { Finding, FindingContext } from '../../format/finding/finding.js';
import {
  type ExaminedLine,
  examineLazily,
  type LineFacts,
  withEvent,
} from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import { isKnownEventType } from '../../format/schema/check.js';
import { appendLeaf, leafHash } from '../../format/tree/compact-range.js';
import type { EventPlace } from '../bounds/grant.js';
import {
  checkAuthorizations,
  eventKindOf,
  type Linked,
  resolvePending,
  settleLinked,
} from './authorizations.js';
import { checkBinding } from './binding.js';
import { advanceChain, checkChain, checkEventIds, checkGenesisPlace } from './chain.js';
import { checkCheckpoint, checkCheckpointDue, trackUnsealedSigners } from './checkpoints.js';
import { adoptGenesis, checkBareOrigin } from './genesis.js';
import { applyKeyEvent } from './key-events.js';
import { LineFindings } from './line-findings.js';
import type { LineKnowledge } from './line-knowledge.js';
import type {
  EventVerdict,
  FoldedFinding,
  LineResult,
  SegmentName,
  SignatureOutcome,
} from './line-result.js';
import type { RecordPlace } from './seals.js';
import { checkSignatures } from './signatures.js';
import type { VerifyState } from './state.js';

/** The context is made on request: for most lines it is not needed. */
class Result implements LineResult {
  readonly findings: readonly Finding[];
  readonly waiting: Finding | undefined;
  readonly examined: ExaminedLine | undefined;
  readonly verdict: EventVerdict;
  readonly signatures: readonly SignatureOutcome[];
  readonly folded: readonly FoldedFinding[];
  readonly own: readonly Finding[];
  readonly #found: LineFindings;

  constructor(found: LineFindings, examined: ExaminedLine | undefined, verdict: EventVerdict) {
    this.findings = found.listed;
    this.waiting = found.waiting;
    this.examined = examined;
    this.verdict = verdict;
    this.signatures = found.signatures;
    this.folded = found.folded;
    this.own = found.own;
    this.#found = found;
  }

  get context(): FindingContext {
    return this.#found.context;
  }
}

/** Event types counted by name; further ones, and longer names, are counted under `*`. */
const MAX_COUNTED_TYPES = 1_000;
const MAX_TYPE_LENGTH = 128;

/**
 * Verifies the next line of the ledger.
 *
 * @param state - Changed in place.
 * @param line - The next line of the file. It is not kept.
 * @param segment - The line's file: its name and, in a folder, the `seq` that the name promises.
 * @param given - The result of `examineLine`, or its facts, where known.
 * @param known - Further facts computed in advance.
 * @returns See {@link LineResult}.
 */
export function verifyLine(
  state: VerifyState,
  line: RawLine,
  segment: SegmentName,
  given?: LineFacts,
  known?: LineKnowledge,
): LineResult {
  const findings = new LineFindings(state, line, segment.file);
  let examined: ExaminedLine | undefined;
  state.lines += 1;
  state.bytes += line.length + (line.terminated ? 1 : 0);
  if (!line.terminated) {
    findings.add('LINE_TORN', {
      expected: 'a final newline',
      actual: `${line.length} bytes after the last one`,
    });
  } else if (line.length === 0) {
    findings.add('LINE_BLANK', { expected: 'a record', actual: 'an empty line' });
  } else if (line.length > MAX_LINE_BYTES) {
    findings.add('LINE_TOO_LONG', {
      expected: `at most ${MAX_LINE_BYTES} bytes`,
      actual: `${line.length} bytes`,
    });
    state.observer?.beforeLine(undefined);
    appendLeafFor(state, line.longLeafHash as string, undefined, placeOf(state, line, segment), findings);
  } else {
    examined = verifyRecord(state, line, segment, findings, given, known);
  }
  const { end, damage } = state;
  if (line.terminated && line.length === 0) damage.blank = state.lines;
  if (examined?.eventId === undefined) damage.lines += 1;
  if (examined?.eventId === undefined || examined.seq === undefined || examined.faults.length > 0)
    damage.at = state.lines;
  end.file = segment.file;
  end.line = line.number + (line.terminated ? 1 : 0);
  // A torn line does not count as read.
  end.byteOffset = line.offset + (line.terminated ? line.length + 1 : 0);
  state.findings += findings.listed.length;
  if (findings.invalid) state.hasInvalid = true;
  if (findings.violation) state.hasViolation = true;
  const result = new Result(findings, examined, verdictOf(examined, findings));
  state.observer?.afterLine(line, segment, result);
  return result;
}

function verifyRecord(
  state: VerifyState,
  line: RawLine,
  segment: SegmentName,
  findings: LineFindings,
  given: LineFacts | undefined,
  known: LineKnowledge | undefined,
): ExaminedLine {
  const examined =
    given === undefined ? examineLazily(line.bytes, state.layout) : withEvent(given, line.bytes);
  state.observer?.beforeLine(examined);
  findings.setRecord(examined);
  const place = placeOf(state, line, segment, examined);
  for (const { code, ...detail } of examined.faults) findings.add(code, detail);
  let isNew = false;
  let linked: Linked | undefined;
  if (examined.layout !== undefined) {
    state.layout ??= examined.layout;
    checkBinding(state, examined, findings);
    if (examined.layout === 'records') {
      checkGenesisPlace(state, examined, findings);
      checkChain(state, examined, findings, line.number === 1 ? segment.firstSeq : undefined);
      if (state.records === 0) adoptGenesis(state, examined, place, findings);
    } else if (state.records === 0) {
      checkBareOrigin(state, findings);
    }
    reportUnknownType(examined, findings);
    isNew = checkEventIds(state, examined, findings);
    checkSignatures(state, examined, line.bytes, findings, known);
    if (isNew) {
      checkCheckpoint(state, examined, place, findings);
      applyKeyEvent(state, examined, place, findings);
      linked = linkEvent(state, examined, place, findings);
    }
    countEvent(state, examined);
  }
  const own = verdictOf(examined, findings);
  appendLeafFor(state, known?.leaf ?? leafHash(line.bytes), examined, place, findings);
  if (linked !== undefined)
    settleLinked(state, linked, examined.eventId as string, verdictOf(examined, findings), own);
  if (isNew && !findings.invalid) state.parents?.observe(state, examined, toEventPlace(place));
  // These are findings at the executions that wait for this event, so they come after the line's own.
  if (isNew) findings.list(resolvePending(state, examined.eventId as string, eventKindOf(examined), place));
  return examined;
}

function placeOf(
  state: VerifyState,
  line: RawLine,
  { file }: SegmentName,
  examined?: ExaminedLine,
): RecordPlace {
  const ownSeq = examined?.seq;
  const eventId = examined?.eventId === undefined ? '' : toDigestText(examined.eventId);
  return {
    file,
    line: line.number,
    byteOffset: line.offset,
    byteLength: line.length,
    seq: ownSeq ?? state.records,
    ownSeq,
    eventId,
  };
}

/** Judges the links of an event, and adds it to the index. */
function linkEvent(
  state: VerifyState,
  examined: ExaminedLine,
  place: RecordPlace,
  findings: LineFindings,
): Linked {
  const linked = checkAuthorizations(state, examined, toEventPlace(place), findings);
  if (linked.isBlocked) findings.denied = true;
  state.events.add(examined.eventId as string, place, eventKindOf(examined), linked.grant);
  return linked;
}

function toEventPlace({ file, line, seq, eventId }: RecordPlace): EventPlace {
  return { file, line, seq, eventId };
}

/** Appends the line to chain and tree, readable or not. */
function appendLeafFor(
  state: VerifyState,
  leaf: string,
  examined: ExaminedLine | undefined,
  place: RecordPlace,
  findings: LineFindings,
): void {
  checkCheckpointDue(state, examined, findings);
  const verdict = verdictOf(examined, findings);
  noteVerdict(state, examined, place, verdict);
  trackUnsealedSigners(state, examined, place, verdict, findings.signers);
  advanceChain(state, leaf, examined?.seq);
  appendLeaf(state.tree, leaf);
  state.records += 1;
  state.countsByVerdict[verdict] += 1;
}

/** Keeps the verdict of records that the end may still make invalid. */
function noteVerdict(
  { genesis, seals }: VerifyState,
  examined: ExaminedLine | undefined,
  place: RecordPlace,
  verdict: EventVerdict,
): void {
  if (genesis?.place === place) genesis.verdict = verdict;
  const id = examined?.type === 'checkpoint' ? examined.eventId : undefined;
  const checkpoint = id === undefined ? undefined : seals.known.get(id);
  if (checkpoint?.place !== place) return;
  checkpoint.verdict = verdict;
  seals.known.set(id as string, checkpoint);
}

function verdictOf(examined: ExaminedLine | undefined, findings: LineFindings): EventVerdict {
  if (findings.invalid) return 'invalid';
  if (findings.violation) return 'violation';
  const isDeny = examined?.type === 'authorization' && examined.outline().decision === 'deny';
  return isDeny || findings.denied ? 'denied' : 'ok';
}

function reportUnknownType(examined: ExaminedLine, findings: LineFindings): void {
  const { eventType: type } = examined;
  if (type === undefined || isKnownEventType(type) || type.startsWith('x.')) return;
  const pointer = examined.layout === 'bare' ? '/event_type' : '/event/event_type';
  // A malformed type has its finding already.
  if (examined.faults.some((fault) => fault.pointer === pointer)) return;
  findings.add('EVENT_TYPE_UNKNOWN', {
    pointer,
    expected: 'a known type, or one named x.…',
    actual: type,
    cause: type,
  });
}

function countEvent(state: VerifyState, examined: ExaminedLine): void {
  if (examined.eventId !== undefined) state.tipEventId = examined.eventId;
  const { eventType: type } = examined;
  if (type === undefined) return;
  const hasRoom = state.countsByType.size < MAX_COUNTED_TYPES && type.length <= MAX_TYPE_LENGTH;
  const count = state.countsByType.get(type);
  const counted = count !== undefined || hasRoom ? type : '*';
  state.countsByType.set(counted, (count ?? state.countsByType.get(counted) ?? 0) + 1);
  if (type !== 'checkpoint') return;
  state.checkpoints += 1;
  if (examined.wellFormed) state.lastCheckpoint = { seq: state.records, occurredAt: examined.occurredAt };
}
