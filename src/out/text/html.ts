/** Text as HTML. */

import { printable } from '../../base/bytes/printable.js';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** `text` for the content of an element, or for an attribute between quotes; cut to `limit` characters and made printable. */
export function escapeHtml(text: string, limit = Infinity): string {
  return printable(text, limit).replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
