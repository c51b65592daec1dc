/**
 * What every host has in common: its files go in, and what they claim comes out, item by item, with what its rules find. A host is a
 * reader and nothing else: it opens no file, writes no event and knows no ledger. `claims.ts` makes events of what it gives, and
 * `import.ts` brings them into a ledger.
 */

import type { SourceValue } from '../../base/json/source-json.js';
import type { JsonObject } from '../../base/json/value.js';
import type { Digest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import type { Bounds, Check } from '../../format/schema/generated/types.js';

export interface HostFile {
  /** As the user named it; `stdin`. Of a member of an archive the archive's name, `!` and its path. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface HostPlace {
  /** {@link HostFile.name} */
  readonly file: string;
  /** From 1, in files of lines. */
  readonly line?: number | undefined;
  /** RFC 6901, within the line or the file. */
  readonly pointer?: string | undefined;
}

/** A rule that a host's own documents state, or that follows from them. */
export interface HostRule {
  /** `CGF-2`. */
  readonly id: string;
  /** What must hold, as one sentence. */
  readonly statement: string;
  /** Why the host's files do not decide it; absent where they do. */
  readonly undecidable?: string;
}

/** As the findings of a ledger (SPEC §8): broken or missing evidence; intact evidence of something not allowed; neither. */
export type HostFindingClass = 'invalid' | 'violation' | 'none';

export interface HostFinding {
  /** {@link HostRule.id}; `INPUT` for what no rule of the host is about: text that is not JSON, a member that is missing. */
  readonly rule: string;
  /** What was found: a Code, `EXECUTED_AFTER_BLOCK`. */
  readonly code: string;
  readonly severity: 'error' | 'warning' | 'info';
  readonly class: HostFindingClass;
  readonly at: HostPlace;
  /** The host's own id of what is concerned: a proposal, a call. */
  readonly about?: string | undefined;
  /** What these files alone do not state of `about`: where a ledger does, they are not broken for it (`reconcile`). */
  readonly lacks?: 'decision' | undefined;
  /** In a few words. */
  readonly expected?: string | undefined;
  readonly actual?: string | undefined;
  readonly related?: readonly HostPlace[] | undefined;
}

/** What became of one item of the input. `mapped`: claims other than evidence rest on it; `repeated`: the host wrote it more than once. */
export type ItemFate = 'mapped' | 'evidence' | 'repeated' | 'dropped';

/** One item of the input: a line, a request with its response, a member of an array. */
export interface HostItem {
  readonly at: HostPlace;
  /** The host's own name of what it is: `decision_made`; `unknown`. */
  readonly type: string;
  readonly fate: ItemFate;
  /** Why it was dropped, or what it repeats: a Code. */
  readonly reason?: string | undefined;
}

/** A digest that the host's own files state or imply, in the host's own form. */
export interface ForeignDigest {
  /** Of what: `action_params`, `payload`. */
  readonly of: string;
  /** The canonical form that it is taken over: `clasper-stable-v1`; `not-verifiable` where it is unknown. */
  readonly form: string;
  /** As the host wrote it. */
  readonly stated: string;
  /** Whether it was computed again: `match`, `mismatch`, or `not_computed` where the content is not in the files. */
  readonly check: 'match' | 'mismatch' | 'not_computed';
}

interface ClaimBase {
  /** Names the claim among all of its system, the same whenever the same item is read: `decision:dec-206afa97cab0`. Becomes `source.id`. */
  readonly id: string;
  /** Where the item stands that it rests on. */
  readonly at: HostPlace;
  /** The item's own bytes: of a line without its line feed. Their SHA-256 becomes `source.digest`. */
  readonly bytes: Uint8Array;
  /** When, as the source states it: a Timestamp. */
  readonly occurredAt: string;
  /** Who: a PrincipalID, as `principalOf` makes it. */
  readonly principalId: string;
  /** Kept beside northroot's own digests, in an evidence event of its own. */
  readonly foreignDigests?: readonly ForeignDigest[] | undefined;
  /**
   * Ids of the claims that other sources of the host make of the same thing. Where a ledger has one of them from an earlier import,
   * nothing is added: what stands there stands.
   */
  readonly sameAs?: readonly string[] | undefined;
}

interface AuthorizationClaim extends ClaimBase {
  readonly decision: 'allow' | 'deny';
  readonly decisionCode: string;
  /** 1..256 characters; where the source states none, leave both out. */
  readonly policyId?: string | undefined;
  readonly policyDigest?: Digest | undefined;
  /** Where the source states none, leave it out. */
  readonly intentDigest?: Digest | undefined;
  readonly checks?: readonly Check[] | undefined;
  /** {@link ClaimBase.id} of the grant that it is under. */
  readonly grant?: string | undefined;
}

/** A grant: bounds within which several actions may follow. */
export interface GrantClaim extends AuthorizationClaim {
  readonly kind: 'grant';
  /** Required where the decision is allow. */
  readonly bounds?: Bounds | undefined;
}

export interface ActionClaim extends AuthorizationClaim {
  readonly kind: 'action';
  /** The host's own name; any text of at least one character. */
  readonly tool: string;
  /** Of the parameters that may run; where the source states neither them nor a digest, leave it out. */
  readonly paramsDigest?: Digest | undefined;
  /** Besides the one call that any action authorizes. */
  readonly reservation?: MeterVector | undefined;
}

export interface ExecutionClaim extends ClaimBase {
  readonly kind: 'execution';
  /** {@link ClaimBase.id} of what authorizes it. Where the source states none, leave it out: the ledger then shows AUTH_NOT_FOUND. */
  readonly authorization?: string | undefined;
  readonly intentDigest?: Digest | undefined;
  readonly tool: string;
  readonly paramsDigest?: Digest | undefined;
  /** As stated; never computed from a duration. */
  readonly startedAt?: string | undefined;
  readonly endedAt?: string | undefined;
  readonly meters: MeterVector;
  readonly meterBasis?: 'measured' | 'reported' | 'estimated' | 'billed' | undefined;
  readonly outcome: 'success' | 'failure' | 'unknown';
  /** Code; on failure `FAILED` where it is left out. */
  readonly errorCode?: string | undefined;
  readonly outputDigest?: Digest | undefined;
  readonly resources?: readonly { readonly kind: string; readonly reference: string }[] | undefined;
  readonly modelId?: string | undefined;
  readonly provider?: string | undefined;
}

/** What is neither, and is kept as an extension event `x.<system>.<type>`. */
export interface EvidenceClaim extends ClaimBase {
  readonly kind: 'evidence';
  /** `adapter_registered`: letters, digits, `_`, `.` and `-`. */
  readonly type: string;
  /** What is kept of it: canonical JSON without contents, secrets and tokens; small. Quantities, not numbers. */
  readonly facts: JsonObject;
}

/** What an item of a host's files says happened. */
export type Claim = GrantClaim | ActionClaim | ExecutionClaim | EvidenceClaim;

/** One call as a host's files show it, for `reconcile`: whatever the host calls it by. */
export interface Observation {
  readonly at: HostPlace;
  /** Every id that the host's files give the call. */
  readonly callIds: readonly string[];
  readonly tool?: string | undefined;
  readonly paramsDigest?: Digest | undefined;
  /** What the files say was decided; absent where they say nothing. */
  readonly decision?: 'allow' | 'deny' | undefined;
  /** What the files say was done; absent where they say nothing. */
  readonly outcome?: 'success' | 'failure' | 'unknown' | undefined;
  readonly meters: MeterVector;
  /** A Timestamp; absent where the files state none. */
  readonly occurredAt?: string | undefined;
  /** Of the item that says that this one was wrong. What this one says stays. */
  readonly correctedAt?: HostPlace | undefined;
}

/**
 * Usage that an item states and that neither an observation nor an execution has: it would count twice, or it is unknown what it belongs to.
 * It is left out of every sum, and reported.
 */
export interface LeftOut {
  readonly at: HostPlace;
  /** Why: a Code, as that of the finding that reports it. */
  readonly reason: string;
  /** At least one amount. */
  readonly meters: MeterVector;
}

export interface HostReading {
  /** Every item of every file, in order; none is left out. */
  readonly items: readonly HostItem[];
  /** In the order in which they are to be recorded: what authorizes before what is authorized. */
  readonly claims: readonly Claim[];
  readonly observations: readonly Observation[];
  /** In the order of the files. */
  readonly findings: readonly HostFinding[];
  /** Usage that is counted nowhere. Absent: none. */
  readonly leftOut?: readonly LeftOut[] | undefined;
  /** Of hosts that have receipts: how they stand. */
  readonly receipts?: ReceiptCounts | undefined;
}

/** How the signed receipts of a host stand, by the rules of their own format. They add up to all of them, repeated ones once. */
export interface ReceiptCounts {
  /** Signed by a key that was given, or that is the issuer's name. */
  readonly verified: number;
  /** Signed by a key that only the receipt itself states. */
  readonly ownKey: number;
  /** Not checked. */
  readonly unverified: number;
  readonly broken: number;
}

/** What may be said beside the files. */
export interface HostOptions {
  /** When items happened that state no time, where nothing before them in their file does: a Timestamp. Without it they are dropped. */
  readonly occurredAt?: string | undefined;
  /** Files that are not traffic, by what they are: a policy bundle, pinned keys, a profile. Which there are is {@link Host.aids}. */
  readonly aids?: Readonly<Record<string, HostFile>> | undefined;
  /**
   * Whether receipts count whose signature could not be checked, for want of a key or since their chain is broken before them. What is made
   * of them says so. Default false: they are dropped. Only of hosts that have receipts, {@link Host.hasReceipts}.
   */
  readonly unverified?: boolean | undefined;
}

export interface Host {
  /** `cgf`: names it on the command line, in `source.system` and in the types of its evidence, `x.cgf.…`. */
  readonly name: string;
  /** For people: `CGF HostAdapter`. */
  readonly title: string;
  readonly rules: readonly HostRule[];
  /** What each aid is, in a few words. */
  readonly aids: Readonly<Record<string, string>>;
  /** Whether its items are signed receipts, which may be verified or not: {@link HostOptions.unverified}. */
  readonly hasReceipts?: boolean;
  /** Whether the file looks like one of its own. */
  recognises(file: HostFile): boolean;
  /**
   * Reads the host's files. What is wrong with them is in the findings; nothing in them makes it throw.
   *
   * @throws TypeError, RangeError for options that are not known or of the wrong type
   */
  read(files: readonly HostFile[], options?: HostOptions): HostReading;
}

/** What checks files against rules without making claims of them: `northroot check --as NAME`. */
export interface Checker {
  /** `openclaw-pipeline` */
  readonly name: string;
  readonly title: string;
  readonly rules: readonly HostRule[];
  readonly aids: Readonly<Record<string, string>>;
  /**
   * Checks the files. What is wrong with them is in the findings; nothing in them makes it throw. An item that was checked against the rules
   * has the fate `evidence`.
   *
   * @throws TypeError, RangeError for options that are not known or of the wrong type
   */
  check(files: readonly HostFile[], options?: HostOptions): Pick<HostReading, 'items' | 'findings'>;
}

export interface SourceItem {
  readonly at: HostPlace;
  readonly bytes: Uint8Array;
  readonly value: SourceValue;
}
