/** What everybody was told, and what was done, in the order of time: what the invariants are held against. */

import { formatQuantity } from '../src/base/value/quantity.js';
import type { Report } from '../src/rules/report/report.js';

/** A record that somebody was told is in the ledger. */
export interface Acknowledged {
  readonly ms: number;
  /** The program that was told: `NAME.LIFE`. */
  readonly by: string;
  /** `sha-256:…` */
  readonly eventId: string;
  readonly seq?: number | undefined;
  /** Whether the server had ever stored it by then. */
  readonly isStored: boolean;
  /** Whether it is one of those that its program asked for in the order of these. */
  readonly isInOrder?: boolean | undefined;
}

/** An answer of a gate. */
export interface Answer {
  readonly ms: number;
  readonly askedMs: number;
  readonly by: string;
  /** The call that was asked about. */
  readonly ref: string;
  readonly effect: string;
  readonly code: string;
  readonly authorization: string;
  readonly isRepeated: boolean;
}

/** Something that was really done. */
export interface Run {
  readonly ref: string;
  readonly authorization: string;
  readonly begunMs: number;
  endedMs: number;
}

/** A promise that a program gave. */
export interface Asked {
  readonly by: string;
  readonly what: string;
  settled: number;
}

/** A revocation of a grant, and when that was acknowledged. */
export interface Stop {
  readonly ms: number;
  readonly eventId: string;
  readonly grantId: string;
  readonly effect: 'suspend' | 'revoke' | 'resume';
}

/** A record as any program reads it. */
export interface Line {
  readonly seq: number;
  readonly prev: { readonly b64: string };
  readonly event: Event;
}

export interface Event {
  readonly event_id: { readonly b64: string };
  readonly event_type: string;
  readonly occurred_at: string;
  readonly decision?: string;
  readonly outcome?: string;
  readonly error_code?: string;
  readonly effect?: string;
  readonly in_flight?: string;
  readonly auth_event_id?: { readonly b64: string };
  readonly grant_event_id?: { readonly b64: string };
  readonly prev_event_id?: { readonly b64: string };
  readonly meter_used?: readonly Amount[];
  readonly started_at?: string;
  readonly ended_at?: string;
  readonly authorization?: {
    readonly kind: string;
    readonly grant_event_id?: { readonly b64: string };
    readonly action?: {
      readonly request_key?: string;
      readonly approval_event_ids?: readonly { readonly b64: string }[];
      readonly meter_reservation?: readonly Amount[];
    };
  };
}

export interface Amount {
  readonly unit: string;
  readonly amount: { readonly t: string; readonly v?: string; readonly m?: string; readonly s?: number };
}

/** What one seed led to. */
export interface History {
  readonly acknowledged: Acknowledged[];
  readonly answers: Answer[];
  readonly runs: Run[];
  readonly asked: Asked[];
  readonly stops: Stop[];
  /** Who was told LEDGER_ROLLED_BACK: `NAME.LIFE`, and whoever of that machine was asked at the end. */
  readonly told: Set<string>;
  /** What failed in a way that nothing explains. */
  readonly surprises: string[];
  /** The bounds of the grants. */
  readonly grants: readonly Bounds[];
  /** The last lines, and what the verifier says of them. */
  lines: readonly Line[];
  /** The leaf hash of each, base64url. */
  hashes: readonly string[];
  report: Pick<Report, 'findings'> | undefined;
  /** What who decides says of each grant, with open starts as reserved: `undefined` where nobody could be asked. */
  live: Accounts | undefined;
  /** What the report says of them. */
  reported: Accounts | undefined;
}

/** Of a grant, each for it and all below it; absent: unbounded. */
export interface Bounds {
  readonly grantId: string;
  readonly calls?: number;
  readonly concurrency?: number;
  readonly perMinute?: number;
}

/** By the grant's id, as in {@link Bounds}. */
export type Accounts = ReadonlyMap<string, Account>;

/** Of calls. */
export interface Account {
  readonly used: number;
  readonly reserved: number;
}

/** The account of calls of one grant, as a budget or a report gives it. */
export function accountsOf(
  grantId: string,
  balances: readonly { readonly unit: string; readonly used: unknown; readonly reserved: unknown }[],
): Accounts {
  const found = balances.find(({ unit }) => unit === 'calls');
  const toNumber = (quantity: unknown): number => Number(formatQuantity(quantity as never));
  return new Map(found && [[grantId, { used: toNumber(found.used), reserved: toNumber(found.reserved) }]]);
}

export function emptyHistory(): History {
  return {
    acknowledged: [],
    answers: [],
    runs: [],
    asked: [],
    stops: [],
    told: new Set(),
    surprises: [],
    grants: [],
    lines: [],
    hashes: [],
    report: undefined,
    live: undefined,
    reported: undefined,
  };
}
