/** Step 9 of SPEC §8, signatures and trust (§5, §7): is each record signed, by a known key, that was entitled to? */

import { tryDecodeBase64url } from '../bytes/encoding.js';
import type { JsonObject } from '../json/value.js';
import type { ExaminedLine, SignatureEntry } from '../ledger/examine-line.js';
import { isKnownEventType } from '../schema/check.js';
import { PAYLOAD_TYPE, preAuthEncoding } from '../signature/dsse.js';
import { signingRuleFor, type SigningRule } from '../trust/authority.js';
import { findEntitlementProblem, listRolesUsed, type RingKey } from '../trust/keyring.js';
import { compareTimestamps } from '../value/timestamp.js';
import type { RuleFinding } from '../finding/rule-finding.js';
import type { LineFindings, SignatureOutcome } from './line-findings.js';
import type { VerifyState } from './state.js';

/**
 * Judges a record's signatures. A record counts as signed when one signature is right and its key entitled; beside such
 * a one, a further signature by a key that is unknown or not entitled is a warning. A signature that is wrong is an
 * error always.
 */
export function checkSignatures(
  state: VerifyState,
  line: ExaminedLine,
  bytes: Uint8Array,
  findings: LineFindings,
): void {
  if (line.layout === 'bare') {
    // Taking the records off events must not be a way around a policy that demands signatures.
    if (state.signaturesRequired) {
      state.signatures.missing += 1;
      const expected = 'a record with at least one signature';
      findings.add('SIGNATURE_MISSING', { pointer: '', expected, actual: 'a bare event', cause: 'bare' });
    }
    return;
  }
  if (line.signatures === undefined || line.event === undefined || line.span === undefined) return;
  const { hasAuthority } = state.keyring;
  const rule = line.wellFormed ? ruleFor(state, line.event) : undefined;
  if (rule?.needsAuthority === true && !hasAuthority) state.selfIssuable += 1;
  const required =
    state.signaturesRequired ||
    line.event['event_type'] === 'key' ||
    (hasAuthority && rule?.needsAuthority === true);
  if (line.signatures.length === 0) {
    state.signatures.missing += 1;
    if (required)
      findings.add('SIGNATURE_MISSING', {
        pointer: '/signatures',
        expected: 'at least one signature',
        actual: 'none',
      });
    return;
  }
  const message = preAuthEncoding(PAYLOAD_TYPE, bytes.subarray(line.span.start, line.span.end));
  const doubts: RuleFinding[] = [];
  const signers = new Set<string>();
  const { assumedSignatures: assumed } = state;
  const isAssumed = assumed === 'all' || (assumed === 'ordinary' && decidesNothing(line.event['event_type']));
  const outcomes: SignatureOutcome[] = [];
  const seen = new Map<string, number>();
  for (const [index, entry] of line.signatures.entries()) {
    // Copies of one signature are one signature.
    const copy = `${entry.keyid} ${entry.sig}`;
    const { keyid } = entry;
    const first = seen.get(copy);
    if (first !== undefined) {
      outcomes.push({ keyid, outcome: 'copy', copyOf: first });
      continue;
    }
    seen.set(copy, index);
    const pointer = `/signatures/${index}`;
    const known = state.keyring.find(entry.keyid);
    if (known === undefined) {
      state.signatures.unverified += 1;
      doubts.push({
        code: 'KEY_UNKNOWN',
        pointer,
        expected: expectedKey(state),
        actual: entry.keyid,
        cause: entry.keyid,
      });
      outcomes.push({ keyid, outcome: 'unverified', code: 'KEY_UNKNOWN' });
      continue;
    }
    if (!isAssumed && !isRightSignature(known, message, entry)) {
      state.signatures.invalid += 1;
      findings.add('SIGNATURE_INVALID', {
        pointer,
        expected: `a signature by ${entry.keyid}`,
        actual: entry.sig,
      });
      outcomes.push({ keyid, outcome: 'invalid', code: 'SIGNATURE_INVALID' });
      continue;
    }
    const problem = rule && findEntitlementProblem(known, rule, instantOf(state, line));
    if (problem !== undefined) {
      state.signatures.invalid += 1;
      doubts.push({ ...problem, pointer });
      outcomes.push({ keyid, outcome: 'invalid', code: problem.code });
      continue;
    }
    state.signatures.valid += 1;
    outcomes.push({
      keyid,
      outcome: 'valid',
      ...(rule === undefined ? {} : { roles: listRolesUsed(known, rule) }),
    });
    signers.add(keyid);
  }
  for (const keyid of signers) countSigner(state, state.keyring.find(keyid) as RingKey);
  findings.signers = [...signers];
  findings.signatures = outcomes;
  const hasRole = doubts.some(
    ({ code }) => code === 'KEY_NOT_FOR_PRINCIPAL' || code === 'KEY_NOT_VALID_HERE',
  );
  for (const { code, ...detail } of doubts) {
    const harmless =
      signers.size > 0 ||
      (code === 'KEY_UNKNOWN' && !required) ||
      // Beside a key that has the role, one without it says nothing more.
      (code === 'KEY_NOT_FOR_ROLE' && hasRole);
    findings.add(code, harmless ? { ...detail, severity: 'warning' } : detail);
  }
}

/** Whether nothing hangs on who signed it but the record itself: no key, no budget, no seal. */
function decidesNothing(type: unknown): boolean {
  return type === 'execution' || (typeof type === 'string' && !isKnownEventType(type));
}

function isRightSignature(known: RingKey, message: Uint8Array, entry: SignatureEntry): boolean {
  const signature = tryDecodeBase64url(entry.sig);
  return signature !== undefined && known.verification.verify(message, signature);
}

function ruleFor({ keyring: { hasAuthority }, links }: VerifyState, event: JsonObject): SigningRule {
  return signingRuleFor(event, {
    hasAuthority,
    principalOf: (grantId) => links.grants.get(grantId)?.principalId,
  });
}

/** See {@link findEntitlementProblem}: the event's own time, or the ledger's clock where that is later. */
export function instantOf(state: VerifyState, line: ExaminedLine): string {
  const own = line.event?.['occurred_at'] as string;
  return state.clock !== undefined && compareTimestamps(state.clock, own) > 0 ? state.clock : own;
}

function expectedKey(state: VerifyState): string {
  if (state.mode === 'policy') return 'a key of the trust policy';
  return state.mode === 'self-declared' ? 'a key that the ledger declares' : 'a known key; none is known';
}

function countSigner(state: VerifyState, known: RingKey): void {
  const { keyid, principals } = known.key;
  const tally = state.signers.get(keyid) ?? { keyid, principals, records: 0, last: -1 };
  tally.records += 1;
  state.signers.set(keyid, tally);
}
