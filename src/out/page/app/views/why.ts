/** All that is known of one record, in a dialog. */

import type { MeterStep, SignatureView, Why } from '../../model/protocol.js';
import type { Client } from '../client.js';
import { type Child, count, h, show } from '../dom.js';
import { badge, recordLink } from '../icons.js';
import { entry, muted, scroll, tableHead } from '../parts.js';
import { ROW_COLUMNS, rowView } from './events.js';
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
  readonly #content = h('div');
  #client: Client | undefined;
  #opener: Element | null = null;
  #shown: number | undefined;

  constructor() {
    this.element = h('dialog', { class: 'why', 'aria-labelledby': 'why-title' }, this.#content);
    this.element.addEventListener('close', () => {
      // The address may name another record by now.
      if (ordinalOf(location.hash) === this.#shown) history.replaceState(null, '', '#events');
      if (this.#opener instanceof HTMLElement && this.#opener.isConnected) this.#opener.focus();
    });
    addEventListener('hashchange', () => void this.follow());
  }

  use(client: Client): void {
    this.#client = client;
    void this.follow();
  }

  /** Closes the dialog: its ledger is gone. */
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
    this.#shown = ordinal;
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
  const { row, findings } = why;
  return [
    h(
      'header',
      h(
        'h2',
        { id: 'why-title', tabindex: '-1' },
        `#${row.ordinal} ${row.kind === 'other' ? row.type : row.kind} `,
        badge(row.verdict),
      ),
      close,
    ),
    h('p', { class: 'lead' }, [row.principal, row.tool, row.what].filter((part) => part !== '').join(' · ')),
    why.isOpen &&
      h(
        'p',
        { class: 'open' },
        h('strong', 'Open: '),
        'it was allowed, and no execution of it is recorded up to the end of the ledger. What it reserved, if anything, is still reserved.',
      ),
    row.isLinked && muted('It was not selected: it is here since selected records link to it.'),
    findings.length > 0 && part('What is wrong', wrongView(why)),
    part('What it says', factsView(why)),
    part(
      'Who signed it',
      why.signatures.length === 0 ? h('p', 'No signature.') : h('ul', why.signatures.map(signatureView)),
    ),
    grantsAboveView(why),
    underView(why),
    part('The record', h('pre', { tabindex: '0', role: 'region', 'aria-label': 'The record' }, why.text)),
  ];
}

function wrongView({ findings, remedies, grants }: Why): Child {
  const signersOf = (seq: number): readonly string[] =>
    grants.find(({ row }) => row.ordinal === seq)?.row.signers ?? [];
  return findings.map((finding) => findingView(finding, remedies, signersOf, false));
}

function factsView({ scope, id, file, line, facts, links }: Why): HTMLElement {
  const ledger = scope === 'ledger' ? '' : ' of the ledger';
  return h(
    'dl',
    { class: 'facts' },
    facts.map(([label, value]) => entry(label, value)),
    links.map(({ label, id: of, row }) =>
      entry(
        label,
        row === undefined
          ? `${of} (not in this ${scope === 'ledger' ? 'ledger' : 'bundle'})`
          : [
              recordLink(row.ordinal),
              ` ${row.kind}`,
              row.principal !== '' && ` of ${row.principal}: `,
              row.what,
            ],
      ),
    ),
    entry('Location', `${file}, line ${line}${ledger}`),
    id !== undefined && entry('Id', h('code', id)),
  );
}

function grantsAboveView({ scope, grants }: Why): Child {
  if (grants.length === 0) return undefined;
  const unknown =
    scope === 'selection'
      ? 'What was used and left of it cannot be said: that takes every record under it, and this is a selection.'
      : 'Its accounts at this place are not kept: there are too many.';
  return part(
    scope === 'selection' ? 'The grants above it' : 'The grants above it, before and after',
    grants.map(({ row, meters }) => [
      h(
        'p',
        'Grant ',
        recordLink(row.ordinal),
        ` to ${row.principal}`,
        row.signers.length > 0 && `, signed by ${row.signers.join(', ')}`,
      ),
      meters === undefined ? muted(unknown) : stepTable(meters, row.ordinal),
    ]),
  );
}

function underView({ scope, under: { total, rows } }: Why): Child {
  if (total === 0) return undefined;
  return part(
    'What came of it',
    scope === 'selection' && muted('As far as it is in this bundle: the ledger may hold more.'),
    scroll(
      'What came of it',
      h('table', { class: 'events' }, tableHead(ROW_COLUMNS), h('tbody', rows.map(rowView))),
    ),
    total > rows.length && muted(`and ${count(total - rows.length, 'more record')}.`),
  );
}

function part(title: string, ...children: readonly Child[]): HTMLElement {
  return h('section', h('h3', title), ...children);
}

function signatureView({ keyid, name, outcome, code, roles }: SignatureView): HTMLElement {
  return h(
    'li',
    h('strong', name ?? `key ${keyid.slice(0, 12)}…`),
    ` ${OUTCOMES[outcome]}`,
    roles.length > 0 && `, as ${roles.join(' and ')}`,
    code !== undefined && [' ', h('code', code)],
    h('br'),
    h('code', { class: 'muted' }, keyid),
  );
}

function stepTable(meters: readonly MeterStep[], ordinal: number): HTMLElement {
  return scroll(
    `Accounts of the grant #${ordinal}`,
    h(
      'table',
      tableHead(['Unit', 'Used', 'Reserved', 'Left', 'Cap'], (index) => index > 0),
      h(
        'tbody',
        meters.map(({ unit, cap, before, after }) =>
          h(
            'tr',
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
