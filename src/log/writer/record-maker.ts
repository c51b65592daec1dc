/** Makes records: completes, signs and places events that the rules admit. */

import { type FastEvent, LINE_ROOM, placeFastEvent, scanFastEvent } from '#fast/step';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { MAX_DEPTH } from '../../base/json/scan.js';
import type { JsonObject } from '../../base/json/value.js';
import { digestFromBase64url, toDigestText } from '../../base/value/digest.js';
import { completeWhole, readWritten, writeDraft } from '../../format/event/build.js';
import { type CompleteEvent, payloadOf } from '../../format/event/identity.js';
import { EventError } from '../../format/event/validate.js';
import type { Span } from '../../format/record/event-bytes.js';
import {
  examineLine,
  examineMade,
  type SignatureEntry,
  type WellFormedLine,
} from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import { EVENT_START, formatRecordAround } from '../../format/record/record.js';
import { checkRecord } from '../../format/schema/check.js';
import type { CheckpointEvent, GenesisEvent } from '../../format/schema/generated/types.js';
import { type Signer, signEvent, signingKeyOf } from '../../format/signature/signer.js';
import type { AdmissionRules } from './admission.js';
import { makeCheckpoint, type NextLink } from './checkpoint.js';
import { type Entry, nowOf, type OpeningOptions } from './options.js';
import type { MadeLine, RunningVerification } from './running-verification.js';
import type { SigningThreads } from './signing-threads.js';

/** A complete entry of the right form. */
export interface Prepared extends Written {
  readonly meta: Entry['meta'];
  readonly given: readonly SignatureEntry[];
  readonly isAnew: boolean;
  readonly refusesExisting: boolean;
  /** When it was given: the date of a checkpoint that it makes due. */
  readonly givenAt: string;
}

interface Written {
  /** The line's content, without place and signatures. */
  readonly line: WellFormedLine;
  /** Its canonical bytes, whose identity keys the signatures made ahead. */
  readonly bytes: Uint8Array;
  /** See `CompleteEvent`. */
  readonly depth: number | undefined;
  /** For a scannable event, its line in the making. */
  readonly fast: FastEvent | undefined;
}

export class RecordMaker {
  readonly #options: OpeningOptions;
  readonly #running: RunningVerification;
  readonly #rules: AdmissionRules;
  readonly #signing: SigningThreads | undefined;
  /** See {@link RecordMaker.signAhead}. */
  readonly #ahead = new WeakMap<Uint8Array, string>();

  constructor(
    options: OpeningOptions,
    running: RunningVerification,
    rules: AdmissionRules,
    signing?: SigningThreads,
  ) {
    this.#signing = signing;
    this.#options = options;
    this.#running = running;
    this.#rules = rules;
  }

  /**
   * Completes and checks an entry, regardless of its place.
   * @throws EventError, TypeError, NorthrootError `GENESIS_MISPLACED`
   */
  prepare(entry: Entry): Prepared {
    // Serialized now, so that later changes by the caller have no effect.
    const written = this.#write(entry.event);
    const { line, bytes, depth, fast } = written;
    if (line.type === 'genesis' && line.eventId !== this.#running.genesis.event_id.b64)
      throw new NorthrootError(
        'GENESIS_MISPLACED',
        'only the first record of a ledger may be a genesis event',
      );
    const { meta, given } = this.#readCompanions(entry, line);
    const isAnew = entry.isAnew === true;
    const refusesExisting = entry.refusesExisting === true;
    return { line, bytes, depth, fast, meta, given, isAnew, refusesExisting, givenAt: nowOf(this.#options) };
  }

  /** An `isAnew` event that exists already gets a successor. */
  makeDistinct(prepared: Prepared): Prepared {
    if (!prepared.isAnew || !this.#rules.has(prepared.line)) return prepared;
    let made: Written = prepared;
    while (this.#rules.has(made.line)) {
      const previous = digestFromBase64url(made.line.eventId);
      const draft = { ...payloadOf(made.line.json() as object), prev_event_id: previous };
      made = readWhole(writeDraft(draft, {}, LINE_ROOM));
    }
    return { ...prepared, ...made };
  }

  /**
   * Signs several events in a row, which keeps the processor's caches warm. Only for keys in memory, and new events: a signature may turn
   * out not to be needed.
   */
  signAhead(all: readonly Prepared[]): void {
    const { signer } = this.#options;
    if (signer === undefined || signingKeyOf(signer) === undefined) return;
    for (const { line, bytes, given } of all) {
      if (given.length > 0 || this.#ahead.has(bytes) || this.#signing?.has(bytes) === true) continue;
      if (this.#rules.has(line)) continue;
      this.#ahead.set(bytes, signEvent(bytes, signer).sig);
    }
  }

  /** The event's signatures, with the signer's own, if the ledger admits them. */
  admit({ line, bytes, given }: Prepared): readonly SignatureEntry[] {
    if (line.type !== 'genesis') this.#rules.assertBound(line);
    const signatures = this.#sign(line, bytes, given);
    if (line.type === 'key') this.#rules.assertNewKey(line.event());
    return signatures;
  }

  /**
   * {@link RecordMaker.admit} of an event that is not appended now. A key in this process signs whatever it is asked to; any other signer
   * is tried.
   */
  assertAdmits(prepared: Prepared): void {
    const { signer } = this.#options;
    const { line, bytes, given } = prepared;
    const isOther = line.type === 'key' || this.#rules.isByPasskey(given);
    if (signer === undefined || signingKeyOf(signer) === undefined || isOther)
      return void this.admit(prepared);
    if (line.type !== 'genesis') this.#rules.assertBound(line);
    const isNew = !given.some(({ keyid }) => keyid === signer.publicKey.keyid);
    this.#rules.check(line, bytes, given, isNew ? signer.publicKey : undefined);
  }

  /** The event's line at the tip, if it may go there. */
  makeLine(prepared: Prepared): MadeLine {
    this.#rules.assertLinked(prepared.line);
    const signatures = this.admit(prepared);
    this.#rules.assertFits(prepared.line);
    const { nextLink } = this.#running;
    return isPlain(prepared, signatures)
      ? toFastLine(prepared, signatures, nextLink)
      : toLine(prepared, signatures, nextLink);
  }

  makeGenesisLine(event: GenesisEvent): MadeLine {
    const { signer } = this.#options;
    const bytes = canonicalBytes(event);
    const signatures = signer === undefined ? [] : [signEvent(bytes, signer)];
    return toLine({ bytes, meta: undefined }, signatures, this.#running.tip);
  }

  makeCheckpointLine(
    occurredAt: string,
    principalId: string | undefined,
  ): { readonly event: CheckpointEvent; readonly line: MadeLine } {
    const { genesis, tip } = this.#running;
    const event = makeCheckpoint(tip, {
      origin: genesis.origin,
      principalId: principalId ?? genesis.principal_id,
      occurredAt,
      noteSigners: this.assertNoteSigners(),
      ledgerId: toDigestText(genesis.event_id.b64),
    });
    const bytes = canonicalBytes(event);
    const signatures = this.#sign(factsOfWritten(event as unknown as JsonObject, bytes), bytes, []);
    return { event, line: toLine({ bytes, meta: undefined }, signatures, tip) };
  }

  /** @throws NorthrootError without an entitled signer */
  assertNoteSigners(): readonly Signer[] {
    const { signer, noteSigners = signer === undefined ? [] : [signer] } = this.#options;
    if (noteSigners.length === 0)
      throw new NorthrootError('SIGNATURE_MISSING', 'a checkpoint must be signed, and there is no key', {
        hint: 'give a signer',
      });
    const now = nowOf(this.#options);
    for (const { publicKey } of noteSigners) this.#rules.assertCheckpointKey(publicKey, now);
    return [...new Map(noteSigners.map((each) => [each.publicKey.keyid, each])).values()];
  }

  #write(event: object): Written {
    const isWhole = Object.hasOwn(event, 'event_id') || Object.hasOwn(event, 'payload_digest');
    if (isWhole) return readWhole(completeWhole(event, LINE_ROOM));
    const { principalId } = this.#options;
    return readWhole(
      writeDraft(
        event,
        {
          occurredAt: nowOf(this.#options),
          principalId,
          ledgerId: this.#running.genesis.event_id.b64,
        },
        LINE_ROOM,
      ),
    );
  }

  /** Copies meta and signatures, so that later changes by the caller have no effect. */
  #readCompanions(
    entry: Entry,
    line: WellFormedLine,
  ): { meta: Entry['meta']; given: readonly SignatureEntry[] } {
    const { meta, signatures = [] } = entry;
    if (meta === undefined && entry.signatures === undefined) return { meta, given: NO_SIGNATURES };
    const prev = { alg: 'sha-256', b64: this.#running.nextLink.prev };
    const event = line.json();
    const [fault] = checkRecord({ event, ...(meta === undefined ? {} : { meta }), prev, seq: 0, signatures });
    if (fault !== undefined) throw new EventError([fault]);
    return { meta: meta && { ...meta }, given: signatures.map(({ keyid, sig }) => ({ keyid, sig })) };
  }

  #sign(
    line: WellFormedLine,
    bytes: Uint8Array,
    given: readonly SignatureEntry[],
  ): readonly SignatureEntry[] {
    const signer = this.#rules.isByPasskey(given) ? undefined : this.#options.signer;
    const isNew = signer !== undefined && !given.some(({ keyid }) => keyid === signer.publicKey.keyid);
    this.#rules.check(line, bytes, given, isNew ? signer.publicKey : undefined);
    if (!isNew) return given;
    const sig = this.#ahead.get(bytes) ?? this.#signing?.take(bytes);
    this.#ahead.delete(bytes);
    const { keyid } = signer.publicKey;
    return [...given, sig === undefined ? signEvent(bytes, signer) : { keyid, sig }];
  }
}

const NO_SIGNATURES: readonly SignatureEntry[] = [];

/** @throws EventError for an invalid event */
function readWhole(complete: CompleteEvent): Written {
  const { bytes, whole, depth } = complete;
  const fast = scanFastEvent(whole);
  if (fast !== undefined) return { line: fast.line, bytes, depth, fast };
  return {
    line: factsOfWritten(readWritten(complete) as object as JsonObject, bytes),
    bytes,
    depth,
    fast,
  };
}

function factsOfWritten(event: JsonObject, bytes: Uint8Array): WellFormedLine {
  const around = { seq: 0, prev: '', signatures: NO_SIGNATURES };
  return examineMade(event, spanOf(bytes), around);
}

function spanOf(bytes: Uint8Array): Span {
  return { start: EVENT_START, end: EVENT_START + bytes.length };
}

/** Canonical base64url of 32 and 64 bytes: every keyid, and every signature of a record. */
const KEYID = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;
const SIGNATURE = /^[A-Za-z0-9_-]{85}[AQgw]$/;

/** Whether only the record's length remains to be checked. */
function isPlain({ meta, depth, given }: Prepared, signatures: readonly SignatureEntry[]): boolean {
  if (meta !== undefined || given.length > 0) return false;
  // The record adds a container.
  if (depth === undefined || depth >= MAX_DEPTH) return false;
  return signatures.every(({ keyid, sig }) => KEYID.test(keyid) && SIGNATURE.test(sig));
}

function toFastLine(
  { line, fast, bytes: eventBytes }: Prepared,
  signatures: readonly SignatureEntry[],
  { prev, seq }: NextLink,
): MadeLine {
  const placed = fast && placeFastEvent(fast, prev, seq, signatures[0]);
  if (placed !== undefined) return { ...placed, fast };
  const bytes = formatWithin({ bytes: eventBytes, meta: undefined }, signatures, prev, seq);
  const json = line.json() as JsonObject;
  return { bytes, examined: examineMade(json, spanOf(eventBytes), { seq, prev, signatures }) };
}

/** The generic line of a record, checked. */
function toLine(
  parts: Pick<Prepared, 'bytes' | 'meta'>,
  signatures: readonly SignatureEntry[],
  { prev, seq }: NextLink,
): MadeLine {
  const bytes = formatWithin(parts, signatures, prev, seq);
  const examined = examineLine(bytes.subarray(0, -1), 'records');
  const [fault] = examined.faults;
  // Lines without faults are well-formed.
  if (fault === undefined) return { bytes, examined: examined as WellFormedLine };
  const { code, pointer, expected, actual } = fault;
  if (code === 'SCHEMA') throw new EventError([{ code, pointer, expected, actual }]);
  throw new NorthrootError(code, `the record at ${pointer}: expected ${expected}, found ${actual}`);
}

function formatWithin(
  { bytes: event, meta }: Pick<Prepared, 'bytes' | 'meta'>,
  signatures: readonly SignatureEntry[],
  prev: string,
  seq: number,
): Uint8Array {
  const bytes = formatRecordAround(event, { meta, signatures, prev, seq });
  if (bytes.length - 1 <= MAX_LINE_BYTES) return bytes;
  const message = `the record has ${bytes.length - 1} bytes, more than ${MAX_LINE_BYTES}`;
  throw new NorthrootError('LINE_TOO_LONG', message, {
    hint: 'refer to large content by its digest',
  });
}
