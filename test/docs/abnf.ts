/** As much of ABNF (RFC 5234, RFC 7405) as docs/spec/northroot.abnf uses: reads rules, none recursive, as regular expressions. */

type Grammar = ReadonlyMap<string, string>;

/** The rules of RFC 5234 Appendix B that the grammar uses, as regular expressions. */
const CORE_PATTERNS: ReadonlyMap<string, string> = new Map([
  ['alpha', '[A-Za-z]'],
  ['digit', '[0-9]'],
  ['lf', '\\n'],
  ['sp', ' '],
]);

/** Rules by lower-case name, each its elements. */
export function parseAbnf(text: string): Grammar {
  const rules = new Map<string, string>();
  let current: string | undefined;
  for (const line of text.split('\n')) {
    const content = line.replace(/"[^"]*"|;.*$/g, (found) => (found.startsWith(';') ? '' : found)).trimEnd();
    const [, name, rest = ''] = /^([A-Za-z][A-Za-z0-9-]*) *= *(.*)$/.exec(content) ?? [];
    if (name !== undefined) {
      current = name.toLowerCase();
      if (rules.has(current)) throw new Error(`two rules ${current}`);
      rules.set(current, rest);
    } else if (content.trim() !== '') {
      if (current === undefined || !line.startsWith(' ')) throw new Error(`no rule: ${line}`);
      rules.set(current, `${rules.get(current)} ${content.trim()}`);
    }
  }
  return rules;
}

const TOKEN =
  /\s+|(%s"[^"]*"|"[^"]*"|%x[0-9A-F]+(?:-[0-9A-F]+)?|[0-9]*\*[0-9]*|[0-9]+|[A-Za-z][A-Za-z0-9-]*|[/()[\]])/y;

/** A regular expression, of the whole text, for a rule. */
export function patternOf(grammar: Grammar, rule: string): RegExp {
  return new RegExp(`^(?:${sourceOf(grammar, rule.toLowerCase(), [])})$`, 'u');
}

function sourceOf(grammar: Grammar, rule: string, above: readonly string[]): string {
  const core = CORE_PATTERNS.get(rule);
  if (core !== undefined) return core;
  const elements = grammar.get(rule);
  if (elements === undefined) throw new Error(`no rule ${rule}`);
  if (above.includes(rule)) throw new Error(`${rule} is recursive`);
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < elements.length) {
    const match = TOKEN.exec(elements);
    if (match === null) throw new Error(`no ABNF: ${elements}`);
    if (match[1] !== undefined) tokens.push(match[1]);
  }
  let at = 0;

  function alternation(close?: string): string {
    const parts = [''];
    while (at < tokens.length && tokens[at] !== close) {
      if (tokens[at] === '/') {
        at += 1;
        parts.push('');
      } else parts[parts.length - 1] += repetition();
    }
    at += 1;
    return `(?:${parts.join('|')})`;
  }

  function repetition(): string {
    const [, least, star, most] = /^([0-9]*)(\*?)([0-9]*)$/.exec(tokens[at] ?? '') ?? [];
    if (least === undefined) return element();
    at += 1;
    const range = star === '' ? `{${least}}` : `{${least === '' ? '0' : least},${most}}`;
    return `(?:${element()})${range}`;
  }

  function element(): string {
    const token = tokens[at++] ?? '';
    if (token === '(') return alternation(')');
    if (token === '[') return `${alternation(']')}?`;
    if (token.startsWith('%x')) {
      const [from = '', to] = token.slice(2).split('-');
      return to === undefined ? `\\u{${from}}` : `[\\u{${from}}-\\u{${to}}]`;
    }
    const quoted = /^(%s)?"(.*)"$/.exec(token);
    if (quoted !== null) {
      const [, isExact, letters = ''] = quoted;
      // Without %s a string matches in any case: no rule means that.
      if (isExact === undefined && /[A-Za-z]/.test(letters)) throw new Error(`${token} matches in any case`);
      return letters.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    }
    return sourceOf(grammar, token.toLowerCase(), [...above, rule]);
  }

  return alternation();
}
