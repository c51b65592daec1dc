/** Findings of verification, as data (SPEC §8). Their words are in `words.ts`, the meaning of codes in `catalog.ts`. */

import type { FindingClass, FindingCode, Severity } from './catalog.js';

/** The place of a finding. Offsets and lengths are bytes within `file`; lines count from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly byteOffset: number;
  readonly byteLength: number;
  /** RFC 6901 pointer from the root of the line's JSON. */
  readonly pointer?: string;
}

export interface RelatedRecord {
  readonly file: string;
  readonly line: number;
  readonly seq: number;
  readonly eventId: string;
}

/** Facts of a finding's event, as claimed, for filtering and wording. */
export interface FindingContext {
  principalId?: string;
  occurredAt?: string;
  /** Of an execution or an action. */
  toolName?: string;
  /** Of a well-formed execution, action or grant. */
  eventType?: 'authorization' | 'execution';
  /** What an execution used, an action reserves or a grant caps, as bounded text: `3 usd, 1 call`. */
  amounts?: string;
  /** The event's grants, nearest first, as `sha-256:…`. */
  grantIds?: readonly string[];
}

/** `folded` counts further findings with the same cause, which are not listed; it may grow while verification runs. */
export interface Finding {
  readonly code: FindingCode;
  readonly severity: Severity;
  readonly class: FindingClass;
  readonly at: Place;
  /** Undefined if it could not be read. */
  readonly seq: number | undefined;
  /** `sha-256:…`; undefined if it could not be read. */
  readonly eventId: string | undefined;
  readonly expected?: string;
  readonly actual?: string;
  readonly related?: readonly RelatedRecord[];
  readonly context: FindingContext;
  /** The RFC 6962 leaf hash of a line with faults, as text: there `eventId` is only claimed. */
  readonly lineDigest?: string;
  folded?: number;
}

/** The ranks of findings, worst first. */
export const RANKS = ['invalid', 'violation', 'warning', 'info'] as const;

export type FindingRank = (typeof RANKS)[number];

/** The class of an error, otherwise the severity. */
export function rankOf({ severity, class: of }: Pick<Finding, 'severity' | 'class'>): FindingRank {
  // The catalogue gives each error a class.
  return (severity === 'error' ? of : severity) as FindingRank;
}

/** The finding without its `folded` count. */
export function withoutFolded(finding: Finding): Finding {
  const copy = { ...finding };
  delete copy.folded;
  return copy;
}
