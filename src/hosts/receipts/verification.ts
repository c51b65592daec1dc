/** Whether receipts are what their issuers signed: signatures by keys that are known, and links of chains. */

import { compareTimestamps } from '../../base/value/timestamp.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import type { PublicKey } from '../../format/key/public-key.js';
import type { VerificationKey } from '../../format/signature/backend.js';
import type { HostFinding } from '../shared/host.js';
import { addTo } from '../shared/values.js';
import type { KeyRing } from './keys.js';
import type { Receipt, ReceiptSignature } from './receipt.js';
import { finding } from './rules.js';

/**
 * How a receipt stands. `vouched`: signed by a key that was given, or that its issuer's name is. `stated`: signed by the key that it states
 * itself. `unverified`: not checked, for want of a key, or since what is before it in its chain is broken. `broken`: a rule of its format
 * does not hold of it.
 */
export type Standing = 'vouched' | 'stated' | 'unverified' | 'broken';

/** How a receipt stands, why, and by which key it is signed. */
export interface Standings {
  readonly standing: Standing;
  /** Of one that is broken or not verified: a Code. */
  readonly reason?: string | undefined;
  readonly keyid?: string | undefined;
}

/** Checks receipts of one format. */
export class Verification {
  readonly #ring: KeyRing;
  readonly #find: (finding: HostFinding) => void;
  readonly #takesUnverified: boolean;
  readonly #standings = new Map<Receipt, Standings>();
  readonly #corrected = new Map<Receipt, Receipt>();
  readonly #prepared = new Map<string, VerificationKey>();
  /** Names of which no key is known, each told of once. */
  readonly #unknown = new Set<string>();
  /** By issuer: the key that its receipts state. */
  readonly #stated = new Map<string, string>();

  /** @param takesUnverified - What cannot be checked is a warning then, no error. */
  constructor(ring: KeyRing, takesUnverified: boolean, find: (finding: HostFinding) => void) {
    this.#ring = ring;
    this.#takesUnverified = takesUnverified;
    this.#find = find;
  }

  /** The JWK sets among the keys that were given, with all that they say of keys. */
  get keySets(): KeyRing['sets'] {
    return this.#ring.sets;
  }

  /** How a receipt stands; one that nothing was said of is not verified. */
  of(receipt: Receipt): Standings {
    return this.#standings.get(receipt) ?? { standing: 'unverified', reason: 'NOT_CHECKED' };
  }

  /** Reports a finding about a receipt. What is invalid breaks it, and the first is the reason; a violation is intact evidence. */
  find(receipt: Receipt, found: HostFinding): void {
    const { standing } = this.of(receipt);
    if (found.severity === 'error' && found.class === 'invalid' && standing !== 'broken')
      this.#standings.set(receipt, { standing: 'broken', reason: found.code });
    this.#find({ about: receipt.id, ...found });
  }

  noteCorrection(receipt: Receipt, by: Receipt): void {
    this.#corrected.set(receipt, by);
  }

  correctionOf(receipt: Receipt): Receipt | undefined {
    return this.#corrected.get(receipt);
  }

  /** Says that a receipt cannot be relied on since another is broken. A finding of that one reports it. */
  suspect(receipt: Receipt, reason: string): void {
    if (this.of(receipt).standing !== 'broken')
      this.#standings.set(receipt, { standing: 'unverified', reason });
  }

  /** Says that a receipt cannot be judged. Where such receipts are asked for, the finding is a warning. */
  undecided(receipt: Receipt, found: HostFinding): void {
    this.suspect(receipt, found.code);
    const lighter = this.#takesUnverified ? ({ severity: 'warning', class: 'none' } as const) : {};
    this.#find({ about: receipt.id, ...found, ...lighter });
  }

  /**
   * Verifies every signature of a receipt.
   *
   * @param active - The key that an earlier receipt of its chain handed over to.
   * @returns The key that one of them is valid by.
   */
  verify(receipt: Receipt, active?: PublicKey): PublicKey | undefined {
    const { at, signatures } = receipt;
    if (signatures.length === 0) this.find(receipt, finding('SIGNATURE_MISSING', at));
    let stands: (Standings & { readonly key?: PublicKey }) | undefined;
    for (const signature of signatures) {
      const result = this.#verifyOne(receipt, signature, active);
      if (stands === undefined || rank(result) > rank(stands)) stands = result;
    }
    if (stands === undefined) return undefined;
    const { key, ...standings } = stands;
    if (this.of(receipt).standing !== 'broken') this.#standings.set(receipt, standings);
    return key;
  }

  /** The keys that a signature of a receipt may be by, and what vouches for them. */
  keysOf(
    signature: ReceiptSignature,
    active?: PublicKey,
  ): { readonly keys: readonly PublicKey[]; readonly standing: Standing } {
    if (active !== undefined) return { keys: [active], standing: 'vouched' };
    const { bound, keyNames } = signature;
    const own = bound === undefined ? undefined : (this.#ring.findNamed(keyNames) ?? [bound]);
    const given = own ?? this.#ring.find(keyNames);
    if (given.length > 0) return { keys: given, standing: 'vouched' };
    // Where keys are given, only they count: a receipt must not bring its own.
    const stated = this.#ring.isEmpty ? signature.stated : undefined;
    return stated === undefined
      ? { keys: [], standing: 'unverified' }
      : { keys: [stated], standing: 'stated' };
  }

  /** Whether a signature is valid by a key. A key of another algorithm has signed nothing. */
  isValid(key: PublicKey, { alg, message, alternatives = [], bytes }: ReceiptSignature): boolean {
    if (key.alg !== alg) return false;
    let prepared = this.#prepared.get(key.keyid);
    if (prepared === undefined) this.#prepared.set(key.keyid, (prepared = defaultBackend.importKey(key)));
    return [message, ...alternatives].some((each) => prepared.verify(each, bytes));
  }

  #verifyOne(
    receipt: Receipt,
    signature: ReceiptSignature,
    active?: PublicKey,
  ): Standings & { readonly key?: PublicKey } {
    const { issuer } = receipt;
    const at = { ...receipt.at, pointer: `${receipt.at.pointer ?? ''}${signature.pointer}` };
    const { keys, standing } = this.keysOf(signature, active);
    if (keys.length === 0) {
      const name = signature.keyNames[0] ?? issuer;
      const weight = this.#takesUnverified ? 'warning' : 'invalid';
      if (!this.#unknown.has(name))
        this.#find(finding('KEY_UNKNOWN', at, { weight, about: name, expected: `the key of ${name}` }));
      this.#unknown.add(name);
      return { standing: 'unverified', reason: 'KEY_UNKNOWN' };
    }
    const valid = keys.filter((each) => this.isValid(each, signature));
    const key = valid.find((each) => this.#endFor(each, receipt) === undefined) ?? valid[0];
    if (key === undefined) {
      const [first] = keys;
      const expected = `a valid signature by ${keys.length === 1 ? `the key ${first!.keyid}` : 'one of the keys given'}`;
      const actual =
        standing === 'vouched' && signature.stated !== undefined && this.isValid(signature.stated, signature)
          ? `one by another key, ${signature.stated.keyid}, which the receipt brings with it`
          : 'one that is not valid';
      this.find(receipt, finding('SIGNATURE_INVALID', at, { expected, actual }));
      return { standing: 'broken', reason: 'SIGNATURE_INVALID' };
    }
    const end = this.#endFor(key, receipt);
    if (end !== undefined) {
      const expected = `a receipt from before ${end}, when the key ${key.keyid} was revoked or expired`;
      const actual = receipt.occurredAt ?? 'one without a time';
      this.find(receipt, finding('KEY_ENDED', at, { expected, actual }));
      return { standing: 'broken', reason: 'KEY_ENDED' };
    }
    if (standing === 'stated') return this.#takeStated(receipt, at, key);
    return { standing, keyid: key.keyid, key };
  }

  /** The end of a key that a receipt is not from before. One without a time may be from after it. */
  #endFor(key: PublicKey, { occurredAt }: Receipt): string | undefined {
    const end = this.#ring.endOf(key);
    if (end === undefined || occurredAt === undefined) return end;
    return compareTimestamps(occurredAt, end) >= 0 ? end : undefined;
  }

  /** An issuer that states two keys is two: one of them is somebody else. */
  #takeStated(
    receipt: Receipt,
    at: HostFinding['at'],
    key: PublicKey,
  ): Standings & { readonly key?: PublicKey } {
    const { keyid } = key;
    const before = this.#stated.get(receipt.issuer);
    if (before === undefined) {
      this.#stated.set(receipt.issuer, keyid);
      this.#find(finding('KEY_STATED', at, { about: receipt.issuer }));
    } else if (before !== keyid) {
      this.find(
        receipt,
        finding('KEY_CHANGED', at, { expected: `the key ${before} of ${receipt.issuer}`, actual: keyid }),
      );
      return { standing: 'broken', reason: 'KEY_CHANGED' };
    }
    return { standing: 'stated', keyid, key };
  }
}

function rank({ standing }: Standings): number {
  return ['broken', 'unverified', 'stated', 'vouched'].indexOf(standing);
}

/** Receipts by their chains, each chain in its own order; what is in none is left out. */
export function chainsOf<R extends Receipt>(receipts: readonly R[]): ReadonlyMap<string, readonly R[]> {
  const chains = new Map<string, R[]>();
  for (const receipt of receipts) if (receipt.link !== undefined) addTo(chains, receipt.link.chain, receipt);
  for (const chain of chains.values()) chain.sort((a, b) => Number(a.link!.sequence - b.link!.sequence));
  return chains;
}

export interface ChainRules {
  readonly first: bigint;
  /** What the first receipt states of the one before it. Default `null`. */
  readonly firstPrevious?: string | null | undefined;
}

/**
 * Checks the links of one chain, in its order. The receipt at a break is broken, and what is after it is suspect. A receipt that is alone
 * keeps its standing: its place was not checked.
 *
 * @param digests - The chain of each digest, of all receipts: what is spliced in from another chain is told of as such.
 */
export function checkChain(
  chain: readonly Receipt[],
  verification: Verification,
  { first: begin, firstPrevious = null }: ChainRules,
  digests: ReadonlyMap<string, string>,
): void {
  let before: Receipt | undefined;
  let isBroken = false;
  for (const receipt of chain) {
    if (isBroken) verification.suspect(receipt, 'AFTER_BREAK');
    else {
      const found = breakOf(receipt, before, chain.length === 1, { first: begin, firstPrevious }, digests);
      if (found !== undefined) verification.find(receipt, found);
      isBroken = verification.of(receipt).standing === 'broken';
    }
    before = receipt;
  }
  const last = chain.at(-1);
  if (last !== undefined && !isBroken && last.link!.isLast !== true)
    verification.find(last, finding('CHAIN_OPEN', last.at, { about: last.link!.chain }));
}

/** The digests of receipts with the chains that they are in. */
export function digestsOf(receipts: readonly Receipt[]): ReadonlyMap<string, string> {
  return new Map(receipts.flatMap(({ digest, link }) => (link === undefined ? [] : [[digest, link.chain]])));
}

function breakOf(
  receipt: Receipt,
  before: Receipt | undefined,
  isAlone: boolean,
  { first, firstPrevious = null }: ChainRules,
  digests: ReadonlyMap<string, string>,
): HostFinding | undefined {
  const { chain, sequence, previous, pointer } = receipt.link!;
  const at = { ...receipt.at, pointer: `${receipt.at.pointer ?? ''}${pointer}` };
  const other = previous === null ? undefined : digests.get(previous);
  if (other !== undefined && other !== chain)
    return finding('CHAIN_SPLICED', at, {
      expected: `a receipt of the chain ${chain}`,
      actual: `one of ${other}`,
    });
  if (before === undefined) {
    const isFirst = sequence === first;
    if (isFirst && previous === firstPrevious) return undefined;
    if (!isFirst && previous !== firstPrevious && isAlone) return finding('CHAIN_PART', at);
    const expected = `the first receipt of the chain, ${first}, with ${firstPrevious ?? 'null'} before it`;
    return finding('CHAIN_START', at, {
      expected,
      actual: `${sequence} with ${previous ?? 'null'} before it`,
    });
  }
  const link = before.link!;
  if (link.isLast === true) return finding('CHAIN_AFTER_END', at);
  if (sequence === link.sequence)
    return finding('CHAIN_FORK', at, {
      expected: `one receipt ${sequence}`,
      actual: `another, ${receipt.id}`,
    });
  if (sequence !== link.sequence + 1n)
    return finding('CHAIN_GAP', at, { expected: `receipt ${link.sequence + 1n}`, actual: `${sequence}` });
  if (previous !== before.digest)
    return finding('CHAIN_LINK', at, { expected: before.digest, actual: previous ?? 'null' });
  return undefined;
}

/** What a format without a `verify` of its own checks: each signature, then each chain. @param rules - Default: chains begin at 1. */
export function verifyReceipts(
  receipts: readonly Receipt[],
  verification: Verification,
  rules: ChainRules = { first: 1n },
): void {
  for (const receipt of receipts) verification.verify(receipt);
  const digests = digestsOf(receipts);
  for (const chain of chainsOf(receipts).values()) checkChain(chain, verification, rules, digests);
}
