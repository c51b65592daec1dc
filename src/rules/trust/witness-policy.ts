/**
 * The C2SP trust policy file (https://c2sp.org/tlog-policy): known logs and witnesses, and the quorum of witnesses that must cosign a
 * checkpoint. `format/note/verify-note.ts` verifies signatures.
 *
 *     log example.com/agents/prod+…
 *     witness X1 x1.example+…
 *     witness X2 x2.example+… https://x2.example/
 *     group X any X1 X2
 *     quorum X
 *
 * The file is octets. An item in UTF-8 is kept as text; in any other item an octet above 0x7f becomes the lone surrogate U+DC00 + octet, so
 * that different items are different texts.
 */

import { equalBytes } from '../../base/bytes/compare.js';
import { printable } from '../../base/bytes/printable.js';
import { decodeLatin1, decodeUtf8, encodeLatin1, encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { checkPublicKey, describeKeyFault, formatPublicKey } from '../../format/key/public-key.js';
import { readVkey, tryUnknownVkeyType } from '../../format/key/vkey.js';
import { canBeLogKey, canBeWitnessKey, type NoteKey, parseNoteKey } from '../../format/note/note-key.js';
import type { SignatureBackend } from '../../format/signature/backend.js';

/** A trusted log. The name in the vkey is its origin. */
export interface PolicyLog {
  /** Type 0x01 or 0x06. */
  readonly vkey: string;
  readonly url?: string;
}

export interface PolicyWitness {
  /** Its name in the policy, without a meaning elsewhere. */
  readonly name: string;
  /** Type 0x04 or 0x06. */
  readonly vkey: string;
  readonly url?: string;
}

/** A group: it has cosigned if at least `threshold` of its members have. */
export interface PolicyGroup {
  readonly name: string;
  /** 1 to the number of members. */
  readonly threshold: number;
  /** Names of earlier witnesses and groups. No name is in two groups. */
  readonly members: readonly string[];
}

/** A log or witness with a vkey of an unknown type: no signature by it counts. */
export interface SkippedPolicyKey {
  readonly role: 'log' | 'witness';
  /** A witness's name in the policy, or the name in a log's vkey. */
  readonly name: string;
  /** The type of its vkey, as in `0x02`. */
  readonly type: string;
  readonly line: number;
}

/** A parsed policy file. Plain data. */
export interface WitnessPolicy {
  readonly logs: readonly PolicyLog[];
  readonly witnesses: readonly PolicyWitness[];
  /** Keys of unknown types: such a log never signs, such a witness never cosigns. */
  readonly skipped?: readonly SkippedPolicyKey[];
  readonly groups: readonly PolicyGroup[];
  /** The witness or group that must cosign; undefined for none. */
  readonly quorum: string | undefined;
}

export interface WitnessPolicyKeys {
  /** In the order of the policy's `logs`. */
  readonly logs: readonly NoteKey[];
  /** In the order of the policy's `witnesses`. */
  readonly witnesses: readonly NoteKey[];
}

/** The largest policy file in bytes. */
export const MAX_WITNESS_POLICY_BYTES = 1024 * 1024;
/** The maximum of logs, witnesses and groups together; C2SP requires at least 32 of each. */
export const MAX_WITNESS_POLICY_DEFINITIONS = 1_000;

const NO_QUORUM = 'none';
const NEWLINE = 0x0a;
const SHOWN_QUORUM = 400;

/**
 * Reads a policy file, strictly.
 *
 * A vkey of an unknown type is skipped, and listed in `skipped`. One of a known type that is malformed, or weak (SPEC §5), is refused.
 *
 * @throws NorthrootError `WITNESS_POLICY_INVALID`
 */
export function parseWitnessPolicy(bytes: Uint8Array): WitnessPolicy {
  const reader = new PolicyReader();
  for (const [index, line] of splitLines(bytes).entries()) reader.take(line, index + 1);
  return reader.finish();
}

/**
 * Prepares the keys of a policy.
 *
 * @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED`: never for a result of {@link parseWitnessPolicy}
 */
export function witnessPolicyKeys(policy: WitnessPolicy, backend?: SignatureBackend): WitnessPolicyKeys {
  return {
    logs: policy.logs.map(({ vkey }) => parseNoteKey(vkey, backend)),
    witnesses: policy.witnesses.map(({ vkey }) => parseNoteKey(vkey, backend)),
  };
}

/**
 * Whether a checkpoint has the cosignatures that a policy requires.
 *
 * @param cosigned - Whether the witness of that name in the policy cosigned it; called once for each witness.
 */
export function meetsQuorum(policy: WitnessPolicy, cosigned: (witnessName: string) => boolean): boolean {
  const witnessed = new Set<string>();
  for (const { name } of policy.witnesses) if (cosigned(name)) witnessed.add(name);
  // A group comes after its members, so one pass is enough.
  for (const { name, threshold, members } of policy.groups)
    if (members.filter((member) => witnessed.has(member)).length >= threshold) witnessed.add(name);
  return policy.quorum === undefined || witnessed.has(policy.quorum);
}

/** Whether a policy names logs, also of unknown types: one of them must then have signed. */
export function namesLogs({ logs, skipped = [] }: WitnessPolicy): boolean {
  return logs.length > 0 || skipped.some(({ role }) => role === 'log');
}

/** The skipped lines of a policy, each as one printable line. */
export function describeSkipped({ skipped = [] }: WitnessPolicy): string[] {
  return skipped.map(({ role, name, type, line }) => {
    const effect = role === 'log' ? 'nothing is taken for signed by it' : 'it counts as not having cosigned';
    return `line ${line}: the ${role} ${printable(name, 100)} has a key of the unknown type ${type}: ${effect}`;
  });
}

/** The quorum of a policy as one printable line, as in `all of (2 of (X1, X2, X3), any of (Y1, Y2))`. */
export function describeQuorum({ groups, quorum }: WitnessPolicy): string {
  if (quorum === undefined) return 'no cosignature';
  const words = new Map<string, string>();
  const say = (name: string): string => words.get(name) ?? printable(name, 80);
  for (const { name, threshold, members } of groups) {
    const count = threshold === members.length ? 'all' : threshold === 1 ? 'any' : `${threshold}`;
    const whole = `${count} of (${members.map(say).join(', ')})`;
    words.set(name, members.length === 1 ? say(members[0] as string) : printable(whole, SHOWN_QUORUM));
  }
  return say(quorum);
}

class PolicyReader {
  readonly #logs: PolicyLog[] = [];
  readonly #witnesses: PolicyWitness[] = [];
  readonly #groups: PolicyGroup[] = [];
  /** For each witness or group whether it is in a group. */
  readonly #isMember = new Map<string, boolean>();
  readonly #skipped: SkippedPolicyKey[] = [];
  readonly #keys = { log: new Set<string>(), witness: new Set<string>() };
  #quorum: string | undefined;
  #line = 0;

  take(line: string, number: number): void {
    this.#line = number;
    const items = line.split(/[ \t]+/).filter((item) => item !== '');
    if (items[0] === undefined || items[0].startsWith('#')) return;
    const [keyword = '', ...rest] = items.map(toItem);
    if (keyword === 'log') this.#takeLog(rest);
    else if (keyword === 'witness') this.#takeWitness(rest);
    else if (keyword === 'group') this.#takeGroup(rest);
    else if (keyword === 'quorum') this.#takeQuorum(rest);
    else this.#refuse('log, witness, group, quorum or a comment', quote(keyword));
    const keys = this.#logs.length + this.#witnesses.length + this.#skipped.length;
    if (keys + this.#groups.length > MAX_WITNESS_POLICY_DEFINITIONS)
      this.#refuse(`at most ${MAX_WITNESS_POLICY_DEFINITIONS} logs, witnesses and groups`, 'one more');
  }

  finish(): WitnessPolicy {
    if (this.#quorum === undefined) this.#refuse('a quorum line in the file', 'none');
    return {
      logs: this.#logs,
      witnesses: this.#witnesses,
      ...(this.#skipped.length === 0 ? {} : { skipped: this.#skipped }),
      groups: this.#groups,
      quorum: this.#quorum === NO_QUORUM ? undefined : this.#quorum,
    };
  }

  #takeLog(items: readonly string[]): void {
    const [vkey, url] = items;
    if (vkey === undefined || items.length > 2) this.#refuse('log VKEY [URL]', count(items));
    this.#checkUrl(url);
    const name = vkey.slice(0, Math.max(0, vkey.indexOf('+')));
    if (this.#checkKey(vkey, 'log', name)) this.#logs.push({ vkey, ...(url === undefined ? {} : { url }) });
  }

  #takeWitness(items: readonly string[]): void {
    const [name, vkey, url] = items;
    if (name === undefined || vkey === undefined || items.length > 3)
      this.#refuse('witness NAME VKEY [URL]', count(items));
    this.#checkUrl(url);
    this.#define(name);
    if (this.#checkKey(vkey, 'witness', name))
      this.#witnesses.push({ name, vkey, ...(url === undefined ? {} : { url }) });
  }

  #takeGroup(items: readonly string[]): void {
    const [name, wanted, ...members] = items;
    if (name === undefined || wanted === undefined || members.length === 0)
      this.#refuse('group NAME all|any|K MEMBER...', count(items));
    const threshold = wanted === 'all' ? members.length : wanted === 'any' ? 1 : Number(wanted);
    const isNumber = wanted === 'all' || wanted === 'any' || /^[1-9]\d*$/.test(wanted);
    if (!isNumber || threshold > members.length)
      this.#refuse(`all, any or a number from 1 to ${members.length}`, quote(wanted));
    for (const member of members) {
      const isMember = this.#isMember.get(member);
      if (isMember === undefined)
        this.#refuse('members that are defined on lines before this one', quote(member));
      if (isMember) this.#refuse('each name as a member once', `${quote(member)} again`);
      this.#isMember.set(member, true);
    }
    this.#define(name);
    this.#groups.push({ name, threshold, members });
  }

  #takeQuorum(items: readonly string[]): void {
    const [name] = items;
    if (name === undefined || items.length > 1) this.#refuse('quorum NAME', count(items));
    if (this.#quorum !== undefined) this.#refuse('one quorum line', 'another');
    if (name !== NO_QUORUM && !this.#isMember.has(name))
      this.#refuse('none, or a name that is defined on a line before this one', quote(name));
    this.#quorum = name;
  }

  #define(name: string): void {
    if (name === NO_QUORUM) this.#refuse('another name than none', 'none');
    if (this.#isMember.has(name)) this.#refuse('each name defined once', `${quote(name)} again`);
    this.#isMember.set(name, false);
  }

  /** Whether the key counts: one of an unknown type does not, and is no error. */
  #checkKey(vkey: string, role: 'log' | 'witness', name: string): boolean {
    const what =
      role === 'log'
        ? "a log's vkey (type 0x01 or 0x06)"
        : "a witness's vkey (type 0x04 or 0x06, cosignatures)";
    let read;
    try {
      const unknown = tryUnknownVkeyType(vkey);
      if (unknown !== undefined) {
        this.#skipped.push({ role, name, type: unknown, line: this.#line });
        return false;
      }
      read = readVkey(vkey);
    } catch (error) {
      this.#refuse(what, `${quote(vkey)} (${(error as Error).message})`);
    }
    if (role === 'log' ? !canBeLogKey(read) : !canBeWitnessKey(read))
      this.#refuse(what, `${quote(vkey)} (type ${role === 'log' ? '0x04' : '0x01'})`);
    const fault = checkPublicKey(read.key);
    if (fault !== 'ok') this.#refuse(what, `${quote(vkey)} (${describeKeyFault(fault)})`);
    const key = formatPublicKey(read.key);
    if (this.#keys[role].has(key))
      this.#refuse('each key once', `${quote(vkey)}, whose key was given before`);
    this.#keys[role].add(key);
    return true;
  }

  /** Comments are separate lines: text after a vkey is a URL. */
  #checkUrl(url: string | undefined): void {
    if (url?.startsWith('#')) this.#refuse('a URL, or a comment on a line of its own', quote(url));
  }

  #refuse(expected: string, found: string): never {
    refuse(this.#line, expected, found);
  }
}

/** The lines of a file, each character one octet. */
function splitLines(bytes: Uint8Array): string[] {
  if (bytes.length > MAX_WITNESS_POLICY_BYTES)
    refuse(1, `at most ${MAX_WITNESS_POLICY_BYTES} bytes`, `${bytes.length}`);
  const octets = decodeLatin1(bytes);
  const control = /[\x00-\x08\x0b-\x1f\x7f]/.exec(octets);
  if (control !== null) {
    const line = octets.slice(0, control.index).split('\n').length;
    const found = octets.charCodeAt(control.index).toString(16).padStart(2, '0');
    refuse(line, 'no control characters but tabs and newlines', `the byte 0x${found}`);
  }
  const lines = octets.split('\n');
  if (bytes.length > 0 && bytes[bytes.length - 1] !== NEWLINE)
    refuse(lines.length, 'a newline at the end of the line', 'none');
  return lines.slice(0, -1);
}

function toItem(item: string): string {
  if (!/[\x80-\xff]/.test(item)) return item;
  const octets = encodeLatin1(item);
  const text = decodeUtf8(octets);
  // Invalid UTF-8 is read as replacement characters.
  if (equalBytes(encodeUtf8(text), octets)) return text;
  return item.replace(/[\x80-\xff]/g, (octet) => String.fromCharCode(0xdc00 + octet.charCodeAt(0)));
}

function count(items: readonly string[]): string {
  return `${items.length} ${items.length === 1 ? 'item' : 'items'} after the first word`;
}

function quote(item: string): string {
  return `"${printable(item, 100)}"`;
}

function refuse(line: number, expected: string, found: string): never {
  throw new NorthrootError(
    'WITNESS_POLICY_INVALID',
    `the witness policy is not valid in line ${line}: expected ${expected}, found ${found}`,
    { hint: 'the format is described at https://c2sp.org/tlog-policy' },
  );
}
