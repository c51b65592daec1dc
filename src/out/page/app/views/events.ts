/** The table of all records: searched, filtered, a page at a time. */

import { KINDS, type Overview, type Row, type RowQuery, type Rows } from '../../model/protocol.js';
import type { Client } from '../client.js';
import { count, grouped, h, show, timeText } from '../dom.js';
import { badge, recordLink } from '../icons.js';
import { scroll, section, tableHead } from '../parts.js';

const PAGE = 50;
/** Typing is waited for, in milliseconds. */
const TYPING_MS = 150;

const VERDICTS = [
  ['', 'any verdict'],
  ['ok', 'ok'],
  ['refused', 'denied'],
  ['violation', 'violation'],
  ['invalid', 'invalid'],
] as const;

/** The columns of {@link rowView}. */
export const ROW_COLUMNS = ['Record', 'Time (UTC)', 'Kind', 'Principal', 'Tool', 'What', 'Verdict'];

interface EventsView {
  readonly element: HTMLElement;
  /** Shows records of this verdict alone. */
  filter(verdict: RowQuery['verdict']): void;
}

export function eventsView(
  { kinds, principals }: Pick<Overview, 'kinds' | 'principals'>,
  client: Client,
  title = 'Events',
): EventsView {
  const body = h('tbody');
  const status = h('p', { class: 'muted', role: 'status', id: 'events-status' });
  const search = h('input', {
    type: 'search',
    id: 'events-search',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'tool, principal, code, id or number',
  });
  const kind = select('events-kind', [
    ...(kinds.start === 0
      ? [['', 'any kind'] as const]
      : [['', 'any kind but starts'] as const, ['any', 'any kind'] as const]),
    ...KINDS.filter((each) => kinds[each] > 0).map(
      (each) => [each, `${each} (${grouped(kinds[each])})`] as const,
    ),
  ]);
  const verdict = select('events-verdict', VERDICTS);
  const principal = select('events-principal', [
    ['', 'anybody'],
    ...principals.map((each) => [each, each] as const),
  ]);
  const previous = h('button', { type: 'button', click: () => go(-PAGE) }, 'Previous');
  const next = h('button', { type: 'button', click: () => go(PAGE) }, 'Next');
  let offset = 0;
  let asked = 0;

  const load = async (): Promise<void> => {
    const question = (asked += 1);
    const rows = await client.call('rows', {
      text: search.value.slice(0, 200),
      kind: kind.value as RowQuery['kind'],
      verdict: verdict.value as RowQuery['verdict'],
      principal: principal.value,
      offset,
      limit: PAGE,
    });
    if (question === asked) display(rows);
  };
  const display = ({ total, rows }: Rows): void => {
    show(body, rows.map(rowView));
    const last = Math.min(total, offset + PAGE);
    status.textContent =
      total === 0
        ? 'No record fits.'
        : `Records ${grouped(offset + 1)} to ${grouped(last)} of ${grouped(total)}`;
    previous.disabled = offset === 0;
    next.disabled = last >= total;
  };
  const go = (by: number): void => {
    offset = Math.max(0, offset + by);
    void load();
  };
  const restart = (): void => {
    offset = 0;
    void load();
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  search.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(restart, TYPING_MS);
  });
  for (const each of [kind, verdict, principal]) each.addEventListener('change', restart);
  void load();

  const element = section(
    'events',
    title,
    h(
      'form',
      { class: 'filters', role: 'search', 'aria-label': 'Events', submit: (event) => event.preventDefault() },
      field('events-search', 'Search', search),
      field('events-kind', 'Kind', kind),
      field('events-verdict', 'Verdict', verdict),
      field('events-principal', 'Principal', principal),
    ),
    scroll(
      'Table of events',
      h('table', { class: 'events', 'aria-describedby': 'events-status' }, tableHead(ROW_COLUMNS), body),
    ),
    h('div', { class: 'pager' }, previous, next, status),
  );
  return {
    element,
    filter: (only) => {
      search.value = '';
      kind.value = '';
      principal.value = '';
      verdict.value = only;
      restart();
    },
  };
}

/** One record as a row of a table. */
export function rowView({
  ordinal,
  occurredAt,
  kind,
  type,
  principal,
  tool,
  what,
  verdict,
  findings,
  isLinked,
}: Row): HTMLElement {
  return h(
    'tr',
    { class: verdict },
    h('th', { scope: 'row' }, recordLink(ordinal), isLinked && h('small', 'linked to')),
    h('td', { class: 'time' }, timeText(occurredAt)),
    h('td', { class: kind === 'other' ? undefined : 'kind' }, kind === 'other' ? type : kind),
    h('td', { class: 'name' }, principal),
    h('td', { class: 'name' }, tool),
    h('td', { class: 'what' }, what),
    h('td', badge(verdict), findings > 0 && h('small', count(findings, 'finding'))),
  );
}

function field(id: string, label: string, control: HTMLElement): HTMLElement {
  return h('div', { class: 'field' }, h('label', { for: id }, label), control);
}

function select(
  id: string,
  options: readonly (readonly [value: string, words: string])[],
): HTMLSelectElement {
  return h(
    'select',
    { id },
    options.map(([value, words]) => h('option', { value }, words)),
  );
}
