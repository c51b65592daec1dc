/**
 * Tool names, SPEC §2, and the patterns in grants. A pattern is a ToolName, or a prefix of one, perhaps empty, and a final `*` that
 * matches one or more characters: `fs.*` matches `fs.read` but not `fs.` (itself a ToolName).
 */

import { encodeHex } from '../bytes/encoding.js';
import { sha256 } from '../bytes/sha256.js';
import { encodeUtf8 } from '../bytes/text.js';

const MAX_TOOL_NAME_LENGTH = 128;
const TOOL_NAME = /^[A-Za-z0-9_./:@+=#~-]{1,128}$/;
const TOOL_PATTERN = /^(?:[A-Za-z0-9_./:@+=#~-]{1,128}|[A-Za-z0-9_./:@+=#~-]{0,128}\*)$/;

export function isToolName(text: string): boolean {
  return TOOL_NAME.test(text);
}

export function isToolPattern(text: string): boolean {
  return TOOL_PATTERN.test(text);
}

/** The prefix kept of a long name: with `~~` and 64 digits, 128 characters. */
const KEPT_LENGTH = 62;

/**
 * The ToolName of a foreign tool's name, the same wherever it is imported. `~` and every character outside ToolName become `~` and two
 * upper-case hex digits per UTF-8 byte. A result of more than 128 characters is cut to 62, followed by `~~` and the SHA-256 of
 * the name's UTF-8 in lower-case hex. Different names give different ToolNames.
 *
 * @throws TypeError if `name` is no string.
 * @throws RangeError if it is empty or has a lone surrogate.
 */
export function escapeToolName(name: string): string {
  if (typeof name !== 'string') throw new TypeError(`expected a string, found ${typeof name}`);
  if (name === '') throw new RangeError('expected the name of a tool, found an empty text');
  if (/\p{Surrogate}/u.test(name)) throw new RangeError('expected a name without lone surrogates');
  const escaped = name.replace(/[^A-Za-z0-9_./:@+=#-]/gu, escapeCharacter);
  if (escaped.length <= MAX_TOOL_NAME_LENGTH) return escaped;
  return `${escaped.slice(0, KEPT_LENGTH)}~~${encodeHex(sha256(encodeUtf8(name)))}`;
}

function escapeCharacter(character: string): string {
  return encodeHex(encodeUtf8(character)).toUpperCase().replace(/../g, '~$&');
}

/** Whether a ToolPattern matches a ToolName. Both MUST be well-formed. */
export function matchesToolPattern(pattern: string, tool: string): boolean {
  if (!pattern.endsWith('*')) return pattern === tool;
  return tool.length >= pattern.length && tool.startsWith(pattern.slice(0, -1));
}

/** Whether `parent` matches every tool that `child` matches (SPEC §8 rule 9). Both MUST be well-formed ToolPatterns. */
export function coversToolPattern(parent: string, child: string): boolean {
  if (!child.endsWith('*')) return matchesToolPattern(parent, child);
  // A prefix of maximal length leaves no room for the `*`: the pattern matches nothing, and is covered by any.
  if (child.length > MAX_TOOL_NAME_LENGTH) return true;
  return parent.endsWith('*') && child.startsWith(parent.slice(0, -1));
}
