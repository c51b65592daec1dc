/**
 * The result of a verification as an in-toto Statement v1 with SLSA's Verification Summary (VSA v1), for supply-chain tools. Only `ok` is
 * PASSED; all else, including undecided, is FAILED. The extension `northroot` has the members that VSA lacks, such as what was not checked.
 */

import { encodeBase64url, encodeHex, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { encodeLatin1 } from '../../base/bytes/text.js';
import { defined } from '../../base/defined.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { VERSION } from '../../base/version.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import type { Report } from '../../rules/report/report.js';

/** `_type` of an in-toto statement, version 1. */
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
/** `predicateType` of a SLSA verification summary, version 1. */
export const VSA_TYPE = 'https://slsa.dev/verification_summary/v1';
/** The payload type of the envelope that a statement is in. */
export const STATEMENT_PAYLOAD_TYPE = 'application/vnd.in-toto+json';

const VERIFIER = 'https://northroot.dev/verifier';
/** The rules of verification, version 1. */
const RULES = 'https://northroot.dev/verification/v1';

/** An in-toto Statement v1 about a ledger. */
export type LedgerStatement = ReturnType<typeof buildStatement>;

/** What a statement says beyond the report. */
interface StatementFacts {
  /** The subject's name, such as that of the ledger's file. */
  readonly name: string;
  /** The SHA-256 of the ledger's bytes, its segments concatenated. A binary string. */
  readonly hash: string;
  readonly trust: TrustPolicy | undefined;
  readonly checkpoints: readonly { readonly name: string; readonly note: Uint8Array }[];
  /** A URI. Default: northroot's own. */
  readonly verifierId?: string | undefined;
  /** A URI. Default: `ni:` with the hash of the bytes (RFC 6920). */
  readonly resourceUri?: string | undefined;
  /** An RFC 3339 timestamp. Default: none. */
  readonly timeVerified?: string | undefined;
}

/** Makes the statement. Deterministic. */
export function buildStatement(report: Report, facts: StatementFacts) {
  const { verdict, trust, ledger, checkpoints } = report;
  const { origin, records, bytes, tree_size, root, tip_event_id } = ledger;
  const passed = verdict === 'ok';
  const inputs = facts.checkpoints.map(({ name, note }) => ({
    name,
    digest: { sha256: encodeHex(sha256(note)) },
  }));
  const rootBytes = tryDecodeBase64url((root ?? '').slice('sha-256:'.length));
  return {
    _type: STATEMENT_TYPE,
    subject: [
      {
        name: facts.name,
        digest: {
          sha256: encodeHex(encodeLatin1(facts.hash)),
          ...(root === null || rootBytes === undefined ? {} : { rfc6962Sha256: encodeHex(rootBytes) }),
        },
      },
    ],
    predicateType: VSA_TYPE,
    predicate: {
      verifier: { id: facts.verifierId ?? VERIFIER, version: { northroot: VERSION } },
      ...defined({ timeVerified: facts.timeVerified }),
      resourceUri: facts.resourceUri ?? `ni:///sha-256;${encodeBase64url(encodeLatin1(facts.hash))}`,
      policy: {
        uri: RULES,
        ...(facts.trust === undefined
          ? {}
          : { digest: { sha256: encodeHex(sha256(canonicalBytes(facts.trust))) } }),
      },
      ...(inputs.length === 0 ? {} : { inputAttestations: inputs }),
      verificationResult: passed ? 'PASSED' : 'FAILED',
      verifiedLevels: [passed ? LEVELS[trust.mode] : 'FAILED'],
      northroot: {
        verdict,
        exit_status: report.exit_status,
        not_checked: report.not_checked,
        trust: { mode: trust.mode, signatures: trust.signatures },
        ledger: { origin, records, bytes, tree_size, root, tip_event_id },
        checkpoints: {
          count: checkpoints.count,
          last_tree_size: checkpoints.last_tree_size,
          unsealed: checkpoints.unsealed,
        },
        by_verdict: report.counts.by_verdict,
        findings_total: report.findings_total,
      },
    },
  };
}

/** SLSA's levels are for builds and sources; these say by whose keys the ledger was verified. */
const LEVELS = {
  policy: 'NORTHROOT_TRUST_POLICY',
  'self-declared': 'NORTHROOT_SELF_DECLARED_KEYS',
  none: 'NORTHROOT_NO_KEYS',
} as const;
