/** A call that was allowed with other parameters than it was asked with. */

import { isDenied, type KernelDenial, type KernelPlan } from './kernel-tool.js';

/** A rewritten call touches what was decided on: the grants did not judge anything else. */
export function replan(
  asked: KernelPlan | KernelDenial,
  plan: KernelPlan | KernelDenial,
): KernelPlan | KernelDenial {
  if (isDenied(asked) || isDenied(plan)) return plan;
  if (JSON.stringify(asked.resources) === JSON.stringify(plan.resources)) return plan;
  return { denied: 'RESOURCE_NOT_GRANTED', reason: 'the rewritten call touches something else' };
}
