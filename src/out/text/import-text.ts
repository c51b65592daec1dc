/** The report of an import or a check, in sentences and tables. */

import type {
  ImportFile,
  ImportFinding,
  ImportReport,
  ImportRule,
} from '../../format/schema/generated/types.js';
import { documentMarkdown } from './document-markdown.js';
import { documentText } from './document-text.js';
import {
  type Column,
  type Document,
  join,
  type Line,
  names,
  numbers,
  outside,
  placeText,
  type Section,
  type Table,
  tableSection,
  texts,
} from './document.js';
import { type Paint, plainPaint } from './guide.js';
import { count, grouped } from './words.js';

/** The most rows of a table, and files in the title. */
const MAX_ROWS = 50;
const MAX_NAMED = 3;
/** The most findings of one kind that are listed. */
const MAX_ALIKE = 5;

/** The report as lines of text, each ending in `\n`. Everything that comes from the files is made printable. */
export function renderImport(report: ImportReport, paint: Paint = plainPaint): string {
  return documentText(describeImport(report), paint);
}

/** The report as Markdown. Outside text is in code spans. */
export function renderImportMarkdown(report: ImportReport): string {
  return documentMarkdown(describeImport(report));
}

function describeImport(report: ImportReport): Document {
  const { subject, files, verdict, tool, findings_total: total } = report;
  return {
    title: [subject.kind === 'host' ? 'Import from ' : 'Check as ', subject.label, ': ', ...nameFiles(files)],
    verdict,
    headline: [headlineOf(report)],
    summary: [describeItems(report), ...describeReceipts(report), ...describeEvents(report)],
    sections: [
      ...(files.length > 1 ? [describeFiles(files)] : []),
      ...describeReasons(report),
      ...describeLeftOut(report),
      ...(total === 0 ? [] : [describeFindings(report)]),
      describeRules(report),
    ],
    footer: [`${tool.name} ${tool.version}`],
  };
}

/** Archives by their own name, and the first few. */
function nameFiles(files: readonly ImportFile[]): Line {
  const all = [...new Set(files.map(({ name }) => name.replace(/!.*$/s, '')))];
  if (all.length === 0) return ['no items'];
  const more = all.length - MAX_NAMED;
  return [...names(all.slice(0, MAX_NAMED)), ...(more > 0 ? [` and ${grouped(more)} more`] : [])];
}

/** What the names of all files begin with, up to a folder: a table need not say it in every row. */
function commonFolder(files: readonly ImportFile[]): string {
  const [first = '', ...others] = files.map(({ name }) => name);
  let end = first.lastIndexOf('/') + 1;
  while (end > 0 && !others.every((name) => name.startsWith(first.slice(0, end)))) {
    // From a negative place, `lastIndexOf` still looks at the first character.
    end = end === 1 ? 0 : first.lastIndexOf('/', end - 2) + 1;
  }
  return first.slice(0, end);
}

function headlineOf({ verdict, findings_total: total }: ImportReport): string {
  if (verdict !== 'ok' || total === 0) return HEADLINES[verdict];
  return `${HEADLINES.ok}; ${count(total, 'other finding')}`;
}

const HEADLINES = {
  ok: 'nothing in the files breaks a rule of the host that they decide',
  violation: 'the files are intact evidence of something that was not allowed',
  invalid: 'the files are broken, contradict themselves, or lack what they must have',
  undecided: 'the files hold nothing of this system that can be read',
} as const;

function describeItems({ items, subject }: ImportReport): Line {
  if (subject.kind === 'profile')
    return [
      `${count(items.items, 'item')}: ${grouped(items.items - items.dropped)} checked, ${grouped(items.dropped)} could not be.`,
    ];
  return [
    `${count(items.items, 'item')}: ${grouped(items.mapped)} became authorizations, executions or adjustments, ${grouped(items.evidence)} kept as evidence, ${grouped(items.repeated)} repeating what another item says, ${grouped(items.dropped)} dropped.`,
  ];
}

function describeReceipts({ receipts }: ImportReport): Line[] {
  if (receipts === undefined) return [];
  const { verified, own_key: ownKey, unverified, broken } = receipts;
  return [
    [
      `${count(verified + ownKey + unverified + broken, 'receipt')}: ${grouped(verified)} verified`,
      ...(ownKey === 0 ? [] : [`, ${grouped(ownKey)} signed by a key that only the receipt states`]),
      ...(unverified === 0 ? [] : [`, ${grouped(unverified)} not verified`]),
      `, ${grouped(broken)} broken.`,
    ],
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
  const columns = [...texts('file'), ...numbers('items', 'mapped', 'evidence', 'repeated', 'dropped')];
  const folder = commonFolder(files);
  const rows = files.slice(0, MAX_ROWS).map(({ name, items, mapped, evidence, repeated, dropped }) => ({
    cells: [
      [outside(name.slice(folder.length))],
      ...[items, mapped, evidence, repeated, dropped].map((n): Line => [grouped(n)]),
    ],
    isBad: dropped > 0,
  }));
  const lines: Line[] = folder === '' ? [] : [['in ', outside(folder)]];
  return { ...cutSection('Files', columns, rows, files.length), lines };
}

function describeReasons({ reasons }: ImportReport): Section[] {
  if (reasons.length === 0) return [];
  const rows = reasons.slice(0, MAX_ROWS).map(({ reason, items }) => ({
    cells: [[outside(reason)], [grouped(items)]],
  }));
  const columns = [...texts('reason'), ...numbers('items')];
  return [cutSection('Dropped or repeated', columns, rows, reasons.length)];
}

/** Usage that is in no sum: why, and how much. */
function describeLeftOut({ left_out: leftOut }: ImportReport): Section[] {
  if (leftOut.length === 0) return [];
  const rows = leftOut.slice(0, MAX_ROWS).map(({ reason, items, amounts }) => ({
    cells: [
      [outside(reason)],
      [grouped(items)],
      names(amounts.map(({ unit, amount }) => `${amount} ${unit}`)),
    ],
  }));
  const columns = [...texts('reason'), ...numbers('items'), ...texts('amounts')];
  return [cutSection('Usage left out', columns, rows, leftOut.length)];
}

/** Findings grouped by rule and code: the number, and the first few. */
function describeFindings({ findings, findings_total: total }: ImportReport): Section {
  const alike = new Map<string, ImportFinding[]>();
  for (const finding of findings) {
    const key = `${finding.severity} ${finding.rule} ${finding.code}`;
    const group = alike.get(key);
    if (group === undefined) alike.set(key, [finding]);
    else group.push(finding);
  }
  const columns = [...texts('rule', 'severity', 'what'), ...numbers('findings')];
  const groups = [...alike.values()].slice(0, MAX_ROWS);
  const rows = groups.map((group) => {
    const { rule, severity, code } = group[0] as ImportFinding;
    return { cells: [[rule], [severity], [code], [grouped(group.length)]], isBad: severity === 'error' };
  });
  const lines = groups.flatMap((group): Line[] => [
    ...group
      .slice(0, MAX_ALIKE)
      .map((finding): Line => [
        `${finding.rule}, `,
        outside(placeText(finding.at)),
        ': ',
        outside(finding.message),
      ]),
    ...(group.length > MAX_ALIKE ? [[`… and ${grouped(group.length - MAX_ALIKE)} more alike`]] : []),
  ]);
  const note = total > findings.length ? `the first ${grouped(findings.length)} of ${grouped(total)}` : '';
  return { ...tableSection('Findings', columns, rows, note), lines };
}

/** Undecided rules are listed, so that they are not taken for kept. */
function describeRules({ rules }: ImportReport): Section {
  const decided = rules.filter(({ undecidable }) => undecidable === undefined);
  const broken = decided.filter(({ findings }) => findings > 0);
  const open = rules.filter(({ undecidable }) => undecidable !== undefined);
  const columns = texts('rule', 'what must hold');
  const toRow = ({ id, statement, undecidable }: ImportRule): { cells: Line[] } => ({
    cells: [[id], [statement, ...(undecidable === undefined ? [] : [` (not decided: ${undecidable})`])]],
  });
  return {
    title: 'Rules',
    lines: [
      [
        `${count(decided.length, 'rule')} asked, ${grouped(broken.length)} of them with findings; ${grouped(open.length)} more that such files cannot decide.`,
      ],
    ],
    tables: [...broken, ...open].length === 0 ? [] : [{ columns, rows: [...broken, ...open].map(toRow) }],
  };
}

function cutSection(title: string, columns: readonly Column[], rows: Table['rows'], total: number): Section {
  const more = total - rows.length;
  return tableSection(title, columns, rows, more > 0 ? `${grouped(more)} more` : '');
}
