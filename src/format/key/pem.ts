/** PEM (RFC 7468): exactly one block, with equal labels on lines of their own and canonical base64. */

import { encodeBase64, tryDecodeBase64 } from '../../base/bytes/encoding.js';
import { malformed } from './key-form.js';

interface Pem {
  readonly label: string;
  readonly bytes: Uint8Array;
}

/** The label of PEM text, its content unchecked; `undefined` if there is none. */
export function pemLabel(text: string): string | undefined {
  return /^-----BEGIN ([A-Z0-9 ]{1,64})-----\r?\n/.exec(text)?.[1];
}

/** @throws NorthrootError `KEY_MALFORMED` */
export function parsePem(text: string): Pem {
  const label = pemLabel(text);
  if (label === undefined) throw malformed('a PEM block', 'other text');
  const begin = `-----BEGIN ${label}-----`;
  const end = `-----END ${label}-----`;
  if (!text.endsWith(end))
    throw malformed(
      'one PEM block and nothing after it',
      'other text',
      text.includes(end) ? `remove the text after ${end}` : undefined,
    );
  const body = text.slice(begin.length, -end.length);
  const bytes = body.endsWith('\n') ? tryDecodeBase64(body.replace(/\r?\n/g, '')) : undefined;
  if (bytes === undefined || bytes.length === 0) throw malformed('base64 in the PEM block', 'other text');
  return { label, bytes };
}

/** PEM in lines of 64 characters, with a final newline. */
export function formatPem(label: string, bytes: Uint8Array): string {
  const lines = encodeBase64(bytes).match(/.{1,64}/g) ?? [];
  return `${[`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`].join('\n')}\n`;
}
