/** Items of OpenClaw's files, each told by its members: one file may hold several kinds. */

import { encodeUtf8 } from '../../base/bytes/text.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { decodeSourceJson, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { HostFile, HostPlace } from '../shared/host.js';
import { MAX_ITEM_BYTES, type ReadingBuilder, splitLines } from '../shared/reading.js';
import { listAt, numberAt, objectAt, plainJson, textAt, valueAt } from '../shared/values.js';

export type EntryKind =
  | 'hook'
  | 'agent_event'
  | 'transcript'
  | 'audit'
  | 'receipt'
  | 'display'
  | 'cli'
  | 'pipeline'
  | 'unknown';

export interface Entry {
  readonly at: HostPlace;
  readonly bytes: Uint8Array;
  readonly value: SourceObject;
  readonly kind: EntryKind;
  /** As {@link HostItem.type} has it: `hook:before_tool_call`. */
  readonly type: string;
}

/** What is in a file that is one JSON value: a page of records. */
const PAGES = ['events', 'records', 'entries', 'decisions', 'receipts', 'decisionDisplays', 'facts'];

/** The items of a file: its lines, or the members of the one value that it is. */
export function* entriesOf(file: HostFile, builder: ReadingBuilder): Generator<Entry, void, void> {
  const whole = documentOf(file);
  if (whole === undefined) {
    for (const { at, bytes, value } of builder.lines(file)) yield* entryOf(at, bytes, value, builder);
    return;
  }
  const { members, pointer } = membersOf(whole);
  if (members === undefined) {
    yield* entryOf({ file: file.name }, file.bytes, whole, builder);
    return;
  }
  for (const [index, member] of members.entries()) {
    const plain = plainJson(member);
    // A page holds other records with every export: the digest of a record is of the record.
    const bytes = plain === undefined ? file.bytes : canonicalBytes(plain);
    yield* entryOf({ file: file.name, pointer: `${pointer}/${index}` }, bytes, member, builder);
  }
}

/** Whether a file looks like one of OpenClaw's: by its first items. */
export function looksLikeOpenClaw(file: HostFile): boolean {
  const whole = documentOf(file);
  if (whole !== undefined) {
    const { members } = membersOf(whole);
    return (members ?? [whole]).slice(0, 8).some(isKnown);
  }
  let seen = 0;
  for (const { bytes } of splitLines(file)) {
    if (seen++ === 8) return false;
    if (bytes.length > MAX_ITEM_BYTES) continue;
    const line = decodeSourceJson(bytes);
    if (line.ok && isKnown(line.value)) return true;
  }
  return false;
}

function isKnown(value: SourceValue): boolean {
  return value instanceof SourceObject && kindOf(value).kind !== 'unknown';
}

/** The value that a file is as a whole: one that is longer than a line, an array, or a page. */
function documentOf(file: HostFile): SourceValue | undefined {
  const [first] = splitLines(file);
  if (first === undefined || file.bytes.length > MAX_ITEM_BYTES) return undefined;
  const line = first.bytes.length > MAX_ITEM_BYTES ? undefined : decodeSourceJson(first.bytes);
  if (line?.ok === true && !Array.isArray(line.value) && membersOf(line.value).members === undefined)
    return undefined;
  const whole = decodeSourceJson(file.bytes);
  return whole.ok ? whole.value : undefined;
}

function membersOf(value: SourceValue): {
  readonly members?: readonly SourceValue[] | undefined;
  readonly pointer: string;
} {
  if (Array.isArray(value)) return { members: value as readonly SourceValue[], pointer: '' };
  if (!(value instanceof SourceObject) || kindOf(value).kind !== 'unknown') return { pointer: '' };
  const name = PAGES.find((page) => listAt(value, page) !== undefined);
  return name === undefined ? { pointer: '' } : { members: listAt(value, name), pointer: `/${name}` };
}

function* entryOf(
  at: HostPlace,
  bytes: Uint8Array,
  value: SourceValue,
  builder: ReadingBuilder,
): Generator<Entry, void, void> {
  if (!(value instanceof SourceObject)) {
    builder.drop(at, 'unknown', 'NOT_AN_OBJECT');
    return;
  }
  const row = textAt(value, 'receipt_json');
  if (row !== undefined) {
    const receipt = decodeSourceJson(encodeUtf8(row));
    if (receipt.ok && receipt.value instanceof SourceObject) {
      yield { at, bytes, value: receipt.value, ...kindOf(receipt.value) };
      return;
    }
  }
  yield { at, bytes, value, ...kindOf(value) };
}

const TRANSCRIPT_TYPES = new Set([
  ...['session', 'message', 'model_change', 'thinking_level_change', 'custom', 'custom_message'],
  ...['compaction', 'branch_summary', 'label', 'session_info'],
]);

function kindOf(value: SourceObject): Pick<Entry, 'kind' | 'type'> {
  const hook = textAt(value, 'hook');
  if (hook !== undefined) return { kind: 'hook', type: `hook:${hook}` };
  const stream = textAt(value, 'stream');
  if (stream !== undefined && numberAt(value, 'seq') !== undefined)
    return { kind: 'agent_event', type: `agent_event:${stream}` };
  if (textAt(value, 'family') !== undefined && value.has('eventId'))
    return { kind: 'pipeline', type: 'pipeline' };
  if (valueAt(value, 'decision', 'outcome') !== undefined && objectAt(value, 'enforcement') !== undefined) {
    if (value.has('receiptId')) return { kind: 'receipt', type: 'decision_receipt' };
    return { kind: 'display', type: 'decision_display' };
  }
  if (numberAt(value, 'sequence') !== undefined && textAt(value, 'action') !== undefined)
    return { kind: 'audit', type: `audit:${textAt(value, 'action') ?? ''}` };
  const type = textAt(value, 'type');
  if (type !== undefined && (TRANSCRIPT_TYPES.has(type) || value.has('parentId')))
    return { kind: 'transcript', type: `transcript:${type}` };
  if (
    objectAt(value, 'meta', 'agentMeta') !== undefined ||
    objectAt(value, 'result', 'meta', 'agentMeta') !== undefined
  )
    return { kind: 'cli', type: 'agent_cli_output' };
  return { kind: 'unknown', type: 'unknown' };
}
