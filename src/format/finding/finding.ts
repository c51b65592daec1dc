/**
 * A finding: one thing that verification found, as data (SPEC §8). The words for it are in `words.ts`, what its code
 * means in `catalog.ts`.
 */

import type { FindingClass, FindingCode, Severity } from './catalog.js';

/** Where a finding is. Offsets and lengths are in bytes and count within `file`; lines count from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly byteOffset: number;
  readonly byteLength: number;
  /** RFC 6901 pointer from the root of the line's JSON. */
  readonly pointer?: string;
}

/** Another record that a finding is about. */
export interface RelatedRecord {
  readonly file: string;
  readonly line: number;
  readonly seq: number;
  readonly eventId: string;
}

/** What a finding's event is about, as the event says: for choosing which findings to show, and for naming it. */
export interface FindingContext {
  principalId?: string;
  occurredAt?: string;
  /** Of an execution or an action. */
  toolName?: string;
  /** Of an execution, an action or a grant, where the event is of its form. */
  eventType?: 'authorization' | 'execution';
  /** What an execution used, an action reserves or a grant caps, as decimal text of a bounded length: `3 usd, 1 call`. */
  amounts?: string;
  /** The grants that the event was under, nearest first, as `sha-256:…`. */
  grantIds?: readonly string[];
}

/** One finding. `folded` counts further findings that have the same cause and are not listed; it may still grow while verification runs. */
export interface Finding {
  readonly code: FindingCode;
  readonly severity: Severity;
  readonly class: FindingClass;
  readonly at: Place;
  /** The record's `seq`, where it could be read. */
  readonly seq: number | undefined;
  /** The event's id as text (`sha-256:…`), where it could be read. */
  readonly eventId: string | undefined;
  readonly expected?: string;
  readonly actual?: string;
  readonly related?: readonly RelatedRecord[];
  readonly context: FindingContext;
  /**
   * The RFC 6962 leaf hash of the line as text, where the line has faults of its own: there an `eventId` is only claimed, and this
   * says what the finding is about.
   */
  readonly lineDigest?: string;
  folded?: number;
}

/** The ranks of findings, worst first. */
export const RANKS = ['invalid', 'violation', 'warning', 'info'] as const;

export type FindingRank = (typeof RANKS)[number];

/** Of an error what it does to the verdict, else how much it matters. */
export function rankOf({ severity, class: of }: Pick<Finding, 'severity' | 'class'>): FindingRank {
  // Errors have a class: the catalogue gives each one.
  return (severity === 'error' ? of : severity) as FindingRank;
}

/** The finding alone, without what folds under it. */
export function withoutFolded(finding: Finding): Finding {
  const copy = { ...finding };
  delete copy.folded;
  return copy;
}
