/** The activity report as a document: a paragraph that answers, then a section for each question with its tables. */

import { CODE_PAGES, isFindingCode } from '../../format/finding/catalog.js';
import type {
  ActivityGrant,
  ActivityKey,
  ActivityMeter,
  ActivityReport,
  ActivityTotals,
} from '../../format/schema/generated/types.js';
import { shortId } from './accounts.js';
import { describeEnd, describeLoss, describeMissing } from './activity-missing.js';
import {
  type Column,
  type Document,
  join,
  type Line,
  outside,
  type Section,
  type Table,
} from './document.js';
import { type Guide, notCheckedText } from './guide.js';
import { count, grouped } from './words.js';

/** The most rows of a table, and units in a sentence or across a table. */
const MAX_ROWS = 50;
const MAX_UNITS = 6;
const MAX_NAMED = 3;
/** Characters of an amount; a longer one ends in `…`, and is whole in JSON and CSV. */
const MAX_AMOUNT = 40;

const BASIS_WORDS = {
  measured: 'measured',
  reported: 'reported',
  estimated: 'estimated',
  billed: 'billed',
  unstated: 'basis not stated',
} as const;

const BASES = ['estimated', 'reported', 'measured', 'billed', 'unstated'] as const;

/** The document of a report. */
export function describeActivity(report: ActivityReport, guide: Guide = {}): Document {
  const { ledger, selection } = report;
  const sections = [
    describeSpending(report),
    ...describeEvidenceOfUse(report),
    ...describeGroups(report),
    describeAllowance(report),
    describeRefusals(report),
    describeAuthority(report),
    ...describeRest(report),
    describeEvidence(report, guide),
  ];
  return {
    title: [
      'Activity report: ',
      ...join(
        ledger.paths.map((path) => [outside(path)]),
        ', ',
      ),
    ],
    verdict: report.verdict,
    headline: headlineOf(report),
    summary: [
      ...(selection.is_whole ? [] : [describeSelection(report)]),
      ...describeUnmatched(report),
      ...summarise(report),
    ],
    sections,
    footer: [
      `${report.tool.name} ${report.tool.version}; ledger `,
      ...(ledger.origin === null ? [] : [outside(ledger.origin), ', ']),
      `${count(ledger.records, 'record')}, root ${ledger.root ?? 'unknown'}`,
    ],
  };
}

/** The worst first: what is missing makes every sum doubtful. */
function whatIsBroken(report: ActivityReport): Line {
  const { ledger, totals, selection } = report;
  const ofLedger = whatIsBrokenOfAll(report);
  if (ofLedger !== undefined) return ofLedger;
  const { invalid } = totals.verdicts;
  if (selection.is_whole && invalid > 0) {
    return [`${count(invalid, 'record')} of ${grouped(ledger.records)} cannot be relied on`];
  }
  return [`something in the ledger's ${count(ledger.records, 'record')} cannot be relied on`];
}

/** Of the ledger as a whole, so that it concerns every part of it. */
function whatIsBrokenOfAll(report: ActivityReport): Line | undefined {
  const missing = describeLoss(report);
  if (missing !== undefined) return missing;
  const of = report.problems.find(
    ({ class: what, of_ledger: isOfLedger = false }) => isOfLedger && what === 'invalid',
  );
  return of && isFindingCode(of.code) ? [`${CODE_PAGES[of.code].title} (${of.code})`] : undefined;
}

function headlineOf(report: ActivityReport): Line {
  const { verdict, ledger, totals, selection } = report;
  const of = `the ledger's ${count(ledger.records, 'record')}`;
  const { invalid, violation } = totals.verdicts;
  const here = selection.is_whole
    ? ''
    : `; in this part of it ${grouped(invalid)} invalid, ${grouped(violation)} in violation`;
  switch (verdict) {
    case 'ok':
      return [`nothing is broken in ${of}, and no bound was exceeded`];
    case 'violation':
      return selection.is_whole
        ? [
            `the evidence is intact; ${count(violation, 'record')} of ${grouped(ledger.records)} went beyond what was allowed`,
          ]
        : [`the evidence is intact; some of ${of} went beyond what was allowed${here}`];
    case 'invalid':
      return ['the evidence is broken: ', ...whatIsBroken(report), here];
    case 'undecided':
      return ['there is no record to verify'];
  }
}

/** Which part of the ledger. */
function describeSelection({ selection, ledger }: ActivityReport): Line {
  const { principal, tool, grant_event_id: grant, since, until, events } = selection;
  const parts: Line[] = [
    ...(principal === undefined ? [] : [['of principal ', outside(principal)]]),
    ...(tool === undefined ? [] : [['of tool ', outside(tool)]]),
    ...(grant === undefined ? [] : [['under grant ', outside(shortId(grant))]]),
    ...(events === undefined ? [] : [[`that are among ${count(events, 'event')}`]]),
    ...(since === undefined ? [] : [[`from ${timeText(since)} on`]]),
    ...(until === undefined ? [] : [[`before ${timeText(until)}`]]),
  ];
  return [
    `This report is about a part of the ledger: ${grouped(selection.records)} of its ${count(ledger.records, 'record')}, those `,
    ...join(parts, ', '),
    '.',
  ];
}

function describeUnmatched({ selection: { unmatched = [] } }: ActivityReport): Line[] {
  return unmatched.map(({ of, pattern, known }) => [
    `The ledger never names the ${of} `,
    outside(pattern),
    ...(known.length === 0
      ? [`: it names no ${of}.`]
      : [
          '. It has ',
          ...join(
            known.map((name) => [outside(name)]),
            ', ',
          ),
          '.',
        ]),
  ]);
}

function summarise(report: ActivityReport): Line[] {
  const { totals } = report;
  return [
    [
      ...describeRuns(report),
      ...describeAdjusted(totals),
      ...describeBasis(totals),
      ...describeStated(report),
    ],
    [...describeBounds(report), ' ', describeRefused(totals), ...describeLeft(totals)],
    [...describeGranters(report), ' ', ...describeGaps(report)],
  ];
}

function describeRuns({ selection, totals, principals, principals_total: total }: ActivityReport): Line {
  const { period } = selection;
  const ran = ranOf(totals);
  const when = period === undefined ? '' : `Between ${timeText(period.first)} and ${timeText(period.last)}, `;
  const named = principals.slice(0, MAX_NAMED).map((principal) => [outside(principal)]);
  const more = total > named.length ? ` and ${grouped(total - named.length)} more` : '';
  const who: Line = named.length === 0 ? ['nobody'] : [...join(named, ', '), more];
  if (ran === 0)
    return [
      when === '' ? 'In these records ' : when,
      ...who,
      named.length === 0 ? ' ran anything.' : ' ran nothing.',
    ];
  const { success, failure, unknown } = totals.executions;
  const outcomes = [
    ...(failure === 0 ? [] : [`${grouped(failure)} failed`]),
    ...(unknown === 0 ? [] : [`of ${grouped(unknown)} nobody recorded the end`]),
  ];
  const how = success === ran ? '' : ` (${outcomes.join(', ')})`;
  return [
    when,
    ...who,
    ` made ${count(ran, 'execution')}${how} and spent `,
    ...listAmounts(totals.meters.map(({ unit, spent }) => ({ unit, amount: spent }))),
    '.',
  ];
}

function describeBasis({ meters }: ActivityTotals): Line {
  const ofBasis = (basis: (typeof BASES)[number]): Amount[] =>
    meters.flatMap(({ unit, basis: by }) => {
      const amount = by[basis];
      return amount === undefined ? [] : [{ unit, amount }];
    });
  const estimated = ofBasis('estimated');
  const unstated = ofBasis('unstated');
  const used = meters.filter(({ basis }) => Object.keys(basis).length > 0);
  if (used.length === 0) return [];
  const what = meters.some(({ debited }) => debited !== '0') ? 'used or added' : 'used';
  const isAllUnstated = used.every(({ basis }) => Object.keys(basis).join() === 'unstated');
  return [
    ...(estimated.length === 0
      ? [' None of it is said to be an estimate.']
      : [` Of what was ${what} only estimated: `, ...listAmounts(estimated), '.']),
    ...(isAllUnstated
      ? [' The records do not say whether the amounts were measured, reported, billed or estimated.']
      : unstated.length === 0
        ? []
        : [
            ` Of what was ${what} not said to be measured, reported, billed or estimated: `,
            ...listAmounts(unstated),
            '.',
          ]),
  ];
}

function describeAdjusted({ meters }: ActivityTotals): Line {
  const credits = meters.filter(({ credited }) => credited !== '0');
  const debits = meters.filter(({ debited }) => debited !== '0');
  if (credits.length + debits.length === 0) return [];
  const parts: Line[] = [
    ...(credits.length === 0
      ? []
      : [['took off ', ...listAmounts(credits.map(({ unit, credited }) => ({ unit, amount: credited })))]]),
    ...(debits.length === 0
      ? []
      : [['added ', ...listAmounts(debits.map(({ unit, debited }) => ({ unit, amount: debited })))]]),
  ];
  const changed = meters.filter(({ debited, credited }) => debited !== '0' || credited !== '0');
  return [
    ' That is after corrections: ',
    ...listAmounts(changed.map(({ unit, used }) => ({ unit, amount: used }))),
    ' were used, and corrections ',
    ...join(parts, ' and '),
    '.',
  ];
}

function describeBounds(report: ActivityReport): Line {
  const { totals, problems } = report;
  const { unauthorized } = totals.executions;
  const { violation, invalid } = totals.verdicts;
  const codesOf = (of: 'violation' | 'invalid'): string => {
    const codes = problems.filter((problem) => problem.class === of).map(({ code }) => code);
    const more = codes.length > MAX_NAMED ? ' and more' : '';
    return codes.length === 0 ? '' : ` (${codes.slice(0, MAX_NAMED).join(', ')}${more})`;
  };
  const faults = [
    ...(violation === 0
      ? []
      : [`${count(violation, 'record')} went beyond what was allowed${codesOf('violation')}`]),
    ...(unauthorized === 0
      ? []
      : [`${count(unauthorized, 'execution')} ${unauthorized === 1 ? 'was' : 'were'} authorized by nothing`]),
    ...(invalid === 0
      ? []
      : [
          `${count(invalid, 'record')} ${invalid === 1 ? 'is' : 'are'} invalid and ${invalid === 1 ? 'proves' : 'prove'} nothing${codesOf('invalid')}`,
        ]),
  ];
  if (faults.length > 0)
    return [`Not all of it was allowed, or can be shown to have been: ${faults.join('; ')}.`];
  const broken = whatIsBrokenOfAll(report);
  if (broken !== undefined) {
    return [
      'It cannot be shown that all of it was allowed, as the evidence is broken: ',
      ...broken,
      '. Of the records here none went beyond what was allowed.',
    ];
  }
  const elsewhere =
    report.verdict === 'invalid' ? ' Elsewhere in the ledger something is invalid, see below.' : '';
  if (ranOf(totals) === 0) return [`No bound was exceeded.${elsewhere}`];
  return [
    `All of it was allowed: an earlier authorization stands for every execution, and every bound was kept.${elsewhere}`,
  ];
}

function describeRefused({ grants, actions, executions }: ActivityTotals): string {
  const denied = grants.denied + actions.denied;
  if (denied + executions.blocked === 0) return 'Nothing was denied.';
  const blocked =
    executions.blocked === 0
      ? ''
      : `${denied === 0 ? '' : ', and '}${count(executions.blocked, 'attempt')} ${executions.blocked === 1 ? 'was' : 'were'} blocked by a denial`;
  const refused = denied === 0 ? '' : `${count(denied, 'request')} ${denied === 1 ? 'was' : 'were'} denied`;
  return `${capital(`${refused}${blocked}`)}.`;
}

function describeLeft({ open, executions, meters }: ActivityTotals): Line {
  const reserved = meters.filter((meter) => meter.reserved !== '0');
  const holding: Line =
    reserved.length === 0
      ? []
      : [
          ', with ',
          ...listAmounts(reserved.map((meter) => ({ unit: meter.unit, amount: meter.reserved }))),
          ' still reserved',
        ];
  const parts: Line[] = [
    ...(open.authorizations === 0
      ? []
      : [
          [
            `${count(open.authorizations, 'authorization')} ${open.authorizations === 1 ? 'is' : 'are'} still open`,
            ...holding,
          ],
        ]),
    ...(open.starts === 0
      ? []
      : [[`${count(open.starts, 'start')} ${open.starts === 1 ? 'has' : 'have'} no recorded end`]]),
    ...(executions.released === 0
      ? []
      : [
          [
            `${count(executions.released, 'reservation')} ${executions.released === 1 ? 'was' : 'were'} given back unused`,
          ],
        ]),
  ];
  return parts.length === 0 ? [] : [' ', ...join(parts, '; '), '.'];
}

function describeGranters({ grants, trust, totals, not_checked: open }: ActivityReport): Line {
  if (grants.length === 0) {
    return [
      totals.actions.allowed > 0
        ? 'No grant stands above what was allowed here.'
        : 'No grant is among these records.',
    ];
  }
  const keys = new Map(grants.flatMap(({ signers }) => signers).map((key) => [key.keyid, key]));
  const unsigned = grants.filter(({ signers }) => signers.length === 0).length;
  const named = [...keys.values()].slice(0, MAX_NAMED).map((key) => keyLine(key));
  const more = keys.size > MAX_NAMED ? [` and ${grouped(keys.size - MAX_NAMED)} more`] : [];
  const vouched = [...keys.values()].every(({ pinned }) => pinned)
    ? 'pinned by your trust policy'
    : trust === 'policy'
      ? 'some of them known only by the ledger, under your trust policy'
      : "self-declared: the ledger's own claim, which nobody vouches for";
  const signed: Line =
    keys.size === 0
      ? [`No signature on the ${grants.length === 1 ? 'grant' : count(grants.length, 'grant')} counts.`]
      : [
          `The ${grants.length === 1 ? 'grant was' : `${count(grants.length, 'grant')} were`} signed by `,
          ...join(named, ', '),
          ...more,
          `, ${vouched}.`,
        ];
  const without =
    unsigned > 0 && keys.size > 0
      ? [` Of them, ${grouped(unsigned)} ${unsigned === 1 ? 'has' : 'have'} no signature that counts.`]
      : [];
  const self = open.some(({ code }) => code === 'AUTHORITY')
    ? [' No key with the role authority was known: whoever acted may have issued their own grants.']
    : [];
  return [...signed, ...without, ...self];
}

function describeGaps(report: ActivityReport): Line {
  const { ledger, verdict } = report;
  if (verdict === 'undecided') return ['Nothing can be said of what is missing.'];
  const after = ledger.unsealed;
  const sealed =
    ledger.sealed === null
      ? 'No checkpoint that counts seals the ledger, so records could have been dropped or moved'
      : after === 0
        ? `A checkpoint seals ${ledger.sealed < ledger.records ? 'all records before it' : 'the whole ledger'}`
        : `A checkpoint seals the first ${count(ledger.sealed, 'record')}; ${grouped(after)} after it ${after === 1 ? 'is' : 'are'} not sealed`;
  return [`${sealed}; `, ...describeEnd(report), '.'];
}

function describeSpending({ totals }: ActivityReport): Section {
  const { meters } = totals;
  const rows = meters.slice(0, MAX_ROWS);
  const shown = BASES.filter((basis) => rows.some(({ basis: by }) => by[basis] !== undefined));
  const isAdjusted = rows.some(({ debited, credited }) => debited !== '0' || credited !== '0');
  const hasReserved = rows.some(({ reserved }) => reserved !== '0');
  const optional = [
    ['unauthorized', 'not authorized'],
    ['in_violation', 'by records in violation'],
    ['in_invalid', 'by invalid records'],
  ] as const;
  const wrong = optional.filter(([name]) => rows.some((row) => row[name] !== undefined));
  const columns: Column[] = [
    { head: 'unit' },
    { head: 'spent', isNumber: true },
    ...(isAdjusted ? ['used', 'added', 'taken off'].map(number) : []),
    ...shown.map((basis) => number(BASIS_WORDS[basis])),
    ...wrong.map(([, head]) => number(head)),
    ...(hasReserved ? [number('still reserved')] : []),
  ];
  const table: Table = {
    columns,
    rows: rows.map((meter) => ({
      cells: [
        [outside(meter.unit)],
        amountCell(meter.spent),
        ...(isAdjusted ? [meter.used, meter.debited, meter.credited].map(amountCell) : []),
        ...shown.map((basis) => amountCell(meter.basis[basis] ?? '0')),
        ...wrong.map(([name]) => amountCell(meter[name] ?? '0')),
        ...(hasReserved ? [amountCell(meter.reserved)] : []),
      ],
      isBad: wrong.some(([name]) => meter[name] !== undefined),
    })),
    ...cutNote(rows.length, meters.length, 'unit'),
  };
  return {
    title: 'What was spent',
    lines: [
      meters.length === 0
        ? ['No amount is recorded.']
        : [
            'Exact sums of every unit that was recorded, whether or not a grant caps it. Spent is used + added − taken off; where it comes from (estimated, reported, …) is told of what was used and added.',
          ],
    ],
    tables: meters.length === 0 ? [] : [table],
  };
}

/** What other systems logged, and nothing here accounts for. */
function describeEvidenceOfUse({ evidence = [] }: ActivityReport): Section[] {
  const all = evidence.flatMap(({ event_type: type, records, amounts }) =>
    amounts.map(({ name, amount }, index) => ({ type, records, name, amount, isFirst: index === 0 })),
  );
  if (all.length === 0) return [];
  const rows = all.slice(0, MAX_ROWS);
  return [
    {
      title: 'What evidence says',
      lines: [
        [
          'Amounts that other records state, as imports keep what other systems logged. No authorization stands for them, no grant accounts for them, and none of the sums above has them. Where an execution states the same use, it is in both. A message or span that is stated several times counts once. A part, such as the cached ones of the input, may be within its whole: names are not to be added up.',
        ],
      ],
      tables: [
        {
          columns: [text('type of record'), number('records'), text('what'), number('amount')],
          rows: rows.map(({ type, records, name, amount, isFirst }) => ({
            cells: [
              isFirst ? [outside(type)] : [],
              isFirst ? [grouped(records)] : [],
              [outside(name)],
              amountCell(amount),
            ],
          })),
          ...cutNote(rows.length, all.length, 'amount'),
        },
      ],
    },
  ];
}

/** The same in a sentence, for readers of the first paragraph alone. */
function describeStated({ evidence = [] }: ActivityReport): Line {
  const records = evidence.reduce((all, { records: n }) => all + n, 0);
  return records === 0
    ? []
    : [
        ` ${capital(count(records, 'further record'))} ${records === 1 ? 'states' : 'state'} amounts that nothing here accounts for, such as `,
        ...join(
          evidence
            .flatMap(({ amounts }) => amounts)
            .slice(0, MAX_UNITS)
            .map(({ name, amount }) => [...amountCell(amount), ' ', outside(name)]),
          ', ',
        ),
        ': see What evidence says.',
      ];
}

const GROUP_WORDS = { principal: 'principal', grant: 'grant', tool: 'tool', day: 'day (UTC)' } as const;

function describeGroups({ by, groups, others, totals, grants }: ActivityReport): Section[] {
  if (by === undefined || groups === undefined) return [];
  const byId = new Map(grants.map((grant) => [grant.event_id, grant]));
  const units = totals.meters.map(({ unit }) => unit);
  const isWide = units.length <= MAX_UNITS;
  const rows: Table['rows'][number][] = [];
  const addRow = (name: Line, counts: ActivityTotals | undefined, meters: readonly ActivityMeter[]): void => {
    const isBad = counts !== undefined && counts.verdicts.invalid + counts.verdicts.violation > 0;
    const numbers: Line[] =
      counts === undefined
        ? [[], [], []]
        : [ranOf(counts), deniedOf(counts), counts.verdicts.invalid + counts.verdicts.violation].map((n) => [
            n === 0 ? '0' : grouped(n),
          ]);
    const spent = new Map(meters.map((meter) => [meter.unit, meter.spent]));
    if (isWide) {
      rows.push({
        cells: [name, ...numbers, ...units.map((unit) => amountCell(spent.get(unit) ?? ''))],
        isBad,
      });
      return;
    }
    if (meters.length === 0) rows.push({ cells: [name, ...numbers, [], []], isBad });
    for (const [index, { unit, spent: amount }] of meters.entries()) {
      const first = index === 0 ? [name, ...numbers] : [[], [], [], []];
      rows.push({ cells: [...first, [outside(unit)], amountCell(amount)], isBad });
    }
  };
  // Whoever only wrote checkpoints is nobody's question.
  const told = by === 'principal' ? groups.filter(({ totals: own }) => hasActed(own)) : groups;
  for (const { key, totals: own, with_delegated: all } of told.slice(0, MAX_ROWS)) {
    const grant = by === 'grant' && key !== null ? byId.get(key) : undefined;
    const indent = grant === undefined ? '' : '– '.repeat(depthOf(grant, byId));
    addRow(key === null ? [noneOf(by)] : [indent, ...nameOfGroup(key, grant)], own, own.meters);
    if (all !== undefined) addRow([indent, 'with those delegated from it'], undefined, all);
  }
  if (others !== undefined) addRow(['all others'], others, others.meters);
  const table: Table = {
    columns: [
      { head: GROUP_WORDS[by] },
      ...['executions', 'denied', 'wrong'].map(number),
      ...(isWide
        ? units.map((unit) => ({ head: unit, isNumber: true }))
        : [{ head: 'unit' }, number('spent')]),
    ],
    rows,
    ...cutNote(Math.min(told.length, MAX_ROWS), told.length, 'group'),
  };
  const lines: Line[] =
    by === 'grant'
      ? [
          [
            'What was spent under a delegated grant stands at that grant; where others were delegated from a grant, its second row has the sum with theirs.',
          ],
        ]
      : [];
  return [{ title: `By ${GROUP_WORDS[by]}`, lines, tables: [table] }];
}

function describeAllowance(report: ActivityReport): Section {
  const { problems } = report;
  const rows = problems.slice(0, MAX_ROWS);
  const table: Table = {
    columns: [{ head: 'code' }, { head: 'what is wrong' }, number('records'), { head: 'first' }],
    rows: rows.map(({ code, class: of, records, first }) => ({
      cells: [
        [code],
        [`${of}: ${isFindingCode(code) ? CODE_PAGES[code].title : ''}`],
        [grouped(records)],
        first[0] === undefined ? [] : placeOf(first[0]),
      ],
      isBad: true,
    })),
    ...cutNote(rows.length, problems.length, 'code'),
  };
  return {
    title: 'Was all of it allowed?',
    lines: [
      describeBounds(report),
      ...problems
        .slice(0, MAX_NAMED)
        .flatMap(({ code, first }): Line[] =>
          first[0] === undefined ? [] : [describeProblem(code, first[0], report.grants)],
        ),
    ],
    tables: problems.length === 0 ? [] : [table],
  };
}

const OVER: Readonly<Record<string, string>> = {
  METER_CAP_EXCEEDED: 'over the cap of',
  ACTION_CAP_EXCEEDED: 'over what one action may use under',
  RATE_LIMIT_EXCEEDED: 'over the rate of',
  RESERVATION_OVER_CAP: 'over the cap of',
};

/** By how much, and of which grant, where that is known: else the finding's own words. */
function describeProblem(
  code: string,
  first: ActivityReport['problems'][number]['first'][number],
  grants: readonly ActivityGrant[],
): Line {
  const { over, message } = first;
  const grant = over && grants.find(({ event_id: id }) => id === over.grant_event_id);
  const words = OVER[code];
  if (over === undefined || grant === undefined || words === undefined) {
    return [...placeOf(first), ': ', outside(message), '.'];
  }
  return [
    ...placeOf(first),
    ': ',
    ...listAmounts([over]),
    ` ${words} grant seq ${grant.seq}, signed by `,
    ...signersLine(grant.signers),
    ` (${code}).`,
  ];
}

function signersLine(signers: readonly ActivityKey[]): Line {
  return signers.length === 0
    ? ['nobody who counts']
    : join(
        signers.map((key) => keyLine(key)),
        ', ',
      );
}

function describeRefusals({ totals, denied, blocked }: ActivityReport): Section {
  const requests = denied.slice(0, MAX_ROWS);
  const attempts = blocked.slice(0, MAX_ROWS);
  const table: Table = {
    caption: 'Requests that were denied',
    columns: [
      number('seq'),
      ...['time', 'principal', 'asked for', 'denied by', 'code', 'policy it names', 'failed checks'].map(
        text,
      ),
    ],
    rows: requests.map((each) => ({
      cells: [
        [String(each.seq)],
        [timeText(each.occurred_at)],
        [outside(each.principal_id)],
        each.tool_name === undefined ? ['a grant'] : [outside(each.tool_name)],
        signersLine(each.signers),
        [each.decision_code],
        [outside(each.policy_id)],
        join(
          each.failed_checks.map((check) => [outside(check)]),
          ', ',
        ),
      ],
    })),
    ...cutNote(requests.length, totals.grants.denied + totals.actions.denied, 'request'),
  };
  const attempted: Table = {
    caption: 'Attempts that were blocked',
    columns: [number('seq'), ...['time', 'principal', 'tool', 'error code'].map(text)],
    rows: attempts.map((each) => ({
      cells: [
        [String(each.seq)],
        [timeText(each.occurred_at)],
        [outside(each.principal_id)],
        [outside(each.tool_name)],
        [each.error_code ?? ''],
      ],
    })),
    ...cutNote(attempts.length, totals.executions.blocked, 'attempt'),
  };
  return {
    title: 'What was refused: denied or blocked',
    lines: [
      [describeRefused(totals)],
      ...(requests.length + attempts.length > 0
        ? [
            [
              'Denied: a request to which the answer was no, and whoever signed the denial gave it. Blocked: an attempt that was made all the same, and that the denial stopped before it ran.',
            ],
          ]
        : []),
    ],
    tables: [...(requests.length === 0 ? [] : [table]), ...(attempts.length === 0 ? [] : [attempted])],
  };
}

function describeAuthority(report: ActivityReport): Section {
  const { grants, grants_total: total, signers, decisions } = report;
  const byId = new Map(grants.map((grant) => [grant.event_id, grant]));
  const shown = grants.slice(0, MAX_ROWS);
  const isDelegated = shown.some(({ meters }) => meters.some(({ delegated }) => delegated !== undefined));
  const hasActionCaps = shown.some(({ action_caps: caps }) => caps.length > 0);
  const table: Table = {
    caption: 'Grants: what was allowed, in the whole ledger',
    columns: [
      number('seq'),
      ...['granted to', 'tools', 'unit'].map(text),
      ...['cap', 'used'].map(number),
      ...(isDelegated ? [number('of it delegated')] : []),
      ...['reserved', 'left'].map(number),
      ...(hasActionCaps ? [number('at most in one action')] : []),
      ...['expires', 'signed by', 'policy it names'].map(text),
    ],
    rows: shown.flatMap((grant) => {
      const depth = depthOf(grant, byId);
      const name: Line = ['– '.repeat(depth), outside(grant.principal_id)];
      const tools = join(
        grant.allowed_tools.slice(0, MAX_NAMED).map((tool) => [outside(tool)]),
        ', ',
      );
      const more =
        grant.allowed_tools_total > MAX_NAMED
          ? [` and ${grouped(grant.allowed_tools_total - MAX_NAMED)} more`]
          : [];
      const rest: Line[] = [
        [grant.expires_at === undefined ? 'never' : timeText(grant.expires_at)],
        signersLine(grant.signers),
        [outside(grant.policy_id), ` ${grant.decision_code}`],
      ];
      const isBad = grant.verdict !== 'ok';
      const meters = grant.meters.slice(0, MAX_UNITS);
      const most = new Map(grant.action_caps.map((each) => [each.unit, each.amount]));
      return meters.map(({ unit, cap, used, delegated = '0', reserved, left }, index) => ({
        cells: [
          ...(index === 0 ? [[String(grant.seq)], name, [...tools, ...more]] : [[], [], []]),
          [outside(unit)],
          ...[cap, used, ...(isDelegated ? [delegated] : []), reserved, left].map(amountCell),
          ...(hasActionCaps ? [amountCell(most.get(unit) ?? '')] : []),
          ...(index === 0 ? rest : [[], [], []]),
        ],
        isBad: isBad || left.startsWith('-'),
      }));
    }),
    ...cutNote(shown.length, total, 'grant'),
  };
  const signed: Table = {
    caption: 'Who signed these records',
    columns: [
      text('key'),
      text('known by'),
      ...['records', 'grants', 'actions', 'executions', 'adjustments'].map(number),
    ],
    rows: [
      ...signers.slice(0, MAX_ROWS).map((signer) => ({
        cells: [
          keyLine(signer, true),
          [signer.pinned ? 'your trust policy' : 'the ledger alone'],
          ...[signer.records, signer.grants, signer.actions, signer.executions, signer.adjustments].map(
            (n) => [grouped(n)],
          ),
        ],
      })),
      ...(report.unsigned === 0
        ? []
        : [{ cells: [['no signature that counts'], [], [grouped(report.unsigned)], [], [], [], []] }]),
    ],
    ...cutNote(Math.min(signers.length, MAX_ROWS), signers.length, 'key'),
  };
  const rows = decisions.slice(0, MAX_ROWS);
  const decided: Table = {
    caption: 'Decisions',
    columns: [...['decision', 'of', 'code', 'policy it names'].map(text), number('times')],
    rows: rows.map(({ decision, kind, policy_id: policy, decision_code: code, count: times }) => ({
      cells: [[decision], [kind], [code], [outside(policy)], [grouped(times)]],
    })),
    ...cutNote(rows.length, decisions.length, 'decision'),
  };
  return {
    title: 'Who authorized it',
    lines: shown.length > 0 ? [] : [describeGranters(report)],
    tables: [
      ...(shown.length === 0 ? [] : [table]),
      ...(signed.rows.length === 0 ? [] : [signed]),
      ...(rows.length === 0 ? [] : [decided]),
    ],
  };
}

/** What is open, and what was corrected; nothing where there is neither. */
function describeRest({ totals, open, starts, adjustments }: ActivityReport): Section[] {
  const sections: Section[] = [];
  if (open.length + starts.length > 0) {
    const actions = open.slice(0, MAX_ROWS);
    const running = starts.slice(0, MAX_ROWS);
    sections.push({
      title: 'What is still open',
      lines: [['Allowed and not executed, or started and without a recorded end, when the ledger ends.']],
      tables: [
        ...(actions.length === 0
          ? []
          : [
              {
                caption: 'Open authorizations',
                columns: [number('seq'), ...['time', 'principal', 'tool', 'reserved'].map(text)],
                rows: actions.map((each) => ({
                  cells: [
                    [String(each.seq)],
                    [timeText(each.occurred_at)],
                    [outside(each.principal_id)],
                    [outside(each.tool_name)],
                    listAmounts(each.reserved),
                  ],
                })),
                ...cutNote(actions.length, totals.open.authorizations, 'authorization'),
              },
            ]),
        ...(running.length === 0
          ? []
          : [
              {
                caption: 'Started: running, or its recorder was stopped',
                columns: [number('seq'), ...['started', 'principal', 'tool'].map(text)],
                rows: running.map((each) => ({
                  cells: [
                    [String(each.seq)],
                    [timeText(each.started_at)],
                    [outside(each.principal_id)],
                    [outside(each.tool_name)],
                  ],
                })),
                ...cutNote(running.length, totals.open.starts, 'start'),
              },
            ]),
      ],
    });
  }
  if (adjustments.length > 0) {
    const rows = adjustments.slice(0, MAX_ROWS);
    sections.push({
      title: 'What was corrected',
      lines: [],
      tables: [
        {
          caption: 'Adjustments',
          columns: [
            number('seq'),
            ...['time', 'by', 'what', 'amounts', 'reason', 'grant', 'execution', 'signed by'].map(text),
          ],
          rows: rows.map((each) => {
            const isRefused = each.amounts.every(({ counted }) => !counted);
            return {
              cells: [
                [String(each.seq)],
                [timeText(each.occurred_at)],
                [outside(each.principal_id)],
                [
                  each.direction === 'credit' ? 'taken off' : 'added',
                  isRefused ? ' (not applied: counts for nothing)' : '',
                ],
                listAmounts(each.amounts),
                [each.reason],
                [each.grant_seq === undefined ? shortId(each.grant_event_id) : `seq ${each.grant_seq}`],
                [
                  each.execution_seq === undefined
                    ? each.execution_event_id === undefined
                      ? 'none named'
                      : shortId(each.execution_event_id)
                    : `seq ${each.execution_seq}`,
                ],
                signersLine(each.signers),
              ],
              isBad: isRefused,
            };
          }),
          ...cutNote(rows.length, totals.adjustments.credits + totals.adjustments.debits, 'adjustment'),
        },
      ],
    });
  }
  return sections;
}

function describeEvidence(report: ActivityReport, guide: Guide): Section {
  const { ledger, not_checked: open, limits } = report;
  const period: Line =
    ledger.period === undefined
      ? ['The ledger says of no record when it occurred.']
      : [
          `The ledger has ${count(ledger.records, 'record')}, from ${timeText(ledger.period.first)} to ${timeText(ledger.period.last)} by their own timestamps.`,
        ];
  const notes = (
    caption: string,
    list: readonly { readonly code: string; readonly message: string }[],
  ): Table => ({
    caption,
    columns: ['code', 'what it means'].map(text),
    rows: list.map((item) => ({ cells: [[item.code], [outside(notCheckedText(item, guide))]] })),
  });
  return {
    title: 'Is anything missing?',
    lines: [describeMissing(report), period],
    tables: [
      ...(open.length === 0 ? [] : [notes('Not checked', open)]),
      ...(limits.length === 0 ? [] : [notes('What these numbers do not say', limits)]),
    ],
  };
}

interface Amount {
  readonly unit: string;
  readonly amount: string;
}

/** `3.75 usd, 12 calls`. */
function listAmounts(amounts: readonly Amount[]): Line {
  if (amounts.length === 0) return ['nothing'];
  const shown = amounts
    .slice(0, MAX_UNITS)
    .map(({ unit, amount }): Line => [
      `${amountText(amount)} `,
      outside(unit === 'calls' && amount === '1' ? 'call' : unit),
    ]);
  const more = amounts.length - shown.length;
  if (more > 0) return [...join(shown, ', '), ` and ${count(more, 'more unit')}`];
  const last = shown.pop() ?? [];
  return shown.length === 0 ? last : [...join(shown, ', '), ' and ', ...last];
}

function amountText(amount: string): string {
  if (amount.length > MAX_AMOUNT) return `${amount.slice(0, MAX_AMOUNT - 1)}…`;
  const [, sign = '', whole = amount, rest = ''] = /^(-?)(\d+)(\.\d+)?$/.exec(amount) ?? [];
  return `${sign}${whole.replace(/\B(?=(?:\d{3})+$)/g, ',')}${rest}`;
}

function amountCell(amount: string): Line {
  return [amountText(amount)];
}

function timeText(timestamp: string): string {
  const time = timestamp
    .slice(11, -1)
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '');
  return `${timestamp.slice(0, 10)} ${time} UTC`;
}

function keyLine({ keyid, name, owner }: ActivityKey, isWhole = false): Line {
  const id = isWhole ? keyid : `${keyid.slice(0, 12)}…`;
  if (owner !== undefined) {
    return name === undefined || name === owner
      ? [outside(owner), ` (own key ${id})`]
      : [outside(name), ' (own key of ', outside(owner), `, ${id})`];
  }
  return name === undefined ? [`key ${id}`] : [outside(name), ` (key ${id})`];
}

function placeOf({
  seq,
  file,
  line,
  principal_id: principal,
  tool_name: tool,
}: ActivityReport['problems'][number]['first'][number]): Line {
  return [
    ...(seq === undefined ? [outside(file), `:${line}`] : [`seq ${seq}`]),
    ...(principal === undefined ? [] : [', ', outside(principal)]),
    ...(tool === undefined ? [] : [', ', outside(tool)]),
  ];
}

function nameOfGroup(key: string, grant: ActivityGrant | undefined): Line {
  return grant === undefined ? [outside(key)] : [`seq ${grant.seq}, `, outside(grant.principal_id)];
}

function noneOf(by: NonNullable<ActivityReport['by']>): string {
  return by === 'grant'
    ? 'under no grant'
    : by === 'tool'
      ? 'without a tool'
      : by === 'day'
        ? 'without a time'
        : 'without a principal';
}

/** Grants that are not listed end the way up. */
function depthOf(grant: ActivityGrant, byId: ReadonlyMap<string, ActivityGrant>): number {
  let depth = 0;
  for (let each = grant; each.parent_event_id !== undefined && depth < MAX_ROWS; depth += 1) {
    const parent = byId.get(each.parent_event_id);
    if (parent === undefined) return depth;
    each = parent;
  }
  return depth;
}

function ranOf({ executions: { success, failure, unknown } }: ActivityTotals): number {
  return success + failure + unknown;
}

function hasActed(totals: ActivityTotals): boolean {
  const { verdicts, executions, open, meters } = totals;
  const asked =
    deniedOf(totals) + executions.blocked + executions.released + open.authorizations + open.starts;
  return ranOf(totals) + asked + verdicts.violation + verdicts.invalid + meters.length > 0;
}

function deniedOf({ grants, actions }: ActivityTotals): number {
  return grants.denied + actions.denied;
}

function cutNote(shown: number, total: number, noun: string): { readonly note?: string } {
  return shown >= total ? {} : { note: `${count(total - shown, `further ${noun}`)} not shown here.` };
}

function capital(sentence: string): string {
  return `${sentence.slice(0, 1).toUpperCase()}${sentence.slice(1)}`;
}

function text(head: string): Column {
  return { head };
}

function number(head: string): Column {
  return { head, isNumber: true };
}
