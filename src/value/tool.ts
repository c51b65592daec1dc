/**
 * Tools, SPEC §2: the names of what is called, and the patterns by which a grant allows them.
 *
 * A tool pattern is a ToolName; or a prefix of one and one final `*`, which stands for one or more characters; or `*`. So
 * `fs.*` matches `fs.read` and not `fs.` (itself a ToolName).
 */

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
