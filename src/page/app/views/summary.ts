/** The verdict in one sentence, whether the exporter's is the same, and five questions with their answers. */

import type { Granter, Overview } from '../../model/protocol.js';
import type { Agreement } from '../agreement.js';
import { h, type Child } from '../dom.js';
import { icon, recordLink } from '../icons.js';
import { count, grouped, listOf, sizeText } from '../words.js';

/** Whose word signatures are judged by. */
export const TRUST_WORDS = {
  policy: 'the keys of the trust policy that was given',
  'self-declared': "the ledger's own keys, which nobody vouches for",
  none: 'no keys at all: signatures were not checked',
} as const;

/** The sentence that the page begins with. */
export function verdictSentence({ report }: Overview): string {
  const { records } = report.ledger;
  const { violation, invalid } = report.counts.by_verdict;
  const of = (n: number): string => `${grouped(n)} of ${count(records, 'record')}`;
  switch (report.verdict) {
    case 'ok':
      return `Nothing is broken: ${records === 1 ? 'the one record is' : `all ${grouped(records)} records are`} intact and within bounds.`;
    case 'violation':
      return `The evidence is intact, but ${of(violation)} ${violation === 1 ? 'breaks' : 'break'} a bound.`;
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
        {},
        h('h1', { id: 'verdict-title', tabindex: '-1' }, verdictSentence(overview)),
        h(
          'p',
          { class: 'muted' },
          `Verified just now by this browser: ${count(report.ledger.records, 'record')}, ${sizeText(bytes)}, in ${seconds.toFixed(1)} s. Exit status ${report.exit_status}, `,
          h('strong', {}, report.verdict),
          `. Signatures are judged by ${TRUST_WORDS[report.trust.mode]}.`,
          quorum !== undefined && ` The witness policy that was given asks for ${quorum} on checkpoints.`,
        ),
        agreementView(agreement),
      ),
    ),
    answersView(overview),
  );
}

function agreementView(agreement: Agreement): HTMLElement {
  switch (agreement.kind) {
    case 'same':
      return h(
        'p',
        { class: 'agreement same', 'data-agreement': 'same' },
        icon('ok'),
        h('span', {}, 'The report that came with this page says the same.'),
      );
    case 'differs':
      return h(
        'div',
        { class: 'agreement differs', 'data-agreement': 'differs', role: 'alert' },
        icon('violation'),
        h(
          'div',
          {},
          h('strong', {}, 'This is not what the exporter reported.'),
          ' The ledger in this page, or the report beside it, was changed after the export.',
          h(
            'ul',
            {},
            agreement.differences.map(({ what, own, exporter }) =>
              h('li', {}, `${what}: the exporter says ${exporter}; this browser found ${own}.`),
            ),
          ),
        ),
      );
    case 'other':
      return h(
        'p',
        { class: 'agreement other', 'data-agreement': 'other' },
        icon('undecided'),
        h(
          'span',
          {},
          'You gave other files than the page came with: the exporter’s report is not about these.',
        ),
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
    answer('What was refused?', refusedAnswer(overview), ['#events', 'Events', 'refused']),
    answer('Is anything missing?', missingAnswer(overview), ['#not-checked', 'What was not checked']),
  );
}

function answer(
  question: string,
  children: readonly Child[],
  [href, label, filter]: readonly [string, string, string?],
): HTMLElement {
  return h(
    'div',
    { class: 'answer' },
    h('h2', {}, question),
    ...children,
    h('p', { class: 'more' }, h('a', { href, 'data-filter': filter }, label)),
  );
}

function spentAnswer({ report, spent, spenders, spendersTotal, kinds }: Overview): Child[] {
  if (kinds.execution === 0) return [h('p', {}, 'Nothing: no execution is recorded.')];
  const units = spent.slice(0, 4);
  const guessed = spent.filter(({ estimated }) => estimated !== undefined);
  const names = spenders.filter(({ executions }) => executions > 0).map(({ principal }) => principal);
  return [
    h(
      'ul',
      { class: 'amounts' },
      units.map(({ unit, total }) => h('li', {}, h('b', { class: 'number' }, total), ` ${unit}`)),
      spent.length > units.length &&
        h('li', { class: 'muted' }, `and ${spent.length - units.length} more units`),
    ),
    h(
      'p',
      {},
      `By ${names.length === 0 ? 'nobody' : listOf(names, 3)}${spendersTotal > 50 ? ', among others' : ''}.`,
    ),
    report.verdict === 'invalid' &&
      h('p', {}, 'So the records say: the evidence is broken, and the sums cannot be relied on.'),
    guessed.length > 0 &&
      h(
        'p',
        { class: 'muted' },
        `Of this only estimated: ${listOf(guessed.map(({ estimated, unit }) => `${estimated} ${unit}`))}.`,
      ),
  ];
}

function allowedAnswer({ report, kinds, remedies }: Overview): Child[] {
  const { violation, invalid } = report.counts.by_verdict;
  if (report.verdict === 'undecided') return [h('p', {}, 'Nothing is recorded.')];
  if (report.verdict === 'ok') {
    const all = count(kinds.execution, 'execution');
    return [
      h(
        'p',
        {},
        h('strong', {}, 'Yes.'),
        kinds.execution === 0
          ? ' Nothing was executed.'
          : ` ${kinds.execution === 1 ? 'The one execution stands' : `Each of ${all} stands`} under an authorization and within its bounds, or was blocked.`,
      ),
    ];
  }
  const isBroken = report.verdict === 'invalid';
  const worst = report.findings.filter(
    ({ severity, class: of }) => severity === 'error' && (!isBroken || of === 'invalid'),
  );
  const codes = [...new Set(worst.map(({ code }) => code))];
  return [
    h(
      'p',
      {},
      h('strong', {}, isBroken ? 'That cannot be said. ' : 'No. '),
      isBroken
        ? invalid > 0
          ? `Of ${count(invalid, 'record')} the evidence is broken or missing:`
          : 'Evidence is broken or missing:'
        : `${count(violation, 'record')} ${violation === 1 ? 'breaks' : 'break'} a bound:`,
    ),
    h(
      'ul',
      {},
      codes.slice(0, 3).map((code) => {
        const places = worst.filter((finding) => finding.code === code && finding.seq !== null);
        return h(
          'li',
          {},
          remedies[code]?.title ?? code,
          places.slice(0, 3).map(({ seq }) => [' ', recordLink(seq ?? 0)]),
          places.length > 3 && ' and more',
        );
      }),
      codes.length > 3 && h('li', { class: 'muted' }, `and ${codes.length - 3} more kinds`),
    ),
    isBroken &&
      violation > 0 &&
      h('p', {}, `${count(violation, 'record')} ${violation === 1 ? 'breaks' : 'break'} a bound besides.`),
  ];
}

function byWhomAnswer({ granters, brokenGrants, report }: Overview): Child[] {
  const broken =
    brokenGrants > 0 &&
    h(
      'p',
      {},
      `${count(brokenGrants, 'grant')} ${brokenGrants === 1 ? 'is' : 'are'} not counted: of ${brokenGrants === 1 ? 'it' : 'them'} the evidence is broken.`,
    );
  if (granters.length === 0)
    return [h('p', {}, broken === false ? 'Nobody allowed anything here.' : 'That cannot be said.'), broken];
  const declared = report.trust.mode === 'self-declared';
  return [
    h(
      'ul',
      {},
      granters.slice(0, 3).map((granter) => h('li', {}, granterWords(granter))),
      granters.length > 3 && h('li', { class: 'muted' }, `and ${granters.length - 3} more`),
    ),
    broken,
    declared && h('p', { class: 'muted' }, 'Names and keys are the ledger’s own word.'),
  ];
}

/** Who signed what for whom. */
function granterWords({ signers, grants, delegated, actions, principals }: Granter): Child {
  const what = [
    grants > 0 ? count(grants, 'grant') : '',
    delegated > 0 ? count(delegated, 'delegated grant') : '',
    actions > 0 ? count(actions, 'action') : '',
  ].filter((part) => part !== '');
  const who = signers.length === 0 ? 'Nobody' : listOf(signers, 2);
  return [h('strong', {}, who), ` signed ${listOf(what)} for ${listOf(principals, 3)}`];
}

function refusedAnswer({ refusedActions, refusedGrants, blocked, refusals, refused }: Overview): Child[] {
  const total = refusedActions + refusedGrants;
  if (total + blocked === 0) return [h('p', {}, 'Nothing.')];
  const what = [
    refusedActions > 0 ? count(refusedActions, 'action') : '',
    refusedGrants > 0 ? count(refusedGrants, 'grant') : '',
  ].filter((part) => part !== '');
  return [
    what.length > 0 && h('p', {}, `${listOf(what)} refused.`),
    refusals.length > 0 &&
      h(
        'p',
        {},
        `Why: ${listOf(
          refusals.map(({ code, count: n }) => `${code} (${n})`),
          3,
        )}.`,
      ),
    blocked > 0 &&
      h(
        'p',
        {},
        `${count(blocked, 'attempt')} went ahead all the same, and ${blocked === 1 ? 'was' : 'were'} blocked.`,
      ),
    h(
      'ul',
      {},
      refused.map(({ kind, ordinal, principal, tool }) =>
        h(
          'li',
          {},
          `${principal}: ${kind === 'grant' ? 'a grant' : tool}${kind === 'execution' ? ', blocked' : ''} `,
          recordLink(ordinal),
        ),
      ),
      total + blocked > refused.length &&
        h('li', { class: 'muted' }, `and ${grouped(total + blocked - refused.length)} more`),
    ),
  ];
}

function missingAnswer({ report }: Overview): Child[] {
  const { unsealed, last_tree_size: sealed } = report.checkpoints;
  const chain = report.findings.some(({ code }) =>
    ['SEQ_GAP', 'PREV_MISMATCH', 'TRUNCATED', 'FORKED'].includes(code),
  );
  const open = report.open_authorizations.length;
  const { anchors = [] } = report.checkpoints;
  const isHeld = anchors.some(({ relation }) => relation === 'extends');
  const bare = report.not_checked.some(({ code }) => code === 'CHAIN');
  return [
    h(
      'p',
      {},
      h('strong', {}, chain ? 'Yes. ' : bare ? 'Unknown. ' : 'Not between its records. '),
      chain
        ? 'The chain of records is broken.'
        : bare
          ? 'These are events without a chain.'
          : sealed === null
            ? 'The chain has no gap, but no checkpoint seals it.'
            : `The chain has no gap. The last checkpoint seals the ${count(sealed, 'record')} before it${unsealed > 0 ? `; nothing seals the ${grouped(unsealed)} after it` : ''}.`,
    ),
    !isHeld &&
      h(
        'p',
        {},
        'Whether records were cut off at the end is not shown: no checkpoint kept elsewhere was given.',
      ),
    open > 0 && h('p', {}, `${count(open, 'allowed action')} ${open === 1 ? 'has' : 'have'} no execution.`),
  ];
}

/** What the verdict does not rest on. */
export function notCheckedView({ report }: Overview): HTMLElement {
  return h(
    'section',
    { 'aria-labelledby': 'not-checked' },
    h('h2', { id: 'not-checked' }, 'What was not checked'),
    report.not_checked.length === 0
      ? h('p', {}, 'Nothing was left unchecked.')
      : h(
          'dl',
          { class: 'not-checked' },
          report.not_checked.map(({ code, message }) =>
            h('div', {}, h('dt', {}, code), h('dd', {}, message)),
          ),
        ),
    report.not_checked.length > 0 &&
      h(
        'p',
        {},
        'To check more, drop a trust policy with the keys that you know, or a checkpoint that you kept, on this page.',
      ),
    h(
      'p',
      { class: 'muted' },
      'A page cannot vouch for itself: who could change the ledger in it could change its program too. Where that matters, get the ledger, and the verifier or a page, from a source that you trust.',
    ),
  );
}

/** What the ledger is, in figures. */
export function figuresView({ report }: Overview): HTMLElement {
  const { ledger, trust, checkpoints, counts } = report;
  const rows: [string, Child][] = [
    ['Ledger', ledger.paths.join(', ')],
    ['Origin', ledger.origin ?? 'none'],
    [
      'Records',
      Object.entries(counts.by_type)
        .map(([type, n]) => `${grouped(n)} ${type}`)
        .join(', '),
    ],
    [
      'Verdicts',
      Object.entries(counts.by_verdict)
        .filter(([, n]) => n > 0)
        .map(([verdict, n]) => `${grouped(n)} ${verdict}`)
        .join(', '),
    ],
    [
      'Signatures',
      Object.entries(trust.signatures)
        .filter(([, n]) => n > 0)
        .map(([outcome, n]) => `${grouped(n)} ${outcome}`)
        .join(', '),
    ],
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
  return h(
    'section',
    { 'aria-labelledby': 'figures' },
    h('h2', { id: 'figures' }, 'The ledger'),
    h(
      'dl',
      { class: 'figures' },
      rows.map(([label, value]) => h('div', {}, h('dt', {}, label), h('dd', {}, value))),
    ),
  );
}
