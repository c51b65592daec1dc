/**
 * Outside text in the formats of CI hosts: one function for each. All of them take what `printable` leaves, so that no control,
 * newline or invisible character is left to escape; they escape the syntax of their host.
 */

import { printable } from '../../base/bytes/printable.js';

/** The longest text from outside that is shown in one piece, in characters. */
export const MAX_SHOWN = 2_000;

/** Outside text, shown. Longer than {@link MAX_SHOWN} it is cut. */
export function shown(text: string): string {
  return printable(text, MAX_SHOWN);
}

/** In a SARIF message: `{0}` is a placeholder and `[x](y)` a link (SARIF 2.1.0 §3.11.5, §3.11.6). */
export function escapeSarif(text: string): string {
  return shown(text)
    .replace(/\[(?=[^\]]*\]\()|\](?=\()/g, '\\$&')
    .replace(/[{}]/g, '$&$&');
}

const XML: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** In XML 1.0, in an attribute or in text. What XML forbids altogether is shown as an escape. */
export function escapeXml(text: string): string {
  return shown(text).replace(/[&<>"']/g, (character) => XML[character] as string);
}

/** The message of a workflow command of GitHub. */
export function escapeCommandMessage(text: string): string {
  return shown(text).replace(/[%\r\n]/g, toPercent);
}

export function escapeCommandProperty(text: string): string {
  return shown(text).replace(/[%\r\n:,]/g, toPercent);
}

/** A path as a URI reference (RFC 3986): relative where it is, each of its names percent-encoded. */
export function toUri(path: string): string {
  const names = path.replace(/^(?:\.\/+)+/, '').split('/');
  const encoded = names.map((name) => encodeURIComponent(wellFormed(name))).join('/');
  return path.startsWith('/') ? `file://${encoded}` : encoded;
}

/** Half of a character cannot be encoded. */
function wellFormed(text: string): string {
  return text.replace(/\p{Cs}/gu, '\ufffd');
}

function toPercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
