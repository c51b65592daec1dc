/**
 * Archives as files: tar, with gzip or without, read whole from memory and bounded before anything is unpacked. Nothing is written
 * anywhere, so no path can lead anywhere; an unsafe one is reported all the same, since other tools would follow it.
 *
 * Own code: reading a host is synchronous, the well-kept packages read streams, and those that do not pass over what must be reported
 * here: a wrong checksum, a name that is there twice, a link, bytes after the end. What it takes is ustar with the extended headers of
 * POSIX (pax) or of GNU for long names, as node-tar, GNU tar and bsdtar write them for files.
 */

import { gunzipSync } from 'node:zlib';

import { decodeUtf8 } from '../../base/bytes/text.js';
import { withoutTrailing } from '../../base/bytes/trim.js';
import type { HostFile } from './host.js';

/** The most bytes that an archive may unpack to. */
const MAX_UNPACKED_BYTES = 128 * 1024 * 1024;
export const MAX_MEMBER_BYTES = 64 * 1024 * 1024;
export const MAX_MEMBERS = 1024;
/** The most bytes that one compressed byte may unpack to, where there are more than {@link FREE_BYTES}. */
export const MAX_RATIO = 200;
/** Small archives of blanks compress better than that. */
const FREE_BYTES = 1024 * 1024;

const BLOCK = 512;
const MAX_PATH_LENGTH = 1024;
const MAX_EXTENDED_BYTES = 65_536;
type ArchiveCode =
  | 'ARCHIVE_CORRUPT'
  | 'ARCHIVE_TOO_LARGE'
  | 'ARCHIVE_TRUNCATED'
  | 'ARCHIVE_TRAILING_DATA'
  | 'ARCHIVE_MEMBERS_TOO_MANY'
  | 'ARCHIVE_MEMBER_TOO_LARGE'
  | 'ARCHIVE_MEMBER_KIND'
  | 'ARCHIVE_MEMBER_REPEATED'
  | 'ARCHIVE_PATH_UNSAFE';
interface ArchiveFault {
  readonly code: ArchiveCode;
  /** The member's path, where it is about one. That member is left out. */
  readonly member?: string | undefined;
  readonly expected: string;
  readonly actual: string;
}

export interface Archive {
  readonly members: readonly HostFile[];
  readonly faults: readonly ArchiveFault[];
}

/** Whether the bytes begin as a gzip file or as a tar archive does. */
export function isArchive(bytes: Uint8Array): boolean {
  return isGzip(bytes) || (bytes.length >= BLOCK && decodeUtf8(bytes, 257, 262) === 'ustar');
}

/** The members of an archive that are files. Folders are passed over. Nothing in the bytes makes it throw. */
export function readArchive(file: HostFile): Archive {
  const unpacked = isGzip(file.bytes) ? unzip(file.bytes) : file.bytes;
  if (!(unpacked instanceof Uint8Array)) return { members: [], faults: [unpacked] };
  return new TarReader(file.name, unpacked).run();
}

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

function unzip(bytes: Uint8Array): Uint8Array | ArchiveFault {
  const limit = Math.min(MAX_UNPACKED_BYTES, Math.max(FREE_BYTES, bytes.length * MAX_RATIO));
  try {
    return gunzipSync(bytes, { maxOutputLength: limit });
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE')
      return {
        code: 'ARCHIVE_TOO_LARGE',
        expected: `at most ${limit} bytes from ${bytes.length} compressed ones`,
        actual: 'more',
      };
    return { code: 'ARCHIVE_CORRUPT', expected: 'gzip', actual: 'bytes that do not unpack' };
  }
}

class TarReader {
  readonly #name: string;
  readonly #bytes: Uint8Array;
  readonly #members: HostFile[] = [];
  readonly #paths = new Set<string>();
  readonly #faults: ArchiveFault[] = [];

  constructor(name: string, bytes: Uint8Array) {
    this.#name = name;
    this.#bytes = bytes;
  }

  run(): Archive {
    const bytes = this.#bytes;
    let extended = new Map<string, string>();
    let at = 0;
    for (let count = 0; ; count++) {
      if (at + BLOCK > bytes.length)
        return this.#stop('ARCHIVE_TRUNCATED', 'two empty blocks at the end', 'none');
      const header = bytes.subarray(at, at + BLOCK);
      if (header.every((byte) => byte === 0)) break;
      if (count === MAX_MEMBERS)
        return this.#stop('ARCHIVE_MEMBERS_TOO_MANY', `at most ${MAX_MEMBERS} members`, 'more');
      if (!isChecked(header))
        return this.#stop('ARCHIVE_CORRUPT', 'a header with its checksum', 'another checksum');
      const size = sizeOf(header, extended);
      if (size === undefined) return this.#stop('ARCHIVE_CORRUPT', 'the size of a member', 'no octal number');
      const from = at + BLOCK;
      const path = extended.get('path') ?? pathOf(header);
      if (size > MAX_MEMBER_BYTES)
        return this.#stop('ARCHIVE_MEMBER_TOO_LARGE', `at most ${MAX_MEMBER_BYTES} bytes`, `${size}`, path);
      if (from + size > bytes.length)
        return this.#stop('ARCHIVE_TRUNCATED', `${size} bytes`, `${bytes.length - from}`, path);
      const content = bytes.subarray(from, from + size);
      at = from + Math.ceil(size / BLOCK) * BLOCK;
      const kind = String.fromCharCode(header[156]!);
      if (kind === 'x') {
        const records = size > MAX_EXTENDED_BYTES ? undefined : readExtended(content);
        if (records === undefined)
          return this.#stop('ARCHIVE_CORRUPT', 'records of an extended header', 'something else');
        extended = records;
        continue;
      }
      if (kind === 'L') {
        const name = size > MAX_EXTENDED_BYTES ? '' : textOf(content, 0, size);
        if (name === '') return this.#stop('ARCHIVE_CORRUPT', 'a long name', 'none, or one that is too long');
        extended = new Map([['path', name]]);
        continue;
      }
      extended = new Map();
      if (kind !== 'g') this.#member(kind, path, content);
    }
    if (bytes.subarray(at).some((byte) => byte !== 0))
      return this.#stop('ARCHIVE_TRAILING_DATA', 'nothing after the end', `${bytes.length - at} bytes`);
    return { members: this.#members, faults: this.#faults };
  }

  #member(kind: string, path: string, bytes: Uint8Array): void {
    const isFile = kind === '0' || kind === '\0' || kind === '7';
    const plain = withoutTrailing(path.replace(/^(?:\.\/)+/, ''), '/');
    if (plain !== '' && plain !== '.' && !isSafe(plain))
      this.#fault('ARCHIVE_PATH_UNSAFE', 'a path below the archive', 'another path', path);
    else if (kind === '5') return;
    else if (!isFile) this.#fault('ARCHIVE_MEMBER_KIND', 'a file or a folder', kindName(kind), path);
    else if (this.#paths.has(plain))
      this.#fault('ARCHIVE_MEMBER_REPEATED', 'each path once', 'one twice', path);
    else {
      this.#paths.add(plain);
      this.#members.push({ name: `${this.#name}!${plain}`, bytes });
    }
  }

  #fault(code: ArchiveCode, expected: string, actual: string, member?: string): void {
    this.#faults.push({ code, expected, actual, member });
  }

  #stop(code: ArchiveCode, expected: string, actual: string, member?: string): Archive {
    this.#fault(code, expected, actual, member);
    return { members: this.#members, faults: this.#faults };
  }
}

/** Relative, without `..`, without what other systems take for a root or a separator. */
function isSafe(path: string): boolean {
  if (path === '' || path.length > MAX_PATH_LENGTH || /[\0-\x1f\\]/.test(path)) return false;
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return false;
  return path.split('/').every((part) => part !== '' && part !== '..' && part !== '.');
}

function kindName(kind: string): string {
  const names: Readonly<Record<string, string>> = {
    '1': 'a hard link',
    '2': 'a symbolic link',
    '6': 'a FIFO',
  };
  return names[kind] ?? (kind === '3' || kind === '4' ? 'a device' : 'a member of another kind');
}

/** The sum of all bytes of the header, those of the sum itself as blanks. */
function isChecked(header: Uint8Array): boolean {
  const stated = octal(header, 148, 8);
  const sum = header.reduce((all, byte, i) => all + (i >= 148 && i < 156 ? 0x20 : byte), 0);
  return stated === sum;
}

function sizeOf(header: Uint8Array, extended: ReadonlyMap<string, string>): number | undefined {
  const text = extended.get('size');
  if (text === undefined) return octal(header, 124, 12);
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function octal(header: Uint8Array, from: number, length: number): number | undefined {
  const match = /^ *([0-7]{1,11})[ \0]*$/.exec(decodeUtf8(header, from, from + length));
  return match === null ? undefined : Number.parseInt(match[1]!, 8);
}

function pathOf(header: Uint8Array): string {
  const name = textOf(header, 0, 100);
  const prefix = decodeUtf8(header, 257, 263) === 'ustar\0' ? textOf(header, 345, 155) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

function textOf(header: Uint8Array, from: number, length: number): string {
  const field = header.subarray(from, from + length);
  const end = field.indexOf(0);
  return decodeUtf8(end < 0 ? field : field.subarray(0, end));
}

/** Records `LENGTH KEY=VALUE\n` of pax, LENGTH being that of the whole record. */
function readExtended(bytes: Uint8Array): Map<string, string> | undefined {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length;) {
    const blank = bytes.indexOf(0x20, at);
    const digits = blank < 0 || blank - at > 6 ? '' : decodeUtf8(bytes, at, blank);
    const end = at + Number(/^[1-9]\d*$/.test(digits) ? digits : 0);
    if (end <= blank || end > bytes.length || bytes[end - 1] !== 0x0a) return undefined;
    const [, key = '', value = ''] = /^([^=]+)=([^]*)$/.exec(decodeUtf8(bytes, blank + 1, end - 1)) ?? [];
    if (key === '') return undefined;
    records.set(key, value);
    at = end;
  }
  return records;
}
