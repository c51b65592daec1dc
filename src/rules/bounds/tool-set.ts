/**
 * Prepared tool patterns of a grant: matching a tool and covering a pattern (SPEC §2, §8 rules 4 and 9) cost one lookup for each prefix
 * length in use. Plain data: it can be saved.
 */

/** Patterns by kind. `*` is the prefix of length 0. */
export interface ToolSet {
  readonly names: ReadonlySet<string>;
  readonly prefixes: ReadonlySet<string>;
  readonly prefixLengths: readonly number[];
}

/** No ToolName is longer, so a prefix of this length leaves no room for the `*`. */
const MAX_TOOL_NAME_LENGTH = 128;

/** The tool of a slice (SPEC §8 rule 17): no wildcard allows it (rule 4). */
export const SLICE_TOOL = 'northroot.slice';

/** Prepares well-formed patterns. */
export function makeToolSet(patterns: readonly string[]): ToolSet {
  const names = setOf(patterns.filter((pattern) => !pattern.endsWith('*')));
  const prefixes = setOf(
    patterns.filter((pattern) => pattern.endsWith('*')).map((pattern) => pattern.slice(0, -1)),
  );
  const prefixLengths = [...new Set([...prefixes].map((prefix) => prefix.length))].sort((a, b) => a - b);
  return { names, prefixes, prefixLengths };
}

/** Shared: even an empty set takes some 200 bytes, and a ledger may have 100,000 rules. */
const NONE: ReadonlySet<string> = new Set();

function setOf(texts: readonly string[]): ReadonlySet<string> {
  return texts.length === 0 ? NONE : new Set(texts);
}

/** Whether some pattern matches the tool. A final `*` matches one or more characters. */
export function matchesTool(set: ToolSet, tool: string): boolean {
  return set.names.has(tool) || hasPrefixOf(set, tool, tool.length - 1);
}

/** Whether some pattern allows the tool: {@link SLICE_TOOL} only by its whole name. */
export function allowsTool(set: ToolSet, tool: string): boolean {
  return tool === SLICE_TOOL ? set.names.has(tool) : matchesTool(set, tool);
}

/** Whether one of the patterns matches every tool that `pattern` matches. */
export function coversPattern(set: ToolSet, pattern: string): boolean {
  if (!pattern.endsWith('*')) return allowsTool(set, pattern);
  const prefix = pattern.slice(0, -1);
  return prefix.length >= MAX_TOOL_NAME_LENGTH || hasPrefixOf(set, prefix, prefix.length);
}

function hasPrefixOf(set: ToolSet, text: string, longest: number): boolean {
  for (const length of set.prefixLengths) {
    if (length > longest) return false;
    if (set.prefixes.has(text.slice(0, length))) return true;
  }
  return false;
}
