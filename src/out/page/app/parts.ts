/** Parts that several views share. */

import { type Child, count, h } from './dom.js';

/** A section under a heading that a link can point to. */
export function section(id: string, title: string, ...children: readonly Child[]): HTMLElement {
  return h('section', { 'aria-labelledby': id }, h('h2', { id }, title), ...children);
}

/** A paragraph beside the point. */
export function muted(...children: readonly Child[]): HTMLElement {
  return h('p', { class: 'muted' }, ...children);
}

/** A term and its text, in a list of definitions. */
export function entry(term: string, ...text: readonly Child[]): HTMLElement {
  return h('div', h('dt', term), h('dd', ...text));
}

/** A list of definitions. */
export function entries(name: string, pairs: readonly (readonly [term: string, text: Child])[]): HTMLElement {
  return h(
    'dl',
    { class: name },
    pairs.map(([term, text]) => entry(term, text)),
  );
}

/** A scrollable region for what is wider than a narrow screen. */
export function scroll(label: string, ...children: readonly Child[]): HTMLElement {
  return h('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': label }, ...children);
}

/** The last item of a list that is cut. */
export function restItem(words: string): HTMLElement {
  return h('li', { class: 'muted' }, words);
}

/**
 * A list that shows further items on request.
 *
 * @param load - The items from an offset on, and how many there are in all.
 */
export function moreList(
  list: HTMLElement,
  noun: string,
  load: (offset: number) => Promise<{ readonly total: number; readonly items: readonly HTMLElement[] }>,
): { readonly list: HTMLElement; readonly more: HTMLElement } {
  const more = h('p');
  const add = async (offset: number): Promise<void> => {
    const { total, items } = await load(offset);
    list.append(...items);
    more.replaceChildren();
    const end = offset + items.length;
    if (total === 0) more.append('None.');
    if (total > end) {
      const words = `Show more: ${count(total - end, noun)} left`;
      more.append(h('button', { type: 'button', click: () => void add(end) }, words));
    }
  };
  void add(0);
  return { list, more };
}

/** The head of a table. Columns of numbers are marked. */
export function tableHead(
  columns: readonly string[],
  isNumber: (index: number) => boolean = () => false,
): HTMLElement {
  return h(
    'thead',
    h(
      'tr',
      columns.map((name, index) =>
        h('th', { scope: 'col', class: isNumber(index) ? 'number' : undefined }, name),
      ),
    ),
  );
}
