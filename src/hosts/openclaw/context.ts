/** What the readers of all of OpenClaw's sources share: fates, evidence, who and when, and the sessions that they learn of. */

import { encodeHex } from '../../base/bytes/encoding.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import type { SourceValue } from '../../base/json/source-json.js';
import type { JsonObject } from '../../base/json/value.js';
import { type Digest, toDigestText } from '../../base/value/digest.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { FindingDetails } from '../shared/findings.js';
import type { Claim, HostPlace, ItemFate } from '../shared/host.js';
import { principalOf, wellFormed } from '../shared/names.js';
import type { ReadingBuilder } from '../shared/reading.js';
import { jcsDigest, textAt } from '../shared/values.js';
import type { Entry } from './entries.js';
import { type Code, finding } from './rules.js';

/** {@link Host.name} */
export const SYSTEM = 'openclaw';

/** What an aid says of how to read. */
export interface Profile {
  /** What a command that ended with another status than 0 is. The host calls it no error. */
  readonly nonzeroExit: 'failure' | 'success';
}

/** What claims of one item have in common. */
export type ClaimBase = Pick<Claim, 'at' | 'bytes' | 'occurredAt' | 'principalId'>;

export interface HookCall {
  readonly entry: Entry;
  readonly base: ClaimBase;
  readonly hook: string;
  readonly event: SourceValue;
  /** What the hook was told beside the event. */
  readonly ctx: SourceValue | undefined;
  readonly returned: SourceValue | undefined;
  readonly scope: string;
  readonly runId: string | undefined;
  readonly callId: string | undefined;
}

/** A text of the event, else of what the hook was told beside it. */
export function hookText({ event, ctx }: Pick<HookCall, 'event' | 'ctx'>, name: string): string | undefined {
  return textAt(event, name) ?? textAt(ctx, name);
}

export class Context {
  readonly builder: ReadingBuilder;
  readonly profile: Profile;
  /** The session that a key stood for last: a key outlives its sessions. */
  readonly #sessions = new Map<string, string>();
  /** The first session that recordings state for a key: of what stands before, where a recording begins in the middle of one. */
  readonly #firstSessions = new Map<string, string>();
  readonly #agents = new Map<string, string>();
  readonly #ids = new Set<string>();
  readonly #counts = new Map<string, number>();
  readonly #lastTimes = new Map<string, string>();

  constructor(builder: ReadingBuilder, profile: Profile) {
    this.builder = builder;
    this.profile = profile;
  }

  /** Remembers the session that is stated first for each key, before anything is read. */
  foresee(...values: readonly (SourceValue | undefined)[]): void {
    for (const value of values) {
      const [key, session] = [textAt(value, 'sessionKey'), textAt(value, 'sessionId')];
      if (key !== undefined && session !== undefined && !this.#firstSessions.has(key))
        this.#firstSessions.set(key, session);
    }
  }

  /** Remembers which session and agent a session key stands for. */
  learn(...values: readonly (SourceValue | undefined)[]): void {
    for (const value of values) {
      const key = textAt(value, 'sessionKey');
      if (key === undefined) continue;
      const session = textAt(value, 'sessionId');
      const agent = textAt(value, 'agentId');
      if (session !== undefined) this.#sessions.set(key, session);
      if (agent !== undefined) this.#agents.set(key, agent);
    }
  }

  /** The session of an item; else its run, else its session key: the first that is stated. */
  scopeOf(...values: readonly (SourceValue | undefined)[]): string {
    const keys = values.map((value) => textAt(value, 'sessionKey')).filter((key) => key !== undefined);
    const sessions = [
      ...values.map((value) => textAt(value, 'sessionId')),
      ...keys.map((key) => this.#sessions.get(key) ?? this.#firstSessions.get(key)),
      ...values.map((value) => textAt(value, 'runId')),
      ...keys,
    ];
    return sessions.find((session) => session !== undefined && session !== '') ?? '~';
  }

  /** The agent that the item names, or its session key; else the host itself. */
  principalOf(...values: readonly (SourceValue | undefined)[]): string {
    for (const value of values) {
      const agent = textAt(value, 'agentId');
      if (agent !== undefined) return principalOf('agent', SYSTEM, agent);
    }
    for (const value of values) {
      const key = textAt(value, 'sessionKey');
      if (key === undefined) continue;
      const agent = this.#agents.get(key) ?? /^agent:([^:]+):/.exec(key)?.[1];
      if (agent !== undefined) return principalOf('agent', SYSTEM, agent);
    }
    return principalOf('service', SYSTEM);
  }

  /** What claims of the item have in common; undefined where nothing says when it was: then it is dropped. */
  base(entry: Entry, time: string | undefined, principalId: string): ClaimBase | undefined {
    const { at, bytes } = entry;
    const occurredAt = this.builder.timeOf(time, at);
    if (occurredAt === undefined) {
      this.builder.drop(at, entry.type, 'TIME_NOT_STATED');
      return undefined;
    }
    return { at, bytes, occurredAt, principalId };
  }

  /** OC-13: of recordings that are written as things happen. */
  checkTime(entry: Entry, time: string | undefined): void {
    if (time === undefined) return;
    const last = this.#lastTimes.get(entry.at.file);
    if (last !== undefined && compareTimestamps(time, last) < 0)
      this.find('TIME_REGRESSION', entry.at, { expected: `not before ${last}`, actual: time });
    else this.#lastTimes.set(entry.at.file, time);
  }

  fate(entry: Pick<Entry, 'at' | 'type'>, fate: ItemFate, reason?: string): void {
    this.builder.item({ at: entry.at, type: entry.type, fate, reason });
  }

  /** Keeps the item as evidence; one with an id that was kept before is repeated. */
  evidence(
    entry: Entry,
    base: ClaimBase,
    id: string,
    type: string,
    facts: JsonObject,
    sameAs?: readonly string[],
  ): void {
    if (this.#ids.has(id)) {
      this.fate(entry, 'repeated', 'SAME_ITEM');
      return;
    }
    this.#ids.add(id);
    this.builder.claim({ ...base, kind: 'evidence', id, type, facts, sameAs });
    this.fate(entry, 'evidence');
  }

  /** `id`, or with `#2`, `#3` … after it where it was given before: as often as the host used it for something else. */
  uniqueId(id: string): string {
    const count = (this.#counts.get(id) ?? 0) + 1;
    this.#counts.set(id, count);
    return count === 1 ? id : `${id}#${count}`;
  }

  find(code: Code, at: HostPlace, details?: FindingDetails): void {
    this.builder.find(finding(code, at, details));
  }
}

/** The members that are stated, as an extension event holds them. */
export function factsOf(members: Readonly<Record<string, string | Digest | undefined>>): JsonObject {
  const facts: Record<string, string> = {};
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    facts[name] = typeof value === 'string' ? cut(wellFormed(value)) : toDigestText(value.b64);
  }
  return facts;
}

const MAX_FACT = 256;

function cut(text: string): string {
  return text.length <= MAX_FACT ? text : wellFormed(`${text.slice(0, MAX_FACT)}…`);
}

/** A digest of the value, for ids: the beginning of that of its canonical form, else of the item's bytes. */
export function shortDigest(value: SourceValue | undefined, bytes: Uint8Array): string {
  const digest = jcsDigest(value);
  return digest === undefined ? hexOf(bytes).slice(0, 32) : digest.b64.slice(0, 22);
}

/** The SHA-256 of bytes or a text, in lower-case hexadecimal digits. */
export function hexOf(content: Uint8Array | string): string {
  return encodeHex(sha256(typeof content === 'string' ? encodeUtf8(wellFormed(content)) : content));
}
