/** Tokens of the service: each says for whom its bearer may speak, and about which tools. The file has their digests alone. */

import { randomBytes } from 'node:crypto';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonValue } from '../../base/json/value.js';
import { formatDigest, sha256Digest } from '../../base/value/digest.js';
import { isPrincipalId, isPrincipalPattern, matchesPrincipalPattern } from '../../base/value/principal.js';
import { isToolPattern } from '../../base/value/tool.js';
import { makeToolSet, matchesTool, type ToolSet } from '../../rules/bounds/tool-set.js';

/** What a bearer may do: decide on calls and settle them; answer requests for approval; read; take slices for another ledger. */
export type TokenUse = 'call' | 'approve' | 'read' | 'slice';

export interface Bearer {
  /** For logs and metrics. */
  readonly name: string;
  /** Whom it speaks for where a request names nobody. */
  readonly principal: string | undefined;
  mayBe(principal: string): boolean;
  readonly mayCall: (tool: string) => boolean;
  may(use: TokenUse): boolean;
}

export interface TokenEntry {
  /** 1 to 64 characters of `[A-Za-z0-9._-]`. */
  readonly name: string;
  /** The SHA-256 of the token's text, `sha-256:…`. */
  readonly token: string;
  /** Patterns of principals. A single principal is whom it speaks for by default. */
  readonly principals: readonly string[];
  /** Patterns of tools. Default: all. */
  readonly tools?: readonly string[];
  /** Default: `call`. */
  readonly may?: readonly TokenUse[];
}

const USES: readonly string[] = ['call', 'approve', 'read', 'slice'];
const NAME = /^[A-Za-z0-9._-]{1,64}$/;
const DIGEST = /^sha-256:[A-Za-z0-9_-]{43}$/;
const MAX_TOKENS = 10_000;
const MAX_PATTERNS = 1_024;

/** Bearers by the digest of their token. */
export class Tokens {
  readonly #bearers: ReadonlyMap<string, Bearer>;

  private constructor(bearers: ReadonlyMap<string, Bearer>) {
    this.#bearers = bearers;
  }

  /**
   * Reads `{"tokens":[{"name","token","principals","tools"?,"may"?}…]}`.
   * @throws NorthrootError `TOKENS_MALFORMED`, saying where
   */
  static parse(bytes: Uint8Array): Tokens {
    return new Tokens(new Map(parseTokens(bytes).map((entry) => [entry.token, bearerOf(entry)])));
  }

  /** The bearer of a token; undefined for an unknown one. */
  find(token: string): Bearer | undefined {
    // Equal digests mean equal tokens, so that comparing takes no longer for one that begins like another.
    return this.#bearers.get(formatDigest(sha256Digest(encodeUtf8(token))));
  }
}

/** A new token, and its entry for a tokens file. @throws RangeError for a malformed member */
export function makeToken(entry: Omit<TokenEntry, 'token'>): {
  readonly token: string;
  readonly entry: TokenEntry;
} {
  const token = `nr_${randomBytes(32).toString('base64url')}`;
  const whole = { ...entry, token: formatDigest(sha256Digest(encodeUtf8(token))) };
  const fault = findFault(whole as unknown as JsonValue);
  if (fault !== undefined) throw new RangeError(fault);
  return { token, entry: whole };
}

/** @throws NorthrootError `TOKENS_MALFORMED` */
export function parseTokens(bytes: Uint8Array): readonly TokenEntry[] {
  const { value, issues } = ingestJson(bytes);
  if (value === undefined)
    throw malformed(`it is not sound JSON: ${issues[0]?.code} at byte ${issues[0]?.offset}`);
  const tokens = isJsonObject(value) && Object.keys(value).length === 1 ? value['tokens'] : undefined;
  if (!Array.isArray(tokens) || tokens.length > MAX_TOKENS)
    throw malformed(`expected {"tokens":[…]} with at most ${MAX_TOKENS} tokens`);
  const names = new Set<string>();
  for (const [index, each] of tokens.entries()) {
    const fault = findFault(each);
    if (fault !== undefined) throw malformed(`/tokens/${index}: ${fault}`);
    const { name } = each as unknown as TokenEntry;
    if (names.has(name)) throw malformed(`/tokens/${index}: there is another of this name`);
    names.add(name);
  }
  return tokens as unknown as readonly TokenEntry[];
}

function findFault(value: JsonValue): string | undefined {
  if (!isJsonObject(value)) return 'expected an object';
  const { name, token, principals, tools = ['*'], may = ['call'], ...rest } = value;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) return 'there is a member that no token has';
  if (typeof name !== 'string' || !NAME.test(name))
    return 'name: expected 1 to 64 characters of A-Z a-z 0-9 . _ -';
  if (typeof token !== 'string' || !DIGEST.test(token))
    return "token: expected the SHA-256 of the token's text, sha-256:…";
  if (!isListOf(principals, isPrincipalPattern)) return 'principals: expected patterns, such as agent:ci*';
  if (!isListOf(tools, isToolPattern)) return 'tools: expected patterns, such as fs.*';
  if (!isListOf(may, (use) => USES.includes(use))) return `may: expected ${USES.join(', ')}`;
  return undefined;
}

function isListOf(value: JsonValue | undefined, isOne: (text: string) => boolean): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_PATTERNS &&
    value.every((each) => typeof each === 'string' && isOne(each))
  );
}

function bearerOf({ name, principals, tools = ['*'], may = ['call'] }: TokenEntry): Bearer {
  const [only, other] = principals;
  return makeBearer(name, principals, makeToolSet(tools), may, other === undefined ? only : undefined);
}

/** Who opens the Unix socket of a service without tokens: its own user, who speaks for its own principal. */
export function ownBearer(principal: string | undefined): Bearer {
  return makeBearer(
    'socket',
    principal === undefined ? ['*'] : [principal],
    makeToolSet(['*']),
    ['call', 'approve', 'read'],
    principal,
  );
}

function makeBearer(
  name: string,
  principals: readonly string[],
  tools: ToolSet,
  may: readonly TokenUse[],
  principal: string | undefined,
): Bearer {
  return {
    name,
    principal: principal !== undefined && isPrincipalId(principal) ? principal : undefined,
    mayBe: (who) => principals.some((pattern) => matchesPrincipalPattern(pattern, who)),
    mayCall: (tool) => matchesTool(tools, tool),
    may: (use) => may.includes(use),
  };
}

function malformed(message: string): NorthrootError {
  return new NorthrootError('TOKENS_MALFORMED', `not a tokens file: ${message}`);
}
