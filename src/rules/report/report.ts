/** Builds the report of SPEC §9, which `--format json` writes and the API returns. */

import { toDigestText } from '../../base/value/digest.js';
import { isPrincipalId } from '../../base/value/principal.js';
import { isToolName } from '../../base/value/tool.js';
import { VERSION } from '../../base/version.js';
import type { Finding } from '../../format/finding/finding.js';
import { describeFinding } from '../../format/finding/words.js';
import type {
  AnchorJson,
  CheckpointSignerJson,
  ContinuationJson,
  FindingJson,
  GivenApproval,
  GivenRevocation,
  OpenAuthorization,
  ReportJson,
  RevokedKeyJson,
} from '../../format/schema/generated/types.js';
import { hashToBase64url, rangeRoot } from '../../format/tree/compact-range.js';
import type { Grant } from '../bounds/grant.js';
import { listSigners } from '../trust/checkpoint-judge.js';
import type { AnchorOutcome } from '../verify/anchors.js';
import type { VerificationResult } from '../verify/run-verification.js';
import type { CheckpointTally } from '../verify/seals.js';
import type { VerifyState } from '../verify/state.js';
import {
  countGrants,
  countOpenAuthorizations,
  decimalsOf,
  grantAccounts,
  listOpenStarts,
  nameOfKey,
  openAuthorizations,
} from './accounts.js';
import { EXIT_STATUS } from './exit-status.js';
import { listNotChecked } from './not-checked.js';
import { listRevoked, type RevokedKey } from './revoked.js';

/** A report in the form of SPEC §9, with its findings. */
export type Report = ReportJson & { findings: FindingJson[] };

type ReportGrant = Report['grants'][number];

/** A list that is read again at each iteration. An array is one. */
export interface ReadableList<T> extends Iterable<T> {
  readonly length: number;
}

/**
 * A report that reads grants and open authorizations on request: there may be millions. {@link Report} is one, too. JSON.stringify writes
 * both alike; `writeJson` does so piece by piece.
 */
export type LazyReport = Omit<Report, 'grants' | 'open_authorizations' | 'approvals' | 'revocations'> & {
  readonly grants: ReadableList<ReportGrant>;
  readonly open_authorizations: ReadableList<OpenAuthorization>;
  readonly approvals: ReadableList<GivenApproval>;
  readonly revocations: ReadableList<GivenRevocation>;
};

/** The report of a verification. */
export function buildReport(result: VerificationResult): Report {
  const report = buildLazyReport(result);
  return {
    ...report,
    grants: [...report.grants],
    open_authorizations: [...report.open_authorizations],
    approvals: [...report.approvals],
    revocations: [...report.revocations],
  };
}

/** The same, reading `result.state` on request. It MUST be used before another verification resumes that state. */
export function buildLazyReport(result: VerificationResult): LazyReport {
  const { state, ending } = result;
  const verdict = verdictOf(result);
  const revoked = listRevoked(result);
  const signers = [...state.seals.tallies.values()];
  const anchors = ending.anchors.filter(({ isPublished }) => !isPublished);
  return {
    report_version: '1',
    tool: { name: 'northroot', version: VERSION },
    ledger: {
      paths: [...result.paths],
      origin: state.origin ?? null,
      records: state.records,
      bytes: state.bytes,
      tree_size: state.records,
      root: toDigestText(hashToBase64url(rangeRoot(state.tree))),
      tip_event_id: state.tipEventId === undefined ? null : toDigestText(state.tipEventId),
      ...toContinuation(result),
    },
    verdict,
    exit_status: EXIT_STATUS[verdict],
    trust: {
      mode: state.mode,
      signatures: { ...state.signatures },
      signers: [...state.signers.values()].map(({ keyid, principals, records }) => ({
        keyid,
        ...named(state, keyid),
        principals: [...principals],
        records,
      })),
      ...(revoked.length === 0 ? {} : { revoked: revoked.map(toRevokedKeyJson) }),
    },
    checkpoints: {
      count: state.checkpoints,
      last_tree_size: ending.lastTreeSize,
      unsealed: ending.unsealed,
      ...(signers.length === 0 ? {} : { signers: signers.map(toCheckpointSignerJson) }),
      ...(anchors.length === 0 ? {} : { anchors: anchors.map(toAnchorJson) }),
    },
    not_checked: listNotChecked(result),
    counts: {
      by_type: Object.fromEntries([...state.countsByType].sort(([a], [b]) => (a < b ? -1 : 1))),
      by_verdict: countVerdicts(result),
    },
    grants: new LazyList(state, countGrants, listGrants),
    open_authorizations: new LazyList(state, countOpenAuthorizations, listOpen),
    ...openStarts(state),
    approvals: new LazyList(state, ({ links }) => countOf(links.approvals.values()), listApprovals),
    revocations: new LazyList(state, ({ links }) => countOf(links.revocations), listRevocations),
    findings: result.findings.map(toFindingJson),
    findings_total: result.total,
    ...furtherOf(result),
  };
}

/** What further checks say. */
function furtherOf({ further = [] }: VerificationResult): Pick<ReportJson, 'decisions' | 'prices'> {
  return further.reduce((all, { report }) => ({ ...all, ...report }), {});
}

/** See {@link LazyReport}. */
class LazyList<T> implements ReadableList<T> {
  readonly #state: VerifyState;
  readonly #count: (state: VerifyState) => number;
  readonly #list: (state: VerifyState) => Generator<T, void, void>;

  constructor(
    state: VerifyState,
    count: (state: VerifyState) => number,
    list: (state: VerifyState) => Generator<T, void, void>,
  ) {
    this.#state = state;
    this.#count = count;
    this.#list = list;
  }

  get length(): number {
    return this.#count(this.#state);
  }

  [Symbol.iterator](): Generator<T, void, void> {
    return this.#list(this.#state);
  }

  toJSON(): T[] {
    return [...this];
  }
}

function* listGrants(state: VerifyState): Generator<ReportGrant, void, void> {
  for (const grant of grantAccounts(state))
    yield {
      event_id: grant.eventId,
      seq: grant.seq,
      principal_id: grant.principalId,
      ...(grant.expiresAt === undefined ? {} : { expires_at: grant.expiresAt }),
      ...(grant.parentId === undefined ? {} : { parent_event_id: grant.parentId }),
      ...(grant.withdrawn === undefined ? {} : { withdrawn: grant.withdrawn }),
      signers: [...grant.signers],
      executions: grant.executions,
      meters: grant.balances.map((balance) => ({ ...balance })),
      ...(grant.actionCaps.length === 0 ? {} : { action_caps: grant.actionCaps.map((cap) => ({ ...cap })) }),
      decimals: decimalsOf(grant.balances, grant.actionCaps),
    };
}

function* listOpen(state: VerifyState): Generator<OpenAuthorization, void, void> {
  for (const { eventId, seq, toolName } of openAuthorizations(state))
    yield { event_id: eventId, seq, tool_name: toolName };
}

function* listApprovals({ links }: VerifyState): Generator<GivenApproval, void, void> {
  for (const { place, principalId, grant, toolName, signers, usedBy } of links.approvals.values())
    yield {
      event_id: place.eventId,
      seq: place.seq,
      principal_id: principalId,
      grant_event_id: (links.grants.at(grant) as Grant).place.eventId,
      tool_name: toolName,
      signers: [...signers],
      used_by: usedBy ?? null,
    };
}

function* listRevocations({ links }: VerifyState): Generator<GivenRevocation, void, void> {
  for (const { place, principalId, grantId, effect, inFlight, signers } of links.revocations)
    yield {
      event_id: place.eventId,
      seq: place.seq,
      principal_id: principalId,
      grant_event_id: grantId,
      effect,
      ...(inFlight === undefined ? {} : { in_flight: inFlight }),
      signers: [...signers],
    };
}

function countOf(values: Iterable<unknown>): number {
  let count = 0;
  for (const value of values) if (value !== undefined) count += 1;
  return count;
}

function openStarts(state: VerifyState): Pick<ReportJson, 'open_starts'> {
  const starts = listOpenStarts(state).map(({ eventId, seq, authorizationId, toolName, startedAt }) => ({
    event_id: eventId,
    seq,
    auth_event_id: authorizationId,
    tool_name: toolName,
    started_at: startedAt,
  }));
  return starts.length === 0 ? {} : { open_starts: starts };
}

function toContinuation({ state, ending }: VerificationResult): { continues?: ContinuationJson } {
  const continues = state.genesis?.continues;
  if (continues === undefined) return {};
  return {
    continues: {
      ledger_id: toDigestText(continues.ledger_id.b64),
      tree_size: continues.tree_size,
      root: toDigestText(continues.root.b64),
      ...(ending.predecessor === undefined ? {} : { relation: ending.predecessor }),
    },
  };
}

/** A finding in the form of SPEC §8, with its message. */
export function toFindingJson(finding: Finding): FindingJson {
  const { at, context } = finding;
  const { principalId, toolName, eventType, amounts } = context;
  return {
    code: finding.code,
    severity: finding.severity,
    class: finding.class,
    at: {
      file: at.file,
      line: at.line,
      byte_offset: at.byteOffset,
      byte_length: at.byteLength,
      ...(at.pointer === undefined ? {} : { pointer: at.pointer }),
    },
    seq: finding.seq ?? null,
    event_id: finding.eventId ?? null,
    ...(principalId !== undefined && isPrincipalId(principalId) ? { principal_id: principalId } : {}),
    ...(toolName !== undefined && isToolName(toolName) ? { tool_name: toolName } : {}),
    ...(eventType === undefined ? {} : { event_type: eventType }),
    ...(amounts === undefined ? {} : { amounts }),
    ...(finding.expected === undefined ? {} : { expected: finding.expected }),
    ...(finding.actual === undefined ? {} : { actual: finding.actual }),
    ...(finding.related === undefined
      ? {}
      : {
          related: finding.related.map(({ file, line, seq, eventId }) => ({
            file,
            line,
            seq,
            event_id: eventId,
          })),
        }),
    ...(finding.lineDigest === undefined ? {} : { line_digest: finding.lineDigest }),
    ...(finding.folded === undefined ? {} : { folded: finding.folded }),
    message: describeFinding(finding),
  };
}

function named(state: VerifyState, keyid: string): { readonly name?: string } {
  const name = nameOfKey(state, keyid);
  return name === undefined ? {} : { name };
}

function toRevokedKeyJson({ keyid, revokedAtSeq, records, restsOn }: RevokedKey): RevokedKeyJson {
  return {
    keyid,
    revoked_at_seq: revokedAtSeq,
    records,
    ...(restsOn === undefined ? {} : { rests_on: restsOn }),
  };
}

function toCheckpointSignerJson(tally: CheckpointTally): CheckpointSignerJson {
  const { keyid, name, role, isPinned, treeSize } = tally;
  const isDeclared = role === 'witness' && !isPinned;
  return { keyid, name, role, ...(isDeclared ? { declared: true } : {}), tree_size: treeSize };
}

function toAnchorJson({ name, note, relation, signatures }: AnchorOutcome): AnchorJson {
  return {
    path: name,
    tree_size: note.checkpoint.size,
    relation,
    signed_by: listSigners(signatures.signers).map(({ keyid }) => keyid),
  };
}

function verdictOf({ state, hasInvalid, hasViolation }: VerificationResult): Report['verdict'] {
  if (hasInvalid) return 'invalid';
  if (hasViolation) return 'violation';
  return state.records === 0 ? 'undecided' : 'ok';
}

/** Verdicts with those that the end changed. */
function countVerdicts({ state, ending }: VerificationResult): Report['counts']['by_verdict'] {
  const counts = { ...state.countsByVerdict };
  for (const verdict of ['ok', 'denied', 'violation'] as const) {
    counts[verdict] -= ending.uncovered[verdict];
    counts.invalid += ending.uncovered[verdict];
  }
  counts.ok -= ending.violating;
  counts.violation += ending.violating;
  return counts;
}
