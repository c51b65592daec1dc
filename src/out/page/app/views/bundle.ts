/** The result of a bundle. A selection is never presented as the ledger. */

import { printable } from '../../../../base/bytes/printable.js';
import { bundleRows, stretchRow } from '../../../text/bundle-result.js';
import { selectionText } from '../../../text/words.js';
import type { BundleOverview } from '../../model/protocol.js';
import { count, grouped, h, sizeText } from '../dom.js';
import { icon, recordLink } from '../icons.js';
import { entries, muted, restItem, section } from '../parts.js';
import { signersIn } from './excess.js';
import { findingView } from './findings.js';
import { TRUST_WORDS } from './summary.js';

type ShownContent = NonNullable<ReturnType<BundleOverview['contents']['get']>>;

const SHOWN = 50;
const NAMED_SHOWN = 5;

export const BUNDLE_SECTIONS = [
  ['#verdict-title', 'Verdict'],
  ['#not-checked', 'What it shows, and what not'],
  ['#findings', 'Findings'],
  ['#held', 'What it holds'],
  ['#contents', 'Contents'],
  ['#events', 'Records'],
  ['#figures', 'Bundle'],
] as const;

/** The sentence that the page of a bundle begins with. */
export function bundleSentence({ result }: BundleOverview): string {
  const { verdict, scope, records, tree } = result;
  if (scope === 'none') return 'This bundle cannot be read: it is damaged.';
  const first = `the ledger’s first ${count(tree?.tree_size ?? 0, 'record')}`;
  const what =
    scope === 'whole'
      ? `this bundle of all of ${first}`
      : `this selection of ${grouped(records.held)} of ${first}`;
  switch (verdict) {
    case 'ok':
      return `Nothing is broken in ${what}.`;
    case 'violation':
      return `The evidence is intact, but something went beyond what was allowed in ${what}.`;
    case 'invalid':
      return `Evidence is broken in ${what}: do not rely on it as it stands.`;
    case 'undecided':
      return `Nothing proves ${what}.`;
  }
}

export function bundleSummaryView(overview: BundleOverview): HTMLElement {
  const { result, seconds } = overview;
  const { verdict, exit_status: status, scope, bundle, trust, report_at_export: claim } = result;
  const kind =
    scope === 'selection'
      ? 'A selection of records, not a ledger'
      : scope === 'whole'
        ? 'A bundle of a whole ledger up to a checkpoint'
        : 'Not a bundle that can be read';
  return h(
    'section',
    { 'aria-labelledby': 'verdict-title', class: `hero bundle ${verdict}` },
    h(
      'div',
      { class: 'hero-head' },
      icon(verdict),
      h(
        'div',
        h('p', { class: 'scope', 'data-scope': scope }, kind),
        h('h1', { id: 'verdict-title', tabindex: '-1' }, bundleSentence(overview)),
        muted(
          `Verified just now by this browser: ${sizeText(bundle.size_bytes)}, in ${seconds.toFixed(1)} s. Exit status ${status}, `,
          h('strong', verdict),
          '.',
          scope !== 'none' && ` Signatures are judged by ${TRUST_WORDS[trust.mode]}.`,
        ),
        claim !== undefined &&
          h(
            'p',
            { class: 'agreement' },
            icon('undecided'),
            h(
              'span',
              `The exporter says that the whole ledger of ${count(claim.records, 'record')} had the verdict ${claim.verdict}, with ${count(claim.findings_total, 'finding')}. That was not verified here.`,
            ),
          ),
      ),
    ),
  );
}

export function bundleNotCheckedView({ result }: BundleOverview): HTMLElement {
  const { scope, tree, problems, not_checked: open } = result;
  const isElsewhere = problems.some(({ code }) => code === 'PROOF_INVALID');
  const isProven = tree?.has_checkpoint === true && tree.signers.some(({ role }) => role === 'log');
  return section(
    'not-checked',
    'What this shows, and what not',
    h('h3', 'The verdict is about'),
    scope === 'whole'
      ? h(
          'p',
          'All records up to the checkpoint, by every rule of the ledger: chain, signatures, authorizations, budgets and rates.',
        )
      : h(
          'ul',
          { class: 'supports' },
          h(
            'li',
            'of each record: its bytes, its ids, the signatures over it, and whether their keys were entitled to make them',
          ),
          h('li', 'its place in the ledger, and the records that it links to'),
          h(
            'li',
            'the rules that these records break by themselves: tools, principals, expiry, caps of one action, delegation, denials',
          ),
        ),
    h(
      'p',
      isElsewhere
        ? 'These records are not those of the tree that the bundle names: nothing proves that they are in a ledger.'
        : isProven
          ? 'A checkpoint signed by a known key of the log seals the tree that these records are held against.'
          : tree?.has_checkpoint === true
            ? 'No known key of the log signed the checkpoint: it is not proven that these records are in its ledger.'
            : 'It contains no checkpoint: nothing proves that these records are in a ledger.',
    ),
    h('h3', 'It says nothing of'),
    entries(
      'not-checked',
      open.map(({ code, message }) => [code, printable(message, 2_000)] as const),
    ),
    h(
      'p',
      'To check more, drop a trust policy with the keys that you know on this page. What a selection leaves open only the ledger itself can show.',
    ),
  );
}

/** Problems of the bundle itself, and findings of its records. */
export function bundleFindingsView({ result, remedies }: BundleOverview): HTMLElement {
  const { problems, findings, findings_total: total } = result;
  const shown = findings.slice(0, SHOWN);
  const signersOf = result.report === undefined ? (): readonly string[] => [] : signersIn(result.report);
  return section(
    'findings',
    'Findings',
    problems.length === 0 && total === 0 && h('p', 'None: nothing is wrong with what is here.'),
    problems.length > 0 &&
      h(
        'ol',
        { class: 'findings problems' },
        problems.map(({ code, kind, expected, actual }) =>
          h(
            'li',
            h(
              'div',
              { class: `finding ${kind}` },
              h(
                'p',
                h('span', { class: `badge ${kind}` }, icon(kind), kind),
                ' ',
                h('code', code),
                h('span', { class: 'muted' }, ' of the bundle itself'),
              ),
              h('p', `Expected ${printable(expected)}, found ${printable(actual)}.`),
            ),
          ),
        ),
      ),
    shown.length > 0 &&
      h(
        'ol',
        { class: 'findings' },
        shown.map((finding) => h('li', findingView(finding, remedies, signersOf))),
      ),
    total > shown.length &&
      h('p', `and ${count(total - shown.length, 'more finding')}; the records that are concerned say so.`),
  );
}

export function heldView({ result }: BundleOverview): HTMLElement {
  const { scope, records, stretches, tree } = result;
  const { selected, linked, hashes_only: hashes, beyond } = records;
  const size = tree?.tree_size ?? 0;
  const criteria = selectionText(result.selection);
  return section(
    'held',
    'What it holds',
    h(
      'ul',
      h('li', `${count(selected, 'record')} selected${criteria === '' ? '' : `: ${criteria}`}.`),
      linked > 0 && h('li', `${count(linked, 'record')} that they link to.`),
      hashes > 0 && h('li', `${count(hashes, 'record')} as hashes only: what they say is not here.`),
      scope === 'selection' &&
        h(
          'li',
          `Of ${count(size - records.held - hashes, 'other record')} of the first ${grouped(size)} it holds nothing.`,
        ),
      beyond > 0 && h('li', `${count(beyond, 'selected record')} left out, which no checkpoint covers yet.`),
    ),
    stretches.length > 0 && h('h3', 'Stretches of the ledger'),
    stretches.length > 0 &&
      h(
        'ul',
        { class: 'stretches' },
        stretches.slice(0, SHOWN).map((stretch) => {
          const [label, words] = stretchRow(stretch);
          return h('li', { 'data-claim': stretch.claim }, h('strong', `${label}: `), words);
        }),
        stretches.length > SHOWN &&
          restItem(`and ${count(stretches.length - SHOWN, 'more stretch', 'more stretches')}`),
      ),
  );
}

export function contentsView({ result, contents: shownContents }: BundleOverview): HTMLElement {
  const { contents } = result;
  return section(
    'contents',
    'Attached contents',
    contents.length === 0
      ? h('p', 'None: what records name by a digest alone is not here.')
      : h(
          'ul',
          { class: 'contents' },
          contents
            .slice(0, SHOWN)
            .map(({ digest, size_bytes: size, salted, named_by: by, named_total: total }) => {
              const shown = by.slice(0, NAMED_SHOWN);
              return h(
                'li',
                h('code', digest),
                ` ${sizeText(size)}${salted ? ', salted' : ''}: `,
                shown.length === 0
                  ? total === 0
                    ? 'named by no record'
                    : `named in ${count(total, 'place')}`
                  : [
                      'named by ',
                      shown.map(({ seq, pointer }, index) => [
                        index > 0 && ', ',
                        recordLink(seq),
                        ' at ',
                        h('code', printable(pointer)),
                      ]),
                      total > shown.length && ` and ${grouped(total - shown.length)} more`,
                    ],
                contentView(shownContents.get(digest)),
              );
            }),
          contents.length > SHOWN && restItem(`and ${grouped(contents.length - SHOWN)} more`),
        ),
  );
}

/** What an attached content says; its lines are printable. */
function contentView(content: ShownContent | undefined): HTMLElement | undefined {
  if (content === undefined) return undefined;
  const { lines, isCut } = content;
  if (lines.length === 0) return h('p', 'It is no text.');
  return h(
    'details',
    h('summary', 'What it says'),
    h('pre', { tabindex: '0', role: 'region', 'aria-label': 'The content' }, lines.join('\n')),
    isCut && h('p', h('strong', 'Not all of it is shown.')),
  );
}

export function bundleFiguresView({ result }: BundleOverview): HTMLElement {
  return section('figures', 'The bundle', entries('figures', bundleRows(result)));
}
