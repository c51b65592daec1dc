/** Reads a ledger's records one after the other, for showing them: as they stand, or with the verdict on each. */

import type { JsonObject } from '../../base/json/value.js';
import { checkOptions } from '../../base/options.js';
import { toDigestText } from '../../base/value/digest.js';
import { type ExaminedLine, examineLine, type SignatureEntry } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { type LedgerLine, readLines } from '../../rules/source/read-lines.js';
import type { EventVerdict } from '../../rules/verify/line-result.js';
import { startVerification, type VerifyState } from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';

/** A line that could be read as a record (or a bare event), with what it says of itself. */
export interface ReadRecord {
  readonly file: string;
  /** 1 for the first line of the file. */
  readonly line: number;
  /** The record's own number; of a bare event its place, counted from 0, blank lines left out. */
  readonly seq: number;
  /** `sha-256:…`, as the event claims it. */
  readonly eventId: string;
  readonly event: JsonObject;
  readonly signatures: readonly SignatureEntry[];
  /** The line's bytes without `\n`. */
  readonly bytes: Uint8Array;
  /** The verdict on the event, where {@link ReadOptions.verify} asked for it. */
  readonly verdict: EventVerdict | undefined;
}

/** A line that could not. */
export interface UnreadLine {
  readonly file: string;
  readonly line: number;
}

/** How {@link readRecords} reads. */
export interface ReadOptions {
  /** Verifies on the way, with this trust policy if one is given. Without it nothing is verified. */
  readonly verify?: { readonly trust?: TrustPolicy } | undefined;
  /** Told of each line that is no record; such lines are left out. */
  readonly onUnread?: ((line: UnreadLine) => void) | undefined;
  /** Aborting ends the reading with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The records of a source in order.
 *
 * @throws NorthrootError when the source cannot be read; the signal's reason when that aborts. TypeError for an option that is not
 *   known or of the wrong type.
 */
export async function* readRecords(
  source: LedgerSource,
  options: ReadOptions = {},
): AsyncGenerator<ReadRecord, void, void> {
  checkOptions('readRecords', options, { verify: 'object', onUnread: 'function', signal: 'signal' });
  checkOptions('readRecords: verify', options.verify ?? {}, { trust: 'object' });
  const read = options.verify === undefined ? plainReader() : verifyingReader(options.verify.trust);
  for await (const each of readLines(source, { signal: options.signal })) {
    const { line, segment, ordinal } = each;
    const { examined, verdict } = read(each);
    const event = examined?.json();
    const eventId = examined?.eventId;
    const place = { file: segment.file, line: line.number };
    if (event === undefined || eventId === undefined) options.onUnread?.(place);
    else {
      const { seq = ordinal, signatures = [] } = examined ?? {};
      const bytes = Uint8Array.from(line.bytes);
      yield { ...place, seq, eventId: toDigestText(eventId), event, signatures, bytes, verdict };
    }
  }
}

type Reader = (line: LedgerLine) => {
  readonly examined: ExaminedLine | undefined;
  readonly verdict: EventVerdict | undefined;
};

function plainReader(): Reader {
  let layout: ExaminedLine['layout'];
  return ({ line: { bytes, length }, takesPlace }) => {
    const examined = takesPlace && length <= MAX_LINE_BYTES ? examineLine(bytes, layout) : undefined;
    layout ??= examined?.layout;
    return { examined, verdict: undefined };
  };
}

function verifyingReader(trust: TrustPolicy | undefined): Reader {
  const state: VerifyState = startVerification(trust, defaultBackend);
  return ({ line, segment }) => verifyLine(state, line, segment);
}
