/** All that is known of one record, in a dialog. */

import type { MeterStep, SignatureView, Why } from '../../model/protocol.js';
import type { Client } from '../client.js';
import { type Child, h, show } from '../dom.js';
import { badge, recordLink } from '../icons.js';
import { count } from '../words.js';
import { rowView } from './events.js';
import { findingView } from './findings.js';

const OUTCOMES = {
  valid: 'valid',
  invalid: 'invalid',
  unverified: 'unverified: the key is not known',
  copy: 'a copy of another, which counts once',
} as const;

/** Shows records in a dialog; the address says which. */
export class WhyDialog {
  readonly element: HTMLDialogElement;
  readonly #content = h('div', {});
  #client: Client | undefined;
  #opener: Element | null = null;

  constructor() {
    this.element = h('dialog', { class: 'why', 'aria-labelledby': 'why-title' }, this.#content);
    this.element.addEventListener('close', () => {
      if (ordinalOf(location.hash) !== undefined) history.replaceState(null, '', '#events');
      if (this.#opener instanceof HTMLElement && this.#opener.isConnected) this.#opener.focus();
    });
    addEventListener('hashchange', () => void this.follow());
  }

  /** From now on records are asked of this client. */
  use(client: Client): void {
    this.#client = client;
    void this.follow();
  }

  /** What was shown is not there any more. */
  leave(): void {
    this.#client = undefined;
    if (this.element.open) this.element.close();
    else if (ordinalOf(location.hash) !== undefined) history.replaceState(null, '', '#main');
  }

  /** Opens what the address names. */
  async follow(): Promise<void> {
    const ordinal = ordinalOf(location.hash);
    if (ordinal === undefined || this.#client === undefined) {
      if (this.element.open) this.element.close();
      return;
    }
    const asked = this.#client;
    const why = await asked.call('why', { ordinal });
    if (asked !== this.#client) return;
    if (!this.element.open) this.#opener = document.activeElement;
    show(this.#content, why === undefined ? this.#missing(ordinal) : whyView(why, this.#closeButton()));
    if (!this.element.open) this.element.showModal();
    this.element.scrollTop = 0;
    this.element.querySelector<HTMLElement>('#why-title')?.focus();
  }

  #missing(ordinal: number): Child {
    return [
      h('h2', { id: 'why-title', tabindex: '-1' }, `There is no record #${ordinal}`),
      this.#closeButton(),
    ];
  }

  #closeButton(): HTMLElement {
    return h('button', { type: 'button', class: 'close', click: () => this.element.close() }, 'Close');
  }
}

function ordinalOf(hash: string): number | undefined {
  const match = /^#seq-(\d{1,9})$/.exec(hash);
  return match === null ? undefined : Number(match[1]);
}

function whyView(why: Why, close: HTMLElement): Child {
  const {
    scope,
    row,
    isOpen,
    id,
    file,
    line,
    findings,
    remedies,
    signatures,
    facts,
    links,
    grants,
    under,
    text,
  } = why;
  return [
    h(
      'header',
      {},
      h(
        'h2',
        { id: 'why-title', tabindex: '-1' },
        `#${row.ordinal} ${row.kind === 'other' ? row.type : row.kind} `,
        badge(row.verdict),
      ),
      close,
    ),
    h('p', { class: 'lead' }, [row.principal, row.tool, row.what].filter((part) => part !== '').join(' · ')),
    isOpen &&
      h(
        'p',
        { class: 'open' },
        h('strong', {}, 'Open: '),
        'it was allowed, and no execution of it is recorded up to the end of the ledger. What it reserved, if anything, is still reserved.',
      ),
    row.isLinked &&
      h('p', { class: 'muted' }, 'It was not selected: it is here since selected records link to it.'),
    findings.length > 0 &&
      part(
        'What is wrong',
        findings.map((finding) =>
          findingView(
            finding,
            remedies,
            (seq) => grants.find(({ row: grant }) => grant.ordinal === seq)?.row.signers ?? [],
            false,
          ),
        ),
      ),
    part(
      'What it says',
      h(
        'dl',
        { class: 'facts' },
        facts.map(([label, value]) => h('div', {}, h('dt', {}, label), h('dd', {}, value))),
        links.map(({ label, id: of, row: other }) =>
          h(
            'div',
            {},
            h('dt', {}, label),
            h(
              'dd',
              {},
              other === undefined
                ? `${of} (not in this ${scope === 'ledger' ? 'ledger' : 'bundle'})`
                : [
                    recordLink(other.ordinal),
                    ' ',
                    other.kind,
                    other.principal === '' ? '' : ` of ${other.principal}: `,
                    other.what,
                  ],
            ),
          ),
        ),
        h(
          'div',
          {},
          h('dt', {}, 'Stands in'),
          h('dd', {}, scope === 'ledger' ? `${file}, line ${line}` : `${file}, line ${line} of the ledger`),
        ),
        id !== undefined && h('div', {}, h('dt', {}, 'Id'), h('dd', {}, h('code', {}, id))),
      ),
    ),
    part(
      'Who signed it',
      signatures.length === 0 ? h('p', {}, 'Nobody.') : h('ul', {}, signatures.map(signatureView)),
    ),
    grants.length > 0 &&
      part(
        scope === 'selection' ? 'The grants above it' : 'The grants above it, before and after',
        grants.map(({ row: grant, meters }) => [
          h(
            'p',
            {},
            'Grant ',
            recordLink(grant.ordinal),
            ` to ${grant.principal}`,
            grant.signers.length > 0 && `, signed by ${grant.signers.join(', ')}`,
          ),
          meters === undefined
            ? h(
                'p',
                { class: 'muted' },
                scope === 'selection'
                  ? 'What was used and left of it cannot be said: that takes every record under it, and this is a selection.'
                  : 'Its accounts at this place are not kept: there are too many.',
              )
            : stepTable(meters, grant.ordinal),
        ]),
      ),
    under.total > 0 &&
      part(
        'What came of it',
        scope === 'selection' &&
          h('p', { class: 'muted' }, 'As far as it is in this bundle: the ledger may hold more.'),
        h(
          'div',
          { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': 'What came of it' },
          h(
            'table',
            { class: 'events' },
            h(
              'thead',
              {},
              h(
                'tr',
                {},
                ['Record', 'Time (UTC)', 'Kind', 'Principal', 'Tool', 'What', 'Verdict'].map((name) =>
                  h('th', { scope: 'col' }, name),
                ),
              ),
            ),
            h('tbody', {}, under.rows.map(rowView)),
          ),
        ),
        under.total > under.rows.length &&
          h('p', { class: 'muted' }, `and ${count(under.total - under.rows.length, 'more record')}.`),
      ),
    part(
      'The record as it stands',
      h('pre', { tabindex: '0', role: 'region', 'aria-label': 'The record as it stands' }, text),
    ),
  ];
}

function part(title: string, ...children: readonly Child[]): HTMLElement {
  return h('section', {}, h('h3', {}, title), ...children);
}

function signatureView({ keyid, name, outcome, code, roles }: SignatureView): HTMLElement {
  return h(
    'li',
    {},
    h('strong', {}, name ?? `key ${keyid.slice(0, 12)}…`),
    ` ${OUTCOMES[outcome]}`,
    roles.length > 0 && `, as ${roles.join(' and ')}`,
    code !== undefined && [' ', h('code', {}, code)],
    h('br'),
    h('code', { class: 'muted' }, keyid),
  );
}

function stepTable(meters: readonly MeterStep[], ordinal: number): HTMLElement {
  return h(
    'div',
    { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': `Accounts of the grant #${ordinal}` },
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['Unit', 'Used', 'Reserved', 'Left', 'Cap'].map((name, index) =>
            h('th', { scope: 'col', class: index === 0 ? undefined : 'number' }, name),
          ),
        ),
      ),
      h(
        'tbody',
        {},
        meters.map(({ unit, cap, before, after }) =>
          h(
            'tr',
            {},
            h('th', { scope: 'row' }, unit),
            change(before.used, after.used),
            change(before.reserved, after.reserved),
            change(before.left, after.left),
            h('td', { class: 'number' }, cap),
          ),
        ),
      ),
    ),
  );
}

function change(before: string, after: string): HTMLElement {
  return h('td', { class: 'number' }, before === after ? after : `${before} → ${after}`);
}
