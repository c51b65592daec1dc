/**
 * Tools, SPEC §2: the names of what is called, and the patterns by which a grant allows them.
 *
 * A tool pattern is a ToolName; or a prefix of one and one final `*`, which stands for one or more characters; or `*`. So
 * `fs.*` matches `fs.read` and not `fs.` (itself a ToolName).
 */

import { encodeHex } from '../bytes/encoding.js';
import { sha256 } from '../bytes/sha256.js';
import { encodeUtf8 } from '../bytes/text.js';

const MAX_TOOL_NAME_LENGTH = 128;
const TOOL_NAME = /^[A-Za-z0-9_./:@+=#~-]{1,128}$/;
const TOOL_PATTERN = /^(?:[A-Za-z0-9_./:@+=#~-]{1,128}|[A-Za-z0-9_./:@+=#~-]{0,128}\*)$/;

/** Whether `text` is a ToolName. */
export function isToolName(text: string): boolean {
  return TOOL_NAME.test(text);
}

/** Whether `text` is a ToolPattern. */
export function isToolPattern(text: string): boolean {
  return TOOL_PATTERN.test(text);
}

/** What a name that is too long keeps of its beginning: with `~~` and 64 digits, 128 characters. */
const KEPT_LENGTH = 62;

/**
 * A foreign system's name of a tool as a ToolName, the same wherever it is imported. Every character that a ToolName does not have,
 * and `~`, is written as `~` and two upper-case hexadecimal digits for each of its UTF-8 bytes; of what is then longer than 128
 * characters the first 62 are kept, followed by `~~` and the SHA-256 of the whole name (its UTF-8 bytes, before escaping) in 64
 * lower-case hexadecimal digits. Different names give different ToolNames; a name that was cut cannot be read back.
 *
 * @param name - At least one character.
 * @throws TypeError when `name` is not a string.
 * @throws RangeError when it is empty or holds a lone surrogate, which has no UTF-8.
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

/** Whether a ToolPattern matches a ToolName. Both are taken to be well-formed. */
export function matchesToolPattern(pattern: string, tool: string): boolean {
  if (!pattern.endsWith('*')) return pattern === tool;
  return tool.length >= pattern.length && tool.startsWith(pattern.slice(0, -1));
}

/**
 * Whether every tool that `child` matches is matched by `parent` (SPEC §8 rule 9). Both are taken to be well-formed
 * ToolPatterns.
 */
export function coversToolPattern(parent: string, child: string): boolean {
  if (!child.endsWith('*')) return matchesToolPattern(parent, child);
  // A prefix of the greatest length leaves no room for the `*`: such a pattern matches nothing, which everything covers.
  if (child.length > MAX_TOOL_NAME_LENGTH) return true;
  return parent.endsWith('*') && child.startsWith(parent.slice(0, -1));
}
