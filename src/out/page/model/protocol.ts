/** What the page asks of the thread that verifies, and what that answers: plain data, and files. */

import type { FileFault } from '../../../base/fault.js';
import type { JsonObject } from '../../../base/json/value.js';
import type { FindingCode } from '../../../format/finding/catalog.js';
import type { ActivityReport, BundleResult, FindingJson } from '../../../format/schema/generated/types.js';
import type { Report } from '../../../rules/report/report.js';
import type { SourceGrowth, TileFaultCode } from '../../../rules/source/ledger-source.js';
import type { Role } from '../../../rules/trust/authority.js';
import type { EventVerdict } from '../../../rules/verify/line-result.js';

/** Bytes that can be read in parts; `Blob` and `File` are such. */
export interface Bytes {
  readonly size: number;
  slice(start: number, end: number): Bytes;
  arrayBuffer(): Promise<ArrayBuffer>;
  stream(): { getReader(): ByteReader };
}

/** Streams Standard. */
interface ByteReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  cancel(): Promise<void>;
}

/** A file of the ledger, and where its bytes begin in {@link Inputs.bytes}. */
interface InputSegment {
  readonly file: string;
  readonly firstSeq: number | undefined;
  readonly bytes: number;
}

/** Against what something is verified. */
export interface Against {
  /** The text of a trust policy. */
  readonly trust: Uint8Array | undefined;
  /** The text of a witness policy; or what was read of one, as JSON. */
  readonly witnessPolicy: Uint8Array | JsonObject | undefined;
  readonly checkpoints: readonly { readonly name: string; readonly note: Uint8Array }[];
  readonly now: string | undefined;
}

export interface BundleInputs extends Against {
  readonly name: string;
  readonly bundle: Bytes;
}

/** A ledger to be verified. */
export interface Inputs extends Against {
  readonly paths: readonly string[];
  /** The segments, concatenated. */
  readonly bytes: Bytes;
  /** Whether `bytes` are raw deflate. */
  readonly isCompressed: boolean;
  readonly segments: readonly InputSegment[];
  readonly predecessor: Bytes | undefined;
  readonly published: { readonly name: string; readonly note: Uint8Array } | undefined;
  readonly faults:
    | { readonly faults: readonly FileFault<TileFaultCode>[]; readonly total: number }
    | undefined;
  readonly growth: SourceGrowth | undefined;
  /** Whether the files were only guessed to be a ledger: other files are then refused. */
  readonly isGuess?: boolean;
}

/** What kind of event a record holds: an authorization is a grant or an action; any other type is `other`. */
export const KINDS = [
  'genesis',
  'grant',
  'action',
  'start',
  'execution',
  'approval',
  'revocation',
  'adjustment',
  'checkpoint',
  'attestation',
  'key',
  'other',
  'unreadable',
] as const;

/** The findings of executions that no earlier record authorized. */
export const UNAUTHORIZED: ReadonlySet<string> = new Set<FindingCode>([
  'AUTH_NOT_FOUND',
  'AUTH_NOT_AN_AUTHORIZATION',
  'AUTH_AFTER_EXECUTION',
  'EXECUTION_UNDER_DENY',
]);

export type Kind = (typeof KINDS)[number];

/** One record in a table or a tree. Texts are printable. */
export interface Row {
  /** Its place, counted from 0: what the page calls it by. */
  readonly ordinal: number;
  readonly kind: Kind;
  readonly type: string;
  readonly occurredAt: string;
  readonly principal: string;
  readonly tool: string;
  readonly what: string;
  readonly verdict: EventVerdict;
  readonly findings: number;
  /** Names of the keys whose signatures count. */
  readonly signers: readonly string[];
  /** How many records name it as what they are under. */
  readonly children: number;
  /** Of a bundle: it was not selected, and is there since selected records link to it. */
  readonly isLinked: boolean;
}

export interface RowQuery {
  readonly text: string;
  /** `''`: any kind but starts without findings; `any`: these too. */
  readonly kind: Kind | '' | 'any';
  readonly verdict: EventVerdict | 'refused' | '';
  readonly principal: string;
  readonly offset: number;
  readonly limit: number;
}

export interface Rows {
  readonly total: number;
  readonly rows: readonly Row[];
}

/** Of a grant: one capped unit. */
export interface GrantMeter {
  readonly unit: string;
  readonly cap: string;
  /** The most that one action may reserve or use. */
  readonly perAction: string | undefined;
  readonly used: string;
  readonly estimated: string | undefined;
  readonly reserved: string;
  readonly left: string;
  readonly isOver: boolean;
  /** Of the cap, for drawing: 1 is all of it. */
  readonly usedShare: number;
  readonly reservedShare: number;
  /** How much was left over time, for drawing: along the ledger's span of time, and of the cap. */
  readonly burnDown: readonly (readonly [x: number, left: number])[];
}

/** A grant with its accounts at the end of the ledger. */
export interface GrantView {
  readonly ordinal: number;
  readonly principal: string;
  readonly verdict: EventVerdict;
  readonly tools: readonly string[];
  readonly expiresAt: string | undefined;
  readonly signers: readonly string[];
  readonly executions: number;
  /** Why it is out of force at the end, and since which record: it or a grant above it is revoked or suspended. */
  readonly withdrawn: { readonly isRevoked: boolean; readonly ordinal: number } | undefined;
  /** Which calls need whose approval. */
  readonly approvalRules: readonly string[];
  readonly meters: readonly GrantMeter[];
  /** What one action may use at most of units that have no account here. */
  readonly otherActionCaps: readonly string[];
  /** Grants delegated from it: the first ones, and how many there are. */
  readonly delegated: readonly GrantView[];
  readonly delegatedTotal: number;
}

/** Grants that were not delegated. */
export interface Grants {
  readonly total: number;
  readonly grants: readonly GrantView[];
}

/** Something on the timeline. */
export interface Mark {
  readonly ordinal: number;
  readonly x: number;
}

/** The ledger's span of time, in equal parts. */
export interface Timeline {
  readonly from: string;
  readonly to: string;
  /** Whether places are by time; by order where all events are of one time. */
  readonly isByTime: boolean;
  readonly bins: readonly Readonly<Record<EventVerdict, number>>[];
  /** Of each kind the first ones. */
  readonly checkpoints: readonly Mark[];
  readonly refused: readonly Mark[];
  readonly violations: readonly Mark[];
  readonly invalid: readonly Mark[];
  /** Up to where a checkpoint by a known key covers the records; undefined: nowhere. */
  readonly sealedX: number | undefined;
  readonly sealedRecords: number;
  readonly unsealedRecords: number;
}

export interface Granter {
  /** The names of the keys; empty without a valid signature. */
  readonly signers: readonly string[];
  readonly grants: number;
  readonly delegated: number;
  readonly actions: number;
  readonly principals: readonly string[];
  /** Of the first of its records. */
  readonly ordinal: number;
}

/** What codes mean and what to do, by code. */
export type Remedies = Readonly<Record<string, { readonly title: string; readonly remedy: string }>>;

/** A record that withdraws a grant, and what still ran under it. */
export interface WithdrawalView {
  readonly row: Row;
  readonly grant: number | undefined;
  /** Executions under that grant that were recorded later, while it was withdrawn. */
  readonly ranLater: number;
  /** The first of them. */
  readonly ran: readonly number[];
}

export interface UsedApproval {
  readonly row: Row;
  readonly action: number | undefined;
}

/** Approvals and revocations: the first ones, and how many there are. */
export interface Oversight {
  readonly approvals: readonly UsedApproval[];
  readonly used: number;
  readonly given: number;
  /** Findings of calls without the approvals that they need, or beyond them. */
  readonly unapproved: number;
  /** Whether a grant asks for approvals. */
  readonly isAskedFor: boolean;
  readonly withdrawals: readonly WithdrawalView[];
  readonly withdrawalsTotal: number;
  /** Findings of what was done under a withdrawn grant against the rules. */
  readonly defied: number;
}

/** What verification gave, in whole. */
export interface Overview {
  readonly report: Report;
  /** Of each code that the report lists. */
  readonly remedies: Remedies;
  /** The quorum that the witness policy requires. */
  readonly quorum: string | undefined;
  readonly seconds: number;
  readonly bytes: number;
  readonly warnings: number;
  /** The activity report's sums, by principal. */
  readonly activity: Pick<ActivityReport, 'totals' | 'groups' | 'decisions'>;
  readonly kinds: Readonly<Record<Kind, number>>;
  /** The first executions that nothing authorized. */
  readonly unauthorized: readonly Row[];
  /** The first records that were refused or blocked. */
  readonly refused: readonly Row[];
  /** Grants whose own evidence is broken. */
  readonly brokenGrants: number;
  readonly granters: readonly Granter[];
  readonly principals: readonly string[];
  readonly timeline: Timeline;
  readonly grants: Grants;
  readonly oversight: Oversight;
}

/** What verification of a bundle gave, in whole. */
export interface BundleOverview extends Pick<Overview, 'remedies' | 'seconds' | 'kinds' | 'principals'> {
  readonly result: BundleResult;
  /** The first lines of contents that a record names, by digest (`sha-256:…`): of the first 50 of at most 1 MiB. */
  readonly contents: ReadonlyMap<string, { readonly lines: readonly string[]; readonly isCut: boolean }>;
}

/** What a unit of a grant was before and after a record. */
export interface MeterStep {
  readonly unit: string;
  readonly cap: string;
  readonly before: { readonly used: string; readonly reserved: string; readonly left: string };
  readonly after: { readonly used: string; readonly reserved: string; readonly left: string };
}

export interface SignatureView {
  readonly keyid: string;
  readonly name: string | undefined;
  readonly outcome: 'valid' | 'invalid' | 'unverified' | 'copy';
  readonly code: string | undefined;
  readonly roles: readonly string[];
}

/** Why a record has its verdict: all that is known of it. */
export interface Why {
  /** A ledger's record; or one of a bundle, which holds all records of its tree, or a selection. */
  readonly scope: 'ledger' | 'whole' | 'selection';
  readonly row: Row;
  /** An action that was allowed, and has no execution when the ledger ends. */
  readonly isOpen: boolean;
  readonly file: string;
  readonly line: number;
  readonly id: string | undefined;
  readonly findings: readonly FindingJson[];
  readonly remedies: Remedies;
  readonly signatures: readonly SignatureView[];
  /** What it says, in labelled texts. */
  readonly facts: readonly (readonly [label: string, text: string])[];
  /** What it names: an authorization, a grant, a checkpoint, the event that it follows. */
  readonly links: readonly { readonly label: string; readonly id: string; readonly row: Row | undefined }[];
  readonly grants: readonly { readonly row: Row; readonly meters: readonly MeterStep[] | undefined }[];
  readonly under: Rows;
  /** The line, indented. */
  readonly text: string;
}

export interface GranterKey {
  readonly keyid: string;
  readonly name: string | undefined;
  readonly roles: readonly Role[];
  /** Patterns of the principals that it may sign for: the first ones, and how many there are. */
  readonly principals: readonly string[];
  readonly principalsTotal: number;
  /** Whether the trust policy names it; else it is the ledger's own word. */
  readonly isPinned: boolean;
  readonly isRevoked: boolean;
}

/** A root of the tree: the signers, and how many records are directly under them. */
export interface GranterNode {
  readonly number: number;
  /** `unknown`: no known key signed; `nobody`: records that name no authorization that is here. */
  readonly kind: 'known' | 'unknown' | 'nobody';
  /** All of them signed. */
  readonly keys: readonly GranterKey[];
  readonly grants: number;
  readonly records: number;
}

/** Some of the tops of the tree, and how many there are. */
export interface GranterNodes {
  readonly total: number;
  readonly granters: readonly GranterNode[];
}

/** A part of the tree: what hangs below a record, or below a granter. */
export type Branch = { readonly offset: number } & ({ readonly of: number } | { readonly granter: number });

export interface Methods {
  verify(inputs: Inputs): Promise<Overview>;
  verifyBundle(inputs: BundleInputs): Promise<BundleOverview>;
  rows(query: RowQuery): Promise<Rows>;
  grants(at: { readonly offset: number }): Promise<Grants>;
  granters(at: { readonly offset: number }): Promise<GranterNodes>;
  branch(at: Branch): Promise<Rows>;
  why(at: { readonly ordinal: number }): Promise<Why | undefined>;
}

/** How far a verification is. */
export interface Progress {
  readonly bytes: number;
  readonly size: number;
}
