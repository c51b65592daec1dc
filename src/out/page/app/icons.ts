/** Icons, always beside words. */

import type { EventVerdict } from '../../../rules/verify/line-result.js';
import { h, s } from './dom.js';

const SHAPES = {
  ok: 'M4 8.5 7 11.5 12.5 5',
  denied: 'M3.6 12.4 12.4 3.6M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 1 0 8 1.8Z',
  violation: 'M8 2 14.5 13.5H1.5ZM8 6.5v3.2M8 11.6v.2',
  invalid: 'M4 4l8 8M12 4l-8 8',
  undecided: 'M5.5 6a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.8-1.1 1.6M8 12v.2',
  seal: 'M8 1.8 13 4v4c0 3-2 5-5 6.2C5 13 3 11 3 8V4Z',
} as const;

export type Shape = keyof typeof SHAPES;

export function icon(shape: Shape): SVGElement {
  return s(
    'svg',
    { viewBox: '0 0 16 16', class: `icon ${shape}`, 'aria-hidden': 'true', focusable: 'false' },
    s('path', { d: SHAPES[shape] }),
  );
}

export function badge(verdict: EventVerdict | 'undecided'): HTMLElement {
  return h('span', { class: `badge ${verdict}` }, icon(verdict), verdict);
}

/** A link that opens a record. */
export function recordLink(ordinal: number, words = `#${ordinal}`): HTMLElement {
  return h('a', { href: `#seq-${ordinal}`, class: 'record' }, words);
}
