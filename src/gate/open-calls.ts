/**
 * The calls that a gate has allowed and that are not settled, by principal and request key, each packed into a text of one byte per
 * character: there may be a hundred thousand. An unpacked call equals the one that was set.
 */

import type { Meter, MeterVector } from '../base/value/meter.js';
import { Names } from '../rules/verify/action-rows.js';
import { Reader, Writer } from '../rules/verify/packing.js';

export interface OpenCall {
  readonly ref: string;
  readonly session: string | undefined;
  readonly principal: string;
  readonly tool: string;
  readonly authorization: string;
  readonly start: string | undefined;
  readonly since: string;
  readonly expires: string | undefined;
}

/** An open call, with what its execution will say. */
export interface KeptCall extends OpenCall {
  readonly requestKey: string;
  /** `sha-256:…` */
  readonly paramsDigest: string;
  /** `sha-256:…` */
  readonly intentDigest: string;
  readonly reserved: MeterVector;
  /** Whole milliseconds of the monotonic clock at `since`, for how long it takes; undefined where another process allowed it. */
  readonly sinceTicks: number | undefined;
  /** Until when it is kept, in milliseconds of the monotonic clock; `Infinity`: until it is settled. */
  readonly keptUntil: number;
}

/** How id and session are had of a request key. */
const APART = 0;
const ID_ALONE = 1;
/** And the length of the session. */
const AFTER_SESSION = 2;

export class OpenCalls {
  readonly #packed = new Map<string, string>();
  readonly #names = new Names();
  readonly #writer = new Writer(this.#names);
  /** No call is kept until an earlier time. */
  #earliest = Infinity;

  get size(): number {
    return this.#packed.size;
  }

  has(principal: string, requestKey: string): boolean {
    return this.#packed.has(this.#keyOf(principal, requestKey));
  }

  get(principal: string, requestKey: string): KeptCall | undefined {
    const key = this.#keyOf(principal, requestKey);
    const packed = this.#packed.get(key);
    return packed === undefined ? undefined : this.#unpack(key, packed);
  }

  set(call: KeptCall): void {
    this.#packed.set(this.#keyOf(call.principal, call.requestKey), this.#pack(call));
    this.#earliest = Math.min(this.#earliest, call.keptUntil);
  }

  delete(principal: string, requestKey: string): void {
    this.#packed.delete(this.#keyOf(principal, requestKey));
  }

  /** In the order in which they were set. */
  *values(): Generator<KeptCall, void, void> {
    for (const [key, packed] of this.#packed) yield this.#unpack(key, packed);
  }

  /** Those that are kept no longer than that. Most times nothing is read for it. */
  listEnded(now: number): KeptCall[] {
    if (this.#earliest > now) return [];
    const ended: KeptCall[] = [];
    this.#earliest = Infinity;
    for (const [key, packed] of this.#packed) {
      const until = untilOf(packed);
      if (until <= now) ended.push(this.#unpack(key, packed));
      this.#earliest = Math.min(this.#earliest, until);
    }
    return ended;
  }

  #keyOf(principal: string, requestKey: string): string {
    const writer = this.#writer;
    writer.begin();
    writer.name(principal);
    writer.text(requestKey);
    return writer.end();
  }

  #pack(call: KeptCall): string {
    const { ref, session, requestKey, tool, keptUntil } = call;
    const writer = this.#writer;
    writer.begin();
    writer.number(keptUntil === Infinity ? 0 : 1 + Math.ceil(keptUntil));
    if (session === undefined && ref === requestKey) writer.number(ID_ALONE);
    else if (session !== undefined && `${session}:${ref}` === requestKey)
      writer.number(AFTER_SESSION + session.length);
    else {
      writer.number(APART);
      writer.text(ref);
      writer.number(session === undefined ? 0 : 1);
      if (session !== undefined) writer.text(session);
    }
    writer.name(tool);
    for (const digest of [call.authorization, call.start, call.paramsDigest, call.intentDigest])
      writer.digest(digest);
    writer.time(call.since);
    writer.number(call.sinceTicks === undefined ? 0 : 1 + call.sinceTicks);
    writer.time(call.expires);
    writer.number(call.reserved.length);
    for (const { unit, amount } of call.reserved) {
      writer.name(unit);
      writer.text(JSON.stringify(amount));
    }
    return writer.end();
  }

  #unpack(key: string, packed: string): KeptCall {
    const ofKey = Reader.of(this.#names, key);
    const [principal, requestKey] = [ofKey.name(), ofKey.text()];
    const reader = Reader.of(this.#names, packed);
    const until = reader.number();
    const keptUntil = until === 0 ? Infinity : until - 1;
    const { ref, session } = readId(reader, requestKey);
    const tool = reader.name();
    const [authorization = '', start, paramsDigest = '', intentDigest = ''] = [
      reader.digest(),
      reader.digest(),
      reader.digest(),
      reader.digest(),
    ];
    const [since = '', ticks, expires] = [reader.time(), reader.number(), reader.time()];
    const reserved = Array.from({ length: reader.number() }, () => ({
      unit: reader.name(),
      amount: JSON.parse(reader.text()) as Meter['amount'],
    }));
    return {
      ref,
      session,
      principal,
      requestKey,
      tool,
      authorization,
      start,
      paramsDigest,
      intentDigest,
      since,
      sinceTicks: ticks === 0 ? undefined : ticks - 1,
      expires,
      reserved,
      keptUntil,
    };
  }
}

function readId(reader: Reader, requestKey: string): Pick<OpenCall, 'ref' | 'session'> {
  const kind = reader.number();
  if (kind === ID_ALONE) return { ref: requestKey, session: undefined };
  if (kind === APART)
    return { ref: reader.text(), session: reader.number() === 0 ? undefined : reader.text() };
  const length = kind - AFTER_SESSION;
  return { ref: requestKey.slice(length + 1), session: requestKey.slice(0, length) };
}

/** What a packed call begins with. */
function untilOf(packed: string): number {
  let value = 0;
  let at = 0;
  for (let factor = 1; ; factor *= 0x80) {
    const byte = packed.charCodeAt(at++);
    value += (byte % 0x80) * factor;
    if (byte < 0x80) return value === 0 ? Infinity : value - 1;
  }
}
