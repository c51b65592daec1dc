/** Archives: what is in them, and what is wrong with them, each by its code. */

import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeUtf8 } from '../../src/base/bytes/text.js';
import {
  isArchive,
  MAX_MEMBERS,
  MAX_MEMBER_BYTES,
  MAX_RATIO,
  readArchive,
  type Archive,
} from '../../src/hosts/shared/archive.js';
import { inTime } from '../in-time.js';
import { tar, tarGz } from './clasper/kit.js';

function readBytes(bytes: Uint8Array): Archive {
  return readArchive({ name: 'a.tar.gz', bytes });
}

function namesOf({ members }: Archive): string[] {
  return members.map(({ name }) => name);
}

function codesOf({ faults }: Archive): string[] {
  return faults.map(({ code }) => code);
}

describe('members', () => {
  it('are named by the archive and their path, and are what was packed', () => {
    const archive = readBytes(
      tarGz([
        { name: './a.json', text: '{}' },
        { name: 'b/', kind: '5' },
        { name: 'b/c', text: 'x' },
      ]),
    );
    expect(namesOf(archive)).toEqual(['a.tar.gz!a.json', 'a.tar.gz!b/c']);
    expect(archive.members.map(({ bytes }) => decodeUtf8(bytes))).toEqual(['{}', 'x']);
    expect(archive.faults).toEqual([]);
  });

  it('may be in a tar archive that is not packed', () => {
    const bytes = tar([{ name: 'a', text: 'x' }]);
    expect(isArchive(bytes)).toBe(true);
    expect(namesOf(readBytes(bytes))).toEqual(['a.tar.gz!a']);
  });

  it('have long names as GNU tar writes them, which are held to be safe too', () => {
    const path = `${'folder/'.repeat(20)}traces.jsonl`;
    const named = (name: string) => [
      { name: '././@LongLink', kind: 'L', text: `${name}\0` },
      { name: name.slice(0, 100), text: '{}\n' },
    ];
    const archive = readArchive({
      name: 'a.tar.gz',
      bytes: tarGz([...named(path), { name: 'b', text: 'x' }]),
    });
    expect(archive.faults).toEqual([]);
    expect(archive.members.map(({ name }) => name)).toEqual([`a.tar.gz!${path}`, 'a.tar.gz!b']);
    const unsafe = readArchive({ name: 'a.tar.gz', bytes: tarGz(named(`../${path}`)) });
    expect(unsafe.faults).toMatchObject([{ code: 'ARCHIVE_PATH_UNSAFE' }]);
    expect(unsafe.members).toEqual([]);
  });

  it('have long names by extended headers', () => {
    const name = `${'long/'.repeat(40)}a`;
    const record = (body: string): string => {
      const length = body.length + 5;
      return `${length} ${body}\n`.padStart(length, '0');
    };
    const archive = readBytes(
      tarGz([
        { name: 'x', kind: 'x', text: record(`path=${name}`) },
        { name: 'cut', text: 'y' },
      ]),
    );
    expect(archive.faults).toEqual([]);
    expect(namesOf(archive)).toEqual([`a.tar.gz!${name}`]);
  });
});

describe('what is wrong', () => {
  it.each([
    ['../evil', 'up'],
    ['a/../../evil', 'up, inside'],
    ['/etc/passwd', 'absolute'],
    ['C:/evil', 'a drive'],
    ['a\\..\\evil', 'other separators'],
    ['a//b', 'an empty part'],
    ['a\nb', 'a control'],
  ])('%j is unsafe: %s', (name) => {
    const archive = readBytes(
      tarGz([
        { name, text: 'x' },
        { name: 'ok', text: 'y' },
      ]),
    );
    expect(codesOf(archive)).toEqual(['ARCHIVE_PATH_UNSAFE']);
    expect(namesOf(archive)).toEqual(['a.tar.gz!ok']);
  });

  it.each(['1', '2', '3', '4', '6', 'K', 'S'])('a member of kind %s is left out', (kind) => {
    const archive = readBytes(
      tarGz([
        { name: 'link', kind, link: '/etc/passwd' },
        { name: 'ok', text: 'y' },
      ]),
    );
    expect(codesOf(archive)).toEqual(['ARCHIVE_MEMBER_KIND']);
    expect(namesOf(archive)).toEqual(['a.tar.gz!ok']);
  });

  it('a path that is there twice: the first one counts', () => {
    const archive = readBytes(
      tarGz([
        { name: 'a', text: '1' },
        { name: './a', text: '2' },
      ]),
    );
    expect(codesOf(archive)).toEqual(['ARCHIVE_MEMBER_REPEATED']);
    expect(archive.members.map(({ bytes }) => decodeUtf8(bytes))).toEqual(['1']);
  });

  it('bytes that unpack to too many', () => {
    const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024));
    expect(bomb.length * MAX_RATIO).toBeLessThan(8 * 1024 * 1024);
    expect(codesOf(readBytes(bomb))).toEqual(['ARCHIVE_TOO_LARGE']);
  });

  it('too many members', () => {
    const members = Array.from({ length: MAX_MEMBERS + 1 }, (_, i) => ({ name: `f${i}` }));
    const archive = readBytes(tar(members));
    expect(codesOf(archive)).toEqual(['ARCHIVE_MEMBERS_TOO_MANY']);
    expect(archive.members).toHaveLength(MAX_MEMBERS);
  });

  it('a member that says that it is too large, or larger than the archive', () => {
    const says = (size: number): Uint8Array => {
      const bytes = Buffer.from(tar([{ name: 'a' }]));
      bytes.write(size.toString(8).padStart(11, '0'), 124);
      bytes.write('        ', 148);
      const sum = bytes.subarray(0, 512).reduce((all, byte) => all + byte, 0);
      bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
      return bytes;
    };
    expect(codesOf(readBytes(says(MAX_MEMBER_BYTES + 1)))).toEqual(['ARCHIVE_MEMBER_TOO_LARGE']);
    expect(codesOf(readBytes(says(4096)))).toEqual(['ARCHIVE_TRUNCATED']);
  });

  it('an end that is missing, and bytes after it', () => {
    expect(codesOf(readBytes(tar([{ name: 'a', text: 'x' }], 0)))).toEqual(['ARCHIVE_TRUNCATED']);
    const more = Buffer.concat([tar([{ name: 'a', text: 'x' }]), tar([{ name: 'b', text: 'y' }])]);
    const archive = readBytes(more);
    expect(codesOf(archive)).toEqual(['ARCHIVE_TRAILING_DATA']);
    expect(namesOf(archive)).toEqual(['a.tar.gz!a']);
  });

  it('a header that was changed, a packing that was cut', () => {
    const bytes = Buffer.from(tar([{ name: 'a', text: 'x' }]));
    bytes[0] = 0x62;
    expect(codesOf(readBytes(bytes))).toEqual(['ARCHIVE_CORRUPT']);
    const packed = tarGz([{ name: 'a', text: 'x' }]);
    expect(codesOf(readBytes(packed.subarray(0, packed.length - 12)))).toEqual(['ARCHIVE_CORRUPT']);
  });
});

it('nothing makes it throw', () => {
  const bytes = tar([{ name: 'a', text: 'x' }, { name: 'b', kind: 'x', text: '9 path=c\n' }, { name: 'd' }]);
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.boolean(), (at, byte, packed) => {
      const changed = Buffer.from(bytes);
      changed[at] = byte;
      const { members, faults } = readBytes(packed ? gzipSync(changed) : changed);
      expect(members.length + faults.length).toBeGreaterThan(0);
    }),
    { numRuns: 200 },
  );
});

it('a path that is all but slashes costs what its length does', () => {
  const name = `${'/'.repeat(65_000)}x\0`;
  const members = Array.from({ length: 500 }, () => [
    { name: 'long', kind: 'L', text: name },
    { name: 'cut' },
  ]).flat();
  const bytes = tar(members);
  expect(new Set(codesOf(inTime(() => readBytes(bytes))))).toEqual(new Set(['ARCHIVE_PATH_UNSAFE']));
});
