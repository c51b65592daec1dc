/** The model that a form names (`multipart/form-data`, RFC 7578): all that is read of it. */

import { decodeLatin1, decodeUtf8, encodeLatin1 } from '../../base/bytes/text.js';
import { checkModel, invalid } from './request-body.js';

/** The most parts of a form. */
const MAX_PARTS = 64;
/** The longest head of a part, in bytes. */
const MAX_HEAD_BYTES = 4_096;

/**
 * The value of the only part that is named `model`; undefined where there is none.
 * @throws RequestFault for what is no such form, and for two of that name
 */
export function modelOfForm(contentType: string, body: Uint8Array): string | undefined {
  const boundary = /;\s*boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i.exec(contentType);
  const text = boundary?.[1] ?? boundary?.[2];
  if (text === undefined) throw invalid('the form: expected a boundary in its content type');
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const mark = encodeLatin1(`--${text}`);
  let at = bytes.indexOf(mark);
  let model: string | undefined;
  for (let parts = 0; at >= 0; parts += 1) {
    if (parts > MAX_PARTS) throw invalid(`the form: expected at most ${MAX_PARTS} parts`);
    const start = at + mark.length;
    at = bytes.indexOf(mark, start);
    if (at < 0) break;
    const part = bytes.subarray(start, at);
    const headEnd = part.subarray(0, MAX_HEAD_BYTES).indexOf('\r\n\r\n');
    if (headEnd < 0) throw invalid('the form: expected a head in each part');
    const head = decodeLatin1(part.subarray(0, headEnd));
    if (!/;\s*name=(?:"model"|model(?:[\s;]|$))/i.test(head)) continue;
    if (model !== undefined) throw invalid('model: found it twice');
    model = checkModel(decodeUtf8(part.subarray(headEnd + 4)).replace(/\r\n$/, ''));
  }
  return model;
}
