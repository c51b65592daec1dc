/**
 * What adapters ask of one open ledger: to be known, to be decided upon, to report. A proposal has one decision and one outcome, whoever asks
 * again, through whichever service of the ledger.
 */

import { randomBytes } from 'node:crypto';

import type { Digest } from '../../../base/value/digest.js';
import { meters } from '../../../base/value/meter.js';
import { compareTimestamps } from '../../../base/value/timestamp.js';

import type { Gate, GateCall, GateDecision } from '../../../gate/gate.js';
import { keyOfCall } from '../../../gate/request-key.js';
import { ContentFolder } from '../../../log/contents/content-folder.js';
import { draftExecution } from '../../../log/policy/record.js';
import { codeOf, factText, principalOf } from '../../shared/names.js';

import type { PolicyBundle } from '../policy.js';
import { type Answer, decisionIdOf, justificationOf } from './answer.js';
import { Book, checksOf, type Ended, type Known, knownOf, REGISTERED_TYPE } from './book.js';
import { Refusal } from './fields.js';
import type { OutcomeReport } from './outcome.js';
import { confidenceOf, judge, type Verdict, verdictAdviser } from './policy-adviser.js';
import type { HostConfig, Proposal } from './proposal.js';
import { contentText } from './replay.js';
import { Turns } from './turns.js';

export interface DeskOptions {
  readonly policy: PolicyBundle | undefined;
  readonly isPlain: boolean;
  readonly attach: boolean;
  /** How long a registration holds without being used, in milliseconds. */
  readonly expiresMs: number;
}

export interface Asker {
  /** Whom it speaks for; undefined: for each adapter by its own name. */
  readonly principal: string | undefined;
  readonly mayBe: (principal: string) => boolean;
  readonly mayCall: (tool: string) => boolean;
}

/** A refusal to decide, for adapters that look at no status too. */
export class Blocked extends Refusal {
  readonly code: string;

  constructor(status: number, detail: string, code: string) {
    super(status, detail);
    this.code = code;
  }
}

const MAX_REGISTRATIONS = 60;
const REGISTRATIONS_MS = 60_000;
const CONFLICT = 'REQUEST_CONFLICT';

export class Desk {
  readonly book: Book;
  readonly #gate: Gate;
  readonly #options: DeskOptions;
  readonly #turns = new Turns();
  readonly #contents: ContentFolder | undefined;
  /** When the last adapters registered, by whom their token speaks for and by a clock that only rises. */
  readonly #registered = new Map<string | undefined, number[]>();

  constructor(gate: Gate, options: DeskOptions) {
    this.#gate = gate;
    this.#options = options;
    this.book = new Book(gate.ledger, options.isPlain);
    const { ledger } = gate;
    this.#contents = options.attach && ledger.isInFiles ? new ContentFolder(ledger.path) : undefined;
  }

  /** Whether it is of this gate, and can go on. */
  isOf(gate: Gate): boolean {
    return this.#gate === gate && !this.book.hasFailed;
  }

  /**
   * Registers an adapter: on disk, so that another process knows it.
   * @throws Refusal 429; as `LiveLedger.append`
   */
  async register(
    asker: Asker,
    about: HostConfig & { readonly adapterType: string },
  ): Promise<{ readonly id: string; readonly at: string }> {
    const now = performance.now();
    const before = this.#registered.get(asker.principal) ?? [];
    const last = before.filter((time) => now - time < REGISTRATIONS_MS);
    if (last.length >= MAX_REGISTRATIONS) throw new Refusal(429, 'Too Many Requests');
    this.#registered.set(asker.principal, [...last, now]);
    await this.book.ready;
    const id = `adp-${randomBytes(6).toString('hex')}`;
    const principal = whoOf(asker, id);
    const { ledger } = this.#gate;
    const at = ledger.now();
    const event = {
      event_type: REGISTERED_TYPE,
      principal_id: principal,
      occurred_at: at,
      adapter_id: id,
      adapter_type: factText(about.adapterType),
      host_type: factText(about.hostType),
      version: factText(about.version ?? '0.0.0'),
    };
    await ledger.append({ event });
    this.book.noteAdapter({ id, principal, usedAt: Date.parse(at) });
    return { id, at };
  }

  /**
   * Decides on a proposal, or says again what was decided.
   * @returns `isNew`: whether it was decided now
   * @throws Blocked; as `Gate.decide`
   */
  async evaluate(
    asker: Asker,
    proposal: Proposal,
    signal: AbortSignal,
  ): Promise<{ readonly answer: Answer; readonly known: Known; readonly isNew: boolean }> {
    await this.book.ready;
    const principal = await this.#assertAdapter(asker, proposal.adapterId);
    if (!asker.mayCall(proposal.tool)) throw new Blocked(403, 'Forbidden', 'TOOL_NOT_ALLOWED');
    return this.#turns.take(proposal.id, async () => {
      // What is older than memory is found by its request key, when it is decided.
      const known = this.book.peek(proposal.id);
      return known === undefined
        ? this.#decide(proposal, principal, signal)
        : this.#repeat(known, proposal, signal);
    });
  }

  async #decide(proposal: Proposal, principal: string, signal: AbortSignal) {
    const { policy, isPlain } = this.#options;
    const verdict = policy && judge(policy, proposal);
    await this.#contents?.write(proposal.content);
    const decision = await this.#ask(proposal, principal, verdict, signal);
    if (decision.isRepeated) {
      // Another process has decided on it meanwhile, or something else has its key.
      const told = await this.book.find(proposal.id, principal);
      if (told === undefined) throw conflict();
      return this.#repeat(told, proposal, signal);
    }
    const told = await this.book.hear(proposal.id);
    if (told !== undefined) {
      // Another process denied it just before.
      if (decision.effect === 'allow' || decision.effect === 'rewrite')
        await this.#gate.release({ ref: proposal.id, principal });
      return this.#repeat(told, proposal, signal);
    }
    const facts = this.#factsOf(proposal, verdict);
    const bare = knownOf(
      facts,
      {
        key: keyOfCall(undefined, proposal.id),
        principal,
        isAllowed: decision.effect === 'allow' || decision.effect === 'rewrite',
        code: decision.code,
        params: '',
        authorization: decision.authorization,
        expires: decision.expires,
        at: this.#gate.ledger.now(),
      },
      isPlain,
    );
    const answer = this.#answerOf(bare, proposal.id, verdict?.constraint, decision.reason);
    const known = { ...bare, answer };
    this.book.note(known);
    this.book.noteAdapter({ id: facts.adapterId, principal, usedAt: Date.parse(known.at) });
    return { answer, known, isNew: true };
  }

  #factsOf(proposal: Proposal, verdict: Verdict | undefined) {
    const { digest, actionType, riskTier, adapterId = '' } = proposal;
    return { proposal: digest.b64, adapterId, actionType, riskTier, verdict };
  }

  #ask(
    proposal: Proposal,
    principal: string,
    verdict: Verdict | undefined,
    signal: AbortSignal,
  ): Promise<GateDecision> {
    const { policy, isPlain } = this.#options;
    const { id: ref, tool, params, intent, reserve } = proposal;
    const call: GateCall = {
      ...{ ref, principal, tool, params, intent, reserve },
      // Many adapters never report.
      start: false,
      coverage: 'hook',
      found: { checks: checksOf(this.#factsOf(proposal, verdict), codeOf) },
      advisers:
        policy === undefined || verdict === undefined
          ? []
          : [verdictAdviser(policy, verdict, params, isPlain)],
    };
    return this.#gate.decide(call, { signal });
  }

  /** The same answer to the same proposal, as long as it may still be acted upon. */
  async #repeat(known: Known, proposal: Proposal, signal: AbortSignal) {
    if (known.proposal !== proposal.digest.b64 || known.adapterId !== proposal.adapterId) throw conflict();
    if (!known.isAllowed) {
      const answer = known.answer ?? this.#answerOf(known, proposal.id, undefined, undefined);
      return { answer, known, isNew: false };
    }
    const spent = (): Blocked =>
      new Blocked(409, 'The proposal was acted upon, or given back', 'AUTHORIZATION_REUSED');
    if (known.ended !== undefined) throw spent();
    const { expires } = known;
    if (expires !== undefined && compareTimestamps(this.#gate.ledger.now(), expires) >= 0)
      throw new Blocked(409, 'The proposal has expired', 'ACTION_EXPIRED');
    const { policy } = this.#options;
    const verdict = policy && judge(policy, proposal);
    const decision = await this.#ask(proposal, known.principal, verdict, signal);
    if (decision.effect === 'deny' || decision.effect === 'ask')
      throw new Blocked(409, 'The proposal may no longer be acted upon', decision.code);
    if (decision.authorization !== known.authorization) {
      // It was given back meanwhile.
      await this.#gate.release({ ref: proposal.id, principal: known.principal });
      throw spent();
    }
    const answer = known.answer ?? this.#answerOf(known, proposal.id, verdict?.constraint, undefined);
    return { answer, known, isNew: false };
  }

  /**
   * Takes a report of an outcome. To repeat it is harmless.
   * @returns Undefined where nothing new was reported
   * @throws Refusal 404 where it is of no decision of this adapter's, 409 where another was reported; as `Gate.settle`
   */
  async report(
    asker: Asker,
    outcome: OutcomeReport,
    signal: AbortSignal,
  ): Promise<{ readonly answer: Answer; readonly at: string } | undefined> {
    await this.book.ready;
    const principal = whoOf(asker, outcome.adapterId);
    return this.#turns.take(outcome.proposalId, async () => {
      const known = await this.book.find(outcome.proposalId, principal);
      const isOwn =
        known !== undefined &&
        decisionIdOf(known.authorization) === outcome.decisionId &&
        known.adapterId === outcome.adapterId &&
        asker.mayBe(known.principal);
      if (!isOwn) throw new Refusal(404, 'Decision not found');
      if (isReported(known.ended, outcome)) return undefined;
      await this.#contents?.write(outcome.content);
      if (!(await this.#settle(asker, known, outcome, signal))) {
        // Another service of the ledger may have recorded it, or given it back.
        if (isReported(await this.book.readEnd(known), outcome)) return undefined;
        if (outcome.executed) await this.#recordUnallowed(known, outcome, signal);
      }
      const at = this.#gate.ledger.now();
      this.book.end(known.authorization, {
        executed: outcome.executed,
        report: outcome.digest.b64,
        success: outcome.success,
        at,
        durationMs: outcome.durationMs,
      });
      return { answer: await this.answerOf(known, outcome.proposalId), at };
    });
  }

  /** Ends a reservation. @returns False where there is none */
  async #settle(asker: Asker, known: Known, outcome: OutcomeReport, signal: AbortSignal): Promise<boolean> {
    if (!known.isAllowed) return false;
    const call = { ref: outcome.proposalId, principal: known.principal };
    const ending = { signal, mayEnd: asker.mayCall };
    const { recorded } = outcome.executed
      ? await this.#gate.settle(
          call,
          {
            outcome: outcome.success ? 'success' : 'failure',
            used: outcome.used,
            // Below what is reported, so that this is taken as it is written.
            durationMs: Math.floor(Number(outcome.durationMs)),
            meterBasis: 'reported',
            outputDigest: outcome.digest,
            ...(outcome.success ? {} : { errorCode: EXEC_ERROR }),
          },
          ending,
        )
      : await this.#gate.release(call, ending);
    return recorded !== undefined;
  }

  /** What ran under a denial, or after its reservation was given back, is recorded as that: a violation. */
  async #recordUnallowed(known: Known, outcome: OutcomeReport, signal: AbortSignal): Promise<void> {
    const event = await this.book.eventOf(known);
    if (event === undefined) return;
    const { ledger } = this.#gate;
    const { authorization, intents } = event as unknown as DecisionEvent;
    const { tool_name: toolName, tool_params_digest: paramsDigest } = authorization.action;
    const now = ledger.now();
    const draft = draftExecution(
      {
        kind: 'action',
        authorizationId: known.authorization,
        principalId: known.principal,
        toolName,
        intentDigest: intents.intent_digest,
        paramsDigest,
        reserved: [],
        startId: undefined,
        started: undefined,
      },
      {
        startedAt: now,
        endedAt: now,
        meterUsed: meters({ calls: 1, ...outcome.used }),
        outcome: outcome.success ? 'success' : 'failure',
        meterBasis: 'reported',
        outputDigest: outcome.digest,
        ...(outcome.success ? {} : { errorCode: EXEC_ERROR }),
      },
    );
    await ledger.append({ event: draft }, { signal });
  }

  /** The decision about a proposal, for a replay. */
  async find(asker: Asker, proposalId: string): Promise<Known | undefined> {
    await this.book.ready;
    const known = await this.book.find(proposalId, asker.principal);
    return known !== undefined && asker.mayBe(known.principal) ? known : undefined;
  }

  /** A decision as it was answered, with the constraint where that can be found again. */
  async answerOf(known: Known, proposalId: string): Promise<Answer> {
    if (known.answer !== undefined) return known.answer;
    const { ledger } = this.#gate;
    const isBound = known.decision === 'CONSTRAIN' && ledger.isInFiles;
    const text = isBound ? await contentText(ledger.path, known.params) : undefined;
    const { constraint } = (text === undefined ? {} : JSON.parse(text)) as {
      readonly constraint?: Answer['constraint'];
    };
    return this.#answerOf(known, proposalId, constraint, undefined);
  }

  #answerOf(
    known: Known,
    proposalId: string,
    constraint: Answer['constraint'],
    explanation: string | undefined,
  ): Answer {
    const { adapterId, authorization, decision, code, rule, version, constraintType, at } = known;
    const type = constraint ?? { type: constraintType ?? 'unknown', params: {} };
    return {
      ...{ adapterId, proposalId, decision, code, rule, version, at, explanation },
      decisionId: decisionIdOf(authorization),
      confidence: this.#confidenceOf(known),
      constraint: decision === 'CONSTRAIN' ? type : undefined,
      justification: justificationOf(known),
    };
  }

  #confidenceOf({ rule, code }: Known): number {
    const { policy } = this.#options;
    if (policy === undefined || code === UNDECIDED || (rule === undefined && code !== NO_RULE)) return 1;
    return confidenceOf(policy.rules.find(({ id }) => id === rule));
  }

  /** @returns Whom it speaks for */
  async #assertAdapter(asker: Asker, id: string | undefined): Promise<string> {
    const adapter = id === undefined ? undefined : await this.book.findAdapter(id);
    if (adapter === undefined || !asker.mayBe(adapter.principal))
      throw new Blocked(401, 'Unauthorized', 'ADAPTER_UNKNOWN');
    const age = Date.parse(this.#gate.ledger.now()) - adapter.usedAt;
    if (age > this.#options.expiresMs) throw new Blocked(401, 'Unauthorized', 'ADAPTER_EXPIRED');
    return adapter.principal;
  }
}

const EXEC_ERROR = 'CGF_EXEC_ERROR';
const UNDECIDED = 'POLICY_NOT_DECIDED';
const NO_RULE = 'POLICY_MATCH';

interface DecisionEvent {
  readonly intents: { readonly intent_digest: Digest };
  readonly authorization: {
    readonly action: { readonly tool_name: string; readonly tool_params_digest: Digest };
  };
}

/** Whom an adapter's calls are for. @throws Blocked */
function whoOf({ principal, mayBe }: Asker, adapterId: string): string {
  const who = principal ?? principalOf('service', 'cgf', adapterId);
  if (!mayBe(who)) throw new Blocked(403, 'Forbidden', 'NOT_ALLOWED');
  return who;
}

function conflict(): Blocked {
  return new Blocked(409, 'The proposal_id is that of another proposal', CONFLICT);
}

/** Whether this very outcome is known. @throws Refusal 409 where another is */
function isReported(ended: Ended | undefined, outcome: OutcomeReport): boolean {
  if (ended === undefined || isLate(ended, outcome)) return false;
  if (isSame(ended, outcome)) return true;
  throw new Refusal(409, 'Another outcome was reported');
}

/** What was given back, by its time or by a report, and ran all the same. */
function isLate(ended: Ended, outcome: OutcomeReport): boolean {
  return !ended.executed && outcome.executed;
}

function isSame(ended: Ended, outcome: OutcomeReport): boolean {
  if (ended.report === undefined) return !ended.executed && !outcome.executed;
  return ended.report === outcome.digest.b64;
}
