/** Rules CGF-14 and CGF-15: the policy bundle that the user gives, and the decisions checked against it. */

import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { HostFinding, HostPlace } from '../shared/host.js';
import { listAt, numberAt, objectAt, textAt, valueAt } from '../shared/values.js';
import { findingOf, type Weight } from '../shared/findings.js';
import { type Case, ranked } from './cases.js';
import { finding } from './rules.js';
import {
  evaluatePolicy,
  isSameInPython,
  isSameNumber,
  type PolicyBundle,
  policyInput,
  type PolicyRule,
} from './policy.js';
import type { SearchBudget } from './regex.js';

/** CGF-14 */
export function checkBundle(bundle: PolicyBundle, at: HostPlace): readonly HostFinding[] {
  const { statedHash, computedHash } = bundle;
  if (statedHash === computedHash) return [];
  const isMissing = statedHash === undefined;
  return [
    finding(isMissing ? 'BUNDLE_HASH_MISSING' : 'BUNDLE_HASH_MISMATCH', at, {
      about: bundle.version,
      expected: computedHash,
      actual: statedHash ?? 'none',
    }),
  ];
}

/** CGF-15: each decision whose proposal is in the files. What is not decided says so. */
export function checkPolicy(of: Case, bundle: PolicyBundle, budget: SearchBudget): readonly HostFinding[] {
  return of.decisions.flatMap(({ primary, decision }) => {
    const { body, at } = primary;
    const fault = (code: string, weight: Weight, expected: string, actual: string): HostFinding =>
      findingOf('CGF-15', weight, code, at, { about: of.id, expected, actual });
    // What a proposal holds is in requests and replay packs; the signals only in requests.
    const proposals = ranked(of.statements, 'proposal').filter(
      ({ body: each }) => objectAt(each, 'action_params') !== undefined,
    );
    const [proposal] = proposals;
    if (proposal === undefined) return [];
    const version = textAt(body, 'policy_version');
    if (version !== undefined && bundle.version !== undefined && version !== bundle.version)
      return [fault('POLICY_NOT_GIVEN', 'warning', `policy ${version}`, `policy ${bundle.version}`)];
    const input = policyInput(proposal.body, proposals.find(({ signals }) => signals !== undefined)?.signals);
    const result = evaluatePolicy(bundle, input, budget);
    if (!result.decided) return [fault('POLICY_NOT_DECIDED', 'info', 'a rule that is decided', result.by)];
    const { rule } = result;
    const expected = rule?.decision ?? 'ALLOW';
    const matched = listAt(body, 'matched_rule_ids');
    // A server in strict mode audits what no rule but the last is about.
    const isStrict = rule?.id === 'default-allow' && decision === 'AUDIT';
    if (expected !== decision && !isStrict)
      return [
        fault('DECISION_NOT_OF_POLICY', 'violation', `${expected} by ${rule?.id ?? 'no rule'}`, decision),
      ];
    const isOther =
      matched !== undefined &&
      (matched.length !== (rule === undefined ? 0 : 1) || (rule !== undefined && matched[0] !== rule.id));
    if (isOther)
      return [
        fault('RULE_NOT_OF_POLICY', 'violation', rule?.id ?? 'no rule', matched.map(String).join(', ')),
      ];
    // Where the server names the rule, the code is made of its id.
    const reason = matched === undefined ? undefined : textAt(body, 'reason_code');
    const wantedReason = rule?.id.toUpperCase().replaceAll('-', '_') ?? 'POLICY_MATCH';
    if (reason !== undefined && reason !== wantedReason)
      return [fault('RULE_NOT_OF_POLICY', 'violation', wantedReason, reason)];
    const constraint = constraintFault(valueAt(body, 'constraint'), rule, proposal.body);
    if (constraint !== undefined)
      return [
        fault('CONSTRAINT_NOT_OF_POLICY', 'violation', rule?.constraintType ?? 'no constraint', constraint),
      ];
    const confidence = numberAt(body, 'confidence');
    const wanted = rule?.confidence ?? '0.85';
    if (confidence !== undefined && !isSameNumber(confidence, wanted))
      return [fault('CONFIDENCE_NOT_OF_POLICY', 'warning', wanted, confidence)];
    return [];
  });
}

/** How the constraint of a decision differs from its rule's; undefined where it does not, or where the source does not have it. */
function constraintFault(
  stated: SourceValue | undefined,
  rule: PolicyRule | undefined,
  proposal: SourceObject,
): string | undefined {
  if (stated === undefined) return undefined;
  // A draft's constraint says what replaces the params, and has no type.
  if (stated instanceof SourceObject && !stated.has('type')) return undefined;
  const type = textAt(stated, 'type');
  if (type !== rule?.constraintType) return type ?? 'none';
  if (rule?.constraintType === undefined) return undefined;
  const [params, wanted] = [objectAt(stated, 'params'), rule.constraintParams];
  const names = new Set([...(params?.keys() ?? []), ...(wanted?.keys() ?? [])]);
  const other = [...names].find((name) => !isResolved(name, params?.get(name), wanted?.get(name), proposal));
  return other === undefined ? undefined : `another ${other}`;
}

/** Whether a param is the rule's. Two of them the server fills in: the time into one, the proposed namespace into the other. */
function isResolved(
  name: string,
  value: SourceValue | undefined,
  wanted: SourceValue | undefined,
  proposal: SourceObject,
): boolean {
  if (value === undefined || wanted === undefined) return false;
  if (name === 'target_namespace' && wanted === '_quarantine_')
    return typeof value === 'string' && /^_quarantine_\d+(?:\.\d+)?$/.test(value);
  if (name === 'source_namespace' && wanted === 'default')
    return value === (textAt(proposal, 'action_params', 'namespace') ?? 'default');
  return isSameInPython(value, wanted);
}
