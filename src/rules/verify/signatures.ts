/** Step 9 of SPEC §8, signatures and trust (§5, §7): is each record signed, by a known key, that was entitled to? */

import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { ExaminedLine, SignatureEntry, WellFormedLine } from '../../format/record/examine-line.js';
import { isKnownEventType } from '../../format/schema/check.js';
import { eventMessage, isValidSignature } from '../../format/signature/event-signature.js';
import type { AssertionFault } from '../../format/signature/passkey.js';
import { grantChain } from '../bounds/grant.js';
import { type SignedAct, type SigningRule, signingRuleOf } from '../trust/authority.js';
import { findEntitlementProblem, listRolesUsed, type RingKey } from '../trust/keyring.js';
import { judgingInstant, mustBeSigned } from '../trust/record-signing.js';
import type { LineFindings } from './line-findings.js';
import type { SignatureOutcome } from './line-result.js';
import { START_TYPE } from './starts.js';
import type { VerifyState } from './state.js';

/**
 * Judges a record's signatures. A record is signed when one signature is valid and its key entitled. A further signature by an unknown or
 * not entitled key is then a warning. An invalid signature is always an error.
 *
 * @param known - Verdicts of signatures computed in advance.
 */
export function checkSignatures(
  state: VerifyState,
  line: ExaminedLine,
  bytes: Uint8Array,
  findings: LineFindings,
  known?: { isValid(index: number): boolean | undefined },
): void {
  if (line.layout === 'bare') {
    // Stripping the records must not circumvent a policy that requires signatures.
    if (state.signaturesRequired) {
      state.signatures.missing += 1;
      const expected = 'a record with at least one signature';
      findings.add('SIGNATURE_MISSING', { pointer: '', expected, actual: 'a bare event', cause: 'bare' });
    }
    return;
  }
  if (line.signatures === undefined || line.span === undefined) return;
  const { hasAuthority } = state.keyring;
  const asked = line.wellFormed ? { rule: ruleFor(state, line), instant: instantOf(state, line) } : undefined;
  const needsAuthority = asked?.rule.needsAuthority === true;
  if (needsAuthority && !hasAuthority) state.selfIssuable += 1;
  const demand = { signaturesRequired: state.signaturesRequired, hasAuthority };
  const required = mustBeSigned(demand, { isKeyEvent: line.eventType === 'key', needsAuthority });
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
  const { start, end } = line.span;
  let message: Uint8Array | undefined;
  const isAssumed = isTakenAsValid(state, line);
  const findFault: FindFault = ({ keyid, sig }, index, { verification, passkey }) => {
    if (isAssumed) return undefined;
    // Computed in advance are verdicts by keys alone, without what makes one a passkey.
    const verdict = passkey === undefined ? known?.isValid(index) : undefined;
    if (verdict === true) return undefined;
    message ??= eventMessage(bytes.subarray(start, end));
    if (passkey !== undefined) return passkey.explain(message, tryDecodeBase64url(sig) ?? NO_BYTES);
    if (verdict === undefined && isValidSignature(message, sig, verification)) return undefined;
    return { expected: `a signature by ${keyid}`, actual: sig };
  };
  const judged = judgeSignatures(state, line.signatures, asked, findFault);
  const signers: string[] = [];
  const doubts: RuleFinding[] = [];
  for (const { outcome, finding } of judged) {
    const { keyid } = outcome;
    if (outcome.outcome !== 'copy') state.signatures[outcome.outcome] += 1;
    if (outcome.outcome === 'valid' && !signers.includes(keyid)) signers.push(keyid);
    if (finding?.code === 'SIGNATURE_INVALID') addFinding(findings, finding);
    else if (finding !== undefined) doubts.push(finding);
  }
  for (const keyid of signers) countSigner(state, state.keyring.find(keyid) as RingKey);
  findings.signers = signers;
  findings.signatures = judged.map(({ outcome }) => outcome);
  const hasRole = doubts.some(
    ({ code }) => code === 'KEY_NOT_FOR_PRINCIPAL' || code === 'KEY_NOT_VALID_HERE',
  );
  for (const doubt of doubts) {
    const harmless =
      signers.length > 0 ||
      (doubt.code === 'KEY_UNKNOWN' && !required) ||
      // With another key that has the role, this adds nothing.
      (doubt.code === 'KEY_NOT_FOR_ROLE' && hasRole);
    addFinding(findings, harmless ? { ...doubt, severity: 'warning' } : doubt);
  }
}

/** The outcomes of a scannable record whose signatures are all valid and by entitled keys. */
export function validOutcomes(
  state: Pick<VerifyState, 'keyring' | 'links'>,
  line: WellFormedLine,
): readonly SignatureOutcome[] {
  const { signatures = [] } = line;
  if (signatures.length === 0) return [];
  const rule = ruleFor(state, line);
  return signatures.map(({ keyid }) => {
    const roles = listRolesUsed(state.keyring.find(keyid) as RingKey, rule);
    return { keyid, outcome: 'valid', roles };
  });
}

interface JudgedSignature {
  readonly outcome: SignatureOutcome;
  readonly finding?: RuleFinding;
}

/** Why a signature by a known key is not valid; undefined if it is. */
type FindFault = (entry: SignatureEntry, index: number, known: RingKey) => AssertionFault | undefined;

const NO_BYTES = new Uint8Array();

/** Judges whether each signature's key may sign here. `findFault` is called for known keys only. */
function judgeSignatures(
  state: VerifyState,
  signatures: readonly SignatureEntry[],
  asked: { readonly rule: SigningRule; readonly instant: string } | undefined,
  findFault: FindFault,
): JudgedSignature[] {
  return signatures.map((entry, index): JudgedSignature => {
    const { keyid } = entry;
    // Copies of one signature count once.
    const first = signatures.findIndex((each) => each.keyid === keyid && each.sig === entry.sig);
    if (first < index) return { outcome: { keyid, outcome: 'copy', copyOf: first } };
    const pointer = (): string => `/signatures/${index}`;
    const known = state.keyring.find(keyid);
    if (known === undefined) {
      const code = 'KEY_UNKNOWN';
      const finding = {
        code,
        pointer: pointer(),
        expected: expectedKey(state),
        actual: keyid,
        cause: keyid,
      } as const;
      return { outcome: { keyid, outcome: 'unverified', code }, finding };
    }
    const fault = findFault(entry, index, known);
    if (fault !== undefined) {
      const code = 'SIGNATURE_INVALID';
      const finding = { code, pointer: pointer(), ...fault } as const;
      return { outcome: { keyid, outcome: 'invalid', code }, finding };
    }
    const problem = asked && findEntitlementProblem(known, asked.rule, asked.instant);
    if (problem !== undefined) {
      const finding = { ...problem, pointer: pointer() };
      return { outcome: { keyid, outcome: 'invalid', code: problem.code }, finding };
    }
    if (asked === undefined) return { outcome: { keyid, outcome: 'valid' } };
    return { outcome: { keyid, outcome: 'valid', roles: listRolesUsed(known, asked.rule) } };
  });
}

function addFinding(findings: LineFindings, { code, ...detail }: RuleFinding): void {
  findings.add(code, detail);
}

/** Whether signatures by known keys are assumed valid, see {@link VerifyState.assumedSignatures}. */
function isTakenAsValid({ assumedSignatures: assumed }: VerifyState, { eventType }: ExaminedLine): boolean {
  return assumed === 'all' || (assumed === 'ordinary' && decidesNothing(eventType));
}

/** Whether its signer affects only the record itself: no key, budget, seal or reservation held by a start. */
function decidesNothing(eventType: string | undefined): boolean {
  if (eventType === undefined || eventType === START_TYPE) return false;
  return eventType === 'execution' || !isKnownEventType(eventType);
}

/** The rule for who may sign an event, by the state before it. */
export function ruleFor(
  { keyring: { hasAuthority }, links }: Pick<VerifyState, 'keyring' | 'links'>,
  line: WellFormedLine,
): SigningRule {
  return signingRuleOf(actOf(line), {
    hasAuthority,
    grantOf: (grantId) => {
      const grant = links.grants.get(grantId);
      if (grant?.decision !== 'allow') return undefined;
      return {
        principalId: grant.principalId,
        get above() {
          return grantChain(grant.parent).map(({ principalId }) => principalId);
        },
        isSuspendedByAuthority: grant.withdrawal?.effect === 'suspend' && grant.withdrawal.byAuthority,
      };
    },
  });
}

function actOf(line: WellFormedLine): SignedAct {
  const { type, principalId } = line;
  if (line.type === 'authorization') {
    const { decision, kind, grantId } = line.terms();
    return { type, principalId, isAllow: decision === 'allow', isAction: kind === 'action', grantId };
  }
  if (line.type === 'revocation') {
    const { effect, grant_event_id: grantId } = line.event();
    return { type, principalId, isResume: effect === 'resume', grantId: grantId.b64 };
  }
  if (line.type !== 'adjustment') return { type, principalId };
  const { direction, grantId } = line.outline();
  return { type, principalId, isCredit: direction === 'credit', grantId };
}

/** The instant at which the keys of a line are judged. */
export function instantOf({ clock }: VerifyState, { occurredAt }: WellFormedLine): string {
  return judgingInstant(clock, occurredAt);
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
