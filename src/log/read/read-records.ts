/** Reads records sequentially, with or without their verdicts. */

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

/** A readable record or bare event. */
export interface ReadRecord {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** The record's number; for a bare event its ordinal, without blank lines. */
  readonly seq: number;
  /** `sha-256:…`, as claimed. */
  readonly eventId: string;
  readonly event: JsonObject;
  readonly signatures: readonly SignatureEntry[];
  /** Without `\n`. */
  readonly bytes: Uint8Array;
  /** Only with {@link ReadOptions.verify}. */
  readonly verdict: EventVerdict | undefined;
}

export interface UnreadLine {
  readonly file: string;
  readonly line: number;
}

export interface ReadOptions {
  /** Verifies while reading. Default: no verification. */
  readonly verify?: { readonly trust?: TrustPolicy } | undefined;
  /** Called for each line that is no record; such lines are left out. */
  readonly onUnread?: ((line: UnreadLine) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The records of a source in order.
 * @throws NorthrootError when the source cannot be read; the signal's reason; TypeError for a bad option
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
