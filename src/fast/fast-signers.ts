/** The signers' part of the fast step (step 9): who signed a record, and the tallies of signers. */

import { decodeLatin1 } from '../base/bytes/text.js';
import { type SigningRule, signingRuleOf } from '../rules/trust/authority.js';
import { findEntitlementProblem, type RingKey } from '../rules/trust/keyring.js';
import { judgingInstant, mustBeSigned } from '../rules/trust/record-signing.js';
import { findUnsealed } from '../rules/verify/checkpoints.js';
import type { UnsealedRecords } from '../rules/verify/seals.js';
import type { SignerTally, VerifyState } from '../rules/verify/state.js';
import { type BlockTexts, keyidIn } from './blocks/block-texts.js';
import type { FastLine } from './blocks/read-blocks.js';
import { VALID } from './blocks/verdicts.js';
import * as row from './scan/row.js';

/** Records with more signatures take the slow path. */
const MAX_SIGNERS = 4;
/** How many signers, and principals of each kind, are remembered at once. */
const MAX_REMEMBERED = 1_024;

/** A key that signs, and its tallies. */
interface Signer {
  readonly key: RingKey;
  readonly tally: SignerTally;
  readonly group: UnsealedRecords | undefined;
  readonly intervalStart: number;
  /** The rules under which it may sign at any time. */
  readonly rules: Set<SigningRule>;
}

export class FastSigners {
  readonly #state: VerifyState;
  readonly #texts: BlockTexts;
  readonly #authorizationRules = new Map<string, SigningRule>();
  readonly #ownRules = new Map<string, SigningRule>();
  readonly #otherRules = new Map<string, SigningRule>();
  readonly #signers = new Map<string, Signer>();
  /** The signers of the current record, and the group that counts such records. */
  readonly #signing: Signer[] = [];
  #count = 0;
  #group: UnsealedRecords | undefined;

  constructor(state: VerifyState, texts: BlockTexts) {
    this.#state = state;
    this.#texts = texts;
  }

  /**
   * Finds the signers of a record.
   *
   * @param isOwn - Whether the record allows something under no grant.
   * @returns Whether all were entitled and have signed before; without signatures, whether none is required.
   */
  find(
    { facts, bytes, index }: FastLine,
    base: number,
    principal: string,
    type: number,
    isOwn: boolean,
  ): boolean {
    const { rows, verdicts, verdictsAt } = facts;
    const first = verdictsAt[index]!;
    const count = verdictsAt[index + 1]! - first;
    this.#count = count;
    if (count === 0) return this.#mayBeUnsigned(isOwn);
    if (count > MAX_SIGNERS) return false;
    for (let i = 0; i < count; i += 1) {
      if (verdicts[first + i] !== VALID) return false;
      const keyid = i === 0 ? this.#texts.keyids.at(bytes, rows, base) : keyidIn(bytes, rows, base, i);
      // Copies of one signature count once.
      for (let j = 0; j < i; j += 1) if (this.#signing[j]!.key.key.keyid === keyid) return false;
      const signer = this.#signerOf(keyid);
      if (signer === undefined) return false;
      const rule = this.#ruleFor(principal, type, isOwn);
      if (!this.#isEntitled(signer, rule, bytes, rows, base)) return false;
      this.#signing[i] = signer;
    }
    const [only] = this.#signing;
    const keyids = count === 1 ? undefined : this.#signing.slice(0, count).map(({ key }) => key.key.keyid);
    this.#group = keyids === undefined ? only?.group : findUnsealed(this.#state.seals, keyids);
    return this.#group !== undefined;
  }

  /** Counts the record for the signers that were found. */
  count(verdict: 'ok' | 'denied'): void {
    const { signatures, records } = this.#state;
    if (this.#count === 0) {
      signatures.missing += 1;
      return;
    }
    signatures.valid += this.#count;
    for (let i = 0; i < this.#count; i += 1) {
      const { tally } = this.#signing[i]!;
      tally.records += 1;
      tally.last = records;
    }
    const group = this.#group as UnsealedRecords;
    group.last = records;
    group.counts[verdict] += 1;
  }

  /** Forgets what records on the slow path can change. */
  reset(): void {
    // Clearing an empty map allocates: with lines that are no records that took a fifth of the time.
    for (const map of [this.#signers, this.#authorizationRules, this.#ownRules, this.#otherRules])
      if (map.size > 0) map.clear();
  }

  #mayBeUnsigned(needsAuthority: boolean): boolean {
    const { signaturesRequired, keyring } = this.#state;
    const demand = { signaturesRequired, hasAuthority: keyring.hasAuthority };
    return !mustBeSigned(demand, { isKeyEvent: false, needsAuthority });
  }

  #signerOf(keyid: string): Signer | undefined {
    const { keyring, signers, seals } = this.#state;
    const known = this.#signers.get(keyid);
    if (known?.intervalStart === seals.intervalStart) return known;
    const key = keyring.find(keyid);
    const tally = signers.get(keyid);
    if (key === undefined || tally === undefined) return undefined;
    const { intervalStart } = seals;
    const group = findUnsealed(seals, [keyid]);
    const signer = { key, tally, group, intervalStart, rules: new Set<SigningRule>() };
    if (this.#signers.size >= MAX_REMEMBERED) this.#signers.clear();
    // The slow path makes the group, at the first record that only this key signed.
    if (group !== undefined) this.#signers.set(keyid, signer);
    return signer;
  }

  #isEntitled(
    { key: ringKey, rules }: Signer,
    rule: SigningRule,
    bytes: Uint8Array,
    rows: Int32Array,
    base: number,
  ): boolean {
    const { key } = ringKey;
    if (key.valid_from !== undefined || key.valid_until !== undefined) {
      const occurredAt = decodeLatin1(bytes, rows[base + row.OCCURRED_AT], rows[base + row.OCCURRED_AT + 1]);
      const instant = judgingInstant(this.#state.clock, occurredAt);
      return findEntitlementProblem(ringKey, rule, instant) === undefined;
    }
    if (rules.has(rule)) return true;
    // Without limits in time it is the same at every instant.
    if (findEntitlementProblem(ringKey, rule, '') !== undefined) return false;
    if (rules.size >= MAX_REMEMBERED) rules.clear();
    rules.add(rule);
    return true;
  }

  #ruleFor(principalId: string, type: number, isOwn: boolean): SigningRule {
    const isAuthorization = type === row.AUTHORIZATION;
    const rules = isOwn ? this.#ownRules : isAuthorization ? this.#authorizationRules : this.#otherRules;
    const known = rules.get(principalId);
    if (known !== undefined) return known;
    const { hasAuthority } = this.#state.keyring;
    // The rule is the same under every grant, and for a denial.
    const grantId = isOwn ? undefined : '';
    const act = isAuthorization
      ? ({ type: 'authorization', principalId, isAllow: true, isAction: true, grantId } as const)
      : ({ type: 'execution', principalId } as const);
    const rule = signingRuleOf(act, { hasAuthority });
    if (rules.size >= MAX_REMEMBERED) rules.clear();
    rules.set(principalId, rule);
    return rule;
  }
}
