/** Exchanges as recordings have them, a line of JSON each: what `clasper` reads. */

import type { HttpRequest, HttpResponse } from '../../../base/platform/serve-http.js';
import { decodeUtf8 } from '../../../base/bytes/text.js';
import { decodeSourceJson } from '../../../base/json/source-json.js';

/** A request with its answer. `request` and `response` are the texts of JSON. */
export interface Exchange {
  /** Of the ledger's clock. */
  readonly recordedAt: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly request: string | null;
  readonly status: number;
  readonly response: string;
}

/** A token in JSON or in a header: two parts, and a signature. */
const TOKEN = /(eyJ[\w-]+\.[\w-]+)\.[\w-]+/g;
const WHOLE = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const TOKENS = ['x-adapter-token', 'x-decision-token'];

/** The exchange without what would let anybody use its tokens. */
export function toExchange(request: HttpRequest, response: HttpResponse, now: string): Exchange {
  const headers = Object.fromEntries(
    TOKENS.flatMap((name) => {
      const text = request.headers[name];
      // What is no token of this form may be a secret as a whole.
      return text === undefined || !WHOLE.test(text) ? [] : [[name, withoutSignatures(text)]];
    }),
  );
  return {
    recordedAt: now,
    method: request.method,
    path: request.path,
    headers,
    request: isJson(request.body) ? withoutSignatures(decodeUtf8(request.body)) : null,
    status: response.status,
    response: withoutSignatures(response.body),
  };
}

/** The line of a recording, without its line feed. Numbers keep their spelling, which digests cover. */
export function writeExchange(exchange: Exchange): string {
  const { recordedAt, method, path, headers, request, status, response } = exchange;
  const head = JSON.stringify({ recorded_at: recordedAt, method, path, headers }).slice(0, -1);
  return `${head},"request":${onOneLine(request ?? 'null')},"status":${status},"response":${onOneLine(response)}}`;
}

function isJson(body: Uint8Array): boolean {
  return body.length > 0 && decodeSourceJson(body).ok;
}

function withoutSignatures(text: string): string {
  return text.replace(TOKEN, '$1.');
}

/** Within JSON a line feed is between tokens only. */
function onOneLine(json: string): string {
  return json.replace(/[\r\n]+/g, ' ');
}
