/** Applies the genesis record (SPEC §3.3, §7): origin, what must be signed, and the ledger's own keys. */

import type { ValueFault } from '../../base/fault.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { Key } from '../../format/schema/generated/types.js';
import type { LineFindings } from './line-findings.js';
import type { RecordPlace } from './seals.js';
import { demandsCheckpoints, type VerifyState } from './state.js';

/**
 * MUST be called for the first bare event only. Bare events do not meet a policy for certain ledgers: stripping the records must not
 * circumvent it.
 */
export function checkBareOrigin({ policy }: VerifyState, findings: LineFindings): void {
  if (policy?.origins === undefined) return;
  const expected = policy.origins.join(' or ');
  findings.add('ORIGIN_MISMATCH', { pointer: '', expected, actual: 'bare events, which are of no ledger' });
}

/** MUST be called for the first record only, before its signatures are judged: genesis may be signed by a key that it declares. */
export function adoptGenesis(
  state: VerifyState,
  line: ExaminedLine,
  place: RecordPlace,
  findings: LineFindings,
): void {
  if (line.type !== 'genesis') return;
  const genesis = line.event();
  state.origin = genesis.origin;
  state.genesis = { place, continues: genesis.continues, verdict: 'ok' };
  state.clock = genesis.occurred_at;
  state.bindingRequired = genesis.signing.binding === 'required';
  const { policy } = state;
  state.signaturesRequired = (policy?.require?.event_signatures ?? genesis.signing.events) === 'required';
  const checkpoints = policy?.require?.checkpoints ?? genesis.signing.checkpoints;
  state.checkpointsRequired = checkpoints === 'required' || demandsCheckpoints(policy, state.witnessPolicy);
  if (policy?.origins !== undefined && !policy.origins.some((origin) => origin === genesis.origin))
    findings.add('ORIGIN_MISMATCH', {
      pointer: '/event/origin',
      expected: policy.origins.join(' or '),
      actual: genesis.origin,
    });
  const seen = new Set<string>();
  for (const [index, key] of genesis.keys.entries()) {
    const fault = findKeyFault(key, seen);
    if (fault !== undefined) {
      const { code, pointer, expected, actual } = fault;
      findings.add(code, { pointer: `/event/keys/${index}${pointer}`, expected, actual });
      continue;
    }
    seen.add(key.keyid);
    if (policy === undefined) state.keyring.add(key);
  }
  if (policy === undefined && state.keyring.size > 0) state.mode = 'self-declared';
}

/** A usable entry has the right form: that is the same under every policy. */
export function findKeyFault(key: Key, seen: ReadonlySet<string>): ValueFault<'SCHEMA'> | undefined {
  const decoded = decodeWireKey(key);
  if (!decoded.ok) return decoded.fault;
  return seen.has(key.keyid)
    ? { code: 'SCHEMA', pointer: '/keyid', expected: 'each key once', actual: `${key.keyid} again` }
    : undefined;
}
