/** A reconciliation in sentences and tables. */

import type {
  ReconcileCall,
  ReconcileFinding,
  ReconcileReport,
} from '../../format/schema/generated/types.js';
import { documentMarkdown } from './document-markdown.js';
import { documentText } from './document-text.js';
import {
  type Document,
  join,
  type Line,
  names,
  numbers,
  outside,
  placeText,
  type Section,
  tableSection,
  texts,
} from './document.js';
import { type Paint, plainPaint } from './guide.js';
import { count, grouped } from './words.js';

/** The most rows of a table, and the most sentences of a list. */
const MAX_ROWS = 50;

/** The report as lines of text, each ending in `\n`. Everything that comes from outside is made printable. */
export function renderReconciliation(report: ReconcileReport, paint: Paint = plainPaint): string {
  return documentText(describe(report), paint);
}

/** The report as Markdown. Outside text is in code spans. */
export function renderReconciliationMarkdown(report: ReconcileReport): string {
  return documentMarkdown(describe(report));
}

const HEADLINES = {
  ok: 'nothing that ledger and sources both recorded contradicts the other',
  violation: 'the evidence is intact and shows something that was not allowed or not promised',
  invalid: 'evidence is broken, contradictory or missing',
  undecided: 'nothing could be compared',
} as const;

const STATES = [
  ['corroborated', 'the ledger and an independent source agree'],
  ['same_file', 'they agree, but the record was made from this very file'],
  ['ledger_only', 'no source shows it'],
  ['source_only', 'the ledger does not have it, or not its execution'],
  ['contradicted', 'the ledger and a source say otherwise'],
  ['ambiguous', 'which call it is cannot be told'],
  ['invalid', 'its record is invalid, and corroborates nothing'],
] as const satisfies readonly (readonly [ReconcileCall['state'], string])[];

function describe(report: ReconcileReport): Document {
  const { ledger, sources, verdict, tool, statement } = report;
  return {
    title: [
      'Reconciliation of ',
      ...names(ledger.paths.slice(0, 1)),
      ' with ',
      ...names(sources.map(({ name }) => name)),
    ],
    verdict,
    headline: [HEADLINES[verdict]],
    summary: [[statement], describeCounts(report)],
    sections: [
      describeStates(report),
      describeSources(report),
      ...describeMeters(report),
      ...describeLeftOut(report),
      ...describeExpected(report),
      ...describeFindings(report),
      ...describeListed(report),
      tableSection(
        'Not checked',
        texts('code', 'what'),
        report.not_checked.map(({ code, message }) => ({ cells: [[code], [outside(message)]] })),
      ),
    ],
    footer: [`${tool.name} ${tool.version}`],
  };
}

function describeCounts({ ledger, calls, agreed }: ReconcileReport): Line {
  return [
    `The ledger is ${ledger.verdict} and has ${count(ledger.calls, 'call')}, ${grouped(ledger.executions)} of them executed. `,
    `${grouped(calls.corroborated)} corroborated: alike were ${count(agreed.tool, 'tool')}, ${count(agreed.params, 'digest')} of parameters, ${count(agreed.decision, 'decision')}, ${count(agreed.outcome, 'outcome')}.`,
  ];
}

function describeStates({ calls }: ReconcileReport): Section {
  const rows = STATES.map(([state, words]) => ({
    cells: [[state.replace('_', ' ')], [grouped(calls[state])], [words]] as Line[],
    isBad: calls[state] > 0 && (state === 'contradicted' || state === 'invalid'),
  }));
  return tableSection('Calls', [...texts('state'), ...numbers('calls'), ...texts('what it means')], rows);
}

function describeSources({ sources }: ReconcileReport): Section {
  const columns = [
    ...texts('source', 'verdict'),
    ...numbers('items', 'calls', 'executed', 'left out'),
    ...texts('files'),
  ];
  const rows = sources.map(({ name, verdict, items, calls, executions, outside: left, ...rest }) => {
    const leftOut = rest.left_out.reduce((sum, each) => sum + each.items, left);
    return {
      cells: [
        [outside(name)],
        [verdict],
        ...[items, calls, executions, leftOut].map((n): Line => [grouped(n)]),
        names(rest.files.slice(0, 3).map((file) => file.name)),
      ],
      isBad: verdict === 'invalid' || verdict === 'violation',
    };
  });
  return tableSection('Sources', columns, rows);
}

function describeMeters({ meters, meters_left_out: leftOut }: ReconcileReport): Section[] {
  if (meters.length === 0) return [];
  const columns = [
    ...texts('unit', 'source'),
    ...numbers('ledger', 'source', 'difference', 'difference of shared calls'),
  ];
  const all = meters.flatMap(({ unit, ledger, sources }) =>
    sources.map(({ source, amount, difference, compared_difference: shared }) => ({
      cells: [unit, source, ledger, amount, difference, shared].map((text): Line => [outside(text)]),
      isBad: shared !== '0',
    })),
  );
  const more = moreNote(all.length - MAX_ROWS);
  const unsummed = leftOut > 0 ? `${count(leftOut, 'amount')} could not be summed` : '';
  const note = [more, unsummed].filter((part) => part !== '').join('; ');
  return [tableSection('Sums', columns, all.slice(0, MAX_ROWS), note)];
}

/** Usage that sources state and no sum has. */
function describeLeftOut({ sources }: ReconcileReport): Section[] {
  const all = sources.flatMap(({ name, left_out: leftOut }) =>
    leftOut.map(({ reason, items, amounts }) => ({
      cells: [
        [outside(name)],
        [outside(reason)],
        [grouped(items)],
        names(amounts.map(({ unit, amount }) => `${amount} ${unit}`)),
      ],
    })),
  );
  if (all.length === 0) return [];
  const columns = [...texts('source', 'reason'), ...numbers('items'), ...texts('amounts')];
  const note = moreNote(all.length - MAX_ROWS);
  return [tableSection('Usage left out of the sums', columns, all.slice(0, MAX_ROWS), note)];
}

function describeExpected({ expected }: ReconcileReport): Section[] {
  if (expected === undefined) return [];
  const range = (min = 0, max?: number): string =>
    `${grouped(min)} to ${max === undefined ? 'any number' : grouped(max)}`;
  const all: (readonly [what: string, promised: string, there: string])[] = [
    ...expected.tools.map(({ tool, min, max, calls }) => [tool, range(min, max), grouped(calls)] as const),
    ...expected.counts.map(
      ({ of, min, max, calls }) => [`calls of ${of}`, range(min, max), grouped(calls)] as const,
    ),
    ...expected.sequences.map(
      ({ of, prefix = '', first, last, there, missing }) =>
        [
          `numbers of ${of}`,
          `${prefix}${first} to ${prefix}${last}`,
          `${grouped(there)}, ${grouped(missing)} missing`,
        ] as const,
    ),
  ];
  if (all.length === 0) return [];
  const rows = all
    .slice(0, MAX_ROWS)
    .map(([what, promised, there]) => ({ cells: [[outside(what)], [outside(promised)], [there]] }));
  return [
    tableSection('Promised', texts('promised', 'how many', 'there'), rows, moreNote(all.length - MAX_ROWS)),
  ];
}

function describeFindings({ findings, findings_total: total }: ReconcileReport): Section[] {
  if (total === 0) return [];
  const shown = findings.slice(0, MAX_ROWS);
  const lines = shown.map((finding): Line => [
    `${finding.severity} ${finding.code} `,
    ...placeOf(finding),
    outside(finding.message),
  ]);
  const more = total - shown.length;
  return [
    {
      title: 'Findings',
      lines: more > 0 ? [...lines, [`… ${grouped(more)} more`]] : lines,
      tables: [],
    },
  ];
}

function placeOf({ ledger = [], at }: ReconcileFinding): Line {
  const records = ledger.map(({ seq }) => `#${seq}`).join(', ');
  const places = [
    ...(records === '' ? [] : [[`ledger ${records}`]]),
    ...(at === undefined ? [] : [[outside(placeText(at))]]),
  ];
  return places.length === 0 ? [] : [...join(places, ' and '), ': '];
}

function describeListed({ listed, calls }: ReconcileReport): Section[] {
  if (listed.length === 0) return [];
  const shown = listed.slice(0, MAX_ROWS);
  const rows = shown.map(({ state, call_ids: [id = ''], tool = '', ledger, sources }) => ({
    cells: [
      [state.replace('_', ' ')],
      [outside(id)],
      [outside(tool)],
      [ledger.map(({ seq }) => `#${seq}`).join(', ')],
      names(sources.flatMap(({ at }) => at.slice(0, 2).map(placeText))),
    ],
    isBad: state === 'contradicted' || state === 'invalid',
  }));
  const columns = texts('state', 'call', 'tool', 'records', 'in the sources');
  return [tableSection('Each call', columns, rows, moreNote(calls.total - rows.length))];
}

function moreNote(more: number): string {
  return more > 0 ? `${grouped(more)} more` : '';
}
