/** As much of CDDL (RFC 8610) as docs/spec/northroot.cddl uses: reads rules and holds JSON values against them. */

type Type =
  | { readonly kind: 'literal'; readonly value: string | number }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'range'; readonly from: number; readonly to: number }
  | { readonly kind: 'control'; readonly on: Type; readonly operator: string; readonly by: string }
  | { readonly kind: 'choice'; readonly of: readonly Type[] }
  | { readonly kind: 'map' | 'array' | 'group'; readonly entries: readonly Entry[] };

interface Entry {
  readonly least: number;
  readonly most: number;
  readonly key: Type | undefined;
  readonly type: Type;
}

export type Rules = ReadonlyMap<string, Type>;

const TOKEN =
  /\s+|;[^\n]*\n|("(?:[^"\\]|\\.)*"|-?[0-9]+|\.\.|\.[a-z]+|=>|[A-Za-z$@_](?:[A-Za-z0-9_@$-]|\.(?=[A-Za-z]))*|[=/{}[\](),:?*])/y;

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) throw new Error(`no token of CDDL: ${text.slice(at, at + 40)}`);
    if (match[1] !== undefined) tokens.push(match[1]);
  }
  return tokens;
}

export function parseCddl(text: string): Rules {
  const tokens = tokensOf(text);
  let at = 0;
  const peek = (offset = 0) => tokens[at + offset] ?? '';
  const take = (expected?: string): string => {
    const token = tokens[at++] ?? '';
    if (expected !== undefined && token !== expected) throw new Error(`${expected} expected, not ${token}`);
    return token;
  };
  const isName = (token: string) => /^[A-Za-z$@_]/.test(token);

  function type(): Type {
    const of = [controlled()];
    while (peek() === '/') {
      take();
      of.push(controlled());
    }
    return of.length === 1 && of[0] !== undefined ? of[0] : { kind: 'choice', of };
  }

  function controlled(): Type {
    const on = single();
    if (peek() === '..') {
      take();
      const to = single();
      if (on.kind !== 'literal' || to.kind !== 'literal') throw new Error('a range of no numbers');
      return { kind: 'range', from: Number(on.value), to: Number(to.value) };
    }
    if (!peek().startsWith('.')) return on;
    const operator = take();
    return { kind: 'control', on, operator, by: JSON.parse(take()) as string };
  }

  function single(): Type {
    const token = take();
    if (token === '{' || token === '[') {
      const close = token === '{' ? '}' : ']';
      return { kind: token === '{' ? 'map' : 'array', entries: entries(close) };
    }
    if (token === '(') {
      const isGroup = peek(1) === ':' || peek(1) === ',' || peek() === '?';
      if (isGroup) return { kind: 'group', entries: entries(')') };
      const inner = type();
      take(')');
      return inner;
    }
    if (token.startsWith('"') || /^-?[0-9]/.test(token)) {
      return { kind: 'literal', value: JSON.parse(token) as string | number };
    }
    if (!isName(token)) throw new Error(`no type: ${token}`);
    return { kind: 'name', name: token };
  }

  function entries(close: string): Entry[] {
    const list: Entry[] = [];
    while (peek() !== close) {
      let [least, most] = [1, 1];
      if (peek() === '?') {
        take();
        least = 0;
      } else if (peek() === '*' || (/^[0-9]+$/.test(peek()) && peek(1) === '*')) {
        least = peek() === '*' ? 0 : Number(take());
        take('*');
        most = /^[0-9]+$/.test(peek()) ? Number(take()) : Infinity;
      }
      const first = type();
      const isKey = peek() === ':' || peek() === '=>';
      if (isKey) take();
      list.push({ least, most, key: isKey ? first : undefined, type: isKey ? type() : first });
      if (peek() === ',') take();
    }
    take(close);
    return list;
  }

  const rules = new Map<string, Type>();
  while (at < tokens.length) {
    const name = take();
    if (!isName(name) || rules.has(name)) throw new Error(`no new rule: ${name}`);
    take('=');
    rules.set(name, type());
  }
  return rules;
}

const patterns = new Map<string, RegExp>();

function patternOf(source: string): RegExp {
  const known = patterns.get(source) ?? new RegExp(`^(?:${source})$`, 'u');
  patterns.set(source, known);
  return known;
}

/** Whether a JSON value is what the rule says. */
export function matches(rules: Rules, rule: string, value: unknown): boolean {
  function named(name: string): Type {
    const found = rules.get(name);
    if (found === undefined) throw new Error(`no rule ${name}`);
    return found;
  }

  /** The entries of a map, those of its groups in place of these. */
  function flat(entries: readonly Entry[]): Entry[] {
    return entries.flatMap((entry) => {
      const group =
        entry.key === undefined && entry.type.kind === 'name' ? named(entry.type.name) : undefined;
      return group?.kind === 'group' ? flat(group.entries) : [entry];
    });
  }

  function isMap(entries: readonly Entry[], each: object): boolean {
    const counts = new Map(flat(entries).map((entry) => [entry, 0]));
    const isAllTaken = Object.entries(each).every(([member, content]) => {
      const taking = [...counts.keys()];
      const entry =
        taking.find(({ key }) => key?.kind === 'literal' && key.value === member) ??
        taking.find(({ key }) => key !== undefined && key.kind !== 'literal' && is(key, member));
      if (entry === undefined) return false;
      counts.set(entry, (counts.get(entry) ?? 0) + 1);
      return is(entry.type, content);
    });
    return isAllTaken && [...counts].every(([{ least, most }, count]) => count >= least && count <= most);
  }

  function is(type: Type, each: unknown): boolean {
    switch (type.kind) {
      case 'literal':
        return each === type.value;
      case 'choice':
        return type.of.some((one) => is(one, each));
      case 'range':
        return Number.isInteger(each) && Number(each) >= type.from && Number(each) <= type.to;
      case 'control':
        if (type.operator === '.ne') return is(type.on, each) && each !== type.by;
        if (type.operator !== '.regexp') throw new Error(`unknown control ${type.operator}`);
        return is(type.on, each) && patternOf(type.by).test(each as string);
      case 'map':
        return typeof each === 'object' && each !== null && !Array.isArray(each) && isMap(type.entries, each);
      case 'array': {
        const [entry] = type.entries;
        if (entry === undefined || type.entries.length > 1) throw new Error('an array of several entries');
        const isLong = Array.isArray(each) && each.length >= entry.least && each.length <= entry.most;
        return isLong && each.every((item) => is(entry.type, item));
      }
      case 'group':
        throw new Error('a group is no type');
      case 'name':
        return PRELUDE[type.name]?.(each) ?? is(named(type.name), each);
    }
  }

  return is(named(rule), value);
}

/** The types of RFC 8610 Appendix D that the rules use. */
const PRELUDE: Readonly<Record<string, ((value: unknown) => boolean) | undefined>> = {
  text: (value) => typeof value === 'string',
  bool: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  any: () => true,
};
