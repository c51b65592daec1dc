/** Advisers: policies that are asked before the grants decide, outside the ledger's lock, with the parameters themselves. */

import { printable } from '../../base/bytes/printable.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { canonicalBytesWithout } from '../../base/json/omit-undefined.js';
import { describeValue } from '../../base/options.js';
import { type Digest, isDigest, sha256Digest } from '../../base/value/digest.js';
import { isPrincipalPattern } from '../../base/value/principal.js';
import type { AmountsByUnit } from '../../base/value/meter.js';
import type { ResourceRef } from '../../format/schema/generated/types.js';
import { type Advice, GATE_POLICY_ID, type PolicyCheck } from '../../log/policy/evaluator.js';

export interface AdvisedCall {
  readonly principalId: string;
  readonly toolName: string;
  /** A copy of the parameters, as rewritten by the advisers before. */
  readonly params: unknown;
  readonly reserve: AmountsByUnit;
  readonly resources: readonly ResourceRef[];
  /** The host's session, where it has one. */
  readonly session: string | undefined;
}

/** An adviser's answer. An unknown effect or a malformed member counts as a denial. */
export interface AdviserAnswer {
  /** `abstain` has no opinion; `ask` requires an approval; `rewrite` permits the call with other parameters. */
  readonly effect: 'permit' | 'deny' | 'abstain' | 'ask' | 'rewrite';
  /** A Code (SPEC §2). Default: `PERMITTED`, `POLICY_DENIED`, `ABSTAINED`, `APPROVAL_ASKED`, `REWRITTEN`. */
  readonly code?: string | undefined;
  /** In words, for who asked. Not recorded. */
  readonly reason?: string | undefined;
  /** For `rewrite`: any JSON. */
  readonly params?: unknown;
  /** For `ask`: patterns of principals (SPEC §7). Default: `human:*`. */
  readonly approvers?: readonly string[] | undefined;
  /** The digest of the policies that were asked. Default: the adviser's. */
  readonly policyDigest?: Digest | undefined;
}

export interface Adviser {
  /** 1 to 32 characters of `[A-Za-z0-9_.-]`. */
  readonly name: string;
  /** The digest of its policies, if they do not change. */
  readonly policyDigest?: Digest | undefined;
  /** How long it may take, in milliseconds. Default 1,000. */
  readonly timeoutMs?: number | undefined;
  /** An error, a late or a malformed answer denies the call. */
  advise(
    call: AdvisedCall,
    options: { readonly signal: AbortSignal },
  ): AdviserAnswer | Promise<AdviserAnswer>;
}

export interface Advised {
  readonly advice: Advice;
  readonly params: unknown;
  readonly isRewritten: boolean;
}

const NAME = /^[A-Za-z0-9_.-]{1,32}$/;
const CODE = /^[A-Z0-9_]{1,64}$/;
const DEFAULT_TIMEOUT_MS = 1_000;
const MAX_TIMEOUT_MS = 600_000;
const MAX_ADVISERS = 16;
const MAX_APPROVERS = 16;
const MAX_REASON = 1_000;

const DEFAULT_CODES: Readonly<Record<AdviserAnswer['effect'], string>> = {
  permit: 'PERMITTED',
  deny: 'POLICY_DENIED',
  abstain: 'ABSTAINED',
  ask: 'APPROVAL_ASKED',
  rewrite: 'REWRITTEN',
};

/** @throws TypeError, RangeError naming the malformed adviser */
export function checkAdvisers(advisers: readonly Adviser[]): void {
  if (advisers.length > MAX_ADVISERS) throw new RangeError(`expected at most ${MAX_ADVISERS} advisers`);
  const names = new Set<string>();
  for (const adviser of advisers) {
    const { name, timeoutMs, policyDigest } = adviser;
    if (typeof name !== 'string' || !NAME.test(name))
      throw new RangeError(`adviser: name: expected 1 to 32 characters of A-Z a-z 0-9 _ . -`);
    if (names.has(name)) throw new RangeError(`adviser ${name}: there is another of this name`);
    names.add(name);
    if (typeof (adviser as Partial<Adviser>).advise !== 'function')
      throw new TypeError(`adviser ${name}: advise: expected a function`);
    if (timeoutMs !== undefined && !(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS))
      throw new RangeError(`adviser ${name}: timeoutMs: expected 1 to ${MAX_TIMEOUT_MS}`);
    if (policyDigest !== undefined && !isDigest(policyDigest))
      throw new TypeError(`adviser ${name}: policyDigest: expected a digest`);
  }
}

/**
 * Asks advisers in order. The first denial ends it; a rewrite is what later ones see; each `ask` adds its approvers.
 * @param signal - Aborting ends it with the signal's reason
 */
export async function askAdvisers(
  advisers: readonly Adviser[],
  call: AdvisedCall,
  signal?: AbortSignal,
): Promise<Advised> {
  const checks: PolicyCheck[] = [];
  const policies: { name: string; digest: { alg: string; b64: string } | null }[] = [];
  let { params } = call;
  let isRewritten = false;
  let denial: Advice['denial'];
  let approvers: readonly string[] | undefined;
  for (const adviser of advisers) {
    const { name } = adviser;
    // What an adviser changes of its copy changes nothing else.
    const answer = await askOne(adviser, { ...call, params: structuredClone(params) }, signal);
    const { effect, code = DEFAULT_CODES[effect], policyDigest: digest } = answer;
    policies.push({ name, digest: digest === undefined ? null : { alg: digest.alg, b64: digest.b64 } });
    // An allow has no check that failed: who approves makes good what was asked.
    checks.push({ check: `adviser:${name}`, result: effect === 'deny' ? 'fail' : 'pass', code });
    if (effect === 'deny') {
      denial = { code, reason: `${name}: ${printable(answer.reason ?? 'denied', MAX_REASON)}` };
      break;
    }
    if (effect === 'rewrite') {
      ({ params } = answer);
      isRewritten = true;
    }
    if (effect === 'ask')
      approvers = [...new Set([...(approvers ?? []), ...(answer.approvers ?? ['human:*'])])].slice(
        0,
        MAX_APPROVERS,
      );
  }
  const advice = {
    policyId: GATE_POLICY_ID,
    policyDigest: sha256Digest(canonicalBytes({ policy_id: GATE_POLICY_ID, advisers: policies })),
    checks,
    ...(denial === undefined ? {} : { denial }),
    ...(approvers === undefined ? {} : { approval: { approvers } }),
  };
  return { advice, params, isRewritten };
}

type SoundAnswer = AdviserAnswer & { readonly policyDigest: Digest | undefined };

/** Whatever goes wrong is a denial. */
async function askOne(
  adviser: Adviser,
  call: AdvisedCall,
  outer: AbortSignal | undefined,
): Promise<SoundAnswer> {
  outer?.throwIfAborted();
  const { timeoutMs = DEFAULT_TIMEOUT_MS, policyDigest } = adviser;
  const abort = new AbortController();
  const denied = (code: string, reason: string): SoundAnswer => ({
    effect: 'deny',
    code,
    reason,
    policyDigest,
  });
  let timer: NodeJS.Timeout | undefined;
  let pass: (() => void) | undefined;
  const late = new Promise<SoundAnswer>((resolve, reject) => {
    timer = setTimeout(() => {
      resolve(denied('ADVISER_TIMEOUT', `did not answer within ${timeoutMs} ms`));
      abort.abort(new Error('the adviser is late'));
    }, timeoutMs);
    pass = () => {
      reject(outer?.reason as Error);
      abort.abort(outer?.reason);
    };
    outer?.addEventListener('abort', pass);
  });
  const asked = (async (): Promise<SoundAnswer> => {
    try {
      const answer: unknown = await adviser.advise(call, { signal: abort.signal });
      const fault = findFault(answer);
      if (fault !== undefined) return denied('ADVISER_INVALID', fault);
      return { policyDigest, ...(answer as AdviserAnswer) };
    } catch (error) {
      return denied('ADVISER_FAILED', error instanceof Error ? error.message : String(error));
    }
  })();
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
    if (pass !== undefined) outer?.removeEventListener('abort', pass);
  }
}

/** Why an answer cannot be used, in words. */
function findFault(answer: unknown): string | undefined {
  if (typeof answer !== 'object' || answer === null) return `answered with ${describeValue(answer)}`;
  const { effect, code, reason, approvers, policyDigest, params } = answer as Partial<AdviserAnswer>;
  if (typeof effect !== 'string' || !Object.hasOwn(DEFAULT_CODES, effect))
    return `answered with the effect ${printable(describeValue(effect), 80)}`;
  if (code !== undefined && (typeof code !== 'string' || !CODE.test(code)))
    return 'answered with a malformed code';
  if (reason !== undefined && typeof reason !== 'string') return 'answered with a malformed reason';
  if (policyDigest !== undefined && !isDigest(policyDigest)) return 'answered with a malformed policy digest';
  if (approvers !== undefined && !isPatterns(approvers)) return 'answered with malformed approvers';
  if (effect !== 'rewrite') return undefined;
  try {
    canonicalBytesWithout(params);
    return undefined;
  } catch {
    return 'answered with parameters that are no JSON';
  }
}

function isPatterns(approvers: unknown): boolean {
  return (
    Array.isArray(approvers) &&
    approvers.length > 0 &&
    approvers.length <= MAX_APPROVERS &&
    approvers.every((each) => typeof each === 'string' && isPrincipalPattern(each))
  );
}
