/** What an execution may do, as Clasper grants it: capabilities, steps, cost, an end. Capabilities are not tools: which tool needs which is told apart. */

import type { SourceObject, SourceValue } from '../../base/json/source-json.js';
import type { Meter } from '../../base/value/meter.js';
import { compareQuantities, type Quantity } from '../../base/value/quantity.js';
import { parseTimestamp } from '../../base/value/timestamp.js';
import { isToolPattern } from '../../base/value/tool.js';
import type { Bounds } from '../../format/schema/generated/types.js';
import { toolOf } from '../shared/names.js';
import { exceeds } from '../shared/usage.js';
import { amountOf, listAt, numberAt, objectAt, textAt, timeOfText } from '../shared/values.js';

/** The tool under which cost and metrics of a whole execution are recorded. */
export const EXECUTION_TOOL = 'clasper.execution';
const MAX_PATTERNS = 1024;

export interface Scope {
  readonly capabilities: ReadonlySet<string>;
  /** Tools that the request named beside its capabilities. */
  readonly tools: readonly string[];
  readonly maxSteps: Quantity | undefined;
  /** Undefined where it is 0, which the host writes where no budget is set. */
  readonly maxCost: Quantity | undefined;
  readonly expiresAt: string | undefined;
}

/** Reads `{capabilities, max_steps, max_cost, expires_at}`. */
export function readScope(scope: SourceObject, tools: readonly string[] = []): Scope {
  const maxCost = amountOf(numberAt(scope, 'max_cost'));
  return {
    capabilities: new Set(textsAt(scope, 'capabilities')),
    tools,
    maxSteps: amountOf(numberAt(scope, 'max_steps')),
    maxCost: maxCost === undefined || compareQuantities(maxCost, ZERO) === 0 ? undefined : maxCost,
    expiresAt: timeOfText(textAt(scope, 'expires_at')),
  };
}

const ZERO: Quantity = { t: 'int', v: '0' };

/** The texts of a list. */
export function textsAt(value: SourceValue | undefined, ...path: readonly string[]): string[] {
  return (listAt(value, ...path) ?? []).filter((element) => typeof element === 'string');
}

/** In what `wider` allows more than `scope`; undefined where it does not. */
export function widening(scope: Scope, wider: Scope): string | undefined {
  const more = firstBeyond(wider.capabilities, scope.capabilities);
  if (more !== undefined) return `capability ${more}`;
  if (exceeds(wider.maxSteps, scope.maxSteps)) return 'max_steps';
  if (exceeds(wider.maxCost, scope.maxCost)) return 'max_cost';
  return undefined;
}

/** The first of some capabilities that is none of those. */
export function firstBeyond(some: Iterable<string>, those: ReadonlySet<string>): string | undefined {
  for (const name of some) if (!those.has(name)) return name;
  return undefined;
}

/** Whether an instant is at or after another; false where one is not stated. */
export function isNotBefore(time: string | undefined, end: string | undefined): boolean {
  return time !== undefined && end !== undefined && parseTimestamp(time) >= parseTimestamp(end);
}

/** Which capabilities there are and which tools need them, as far as the files say. */
export class Capabilities {
  readonly #known = new Set<string>();
  readonly #byTool = new Map<string, readonly string[]>();

  note(names: readonly string[]): void {
    for (const name of names) this.#known.add(name);
  }

  /** `{"browser.navigate": ["browser"]}`: which capabilities each tool needs. */
  noteTools(map: SourceObject | undefined): void {
    for (const tool of map?.keys() ?? []) {
      const needed = textsAt(map, tool);
      this.#byTool.set(tool, needed);
      this.note(needed);
    }
  }

  /** The capabilities that a tool needs: those that are registered for it, the one of its name, the one that it lies below. */
  neededBy(tool: string): readonly string[] | undefined {
    const registered = this.#byTool.get(tool);
    if (registered !== undefined) return registered;
    const known = prefixesOf(tool).find((name) => this.#known.has(name));
    return known === undefined ? undefined : [known];
  }

  /** Whether a tool is within a scope; undefined where nothing says which capability it needs. */
  isWithin(scope: Scope, tool: string): boolean | undefined {
    if (scope.tools.includes(tool)) return true;
    if (prefixesOf(tool).some((name) => scope.capabilities.has(name))) {
      const registered = this.#byTool.get(tool);
      return registered === undefined || registered.every((name) => scope.capabilities.has(name));
    }
    return this.neededBy(tool)?.every((name) => scope.capabilities.has(name));
  }

  /** The scope as bounds of a grant; undefined where it limits nothing that a ledger could check a sum against. */
  boundsOf(scope: Scope): Bounds | undefined {
    const caps: Meter[] = [];
    if (scope.maxSteps !== undefined) caps.push({ unit: 'clasper.steps', amount: scope.maxSteps });
    if (scope.maxCost !== undefined) caps.push({ unit: 'usd', amount: scope.maxCost });
    if (caps.length === 0) return undefined;
    const registered = [...this.#byTool].flatMap(([tool, needed]) =>
      needed.length > 0 && needed.every((name) => scope.capabilities.has(name)) ? [tool] : [],
    );
    const names = [...scope.capabilities, ...scope.tools, ...registered].map(toolOf);
    const below = [...scope.capabilities].map((name) => `${toolOf(name)}.*`).filter(isToolPattern);
    const patterns = [...new Set([EXECUTION_TOOL, ...names, ...below])].slice(0, MAX_PATTERNS);
    return {
      allowed_tools: patterns,
      meter_caps: caps,
      ...(scope.expiresAt === undefined ? {} : { expires_at: scope.expiresAt }),
    };
  }
}

/** A tool's name, and what it lies below: `a.b.c`, `a.b`, `a`. */
function prefixesOf(tool: string): string[] {
  const prefixes: string[] = [];
  for (let name = tool; name !== ''; name = name.slice(0, Math.max(0, name.lastIndexOf('.'))))
    prefixes.push(name);
  return prefixes;
}

/** `tool_capabilities` of a registration, where it is a map. */
export function toolMapOf(registration: SourceValue | undefined): SourceObject | undefined {
  return objectAt(registration, 'tool_capabilities');
}
