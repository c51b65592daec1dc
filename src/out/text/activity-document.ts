/** The activity report as a document: a paragraph that answers, then a section for each question with its tables. */

import { CODE_PAGES, isFindingCode } from '../../format/finding/catalog.js';
import type {
  ActivityAdjustment,
  ActivityDenial,
  ActivityGrant,
  ActivityKey,
  ActivityMeter,
  ActivityReport,
  ActivityTotals,
} from '../../format/schema/generated/types.js';
import { shortId } from './accounts.js';
import { describeEnd, describeLoss, describeMissing } from './missing.js';
import { documentMarkdown } from './document-markdown.js';
import { documentText } from './document-text.js';
import {
  type Document,
  join,
  type Line,
  names,
  numbers,
  outside,
  type Section,
  type Table,
  texts,
} from './document.js';
import { type Guide, notCheckedText, type Paint, plainPaint } from './guide.js';
import { count, deniedOf, effectWord, groupDigits, grouped, inFlightText, ranOf } from './words.js';

/** The most rows of a table, and units in a sentence or across a table. */
const MAX_ROWS = 50;
const MAX_UNITS = 6;
const MAX_NAMED = 3;
/** Characters of an amount; a longer one ends in `…`, and is whole in JSON and CSV. */
const MAX_AMOUNT = 48;

const BASIS_WORDS = {
  measured: 'measured',
  reported: 'reported',
  estimated: 'estimated',
  billed: 'billed',
  unstated: 'basis not stated',
} as const;

type Row = Table['rows'][number];
type ProblemPlace = ActivityReport['problems'][number]['first'][number];

const BASES = ['estimated', 'reported', 'measured', 'billed', 'unstated'] as const;

/** The activity report as lines of text, each ending in `\n`. Outside text is made printable. */
export function renderActivity(report: ActivityReport, paint: Paint = plainPaint, guide: Guide = {}): string {
  return documentText(describeActivity(report, guide), paint);
}

/** The activity report as Markdown. Outside text is in code spans, in which nothing is markup and no host links anything. */
export function renderActivityMarkdown(report: ActivityReport, guide: Guide = {}): string {
  return documentMarkdown(describeActivity(report, guide));
}

export function describeActivity(report: ActivityReport, guide: Guide = {}): Document {
  const { ledger, selection } = report;
  const sections = [
    ...describeSample(report),
    describeSpending(report),
    ...describeBill(report),
    ...describeEvidenceOfUse(report),
    ...describeGroups(report),
    describeAllowance(report),
    describeRefusals(report),
    describeAuthority(report),
    ...describeRest(report),
    describeEvidence(report, guide),
  ];
  return {
    title: ['Activity report: ', ...names(ledger.paths)],
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

/** The worst first: missing records make every sum doubtful. */
function brokenWords(report: ActivityReport): Line {
  const { ledger, totals, selection } = report;
  const ofLedger = brokenLedger(report);
  if (ofLedger !== undefined) return ofLedger;
  const { invalid } = totals.verdicts;
  if (selection.is_whole && invalid > 0)
    return [`${count(invalid, 'record')} of ${grouped(ledger.records)} cannot be relied on`];
  return [`something in the ledger's ${count(ledger.records, 'record')} cannot be relied on`];
}

/** What is broken of the whole ledger, so that it concerns every part. */
function brokenLedger(report: ActivityReport): Line | undefined {
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
      return ['the evidence is broken: ', ...brokenWords(report), here];
    case 'undecided':
      return ['there is no record to verify'];
  }
}

function describeSelection({ selection, ledger }: ActivityReport): Line {
  const { principal, tool, grant_event_id: grant, since, until, events, sample } = selection;
  const parts: Line[] = [
    ...(principal === undefined ? [] : [['of principal ', outside(principal)]]),
    ...(tool === undefined ? [] : [['of tool ', outside(tool)]]),
    ...(grant === undefined ? [] : [['under grant ', outside(shortId(grant))]]),
    ...(sample === undefined ? [] : [['that were drawn by lot']]),
    ...(events === undefined || sample !== undefined ? [] : [[`that are among ${count(events, 'event')}`]]),
    ...(since === undefined ? [] : [[`from ${timeText(since)} on`]]),
    ...(until === undefined ? [] : [[`before ${timeText(until)}`]]),
  ];
  return [
    `This report is about a part of the ledger: ${grouped(selection.records)} of its ${count(ledger.records, 'record')}, those `,
    ...join(parts, ', '),
    '.',
  ];
}

function describeSample({ selection: { sample } }: ActivityReport): Section[] {
  if (sample === undefined) return [];
  const { tree_size: size, root, nonce, of, executions } = sample;
  const by: Line = nonce === undefined ? [] : [' and the nonce ', outside(nonce)];
  return [
    {
      title: 'What was drawn',
      lines: [
        [
          `${grouped(executions.length)} of ${count(of, 'execution')}, by lot, by the checkpoint of ${count(size, 'record')} with the root ${root}`,
          ...by,
          '. Whoever has the ledger draws the same ones again.',
        ],
        ...(nonce === undefined
          ? [
              [
                'No nonce was given: whoever makes checkpoints could have made several, and published the one that draws what they like.',
              ],
            ]
          : []),
      ],
      tables: listed(executions, { noun: 'execution' }, [
        figure('seq', ({ seq }) => String(seq)),
        word('execution', ({ event_id: id }) => [outside(id)]),
      ]),
    },
  ];
}

function describeUnmatched({ selection: { unmatched = [] } }: ActivityReport): Line[] {
  return unmatched.map(({ of, pattern, known }) => [
    `The ledger never names the ${of} `,
    outside(pattern),
    ...(known.length === 0 ? [`: it names no ${of}.`] : ['. It has ', ...names(known), '.']),
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
  const named = principals.slice(0, MAX_NAMED);
  const more = total > named.length ? ` and ${grouped(total - named.length)} more` : '';
  if (ran === 0) return [`${when === '' ? 'In these records ' : when}nothing was run.`];
  const { success, failure, unknown, reported_late: late = 0 } = totals.executions;
  const later = late === 0 ? '' : `, ${grouped(late)} of them reported later`;
  const outcomes = [
    ...listIf(failure > 0, `${grouped(failure)} failed`),
    ...listIf(unknown > 0, `${grouped(unknown)} with an unknown outcome${later}`),
  ];
  const how = success === ran ? '' : ` (${outcomes.join(', ')})`;
  return [
    when,
    ...names(named),
    more,
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
  const changed = meters.filter(isCorrected);
  if (changed.length === 0) return [];
  const credits = amountsOf(meters, 'credited');
  const debits = amountsOf(meters, 'debited');
  const parts: Line[] = [
    ...listIf(credits.length > 0, ['took off ', ...listAmounts(credits)]),
    ...listIf(debits.length > 0, ['added ', ...listAmounts(debits)]),
  ];
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
  const beyond = `${count(violation, 'record')} went beyond what was allowed${codesOf('violation')}`;
  const alone = `${those(unauthorized, 'execution', 'was', 'were')} authorized by nothing`;
  const broken = `${those(invalid, 'record', 'is', 'are')} invalid and ${invalid === 1 ? 'proves' : 'prove'} nothing${codesOf('invalid')}`;
  const faults = [
    ...listIf(violation > 0, beyond),
    ...listIf(unauthorized > 0, alone),
    ...listIf(invalid > 0, broken),
  ];
  if (faults.length > 0)
    return [`Not all of it was allowed, or can be shown to have been: ${faults.join('; ')}.`];
  const ofLedger = brokenLedger(report);
  if (ofLedger !== undefined)
    return [
      'It cannot be shown that all of it was allowed, as the evidence is broken: ',
      ...ofLedger,
      '. Of the records here none went beyond what was allowed.',
    ];
  const elsewhere =
    report.verdict === 'invalid' ? ' Elsewhere in the ledger something is invalid, see below.' : '';
  if (ranOf(totals) === 0) return [`No bound was exceeded.${elsewhere}`];
  return [
    `All of it was allowed: every execution has an earlier authorization, and every bound was kept.${elsewhere}`,
  ];
}

function describeRefused({ grants, actions, executions }: ActivityTotals): string {
  const denied = grants.denied + actions.denied;
  if (denied + executions.blocked === 0) return 'Nothing was denied.';
  const blocked =
    executions.blocked === 0
      ? ''
      : `${denied === 0 ? '' : ', and '}${those(executions.blocked, 'attempt', 'was', 'were')} blocked by a denial`;
  const refused = denied === 0 ? '' : `${those(denied, 'request', 'was', 'were')} denied`;
  return `${capital(`${refused}${blocked}`)}.`;
}

function describeLeft({ open, executions, meters }: ActivityTotals): Line {
  const reserved = amountsOf(meters, 'reserved');
  const holding: Line = reserved.length === 0 ? [] : [', with ', ...listAmounts(reserved), ' still reserved'];
  const isOpen = `${those(open.authorizations, 'authorization', 'is', 'are')} still open`;
  const started = `${those(open.starts, 'start', 'has', 'have')} no recorded end`;
  const released = `${those(executions.released, 'reservation', 'was', 'were')} given back unused`;
  const parts: Line[] = [
    ...listIf(open.authorizations > 0, [isOpen, ...holding]),
    ...listIf(open.starts > 0, [started]),
    ...listIf(executions.released > 0, [released]),
  ];
  return parts.length === 0 ? [] : [' ', ...join(parts, '; '), '.'];
}

function describeGranters({ grants, trust, totals, not_checked: open }: ActivityReport): Line {
  if (grants.length === 0)
    return [
      totals.actions.allowed > 0
        ? 'No grant covers what was allowed here.'
        : 'No grant is among these records.',
    ];
  const keys = new Map(grants.flatMap(({ signers }) => signers).map((key) => [key.keyid, key]));
  const unsigned = grants.filter(({ signers }) => signers.length === 0).length;
  const named = [...keys.values()].slice(0, MAX_NAMED).map((key) => keyLine(key));
  const more = keys.size > MAX_NAMED ? [` and ${grouped(keys.size - MAX_NAMED)} more`] : [];
  const vouched = [...keys.values()].every(({ pinned }) => pinned)
    ? 'pinned by your trust policy'
    : trust === 'policy'
      ? 'some of them known only by the ledger, under your trust policy'
      : "self-declared: the ledger's own claim, which no trust policy confirms";
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
    ? [' No key with the role authority was known: principals may have issued grants to themselves.']
    : [];
  return [...signed, ...without, ...self];
}

function describeGaps(report: ActivityReport): Line {
  const { ledger, verdict } = report;
  if (verdict === 'undecided') return ['It is not known whether anything is missing.'];
  const after = ledger.unsealed;
  const sealed =
    ledger.sealed === null
      ? 'No checkpoint that counts seals the ledger, so records could have been dropped or moved'
      : after === 0
        ? `A checkpoint seals ${ledger.sealed < ledger.records ? 'all records before it' : 'the whole ledger'}`
        : `A checkpoint seals the first ${count(ledger.sealed, 'record')}; ${grouped(after)} after it ${after === 1 ? 'is' : 'are'} not sealed`;
  return [`${sealed}; `, ...describeEnd(report), '.'];
}

function describeSpending({ totals: { meters } }: ActivityReport): Section {
  const rows = meters.slice(0, MAX_ROWS);
  const bases = BASES.filter((basis) => rows.some(({ basis: by }) => by[basis] !== undefined));
  const isAdjusted = rows.some(isCorrected);
  const hasReserved = rows.some(({ reserved }) => reserved !== '0');
  const optional = [
    ['unauthorized', 'not authorized'],
    ['in_violation', 'by records in violation'],
    ['in_invalid', 'by invalid records'],
  ] as const;
  const wrong = optional.filter(([name]) => rows.some((row) => row[name] !== undefined));
  const sum = amount<ActivityMeter>;
  const columns = [
    word('unit', ({ unit }: ActivityMeter) => [outside(unit)]),
    sum('spent', ({ spent }) => spent),
    ...(isAdjusted
      ? [
          sum('used', ({ used }) => used),
          sum('added', ({ debited }) => debited),
          sum('taken off', ({ credited }) => credited),
        ]
      : []),
    ...bases.map((basis) => sum(BASIS_WORDS[basis], ({ basis: by }) => by[basis] ?? '0')),
    ...wrong.map(([name, head]) => sum(head, ({ [name]: by = '0' }) => by)),
    ...(hasReserved ? [sum('still reserved', ({ reserved }) => reserved)] : []),
  ];
  const tables = listed(meters, { noun: 'unit' }, columns, (meter) =>
    wrong.some(([name]) => meter[name] !== undefined),
  );
  const words =
    meters.length === 0
      ? 'No amount is recorded.'
      : 'Exact sums of every unit that was recorded, whether or not a grant caps it. Spent is used + added − taken off; its basis (estimated, reported, …) is given for what was used and added.';
  return { title: 'What was spent', lines: [[words]], tables };
}

/** What other systems logged, and nothing here accounts for. */
/** What share of a bill the ledger explains. */
function describeBill({ bill }: ActivityReport): Section[] {
  if (bill === undefined) return [];
  const { provider, from, until, has_more: hasMore = false, left_out: leftOut } = bill;
  const whose = provider === undefined ? [] : [' of ', outside(provider)];
  const words: Line = [
    `Executions of models, by their day (UTC), model and unit, from ${from} to the end of the day before ${until}`,
    ...whose,
    '. A row with too much explains nothing of another. Dates at the end of names of models are left out. ',
    ...(hasMore ? ['The bill has further pages, which were not given. '] : []),
    ...(leftOut === 0 ? [] : [`${those(leftOut, 'amount', 'is', 'are')} in no row.`]),
  ];
  const sums = listed(bill.sums, { noun: 'unit' }, [
    word('unit', ({ unit }) => [outside(unit)]),
    amount('billed', ({ billed }) => billed),
    amount('explained', ({ explained }) => explained),
    amount('rest', ({ rest }) => rest),
    figure('covered', ({ covered_percent: percent }) => (percent === undefined ? '' : `${percent} %`)),
  ]);
  const rows = listed(bill.rows, { noun: 'row', total: bill.rows_total }, [
    word('day', ({ day }) => [day]),
    word('model', ({ model }) => (model === null ? [] : [outside(model)])),
    word('unit', ({ unit }) => [outside(unit)]),
    amount('billed', ({ billed }) => billed),
    amount('explained', ({ explained }) => explained),
    amount('rest', ({ rest }) => rest),
  ]);
  return [{ title: 'What the ledger explains of the bill', lines: [words], tables: [...sums, ...rows] }];
}

function describeEvidenceOfUse({ evidence = [] }: ActivityReport): Section[] {
  const all = evidence.flatMap(({ event_type: type, records, amounts }) =>
    amounts.map(({ name, amount }, index) => ({ type, records, name, amount, isFirst: index === 0 })),
  );
  if (all.length === 0) return [];
  const words =
    'Amounts in other records, such as imported logs. They have no authorization, and are in no account of a grant and in no sum above. If an execution states the same use, it is in both. A message or span that is stated several times counts once. A part, such as cached input tokens, may be included in its whole: do not add up different names.';
  const tables = listed(all, { noun: 'amount' }, [
    word('type of record', ({ type, isFirst }) => (isFirst ? [outside(type)] : [])),
    figure('records', ({ records, isFirst }) => (isFirst ? grouped(records) : '')),
    word('what', ({ name }) => [outside(name)]),
    amount('amount', ({ amount: sum }) => sum),
  ]);
  return [{ title: 'What evidence says', lines: [[words]], tables }];
}

/** The same in a sentence, for readers of the first paragraph alone. */
function describeStated({ evidence = [] }: ActivityReport): Line {
  const records = evidence.reduce((all, { records: n }) => all + n, 0);
  if (records === 0) return [];
  const first = evidence.flatMap(({ amounts }) => amounts).slice(0, MAX_UNITS);
  return [
    ` ${capital(count(records, 'further record'))} ${records === 1 ? 'states' : 'state'} amounts that nothing here accounts for, such as `,
    ...join(
      first.map(({ name, amount }) => [...amountCell(amount), ' ', outside(name)]),
      ', ',
    ),
    ': see What evidence says.',
  ];
}

const GROUP_WORDS = { principal: 'principal', grant: 'grant', tool: 'tool', day: 'day (UTC)' } as const;
const NO_GROUP = {
  principal: 'without a principal',
  grant: 'under no grant',
  tool: 'without a tool',
  day: 'without a time',
} as const;

function describeGroups({ by, groups, others, totals, grants }: ActivityReport): Section[] {
  if (by === undefined || groups === undefined) return [];
  const units = totals.meters.map(({ unit }) => unit);
  const isWide = units.length <= MAX_UNITS;
  const toRows = isWide ? wideRows(units) : longRows;
  const byId = new Map(grants.map((grant) => [grant.event_id, grant]));
  // A principal that only wrote checkpoints is left out.
  const told = by === 'principal' ? groups.filter(({ totals: own }) => hasActed(own)) : groups;
  const rows = told.slice(0, MAX_ROWS).flatMap(({ key, totals: own, with_delegated: all }) => {
    const grant = by === 'grant' && key !== null ? byId.get(key) : undefined;
    const indent = grant === undefined ? '' : indentOf(grant, byId);
    const name = key === null ? [NO_GROUP[by]] : [indent, ...nameOfGroup(key, grant)];
    return [
      ...toRows(name, own, own.meters),
      ...(all === undefined ? [] : toRows([indent, 'with those delegated from it'], undefined, all)),
    ];
  });
  if (others !== undefined) rows.push(...toRows(['all others'], others, others.meters));
  const columns = [
    ...texts(GROUP_WORDS[by]),
    ...numbers('executions', 'denied', 'wrong'),
    ...(isWide ? numbers(...units) : [...texts('unit'), ...numbers('spent')]),
  ];
  const words =
    'Use under a delegated grant is listed at that grant. The second row of a grant adds the use of the grants delegated from it.';
  return [
    {
      title: `By ${GROUP_WORDS[by]}`,
      lines: rows.length === 0 ? [['There is none.']] : by === 'grant' ? [[words]] : [],
      tables: rows.length === 0 ? [] : [{ columns, rows, ...cutNote(told.length, 'group') }],
    },
  ];
}

type GroupRows = (name: Line, counts: ActivityTotals | undefined, meters: readonly ActivityMeter[]) => Row[];

function wideRows(units: readonly string[]): GroupRows {
  return (name, counts, meters) => {
    const spent = new Map(meters.map((meter) => [meter.unit, meter.spent]));
    const amounts = units.map((unit) => amountCell(spent.get(unit) ?? ''));
    return [{ cells: [name, ...countCells(counts), ...amounts], isBad: wrongOf(counts) > 0 }];
  };
}

function longRows(name: Line, counts: ActivityTotals | undefined, meters: readonly ActivityMeter[]): Row[] {
  const head = [name, ...countCells(counts)];
  const isBad = wrongOf(counts) > 0;
  if (meters.length === 0) return [{ cells: [...head, [], []], isBad }];
  return meters.map(({ unit, spent }, index) => ({
    cells: [...(index === 0 ? head : [[], [], [], []]), [outside(unit)], amountCell(spent)],
    isBad,
  }));
}

function countCells(counts: ActivityTotals | undefined): Line[] {
  if (counts === undefined) return [[], [], []];
  return [ranOf(counts), deniedOf(counts), wrongOf(counts)].map((n) => [grouped(n)]);
}

function describeAllowance(report: ActivityReport): Section {
  const { problems, grants } = report;
  return {
    title: 'Was all of it allowed?',
    lines: [
      describeBounds(report),
      ...problems
        .slice(0, MAX_NAMED)
        .flatMap(({ code, first: [first] }) =>
          first === undefined ? [] : [describeProblem(code, first, grants)],
        ),
    ],
    tables: listed(
      problems,
      { noun: 'code' },
      [
        word('code', ({ code }) => [code]),
        word('what is wrong', ({ code, class: of }) => [
          `${of}: ${isFindingCode(code) ? CODE_PAGES[code].title : ''}`,
        ]),
        figure('records', ({ records }) => grouped(records)),
        word('first', ({ first: [first] }) => (first === undefined ? [] : placeOf(first))),
      ],
      () => true,
    ),
  };
}

const OVER: Readonly<Record<string, string>> = {
  METER_CAP_EXCEEDED: 'over the cap of',
  ACTION_CAP_EXCEEDED: 'over what one action may use under',
  RATE_LIMIT_EXCEEDED: 'over the rate of',
  RESERVATION_OVER_CAP: 'over the cap of',
};

/** By how much, and of which grant, where that is known: else the finding's own words. */
function describeProblem(code: string, first: ProblemPlace, grants: readonly ActivityGrant[]): Line {
  const { over, message } = first;
  const grant = over && grants.find(({ event_id: id }) => id === over.grant_event_id);
  const words = OVER[code];
  if (over === undefined || grant === undefined || words === undefined)
    return [...placeOf(first), ': ', outside(message), '.'];
  return [
    ...placeOf(first),
    ': ',
    ...listAmounts([over]),
    ` ${words} grant seq ${grant.seq}, signed by `,
    ...signersLine(grant.signers),
    ` (${code}).`,
  ];
}

function describeRefusals({ totals, denied, blocked }: ActivityReport): Section {
  const words =
    'Denied: a request that was refused, by the signer of the denial. Blocked: an attempt that was made anyway, and stopped by the denial before it ran.';
  return {
    title: 'What was refused: denied or blocked',
    lines: [[describeRefused(totals)], ...(denied.length + blocked.length > 0 ? [[words]] : [])],
    tables: [
      ...listed(denied, { caption: 'Requests that were denied', noun: 'request', total: deniedOf(totals) }, [
        ...placeColumns('principal'),
        word('asked for', ({ tool_name: tool }) => [tool === undefined ? 'a grant' : outside(tool)]),
        word('denied by', ({ signers }) => signersLine(signers)),
        word('code', ({ decision_code: code }) => [code]),
        word('policy it names', ({ policy_id: policy }) => [outside(policy)]),
        word('failed checks', ({ failed_checks: checks }) => names(checks)),
      ]),
      ...listed(
        blocked,
        { caption: 'Attempts that were blocked', noun: 'attempt', total: totals.executions.blocked },
        [...placeColumns('principal'), toolColumn, word('error code', ({ error_code: code = '' }) => [code])],
      ),
    ],
  };
}

function describeAuthority(report: ActivityReport): Section {
  return {
    title: 'Who authorized it',
    lines: report.grants.length > 0 ? [] : [describeGranters(report)],
    tables: [
      ...grantTable(report),
      ...approvalRuleTable(report),
      ...signerTable(report),
      ...decisionTable(report),
      ...coverageTable(report),
    ],
  };
}

function grantTable({ grants, grants_total: total }: ActivityReport): Table[] {
  if (grants.length === 0) return [];
  const byId = new Map(grants.map((grant) => [grant.event_id, grant]));
  const shown = grants.slice(0, MAX_ROWS);
  const isDelegated = shown.some(({ meters }) => meters.some(({ delegated }) => delegated !== undefined));
  const hasActionCaps = shown.some(({ action_caps: caps }) => caps.length > 0);
  const columns = [
    ...numbers('seq'),
    ...texts('granted to', 'tools', 'unit'),
    ...numbers('cap', 'used'),
    ...(isDelegated ? numbers('of it delegated') : []),
    ...numbers('reserved', 'left'),
    ...(hasActionCaps ? numbers('at most in one action') : []),
    ...texts('expires', 'signed by', 'policy it names'),
  ];
  const rows = shown.flatMap((grant) => {
    const head: Line[] = [
      [String(grant.seq)],
      [indentOf(grant, byId), outside(grant.principal_id)],
      firstNames(grant.allowed_tools, grant.allowed_tools_total),
    ];
    const rest: Line[] = [
      [grant.expires_at === undefined ? 'never' : timeText(grant.expires_at)],
      signersLine(grant.signers),
      [outside(grant.policy_id), ` ${grant.decision_code}`],
    ];
    const most = new Map(grant.action_caps.map((each) => [each.unit, each.amount]));
    return grant.meters
      .slice(0, MAX_UNITS)
      .map(({ unit, cap, used, delegated = '0', reserved, left }, index) => ({
        cells: [
          ...(index === 0 ? head : [[], [], []]),
          [outside(unit)],
          ...[cap, used, ...(isDelegated ? [delegated] : []), reserved, left].map(amountCell),
          ...(hasActionCaps ? [amountCell(most.get(unit) ?? '')] : []),
          ...(index === 0 ? rest : [[], [], []]),
        ],
        isBad: grant.verdict !== 'ok' || left.startsWith('-'),
      }));
  });
  return [
    {
      caption: 'Grants: what was allowed, in the whole ledger',
      columns,
      rows,
      ...cutNote(total, 'grant', shown.length),
    },
  ];
}

function approvalRuleTable({ grants }: ActivityReport): Table[] {
  const rules = grants
    .slice(0, MAX_ROWS)
    .flatMap(({ seq, approvals = [] }) => approvals.map((rule) => ({ seq, ...rule })));
  return listed(rules, { caption: 'Which calls need approval', noun: 'rule' }, [
    figure('grant seq', ({ seq }) => String(seq)),
    word('tools', ({ tools, tools_total: total }) => firstNames(tools, total)),
    word('when', ({ above }) => (above === undefined ? ['always'] : ['above ', ...listAmounts(above, 'or')])),
    word('approvers', ({ approvers }) => firstNames(approvers, approvers.length)),
    figure('approvals', ({ count: needed }) => String(needed)),
    word('valid for', ({ max_age_s: age }) => [
      age === undefined ? 'as each says' : `at most ${count(age, 'second')}`,
    ]),
  ]);
}

function firstNames(all: readonly string[], total: number): Line {
  const more = total - MAX_NAMED;
  return [...names(all.slice(0, MAX_NAMED)), ...(more > 0 ? [` and ${grouped(more)} more`] : [])];
}

function signerTable({ signers, unsigned }: ActivityReport): Table[] {
  if (signers.length === 0 && unsigned === 0) return [];
  const rows: Row[] = signers.slice(0, MAX_ROWS).map((signer) => ({
    cells: [
      keyLine(signer, true),
      [signer.pinned ? 'your trust policy' : 'the ledger alone'],
      ...[signer.records, signer.grants, signer.actions, signer.executions, signer.adjustments].map((n) => [
        grouped(n),
      ]),
    ],
  }));
  if (unsigned > 0)
    rows.push({ cells: [['no signature that counts'], [], [grouped(unsigned)], [], [], [], []] });
  const columns = [
    ...texts('key', 'known by'),
    ...numbers('records', 'grants', 'actions', 'executions', 'adjustments'),
  ];
  return [{ caption: 'Who signed these records', columns, rows, ...cutNote(signers.length, 'key') }];
}

function decisionTable({ decisions }: ActivityReport): Table[] {
  return listed(decisions, { caption: 'Decisions', noun: 'decision' }, [
    word('decision', ({ decision }) => [decision]),
    word('of', ({ kind }) => [kind]),
    word('code', ({ decision_code: code }) => [code]),
    word('policy it names', ({ policy_id: policy }) => [outside(policy)]),
    figure('times', ({ count: times }) => grouped(times)),
  ]);
}

/** What a way lets pass, the report cannot know. */
const WAYS = {
  hook: "a host's hooks, which report what the host tells them",
  proxy: 'a proxy, which sees all that passes it',
  sdk: 'the program itself, which guards what it is told to',
  kernel: 'a kernel, without which nothing is done',
  unstated: 'not stated',
  shadow: 'of all, in shadow: nothing was stopped',
} as const;

function coverageTable({ coverage }: ActivityReport): Table[] {
  if (coverage === undefined) return [];
  const ways = (Object.keys(WAYS) as (keyof typeof WAYS)[]).filter((way) => coverage[way] > 0);
  return listed(ways, { caption: 'By which way actions were decided', noun: 'way' }, [
    word('way', (way) => [WAYS[way]]),
    figure('decisions', (way) => grouped(coverage[way])),
  ]);
}

/** What was approved, withdrawn and corrected, and what is open at the end; nothing of what there is none of. */
function describeRest(report: ActivityReport): Section[] {
  const { open, starts, adjustments, approvals, revocations } = report;
  return [
    ...(approvals.length === 0 ? [] : [describeApprovals(report)]),
    ...(revocations.length === 0 ? [] : [describeRevocations(report)]),
    ...(open.length + starts.length === 0 ? [] : [describeOpen(report)]),
    ...(adjustments.length === 0 ? [] : [describeCorrections(report)]),
  ];
}

function describeApprovals({ totals, approvals }: ActivityReport): Section {
  const { approved, rejected, used } = totals.approvals;
  return {
    title: 'Who approved what',
    lines: [
      [`${count(approved, 'approval')}, of which ${grouped(used)} used; ${grouped(rejected)} rejected.`],
    ],
    tables: listed(approvals, { caption: 'Approvals', noun: 'approval', total: approved + rejected }, [
      ...placeColumns('by'),
      word('answer', ({ decision }) => [decision === 'approve' ? 'approved' : 'rejected']),
      word('code', ({ decision_code: code }) => [code]),
      toolColumn,
      grantColumn,
      word('used by', ({ tool_name: tool, used_by: action, used_by_seq: seq }) =>
        action === undefined ? ['none'] : [outside(tool), ` ${recordText(seq, action)}`],
      ),
      signersColumn,
    ]),
  };
}

function describeRevocations({ totals, revocations }: ActivityReport): Section {
  const { revoked, suspended, resumed } = totals.revocations;
  const total = revoked + suspended + resumed;
  return {
    title: 'What was revoked',
    lines: [[`${grouped(revoked)} revoked, ${grouped(suspended)} suspended, ${grouped(resumed)} resumed.`]],
    tables: listed(
      revocations,
      { caption: 'Revocations', noun: 'revocation', total },
      [
        ...placeColumns('by'),
        word('what', ({ effect, in_flight: inFlight, counted }) => [
          effectWord(effect),
          inFlightText(inFlight),
          counted ? '' : ' (counts for nothing)',
        ]),
        word('reason', ({ reason }) => [reason]),
        grantColumn,
        signersColumn,
      ],
      ({ counted }) => !counted,
    ),
  };
}

function describeOpen({ totals, open, starts }: ActivityReport): Section {
  return {
    title: 'What is still open',
    lines: [['Allowed and not executed, or started and without a recorded end, when the ledger ends.']],
    tables: [
      ...listed(
        open,
        { caption: 'Open authorizations', noun: 'authorization', total: totals.open.authorizations },
        [...placeColumns('principal'), toolColumn, word('reserved', ({ reserved }) => listAmounts(reserved))],
      ),
      ...listed(
        starts.map(({ started_at: at, ...start }) => ({ ...start, occurred_at: at })),
        {
          caption: 'Started: running, or its recorder was stopped',
          noun: 'start',
          total: totals.open.starts,
        },
        [...placeColumns('principal', 'started'), toolColumn],
      ),
    ],
  };
}

function describeCorrections({ totals, adjustments }: ActivityReport): Section {
  const total = totals.adjustments.credits + totals.adjustments.debits;
  const isRefused = ({ amounts }: ActivityAdjustment): boolean => amounts.every(({ counted }) => !counted);
  const columns: ColumnOf<ActivityAdjustment>[] = [
    ...placeColumns('by'),
    word('what', (each) => [
      each.direction === 'credit' ? 'taken off' : 'added',
      isRefused(each) ? ' (not applied: counts for nothing)' : '',
    ]),
    word('amounts', ({ amounts }) => listAmounts(amounts)),
    word('reason', ({ reason }) => [reason]),
    grantColumn,
    word('execution', (each) => [recordText(each.execution_seq, each.execution_event_id)]),
    signersColumn,
  ];
  const head = { caption: 'Adjustments', noun: 'adjustment', total };
  return { title: 'What was corrected', lines: [], tables: listed(adjustments, head, columns, isRefused) };
}

function recordText(seq: number | undefined, id: string | undefined): string {
  if (seq !== undefined) return `seq ${seq}`;
  return id === undefined ? 'none named' : shortId(id);
}

function describeEvidence(report: ActivityReport, guide: Guide): Section {
  const { ledger, not_checked: open, limits } = report;
  const period: Line =
    ledger.period === undefined
      ? ['No record states a time.']
      : [
          `The ledger has ${count(ledger.records, 'record')}, from ${timeText(ledger.period.first)} to ${timeText(ledger.period.last)} by their own timestamps.`,
        ];
  const notes = (
    caption: string,
    list: readonly { readonly code: string; readonly message: string }[],
  ): Table[] =>
    list.length === 0
      ? []
      : [
          {
            caption,
            columns: texts('code', 'what it means'),
            rows: list.map((item) => ({ cells: [[item.code], [outside(notCheckedText(item, guide))]] })),
          },
        ];
  return {
    title: 'Is anything missing?',
    lines: [describeMissing(report), period],
    tables: [...notes('Not checked', open), ...notes('What these numbers do not say', limits)],
  };
}

function signersLine(signers: readonly ActivityKey[]): Line {
  return signers.length === 0
    ? ['no valid signer']
    : join(
        signers.map((key) => keyLine(key)),
        ', ',
      );
}

interface Amount {
  readonly unit: string;
  readonly amount: string;
}

/** `3.75 usd, 2 pages and 12 calls`. */
function listAmounts(amounts: readonly Amount[], conjunction: 'and' | 'or' = 'and'): Line {
  if (amounts.length === 0) return ['nothing'];
  const shown = amounts
    .slice(0, MAX_UNITS)
    .map(({ unit, amount }): Line => [
      `${amountText(amount)} `,
      outside(unit === 'calls' && amount === '1' ? 'call' : unit),
    ]);
  const more = amounts.length - shown.length;
  if (more > 0) return [...join(shown, ', '), ` ${conjunction} ${count(more, 'more unit')}`];
  const last = shown.pop() ?? [];
  return shown.length === 0 ? last : [...join(shown, ', '), ` ${conjunction} `, ...last];
}

function amountsOf(meters: readonly ActivityMeter[], part: 'credited' | 'debited' | 'reserved'): Amount[] {
  return meters.flatMap(({ unit, [part]: amount }) => (amount === '0' ? [] : [{ unit, amount }]));
}

function listIf<T>(applies: boolean, item: T): T[] {
  return applies ? [item] : [];
}

/** `1 start has`, `2 starts have`. */
function those(n: number, noun: string, one: string, many: string): string {
  return `${count(n, noun)} ${n === 1 ? one : many}`;
}

function amountText(amount: string): string {
  if (amount.length > MAX_AMOUNT) return `${amount.slice(0, MAX_AMOUNT - 1)}…`;
  return groupDigits(amount);
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
  if (owner !== undefined)
    return name === undefined || name === owner
      ? [outside(owner), ` (own key ${id})`]
      : [outside(name), ' (own key of ', outside(owner), `, ${id})`];
  return name === undefined ? [`key ${id}`] : [outside(name), ` (key ${id})`];
}

function placeOf({ seq, file, line, principal_id: principal, tool_name: tool }: ProblemPlace): Line {
  return [
    ...(seq === undefined ? [outside(file), `:${line}`] : [`seq ${seq}`]),
    ...(principal === undefined ? [] : [', ', outside(principal)]),
    ...(tool === undefined ? [] : [', ', outside(tool)]),
  ];
}

function nameOfGroup(key: string, grant: ActivityGrant | undefined): Line {
  return grant === undefined ? [outside(key)] : [`seq ${grant.seq}, `, outside(grant.principal_id)];
}

/** A dash for each listed grant above this one. */
function indentOf(grant: ActivityGrant, byId: ReadonlyMap<string, ActivityGrant>): string {
  let depth = 0;
  let above = byId.get(grant.parent_event_id ?? '');
  for (; above !== undefined && depth < MAX_ROWS; depth += 1) above = byId.get(above.parent_event_id ?? '');
  return '– '.repeat(depth);
}

function hasActed(totals: ActivityTotals): boolean {
  const { verdicts, executions, open, meters } = totals;
  const asked =
    deniedOf(totals) + executions.blocked + executions.released + open.authorizations + open.starts;
  return ranOf(totals) + asked + verdicts.violation + verdicts.invalid + meters.length > 0;
}

function wrongOf(counts: ActivityTotals | undefined): number {
  return counts === undefined ? 0 : counts.verdicts.invalid + counts.verdicts.violation;
}

function isCorrected({ debited, credited }: ActivityMeter): boolean {
  return debited !== '0' || credited !== '0';
}

type ColumnOf<T> = Table['columns'][number] & { readonly cell: (item: T) => Line };

function word<T>(head: string, cell: (item: T) => Line): ColumnOf<T> {
  return { head, cell };
}

function figure<T>(head: string, cell: (item: T) => string): ColumnOf<T> {
  return { head, isNumber: true, cell: (item) => [cell(item)] };
}

function amount<T>(head: string, cell: (item: T) => string): ColumnOf<T> {
  return figure(head, (item) => amountText(cell(item)));
}

type Placed = Pick<ActivityDenial, 'seq' | 'occurred_at' | 'principal_id'>;

function placeColumns(who: string, when = 'time'): ColumnOf<Placed>[] {
  return [
    figure('seq', ({ seq }) => String(seq)),
    word(when, ({ occurred_at: at }) => [timeText(at)]),
    word(who, ({ principal_id: principal }) => [outside(principal)]),
  ];
}

const toolColumn = word('tool', ({ tool_name: tool }: { readonly tool_name: string }) => [outside(tool)]);
const signersColumn = word('signed by', ({ signers }: Pick<ActivityDenial, 'signers'>) =>
  signersLine(signers),
);
const grantColumn = word('grant', (each: Pick<ActivityAdjustment, 'grant_seq' | 'grant_event_id'>) => [
  recordText(each.grant_seq, each.grant_event_id),
]);

/** A table of the first items; none where there are no items. `total`: how many there are, default: the items. */
function listed<T>(
  items: readonly T[],
  { noun, total = items.length, ...head }: Pick<Table, 'caption'> & { noun: string; total?: number },
  columns: readonly ColumnOf<T>[],
  isBad: (item: T) => boolean = () => false,
): Table[] {
  if (items.length === 0) return [];
  const rows = items
    .slice(0, MAX_ROWS)
    .map((item) => ({ cells: columns.map(({ cell }) => cell(item)), isBad: isBad(item) }));
  return [{ ...head, columns, rows, ...cutNote(total, noun, rows.length) }];
}

function cutNote(total: number, noun: string, shown = Math.min(total, MAX_ROWS)): { readonly note?: string } {
  return shown >= total ? {} : { note: `${count(total - shown, `further ${noun}`)} not shown here.` };
}

function capital(sentence: string): string {
  return `${sentence.slice(0, 1).toUpperCase()}${sentence.slice(1)}`;
}
