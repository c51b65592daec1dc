/**
 * Foreign names as the values of events (SPEC §2), each by one documented rule, so that the same name is written the same wherever it is
 * imported. Tools have their own rule in SPEC, `escapeToolName`.
 */

import { encodeHex } from '../../base/bytes/encoding.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { escapeToolName } from '../../base/value/tool.js';
import type { JsonObject } from '../../base/json/value.js';

export type PrincipalKind = 'human' | 'service' | 'agent' | 'org';

const MAX_PRINCIPAL_LENGTH = 255;
const MAX_SOURCE_ID_LENGTH = 512;
const MAX_UNIT_LENGTH = 64;
const MAX_CODE_LENGTH = 64;
/** `~~` and 64 hexadecimal digits. */
const HASH_LENGTH = 66;

/**
 * A foreign actor as a PrincipalID: the kind, then the parts joined by `/`, in which every character outside `A-Z a-z 0-9 . _ : @ + -`
 * is `~` and the two upper-case hexadecimal digits of each of its UTF-8 bytes. A part that is empty is `~`; `x~~` stands before a name that would begin with another character than `A-Z a-z 0-9`. What is then longer than
 * 255 characters keeps its first 189, `~~`, and the SHA-256 of the parts joined by `/` in 64 hexadecimal digits.
 */
export function principalOf(kind: PrincipalKind, ...parts: readonly string[]): string {
  const escaped = parts.map((part) => (part === '' ? '~' : escape(part, /[^A-Za-z0-9._:@+-]/gu))).join('/');
  const name = /^[A-Za-z0-9]/.test(escaped) ? escaped : `x~~${escaped}`;
  return `${kind}:${cut(name, parts.join('/'), MAX_PRINCIPAL_LENGTH)}`;
}

/** A claim's id as `source.id` has it: at most 512 characters; a longer one keeps its first 446, `~~`, and its SHA-256. */
export function sourceIdOf(id: string): string {
  return cut(wellFormed(id), id, MAX_SOURCE_ID_LENGTH);
}

/**
 * A foreign name as a Unit: in lower case, every run of other characters than `a-z 0-9 . _ -` as one `_`; with `x` before it where it does
 * not begin with a letter, cut to 64 characters. Different names may give one unit: their amounts are then added.
 */
export function unitOf(name: string): string {
  const unit = name.toLowerCase().replace(/[^a-z0-9._-]+/g, '_');
  return (/^[a-z]/.test(unit) ? unit : `x${unit}`).slice(0, MAX_UNIT_LENGTH);
}

/** A foreign code as a Code: in upper case, every run of other characters than `A-Z 0-9 _` as one `_`, cut to 64; `UNNAMED` for none. */
export function codeOf(name: string): string {
  const code = name.toUpperCase().replace(/[^A-Z0-9_]+/g, '_');
  return code === '' ? 'UNNAMED' : code.slice(0, MAX_CODE_LENGTH);
}

/** A foreign tool's name as a ToolName (SPEC §2, `escapeToolName`); `~` for an empty one. */
export function toolOf(name: string): string {
  return name === '' ? '~' : escapeToolName(wellFormed(name));
}

/** The most of a text that a fact keeps, in UTF-16 code units. */
const MAX_FACT_LENGTH = 256;

/** A text as a fact keeps it. */
export function factText(text: string, most = MAX_FACT_LENGTH): string {
  return wellFormed(text.slice(0, most));
}

/** The texts that there are, as facts by their names. */
export function factTexts(
  names: readonly string[],
  read: (name: string) => string | undefined,
  most?: number,
): JsonObject {
  const facts: Record<string, string> = {};
  for (const name of names) {
    const text = read(name);
    if (text !== undefined) facts[name] = factText(text, most);
  }
  return facts;
}

/** The text with U+FFFD for each lone surrogate, which no event can hold. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

function escape(text: string, characters: RegExp): string {
  return wellFormed(text).replace(characters, (character) =>
    encodeHex(encodeUtf8(character)).toUpperCase().replace(/../g, '~$&'),
  );
}

function cut(text: string, whole: string, length: number): string {
  if (text.length <= length) return text;
  return `${text.slice(0, length - HASH_LENGTH)}~~${encodeHex(sha256(encodeUtf8(wellFormed(whole))))}`;
}
