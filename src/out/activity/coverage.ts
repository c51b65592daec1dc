/** How complete the ways were by which actions were decided on: what their decisions say in `checks`. */

import type { ActivityCoverage, AuthorizationEvent } from '../../format/schema/generated/types.js';

type Way = Exclude<keyof ActivityCoverage, 'unstated' | 'shadow'>;

export class Coverage {
  readonly #counts = { hook: 0, proxy: 0, sdk: 0, kernel: 0, unstated: 0, shadow: 0 };

  add({ authorization, checks = [] }: AuthorizationEvent): void {
    if (authorization.kind !== 'action') return;
    const code = checks.find(({ check }) => check === 'coverage')?.code?.toLowerCase();
    const isWay = code === 'hook' || code === 'proxy' || code === 'sdk' || code === 'kernel';
    const way: Way | 'unstated' = isWay ? code : 'unstated';
    this.#counts[way] += 1;
    if (checks.some(({ check }) => check === 'shadow')) this.#counts.shadow += 1;
  }

  /** Undefined where no decision states its way. */
  toJson(): ActivityCoverage | undefined {
    const { unstated, shadow, ...ways } = this.#counts;
    if (shadow === 0 && Object.values(ways).every((count) => count === 0)) return undefined;
    return { ...ways, unstated, shadow };
  }
}
