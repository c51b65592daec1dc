/** Calls of models: one for each assistant message, whichever source has it; a run's own sums are checked against them. */

import { addTo, amountOf, jcsDigest, numberAt, objectAt, textAt, valueAt } from '../shared/values.js';
import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { MeterVector } from '../../base/value/meter.js';
import { compareQuantities, formatQuantity, type Quantity, toRational } from '../../base/value/quantity.js';
import {
  addRationals,
  compareRationals,
  type Rational,
  subtractRationals,
} from '../../base/value/rational.js';
import type { ExecutionClaim, HostPlace } from '../shared/host.js';
import { wellFormed } from '../shared/names.js';
import {
  exceeds,
  excessOf,
  metersOf as metersOfAmounts,
  ONE_CALL,
  quantityOf,
  shownAmount,
  sumOf,
} from '../shared/usage.js';
import { type ClaimBase, type Context, hexOf, shortDigest, SYSTEM } from './context.js';
import type { Entry } from './entries.js';
import type { Code } from './rules.js';

/** Tokens by the host's own names of them. */
const TOKEN_NAMES = ['input', 'output', 'cacheRead', 'cacheWrite'] as const;
type TokenName = (typeof TOKEN_NAMES)[number];

/** Units of what is left out: that of the input is without the cache. */
const UNITS: Readonly<Record<TokenName, string>> = {
  input: 'tokens.input.uncached',
  output: 'tokens.output',
  cacheRead: 'tokens.input.cache_read',
  cacheWrite: 'tokens.input.cache_creation',
};

const HOST_MODELS = new Set(['delivery-mirror', 'gateway-injected']);

/** The prefix of the id of a call, by where it was found: a hook of each message, one of a whole turn, a transcript. */
const PLACES = { hook: 'llm:', turn: 'turn-llm:', transcript: 'transcript-llm:' } as const;

/** The id of a call, and those that it has where it is found elsewhere. */
function idsOf(
  key: string,
  place: keyof typeof PLACES,
): { readonly id: string; readonly sameAs: readonly string[] } {
  const own = PLACES[place];
  const others = Object.values(PLACES).filter((each) => each !== own);
  return { id: `${own}${key}`, sameAs: others.map((each) => `${each}${key}`) };
}

/** Of so many runs and turns any may be the one that a command line's sum is of. */
const MAX_COMPARED = 1_000;

type Sums = ReadonlyMap<TokenName, Rational>;

type MessageSource = 'recording' | 'transcript';

interface ModelCall {
  readonly source: MessageSource;
  readonly at: HostPlace;
  readonly usage: SourceObject;
  readonly ms: number;
}

/** What the sums of one run stand for. */
interface RunSum {
  readonly at: HostPlace;
  readonly sums: Sums;
  /** Milliseconds since 1970; not before those of the run before it. */
  readonly until: number;
  readonly since: number;
  /** Whether the recording has no messages of the run: its sum then is the execution. */
  readonly isOnly: boolean;
}

export class ModelCalls {
  readonly #context: Context;
  readonly #byKey = new Map<string, ModelCall>();
  readonly #byPrint = new Map<string, ModelCall>();
  /** Of recordings: since the last sum of the session's run. */
  readonly #pending = new Map<string, ModelCall[]>();
  readonly #runs = new Map<string, RunSum[]>();
  /** Of transcripts: by session, each turn since a user's message. */
  readonly #turns = new Map<string, ModelCall[][]>();

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * A message of a transcript, or about to be written to one. `none` where it is no assistant's or has no usage.
   *
   * @param isOfTurn - Whether it is one of the messages that a hook has at the end of a turn.
   */
  message(
    entry: Entry,
    base: ClaimBase,
    scope: string,
    message: SourceValue | undefined,
    source: MessageSource,
    isOfTurn = false,
  ): 'claimed' | 'repeated' | 'none' {
    const usage = objectAt(message, 'usage');
    if (!(message instanceof SourceObject) || textAt(message, 'role') !== 'assistant' || usage === undefined)
      return 'none';
    // The host's own copy of what it delivered or put in: no model was called.
    if (textAt(message, 'provider') === SYSTEM && HOST_MODELS.has(textAt(message, 'model') ?? ''))
      return 'none';
    const stamp = numberAt(message, 'timestamp');
    const call: ModelCall = { source, at: entry.at, usage, ms: Number(stamp ?? NaN) };
    const mark = stamp ?? shortDigest(message, entry.bytes);
    const key = `${scope}/${mark}`;
    const print = hexOf(
      [mark, jcsDigest(usage)?.b64, textAt(message, 'provider'), textAt(message, 'model')].join('\n'),
    );
    if (source === 'transcript') this.#turn(scope).push(call);
    const known = this.#byKey.get(key) ?? this.#foreign(print, source);
    if (known !== undefined && (known.source !== source || isSameUsage(known.usage, usage))) {
      this.#compareUsage(known, call, key);
      return 'repeated';
    }
    if (this.#isCovered(scope, call.ms)) return 'repeated';
    this.#byKey.set(key, call);
    if (!this.#byPrint.has(print)) this.#byPrint.set(print, call);
    if (source === 'recording') this.#pendingOf(scope).push(call);
    const place = source === 'transcript' ? source : isOfTurn ? 'turn' : 'hook';
    this.#claim({ ...base, ...idsOf(this.#context.uniqueId(key), place) }, message, usage);
    return 'claimed';
  }

  /** A user's message of a transcript: what follows is a turn of its own. */
  startTurn(scope: string): void {
    addTo(this.#turns, scope, []);
  }

  /** Whether the recording has messages of the session's run that continues. */
  hasPending(scope: string): boolean {
    return this.#pendingOf(scope).length > 0;
  }

  /**
   * What a run says that it used, at its end. `claimed` where nothing else says so.
   *
   * @param isCut - Whether the recording may have begun after the run: then messages of it are missing.
   */
  run(
    entry: Entry,
    base: ClaimBase,
    scope: string,
    event: SourceValue,
    until: number,
    isCut: boolean,
  ): 'claimed' | 'compared' | 'none' {
    const usage = objectAt(event, 'usage');
    if (usage === undefined) return 'none';
    const pending = this.#pendingOf(scope);
    const isOnly = pending.length === 0;
    const runs = this.#runs.get(scope) ?? [];
    this.#runs.set(scope, runs);
    const since = runs.at(-1)?.until ?? -Infinity;
    runs.push({ at: entry.at, sums: sumsOf([usage]), until: Math.max(since, until), since, isOnly });
    if (isOnly) {
      const last = objectAt(event, 'lastAssistant');
      const id = this.#context.uniqueId(`llm-run:${scope}/${textAt(event, 'runId') ?? '~'}`);
      // Its last message stands for all of them: a ledger may have them from the recording's first part.
      const stamp = numberAt(last, 'timestamp');
      const sameAs =
        stamp === undefined ? [] : Object.values(PLACES).map((each) => `${each}${scope}/${stamp}`);
      this.#claim({ ...base, id, sameAs }, event, usage, textAt(last, 'stopReason'));
      return 'claimed';
    }
    this.#pending.set(scope, []);
    this.#compare(entry.at, scope, sumsOf([usage]), [pending], [], isCut);
    return 'compared';
  }

  /** What the command line said at its end, of one run of a session. */
  cli(
    entry: Entry,
    base: ClaimBase | undefined,
    scope: string,
    agentMeta: SourceValue,
  ): 'claimed' | 'compared' | 'none' {
    const usage = objectAt(agentMeta, 'usage');
    if (usage === undefined) return 'none';
    const turns = (this.#turns.get(scope) ?? []).filter((turn) => turn.length > 0).slice(-MAX_COMPARED);
    const runs = (this.#runs.get(scope) ?? []).slice(-MAX_COMPARED);
    if (turns.length === 0 && runs.length === 0) {
      if (base === undefined) return 'none';
      const id = this.#context.uniqueId(`llm-cli:${scope}/${shortDigest(agentMeta, entry.bytes)}`);
      this.#claim({ ...base, id }, agentMeta, usage);
      return 'claimed';
    }
    // Of transcripts and recordings whichever has it; `total` is that of the last call there, so it is not compared.
    this.#compare(
      entry.at,
      scope,
      sumsOf([usage]),
      turns,
      runs.map(({ sums }) => sums),
    );
    return 'compared';
  }

  /** OC-10 of transcripts whose messages the recording has not: against the sums of runs. */
  finish(): void {
    for (const [scope, runs] of this.#runs) {
      const calls = [...(this.#turns.get(scope)?.flat() ?? [])].sort((a, b) => a.ms - b.ms);
      let from = 0;
      for (const run of runs) {
        const within: ModelCall[] = [];
        for (; from < calls.length && !(calls[from]!.ms > run.until); from++) within.push(calls[from]!);
        if (run.isOnly && within.length > 0) this.#compare(run.at, scope, run.sums, [within]);
      }
    }
  }

  /** Whether a run of which the recording has only the sum holds what was at that time. */
  #isCovered(scope: string, ms: number): boolean {
    const runs = this.#runs.get(scope) ?? [];
    let [from, to] = [0, runs.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (runs[middle]!.until < ms) from = middle + 1;
      else to = middle;
    }
    return runs[from]?.isOnly === true && ms > runs[from]!.since;
  }

  #turn(scope: string): ModelCall[] {
    if (!this.#turns.has(scope)) this.startTurn(scope);
    return this.#turns.get(scope)!.at(-1)!;
  }

  #pendingOf(scope: string): ModelCall[] {
    let pending = this.#pending.get(scope);
    if (pending === undefined) this.#pending.set(scope, (pending = []));
    return pending;
  }

  /** The same message of another source, whose session may be named otherwise. */
  #foreign(print: string, source: MessageSource): ModelCall | undefined {
    const call = this.#byPrint.get(print);
    return call?.source === source ? undefined : call;
  }

  #compareUsage(known: ModelCall, call: ModelCall, key: string): void {
    if (isSameUsage(known.usage, call.usage)) return;
    this.#context.find('USAGE_DIFFERS', call.at, {
      about: key,
      expected: textOf(sumsOf([known.usage])),
      actual: textOf(sumsOf([call.usage])),
      related: [known.at],
    });
  }

  #compare(
    at: HostPlace,
    scope: string,
    stated: Sums,
    groups: readonly (readonly ModelCall[])[],
    also: readonly Sums[] = [],
    isCut = false,
  ): void {
    const found = [...also, ...groups.map((calls) => sumsOf(calls.map(({ usage }) => usage)))];
    if (found.some((sums) => agree(stated, sums))) return;
    const [only, ...others] = found;
    if (only !== undefined && others.length === 0)
      this.#context.builder.leaveOut({ at, reason: 'TOKEN_SUM_DIFFERS', meters: restOf(stated, only) });
    const isPart = isCut && found.every((sums) => isWithin(sums, stated));
    this.#context.find('TOKEN_SUM_DIFFERS', at, {
      about: scope,
      expected: found.map(textOf).join(' or ').slice(0, 400),
      actual: textOf(stated),
      related: groups
        .at(-1)
        ?.slice(0, 16)
        .map((call) => call.at),
      weight: isPart ? 'warning' : 'invalid',
    });
  }

  /** Usage of an item that nothing can be made of, left out with its amounts. */
  leaveOut(at: HostPlace, reason: string, message: SourceValue | undefined): void {
    const usage = objectAt(message, 'usage');
    if (usage === undefined || textAt(message, 'role') !== 'assistant') return;
    this.#context.builder.leaveOut({ at, reason, meters: metersOf(usage, false, layoutOf(usage)) });
  }

  /** The total of one call against its parts, of tokens and of costs. */
  #checkTotal(
    { at, id }: Pick<ClaimBase, 'at'> & { readonly id: string },
    usage: SourceObject,
    layout: Layout,
  ): void {
    const { cache, other } = layout;
    const find = (code: Code, expected: string, actual: string): void => {
      this.#context.find(code, at, { about: id, expected, actual });
    };
    if (cache === 'within')
      find('CACHE_WITHIN_INPUT', 'tokens of the cache beside the input', 'the total has them within it');
    if (other !== undefined) {
      const { sum, total } = other;
      find('TOTAL_DIFFERS', `totalTokens ${shownAmount(sum)}`, shownAmount(total));
      const rest = sum === undefined ? total : excessOf(total, sum);
      if (rest !== undefined) {
        const meters = [{ unit: 'tokens', amount: rest }];
        this.#context.builder.leaveOut({ at, reason: 'TOTAL_DIFFERS', meters });
      }
    }
    const [cost, parts] = [amountOf(numberAt(usage, 'cost', 'total')), sumOf(costPartsOf(usage))];
    if (cost !== undefined && parts !== undefined && !isNear(cost, parts))
      find('COST_TOTAL_DIFFERS', `cost ${shownAmount(parts)}`, shownAmount(cost));
  }

  #claim(
    base: ClaimBase & { readonly id: string; readonly sameAs?: readonly string[] },
    said: SourceValue,
    usage: SourceObject,
    stop = textAt(said, 'stopReason'),
  ): void {
    const isOneCall = Object.values(PLACES).some((each) => base.id.startsWith(each));
    this.#checkTotal(base, usage, isOneCall ? layoutOf(usage) : BESIDE);
    const claim: ExecutionClaim = {
      ...base,
      kind: 'execution',
      ...modelCallOf(said, usage, stop, isOneCall),
      outputDigest: jcsDigest(valueAt(said, 'content') ?? valueAt(said, 'assistantTexts') ?? null),
    };
    this.#context.builder.claim(claim);
    this.#context.builder.observe({
      at: base.at,
      callIds: [base.id, ...(base.sameAs ?? [])],
      tool: claim.tool,
      outcome: claim.outcome,
      meters: claim.meters,
      occurredAt: base.occurredAt,
    });
    this.#context.find('MODEL_CALL_NOT_DECIDED', base.at, { about: base.id });
  }
}

/** What a call of a model was and used, by what the host says of it. */
export function modelCallOf(
  said: SourceValue,
  usage: SourceObject,
  stop: string | undefined,
  isOneCall: boolean,
): Pick<ExecutionClaim, 'tool' | 'meters' | 'meterBasis' | 'outcome' | 'errorCode' | 'modelId' | 'provider'> {
  const [provider, model] = [textAt(said, 'provider'), textAt(said, 'model')];
  return {
    tool: `llm.${provider ?? ''}/${model ?? ''}`,
    meters: metersOf(usage, isOneCall, isOneCall ? layoutOf(usage) : BESIDE),
    meterBasis: 'reported',
    ...outcomeOf(stop),
    ...name('modelId', model),
    ...name('provider', provider),
  };
}

/** How the cache's tokens stand to the input; what the total says where it is neither. */
interface Layout {
  readonly cache: 'beside' | 'within';
  /** The sum of the parts, where the total is another. */
  readonly other?: { readonly sum: Quantity | undefined; readonly total: Quantity };
}

const BESIDE: Layout = { cache: 'beside' };

/** The cache's tokens are beside those of the input, unless the total can only be that of input and output. */
function layoutOf(usage: SourceObject): Layout {
  const [input, output, cacheRead, cacheWrite, total] = [...TOKEN_NAMES, 'totalTokens'].map((token) =>
    amountOf(numberAt(usage, token)),
  );
  if (total === undefined) return BESIDE;
  const sum = sumOf([input, output, cacheRead, cacheWrite]);
  if (sum !== undefined && compareQuantities(sum, total) === 0) return BESIDE;
  const [without, cache] = [sumOf([input, output]), sumOf([cacheRead, cacheWrite])];
  const isWithin =
    input !== undefined &&
    without !== undefined &&
    compareQuantities(without, total) === 0 &&
    !exceeds(cache, input);
  return isWithin ? { cache: 'within' } : { cache: 'beside', other: { sum, total } };
}

const MAX_NAME = 256;

function name(member: 'modelId' | 'provider', text: string | undefined): object {
  return text === undefined || text === '' ? {} : { [member]: wellFormed(text).slice(0, MAX_NAME) };
}

function outcomeOf(stopReason: string | undefined): Pick<ExecutionClaim, 'outcome' | 'errorCode'> {
  if (stopReason === 'error') return { outcome: 'failure', errorCode: 'LLM_ERROR' };
  if (stopReason === 'aborted') return { outcome: 'failure', errorCode: 'LLM_ABORTED' };
  return { outcome: stopReason === undefined ? 'unknown' : 'success' };
}

function metersOf(usage: SourceObject, isOneCall: boolean, { cache }: Layout = BESIDE): MeterVector {
  const [input, output, cacheRead, cacheWrite] = TOKEN_NAMES.map((token) => amountOf(numberAt(usage, token)));
  return metersOfAmounts({
    calls: isOneCall ? ONE_CALL.amount : undefined,
    // The cache's tokens are beside those of the input here, and among them elsewhere; some providers' are among them here too.
    'tokens.input': cache === 'within' ? input : sumOf([input, cacheRead, cacheWrite]),
    'tokens.output': output,
    'tokens.input.cache_read': cacheRead,
    'tokens.input.cache_creation': cacheWrite,
    usd: costOf(usage),
  });
}

/** What it cost: the total, and the sum of the parts where no total is stated. */
function costOf(usage: SourceObject): Quantity | undefined {
  return amountOf(numberAt(usage, 'cost', 'total')) ?? sumOf(costPartsOf(usage));
}

function costPartsOf(usage: SourceObject): readonly (Quantity | undefined)[] {
  return TOKEN_NAMES.map((token) => amountOf(numberAt(usage, 'cost', token)));
}

/** Of a cost, by which its parts may differ from it: they are sums of doubles. */
const COST_TOLERANCE = 1e-6;

function isNear(one: Quantity, other: Quantity): boolean {
  const [a, b] = [one, other].map((each) => Number(formatQuantity(each))) as [number, number];
  return Math.abs(a - b) <= COST_TOLERANCE * Math.max(Math.abs(a), Math.abs(b));
}

function sumsOf(usages: readonly SourceObject[]): Sums {
  const sums = new Map<TokenName, Rational>();
  for (const usage of usages) {
    for (const token of TOKEN_NAMES) {
      const amount = amountOf(numberAt(usage, token));
      if (amount === undefined) continue;
      const before = sums.get(token);
      sums.set(token, before === undefined ? toRational(amount) : addRationals(before, toRational(amount)));
    }
  }
  return sums;
}

/** Whether what both state is the same. */
function agree(a: Sums, b: Sums): boolean {
  return [...a].every(([token, amount]) => {
    const other = b.get(token);
    return other === undefined || compareRationals(amount, other) === 0;
  });
}

/** Whether what both state is at most that of the other. */
function isWithin(part: Sums, whole: Sums): boolean {
  return [...part].every(([token, amount]) => {
    const other = whole.get(token);
    return other === undefined || compareRationals(amount, other) <= 0;
  });
}

/** What the first has beyond the second, of what both state. */
function restOf(stated: Sums, found: Sums): MeterVector {
  return [...stated].flatMap(([token, amount]) => {
    const other = found.get(token);
    if (other === undefined || compareRationals(amount, other) <= 0) return [];
    const rest = quantityOf(subtractRationals(amount, other));
    return rest === undefined ? [] : [{ unit: UNITS[token], amount: rest }];
  });
}

function isSameUsage(a: SourceObject, b: SourceObject): boolean {
  const [x, y] = [sumsOf([a]), sumsOf([b])];
  return agree(x, y) && agree(y, x);
}

function textOf(sums: Sums): string {
  return [...sums].map(([token, { n, d }]) => `${token} ${n}${d === 1n ? '' : `/${d}`}`).join(', ');
}
