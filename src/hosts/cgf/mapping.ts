/** Cases as claims: decisions and fail modes as authorizations, what was done as executions, the rest as evidence; and what became of each item. */

import { addTo, jcsDigest, listAt, objectAt, plainJson, textAt, valueAt } from '../shared/values.js';
import { encodeBase64url, tryDecodeHex } from '../../base/bytes/encoding.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { JsonObject, JsonValue } from '../../base/json/value.js';
import { type Digest, sha256Digest } from '../../base/value/digest.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { Check } from '../../format/schema/generated/types.js';
import { notStated } from '../shared/claims.js';
import type { Claim, ForeignDigest, HostItem, Observation } from '../shared/host.js';
import { codeOf, factText, factTexts, principalOf, wellFormed } from '../shared/names.js';
import { estimateOf, useOf } from './amounts.js';
import {
  type Applied,
  authorityOf,
  byPrecedence,
  type Case,
  type Constraint,
  constraintIn,
  constraintOfAction,
  type Decided,
  type Done,
  knownWith,
  permits,
  ranked,
} from './cases.js';
import { argsHashCheck, executedArgs, paramsHashCheck } from './checks.js';
import type { PolicyBundle } from './policy.js';
import { type Entry, failModeIn, type Source, type Statement, type Statements, timeIn } from './reader.js';
import { intentIn, type Kind } from './vocabulary.js';
import { inTimeOrder, latestOfFile } from '../shared/order.js';

const SYSTEM = 'cgf';
const MAX_CHECKS = 32;
const MAX_RESOURCES = 32;
interface Mapped {
  readonly claims: readonly Claim[];
  readonly observations: readonly Observation[];
  readonly items: readonly HostItem[];
}
interface MappingContext {
  readonly statements: Statements;
  readonly cases: readonly Case[];
  readonly bundle: PolicyBundle | undefined;
}

/** Maps everything. */
export function mapCases(context: MappingContext): Mapped {
  const mapper = new Mapper(context);
  return mapper.run();
}

type Use = 'mapped' | 'evidence' | { readonly repeats: string };

/** What an execution rests on: a decision, a fail mode, the end of a proposal. */
type Authority = Decided | Applied | Statement;

/** What was authorized, by {@link keyOf} of what authorizes it. */
type Authorities = Map<
  string,
  { readonly id: string; readonly tool: string; readonly params: Digest | undefined }
>;

type ActionClaim = Extract<Claim, { kind: 'action' }>;

interface Placed {
  readonly claim: Claim;
  readonly index: number;
}

class Mapper {
  readonly #context: MappingContext;
  readonly #uses = new Map<Statement, Use>();
  readonly #placed: Placed[] = [];
  readonly #observations: Observation[] = [];
  readonly #ids = new Set<string>();

  constructor(context: MappingContext) {
    this.#context = context;
  }

  run(): Mapped {
    const { cases, statements } = this.#context;
    for (const each of cases) this.#mapCase(each);
    this.#keepEvidence(statements.statements);
    return {
      claims: inTimeOrder(
        this.#placed.sort((a, b) => a.index - b.index).map(({ claim }) => claim),
        latestOfFile(),
      ),
      observations: this.#observations,
      items: statements.entries.map((entry) => this.#item(entry)),
    };
  }

  #mapCase(of: Case): void {
    const authorities: Authorities = new Map();
    const authorize = (authority: Authority, claim: ActionClaim | undefined): void => {
      if (claim === undefined) return;
      const { id, tool, paramsDigest } = claim;
      authorities.set(keyOf(authority), { id, tool, params: paramsDigest });
    };
    for (const decided of of.decisions) authorize(decided, this.#claimDecision(of, decided));
    if (of.failMode !== undefined) authorize(of.failMode, this.#claimFailMode(of, of.failMode));
    for (const ending of of.endings) authorize(ending, this.#claimEnding(of, ending));
    for (const done of of.done) this.#claimExecution(of, done, authorities);
    this.#observe(of);
  }

  #use(statements: readonly Statement[], primary: Statement): void {
    for (const each of statements) {
      if (this.#uses.has(each)) continue;
      const isOwn = each === primary || (each.stream === primary.stream && each.kind !== primary.kind);
      this.#uses.set(each, isOwn ? 'mapped' : { repeats: repeatOf(each, primary) });
    }
  }

  /** An id that no other claim has; the id of one thing in two cases keeps its first. */
  #idOf(id: string, proposal: string): string {
    const own = this.#ids.has(id) ? `${id}@${proposal}` : id;
    this.#ids.add(own);
    return own;
  }

  #place(claim: Claim, statement: Statement): void {
    this.#placed.push({ claim, index: statement.index });
  }

  /** What decisions, fail modes and ends have in common. */
  #action(of: Case, { at, item, ...primary }: Statement, id: string, occurredAt: string) {
    return {
      kind: 'action',
      id: this.#idOf(id, of.id),
      ...{ at, bytes: item.bytes, occurredAt },
      principalId: principalIn(of, primary),
      intentDigest: intentOf(of),
      tool: toolIn(of),
    } as const;
  }

  #claimDecision(whole: Case, decision: Decided): ActionClaim | undefined {
    const { primary } = decision;
    const occurredAt = decidedAt(decision);
    if (occurredAt === undefined) return undefined;
    for (const each of whole.statements)
      if (each.kind === 'proposal' && each.isInline === true) this.#useInline(whole, each);
    const told = isToldLater(whole, decision) ? toldIn(whole, primary) : primary;
    if (told !== primary) this.#keepDecision(whole, decision, told === undefined);
    if (told === undefined) return undefined;
    this.#use(decision.all, primary);
    const of = caseAt(whole, told);
    const decided = decidedIn(decision, told);
    const isAllowed = permits(decided.decision);
    const bodies = decided.all.map(({ body }) => body);
    const version = first(bodies, (body) => textAt(body, 'policy_version'));
    // The code of a block is that of the decision which blocks, not of one whose enforcement failed.
    const blocks = isAllowed ? [] : of.statements.filter(({ kind }) => BLOCKS.includes(kind));
    const reason = first([...bodies, ...blocks.map(({ body }) => body)], (body) =>
      textAt(body, 'reason_code'),
    );
    const { bundle } = this.#context;
    const isBundle = version !== undefined && version === bundle?.version;
    const claim: ActionClaim = {
      ...this.#action(of, primary, decided.claimId, occurredAt),
      decision: isAllowed ? 'allow' : 'deny',
      decisionCode: reason === undefined || reason === '' ? `CGF_${decided.decision}` : codeOf(reason),
      ...(version === undefined ? {} : { policyId: factText(`cgf:${version}`) }),
      ...(isBundle ? { policyDigest: hexDigest('sha-256', bundle.computedHash) } : {}),
      checks: checksOf(decided.decision, isAllowed, bodies, constraintOf(of, decided)),
      paramsDigest: paramsOf(of, decided),
      reservation: estimateOf(of.proposal?.body),
      foreignDigests: foreignDigestsOf(of),
    };
    this.#place(claim, told);
    return claim;
  }

  /** A decision that says only later what it binds: its own item is evidence of it, whether or not the file continues. */
  #keepDecision(of: Case, { primary, all }: Decided, isOnly: boolean): void {
    this.#place(this.#evidence(primary, slotOf(primary)), primary);
    if (!isOnly) return;
    this.#uses.set(primary, 'evidence');
    for (const each of all) if (each !== primary) this.#uses.set(each, { repeats: repeatOf(each, primary) });
  }

  #useInline(of: Case, proposal: Statement): void {
    if (this.#uses.has(proposal)) return;
    const primary = of.proposal ?? proposal;
    this.#uses.set(
      proposal,
      proposal === primary || proposal.item === primary.item
        ? 'mapped'
        : { repeats: repeatOf(proposal, primary) },
    );
  }

  #claimFailMode(whole: Case, applied: Applied): ActionClaim | undefined {
    const { primary, mode, claimId } = applied;
    if (primary.time === undefined) return undefined;
    const same = whole.statements.filter(
      ({ kind, body }) => kind === 'fail-mode' && failModeIn(body) === mode,
    );
    this.#use(same, primary);
    const of = caseAt(whole, primary);
    const rows = this.#context.statements.tables.get(primary.adapterId ?? '')?.rows;
    const isAllowed = mode === 'fail_open';
    const code = { fail_open: 'CGF_FAIL_OPEN', fail_closed: 'CGF_FAIL_CLOSED', defer: 'CGF_FAIL_DEFER' }[
      mode
    ];
    const claim: ActionClaim = {
      ...this.#action(of, primary, claimId, primary.time),
      decision: isAllowed ? 'allow' : 'deny',
      decisionCode: code,
      policyId: 'cgf:fail_mode_table',
      policyDigest: jcsDigest(rows),
      checks: [{ check: 'cgf.fail_mode', result: isAllowed ? 'pass' : 'fail', code: codeOf(mode) }],
      paramsDigest: paramsOf(of, undefined),
      reservation: estimateOf(of.proposal?.body),
    };
    this.#place(claim, primary);
    return claim;
  }

  /** A rejection, a revocation and an expiry deny what was proposed. */
  #claimEnding(whole: Case, primary: Statement): ActionClaim | undefined {
    if (primary.time === undefined) return undefined;
    const { kind, decisionId, body } = primary;
    this.#use(
      whole.statements.filter((each) => each.kind === kind),
      primary,
    );
    const of = caseAt(whole, primary);
    const reason = textAt(body, 'reason_code');
    const name = kind.toUpperCase();
    const isNamed = kind === 'rejected' && decisionId !== undefined;
    const id = isNamed ? `decision:${decisionId}` : `${kind}:${of.id}`;
    const claim: ActionClaim = {
      ...this.#action(of, primary, id, primary.time),
      decision: 'deny',
      decisionCode: reason === undefined || reason === '' ? `CGF_${name}` : codeOf(reason),
      checks: [{ check: 'cgf.decision', result: 'fail', code: name }],
      paramsDigest: paramsOf(of, undefined),
    };
    this.#place(claim, primary);
    return claim;
  }

  #claimExecution(whole: Case, told: Done, authorities: Authorities): void {
    const { primary } = told;
    if (primary.time === undefined) return;
    this.#use(told.all, primary);
    const of = caseAt(whole, primary);
    const all = knownWith(primary, told.all);
    const [outcome, action] = [told.outcome, told.action].map((known) => all.find((each) => each === known));
    const done: Done = { ...told, outcome, action, all };
    const authority = authorityOf(of, done);
    const decided = of.decisions.find((each) => each === authority);
    const isAuthorized = isBefore(authority, action ?? primary);
    const authorized = isAuthorized ? authorities.get(keyOf(authority!)) : undefined;
    const args = executedArgs(of, outcome);
    const isDenied = valueAt(outcome?.body, 'executed') === false;
    const stated = isDenied ? 'unknown' : outcomeIn(outcome);
    this.#place(
      {
        kind: 'execution',
        id: this.#idOf(done.claimId, of.id),
        at: primary.at,
        bytes: primary.item.bytes,
        occurredAt: executedAt(done, decided),
        principalId: principalIn(of, primary),
        authorization: authorized?.id,
        tool: authorized?.tool ?? toolIn(of),
        paramsDigest:
          (args?.isOther === true ? hexDigest(`cgf-py-${args.stated.length * 4}`, args.stated) : undefined) ??
          // What the decision was about is what was executed, also where no source says what it was.
          (authorized === undefined ? paramsOf(of, decided) : authorized.params) ??
          notStated(SYSTEM, 'params'),
        startedAt: startOf(done),
        meters: useOf(done),
        meterBasis: outcome === undefined ? undefined : 'reported',
        outcome: stated,
        ...(stated === 'failure' ? { errorCode: 'CGF_EXEC_ERROR' } : {}),
        outputDigest: undefined,
        resources: resourcesOf(of, done, decided),
      },
      primary,
    );
  }

  #observe(of: Case): void {
    const [decided] = of.decisions;
    const [done] = of.done;
    const primary = done?.primary ?? decided?.primary ?? of.failMode?.primary ?? of.proposal;
    if (primary === undefined) return;
    const ids = [of.id, ...of.decisions.flatMap(({ id }) => (id === undefined ? [] : [id]))];
    const isAllowed = decided === undefined ? undefined : permits(decided.decision);
    const isOpen = of.failMode === undefined ? undefined : of.failMode.mode === 'fail_open';
    const decision = isAllowed ?? isOpen;
    this.#observations.push({
      at: primary.at,
      callIds: ids,
      tool: statedToolIn(of),
      paramsDigest: comparableParamsOf(of, decided),
      decision: decision === undefined ? undefined : decision ? 'allow' : 'deny',
      outcome: done === undefined ? undefined : outcomeIn(done.outcome),
      meters: done === undefined ? [] : useOf(done),
      occurredAt: primary.time,
    });
  }

  /** Everything that rests on nothing else yet: once per thing and source that takes precedence. */
  #keepEvidence(statements: readonly Statement[]): void {
    const slots = new Map<string, Statement[]>();
    for (const statement of statements) {
      if (this.#uses.has(statement)) continue;
      const slot = slotOf(statement);
      addTo(slots, slot, statement);
    }
    for (const [slot, list] of slots) {
      const primary = this.#statedBefore(list[0]!) ?? byPrecedence(list)[0]!;
      let count = 0;
      for (const statement of list) {
        const isOther = statement.stream !== primary.stream;
        const isSame = statement !== primary && isSameBody(statement, primary);
        if (isOther || isSame || this.#uses.has(primary)) {
          this.#uses.set(statement, { repeats: repeatOf(statement, primary) });
          if (statement !== primary || this.#uses.has(primary)) continue;
        }
        if (statement.time === undefined) continue;
        count++;
        this.#uses.set(statement, 'evidence');
        this.#place(this.#evidence(statement, count === 1 ? slot : `${slot}/${count}`), statement);
      }
    }
  }

  /** Of a proposal that a request or pack states too, that one. */
  #statedBefore({ kind, proposalId }: Statement): Statement | undefined {
    if (kind !== 'proposal') return undefined;
    const primary = this.#context.cases.length === 0 ? undefined : this.#caseOf(proposalId)?.proposal;
    return primary !== undefined && this.#uses.has(primary) ? primary : undefined;
  }

  readonly #cases = new Map<string, Case>();
  #caseOf(id: string | undefined): Case | undefined {
    if (this.#cases.size === 0) for (const each of this.#context.cases) this.#cases.set(each.id, each);
    return id === undefined ? undefined : this.#cases.get(id);
  }

  #evidence(statement: Statement, id: string): Claim {
    const { at, item, time, type, kind } = statement;
    return {
      kind: 'evidence',
      id: this.#idOf(id, statement.proposalId ?? at.file),
      at,
      bytes: item.bytes,
      occurredAt: time!,
      principalId: principalOf('service', SYSTEM, statement.adapterId ?? 'not-stated'),
      type: nameOf(kind === 'proposal' ? 'proposal_received' : type),
      facts: factsOf(statement),
    };
  }

  #item(entry: Entry): HostItem {
    const { at, type, dropped, statements } = entry;
    if (dropped !== undefined) return { at, type, fate: 'dropped', reason: dropped };
    const uses = statements.map((each) => this.#uses.get(each));
    if (uses.includes('mapped')) return { at, type, fate: 'mapped' };
    if (uses.includes('evidence')) return { at, type, fate: 'evidence' };
    const repeated = uses.find((use) => typeof use === 'object');
    if (repeated !== undefined && typeof repeated === 'object')
      return { at, type, fate: 'repeated', reason: repeated.repeats };
    return { at, type, fate: 'dropped', reason: 'TIME_NOT_STATED' };
  }
}

const REPEATS: Readonly<Record<Source, string>> = {
  http: 'IN_HTTP_RECORDING',
  outcomes: 'IN_OUTCOMES_FILE',
  pack: 'IN_REPLAY_PACK',
  adapter: 'IN_ADAPTER_LOG',
  server: 'IN_SERVER_LOG',
};

function repeatOf(statement: Statement, primary: Statement): string {
  return statement.stream === primary.stream ? 'IN_SAME_LOG' : REPEATS[primary.source];
}

/** What an item of evidence is about: the same for every source that tells it. */
function slotOf({ type, kind, proposalId, adapterId, item }: Statement): string {
  if (kind === 'registered' && adapterId !== undefined) return `adapter_registered:${adapterId}`;
  const name = kind === 'proposal' ? 'proposal' : kind === 'outcome' ? 'outcome' : nameOf(type);
  if (proposalId !== undefined) return `${name}:${proposalId}`;
  return `${name}:${sha256Digest(item.bytes).b64}`;
}

function isSameBody(a: Statement, b: Statement): boolean {
  const [x, y] = [plainJson(a.body), plainJson(b.body)];
  if (x === undefined || y === undefined || a.type !== b.type || a.time !== b.time) return false;
  return sha256Digest(canonicalBytes(x)).b64 === sha256Digest(canonicalBytes(y)).b64;
}

function caseAt(of: Case, last: Statement): Case {
  const statements = knownWith(last, of.statements);
  if (statements.length === of.statements.length) return of;
  const isKnown = new Set(statements);
  return {
    ...of,
    statements,
    proposal: ranked(statements, 'proposal')[0],
    decisions: of.decisions
      .filter(({ primary }) => isKnown.has(primary))
      .map((each) => decidedIn(each, last)),
    failMode: of.failMode !== undefined && isKnown.has(of.failMode.primary) ? of.failMode : undefined,
    endings: of.endings.filter((each) => isKnown.has(each)),
  };
}

function decidedIn(decided: Decided, last: Statement): Decided {
  return { ...decided, all: knownWith(last, decided.all) };
}

/** Of one case: what stays the same where more of the case is known. */
function keyOf(authority: Authority): string {
  return 'claimId' in authority ? authority.claimId : authority.kind;
}

/** Whether a log says only in the event of the action which constraint was decided. */
function isToldLater(of: Case, decided: Decided): boolean {
  const { primary, decision } = decided;
  const { source, vocabulary } = primary;
  if (decision !== 'CONSTRAIN' || source !== 'adapter') return false;
  if (vocabulary !== 'ratified' && vocabulary !== 'sdk') return false;
  return constraintOf(caseAt(of, primary), decidedIn(decided, primary)) === undefined;
}

const TELLING: readonly Kind[] = [
  'executing',
  'enacted',
  'outcome',
  'blocked',
  'deferred',
  'rejected',
  'revoked',
  'expired',
  'constraint-failed',
];

/** The first that is said after a decision of what became of it. */
function toldIn({ statements }: Case, { stream, index }: Statement): Statement | undefined {
  return statements.find(
    (each) => each.stream === stream && each.index > index && TELLING.includes(each.kind),
  );
}

function earliest(statements: readonly Statement[]): string | undefined {
  let time = statements[0]?.time;
  for (const each of statements) {
    if (each.time === undefined || !each.isTimeStated) continue;
    if (time === undefined || compareTimestamps(each.time, time) < 0) time = each.time;
  }
  return time;
}

/** When it was decided: the first that says so, of what is known with the statement that takes precedence. */
function decidedAt({ primary, all }: Decided): string | undefined {
  return earliest(knownWith(primary, all));
}

/** Its own time. By the clock of a source whose own decision came first too, nothing was done before the decision. */
function executedAt({ primary, action }: Done, decided: Decided | undefined): string {
  const own = primary.time!;
  const time = decided === undefined ? undefined : decidedAt(decided);
  const { stream } = action ?? primary;
  const isOther = decided?.primary.stream !== stream && isBefore(decided, action ?? primary);
  return isOther && time !== undefined && compareTimestamps(own, time) < 0 ? time : own;
}

/** Whether the log does not say that the action came first. */
function isBefore(authority: Authority | undefined, done: Statement): boolean {
  if (authority === undefined) return false;
  const all = 'all' in authority ? authority.all : ['primary' in authority ? authority.primary : authority];
  const own = all.filter(({ stream }) => stream === done.stream);
  return own.length === 0 || own.some(({ index }) => index <= done.index);
}

function outcomeIn(outcome: Statement | undefined): 'success' | 'failure' | 'unknown' {
  const success = valueAt(outcome?.body, 'success');
  return success === true ? 'success' : success === false ? 'failure' : 'unknown';
}

function principalIn(of: Case, statement: Pick<Statement, 'adapterId'>): string {
  const id = statement.adapterId ?? of.statements.find(({ adapterId }) => adapterId !== undefined)?.adapterId;
  return principalOf('service', SYSTEM, id ?? 'not-stated');
}

function toolIn(of: Case): string {
  const tool = statedToolIn(of);
  if (tool !== undefined) return tool;
  const bodies = of.statements.filter(({ kind }) => kind === 'proposal' || kind === 'decision');
  const action = first(bodies, ({ body }) => textAt(body, 'action_type'));
  return action === undefined || action === '' ? 'cgf.action' : `cgf.${action}`;
}

/** The tool's own name, where the files have it. */
function statedToolIn(of: Case): string | undefined {
  const bodies = of.statements.filter(({ kind }) => kind === 'proposal' || kind === 'decision');
  const params = first(bodies, ({ body }) => objectAt(body, 'action_params'));
  const tool =
    textAt(params, 'tool_name') ??
    textAt(params, 'tool') ??
    first(bodies, ({ body }) => textAt(body, 'tool_name'));
  return tool === '' ? undefined : tool;
}

/** RFC 8785 over what was proposed, where the files have it whole. */
function intentOf(of: Case): Digest | undefined {
  const body = paramsBody(of);
  return body === undefined ? undefined : jcsDigest(intentIn(body));
}

function paramsBody(of: Case): SourceObject | undefined {
  const proposals = of.statements.filter(({ kind }) => kind === 'proposal');
  return first(byPrecedence(proposals), ({ body }) =>
    objectAt(body, 'action_params') === undefined ? undefined : body,
  );
}

function constraintOf(of: Case, decided: Decided | undefined): Constraint | undefined {
  if (decided?.decision !== 'CONSTRAIN') return undefined;
  const stated = first(decided.all, ({ body }) => constraintIn(body));
  if (stated !== undefined) return stated;
  const actions = of.statements.filter(({ kind, source }) => kind === 'executing' && source !== 'server');
  return first(actions, constraintOfAction);
}

/**
 * The params that may run. As proposed; under the draft's constraint those that replace them, without those that it disallows; under a
 * ratified constraint, which says what to do with them, `{"action_params", "constraint"}`. Of a log that has only the host's digest of the
 * params, that digest stands for them.
 */
function paramsOf(of: Case, decided: Decided | undefined): Digest | undefined {
  const params = objectAt(paramsBody(of), 'action_params');
  const constraint = constraintOf(of, decided);
  if (constraint?.modified !== undefined)
    return jcsDigest(constraint.modified.without(...constraint.disallowed));
  const hash = params === undefined ? loggedHash(of) : undefined;
  if (constraint === undefined) {
    if (params !== undefined) return jcsDigest(params);
    return hash === undefined ? undefined : hexDigest('cgf-py-64', hash);
  }
  if (params === undefined && hash === undefined) return undefined;
  const bound = new SourceObject(
    new Map<string, SourceValue>([
      ['type', constraint.type ?? null],
      ['params', constraint.params ?? null],
    ]),
  );
  return jcsDigest(
    new SourceObject(
      new Map<string, SourceValue>([
        params === undefined ? ['action_params_hash', hash!] : ['action_params', params],
        ['constraint', bound],
      ]),
    ),
  );
}

/** That digest where another file of the same call gives the same one: not where a constraint is put to a digest of the params. */
function comparableParamsOf(of: Case, decided: Decided | undefined): Digest | undefined {
  const isWhole = objectAt(paramsBody(of), 'action_params') !== undefined;
  const constraint = constraintOf(of, decided);
  return isWhole || constraint === undefined || constraint.modified !== undefined
    ? paramsOf(of, decided)
    : undefined;
}

/** The digest of the params in an adapter log; the server keys its own with a secret. */
function loggedHash(of: Case): string | undefined {
  const logged = of.statements.filter(({ kind, source }) => kind === 'proposal' && source === 'adapter');
  return first(logged, ({ body }) => {
    const hash = textAt(body, 'action_params_hash');
    return hash !== undefined && /^[0-9a-f]{16}$/.test(hash) ? hash : undefined;
  });
}

function hexDigest(alg: string, hex: string): Digest | undefined {
  const bytes = tryDecodeHex(hex);
  return bytes === undefined ? undefined : { alg, b64: encodeBase64url(bytes) };
}

function foreignDigestsOf(of: Case): readonly ForeignDigest[] {
  const digests: ForeignDigest[] = [];
  const proposals = of.statements.filter(({ kind }) => kind === 'proposal');
  for (const proposal of proposals) {
    const params = objectAt(proposal.body, 'action_params');
    const stated = textAt(proposal.body, 'action_params_hash');
    if (stated !== undefined) {
      const check = paramsHashCheck(proposals, proposal);
      const isServers = proposal.source === 'server';
      add(digests, 'action_params', {
        form: check?.form ?? (isServers ? 'not-verifiable' : 'py-json-spaced-ascii'),
        stated,
        check: check?.check ?? 'not_computed',
      });
    }
    for (const [of_, name] of [
      ['tool_args', 'tool_args_hash'],
      ['content', 'content_hash'],
      ['value', 'value_hash'],
      ['inputs', 'inputs_hash'],
    ] as const) {
      const digest = textAt(params, name);
      if (digest === undefined) continue;
      const check = name === 'tool_args_hash' ? argsHashCheck(params) : undefined;
      add(digests, of_, {
        form: check?.form ?? 'not-stated',
        stated: digest,
        check: check?.check ?? 'not_computed',
      });
    }
  }
  return digests;
}

function add(digests: ForeignDigest[], of: string, digest: Omit<ForeignDigest, 'of'>): void {
  const stated = factText(digest.stated);
  if (digests.length >= 16 || digests.some((each) => each.of === of && each.stated === stated)) return;
  digests.push({ of, ...digest, stated });
}

function checksOf(
  decision: string,
  isAllowed: boolean,
  bodies: readonly SourceObject[],
  constraint: Constraint | undefined,
): readonly Check[] {
  const result = isAllowed ? 'pass' : 'fail';
  const checks: Check[] = [{ check: 'cgf.decision', result, code: decision }];
  const rules = first(bodies, (body) => listAt(body, 'matched_rule_ids')) ?? [];
  for (const rule of rules.slice(0, MAX_CHECKS))
    if (typeof rule === 'string') checks.push({ check: 'cgf.rule', result, code: codeOf(rule) });
  if (decision === 'AUDIT') {
    const level = first(bodies, (body) => textAt(body, 'audit_level'));
    checks.push({ check: 'cgf.audit', result, ...(level === undefined ? {} : { code: codeOf(level) }) });
  }
  if (decision === 'CONSTRAIN') {
    const type = constraint?.type;
    checks.push({ check: 'cgf.constraint', result, ...(type === undefined ? {} : { code: codeOf(type) }) });
  }
  return checks;
}

/** When it began, as the outcome or the action says; never what would be after the item itself. */
function startOf({ outcome, action, primary }: Done): string | undefined {
  const stated = timeIn(outcome?.body, 'executed_at') ?? timeIn(action?.body, 'executed_at');
  if (stated === undefined || primary.time === undefined) return undefined;
  return compareTimestamps(stated, primary.time) > 0 ? undefined : stated;
}

function resourcesOf(
  of: Case,
  { outcome }: Done,
  decided: Decided | undefined,
): readonly { readonly kind: string; readonly reference: string }[] {
  const resources: { kind: string; reference: string }[] = [];
  for (const effect of (listAt(outcome?.body, 'side_effects') ?? []).slice(0, MAX_RESOURCES)) {
    if (typeof effect === 'string') resources.push({ kind: 'cgf.side_effect', reference: reference(effect) });
    const touched = textAt(effect, 'resource_touched');
    if (touched !== undefined)
      resources.push({
        kind: factText(textAt(effect, 'resource_type') || 'resource'),
        reference: reference(touched),
      });
  }
  if (valueAt(outcome?.body, 'quarantined') === true) {
    const target = textAt(constraintOf(of, decided)?.params, 'target_namespace');
    resources.push({ kind: 'cgf.quarantine', reference: reference(target ?? 'not stated') });
  }
  return resources.filter(({ kind, reference: text }) => kind !== '' && text !== '');
}

/** A reference that is too long is named by its digest. */
function reference(text: string): string {
  const whole = wellFormed(text);
  return whole.length <= 1024 ? whole : `sha-256:${sha256Digest(canonicalBytes(whole)).b64}`;
}

const FACTS = [
  'host_type',
  'version',
  'adapter_type',
  'action_type',
  'risk_tier',
  'reason_code',
  'fail_mode',
  'fail_mode_applied',
  'proceeding_with_fail',
  'stage',
  'error_type',
  'constraint_type',
  'audit_level',
  'fallback',
  'policy_tool_name',
  'tool_name',
  'capacity_axis',
  'side_effect_type',
] as const;
const FLAGS = ['executed', 'success', 'committed', 'quarantined', 'fail_mode_allow', 'audit_failed'] as const;

/** Ids, codes and flags; never texts, arguments or contents. */
function factsOf({ proposalId, decisionId, body, source }: Statement): JsonObject {
  const facts: Record<string, JsonValue> = { told_by: source };
  if (proposalId !== undefined) facts['proposal_id'] = factText(proposalId);
  if (decisionId !== undefined) facts['decision_id'] = factText(decisionId);
  Object.assign(
    facts,
    factTexts(FACTS, (name) => textAt(body, name)),
  );
  for (const name of FLAGS) {
    const flag = valueAt(body, name);
    if (typeof flag === 'boolean') facts[name] = flag;
  }
  const hash = textAt(body, 'action_params_hash');
  if (hash !== undefined) facts['action_params_hash'] = factText(hash);
  return facts;
}
function nameOf(type: string): string {
  const name = type.replace(/[^A-Za-z0-9_.-]+/g, '_').slice(0, 64);
  return name === '' ? 'unnamed' : name;
}

const BLOCKS: readonly Kind[] = ['blocked', 'deferred', 'rejected'];

function first<T, R>(list: readonly T[], of: (each: T) => R | undefined): R | undefined {
  for (const each of list) {
    const found = of(each);
    if (found !== undefined) return found;
  }
  return undefined;
}
