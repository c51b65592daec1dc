/**
 * The definitions of tools that a server lists. What a model was told of a tool is recorded with each call of it, as a check of the
 * decision, `tool:DIGEST`, so that a definition that changes later is seen.
 */

import { canonicalBytes } from '../../base/json/canonicalize.js';
import { isJsonObject, type JsonValue } from '../../base/json/value.js';
import { sha256Digest } from '../../base/value/digest.js';
import type { PolicyCheck } from '../../log/policy/evaluator.js';
import { keyOfText, memberOf } from './json-rpc.js';

/** What a decision records of the definition of a tool. */
export const DEFINITION_CODE = 'MCP_TOOL_DEFINITION';
/** Why a call of a pinned tool is denied. */
export const CHANGED_CODE = 'MCP_TOOL_CHANGED';
export const UNLISTED_CODE = 'MCP_TOOL_NOT_LISTED';

/** The most tools that are remembered of a server. */
const MAX_DEFINITIONS = 10_000;
const CHECK = /^tool:([A-Za-z0-9_-]{43})$/;

/** What a call finds of its tool's definition. */
export interface FoundDefinition {
  readonly checks: readonly PolicyCheck[];
  readonly denial?: { readonly code: string; readonly reason: string };
}

export class ToolDefinitions {
  /** The last of each tool, by the key of its name, as base64url of SHA-256. */
  readonly #listed = new Map<string, string>();
  /** Likewise, the first. */
  readonly #first = new Map<string, string>();

  /** Takes in a list of tools, or a page of one. @returns The names of those whose definition is another than in the list before */
  list(tools: readonly JsonValue[]): string[] {
    const changed: string[] = [];
    for (const tool of tools) {
      const name = memberOf(tool, 'name');
      if (typeof name !== 'string' || !isJsonObject(tool)) continue;
      const { _meta, ...definition } = tool;
      void _meta;
      const digest = tryDigest(definition);
      const key = keyOfText(name);
      const before = this.#listed.get(key);
      if (before !== undefined && before !== digest) changed.push(name);
      if (before === undefined && this.#listed.size === MAX_DEFINITIONS) continue;
      if (before === undefined) this.#first.set(key, digest);
      this.#listed.set(key, digest);
    }
    return changed;
  }

  /**
   * What is recorded of a call's tool.
   * @param pinned - The definition to hold it to; null for none yet; undefined where tools are not pinned
   */
  find(name: string, pinned: string | null | undefined): FoundDefinition {
    const digest = this.#listed.get(keyOfText(name));
    if (pinned === undefined) return { checks: digest === undefined ? [] : [checkOf(digest)] };
    if (digest === undefined)
      return {
        checks: [{ check: 'tool:unlisted', result: 'fail', code: UNLISTED_CODE }],
        denial: { code: UNLISTED_CODE, reason: 'the server has not listed this tool: list the tools first' },
      };
    if (pinned === null || pinned === digest) return { checks: [checkOf(digest)] };
    return {
      checks: [{ check: `tool:${digest}`, result: 'fail', code: CHANGED_CODE }],
      denial: {
        code: CHANGED_CODE,
        reason: `the definition of this tool is no longer sha-256:${pinned}, with which it was allowed before`,
      },
    };
  }

  /** The definition that was listed first; undefined for none. */
  firstOf(name: string): string | undefined {
    return this.#first.get(keyOfText(name));
  }
}

/** The definition that an authorization recorded; undefined for none. */
export function recordedDefinition(checks: JsonValue | undefined): string | undefined {
  if (!Array.isArray(checks)) return undefined;
  for (const each of checks) {
    const [check, code] = [memberOf(each, 'check'), memberOf(each, 'code')];
    const found = typeof check === 'string' ? CHECK.exec(check)?.[1] : undefined;
    if (found !== undefined && code === DEFINITION_CODE) return found;
  }
  return undefined;
}

function checkOf(digest: string): PolicyCheck {
  return { check: `tool:${digest}`, result: 'pass', code: DEFINITION_CODE };
}

/** What has no canonical form differs from all else, and from itself next time it does not matter. */
function tryDigest(definition: JsonValue): string {
  try {
    return sha256Digest(canonicalBytes(definition)).b64;
  } catch {
    return sha256Digest(new TextEncoder().encode(JSON.stringify(definition))).b64;
  }
}
