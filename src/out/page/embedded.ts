/**
 * What an exported page holds beside its program: the ledger, compressed, in blocks; and one JSON object that says what the bytes
 * are, under which policy they were verified, and what the exporter's report was.
 */

import type { FileFault } from '../../base/fault.js';
import type { ReportJson, TrustPolicy } from '../../format/schema/generated/types.js';
import type { SourceGrowth, TileFaultCode } from '../../rules/source/ledger-source.js';
import type { WitnessPolicy } from '../../rules/trust/witness-policy.js';

/** The `type` of the script elements that hold the ledger: raw deflate, in base64, in order. No browser runs such a type. */
export const LEDGER_TYPE = 'application/vnd.northroot.ledger';

/** The `id` of the script element that holds the {@link Embedded} as JSON. */
export const EMBEDDED_ID = 'northroot-embedded';

/** The `id` of the script element that holds the verifier, compressed as the ledger is. */
export const CORE_ID = 'northroot-core';

export interface EmbeddedSegment {
  readonly file: string;
  /** Null outside folders of segments. */
  readonly first_seq: number | null;
  readonly bytes: number;
}

export interface Embedded {
  readonly paths: readonly string[];
  readonly segments: readonly EmbeddedSegment[];
  readonly trust?: TrustPolicy;
  /** As it was read, with the lines that were passed over. */
  readonly witness_policy?: WitnessPolicy;
  /** Checkpoints that the exporter held; the notes in base64. */
  readonly checkpoints: readonly { readonly name: string; readonly note: string }[];
  /** The checkpoint that the ledger is published with. */
  readonly published?: { readonly name: string; readonly note: string };
  /** What was wrong with the exporter's files beside the records in them. */
  readonly faults?: { readonly faults: readonly FileFault<TileFaultCode>[]; readonly total: number };
  readonly growth?: SourceGrowth;
  /** The time by which ages were judged, where any were. */
  readonly now?: string;
  readonly report: ReportJson;
}
