/**
 * Statements by proposal: one case each, with what was decided, what was done, and what each of several sources adds or repeats.
 * Precedence, for each thing that is said: a recorded request, a file of outcomes, a replay pack's own members, the adapter's log, the
 * server's log; within one of them the first.
 */

import { addTo, objectAt, textAt, valueAt } from '../shared/values.js';
import type { SourceObject } from '../../base/json/source-json.js';
import { decisionIn, failModeIn, SOURCES, type Statement } from './reader.js';
import { type Decision, type FailMode, isFailMode, type Kind } from './vocabulary.js';

/** A decision about a proposal, from all that states it. */
export interface Decided {
  /** Undefined where nothing states one. */
  readonly id: string | undefined;
  readonly claimId: string;
  readonly decision: Decision;
  /** The statement that takes precedence. */
  readonly primary: Statement;
  readonly all: readonly Statement[];
}

export interface Applied {
  readonly claimId: string;
  readonly mode: FailMode;
  readonly primary: Statement;
}

export interface Done {
  readonly claimId: string;
  /** What the claim rests on: its outcome, else the action. */
  readonly primary: Statement;
  readonly outcome: Statement | undefined;
  readonly action: Statement | undefined;
  readonly all: readonly Statement[];
}

/** All that is said about one proposal. */
export interface Case {
  readonly id: string;
  readonly statements: readonly Statement[];
  readonly byStream: ReadonlyMap<string, readonly Statement[]>;
  /** The statement about what is proposed that takes precedence. */
  readonly proposal: Statement | undefined;
  /** By id, the one that takes precedence first. */
  readonly decisions: readonly Decided[];
  readonly failMode: Applied | undefined;
  /** A rejection, a revocation, an expiry: the one of each that takes precedence. */
  readonly endings: readonly Statement[];
  readonly done: readonly Done[];
}

const PERMITS: readonly Decision[] = ['ALLOW', 'CONSTRAIN', 'AUDIT'];

/** Whether the decision lets the action be executed. */
export function permits(decision: Decision): boolean {
  return PERMITS.includes(decision);
}

/** The cases of all proposals, in the order in which they are first spoken of. */
export function casesOf(statements: readonly Statement[]): readonly Case[] {
  const byProposal = new Map<string, Statement[]>();
  for (const statement of statements) {
    const { proposalId } = statement;
    if (proposalId === undefined) continue;
    addTo(byProposal, proposalId, statement);
  }
  return [...byProposal].map(([id, list]) => caseOf(id, list));
}

/** Those of a kind, by precedence. */
export function ranked(statements: readonly Statement[], ...kinds: readonly Kind[]): Statement[] {
  return byPrecedence(statements.filter(({ kind }) => kinds.includes(kind)));
}

/** By the source that each file has of it first, so that a file that continues changes nothing of what comes first in it. */
export function byPrecedence(statements: readonly Statement[]): Statement[] {
  const inFiles = [...statements].sort((a, b) => a.index - b.index);
  const ranks = new Map<string, number>();
  for (const each of inFiles)
    if (!ranks.has(each.at.file)) ranks.set(each.at.file, SOURCES.indexOf(each.source));
  return inFiles.sort((a, b) => ranks.get(a.at.file)! - ranks.get(b.at.file)! || a.index - b.index);
}

function caseOf(id: string, statements: readonly Statement[]): Case {
  const byStream = new Map<string, Statement[]>();
  for (const statement of statements) addTo(byStream, statement.stream, statement);
  const decisions = decisionsOf(id, statements);
  const failMode = failModeOf(id, statements);
  return {
    id,
    statements,
    byStream,
    proposal: ranked(statements, 'proposal')[0],
    decisions,
    failMode,
    endings: (['rejected', 'revoked', 'expired'] as const).flatMap((kind) =>
      ranked(statements, kind).slice(0, 1),
    ),
    done: doneOf(id, statements, decisions, failMode),
  };
}

function decisionsOf(proposalId: string, statements: readonly Statement[]): readonly Decided[] {
  const byId = new Map<string | undefined, Statement[]>();
  for (const statement of ranked(statements, 'decision')) addTo(byId, statement.decisionId, statement);
  return [...byId].map(([id, all]) => ({
    id,
    // The server's own ids are unique; those of others need not be.
    claimId: id === undefined ? `decision:proposal:${proposalId}` : `decision:${id}`,
    decision: decisionIn(all[0]!.body) as Decision,
    primary: all[0]!,
    all,
  }));
}

function failModeOf(id: string, statements: readonly Statement[]): Applied | undefined {
  for (const primary of ranked(statements, 'fail-mode')) {
    const mode = failModeIn(primary.body);
    if (isFailMode(mode)) return { claimId: `failmode:${id}`, mode, primary };
  }
  return undefined;
}

/** Whether it was said by the time of another statement: before it in its file, in its item, or in another file. */
function isKnownWith(last: Statement, { at, index }: Statement): boolean {
  return at.file !== last.at.file || index <= last.index || at.line === last.at.line;
}

/** What its file said by then, and what others say: a file that continues, such as with a replay, leaves what was said as it is. */
export function knownWith(last: Statement, statements: readonly Statement[]): readonly Statement[] {
  return statements.filter((each) => isKnownWith(last, each));
}

/** What an outcome says about whether anything was executed. */
export function saysExecuted(
  outcome: Statement,
  of: Pick<Case, 'statements' | 'decisions' | 'failMode'>,
): boolean | undefined {
  const executed = valueAt(outcome.body, 'executed');
  if (typeof executed === 'boolean') return executed;
  if (valueAt(outcome.body, 'success') === true) return true;
  const statements = knownWith(outcome, of.statements);
  if (statements.some(({ kind, body }) => kind === 'executing' && body.get('executed') === false))
    return false;
  if (statements.some(({ kind }) => kind === 'constraint-failed' || kind === 'blocked')) return undefined;
  const decisions = of.decisions.filter(({ primary }) => isKnownWith(outcome, primary));
  const decided = decisions.find(({ id }) => id === outcome.decisionId) ?? decisions[0];
  const isPermitted = decided === undefined ? of.failMode?.mode === 'fail_open' : permits(decided.decision);
  // An outcome is reported of what was executed.
  return isPermitted ? true : undefined;
}

/** Whether an event of an action says that it was executed: not where it says otherwise, or where its constraint then failed. */
export function isExecuted({ body, stream, index }: Statement, statements: readonly Statement[]): boolean {
  return body.get('executed') !== false && (lastFailures(statements).get(stream) ?? -1) < index;
}

const FAILURES = new WeakMap<readonly Statement[], ReadonlyMap<string, number>>();

/** By stream, the last time that a constraint failed. */
function lastFailures(statements: readonly Statement[]): ReadonlyMap<string, number> {
  const known = FAILURES.get(statements);
  if (known !== undefined) return known;
  const failures = statements.filter(({ kind }) => kind === 'constraint-failed');
  const last = new Map(failures.map(({ stream, index }) => [stream, index]));
  FAILURES.set(statements, last);
  return last;
}

/** Whether an outcome says how it ended, what was used, or what was touched. */
function saysHow({ body }: Statement): boolean {
  return [
    'success',
    'executed',
    'duration_ms',
    'actual_cost',
    'executed_at',
    'side_effects',
    'quarantined',
  ].some((name) => body.has(name));
}

function doneOf(
  id: string,
  statements: readonly Statement[],
  decisions: readonly Decided[],
  failMode: Applied | undefined,
): readonly Done[] {
  const outcomes = ranked(statements, 'outcome').filter(
    (each) => saysExecuted(each, { statements, decisions, failMode }) === true,
  );
  const actions = ranked(statements, 'executing').filter((each) => isExecuted(each, statements));
  const enacted = ranked(statements, 'enacted');
  const [outcome] = outcomes;
  const before = actions.find(({ stream, index }) => stream === outcome?.stream && index < outcome.index);
  // An outcome that says no more than the action does adds nothing to it.
  const isTold = outcome !== undefined && (before === undefined || saysHow(outcome));
  const primary = (isTold ? outcome : before) ?? actions[0] ?? enacted[0];
  if (primary === undefined) return [];
  const second = actions.filter((action) => isSecond(action, actions));
  const all = [...outcomes, ...actions.filter((action) => !second.includes(action)), ...enacted];
  const first: Done = {
    claimId: `execution:${id}`,
    primary,
    outcome,
    action: actions[0],
    all,
  };
  // Those of another source repeat the second of the first source.
  const own = second.filter(({ stream }) => stream === second[0]?.stream);
  return [
    first,
    ...own.map((action, i) => ({
      claimId: `execution:${id}/${i + 2}`,
      primary: action,
      outcome: undefined,
      action,
      all: [action],
    })),
  ];
}

/** Whether the SDK's adapter wrote an action because it could not report what it had done, or could not ask: it does not act again. */
export function isByFailMode({ body }: Statement): boolean {
  return body.get('via_fail_mode') === true;
}

/** Whether the log says a second time that the action was executed, in another line. */
function isSecond(action: Statement, actions: readonly Statement[]): boolean {
  return actions.some(
    (other) =>
      other.stream === action.stream &&
      other.index < action.index &&
      other.type === action.type &&
      // The draft's own code says so once more when it allows what no source decided.
      !other.body.has('note') &&
      !isByFailMode(action) &&
      !isSameText(other, action),
  );
}

/** Whether two items are the same, byte for byte. */
export function isSameText(a: Statement, b: Statement): boolean {
  const [x, y] = [a.item.bytes, b.item.bytes];
  return x !== y && x.length === y.length && x.every((byte, i) => byte === y[i]);
}

/** What authorizes what was done: the decision that it names; where it names none, the first; without any, a fail mode or an end. */
export function authorityOf(of: Case, done: Done): Decided | Applied | Statement | undefined {
  const named = [done.action, done.outcome, ...done.all].map((each) => each?.decisionId);
  for (const id of named) {
    const decided = id === undefined ? undefined : of.decisions.find((each) => each.id === id);
    if (decided !== undefined) return decided;
  }
  if (of.failMode !== undefined && (of.decisions.length === 0 || named.some(isFailModeId)))
    return of.failMode;
  if (of.decisions.length === 0) return of.endings[0];
  return named.every((id) => id === undefined)
    ? of.decisions[0]
    : of.decisions.find(({ id }) => id === undefined);
}

/** Ids that adapters make up for what no decision of the server stands behind. */
export function isFailModeId(id: string | undefined): boolean {
  return id !== undefined && /^(?:failmode-|fail-mode$|dec-fail-)/.test(id);
}

/** The id that the draft's adapter gives a block after a failed enforcement. */
export function isFallbackId(id: string | undefined): boolean {
  return id?.startsWith('fallback-') === true;
}

/** The constraint under which the action may run: of the decision, else as the action's event repeats it. */
export interface Constraint {
  readonly type: string | undefined;
  readonly params: SourceObject | undefined;
  /** The draft's form: the params that replace the proposed ones. */
  readonly modified: SourceObject | undefined;
  readonly disallowed: readonly string[];
}

/** The constraint that a decision states. */
export function constraintIn(body: SourceObject): Constraint | undefined {
  const constraint = objectAt(body, 'constraint');
  if (constraint === undefined) return undefined;
  const disallowed = valueAt(constraint, 'disallowed_params');
  return {
    type: textAt(constraint, 'type'),
    params: objectAt(constraint, 'params'),
    modified: objectAt(constraint, 'modified_params'),
    disallowed: Array.isArray(disallowed)
      ? (disallowed as unknown[]).filter((name): name is string => typeof name === 'string')
      : [],
  };
}

/** The constraint that an event of an action states. */
export function constraintOfAction({ type, body }: Statement): Constraint | undefined {
  if (type !== 'action_constrained' || textAt(body, 'constraint_type') === undefined) return undefined;
  return {
    type: textAt(body, 'constraint_type'),
    params: objectAt(body, 'constraint_params'),
    modified: undefined,
    disallowed: [],
  };
}
