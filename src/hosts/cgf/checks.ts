/** Rules CGF-1 to CGF-13, checked against the cases sequentially. CGF-11 is held where items are read, CGF-14 and CGF-15 in `policy-checks.ts`. */

import type { SourceObject, SourceValue } from '../../base/json/source-json.js';
import { compareQuantities, formatQuantity } from '../../base/value/quantity.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { PYTHON_FORMS, type PythonForm, pythonJson, pythonSha256 } from '../shared/forms/python.js';
import { type FindingDetails, findingOf, type Weight } from '../shared/findings.js';
import type { HostFinding, HostPlace } from '../shared/host.js';
import { listAt, numberAt, objectAt, textAt, valueAt } from '../shared/values.js';
import { costOf, estimateOf, useOf } from './amounts.js';
import {
  type Case,
  constraintIn,
  constraintOfAction,
  type Decided,
  isByFailMode,
  isExecuted,
  isFailModeId,
  isFallbackId,
  isSameText,
  permits,
  ranked,
  saysExecuted,
} from './cases.js';
import { type Code, finding } from './rules.js';
import { isSameInPython, isSameNumber } from './policy.js';
import { decisionIn, failModeIn, type Statement, type Statements } from './reader.js';
import { type Decision, FAIL_MODES, type FailMode, isFailMode, RISK_TIERS } from './vocabulary.js';

/** What cases are checked against besides themselves. */
export interface CheckContext {
  readonly tables: Statements['tables'];
  /** Of the user, for adapters whose registration is not in the files. */
  readonly failModes: ReadonlyMap<string, string> | undefined;
  /** The last statement of each stream. */
  readonly ends: ReadonlyMap<string, number>;
}

/** What the draft writes between the start of an enforcement and its end. */
const IN_ENFORCEMENT: readonly Statement['kind'][] = [
  'executing',
  'blocked',
  'deferred',
  'constraint-applied',
];

const ACTIONS = ['executing', 'blocked', 'deferred'] as const;

/** Everything that is wrong with a case. */
export function checkCase(of: Case, context: CheckContext): readonly HostFinding[] {
  const checker = new CaseChecker(of, context);
  checker.run();
  return checker.findings;
}

/** What is wrong with what is tied to no proposal. */
export function checkUnlinked(
  statements: readonly Statement[],
  context: CheckContext,
): readonly HostFinding[] {
  const findings: HostFinding[] = [];
  for (const statement of statements) {
    const { kind, body, proposalId, at } = statement;
    if (kind !== 'fail-mode' || proposalId !== undefined || textAt(body, 'stage') === 'register') continue;
    findings.push(finding('FAIL_MODE_UNLINKED', at, { about: statement.adapterId }));
    const applied = pluginFailMode(statement, context);
    if (applied !== undefined) findings.push(applied);
  }
  return findings;
}

/** The plugin names no proposal, but the tier, and whether it allowed. */
function pluginFailMode(statement: Statement, context: CheckContext): HostFinding | undefined {
  const { body, at, adapterId } = statement;
  const allowed = valueAt(body, 'fail_mode_allow');
  const action = { evaluate_tool_call: 'tool_call', evaluate_memory_write: 'memory_write' }[
    textAt(body, 'stage') ?? ''
  ];
  const tier = textAt(body, 'risk_tier');
  if (typeof allowed !== 'boolean' || action === undefined || tier === undefined) return undefined;
  const expected = expectedMode(statement, action, tier, context);
  if (expected === undefined || (expected.mode === 'fail_open') === allowed) return undefined;
  if (!allowed && !expected.isKnown) return undefined;
  return finding('FAIL_MODE_NOT_OF_TABLE', at, {
    about: adapterId,
    expected: `${expected.mode} for ${action}, ${tier}`,
    actual: allowed ? 'allowed' : 'not allowed',
  });
}

/** The mode of the table that the adapter was given, else the user's, else the default. */
function expectedMode(
  { adapterId }: Statement,
  action: string,
  tier: string,
  { tables, failModes }: CheckContext,
): { readonly mode: string; readonly isKnown: boolean } | undefined {
  const table = tables.get(adapterId ?? '')?.modes ?? failModes;
  const mode = table?.get(`${action}:${tier}`);
  if (mode !== undefined) return { mode, isKnown: true };
  if (tier === 'high') return { mode: 'fail_closed', isKnown: false };
  if (tier === 'medium') return { mode: action === 'memory_write' ? 'fail_closed' : 'defer', isKnown: false };
  return tier === 'low' ? { mode: 'fail_open', isKnown: false } : undefined;
}

class CaseChecker {
  readonly #case: Case;
  readonly #context: CheckContext;
  readonly #found = new Map<string, { found: HostFinding; related: HostPlace[] }>();

  constructor(of: Case, context: CheckContext) {
    this.#case = of;
    this.#context = context;
  }

  get findings(): readonly HostFinding[] {
    return [...this.#found.values()].map(({ found, related }) =>
      related.length === 0 ? found : { ...found, related },
    );
  }

  run(): void {
    this.#actions();
    this.#executions();
    this.#decisions();
    this.#completeness();
    this.#outcomes();
    this.#enforcement();
    this.#constraintFailures();
    this.#failModes();
    this.#audit();
    this.#constraints();
    this.#params();
    this.#times();
    this.#costs();
  }

  /** One fact is one finding, also where several logs or lines tell it. */
  #add(found: HostFinding, of?: string): void {
    const key = [found.rule, found.code, of].join('\0');
    const known = this.#found.get(key);
    if (known === undefined) this.#found.set(key, { found: { ...found, about: this.#case.id }, related: [] });
    else if (known.related.length < 16) known.related.push(found.at);
  }

  /** @param of - Tells apart findings of one code that are not the same fact. */
  #find(code: Code, at: HostPlace, details?: FindingDetails, of?: string): void {
    this.#add(finding(code, at, details), of);
  }

  #of(...kinds: readonly Statement['kind'][]): Statement[] {
    return this.#case.statements.filter(({ kind }) => kinds.includes(kind));
  }

  #decisionOf(statement: Statement): Decided | undefined {
    const { decisions } = this.#case;
    const named = decisions.find(({ id }) => id === statement.decisionId);
    return named ?? (statement.decisionId === undefined ? decisions[0] : undefined);
  }

  /** CGF-1 */
  #actions(): void {
    for (const action of this.#of(...ACTIONS)) {
      const decided = this.#decisionOf(action);
      if (decided === undefined) this.#withoutDecision(action);
      else {
        this.#order(action, decided);
        this.#permission(action, decided);
      }
    }
    for (const applied of this.#of('constraint-applied')) {
      const decided = this.#decisionOf(applied);
      if (decided !== undefined && decided.decision !== 'CONSTRAIN')
        this.#notOfDecision(applied, decided.decision);
    }
  }

  #withoutDecision(action: Statement): void {
    const { decisions, failMode } = this.#case;
    const { decisionId, at } = action;
    const [first] = decisions;
    if (first === undefined) {
      // What an end without a decision, or a fail mode, makes of it is said by CGF-2 and CGF-7.
      if (this.#of('rejected', 'fail-mode').length > 0) return;
      this.#find('DECISION_MISSING', at, { actual: `${action.type}, and no decision` });
      return;
    }
    if (isFallbackId(decisionId) && action.kind === 'blocked' && this.#hasFailed()) return;
    if (failMode !== undefined && isFailModeId(decisionId)) return;
    this.#find('DECISION_MISMATCH', at, { expected: first.id ?? 'no decision_id', actual: decisionId });
  }

  #order(action: Statement, decided: Decided): void {
    const own = decided.all.filter(({ stream }) => stream === action.stream);
    if (own.length === 0 || own.some(({ index }) => index < action.index)) return;
    this.#find('ACTION_BEFORE_DECISION', action.at, { actual: `${action.type} before the decision` });
  }

  #permission(action: Statement, { decision }: Decided): void {
    const { kind, type } = action;
    let isRight: boolean;
    // Executing what is not permitted is CGF-2.
    if (kind === 'executing' && !permits(decision)) return;
    if (type === 'action_constrained') isRight = decision === 'CONSTRAIN';
    else if (type === 'action_audited') isRight = decision === 'AUDIT';
    else if (type === 'action_blocked' || type === 'action_deferred')
      isRight = this.#isStopRight(action, decision);
    else isRight = true;
    if (isRight) return;
    this.#notOfDecision(action, decision);
  }

  #isStopRight(action: Statement, decision: Decision): boolean {
    if (action.kind === 'executing') return false;
    // The SDK's adapter applies its fail mode too where it is the report that fails.
    if (isByFailMode(action) && this.#of('fail-mode').some(({ index }) => index < action.index)) return true;
    if (action.kind === 'blocked') return decision === 'BLOCK' || this.#hasFailed();
    return decision === 'DEFER' || (decision === 'AUDIT' && this.#hasFailed());
  }

  #notOfDecision({ at, type }: Statement, decision: Decision): void {
    this.#find('ACTION_NOT_OF_DECISION', at, { expected: `what ${decision} permits`, actual: type });
  }

  /** Whether an enforcement failed, so that what was permitted may be blocked. */
  #hasFailed(): boolean {
    return this.#case.statements.some(
      ({ kind, body }) =>
        kind === 'constraint-failed' ||
        (kind === 'finished' && (body.has('error') || valueAt(body, 'success') === false)) ||
        (kind === 'audit-required' && valueAt(body, 'audit_failed') === true),
    );
  }

  /** CGF-2 */
  #executions(): void {
    const { decisions } = this.#case;
    for (const statement of this.#of('executing', 'outcome', 'enacted', 'side-effect')) {
      if (!this.#isExecution(statement)) continue;
      const decided = this.#decisionOf(statement) ?? decisions[0];
      const end = this.#of('expired', 'revoked', 'rejected').find(
        (each) => each.stream === statement.stream && each.index < statement.index,
      );
      const after =
        decided !== undefined && !permits(decided.decision)
          ? decided.decision
          : { expired: 'EXPIRY', revoked: 'REVOCATION', rejected: 'REJECTION' }[end?.kind as 'expired'];
      if (after === undefined) continue;
      const details = { expected: 'no execution', actual: statement.type };
      this.#add(findingOf('CGF-2', 'violation', `EXECUTED_AFTER_${after}`, statement.at, details));
    }
  }

  #isExecution(statement: Statement): boolean {
    if (statement.kind === 'executing') return isExecuted(statement, this.#case.statements);
    return statement.kind !== 'outcome' || saysExecuted(statement, this.#case) === true;
  }

  /** CGF-3 */
  #decisions(): void {
    const { decisions } = this.#case;
    const [first] = decisions;
    const conflict = (at: HostPlace, expected: string, actual: string, code: Code = 'DECISION_CONFLICT') =>
      this.#find(code, at, { expected, actual, rule: 'CGF-3' });
    for (const { primary, id, decision } of decisions.slice(1))
      conflict(primary.at, `${first!.decision} ${first!.id ?? ''}`.trim(), `${decision} ${id ?? ''}`.trim());
    const [rejected] = this.#of('rejected');
    if (first !== undefined && rejected !== undefined)
      conflict(rejected.at, `${first.decision} or a rejection`, 'both');
    for (const { all, primary } of decisions) {
      for (const [i, other] of all.entries()) {
        const before = all.slice(0, i).find(({ stream }) => stream === other.stream);
        const difference = differenceOf(primary.body, other.body);
        if (difference !== undefined && before !== undefined) conflict(other.at, ...difference);
        else if (difference !== undefined) conflict(other.at, ...difference, 'SOURCES_DISAGREE');
        else if (before !== undefined) this.#find('DECISION_REPEATED', other.at);
      }
    }
  }

  /** CGF-4, what is missing or stands there twice */
  #completeness(): void {
    const { decisions, done, statements } = this.#case;
    const missing = (code: Code, at: HostPlace, expected: string, weight: Weight = 'warning'): void =>
      this.#find(code, at, { expected, weight });
    const proposals = this.#of('proposal');
    const ends = this.#of('expired', 'revoked', 'rejected', 'fail-mode');
    const actions = this.#of('executing', 'blocked', 'deferred', 'constraint-failed');
    const outcomes = this.#of('outcome');
    const events = statements.filter(({ vocabulary }) => vocabulary !== undefined && vocabulary !== 'plugin');
    if (proposals.length === 0) {
      const [first] = events;
      if (first !== undefined) missing('PROPOSAL_MISSING', first.at, 'proposal_received');
    } else if (decisions.length + ends.length + actions.length + outcomes.length === 0)
      missing('PROPOSAL_OPEN', proposals[0]!.at, 'a decision');
    const [decided] = decisions;
    if (decided !== undefined && actions.length + ends.length === 0 && decided.decision !== 'AUDIT') {
      const logged = decided.all.find(
        ({ vocabulary }) => vocabulary !== undefined && vocabulary !== 'plugin',
      );
      const isTold = permits(decided.decision) ? outcomes.length === 0 : logged !== undefined;
      if (isTold && outcomes.length === 0)
        missing('ACTION_MISSING', (logged ?? decided.primary).at, 'an event of what was done');
    }
    for (const outcome of outcomes) {
      const { vocabulary, stream } = outcome;
      if (vocabulary === undefined || vocabulary === 'plugin') continue;
      const isOwn = (each: Statement): boolean => each.stream === stream;
      if (!decisions.some(({ all }) => all.some(isOwn)) || actions.some(isOwn)) continue;
      missing('ACTION_MISSING', outcome.at, 'an event of the action before its outcome', 'invalid');
    }
    // What was not to be done has no outcome due: CGF-2 reports it.
    const isDenied = decided !== undefined && !permits(decided.decision);
    if (done.length > 0 && !isDenied && outcomes.length === 0 && ends.length === 0)
      missing('OUTCOME_MISSING', done[0]!.primary.at, 'an outcome');
    this.#repeatedActions();
    for (const own of this.#case.byStream.values()) this.#sequence(own);
  }

  /** CGF-4: what has to come before what, and stands there once. */
  #sequence(own: readonly Statement[]): void {
    const events = own.filter(({ vocabulary }) => vocabulary !== undefined);
    const once = (kind: Statement['kind'], code: Code): Statement | undefined => {
      const [only, again] = events.filter((each) => each.kind === kind);
      if (only !== undefined && again !== undefined)
        this.#find(code, again.at, { weight: isSameText(only, again) ? 'warning' : 'invalid' });
      return only;
    };
    const proposal = once('proposal', 'PROPOSAL_REPEATED');
    const before = (code: Code, first: Statement | undefined, then: Statement | undefined): void => {
      if (first === undefined || then === undefined || then.index < first.index) return;
      this.#find(code, first.at, { expected: `${then.type} before it` });
    };
    const first = (...kinds: readonly Statement['kind'][]): Statement | undefined =>
      events.find(({ kind }) => kinds.includes(kind));
    before('DECISION_BEFORE_PROPOSAL', first('decision', 'rejected'), proposal);
    before('ENDING_BEFORE_PROPOSAL', first('enacted', 'expired', 'revoked'), proposal);
    before('OUTCOME_BEFORE_ACTION', first('outcome'), first('executing', 'blocked'));
    before('SIDE_EFFECT_BEFORE_OUTCOME', first('side-effect'), first('outcome'));
    once('enacted', 'ENACTED_REPEATED');
  }

  #repeatedActions(): void {
    for (const own of this.#case.byStream.values()) {
      const actions = own.filter(
        ({ kind }) => kind === 'executing' || kind === 'blocked' || kind === 'deferred',
      );
      for (const [i, action] of actions.entries()) {
        const before = actions.slice(0, i).find(({ kind }) => kind === action.kind);
        if (before === undefined || before.body.has('note') || isByFailMode(action)) continue;
        const isSame = isSameText(before, action) || before.type !== action.type;
        this.#find('ACTION_REPEATED', action.at, {
          actual: isSame ? `${action.type} too` : `${action.type} twice`,
          weight: isSame ? 'warning' : 'invalid',
        });
      }
    }
  }

  /** CGF-4 and CGF-10, what outcomes say */
  #outcomes(): void {
    const outcomes = ranked(this.#case.statements, 'outcome');
    const action = this.#of('executing').find((each) => isExecuted(each, this.#case.statements));
    for (const [i, outcome] of outcomes.entries()) {
      this.#outcomeDecision(outcome);
      const first = outcomes[0]!;
      if (i > 0) {
        const isOwn = outcomes.slice(0, i).some(({ stream }) => stream === outcome.stream);
        const difference = differenceOfOutcomes(first.body, outcome.body);
        if (difference !== undefined || isOwn)
          this.#find(
            difference === undefined ? 'OUTCOME_REPEATED' : isOwn ? 'OUTCOME_CONFLICT' : 'SOURCES_DISAGREE',
            outcome.at,
            { expected: difference?.[0] ?? 'one outcome', actual: difference?.[1] ?? 'the same once more' },
          );
      }
      if (valueAt(outcome.body, 'executed') === false && action !== undefined)
        this.#find('OUTCOME_CONTRADICTS_ACTION', outcome.at, { expected: action.type });
    }
  }

  #outcomeDecision(outcome: Statement): void {
    const { decisions, failMode } = this.#case;
    const { decisionId, at, adapterId } = outcome;
    const about = (code: Code, expected: string | undefined, actual: string | undefined): void =>
      this.#find(code, at, { expected, actual });
    const [first] = decisions;
    const decided = decisions.find(({ id }) => id === decisionId);
    if (first === undefined) {
      // Where an event of an action has none before it, CGF-1 says so.
      if (failMode === undefined && this.#of('fail-mode', 'rejected', ...ACTIONS).length === 0)
        about('OUTCOME_WITHOUT_DECISION', 'a decision about the proposal', decisionId ?? 'none');
    } else if (decided === undefined && decisionId !== undefined && !isFallbackId(decisionId)) {
      if (failMode === undefined || !isFailModeId(decisionId))
        about('OUTCOME_DECISION_MISMATCH', first.id ?? 'none', decisionId);
    }
    const adapter = (decided ?? first)?.primary.adapterId;
    if (adapter !== undefined && adapterId !== undefined && adapter !== adapterId)
      about('ADAPTER_MISMATCH', adapter, adapterId);
  }

  /** CGF-5: the draft alone has these events. */
  #enforcement(): void {
    for (const [stream, own] of this.#case.byStream) {
      const started = own.filter(({ kind }) => kind === 'started');
      const finished = own.filter(({ kind }) => kind === 'finished');
      const hasFailed = own.some(({ kind }) => kind === 'constraint-failed');
      for (const start of [...started, ...finished]) {
        const stated = textAt(start.body, 'decision');
        const decided = this.#decisionOf(start);
        if (stated !== undefined && decided !== undefined && stated !== decided.decision)
          this.#find('ENFORCEMENT_MISMATCH', start.at, { expected: decided.decision, actual: stated });
      }
      const unpaired = (statement: Statement, expected: string, isInvalid: boolean): void =>
        this.#find(isInvalid ? 'ENFORCEMENT_UNPAIRED' : 'ENFORCEMENT_OPEN', statement.at, { expected });
      if (started.length > finished.length && !hasFailed) {
        const last = own.at(-1)!;
        const isCut =
          (this.#context.ends.get(stream) ?? 0) <= last.index &&
          !own.some(({ kind }) => kind === 'outcome' || kind === 'outcome-reported');
        unpaired(started[finished.length]!, 'enforcement_finished', !isCut);
      } else if (finished.length > started.length)
        unpaired(finished[started.length]!, 'enforcement_started', true);
      this.#afterFailure(own, finished);
      if (started.length === finished.length || hasFailed)
        this.#enforcementOrder(own, started[0], finished[0]);
    }
  }

  /** CGF-5: decision, start, what is done, finish, report. What is done after a failure is {@link #afterFailure}'s. */
  #enforcementOrder(
    own: readonly Statement[],
    started: Statement | undefined,
    finished: Statement | undefined,
  ): void {
    if (started === undefined) return;
    const first = (...kinds: readonly Statement['kind'][]): Statement | undefined =>
      own.find(({ kind }) => kinds.includes(kind));
    const done = own.filter(({ kind }) => IN_ENFORCEMENT.includes(kind));
    const decision = first('decision');
    const isDenied = decision !== undefined && !permits(decisionIn(decision.body) as Decision);
    const isDoneAfter =
      !isDenied && finished?.body.has('error') === false && done.some(({ index }) => index > finished.index);
    const outcome = first('outcome', 'outcome-reported');
    const isReportedBefore =
      outcome !== undefined &&
      finished !== undefined &&
      outcome.index < finished.index &&
      // Before the action itself is CGF-4's.
      done.some(({ index }) => index < outcome.index);
    const [at, expected] =
      decision !== undefined && started.index < decision.index
        ? [started, 'the decision before it']
        : finished !== undefined && finished.index < started.index
          ? [finished, 'enforcement_started before it']
          : done.some(({ index }) => index < started.index)
            ? [started, 'it before what is done']
            : isDoneAfter
              ? [finished, 'it after what is done']
              : isReportedBefore
                ? [outcome, 'enforcement_finished before it']
                : [undefined, ''];
    if (at === undefined) return;
    this.#find('ENFORCEMENT_ORDER', at.at, { expected, actual: `${at.type} out of order` });
  }

  #afterFailure(own: readonly Statement[], finished: readonly Statement[]): void {
    const failure = finished.find(({ body }) => body.has('error'));
    if (failure === undefined) return;
    const after = own.filter(({ index }) => index > failure.index);
    const execution = after.find(
      (each) => (each.kind === 'executing' || each.kind === 'outcome') && this.#isExecution(each),
    );
    if (execution !== undefined)
      this.#find('EXECUTED_AFTER_FAILURE', execution.at, { actual: execution.type });
    else if (!own.some(({ kind }) => kind === 'blocked' || kind === 'deferred'))
      this.#find('BLOCK_MISSING', failure.at);
  }

  /** Whether a log says something after the last that it says of this case. */
  #goesOn(stream: string): boolean {
    const last = this.#case.byStream.get(stream)?.at(-1);
    return last !== undefined && (this.#context.ends.get(stream) ?? 0) > last.index;
  }

  /** CGF-6 */
  #constraintFailures(): void {
    const failures = this.#of('constraint-failed');
    const [first] = failures;
    if (first === undefined) return;
    const execution = this.#of('executing', 'outcome').find(
      (each) =>
        this.#isExecution(each) &&
        (each.stream === first.stream ? each.index > first.index : each.body.get('executed') === true),
    );
    if (execution !== undefined)
      this.#find('EXECUTED_AFTER_CONSTRAINT_FAILED', execution.at, { actual: execution.type });
    else if (this.#of('blocked').length === 0)
      this.#find('BLOCK_MISSING', first.at, {
        rule: 'CGF-6',
        weight: first.vocabulary === 'draft' && this.#goesOn(first.stream) ? 'invalid' : 'warning',
      });
  }

  /** CGF-7 */
  #failModes(): void {
    for (const statement of this.#of('fail-mode')) {
      const mode = failModeIn(statement.body);
      if (mode === undefined) this.#failModeNotStated(statement);
      else if (isFailMode(mode)) {
        this.#failModeOfTable(statement, mode);
        this.#afterFailMode(statement, mode);
      }
    }
  }

  /** Which mode was applied is then what followed: nothing may be executed where the table does not open. */
  #failModeNotStated(statement: Statement): void {
    const { decisions, done, proposal } = this.#case;
    const action = textAt(proposal?.body, 'action_type');
    const tier = textAt(statement.body, 'risk_tier') ?? textAt(proposal?.body, 'risk_tier');
    const executed = decisions.length === 0 ? done[0]?.primary : undefined;
    const expected =
      executed === undefined || action === undefined || tier === undefined
        ? undefined
        : expectedMode(statement, action, tier, this.#context);
    if (executed !== undefined && expected !== undefined && expected.mode !== 'fail_open')
      this.#find('EXECUTED_AFTER_FAIL_MODE', executed.at, {
        expected: `${expected.mode} for ${action}, ${tier}${expected.isKnown ? '' : ', by default'}`,
        actual: executed.type,
      });
    else this.#find('FAIL_MODE_NOT_STATED', statement.at);
  }

  #failModeOfTable(statement: Statement, mode: FailMode): void {
    const proposal = this.#case.proposal?.body;
    const [stated, proposed] = [textAt(statement.body, 'risk_tier'), textAt(proposal, 'risk_tier')];
    const { at } = statement;
    if (stated !== undefined && proposed !== undefined && stated !== proposed && RISK_TIERS.includes(stated))
      this.#find('RISK_TIER_MISMATCH', at, { expected: proposed, actual: stated });
    const action = textAt(proposal, 'action_type');
    const tier = stated ?? proposed;
    if (action === undefined || tier === undefined) return;
    const expected = expectedMode(statement, action, tier, this.#context);
    if (expected === undefined || expected.mode === mode) return;
    // Which table the adapter had is not known: more careful than the default is a word, less careful is not.
    const isCareful = FAIL_MODES.indexOf(mode) > FAIL_MODES.indexOf(expected.mode as FailMode);
    const isWarning = isCareful && !expected.isKnown;
    this.#find('FAIL_MODE_NOT_OF_TABLE', at, {
      expected: `${expected.mode} for ${action}, ${tier}${expected.isKnown ? '' : ', by default'}`,
      actual: mode,
      weight: isWarning ? 'warning' : 'violation',
    });
  }

  #afterFailMode(statement: Statement, mode: FailMode): void {
    const { decisions, done } = this.#case;
    if (decisions.length > 0) return;
    const executed = done[0]?.primary;
    if (mode !== 'fail_open' && executed !== undefined) {
      this.#differ('EXECUTED_AFTER_FAIL_MODE', executed.at, `${mode}: no execution`, executed.type);
      return;
    }
    const wrong = {
      fail_open: ['blocked', 'deferred'],
      defer: ['blocked'],
      fail_closed: ['deferred'],
    } as const;
    const [other] = this.#of(...wrong[mode]);
    if (other !== undefined)
      this.#find('FAIL_MODE_NOT_FOLLOWED', other.at, { expected: mode, actual: other.type });
  }

  /** CGF-8 */
  #audit(): void {
    const decided = this.#case.decisions.find(({ decision }) => decision === 'AUDIT');
    const failed = this.#of('audit-required').find(({ body }) => valueAt(body, 'audit_failed') === true);
    if (failed !== undefined) this.#auditFailure(failed);
    if (decided === undefined) return;
    const isShown = this.#case.statements.some(
      ({ type, kind, body }) =>
        type === 'action_audited' || (kind === 'audit-required' && valueAt(body, 'audit_failed') !== true),
    );
    if (isShown || this.#of('blocked', 'deferred', 'expired', 'revoked').length > 0) return;
    const executed = this.#of('executing').find((each) => this.#isExecution(each));
    // After its audit failed it is already reported.
    if (executed !== undefined && failed !== undefined && isAfter(executed, failed)) return;
    // The draft's own code, the plugin and requests have no event for an audit that succeeds.
    const isTold =
      executed?.vocabulary === 'ratified' ||
      executed?.vocabulary === 'sdk' ||
      (executed !== undefined && failed !== undefined);
    this.#find('AUDIT_NOT_SHOWN', (executed ?? decided.primary).at, {
      actual: failed === undefined ? (executed?.type ?? 'none') : 'an audit that failed',
      weight: isTold ? 'invalid' : 'warning',
    });
  }

  /** An audit that fails defers or blocks, by the table: it is never followed by an execution. */
  #auditFailure(failed: Statement): void {
    const mode = textAt(failed.body, 'fallback');
    if (isFailMode(mode)) this.#failModeOfTable(failed, mode);
    const after = this.#case.statements.filter((each) => isAfter(each, failed));
    const executed = after.find((each) => each.kind === 'executing' && this.#isExecution(each));
    if (executed !== undefined) {
      this.#find('EXECUTED_AFTER_AUDIT_FAILED', executed.at, { actual: executed.type });
      return;
    }
    const other = after.find(({ kind }) => kind === (mode === 'defer' ? 'blocked' : 'deferred'));
    if (
      isFailMode(mode) &&
      other !== undefined &&
      !after.some(({ kind }) => kind === (mode === 'defer' ? 'deferred' : 'blocked'))
    )
      this.#find('FAIL_MODE_NOT_FOLLOWED', other.at, { expected: mode, actual: other.type });
  }

  /** CGF-9, constraints */
  #constraints(): void {
    for (const decided of this.#case.decisions) {
      if (decided.decision !== 'CONSTRAIN') continue;
      const constraint = decided.all.map(({ body }) => constraintIn(body)).find((each) => each !== undefined);
      for (const action of this.#of('executing')) {
        const applied = constraintOfAction(action);
        if (applied === undefined || constraint?.type === undefined || action.source === 'server') continue;
        const [expected, actual] = [constraint, applied].map(
          ({ type, params }) =>
            `${type} ${params === undefined ? '' : pythonJson(params, 'py-json-sorted-compact-ascii')}`,
        );
        const isSame = action.body.has('constraint_params')
          ? expected === actual
          : constraint.type === applied.type;
        if (!isSame) this.#differ('CONSTRAINT_MISMATCH', action.at, constraint.type, applied.type ?? 'none');
      }
      const applied = this.#of('constraint-applied');
      for (const each of applied) {
        const fields = listAt(each.body, 'modified_fields');
        if (fields === undefined || constraint?.modified === undefined) continue;
        const [expected, actual] = [constraint.modified.keys(), fields.map(String)].map((names) =>
          [...names].sort().join(', '),
        );
        if (expected !== actual) this.#differ('CONSTRAINT_MISMATCH', each.at, expected!, actual!);
      }
      const plain = this.#of('executing').find(
        (each) => each.vocabulary !== undefined && this.#isExecution(each),
      );
      const isShown =
        applied.length > 0 || this.#of('executing').some(({ type }) => type === 'action_constrained');
      if (plain !== undefined && !isShown)
        this.#find('CONSTRAINT_NOT_SHOWN', plain.at, { actual: plain.type });
    }
  }

  #differ(code: Code, at: HostPlace, expected: string, actual: string): void {
    this.#find(code, at, { expected, actual });
  }

  /** CGF-9, digests of params */
  #params(): void {
    const { proposal, done } = this.#case;
    const proposals = this.#of('proposal');
    for (const other of proposals) {
      for (const name of ['action_type', 'risk_tier']) {
        const [expected, actual] = [textAt(proposal?.body, name), textAt(other.body, name)];
        if (expected !== undefined && actual !== undefined && expected !== actual)
          this.#wrong('SOURCES_DISAGREE', other.at, `${name} ${expected}`, actual);
      }
      const digest = paramsHashCheck(proposals, other);
      if (digest?.check === 'mismatch')
        this.#wrong('PARAMS_HASH_MISMATCH', other.at, digest.computed, digest.stated);
      const args = argsHashCheck(objectAt(other.body, 'action_params'));
      if (args?.check === 'mismatch') this.#wrong('ARGS_HASH_MISMATCH', other.at, args.computed, args.stated);
    }
    // A log that has the hash of other params says it already.
    const isHashed = proposals.some((each) => paramsHashCheck(proposals, each)?.check === 'mismatch');
    for (const other of proposals)
      for (const name of ['action_params', 'context_refs', 'estimated_cost']) {
        const [expected, actual] = [proposal?.body.get(name), other.body.get(name)];
        if (expected === undefined || actual === undefined || isSameInPython(expected, actual)) continue;
        if (name === 'action_params' && isHashed) continue;
        this.#wrong('SOURCES_DISAGREE', other.at, `${name} as proposed`, 'another value');
      }
    for (const { outcome } of done) {
      const executed = executedArgs(this.#case, outcome);
      if (executed !== undefined && executed.isOther)
        this.#differ('EXECUTED_PARAMS_MISMATCH', outcome!.at, executed.expected, executed.stated);
    }
  }

  #wrong(code: Code, at: HostPlace, expected: string, actual: string): void {
    this.#find(code, at, { expected, actual, rule: 'CGF-9' });
  }

  /** CGF-12 */
  #times(): void {
    for (const own of this.#case.byStream.values()) {
      let last: Statement | undefined;
      for (const statement of own) {
        if (statement.source === 'pack' || !statement.isTimeStated || statement.time === undefined) continue;
        if (last !== undefined && compareTimestamps(statement.time, last.time!) < 0)
          this.#differ('TIME_REGRESSION', statement.at, `not before ${last.time}`, statement.time);
        last = statement;
      }
    }
  }

  /** CGF-13 */
  #costs(): void {
    const estimates = estimateOf(this.#case.proposal?.body);
    for (const done of this.#case.done) {
      if (done.outcome === undefined) continue;
      // What is measured takes the place of a cost of the same unit; both are checked against the estimate.
      for (const { unit, amount } of [...useOf(done), ...costOf(done.outcome.body)]) {
        const estimate = estimates.find((each) => each.unit === unit)?.amount;
        if (estimate === undefined || compareQuantities(amount, estimate) <= 0) continue;
        this.#find(
          'COST_OVER_ESTIMATE',
          done.outcome.at,
          {
            expected: `at most ${formatQuantity(estimate)} ${unit}`,
            actual: formatQuantity(amount),
          },
          unit,
        );
      }
    }
  }
}

/** Whether a statement stands after another in the same log. */
function isAfter(statement: Statement, other: Statement): boolean {
  return statement.stream === other.stream && statement.index > other.index;
}

/** What two statements of one decision say differently. */
function differenceOf(a: SourceObject, b: SourceObject): [string, string] | undefined {
  const decisions = [a, b].map((body) => textAt(body, 'decision_type') ?? textAt(body, 'decision') ?? '');
  if (decisions[0] !== decisions[1]) return [decisions[0]!, decisions[1]!];
  const [x, y] = [numberAt(a, 'confidence'), numberAt(b, 'confidence')];
  if (x !== undefined && y !== undefined && !isSameNumber(x, y)) return [`confidence ${x}`, y];
  for (const name of [
    'reason_code',
    'policy_version',
    'matched_rule_ids',
    'constraint',
    'excised_features',
  ]) {
    const [one, other] = [valueAt(a, name), valueAt(b, name)];
    // A log does not have them; what a source has as null it says that there is none.
    if (one === undefined || other === undefined || isSameInPython(one, other)) continue;
    return [`${name} ${shown(one)}`, shown(other)];
  }
  return undefined;
}

/** A text as it is; of anything else only what it is: contents are not told. */
function shown(value: SourceValue): string {
  if (typeof value === 'string') return value;
  return value === null ? 'null' : Array.isArray(value) ? `a list of ${value.length}` : 'an object';
}

/** What two outcomes say differently, of what both say. */
function differenceOfOutcomes(a: SourceObject, b: SourceObject): [string, string] | undefined {
  for (const name of ['executed', 'success', 'committed', 'quarantined']) {
    const [x, y] = [valueAt(a, name), valueAt(b, name)];
    if (typeof x === 'boolean' && typeof y === 'boolean' && x !== y) return [`${name}: ${x}`, String(y)];
  }
  const [x, y] = [numberAt(a, 'duration_ms'), numberAt(b, 'duration_ms')];
  if (x === undefined || y === undefined || isSameNumber(x, y)) return undefined;
  return [`duration_ms: ${x}`, y];
}
interface HashCheck {
  readonly form: PythonForm;
  readonly stated: string;
  readonly computed: string;
  readonly check: 'match' | 'mismatch';
}

/** `action_params_hash` of an adapter's log, over the params that another source has. */
export function paramsHashCheck(proposals: readonly Statement[], logged: Statement): HashCheck | undefined {
  const stated = textAt(logged.body, 'action_params_hash');
  if (stated === undefined || logged.source !== 'adapter' || !/^[0-9a-f]{16}$/.test(stated)) return undefined;
  const params = proposals
    .map(({ body }) => objectAt(body, 'action_params'))
    .find((each) => each !== undefined);
  if (params === undefined) return undefined;
  return hashCheck(params, stated, ['py-json-sorted-spaced-ascii', 'py-json-unsorted-spaced-ascii']);
}

/** `tool_args_hash` of params that hold their arguments too. */
export function argsHashCheck(params: SourceObject | undefined): HashCheck | undefined {
  const stated = textAt(params, 'tool_args_hash')?.replace(/^sha256:/, '');
  const args = params?.get('tool_args') ?? params?.get('args');
  // The documents do not say how the hash is taken; adapters take these two, whole or cut.
  if (stated === undefined || args === undefined || !/^(?:[0-9a-f]{32}|[0-9a-f]{64})$/.test(stated))
    return undefined;
  return hashCheck(args, stated, ['py-json-sorted-compact-ascii', 'py-json-sorted-spaced-ascii']);
}

function hashCheck(value: SourceValue, stated: string, forms: readonly PythonForm[]): HashCheck {
  const all = forms.map((form) => ({ form, computed: pythonSha256(value, form).slice(0, stated.length) }));
  const match = all.find(({ computed }) => computed === stated);
  const { form, computed } = match ?? all[0]!;
  return { form, stated, computed, check: match === undefined ? 'mismatch' : 'match' };
}

/** The arguments' digest that an outcome states for the tool, and that of the arguments that may run. */
export function executedArgs(
  of: Pick<Case, 'proposal' | 'decisions'>,
  outcome: Statement | undefined,
): { readonly stated: string; readonly expected: string; readonly isOther: boolean } | undefined {
  const params = objectAt(of.proposal?.body, 'action_params');
  const modified = of.decisions
    .flatMap(({ all }) => all)
    .map(({ body }) => constraintIn(body)?.modified)
    .find((each) => each !== undefined);
  const tool = textAt(modified, 'tool_name') ?? textAt(params, 'tool_name') ?? textAt(params, 'tool');
  const effect = (listAt(outcome?.body, 'side_effects') ?? []).find(
    (each) => textAt(each, 'tool_args_hash') !== undefined && textAt(each, 'tool_name') === tool,
  );
  const stated = textAt(effect, 'tool_args_hash')?.replace(/^sha256:/, '');
  if (stated === undefined) return undefined;
  const source = modified ?? params;
  const args = source?.get('tool_args');
  const expected =
    args === undefined || args === null
      ? textAt(source, 'tool_args_hash')?.replace(/^sha256:/, '')
      : undefined;
  if (expected !== undefined) return { stated, expected, isOther: expected !== stated };
  if (args === undefined || args === null) return undefined;
  const forms = Object.keys(PYTHON_FORMS) as PythonForm[];
  const computed = forms.map((form) => pythonSha256(args, form).slice(0, stated.length));
  return { stated, expected: computed[0]!, isOther: !computed.includes(stated) };
}
