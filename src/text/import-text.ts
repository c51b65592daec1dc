/** The report of an import or a check, in sentences and tables. */

import type { ImportFile, ImportFinding, ImportReport, ImportRule } from '../schema/generated/types.js';
import { documentMarkdown } from './document-markdown.js';
import { documentLines } from './document-text.js';
import {
  join,
  outside,
  type Column,
  type Document,
  type Line,
  type Section,
  type Table,
} from './document.js';
import { plainPaint, type Paint } from './report.js';
import { count, grouped } from './words.js';

/** The most rows of a table. */
const MAX_ROWS = 50;

/** The report as lines of text, each ending in `\n`. Everything that comes from the files is made printable. */
export function renderImport(report: ImportReport, paint: Paint = plainPaint): string {
  return documentLines(describeImport(report), paint)
    .map((line) => `${line}\n`)
    .join('');
}

/** The report as Markdown. Outside text stands in spans of code. */
export function renderImportMarkdown(report: ImportReport): string {
  return documentMarkdown(describeImport(report));
}

function describeImport(report: ImportReport): Document {
  const { subject, files, verdict, tool, findings_total: total } = report;
  return {
    title: [
      subject.kind === 'host' ? 'Import from ' : 'Check as ',
      subject.label,
      ': ',
      ...join(
        files.slice(0, MAX_ROWS).map(({ name }) => [outside(name)]),
        ', ',
      ),
    ],
    verdict,
    headline: [headlineOf(report)],
    summary: [describeItems(report), ...describeEvents(report)],
    sections: [
      ...(files.length > 1 ? [describeFiles(files)] : []),
      ...describeReasons(report),
      ...(total === 0 ? [] : [describeFindings(report)]),
      describeRules(report),
    ],
    footer: [`${tool.name} ${tool.version}`],
  };
}

function headlineOf({ verdict, findings_total: total }: ImportReport): string {
  if (verdict !== 'ok' || total === 0) return HEADLINES[verdict];
  return `${HEADLINES.ok}; ${count(total, 'other finding')}`;
}

const HEADLINES = {
  ok: 'nothing in the files breaks a rule of the host that they decide',
  violation: 'the files are intact evidence of something that was not allowed',
  invalid: 'the files are broken, contradict themselves, or lack what they must have',
  undecided: 'there was nothing to read',
} as const;

function describeItems({ items, subject }: ImportReport): Line {
  if (subject.kind === 'profile') {
    return [
      `${count(items.items, 'item')}: ${grouped(items.items - items.dropped)} checked, ${grouped(items.dropped)} could not be.`,
    ];
  }
  return [
    `${count(items.items, 'item')}: ${grouped(items.mapped)} became authorizations, executions or adjustments, ${grouped(items.evidence)} are kept as evidence, ${grouped(items.repeated)} repeat what another item says, ${grouped(items.dropped)} were dropped.`,
  ];
}

function describeEvents({ events }: ImportReport): Line[] {
  if (events === undefined) return [];
  const { made, existing, conflicting, unfit, appended, by_type: byType } = events;
  const types = Object.entries(byType).map(([type, n]): Line => [`${grouped(n)} `, outside(type)]);
  const was = appended === undefined ? 'nothing was appended' : `${grouped(appended)} appended`;
  return [
    [
      `${count(made, 'event')}`,
      ...(types.length === 0 ? [] : [' (', ...join(types, ', '), ')']),
      `: ${was}, ${grouped(existing)} there already`,
      ...(conflicting === 0 ? [] : [`, ${grouped(conflicting)} in conflict with what the ledger has`]),
      ...(unfit === 0 ? [] : [`; ${grouped(unfit)} could not be made`]),
      '.',
    ],
  ];
}

function describeFiles(files: readonly ImportFile[]): Section {
  const columns: Column[] = [
    { head: 'file' },
    ...['items', 'mapped', 'evidence', 'repeated', 'dropped'].map((head) => ({ head, isNumber: true })),
  ];
  const rows = files.slice(0, MAX_ROWS).map(({ name, items, mapped, evidence, repeated, dropped }) => ({
    cells: [[outside(name)], ...[items, mapped, evidence, repeated, dropped].map((n): Line => [grouped(n)])],
    isBad: dropped > 0,
  }));
  return { title: 'Files', lines: [], tables: [table(columns, rows, files.length)] };
}

function describeReasons({ reasons }: ImportReport): Section[] {
  if (reasons.length === 0) return [];
  const columns = [{ head: 'reason' }, { head: 'items', isNumber: true }];
  const rows = reasons.slice(0, MAX_ROWS).map(({ reason, items }) => ({
    cells: [[outside(reason)], [grouped(items)]],
  }));
  return [{ title: 'Dropped or repeated', lines: [], tables: [table(columns, rows, reasons.length)] }];
}

function describeFindings({ files, findings, findings_total: total }: ImportReport): Section {
  const isOne = files.length === 1;
  const columns = [
    { head: 'rule' },
    { head: 'severity' },
    { head: isOne ? 'line' : 'place' },
    { head: 'what' },
  ];
  const rows = findings.slice(0, MAX_ROWS).map((finding) => ({
    cells: [[finding.rule], [finding.severity], [outside(placeOf(finding, isOne))], [finding.code]],
    isBad: finding.severity === 'error',
  }));
  const details = findings
    .slice(0, MAX_ROWS)
    .map((finding): Line => [
      `${finding.rule}, `,
      outside(placeOf(finding, false)),
      ': ',
      outside(finding.message),
    ]);
  return { title: 'Findings', lines: details, tables: rows.length < 2 ? [] : [table(columns, rows, total)] };
}

/** Rules that the files do not decide are named, so that nobody takes them for held. */
function describeRules({ rules }: ImportReport): Section {
  const decided = rules.filter(({ undecidable }) => undecidable === undefined);
  const broken = decided.filter(({ findings }) => findings > 0);
  const open = rules.filter(({ undecidable }) => undecidable !== undefined);
  const columns = [{ head: 'rule' }, { head: 'what must hold' }];
  const toRow = ({ id, statement, undecidable }: ImportRule): { cells: Line[] } => ({
    cells: [[id], [statement, ...(undecidable === undefined ? [] : [` (not decided: ${undecidable})`])]],
  });
  return {
    title: 'Rules',
    lines: [
      [
        `${grouped(decided.length)} rules were asked; ${grouped(broken.length)} of them have findings. ${grouped(open.length)} cannot be decided from such files.`,
      ],
    ],
    tables: [...broken, ...open].length === 0 ? [] : [{ columns, rows: [...broken, ...open].map(toRow) }],
  };
}

function table(columns: readonly Column[], rows: Table['rows'], total: number): Table {
  const more = total - rows.length;
  return { columns, rows, ...(more > 0 ? { note: `${grouped(more)} more` } : {}) };
}

function placeOf({ at: { file, line, pointer } }: ImportFinding, isOne: boolean): string {
  const place = isOne ? `${line ?? ''}` : `${file}${line === undefined ? '' : `:${line}`}`;
  return `${place}${pointer === undefined || pointer === '' ? '' : ` ${pointer}`}`;
}
