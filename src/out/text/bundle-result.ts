/** What was found of a bundle, for people: the verdict first, then how much of a ledger it is, what that rests on, and what it leaves open. */

import { printable } from '../../base/bytes/printable.js';
import type { BundleResult } from '../../format/schema/generated/types.js';
import { keyText } from './accounts.js';
import { notCheckedLines, type Paint, plainPaint } from './guide.js';
import { renderFinding, TRUST_WORDS, VERDICT_STYLES } from './report.js';
import { count, countsText, grouped, row, selectionText } from './words.js';

/** The most findings, contents and principals that are shown. */
const MAX_SHOWN = 20;

const KNOWN_WORDS = {
  'trust-policy': 'a key of your trust policy',
  ledger: "one of the ledger's own keys",
  nobody: 'an unknown key',
} as const;

const HINTS: Readonly<Record<string, string>> = {
  KEY_UNKNOWN: 'a trust policy or a witness policy makes the key of the log known',
  CHECKPOINT_MISSING: 'no checkpoint proves that these records are in a ledger: make one before the bundle',
  BUNDLE_INCOMPLETE: 'the bundle says more than it holds: ask its exporter for another one',
};

/** The result as lines of text, each ending in `\n`. Everything that comes from the bundle is made printable. */
export function renderBundleResult(result: BundleResult, file: string, paint: Paint = plainPaint): string {
  const { verdict } = result;
  const head = paint('bold', paint(VERDICT_STYLES[verdict], verdict));
  const lines = [
    `${head}  ${printable(file)}: ${summarise(result)}`,
    ...renderScope(result),
    ...bundleRows(result).map(([name, text]) => row(name, text)),
    ...renderContents(result),
    ...renderClaim(result),
    ...notCheckedLines(result.not_checked, paint),
    ...renderProblems(result, paint),
    ...renderFindings(result, paint),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** What the verdict is of. Of a selection it is always said that it is one. */
function summarise({
  verdict,
  scope,
  records,
  tree,
  findings_total: findings,
  problems,
}: BundleResult): string {
  const size = tree?.tree_size ?? 0;
  const what =
    scope === 'whole'
      ? `all of the first ${count(size, 'record')} of the ledger`
      : `a selection, ${grouped(records.held)} of the first ${count(size, 'record')} of the ledger`;
  switch (verdict) {
    case 'ok':
      return findings === 0
        ? `nothing wrong in ${what}`
        : `nothing broken in ${what}, ${count(findings, 'finding')} to look at`;
    case 'violation':
      return `records in violation, in ${what}`;
    case 'undecided':
      return `not proven: ${what}`;
    case 'invalid':
      return scope === 'none'
        ? 'not a bundle that can be read'
        : `broken: ${count(problems.length, 'problem')}, ${count(findings, 'finding')}, in ${what}`;
  }
}

function renderScope({ scope, records, selection, stretches }: BundleResult): string[] {
  if (scope === 'none') return [];
  const { selected, linked, hashes_only: hashes, beyond } = records;
  const parts = [
    `${count(selected, 'record')} selected`,
    `${grouped(linked)} that they link to`,
    ...(hashes === 0 ? [] : [`${grouped(hashes)} as hashes only`]),
    ...(beyond === 0 ? [] : [`${grouped(beyond)} left out, which no checkpoint covers yet`]),
  ];
  const criteria = selectionText(selection);
  return [
    row('records', parts.join(', ')),
    ...(criteria === '' ? [] : [row('selection', criteria)]),
    ...stretches.map((stretch) => row(...stretchRow(stretch))),
  ];
}

/** Whether a stretch of the ledger is complete, and whose its records are. */
export function stretchRow(stretch: BundleResult['stretches'][number]): LabelledText {
  const { from, to, records, held, claim, principals = [], principals_total: total = 0 } = stretch;
  const name = from === to ? `seq ${from}` : `seq ${from}..${to}`;
  if (claim === 'positions') {
    const words = `${grouped(held)} of the ${count(records, 'record')} of ${name} are here; ${grouped(records - held)} as hashes only, which do not show whose they are or what they say`;
    return ['stretch', words];
  }
  const whose = principals
    .slice(0, MAX_SHOWN)
    .map((each) => `${grouped(each.records)} of ${printable(each.principal_id)}`);
  if (total > whose.length) whose.push(`${grouped(total - whose.length)} more principals`);
  return ['complete', `all ${count(records, 'record')} of ${name} are here: ${whose.join(', ')}`];
}

type LabelledText = readonly [label: string, text: string];

/** What the bundle is, who made and signed it, and what its records are. */
export function bundleRows(result: BundleResult): LabelledText[] {
  const { scope, bundle, ledger, trust, counts } = result;
  const { exporter, made_by: madeBy, created_at: createdAt } = bundle;
  const rows: LabelledText[] = [];
  if (scope !== 'none')
    rows.push(
      ['trust', TRUST_WORDS[trust.mode]],
      ['signatures', countsText(trust.signatures)],
      ['verdicts', countsText(counts.by_verdict)],
      ['events', countsText(counts.by_type)],
    );
  if (ledger.origin !== null) rows.push(['origin', printable(ledger.origin)]);
  if (ledger.ledger_id !== null) rows.push(['ledger', ledger.ledger_id]);
  rows.push(...treeRows(result));
  if (madeBy !== null) {
    const when = createdAt === null ? '' : `, at ${printable(createdAt)}, as it says`;
    rows.push(['made by', `${printable(madeBy)}${when}`]);
  }
  if (exporter !== undefined) {
    const { keyid, name, signature, known_by: by } = exporter;
    rows.push(['exporter', `${keyText(keyid, name)}: signature ${signature}, ${KNOWN_WORDS[by]}`]);
  }
  if (bundle.digest !== null) rows.push(['digest', bundle.digest]);
  for (const { keyid, name, records, principals } of trust.signers) {
    const whom = printable(principals.join(', '));
    rows.push(['signer', `${keyText(keyid, name)} signed ${count(records, 'record')} for ${whom}`]);
  }
  return rows;
}

function treeRows({ tree }: BundleResult): LabelledText[] {
  if (tree === undefined) return [];
  const { tree_size: size, root, has_checkpoint: hasCheckpoint, signers, unknown } = tree;
  const claimed = hasCheckpoint ? '' : ', as the exporter says: no checkpoint states it';
  return [
    ['tree', `${count(size, 'record')}, root ${root}${claimed}`],
    ...signers.map(
      ({ keyid, name, role }) =>
        [role === 'log' ? 'sealed by' : 'witness', `${keyid} as ${printable(name)}`] as const,
    ),
    ...(unknown === 0
      ? []
      : [['unverified', `${count(unknown, 'signature')} of the checkpoint by unknown keys`] as const]),
  ];
}

function renderContents({ contents }: BundleResult): string[] {
  return [
    ...contents
      .slice(0, MAX_SHOWN)
      .map(({ digest, size_bytes: size, salted, named_by: by, named_total: total }) => {
        const [first] = by;
        const more = total > 1 ? ` and ${grouped(total - 1)} more` : '';
        const unlisted = total === 0 ? 'by no record' : `in ${count(total, 'place')}`;
        const where =
          first === undefined ? unlisted : `by seq ${first.seq} ${printable(first.pointer)}${more}`;
        return row('content', `${digest}, ${count(size, 'byte')}${salted ? ', salted' : ''}: named ${where}`);
      }),
    ...(contents.length > MAX_SHOWN ? [row('content', `${grouped(contents.length - MAX_SHOWN)} more`)] : []),
  ];
}

/** What the exporter says of the whole, in words that cannot be taken for what was found here. */
function renderClaim({ report_at_export: claim }: BundleResult): string[] {
  if (claim === undefined) return [];
  const { verdict, records, findings_total: findings } = claim;
  return [
    row(
      'claimed',
      `the exporter says that the whole ledger of ${count(records, 'record')} was ${verdict}, with ${count(findings, 'finding')}; not verified here`,
    ),
  ];
}

function renderProblems({ problems }: BundleResult, paint: Paint): string[] {
  if (problems.length === 0) return [];
  const lines = problems.flatMap(({ code, kind, expected, actual }) => {
    const hint = HINTS[code];
    return [
      `  ${paint(kind === 'invalid' ? 'red' : 'yellow', code)}: expected ${printable(expected)}, found ${printable(actual)}`,
      ...(hint === undefined ? [] : [`  ${paint('dim', `hint: ${hint}`)}`]),
    ];
  });
  return ['', paint('bold', 'problems'), ...lines];
}

function renderFindings({ findings, findings_total: total }: BundleResult, paint: Paint): string[] {
  if (total === 0) return [];
  const shown = findings.slice(0, MAX_SHOWN);
  const rest = total - shown.length;
  return [
    '',
    paint('bold', `findings (${grouped(total)}, worst first)`),
    ...shown.flatMap((finding) => renderFinding(finding, paint)),
    ...(rest > 0 ? [`… and ${grouped(rest)} more`] : []),
  ];
}
