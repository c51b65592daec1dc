/** A reconciliation in sentences and tables. */

import type {
  ReconcileCall,
  ReconcileFinding,
  ReconcilePlace,
  ReconcileReport,
} from '../../format/schema/generated/types.js';
import { documentMarkdown } from './document-markdown.js';
import { documentLines } from './document-text.js';
import { type Column, type Document, join, type Line, outside, type Section } from './document.js';
import { type Paint, plainPaint } from './paint.js';
import { count, grouped } from './words.js';

/** The most rows of a table, and the most sentences of a list. */
const MAX_ROWS = 50;

/** The report as lines of text, each ending in `\n`. Everything that comes from outside is made printable. */
export function renderReconciliation(report: ReconcileReport, paint: Paint = plainPaint): string {
  return documentLines(describe(report), paint)
    .map((line) => `${line}\n`)
    .join('');
}

/** The report as Markdown. Outside text stands in spans of code. */
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
      ...join(
        ledger.paths.slice(0, 1).map((path) => [outside(path)]),
        ', ',
      ),
      ' with ',
      ...join(
        sources.map(({ name }) => [outside(name)]),
        ', ',
      ),
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
      {
        title: 'Not checked',
        lines: [],
        tables: [
          {
            columns: [{ head: 'code' }, { head: 'what' }],
            rows: report.not_checked.map(({ code, message }) => ({ cells: [[code], [outside(message)]] })),
          },
        ],
      },
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
  return {
    title: 'Calls',
    lines: [],
    tables: [
      { columns: [{ head: 'state' }, { head: 'calls', isNumber: true }, { head: 'what it means' }], rows },
    ],
  };
}

function describeSources({ sources }: ReconcileReport): Section {
  const columns: Column[] = [
    { head: 'source' },
    { head: 'verdict' },
    ...['items', 'calls', 'executed', 'left out'].map((head) => ({ head, isNumber: true })),
    { head: 'files' },
  ];
  const rows = sources.map(
    ({ name, verdict, items, calls, executions, outside: left, left_out: leftOut, files }) => ({
      cells: [
        [outside(name)],
        [verdict],
        ...[items, calls, executions, leftOut.reduce((sum, each) => sum + each.items, left)].map(
          (n): Line => [grouped(n)],
        ),
        join(
          files.slice(0, 3).map((file) => [outside(file.name)]),
          ', ',
        ),
      ],
      isBad: verdict === 'invalid' || verdict === 'violation',
    }),
  );
  return { title: 'Sources', lines: [], tables: [{ columns, rows }] };
}

function describeMeters({ meters, meters_left_out: leftOut }: ReconcileReport): Section[] {
  if (meters.length === 0) return [];
  const columns: Column[] = [
    { head: 'unit' },
    { head: 'source' },
    ...['ledger', 'source', 'difference', 'difference of shared calls'].map((head) => ({
      head,
      isNumber: true,
    })),
  ];
  const all = meters.flatMap(({ unit, ledger, sources }) =>
    sources.map(({ source, amount, difference, compared_difference: shared }) => ({
      cells: [
        [outside(unit)],
        [outside(source)],
        ...[ledger, amount, difference, shared].map((text): Line => [outside(text)]),
      ],
      isBad: shared !== '0',
    })),
  );
  const notes = [
    ...(all.length > MAX_ROWS ? [`${grouped(all.length - MAX_ROWS)} more`] : []),
    ...(leftOut > 0 ? [`${count(leftOut, 'amount')} could not be summed`] : []),
  ];
  const rows = all.slice(0, MAX_ROWS);
  return [
    {
      title: 'Sums',
      lines: [],
      tables: [{ columns, rows, ...(notes.length === 0 ? {} : { note: notes.join('; ') }) }],
    },
  ];
}

/** Usage that sources state and no sum has. */
function describeLeftOut({ sources }: ReconcileReport): Section[] {
  const all = sources.flatMap(({ name, left_out: leftOut }) =>
    leftOut.map(({ reason, items, amounts }) => ({
      cells: [
        [outside(name)],
        [outside(reason)],
        [grouped(items)],
        join(
          amounts.map(({ unit, amount }): Line => [outside(`${amount} ${unit}`)]),
          ', ',
        ),
      ],
    })),
  );
  if (all.length === 0) return [];
  const columns = [
    { head: 'source' },
    { head: 'reason' },
    { head: 'items', isNumber: true },
    { head: 'amounts' },
  ];
  const more = all.length - MAX_ROWS;
  return [
    {
      title: 'Usage left out of the sums',
      lines: [],
      tables: [
        {
          columns,
          rows: all.slice(0, MAX_ROWS),
          ...(more > 0 ? { note: `${grouped(more)} more` } : {}),
        },
      ],
    },
  ];
}

function describeExpected({ expected }: ReconcileReport): Section[] {
  if (expected === undefined) return [];
  const { tools, counts, sequences } = expected;
  const range = (min: number | undefined, max: number | undefined): string =>
    `${grouped(min ?? 0)} to ${max === undefined ? 'any number' : grouped(max)}`;
  const all = [
    ...tools.map(({ tool, min, max, calls }) => ({
      what: tool,
      promised: range(min, max),
      there: grouped(calls),
    })),
    ...counts.map(({ of, min, max, calls }) => ({
      what: `calls of ${of}`,
      promised: range(min, max),
      there: grouped(calls),
    })),
    ...sequences.map(({ of, prefix = '', first, last, there, missing }) => ({
      what: `numbers of ${of}`,
      promised: `${prefix}${first} to ${prefix}${last}`,
      there: `${grouped(there)}, ${grouped(missing)} missing`,
    })),
  ];
  if (all.length === 0) return [];
  const columns: Column[] = [{ head: 'promised' }, { head: 'how many' }, { head: 'there' }];
  const rows = all
    .slice(0, MAX_ROWS)
    .map(({ what, promised, there }) => ({ cells: [[outside(what)], [outside(promised)], [there]] }));
  const more = all.length - rows.length;
  return [
    {
      title: 'Promised',
      lines: [],
      tables: [{ columns, rows, ...(more > 0 ? { note: `${grouped(more)} more` } : {}) }],
    },
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
    ...(at === undefined ? [] : [[outside(textOf(at))]]),
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
      join(
        sources.flatMap(({ at }) => at.slice(0, 2).map((place): Line => [outside(textOf(place))])),
        ', ',
      ),
    ],
    isBad: state === 'contradicted' || state === 'invalid',
  }));
  const more = calls.total - rows.length;
  const columns = ['state', 'call', 'tool', 'records', 'in the sources'].map((head) => ({ head }));
  return [
    {
      title: 'Each call',
      lines: [],
      tables: [{ columns, rows, ...(more > 0 ? { note: `${grouped(more)} more` } : {}) }],
    },
  ];
}

function textOf({ file, line, pointer }: ReconcilePlace): string {
  return `${file}${line === undefined ? '' : `:${line}`}${pointer === undefined || pointer === '' ? '' : ` ${pointer}`}`;
}
