/** The event of an anchor: an extension event of the parent, `x.northroot.anchor`. */

import { encodeUtf8 } from '../../base/bytes/text.js';
import type { JsonObject } from '../../base/json/value.js';
import { toDigestText, tryParseDigest } from '../../base/value/digest.js';
import { decodeCheckpoint } from '../../format/note/checkpoint.js';
import { hashToBase64url } from '../../format/tree/compact-range.js';

export const ANCHOR_TYPE = 'x.northroot.anchor';

/** A longer note would not fit into a record. */
export const MAX_NOTE_LENGTH = 32 * 1024;

export interface LedgerAnchor {
  /** The child, `sha-256:…`. */
  readonly childId: string;
  readonly origin: string;
  readonly treeSize: number;
  /** Over its first `treeSize` records, `sha-256:…`. */
  readonly root: string;
  /** The signed note of its checkpoint. */
  readonly note: string;
}

/** Undefined for what names itself an anchor and is malformed, and for other events. */
export function readAnchor(event: JsonObject): LedgerAnchor | undefined {
  if (event['event_type'] !== ANCHOR_TYPE) return undefined;
  const { ledger_id: childId, note } = (event['anchored'] ?? {}) as Record<string, unknown>;
  if (typeof childId !== 'string' || tryParseDigest(childId) === undefined) return undefined;
  if (typeof note !== 'string' || note.length > MAX_NOTE_LENGTH) return undefined;
  const decoded = decodeCheckpoint(encodeUtf8(note));
  if (!decoded.ok) return undefined;
  // The note is what was signed: what the event says beside it is for readers.
  const { origin, size, root } = decoded.value.checkpoint;
  return { childId, origin, treeSize: size, root: toDigestText(hashToBase64url(root)), note };
}
