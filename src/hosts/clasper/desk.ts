/** What every part of the reading writes with: claims, each once; items; findings; times. */

import { encodeHex } from '../../base/bytes/encoding.js';
import { sha256 } from '../../base/bytes/sha256.js';
import type { JsonObject, JsonValue } from '../../base/json/value.js';
import type { Claim, EvidenceClaim, ForeignDigest, HostPlace, ItemFate } from '../shared/host.js';
import { principalOf, wellFormed } from '../shared/names.js';
import type { ReadingBuilder } from '../shared/reading.js';
import { amountOf } from '../shared/values.js';
import type { FindingDetails } from '../shared/findings.js';
import { type Code, finding } from './rules.js';
import type { Part } from './parts.js';

export const SYSTEM = 'clasper';
const MAX_FACT_LENGTH = 256;

/** Writes a reading, on one {@link ReadingBuilder}. */
export class Desk {
  readonly builder: ReadingBuilder;
  readonly #claims = new Map<string, HostPlace>();
  /** The last time that the host itself stated, by file. */
  readonly #clocks = new Map<string, string>();

  constructor(builder: ReadingBuilder) {
    this.builder = builder;
  }

  claim(claim: Claim): boolean {
    if (this.#claims.has(claim.id)) return false;
    this.#claims.set(claim.id, claim.at);
    this.builder.claim(claim);
    return true;
  }

  placeOf(id: string): HostPlace | undefined {
    return this.#claims.get(id);
  }

  item({ at }: Pick<Part, 'at'>, type: string, fate: ItemFate, reason?: string): void {
    this.builder.item({ at, type, fate, ...(reason === undefined ? {} : { reason }) });
  }

  /** Says that a claim rests on a part, unless it was made before. */
  mapped(part: Pick<Part, 'at'>, type: string, isNew: boolean): void {
    this.item(part, type, isNew ? 'mapped' : 'repeated', isNew ? undefined : 'ALREADY_READ');
  }

  /** An evidence event, and the fate of the part that it is all of. */
  evidence(
    part: Part,
    type: string,
    claim: Pick<EvidenceClaim, 'id' | 'occurredAt' | 'principalId'> & {
      readonly facts: Facts;
      readonly foreignDigests?: readonly ForeignDigest[];
    },
  ): void {
    const isNew = this.claim(evidenceOf(part, type, claim));
    this.item(part, type, isNew ? 'evidence' : 'repeated', isNew ? undefined : 'ALREADY_READ');
  }

  find(code: Code, at: HostPlace, details?: FindingDetails): void {
    this.builder.find(finding(code, at, details));
  }

  note(at: HostPlace, stated: string | undefined): string | undefined {
    if (stated === undefined) return undefined;
    this.#clocks.set(at.file, stated);
    return this.builder.timeOf(stated, at);
  }

  /** The last time that the host itself stated in this file. */
  clock(at: HostPlace): string | undefined {
    return this.#clocks.get(at.file);
  }

  /** The time of a part: as stated, else of what is before it, with a finding; undefined where there is none, and the part is dropped. */
  timeOf(
    { at }: Pick<Part, 'at'>,
    type: string,
    stated: string | undefined,
    about?: string,
  ): string | undefined {
    const time = stated === undefined ? this.builder.timeOf(undefined, at, about) : this.note(at, stated);
    if (time === undefined) this.builder.drop(at, type, 'TIME_NOT_STATED');
    return time;
  }
}

/** Facts of evidence: texts, truths and amounts; what is undefined is left out. */
export type Facts = Readonly<Record<string, JsonValue | undefined>>;

/** An evidence claim. */
export function evidenceOf(
  { at, bytes }: Pick<Part, 'at' | 'bytes'>,
  type: string,
  {
    facts,
    ...claim
  }: Pick<EvidenceClaim, 'id' | 'occurredAt' | 'principalId'> & {
    readonly facts: Facts;
    readonly foreignDigests?: readonly ForeignDigest[];
  },
): EvidenceClaim {
  return { kind: 'evidence', type, at, bytes, ...claim, facts: plainFacts(facts) };
}

function plainFacts(facts: Facts): JsonObject {
  const plain: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(facts)) if (value !== undefined) plain[name] = short(value);
  return plain;
}

function short(value: JsonValue): JsonValue {
  if (typeof value === 'string')
    return wellFormed(value)
      .slice(0, MAX_FACT_LENGTH)
      .replace(/\p{Surrogate}/gu, '\uFFFD');
  return Array.isArray(value) ? value.slice(0, 64).map(short) : value;
}

/** The amount of a number's text, as a fact. */
export function amountFact(text: string | undefined): JsonValue | undefined {
  return amountOf(text);
}

/** The first 16 hexadecimal digits of the SHA-256 of the bytes: what tells apart items that have no id. */
export function mark(bytes: Uint8Array): string {
  return encodeHex(sha256(bytes)).slice(0, 16);
}

/** An adapter, as whom its executions are recorded. */
export function adapterPrincipal(tenant: string, adapterId: string): string {
  return principalOf('agent', SYSTEM, tenant, adapterId);
}

/** The host itself, as whom its own records are kept. */
export function hostPrincipal(tenant: string): string {
  return principalOf('service', SYSTEM, tenant);
}
