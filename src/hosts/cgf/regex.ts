/**
 * Whether Python's `re.search` finds a pattern in a text, in time that is linear in both: patterns come from policy bundles, and a
 * backtracking matcher takes years for a few characters of a hostile one. All states are followed at once (Thompson). What this cannot
 * express (look-around, back references, flags, atomic groups) and what is too large is not decided, never guessed.
 */

/** The longest pattern that is decided, in UTF-16 code units. */
const MAX_PATTERN_LENGTH = 1024;
/** The longest text that is searched, in UTF-16 code units. */
const MAX_SUBJECT_LENGTH = 16_384;
/** Repetitions are written out: how many instructions a pattern may come to. */
const MAX_INSTRUCTIONS = 4096;
/** Instructions times characters. */
const MAX_STEPS = 4_000_000;
/** The same of all searches for one decision, and of those of all decisions that need more: these share it, with more for each byte. */
const DECISION_STEPS = 100_000;
const SHARED_STEPS = 40_000_000;
const STEPS_PER_BYTE = 100;
const MAX_NESTING = 64;

/** How much may still be searched. What one decision costs leaves every other its own steps: nobody hides one by making many. */
export class SearchBudget {
  #own = DECISION_STEPS;
  #shared: number;

  /** @param bytes - Of the files whose texts are searched. */
  constructor(bytes = 0) {
    this.#shared = SHARED_STEPS + STEPS_PER_BYTE * bytes;
  }

  /** What is searched from here on is for another decision. */
  beginDecision(): void {
    this.#own = DECISION_STEPS;
  }

  /** Whether there was so much left. */
  spend(steps: number): boolean {
    if (steps <= this.#own) {
      this.#own -= steps;
      return true;
    }
    if (steps > this.#shared) return false;
    this.#shared -= steps;
    return true;
  }
}

/** Whether `re.search(pattern, text)` finds something; undefined where that is not decided. */
export function pythonSearch(
  pattern: string,
  text: string,
  budget = new SearchBudget(),
): boolean | undefined {
  if (pattern.length > MAX_PATTERN_LENGTH || text.length > MAX_SUBJECT_LENGTH) return undefined;
  if (!budget.spend(pattern.length)) return undefined;
  let program: readonly Instruction[];
  try {
    program = new Compiler(pattern).compile();
  } catch (error) {
    if (!(error instanceof NotDecided)) throw error;
    // It may have been written out as far as one that is searched.
    budget.spend(MAX_INSTRUCTIONS);
    return undefined;
  }
  const characters = [...text].map((character) => character.codePointAt(0)!);
  const steps = program.length * (characters.length + 1);
  if (steps > MAX_STEPS || !budget.spend(steps)) return undefined;
  return search(program, characters);
}

class NotDecided extends Error {}

type Test = (codePoint: number) => boolean;
type Place = 'start' | 'end' | 'absolute-end' | 'boundary' | 'no-boundary';
type Instruction =
  | { readonly op: 'take'; readonly test: Test }
  | { readonly op: 'at'; readonly place: Place }
  | { op: 'split'; targets: number[] }
  | { readonly op: 'match' };

type Node =
  | { readonly kind: 'take'; readonly test: Test }
  | { readonly kind: 'at'; readonly place: Place }
  | { readonly kind: 'all'; readonly parts: readonly Node[] }
  | { readonly kind: 'any'; readonly parts: readonly Node[] }
  | { readonly kind: 'repeat'; readonly part: Node; readonly least: number; readonly most: number };

const NEWLINE = 0x0a;
const isDigit: Test = (c) => (c < 128 ? c >= 0x30 && c <= 0x39 : /^\p{Nd}$/u.test(String.fromCodePoint(c)));
const isWord: Test = (c) => /^[\p{L}\p{N}_]$/u.test(String.fromCodePoint(c));
const isSpace: Test = (c) =>
  (c >= 9 && c <= 13) ||
  (c >= 0x1c && c <= 0x20) ||
  c === 0x85 ||
  (c >= 128 && c !== 0xfeff && /^\s$/u.test(String.fromCodePoint(c)));

const CLASSES: Readonly<Record<string, Test>> = {
  d: isDigit,
  w: isWord,
  s: isSpace,
  D: (c) => !isDigit(c),
  W: (c) => !isWord(c),
  S: (c) => !isSpace(c),
};

const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7 };

class Compiler {
  readonly #characters: readonly string[];
  readonly #program: Instruction[] = [];
  #at = 0;
  #depth = 0;

  constructor(pattern: string) {
    this.#characters = [...pattern];
  }

  compile(): readonly Instruction[] {
    const node = this.#alternatives();
    if (this.#at < this.#characters.length) throw new NotDecided();
    this.#write(node);
    this.#emit({ op: 'match' });
    return this.#program;
  }

  get #next(): string | undefined {
    return this.#characters[this.#at];
  }

  #take(): string {
    const character = this.#next;
    if (character === undefined) throw new NotDecided();
    this.#at++;
    return character;
  }

  #skip(character: string): boolean {
    if (this.#next !== character) return false;
    this.#at++;
    return true;
  }

  #alternatives(): Node {
    if (++this.#depth > MAX_NESTING) throw new NotDecided();
    const parts = [this.#sequence()];
    while (this.#skip('|')) parts.push(this.#sequence());
    this.#depth--;
    return parts.length === 1 ? parts[0]! : { kind: 'any', parts };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#next !== undefined && this.#next !== '|' && this.#next !== ')') parts.push(this.#repeated());
    return { kind: 'all', parts };
  }

  #repeated(): Node {
    if (this.#range() !== undefined) throw new NotDecided();
    let part = this.#atom();
    for (let isRepeated = false; ; isRepeated = true) {
      const range = this.#range();
      if (range === undefined) return part;
      // Python refuses a repeated repetition; `+` after one makes it possessive, and `?` changes nothing of what is found.
      if (isRepeated || part.kind === 'at' || this.#next === '+') throw new NotDecided();
      this.#skip('?');
      part = { kind: 'repeat', part, ...range };
    }
  }

  #range(): { least: number; most: number } | undefined {
    if (this.#skip('*')) return { least: 0, most: Infinity };
    if (this.#skip('+')) return { least: 1, most: Infinity };
    if (this.#skip('?')) return { least: 0, most: 1 };
    if (this.#next !== '{') return undefined;
    const rest = this.#characters.slice(this.#at, this.#at + 12).join('');
    const match = /^\{(\d{0,4})(?:(,)(\d{0,4}))?\}/.exec(rest);
    // A brace that begins no repetition stands for itself.
    if (match === null || match[0] === '{}' || match[0] === '{,}') {
      if (match === null && /^\{\d*(?:,\d*)?/.exec(rest)?.[0].length === rest.length) throw new NotDecided();
      if (match?.[0] === '{,}') throw new NotDecided();
      return undefined;
    }
    this.#at += match[0].length;
    const least = Number(match[1] || '0');
    const most = match[2] === undefined ? least : match[3] === '' ? Infinity : Number(match[3]);
    if (most < least) throw new NotDecided();
    return { least, most };
  }

  #atom(): Node {
    const character = this.#take();
    switch (character) {
      case '.':
        return { kind: 'take', test: (c) => c !== NEWLINE };
      case '^':
        return { kind: 'at', place: 'start' };
      case '$':
        return { kind: 'at', place: 'end' };
      case '(':
        return this.#group();
      case '[':
        return { kind: 'take', test: this.#set() };
      case '\\':
        return this.#escape();
      case '*':
      case '+':
      case '?':
        throw new NotDecided();
      default:
        return literal(character.codePointAt(0)!);
    }
  }

  #group(): Node {
    if (this.#skip('?')) {
      if (this.#skip('P')) {
        if (!this.#skip('<')) throw new NotDecided();
        while (/\w/.test(this.#next ?? '')) this.#at++;
        if (!this.#skip('>')) throw new NotDecided();
      } else if (!this.#skip(':')) throw new NotDecided();
    }
    const node = this.#alternatives();
    if (!this.#skip(')')) throw new NotDecided();
    // So that a group of one anchor is no anchor by itself.
    return { kind: 'all', parts: [node] };
  }

  #escape(): Node {
    const character = this.#take();
    if (character === 'A') return { kind: 'at', place: 'start' };
    if (character === 'Z') return { kind: 'at', place: 'absolute-end' };
    if (character === 'b') return { kind: 'at', place: 'boundary' };
    if (character === 'B') return { kind: 'at', place: 'no-boundary' };
    const test = CLASSES[character];
    return test === undefined ? literal(this.#escaped(character)) : { kind: 'take', test };
  }

  /** The character that a letter after `\` stands for. */
  #escaped(character: string): number {
    const control = CONTROLS[character];
    if (control !== undefined) return control;
    const length = { x: 2, u: 4, U: 8 }[character];
    if (length !== undefined) {
      const digits = this.#characters.slice(this.#at, this.#at + length).join('');
      if (!/^[0-9A-Fa-f]+$/.test(digits) || digits.length !== length) throw new NotDecided();
      this.#at += length;
      return Number.parseInt(digits, 16);
    }
    // Other letters and digits are back references, octal numbers, and what Python refuses.
    if (/[0-9A-Za-z]/.test(character)) throw new NotDecided();
    return character.codePointAt(0)!;
  }

  #set(): Test {
    const isNegated = this.#skip('^');
    const tests: Test[] = [];
    for (let isFirst = true; ; isFirst = false) {
      const character = this.#take();
      if (character === ']' && !isFirst) break;
      const from = this.#setMember(character);
      if (typeof from === 'function') {
        tests.push(from);
        continue;
      }
      const following = this.#characters[this.#at + 1];
      if (this.#next !== '-' || following === undefined || following === ']') {
        tests.push((c) => c === from);
        continue;
      }
      this.#at++;
      const to = this.#setMember(this.#take());
      if (typeof to === 'function' || to < from) throw new NotDecided();
      tests.push((c) => c >= from && c <= to);
    }
    const isIn: Test = (c) => tests.some((test) => test(c));
    return isNegated ? (c) => !isIn(c) : isIn;
  }

  #setMember(character: string): Test | number {
    if (character !== '\\') return character.codePointAt(0)!;
    const escaped = this.#take();
    if (escaped === 'b') return 8;
    return CLASSES[escaped] ?? this.#escaped(escaped);
  }

  #emit(instruction: Instruction): number {
    if (this.#program.length >= MAX_INSTRUCTIONS) throw new NotDecided();
    return this.#program.push(instruction) - 1;
  }

  #write(node: Node): void {
    switch (node.kind) {
      case 'take':
        this.#emit({ op: 'take', test: node.test });
        return;
      case 'at':
        this.#emit({ op: 'at', place: node.place });
        return;
      case 'all':
        for (const part of node.parts) this.#write(part);
        return;
      case 'any':
        this.#writeAny(node.parts);
        return;
      case 'repeat':
        this.#writeRepeat(node.part, node.least, node.most);
    }
  }

  #writeAny(parts: readonly Node[]): void {
    const split: Instruction = { op: 'split', targets: [] };
    this.#emit(split);
    const ends: { op: 'split'; targets: number[] }[] = [];
    for (const part of parts) {
      split.targets.push(this.#program.length);
      this.#write(part);
      const end = { op: 'split' as const, targets: [] };
      this.#emit(end);
      ends.push(end);
    }
    for (const end of ends) end.targets.push(this.#program.length);
  }

  #writeRepeat(part: Node, least: number, most: number): void {
    for (let i = 0; i < least; i++) this.#once(part);
    if (most === Infinity) {
      const split: Instruction = { op: 'split', targets: [] };
      const start = this.#emit(split);
      split.targets.push(this.#program.length);
      this.#write(part);
      this.#emit({ op: 'split', targets: [start] });
      split.targets.push(this.#program.length);
      return;
    }
    const splits: { op: 'split'; targets: number[] }[] = [];
    for (let i = least; i < most; i++) {
      const split = { op: 'split' as const, targets: [] as number[] };
      this.#emit(split);
      split.targets.push(this.#program.length);
      splits.push(split);
      this.#write(part);
    }
    for (const split of splits) split.targets.push(this.#program.length);
  }

  /** A repetition of nothing costs an instruction all the same, so that its count is bounded. */
  #once(part: Node): void {
    this.#emit({ op: 'split', targets: [this.#program.length + 1] });
    this.#write(part);
  }
}

function literal(codePoint: number): Node {
  return { kind: 'take', test: (c) => c === codePoint };
}

function search(program: readonly Instruction[], text: readonly number[]): boolean {
  // Per instruction the position at which it was last entered: each is followed once a character.
  const seen = new Int32Array(program.length).fill(-1);
  let current: number[] = [];
  for (let at = 0; at <= text.length; at++) {
    const next: number[] = [];
    // A search may begin at every character.
    const open = [...current, 0];
    while (open.length > 0) {
      const pc = open.pop()!;
      if (seen[pc] === at) continue;
      seen[pc] = at;
      const instruction = program[pc]!;
      if (instruction.op === 'match') return true;
      if (instruction.op === 'split') open.push(...instruction.targets);
      else if (instruction.op === 'at') {
        if (holds(instruction.place, text, at)) open.push(pc + 1);
      } else if (at < text.length && instruction.test(text[at]!)) next.push(pc + 1);
    }
    current = next;
  }
  return false;
}

function holds(place: Place, text: readonly number[], at: number): boolean {
  switch (place) {
    case 'start':
      return at === 0;
    case 'absolute-end':
      return at === text.length;
    case 'end':
      return at === text.length || (at === text.length - 1 && text[at] === NEWLINE);
    case 'boundary':
      return isBoundary(text, at);
    case 'no-boundary':
      // `\B` in an empty text depends on Python's version; there is no boundary in one.
      return !isBoundary(text, at);
  }
}

function isBoundary(text: readonly number[], at: number): boolean {
  const before = at > 0 && isWord(text[at - 1]!);
  const after = at < text.length && isWord(text[at]!);
  return before !== after;
}
