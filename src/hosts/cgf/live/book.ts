/**
 * What a ledger says of adapters and proposals: the newest of them in memory, read from the end of the ledger, and kept current with what
 * other writers append. Older ones are found by their request key.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/json/value.js';
import { toDigestText } from '../../../base/value/digest.js';
import { keyOfCall } from '../../../gate/request-key.js';
import type { LiveLedger } from '../../../log/agent/live-ledger.js';
import { APPROVAL_REQUIRED } from '../../../rules/verify/approvals.js';
import { openStoreSource } from '../../../log/store/open-store.js';
import { readRecords } from '../../../log/read/read-records.js';
import { type Decision, isDecision } from '../vocabulary.js';
import type { Answer } from './answer.js';

export const REGISTERED_TYPE = 'x.cgf.adapter_registered';
/** How many records at the end of a ledger are read again. */
const MAX_READ_BACK = 10_000;
/** The most proposals, and the most adapters, in memory. */
const MAX_KNOWN = 50_000;
export const MAX_ADAPTERS = 4_096;

/** The names of checks that hold what CGF says of a proposal. A rule, a version and an adapter stand in the name: codes have no small letters. */
const CHECK = {
  proposal: 'cgf.proposal:',
  adapter: 'cgf.adapter:',
  rule: 'cgf.rule:',
  policy: 'cgf.policy:',
  tier: 'cgf.risk_tier',
  decision: 'cgf.decision',
  constraint: 'cgf.constraint',
  audit: 'cgf.audit',
} as const;
const MAX_CHECK = 64;

/** To read what others have appended it is enough to ask for any call. */
const [NOBODY, NOTHING] = ['service:cgf', 'none'];
const NO_RULE = 'POLICY_MATCH';

interface Check {
  readonly check: string;
  readonly result: 'pass' | 'fail';
  readonly code?: string;
}

export interface Known {
  readonly key: string;
  readonly adapterId: string;
  readonly principal: string;
  /** The base64url of the proposal's digest. */
  readonly proposal: string;
  readonly actionType: string;
  readonly riskTier: string;
  /** The base64url of what may run. */
  readonly params: string;
  /** `sha-256:…` */
  readonly authorization: string;
  readonly decision: Decision;
  readonly code: string;
  readonly rule: string | undefined;
  readonly version: string | undefined;
  readonly constraintType: string | undefined;
  readonly isAllowed: boolean;
  /** Until when it may be acted upon. */
  readonly expires: string | undefined;
  readonly at: string;
  /** What was answered, where this process did. */
  readonly answer?: Answer | undefined;
  readonly ended?: Ended | undefined;
}

export interface Ended {
  /** False for a reservation that was given back. */
  readonly executed: boolean;
  /** The base64url of the report's digest. */
  readonly report: string | undefined;
  readonly success: boolean;
  readonly at: string;
  readonly durationMs: string | undefined;
}

export interface Adapter {
  readonly id: string;
  readonly principal: string;
  /** When it registered, or asked last, in milliseconds since 1970. */
  readonly usedAt: number;
}

/** What is recorded of a proposal besides its decision. */
export interface ProposalFacts {
  readonly proposal: string;
  readonly adapterId: string;
  readonly actionType: string;
  readonly riskTier: string;
  readonly verdict?:
    | {
        readonly decision: Decision;
        readonly code: string;
        readonly rule: string | undefined;
        readonly version: string | undefined;
        readonly constraint?: { readonly type: string } | undefined;
      }
    | undefined;
}

/** As checks of the decision, at most 8. @param codeOf - Makes codes of names */
export function checksOf(
  { proposal, adapterId, actionType, riskTier, verdict }: ProposalFacts,
  codeOf: (name: string) => string,
): Check[] {
  const pass = (check: string, code?: string): Check => ({
    check: check.slice(0, MAX_CHECK),
    result: 'pass',
    ...(code === undefined ? {} : { code }),
  });
  const checks = [
    pass(`${CHECK.proposal}${proposal}`, codeOf(actionType)),
    pass(`${CHECK.adapter}${adapterId}`),
    pass(CHECK.tier, codeOf(riskTier)),
  ];
  if (verdict === undefined) return checks;
  const { decision, code, rule, version, constraint } = verdict;
  checks.push(pass(CHECK.decision, decision));
  if (rule !== undefined) checks.push(pass(`${CHECK.rule}${rule}`, code));
  if (version !== undefined) checks.push(pass(`${CHECK.policy}${version}`));
  if (decision === 'AUDIT') checks.push(pass(CHECK.audit, 'BASIC'));
  if (constraint !== undefined) checks.push(pass(CHECK.constraint, codeOf(constraint.type)));
  return checks;
}

/** The newest proposals and adapters of a ledger. */
export class Book {
  readonly ledger: LiveLedger;
  /** Rejects where the ledger cannot be read. */
  readonly ready: Promise<void>;
  readonly adapters = new Map<string, Adapter>();
  readonly #isPlain: boolean;
  readonly #known = new Map<string, Known>();
  /** Keys by authorization. */
  readonly #keys = new Map<string, string>();
  readonly #closing = new AbortController();
  #hasFailed = false;

  /** @param isPlain - As the face: what a DEFER is answered as */
  constructor(ledger: LiveLedger, isPlain: boolean) {
    this.ledger = ledger;
    this.#isPlain = isPlain;
    void this.#follow();
    this.ready = this.#readBack();
    this.ready.catch(() => (this.#hasFailed = true));
  }

  close(): void {
    this.#closing.abort();
  }

  /** Whether the ledger could not be read: another one has to try again. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  get size(): number {
    return this.#known.size;
  }

  /** What is in memory of a proposal. */
  peek(proposalId: string): Known | undefined {
    return this.#known.get(keyOfCall(undefined, proposalId));
  }

  /** The same, with what the ledger has read of other writers. */
  async hear(proposalId: string): Promise<Known | undefined> {
    await new Promise((resolve) => setImmediate(resolve));
    return this.peek(proposalId);
  }

  /** What is known of a proposal, by other writers too. @param principal - Whose it would be */
  async find(proposalId: string, principal: string | undefined): Promise<Known | undefined> {
    const found = this.peek(proposalId);
    if (found !== undefined) return found;
    const key = keyOfCall(undefined, proposalId);
    // It reads what others have appended, too.
    const { open, spent, released } =
      principal === undefined ? {} : await this.ledger.findCall(principal, key);
    const told = await this.hear(proposalId);
    const id = open?.authorizationId ?? spent ?? released;
    if (told !== undefined || id === undefined || !this.ledger.isInFiles) return told;
    return this.#readOld(id);
  }

  note(known: Known): void {
    // Later ones of a key are tries of it, which are never made.
    this.#known.delete(known.key);
    this.#known.set(known.key, known);
    this.#keys.set(known.authorization, known.key);
    if (this.#known.size <= MAX_KNOWN) return;
    const [oldest] = this.#known.values();
    if (oldest === undefined) return;
    this.#known.delete(oldest.key);
    this.#keys.delete(oldest.authorization);
  }

  end(authorization: string, ended: Ended): void {
    const known = this.#known.get(this.#keys.get(authorization) ?? '');
    if (known !== undefined) this.#known.set(known.key, { ...known, ended });
  }

  /** A registered adapter, by other writers too. */
  async findAdapter(id: string): Promise<Adapter | undefined> {
    const found = this.adapters.get(id);
    if (found !== undefined) return found;
    await this.ledger.findCall(NOBODY, NOTHING);
    await new Promise((resolve) => setImmediate(resolve));
    return this.adapters.get(id);
  }

  noteAdapter(adapter: Adapter): void {
    this.adapters.delete(adapter.id);
    this.adapters.set(adapter.id, adapter);
    const [oldest] = this.adapters.keys();
    if (this.adapters.size > MAX_ADAPTERS && oldest !== undefined) this.adapters.delete(oldest);
  }

  /** The event of a decision, as its record has it; undefined for a ledger in a store. */
  async eventOf({ authorization }: Pick<Known, 'authorization'>): Promise<JsonObject | undefined> {
    if (!this.ledger.isInFiles) return undefined;
    return (await this.ledger.view().findRecord(authorization)).event;
  }

  /** How a proposal ended, by what the ledger has of it. */
  async readEnd({ authorization, key }: Known): Promise<Ended | undefined> {
    if (!this.ledger.isInFiles) return this.#known.get(key)?.ended;
    return (await this.#readOld(authorization))?.ended;
  }

  async #readOld(id: string): Promise<Known | undefined> {
    const { event, executions } = await this.ledger.view().explainEvent(id);
    const known = readKnown(event, id, this.#isPlain);
    // The last: what was given back may have run all the same.
    const execution = executions.at(-1);
    const ended = execution && endOf(execution.event);
    return known && { ...known, ended };
  }

  async #readBack(): Promise<void> {
    if (!this.ledger.isInFiles) return;
    const { path } = this.ledger;
    const { signal } = this.#closing;
    const last = await this.ledger.view({ signal }).listLast(MAX_READ_BACK);
    const records = last ?? readRecords(await openStoreSource(path), { signal });
    for await (const { event, eventId } of records) this.#take(event, eventId);
  }

  async #follow(): Promise<void> {
    try {
      for await (const record of this.ledger.watch({ signal: this.#closing.signal, limit: MAX_READ_BACK }))
        if ('event' in record) this.#take(record.event, record.eventId);
    } catch {
      // A ledger that cannot be read is reported by what is asked of it.
    }
  }

  #take(event: JsonObject, eventId: string): void {
    const { event_type: type } = event;
    if (type === 'authorization') {
      const known = readKnown(event, eventId, this.#isPlain);
      if (known === undefined || this.#known.get(known.key)?.authorization === eventId) return;
      this.note(known);
      const { adapterId: id, principal, at } = known;
      const usedAt = Math.max(this.adapters.get(id)?.usedAt ?? 0, Date.parse(at));
      this.noteAdapter({ id, principal, usedAt });
    } else if (type === 'execution') {
      const authorization = idIn(event['auth_event_id']);
      if (authorization !== undefined && this.#keys.has(authorization)) this.end(authorization, endOf(event));
    } else if (type === REGISTERED_TYPE) {
      const [id, principal, at] = ['adapter_id', 'principal_id', 'occurred_at'].map((name) => event[name]);
      if (typeof id === 'string' && typeof principal === 'string' && typeof at === 'string')
        this.noteAdapter({ id, principal, usedAt: Date.parse(at) });
    }
  }
}

/** A decision about a proposal, by its event; undefined for any other. */
function readKnown(event: JsonObject, eventId: string, isPlain: boolean): Known | undefined {
  const {
    checks,
    authorization,
    principal_id: principal,
    decision,
    decision_code: code,
    occurred_at: at,
  } = event;
  const action = isJsonObject(authorization) ? authorization['action'] : undefined;
  const key = isJsonObject(action) ? action['request_key'] : undefined;
  if (!Array.isArray(checks) || !isJsonObject(action) || typeof key !== 'string') return undefined;
  const named = new Map<string, { readonly rest: string; readonly code: string }>();
  for (const check of checks as readonly JsonObject[]) {
    const { check: name, code: own } = check;
    if (typeof name !== 'string') continue;
    const colon = name.indexOf(':') + 1;
    const [head, rest] = colon === 0 ? [name, ''] : [name.slice(0, colon), name.slice(colon)];
    named.set(head, { rest, code: typeof own === 'string' ? own : '' });
  }
  const proposal = named.get(CHECK.proposal);
  if (proposal === undefined) return undefined;
  const said = named.get(CHECK.decision)?.code;
  const rule = named.get(CHECK.rule);
  const type = named.get(CHECK.constraint)?.code.toLowerCase();
  return knownOf(
    {
      proposal: proposal.rest,
      adapterId: named.get(CHECK.adapter)?.rest ?? '',
      actionType: proposal.code.toLowerCase(),
      riskTier: named.get(CHECK.tier)?.code.toLowerCase() ?? 'medium',
      verdict: isDecision(said)
        ? {
            decision: said,
            code: rule?.code ?? NO_RULE,
            rule: rule?.rest,
            version: named.get(CHECK.policy)?.rest,
            constraint: type === undefined ? undefined : { type },
          }
        : undefined,
    },
    {
      key,
      principal: principal as string,
      isAllowed: decision === 'allow' || named.has('shadow'),
      code: code as string,
      params: b64In(action['tool_params_digest']) ?? '',
      authorization: eventId,
      expires: action['expires_at'] as string | undefined,
      at: at as string,
    },
    isPlain,
  );
}

interface GateSaid extends Pick<
  Known,
  'expires' | 'key' | 'principal' | 'isAllowed' | 'params' | 'authorization' | 'at'
> {
  readonly code: string;
}

/** A proposal with its decision, for adapters. The rule is named where it is what decided. */
export function knownOf(facts: ProposalFacts, said: GateSaid, isPlain: boolean): Known {
  const { verdict, ...rest } = facts;
  const { isAllowed, code } = said;
  const isDeferred = !isAllowed && code === APPROVAL_REQUIRED;
  const isByRule =
    verdict !== undefined &&
    (isAllowed || verdict.code === code || (isDeferred && verdict.decision === 'DEFER'));
  const isBound = verdict?.decision === 'CONSTRAIN' || verdict?.decision === 'AUDIT';
  const allowed: Decision = isBound ? verdict.decision : 'ALLOW';
  return {
    ...rest,
    ...said,
    decision: isAllowed ? allowed : isDeferred && !isPlain ? 'DEFER' : 'BLOCK',
    code: isByRule ? verdict.code : code,
    rule: isByRule ? verdict.rule : undefined,
    version: isByRule ? verdict.version : undefined,
    constraintType: verdict?.constraint?.type,
  };
}

function endOf(event: JsonObject): Ended {
  const { outcome, output_digest: digest, error_code: code, started_at: began, ended_at: ended } = event;
  const used = event['meter_used'];
  const time = (Array.isArray(used) ? (used as readonly JsonObject[]) : []).find(
    ({ unit }) => unit === 'time.ms',
  );
  return {
    executed: !(outcome === 'failure' && code === 'ABANDONED'),
    report: b64In(digest),
    success: outcome === 'success',
    at: (began ?? ended) as string,
    durationMs: amountText(time?.['amount']),
  };
}

function amountText(amount: JsonValue | undefined): string | undefined {
  if (!isJsonObject(amount)) return undefined;
  const { t, v, m, s } = amount;
  if (t === 'int' && typeof v === 'string') return v;
  return t === 'dec' && typeof m === 'string' && typeof s === 'number'
    ? String(Number(`${m}e-${s}`))
    : undefined;
}

function b64In(digest: JsonValue | undefined): string | undefined {
  const b64 = isJsonObject(digest) ? digest['b64'] : undefined;
  return typeof b64 === 'string' ? b64 : undefined;
}

function idIn(digest: JsonValue | undefined): string | undefined {
  const b64 = b64In(digest);
  return b64 === undefined ? undefined : toDigestText(b64);
}
