/** What a content is: canonical JSON, another text, or bytes. */

import { equalBytes } from '../../base/bytes/compare.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { ingestJson } from '../../base/json/ingest.js';
import { findInvalidUtf8 } from '../../base/json/utf8.js';
import type { JsonValue } from '../../base/json/value.js';

export type ReadableContent =
  | { readonly json: JsonValue }
  | { readonly text: string }
  | { readonly bytes: Uint8Array };

/** A content as canonical JSON, as another text, or as what is no text. */
export function readableContent(bytes: Uint8Array): ReadableContent {
  if (findInvalidUtf8(bytes, 0, bytes.length) !== -1) return { bytes };
  const { value } = ingestJson(bytes);
  // Of JSON in another form, what is read could differ from what another reader reads.
  if (value !== undefined && equalBytes(canonicalBytes(value), bytes)) return { json: value };
  return { text: decodeUtf8(bytes) };
}
