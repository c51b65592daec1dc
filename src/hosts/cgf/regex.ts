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
/** Whether a place in a text is the one that an anchor stands for. */
type Anchor = (text: readonly number[], at: number) => boolean;
type Split = { readonly targets: number[] };
type Instruction = { readonly test: Test } | { readonly holds: Anchor } | Split | 'match';

/** Writes what a part of a pattern is, each time that it is repeated. */
interface Part {
  readonly isAnchor?: boolean;
  write(): void;
}

const NEWLINE = 0x0a;
const isDigit: Test = (c) => (c < 128 ? c >= 0x30 && c <= 0x39 : /^\p{Nd}$/u.test(String.fromCodePoint(c)));
const isWord: Test = (c) => /^[\p{L}\p{N}_]$/u.test(String.fromCodePoint(c));
const isSpace: Test = (c) =>
  (c >= 9 && c <= 13) ||
  (c >= 0x1c && c <= 0x20) ||
  c === 0x85 ||
  (c >= 128 && c !== 0xfeff && /^\s$/u.test(String.fromCodePoint(c)));

const isBoundary: Anchor = (text, at) => {
  const before = at > 0 && isWord(text[at - 1]!);
  const after = at < text.length && isWord(text[at]!);
  return before !== after;
};
const isStart: Anchor = (_text, at) => at === 0;
const isEnd: Anchor = (text, at) => at === text.length || (at === text.length - 1 && text[at] === NEWLINE);
const ANCHORS: Readonly<Record<string, Anchor>> = {
  A: isStart,
  Z: (text, at) => at === text.length,
  b: isBoundary,
  // `\B` in an empty text depends on Python's version; there is no boundary in one.
  B: (text, at) => !isBoundary(text, at),
};

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
    node.write();
    this.#emit('match');
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

  #alternatives(): Part {
    if (++this.#depth > MAX_NESTING) throw new NotDecided();
    const parts = [this.#sequence()];
    while (this.#skip('|')) parts.push(this.#sequence());
    this.#depth--;
    return parts.length === 1 ? parts[0]! : { write: () => this.#writeAny(parts) };
  }

  #sequence(): Part {
    const parts: Part[] = [];
    while (this.#next !== undefined && this.#next !== '|' && this.#next !== ')') parts.push(this.#repeated());
    return {
      write: () => {
        for (const part of parts) part.write();
      },
    };
  }

  #repeated(): Part {
    if (this.#range() !== undefined) throw new NotDecided();
    let part = this.#atom();
    for (let isRepeated = false; ; isRepeated = true) {
      const range = this.#range();
      if (range === undefined) return part;
      // Python refuses a repeated repetition; `+` after one makes it possessive, and `?` changes nothing of what is found.
      if (isRepeated || part.isAnchor === true || this.#next === '+') throw new NotDecided();
      this.#skip('?');
      const once = part;
      part = { write: () => this.#writeRepeat(once, range.least, range.most) };
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

  #atom(): Part {
    const character = this.#take();
    switch (character) {
      case '.':
        return this.#one((c) => c !== NEWLINE);
      case '^':
        return this.#anchor(isStart);
      case '$':
        return this.#anchor(isEnd);
      case '(':
        return this.#group();
      case '[':
        return this.#one(this.#set());
      case '\\':
        return this.#escape();
      case '*':
      case '+':
      case '?':
        throw new NotDecided();
      default:
        return this.#literal(character.codePointAt(0)!);
    }
  }

  #one(test: Test): Part {
    return { write: () => this.#emit({ test }) };
  }

  #literal(codePoint: number): Part {
    return this.#one((c) => c === codePoint);
  }

  #anchor(holds: Anchor): Part {
    return { isAnchor: true, write: () => this.#emit({ holds }) };
  }

  #group(): Part {
    if (this.#skip('?')) {
      if (this.#skip('P')) {
        if (!this.#skip('<')) throw new NotDecided();
        while (/\w/.test(this.#next ?? '')) this.#at++;
        if (!this.#skip('>')) throw new NotDecided();
      } else if (!this.#skip(':')) throw new NotDecided();
    }
    const part = this.#alternatives();
    if (!this.#skip(')')) throw new NotDecided();
    return part;
  }

  #escape(): Part {
    const character = this.#take();
    const anchor = ANCHORS[character];
    if (anchor !== undefined) return this.#anchor(anchor);
    const test = CLASSES[character];
    return test === undefined ? this.#literal(this.#escaped(character)) : this.#one(test);
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

  #emit(instruction: Instruction): void {
    if (this.#program.length >= MAX_INSTRUCTIONS) throw new NotDecided();
    this.#program.push(instruction);
  }

  #split(...targets: number[]): Split {
    const split = { targets };
    this.#emit(split);
    return split;
  }

  /** Lets splits continue with what is written next. */
  #joinHere(...splits: readonly Split[]): void {
    for (const { targets } of splits) targets.push(this.#program.length);
  }

  #writeAny(parts: readonly Part[]): void {
    const split = this.#split();
    const ends = parts.map((part) => {
      this.#joinHere(split);
      part.write();
      return this.#split();
    });
    this.#joinHere(...ends);
  }

  #writeRepeat(part: Part, least: number, most: number): void {
    for (let i = 0; i < least; i++) {
      // A repetition of nothing costs an instruction all the same, so that its count is bounded.
      this.#split(this.#program.length + 1);
      part.write();
    }
    const splits: Split[] = [];
    for (let i = least; i < (most === Infinity ? least + 1 : most); i++) {
      const start = this.#program.length;
      splits.push(this.#split(start + 1));
      part.write();
      if (most === Infinity) this.#split(start);
    }
    this.#joinHere(...splits);
  }
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
      if (instruction === 'match') return true;
      if ('targets' in instruction) open.push(...instruction.targets);
      else if ('holds' in instruction) {
        if (instruction.holds(text, at)) open.push(pc + 1);
      } else if (at < text.length && instruction.test(text[at]!)) next.push(pc + 1);
    }
    current = next;
  }
  return false;
}
