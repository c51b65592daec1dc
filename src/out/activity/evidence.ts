/**
 * Use that evidence states: amounts in events of extension types, as imports keep what other systems logged. Nothing authorizes
 * or accounts for them, and no sum of the report has them. They are reported apart, by the names that their source gives them.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { formatExactly } from '../../base/value/format-rational.js';
import { isNegativeQuantity, type Quantity, quantityProblem, toRational } from '../../base/value/quantity.js';
import {
  addRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import type { ActivityEvidence } from '../../format/schema/generated/types.js';
import { validateQuantity } from '../../format/schema/validators.js';

/** Types that are listed, and names of amounts of each. Further ones are counted as left out. */
export const MAX_EVIDENCE_TYPES = 100;
export const MAX_EVIDENCE_NAMES = 64;
/** Messages and spans that are remembered, to count repeated and nested statements once. Later ones count as stated. */
const MAX_KNOWN_STATEMENTS = 100_000;

type Amounts = ReadonlyMap<string, Rational>;

/** What events of one type state. */
class Stated {
  records = 0;
  leftOut = 0;
  readonly sums = new Map<string, Rational>();

  add(amounts: Amounts): void {
    for (const [name, amount] of amounts) {
      const sum = this.sums.get(name);
      const isFull = sum === undefined && this.sums.size >= MAX_EVIDENCE_NAMES;
      const next = addRationals(sum ?? ZERO, amount);
      if (isFull || exceedsDenominatorLimit(next)) this.leftOut += 1;
      else this.sums.set(name, next);
    }
  }
}

interface StatedSpan {
  readonly of: Stated;
  readonly amounts: Amounts;
}

export class Evidence {
  readonly #byType = new Map<string, Stated>();
  readonly #beyond = new Stated();
  /** Of each message what it was last said to have used: a log writes one several times while it grows. */
  readonly #messages = new Map<string, Amounts>();
  /** The span above each span, and what those say that state anything. */
  readonly #parents = new Map<string, string | undefined>();
  readonly #spans = new Map<string, StatedSpan>();

  /** To be called with each selected event of an extension type. */
  take(event: JsonObject): void {
    const type = textOf(event['event_type']) ?? '';
    const span = spanOf(event);
    if (span !== undefined && this.#parents.size < MAX_KNOWN_STATEMENTS)
      this.#parents.set(span.id, span.parent);
    const amounts = amountsOf(event['amounts']);
    if (amounts === undefined) return;
    const of = this.#statedOf(type);
    of.records += 1;
    if (span !== undefined && this.#parents.has(span.id)) {
      this.#spans.set(span.id, { of, amounts });
      return;
    }
    const message = textOf(event['message_id']);
    if (message === undefined) {
      of.add(amounts);
      return;
    }
    const key = `${type}\n${message}`;
    const before = this.#messages.get(key);
    of.add(before === undefined ? amounts : growth(before, amounts));
    if (before !== undefined || this.#messages.size < MAX_KNOWN_STATEMENTS)
      this.#messages.set(key, new Map([...(before ?? []), ...amounts]));
  }

  /** In the order of the types' names; empty where no evidence states an amount. */
  list(): ActivityEvidence[] {
    const below = this.#namesBelow();
    for (const [id, { of, amounts }] of this.#spans) {
      const names = below.get(id);
      of.add(new Map([...amounts].filter(([name]) => names?.has(name) !== true)));
    }
    this.#spans.clear();
    return [...this.#byType]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([type, stated]) => ({
        event_type: type,
        records: stated.records,
        amounts: [...stated.sums]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, amount]) => ({ name, amount: formatExactly(amount) })),
        ...(stated.leftOut === 0 ? {} : { left_out: stated.leftOut }),
      }));
  }

  /** Records of further types. */
  get beyond(): number {
    return this.#beyond.records;
  }

  #statedOf(type: string): Stated {
    let stated = this.#byType.get(type);
    if (stated !== undefined) return stated;
    if (this.#byType.size >= MAX_EVIDENCE_TYPES) return this.#beyond;
    this.#byType.set(type, (stated = new Stated()));
    return stated;
  }

  /** What the spans below each span state: an outer one only sums that up, where it states the same. */
  #namesBelow(): ReadonlyMap<string, ReadonlySet<string>> {
    const below = new Map<string, Set<string>>();
    for (const [id, { amounts }] of this.#spans) {
      const names = [...amounts.keys()];
      const seen = new Set([id]);
      for (let at = this.#parents.get(id); at !== undefined && !seen.has(at); at = this.#parents.get(at)) {
        seen.add(at);
        let of = below.get(at);
        if (of === undefined) below.set(at, (of = new Set()));
        const before = of.size;
        for (const name of names) of.add(name);
        // Those above have them already, but where a span comes below two.
        if (of.size === before) break;
      }
    }
    return below;
  }
}

/** The increase of each amount; a name that is not stated again keeps its amount. */
function growth(before: Amounts, now: Amounts): Amounts {
  return new Map(
    [...now].map(([name, amount]) => [name, subtractRationals(amount, before.get(name) ?? ZERO)]),
  );
}

/** The amounts of an event, where it has a member `amounts` with names and quantities that are not negative. */
function amountsOf(value: JsonValue | undefined): Amounts | undefined {
  if (!isJsonObject(value)) return undefined;
  const amounts = new Map<string, Rational>();
  for (const [name, stated] of Object.entries(value)) {
    if (!validateQuantity(stated)) continue;
    const amount = stated as unknown as Quantity;
    if (quantityProblem(amount) !== undefined || isNegativeQuantity(amount)) continue;
    amounts.set(name, toRational(amount));
  }
  return amounts.size === 0 ? undefined : amounts;
}

function spanOf(event: JsonObject): { readonly id: string; readonly parent: string | undefined } | undefined {
  const [trace, span] = [textOf(event['trace_id']), textOf(event['span_id'])];
  if (trace === undefined || span === undefined) return undefined;
  const parent = textOf(event['parent_span_id']);
  return { id: `${trace}/${span}`, parent: parent === undefined ? undefined : `${trace}/${parent}` };
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
