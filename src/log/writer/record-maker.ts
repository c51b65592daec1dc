/** Makes records: completes what is given, signs it, and puts it in its place, where the rules let it stand. */

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
import type { NextLink } from './chain-tip.js';
import { makeCheckpoint } from './checkpoint.js';
import { type Entry, nowOf, type OpeningOptions } from './options.js';
import type { MadeLine, RunningVerification } from './running-verification.js';
import type { SigningThreads } from './signing-threads.js';

/** An entry that is complete, and of the right form. */
export interface Prepared extends Written {
  readonly meta: Entry['meta'];
  /** The signatures that it brings. */
  readonly given: readonly SignatureEntry[];
  readonly isAnew: boolean;
  readonly refusesExisting: boolean;
  /** When it was given: the time of a checkpoint that becomes due by it. */
  readonly givenAt: string;
}

/** An event that is complete. */
interface Written {
  /** What its line will say, but for its place and its signatures. */
  readonly line: WellFormedLine;
  /** Its canonical bytes: this array is what it is signed ahead by. */
  readonly bytes: Uint8Array;
  /** See `CompleteEvent`. */
  readonly depth: number | undefined;
  /** The line that is made around it, where it is a scannable one. */
  readonly fast: FastEvent | undefined;
}

/** See the head of this file. */
export class RecordMaker {
  readonly #options: OpeningOptions;
  readonly #running: RunningVerification;
  readonly #rules: AdmissionRules;
  readonly #signing: SigningThreads | undefined;
  /** See {@link RecordMaker.signAhead}. */
  readonly #ahead = new WeakMap<Uint8Array, string>();

  /** @param signing - Has signed some of the events ahead. */
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
   * Completes and checks what is given, as far as its place does not matter.
   *
   * @throws EventError, TypeError, NorthrootError `GENESIS_MISPLACED`
   */
  prepare(entry: Entry): Prepared {
    // As it is now: what its owner does with it before it is written is no matter.
    const written = this.#write(entry.event);
    const { line, bytes, depth, fast } = written;
    if (line.type === 'genesis' && line.eventId !== this.#running.genesis.event_id.b64) {
      throw new NorthrootError(
        'GENESIS_MISPLACED',
        'only the first record of a ledger may be a genesis event',
      );
    }
    const { meta, given } = this.#readCompanions(entry, line);
    const isAnew = entry.isAnew === true;
    const refusesExisting = entry.refusesExisting === true;
    return { line, bytes, depth, fast, meta, given, isAnew, refusesExisting, givenAt: nowOf(this.#options) };
  }

  /** Of an event that has to be a record of its own: another that follows those that are there. */
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
   * Signs events that are about to be written, one right after the other: what signing needs is then still in the caches of the processor.
   * Only for a signer that holds its key in memory, and of those that the ledger does not have: a signature may turn out not to be needed.
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

  /** The signatures that a new event goes in with, its signer's among them, when they are such as the ledger demands. */
  admit({ line, bytes, given }: Prepared): readonly SignatureEntry[] {
    if (line.type !== 'genesis') this.#rules.assertBound(line);
    const signatures = this.#sign(line, bytes, given);
    if (line.type === 'key') this.#rules.assertNewKey(line.event());
    return signatures;
  }

  /** The line of an event in its place, when it may stand there. */
  makeLine(prepared: Prepared): MadeLine {
    this.#rules.assertLinked(prepared.line);
    const signatures = this.admit(prepared);
    this.#rules.assertFits(prepared.line);
    const { nextLink } = this.#running;
    return isUsual(prepared, signatures)
      ? toFastLine(prepared, signatures, nextLink)
      : toLine(prepared, signatures, nextLink);
  }

  /** The first line of a ledger. */
  makeGenesisLine(event: GenesisEvent): MadeLine {
    const { signer } = this.#options;
    const bytes = canonicalBytes(event);
    const signatures = signer === undefined ? [] : [signEvent(bytes, signer)];
    return toLine({ bytes, meta: undefined }, signatures, this.#running.tip);
  }

  /** The checkpoint of what stands before the tip. */
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

  /** Those who sign the notes of checkpoints. @throws NorthrootError where there is none, or one that may not. */
  assertNoteSigners(): readonly Signer[] {
    const { signer, noteSigners = signer === undefined ? [] : [signer] } = this.#options;
    if (noteSigners.length === 0) {
      throw new NorthrootError('SIGNATURE_MISSING', 'a checkpoint must be signed, and there is no key', {
        hint: 'give a signer',
      });
    }
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

  /** The meta and the signatures that an entry brings, as they are now: what its owner does with them later is no matter. */
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
    const { signer } = this.#options;
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

/** @throws EventError when its shape or its values are not valid. */
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

/** What an event that was completed and checked says. */
function factsOfWritten(event: JsonObject, bytes: Uint8Array): WellFormedLine {
  const around = { seq: 0, prev: '', signatures: NO_SIGNATURES };
  return examineMade(event, spanOf(bytes), around);
}

function spanOf(bytes: Uint8Array): Span {
  return { start: EVENT_START, end: EVENT_START + bytes.length };
}

/** Canonical base64url of 32 and of 64 bytes: what a keyid and a signature are by all keys that sign records. */
const KEYID = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;
const SIGNATURE = /^[A-Za-z0-9_-]{85}[AQgw]$/;

/** Whether nothing can be wrong with the record's form that was not asked when its event was completed: its length alone. */
function isUsual({ meta, depth, given }: Prepared, signatures: readonly SignatureEntry[]): boolean {
  if (meta !== undefined || given.length > 0) return false;
  // The record is one container more.
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

/** The line of a record at the tip, when it is of the right form. */
function toLine(
  parts: Pick<Prepared, 'bytes' | 'meta'>,
  signatures: readonly SignatureEntry[],
  { prev, seq }: NextLink,
): MadeLine {
  const bytes = formatWithin(parts, signatures, prev, seq);
  const examined = examineLine(bytes.subarray(0, -1), 'records');
  const [fault] = examined.faults;
  // What has no fault is well-formed.
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
