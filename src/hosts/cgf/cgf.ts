/**
 * CGF HostAdapter: event logs of its four vocabularies, recorded requests, files of outcomes and replay packs. README.md says what
 * becomes of each field.
 */

import { findingOf } from '../shared/findings.js';
import { CGF_RULES, finding } from './rules.js';
import type { Host, HostFile, HostFinding, HostOptions, HostReading } from '../shared/host.js';
import { checkReadOptions, jsonIn, ReadingBuilder } from '../shared/reading.js';
import { casesOf } from './cases.js';
import { checkCase, type CheckContext, checkUnlinked } from './checks.js';
import { mapCases } from './mapping.js';
import { checkBundle, checkPolicy } from './policy-checks.js';
import { type PolicyBundle, readFailModes, readPolicyBundle } from './policy.js';
import { looksLikeCgf, readStatements, type Statement, type Statements } from './reader.js';
import { SearchBudget } from './regex.js';
import { inFileOrder } from '../shared/order.js';

const AIDS = {
  'policy-bundle':
    'the policy bundle that the server decided by: rules CGF-14 and CGF-15, and the fail modes in it',
  'fail-modes': 'the fail-mode table of adapters whose registration is not in the files',
} as const;

/** The host CGF: proposals, decisions and outcomes. */
export const cgf: Host = {
  name: 'cgf',
  title: 'CGF HostAdapter',
  rules: CGF_RULES,
  aids: AIDS,
  recognises: looksLikeCgf,
  read: readCgf,
};

function readCgf(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkReadOptions('cgf.read', options, AIDS);
  const builder = new ReadingBuilder(options);
  const found: HostFinding[] = [];
  const { bundle, failModes } = readAids(options, found);
  const statements = readStatements(files, builder);
  const cases = casesOf(statements.statements);
  const budget = new SearchBudget(files.reduce((sum, { bytes }) => sum + bytes.length, 0));
  const context: CheckContext = { tables: statements.tables, failModes, ends: endsOf(statements) };
  const ofCases = cases.flatMap((each) => [
    ...checkCase(each, context),
    ...(bundle === undefined ? [] : checkPolicy(each, bundle, budget)),
  ]);
  const { statements: all } = statements;
  const findings = [
    found,
    statements.findings,
    checkUnlinked(all, context),
    ofCases,
    reusedDecisions(all),
  ].flat();
  const mapped = mapCases({ statements, cases, bundle });
  const reading = builder.finish();
  return inFileOrder(
    {
      items: [...reading.items, ...mapped.items],
      claims: mapped.claims,
      observations: mapped.observations,
      findings: [...reading.findings, ...findings],
    },
    files,
  );
}

function readAids(
  { aids = {} }: HostOptions,
  found: HostFinding[],
): {
  readonly bundle: PolicyBundle | undefined;
  readonly failModes: ReadonlyMap<string, string> | undefined;
} {
  const valueOf = (file: HostFile | undefined) => (file === undefined ? undefined : jsonIn(file.bytes));
  const unreadable = (file: HostFile, rule: string, expected: string): void => {
    found.push(
      findingOf(
        rule,
        'invalid',
        'AID_NOT_READABLE',
        { file: file.name },
        { expected, actual: 'something else' },
      ),
    );
  };
  const { 'policy-bundle': bundleFile, 'fail-modes': modesFile } = aids;
  const bundleValue = valueOf(bundleFile);
  const bundle = bundleValue === undefined ? undefined : readPolicyBundle(bundleValue);
  if (bundleFile !== undefined) {
    if (bundle === undefined) unreadable(bundleFile, 'CGF-14', 'a policy bundle');
    else found.push(...checkBundle(bundle, { file: bundleFile.name }));
  }
  const modesValue = valueOf(modesFile);
  const modes = modesValue === undefined ? undefined : readFailModes(modesValue);
  if (modesFile !== undefined && modes === undefined) unreadable(modesFile, 'CGF-7', 'a fail-mode table');
  const own = bundle === undefined || bundle.failModes.size === 0 ? undefined : bundle.failModes;
  return { bundle, failModes: modes ?? own };
}

function endsOf({ statements }: Statements): ReadonlyMap<string, number> {
  return new Map(statements.map(({ stream, index }) => [stream, index]));
}

/** CGF-3 across proposals: a decision is about one. */
function reusedDecisions(statements: readonly Statement[]): readonly HostFinding[] {
  const first = new Map<string, Statement>();
  const findings: HostFinding[] = [];
  const told = new Set<string>();
  for (const statement of statements) {
    const { kind, decisionId, proposalId, at } = statement;
    if (kind !== 'decision' || decisionId === undefined || proposalId === undefined) continue;
    const before = first.get(decisionId);
    if (before === undefined) first.set(decisionId, statement);
    else if (before.proposalId !== proposalId && !told.has(`${decisionId}\0${proposalId}`)) {
      told.add(`${decisionId}\0${proposalId}`);
      findings.push(
        finding('DECISION_REUSED', at, {
          about: proposalId,
          expected: `${decisionId} about ${before.proposalId} alone`,
          actual: `about ${proposalId} too`,
          related: [before.at],
        }),
      );
    }
  }
  return findings;
}
