/** Elements and texts: the only way in which the page shows anything. No text is ever parsed as HTML. */

import { count } from '../../text/words.js';

/** A child of an element, or a list of children. */
export type Child = Node | string | undefined | false | readonly Child[];

/** Attributes of an element; a function is a listener. */
export type Attributes = Readonly<
  Record<string, string | number | boolean | undefined | ((event: Event) => void)>
>;

const SVG = 'http://www.w3.org/2000/svg';

/** What an element is made of: its attributes, where it has any, then its children. */
type Parts = readonly [Attributes, ...Child[]] | readonly Child[];

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, ...parts: Parts): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), parts);
}

export function s<K extends keyof SVGElementTagNameMap>(tag: K, ...parts: Parts): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), parts);
}

export function show(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren();
  append(element, children);
}

function fill<T extends Element>(element: T, parts: Parts): T {
  const [first, ...rest] = parts;
  if (!isAttributes(first)) {
    append(element, parts as readonly Child[]);
    return element;
  }
  for (const [name, value] of Object.entries(first)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, rest as readonly Child[]);
  return element;
}

function isAttributes(part: Attributes | Child): part is Attributes {
  return typeof part === 'object' && !Array.isArray(part) && !(part instanceof Node);
}

function append(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === undefined || child === false) continue;
    if (typeof child === 'string' || child instanceof Node) element.append(child);
    else append(element, child);
  }
}

export { count, countsText, grouped } from '../../text/words.js';

/** `2 grants`, `1 action`: what there is any of. */
export function counted(...counts: readonly (readonly [n: number, noun: string])[]): string[] {
  return counts.filter(([n]) => n > 0).map(([n, noun]) => count(n, noun));
}

/** `a, b and c`; of long lists the first ones. */
export function listOf(items: readonly string[], limit = 4): string {
  const shown =
    items.length > limit ? [...items.slice(0, limit), `${items.length - limit} more`] : [...items];
  const last = shown.pop() ?? '';
  return shown.length === 0 ? last : `${shown.join(', ')} and ${last}`;
}

/** `2026-03-01 12:00:05`; other text unchanged. */
export function timeText(timestamp: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(timestamp);
  return match === null ? timestamp : `${match[1]} ${match[2]}`;
}

/** `3.4 MB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return count(bytes, 'byte');
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
