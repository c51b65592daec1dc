/** The verdict in one sentence, whether the exporter's is the same, and questions with their answers. */

import { printable } from '../../../../base/bytes/printable.js';
import type { ActivityMeter, ReportJson } from '../../../../format/schema/generated/types.js';
import { ranOf } from '../../../text/words.js';
import { type Granter, type Oversight, type Overview, UNAUTHORIZED } from '../../model/protocol.js';
import type { Agreement } from '../agreement.js';
import { type Child, count, counted, countsText, grouped, h, listOf, sizeText, timeText } from '../dom.js';
import { icon, recordLink } from '../icons.js';
import { entries, muted, restItem, section } from '../parts.js';
import { excessWords, signersIn, whoseWords } from './excess.js';
import { missingAnswer } from './missing.js';
import { amountText, listSpenders, listSpent } from './spent.js';

/** Whose word signatures are judged by. */
export const TRUST_WORDS = {
  policy: 'the keys of the trust policy that was given',
  'self-declared': "the ledger's own keys, which no trust policy confirms",
  none: 'no keys at all: signatures were not checked',
} as const;

/** The sentence that the page begins with. */
export function verdictSentence({ report }: { readonly report: ReportJson }): string {
  const { records } = report.ledger;
  const { violation, invalid } = report.counts.by_verdict;
  const of = (n: number): string => `${grouped(n)} of ${count(records, 'record')}`;
  switch (report.verdict) {
    case 'ok':
      return `Nothing is broken: ${records === 1 ? 'the one record is' : `all ${grouped(records)} records are`} intact and within bounds.`;
    case 'violation':
      return `The evidence is intact, but ${of(violation)} went beyond what was allowed.`;
    case 'invalid':
      return invalid === 0
        ? 'Evidence is broken or missing: this ledger cannot be relied on as it stands.'
        : `Evidence is broken or missing in ${of(invalid)}: do not rely on this ledger as it stands.`;
    case 'undecided':
      return 'There is no record here, so nothing could be verified.';
  }
}

export function summaryView(overview: Overview, agreement: Agreement): HTMLElement {
  const { report, quorum, seconds, bytes } = overview;
  return h(
    'section',
    { 'aria-labelledby': 'verdict-title', class: `hero ${report.verdict}` },
    h(
      'div',
      { class: 'hero-head' },
      icon(report.verdict),
      h(
        'div',
        h('h1', { id: 'verdict-title', tabindex: '-1' }, verdictSentence(overview)),
        muted(
          `Verified just now by this browser: ${count(report.ledger.records, 'record')}, ${sizeText(bytes)}, in ${seconds.toFixed(1)} s. Exit status ${report.exit_status}, `,
          h('strong', report.verdict),
          `. Signatures are judged by ${TRUST_WORDS[report.trust.mode]}.`,
          quorum !== undefined && ` The witness policy that was given asks for ${quorum} on checkpoints.`,
        ),
        agreementView(agreement),
      ),
    ),
    answersView(overview),
    wordsView(),
  );
}

const WORDS = [
  [
    'Authorized, by nothing',
    'Every execution must name an earlier record that allowed it. These name none, or a denial.',
  ],
  [
    'In violation',
    'The record is intact, but what it reports went beyond what was allowed: over a cap, with another tool, too late.',
  ],
  [
    'Invalid',
    'The evidence is broken or missing: the record was changed, lacks a required signature, or names a record that is not there. It proves nothing.',
  ],
  ['Denied', 'A request that was refused, by the signer of the denial.'],
  ['Blocked', 'An attempt that was made anyway, and stopped by the denial before it ran.'],
  [
    'Open',
    'An allowed action without an execution at the end of the ledger: it may still run, or was not recorded.',
  ],
  [
    'To seal',
    'A checkpoint is a signed sum of all records before it: none of them can be changed, moved or removed unnoticed. Later records, and that of the checkpoint itself, are not sealed. Only a checkpoint that was kept elsewhere shows whether the end was cut off.',
  ],
  [
    'Self-declared',
    'The keys are those that the ledger itself names. They show that nothing was changed since, not who their owners are: for that, use a trust policy with keys that you know.',
  ],
  [
    'Basis',
    'Where an amount comes from: measured by the recorder, reported by a provider, billed, or only estimated. Not stated: the record does not say.',
  ],
] as const;

/** The words that an auditor may not know, once for the whole page. */
function wordsView(): HTMLElement {
  return h(
    'details',
    { class: 'words' },
    h('summary', 'What the words on this page mean'),
    entries('not-checked', WORDS),
  );
}

function agreementView(agreement: Agreement): HTMLElement {
  switch (agreement.kind) {
    case 'same':
      return h(
        'p',
        { class: 'agreement same', 'data-agreement': 'same' },
        icon('ok'),
        h('span', 'The report that came with this page says the same.'),
      );
    case 'differs':
      return h(
        'div',
        { class: 'agreement differs', 'data-agreement': 'differs', role: 'alert' },
        icon('violation'),
        h(
          'div',
          h('strong', 'This is not what the exporter reported.'),
          ' The ledger in this page, or the report beside it, was changed after the export.',
          h(
            'ul',
            agreement.differences.map(({ what, own, exporter }) =>
              h('li', `${what}: the exporter says ${exporter}; this browser found ${own}.`),
            ),
          ),
        ),
      );
    case 'other':
      return h(
        'p',
        { class: 'agreement other', 'data-agreement': 'other' },
        icon('undecided'),
        h('span', 'These are other files than those of the page: the exporter’s report is not about them.'),
      );
  }
}

function answersView(overview: Overview): HTMLElement {
  return h(
    'div',
    { class: 'answers' },
    answer('What was spent?', spentAnswer(overview), ['#spent', 'Who spent it']),
    answer('Was all of it allowed?', allowedAnswer(overview), ['#findings', 'Findings']),
    answer('Allowed by whom?', byWhomAnswer(overview), ['#tree', 'Who let whom act']),
    ...oversightAnswers(overview),
    answer('What was denied?', refusedAnswer(overview), ['#events', 'Events', 'refused']),
    answer('Is anything missing?', missingAnswer(overview.report), ['#not-checked', 'What was not checked']),
  );
}

/** Only where there are approvals or revocations. */
function oversightAnswers({ oversight }: Overview): HTMLElement[] {
  const { given, isAskedFor, unapproved, withdrawalsTotal: withdrawals } = oversight;
  const hasApprovals = given > 0 || isAskedFor || unapproved > 0;
  return [
    ...(hasApprovals ? [answer('Who approved what?', approvedAnswer(oversight), ['#grants', 'Grants'])] : []),
    ...(withdrawals > 0 || oversight.defied > 0
      ? [answer('What was stopped?', stoppedAnswer(oversight), ['#grants', 'Grants'])]
      : []),
  ];
}

function approvedAnswer({ approvals, used, given, unapproved, isAskedFor }: Oversight): Child[] {
  return [
    unapproved > 0
      ? h(
          'p',
          h('strong', 'Not all of it: '),
          `${count(unapproved, 'finding')} of approvals that are missing, used twice or exceeded.`,
        )
      : h('p', isAskedFor ? 'All that had to be approved was.' : 'No grant asks for an approval.'),
    h(
      'ul',
      approvals.map(({ row, action }) =>
        h(
          'li',
          recordLink(row.ordinal),
          ` ${row.principal}: ${row.tool}`,
          action !== undefined && [', used by ', recordLink(action)],
        ),
      ),
      used > approvals.length && restItem(`and ${grouped(used - approvals.length)} more`),
    ),
    given > used && muted(`${count(given - used, 'approval')} not used.`),
  ];
}

function stoppedAnswer({ withdrawals, withdrawalsTotal: total, defied }: Oversight): Child[] {
  return [
    h(
      'ul',
      withdrawals.map(({ row, grant, ranLater, ran }) =>
        h(
          'li',
          recordLink(row.ordinal),
          ` ${timeText(row.occurredAt)} UTC, ${row.principal}: ${row.what}`,
          grant !== undefined && [', of ', recordLink(grant)],
          ranLater > 0 && [
            `; ${count(ranLater, 'execution')} recorded after it: `,
            ran.map((ordinal) => [recordLink(ordinal), ' ']),
            ranLater > ran.length && 'and more',
          ],
        ),
      ),
      total > withdrawals.length && restItem(`and ${grouped(total - withdrawals.length)} more`),
    ),
    defied > 0 && h('p', h('strong', count(defied, 'record')), ' defied it.'),
  ];
}

function answer(
  question: string,
  children: readonly Child[],
  [href, label, filter]: readonly [string, string, string?],
): HTMLElement {
  return h(
    'div',
    { class: 'answer' },
    h('h2', question),
    ...children,
    h('p', { class: 'more' }, h('a', { href, 'data-filter': filter }, label)),
  );
}

function spentAnswer({ report, activity, kinds }: Overview): Child[] {
  if (kinds.execution === 0) return [h('p', 'Nothing: no execution is recorded.')];
  const spent = listSpent(activity.totals.meters);
  const units = spent.slice(0, 4);
  const spenders = listSpenders(activity);
  const names = spenders.filter(({ totals }) => ranOf(totals) > 0).map(({ principal }) => principal);
  const sumsOf = (part: (meter: ActivityMeter) => string | undefined): string =>
    listOf(
      spent.flatMap((meter) => {
        const sum = part(meter);
        const unit = meter.unit === 'calls' && sum === '1' ? 'call' : printable(meter.unit);
        return sum === undefined ? [] : [`${amountText(sum)} ${unit}`];
      }),
    );
  const estimated = sumsOf(({ basis }) => basis.estimated);
  const unstated = sumsOf(({ basis }) => basis.unstated);
  const wrong = [
    [sumsOf((meter) => meter.unauthorized), 'authorized by nothing'],
    [sumsOf((meter) => meter.in_violation), 'by records in violation'],
    [sumsOf((meter) => meter.in_invalid), 'by invalid records'],
  ].filter(([sum]) => sum !== '');
  return [
    h(
      'ul',
      { class: 'amounts' },
      units.map(({ unit, spent: sum }) =>
        h('li', h('b', { class: 'number' }, amountText(sum)), ` ${printable(unit)}`),
      ),
      spent.length > units.length && restItem(`and ${spent.length - units.length} more units`),
    ),
    h('p', `By ${listOf(names, 3)}.`),
    wrong.length > 0 && [
      h('p', 'Of this:'),
      h(
        'ul',
        wrong.map(([sum, words]) => h('li', h('strong', sum), ` ${words}`)),
      ),
    ],
    report.verdict === 'invalid' &&
      h('p', 'So the records say: the evidence is broken, and the sums cannot be relied on.'),
    estimated !== '' && muted(`Only estimated: ${estimated}.`),
    unstated !== '' && muted(`Not said to be measured, reported, billed or estimated: ${unstated}.`),
  ];
}

const SHOWN = 4;

function allowedAnswer(overview: Overview): Child[] {
  const { report, kinds, activity } = overview;
  const { unauthorized } = activity.totals.executions;
  const { violation, invalid } = report.counts.by_verdict;
  if (report.verdict === 'undecided') return [h('p', 'Nothing is recorded.')];
  if (report.verdict === 'ok') {
    const all = count(kinds.execution, 'execution');
    return [
      h(
        'p',
        h('strong', 'Yes.'),
        kinds.execution === 0
          ? ' Nothing was executed.'
          : ` ${kinds.execution === 1 ? 'The one execution was' : `Each of ${all} was`} authorized and within its bounds, or was blocked.`,
      ),
    ];
  }
  const errors = report.findings.filter(({ severity }) => severity === 'error');
  const broken = errors.filter(
    ({ class: of, code }) => of === 'invalid' && (unauthorized === 0 || !UNAUTHORIZED.has(code)),
  );
  const isNo = unauthorized + violation > 0;
  return [
    h('p', h('strong', isNo ? 'No.' : 'That cannot be said.')),
    unauthorized > 0 && unauthorizedView(overview),
    violation > 0 && beyondView(overview),
    broken.length > 0 && [
      h(
        'p',
        invalid > 0
          ? `Of ${count(invalid, 'record')} the evidence is broken or missing:`
          : 'Evidence is broken or missing:',
      ),
      codesView(broken, overview),
    ],
  ];
}

function unauthorizedView({ unauthorized, activity }: Overview): Child {
  const total = activity.totals.executions.unauthorized;
  return [
    h('p', `${count(total, 'execution')} ${total === 1 ? 'was' : 'were'} authorized by nothing:`),
    h(
      'ul',
      unauthorized.map(({ ordinal, principal, tool, what }) =>
        h('li', recordLink(ordinal), ` ${principal} ran ${tool} (${what})`),
      ),
      total > unauthorized.length && restItem(`and ${grouped(total - unauthorized.length)} more`),
    ),
  ];
}

/** Records beyond a bound: by how much, and of which grant. */
function beyondView({ report, remedies }: Overview): Child {
  const { violation } = report.counts.by_verdict;
  const found = report.findings.filter(
    ({ severity, class: of, code }) => severity === 'error' && of === 'violation' && !UNAUTHORIZED.has(code),
  );
  const signersOf = signersIn(report);
  return [
    h('p', `${count(violation, 'record')} went beyond what was allowed:`),
    h(
      'ul',
      found.slice(0, SHOWN).map((finding) => {
        const whose = whoseWords(finding);
        return h(
          'li',
          finding.seq !== null && [recordLink(finding.seq), ' '],
          whose !== '' && `${whose}: `,
          excessWords(finding, signersOf) ?? remedies[finding.code]?.title ?? finding.code,
        );
      }),
      found.length > SHOWN && restItem(`and ${grouped(found.length - SHOWN)} more`),
    ),
  ];
}

function codesView(found: Overview['report']['findings'], { remedies }: Overview): HTMLElement {
  const codes = [...new Set(found.map(({ code }) => code))];
  return h(
    'ul',
    codes.slice(0, 3).map((code) => {
      const places = found.filter((finding) => finding.code === code && finding.seq !== null);
      return h(
        'li',
        remedies[code]?.title ?? code,
        places.slice(0, 3).map(({ seq }) => [' ', recordLink(seq ?? 0)]),
        places.length > 3 && ' and more',
      );
    }),
    codes.length > 3 && restItem(`and ${codes.length - 3} more kinds`),
  );
}

function byWhomAnswer({ granters, brokenGrants, report }: Overview): Child[] {
  const broken =
    brokenGrants > 0 &&
    h(
      'p',
      `${count(brokenGrants, 'grant')} ${brokenGrants === 1 ? 'is' : 'are'} not counted: of ${brokenGrants === 1 ? 'it' : 'them'} the evidence is broken.`,
    );
  if (granters.length === 0)
    return [h('p', broken === false ? 'Nothing was allowed here.' : 'That cannot be said.'), broken];
  const declared = report.trust.mode === 'self-declared';
  return [
    h(
      'ul',
      granters.slice(0, 3).map((granter) => h('li', granterWords(granter))),
      granters.length > 3 && restItem(`and ${granters.length - 3} more`),
    ),
    broken,
    declared && muted('Names and keys are the ledger’s own word.'),
  ];
}

function granterWords({ signers, grants, delegated, actions, principals }: Granter): Child {
  const what = counted([grants, 'grant'], [delegated, 'delegated grant'], [actions, 'action']);
  const who = signers.length === 0 ? 'No known key' : listOf(signers, 2);
  return [h('strong', who), ` signed ${listOf(what)} for ${listOf(principals, 3)}`];
}

function refusedAnswer({ activity, refused }: Overview): Child[] {
  const { grants, actions, executions } = activity.totals;
  const { blocked } = executions;
  const total = grants.denied + actions.denied;
  if (total + blocked === 0) return [h('p', 'Nothing.')];
  const what = counted([actions.denied, 'action'], [grants.denied, 'grant']);
  const codes = new Map<string, number>();
  for (const { decision, decision_code: code, count: n } of activity.decisions)
    if (decision === 'deny') codes.set(code, (codes.get(code) ?? 0) + n);
  return [
    what.length > 0 && h('p', `${listOf(what)} denied.`),
    codes.size > 0 &&
      h(
        'p',
        `Why: ${listOf(
          [...codes].sort(([, a], [, b]) => b - a).map(([code, n]) => `${printable(code)} (${n})`),
          3,
        )}.`,
      ),
    blocked > 0 &&
      h(
        'p',
        `${count(blocked, 'attempt')} ${blocked === 1 ? 'was' : 'were'} made anyway, and blocked: stopped before ${blocked === 1 ? 'it' : 'they'} ran.`,
      ),
    h(
      'ul',
      refused.map(({ kind, ordinal, principal, tool }) =>
        h(
          'li',
          `${principal}: ${kind === 'grant' ? 'a grant' : tool}${kind === 'execution' ? ', blocked' : ''} `,
          recordLink(ordinal),
        ),
      ),
      total + blocked > refused.length && restItem(`and ${grouped(total + blocked - refused.length)} more`),
    ),
  ];
}

export function notCheckedView({ report }: Overview): HTMLElement {
  return section(
    'not-checked',
    'What was not checked',
    report.not_checked.length === 0
      ? h('p', 'Nothing was left unchecked.')
      : entries(
          'not-checked',
          report.not_checked.map(({ code, message }) => [code, message] as const),
        ),
    report.not_checked.length > 0 &&
      h(
        'p',
        'To check more, drop a trust policy with the keys that you know, or a checkpoint that you kept, on this page.',
      ),
    muted(
      'A page cannot prove itself: anyone who can change its ledger can change its program. If that matters, get the ledger, and the verifier or a page, from a source that you trust.',
    ),
  );
}

export function figuresView({ report }: Overview): HTMLElement {
  const { ledger, trust, checkpoints, counts } = report;
  const rows: [string, Child][] = [
    ['Ledger', ledger.paths.join(', ')],
    ['Origin', ledger.origin ?? 'none'],
    ['Records', countsText(counts.by_type)],
    ['Verdicts', countsText(counts.by_verdict)],
    ['Signatures', countsText(trust.signatures)],
    [
      'Signers',
      trust.signers.map(({ keyid, name, records }) => `${name ?? keyid} (${grouped(records)})`).join(', '),
    ],
    [
      'Checkpoints',
      `${grouped(checkpoints.count)}${checkpoints.last_tree_size === null ? ', none of them right and signed by a known key' : `, the last over ${count(checkpoints.last_tree_size, 'record')}`}`,
    ],
    ['Tree', `${count(ledger.tree_size, 'record')}, root ${ledger.root}`],
  ];
  return section('figures', 'The ledger', entries('figures', rows));
}
