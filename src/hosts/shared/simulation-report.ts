/** The report of a simulated grant, as data (schemas/simulation-report.json). */

import { defined } from '../../base/defined.js';
import { VERSION } from '../../base/version.js';
import type { SimulatedDenialJson, SimulationReport } from '../../format/schema/generated/types.js';
import type { SimulatedDenial, Simulation } from '../../log/policy/simulate.js';
import { decimalsOf } from '../../rules/report/accounts.js';
import type { RecordedCall } from './made-calls.js';

/**
 * What `simulateGrant` found, as `northroot simulate --format json` writes it: the shape of
 * `schemaDocument('simulation-report')`.
 */
export function reportSimulation(result: Simulation<RecordedCall>): SimulationReport {
  const { calls, allowed, needApproval, denied, denials, remaining } = result;
  return {
    simulation_version: '1',
    tool: { name: 'northroot', version: VERSION },
    calls,
    allowed,
    need_approval: needApproval,
    denied: { ...denied },
    denials: denials.map(denialOf),
    remaining: decimalsOf(remaining),
  };
}

function denialOf({ call, code, bound }: SimulatedDenial<RecordedCall>): SimulatedDenialJson {
  const { seq, at, toolName, startedAt } = call;
  const { unit, limit, used, left } = bound ?? {};
  return {
    ...defined({ seq }),
    file: at.file,
    ...defined({ line: at.line }),
    tool_name: toolName,
    started_at: startedAt,
    code,
    ...(unit === undefined ? {} : defined({ unit, limit, used, left })),
  };
}
