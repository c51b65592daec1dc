/** Whose signatures on a checkpoint's note count, and for what (SPEC §6, §7). */

import type { RuleFinding } from '../finding/rule-finding.js';
import { judgeNote } from '../note/judge-note.js';
import type { NoteKey } from '../note/note-key.js';
import type { SignedCheckpoint } from '../note/checkpoint.js';
import { findRevocationProblem, type EntitlementProblem, type RingKey } from '../trust/keyring.js';
import type { VerifyState } from './state.js';
import { isSignedByLog, noEndorsers, type Endorsers } from './seals.js';

/** What the signatures of a note are worth. */
export interface NoteVerdict {
  readonly endorsers: Endorsers;
  /** Wrong signatures, and right ones by keys that were not entitled. Pointers are left to the caller. */
  readonly problems: readonly RuleFinding[];
  /** Signature lines by nobody known. */
  readonly unknown: number;
}

/** Where a key of a note comes from. */
interface SourcedKey extends NoteKey {
  readonly keyid?: string;
  readonly as?: 'log' | 'witness';
  readonly policyLog?: number;
  readonly policyWitness?: number;
}

/** Why a key of the ring may not sign or cosign a note, or `undefined` when it may. */
export type Entitlement = (key: RingKey, as: 'log' | 'witness') => EntitlementProblem | undefined;

/**
 * Judges the signatures of a checkpoint's note by the keys that are known at this point.
 *
 * @param revokedBefore - A key that a record before this one revoked counts no more, also when the witness policy names it.
 */
export function judgeCheckpointNote(
  state: VerifyState,
  note: SignedCheckpoint,
  findProblem: Entitlement,
  revokedBefore: number,
): NoteVerdict {
  const endorsers = noEndorsers();
  const doubts: RuleFinding[] = [];
  const wrong: RuleFinding[] = [];
  const unknown = new Set(note.signatures);
  for (const keys of keyringsOf(state, note)) {
    const judgement = judgeNote(note, keys);
    const strangers = new Set(judgement.unknown);
    for (const signature of note.signatures) if (!strangers.has(signature)) unknown.delete(signature);
    for (const { key } of judgement.wrong) {
      wrong.push({
        code: 'CHECKPOINT_SIGNATURE_INVALID',
        expected: `a signature of this text by ${describeKey(key)}`,
        actual: 'another one',
      });
    }
    for (const { key } of judgement.right) {
      const problem = endorse(state, key, endorsers, findProblem, revokedBefore);
      if (problem !== undefined) doubts.push(problem);
    }
  }
  const isSigned = isSignedByLog(endorsers);
  const others = doubts.map((doubt): RuleFinding => (isSigned ? { ...doubt, severity: 'warning' } : doubt));
  return { endorsers, problems: unique([...wrong, ...others]), unknown: unknown.size };
}

/** The ledger's own keys, or those of the trust policy; and those of the witness policy. A key may be in both. */
function keyringsOf(
  state: VerifyState,
  { checkpoint: { origin }, signatures }: SignedCheckpoint,
): (readonly SourcedKey[])[] {
  const { logs, witnesses } = state.witnessKeys;
  return [
    state.keyring.findNoteKeys(origin, signatures),
    logs.flatMap((key, policyLog) => (key.name === origin ? [{ ...key, policyLog }] : [])),
    witnesses.map((key, policyWitness) => ({ ...key, policyWitness })),
  ];
}

function endorse(
  state: VerifyState,
  key: SourcedKey,
  endorsers: Endorsers,
  findProblem: Entitlement,
  revokedBefore: number,
): RuleFinding | undefined {
  const { keyid, policyLog, policyWitness } = key;
  const known = state.keyring.find(key.publicKey.keyid);
  const revocation = known && findRevocationProblem(known, revokedBefore);
  if (revocation !== undefined) return revocation;
  if (policyLog !== undefined) endorsers.policyLogs.add(policyLog);
  if (policyWitness !== undefined) endorsers.policyWitnesses.add(policyWitness);
  if (keyid === undefined) return undefined;
  const isWitness = key.as === 'witness';
  const problem = findProblem(state.keyring.find(keyid) as RingKey, isWitness ? 'witness' : 'log');
  if (problem !== undefined) return problem;
  (isWitness ? endorsers.witnessKeys : endorsers.logKeys).add(keyid);
  return undefined;
}

function describeKey({ name, keyId }: NoteKey): string {
  return `${name}+${keyId}`;
}

/** What is wrong with a key that two policies name is found twice, and told of once. */
function unique(findings: readonly RuleFinding[]): RuleFinding[] {
  const words = ({ code, expected, actual }: RuleFinding): string => JSON.stringify([code, expected, actual]);
  return [...new Map(findings.map((finding) => [words(finding), finding])).values()];
}
