/** Contents beside a ledger: named by their digest, whole or not at all, and shown only where they agree with their name. */

import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  ContentFolder,
  type ContentOptions,
  contentsPath,
  KeptContents,
  readContent,
  writeContent,
} from '../../src/log/contents/content-folder.js';
import {
  ContentStore,
  DEFAULT_MAX_CONTENTS_BYTES,
  MAX_CONTENT_BYTES,
} from '../../src/log/contents/content-store.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { formatDigest, sha256Digest } from '../../src/base/value/digest.js';
import { times } from '../slow.js';
import { FaultyFileSystem, type Operation } from '../writer/file-systems.js';
import { codeOf, temporaryFolder } from '../writer/support.js';

const content = canonicalBytes({ env: 'prod', secret: 'x' });
const digest = sha256Digest(content);
const NAME = createHash('sha256').update(content).digest('hex');

/** A file where a ledger is expected. */
function place(): { ledger: string; folder: string; file: string } {
  const ledger = join(temporaryFolder(), 'ledger.jsonl');
  writeFileSync(ledger, '');
  return { ledger, folder: `${ledger}.contents`, file: join(`${ledger}.contents`, NAME) };
}

const isRoot = process.getuid?.() === 0;

describe('writeContent', () => {
  it('names the file by the hexadecimal SHA-256 of its bytes, for its owner alone', async () => {
    const { ledger, folder, file } = place();
    expect(await writeContent(ledger, content)).toEqual(digest);
    expect(readdirSync(folder)).toEqual([NAME]);
    expect(readFileSync(file).equals(content)).toBe(true);
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
    expect((statSync(folder).mode & 0o777).toString(8)).toBe('700');
    expect(await readContent(ledger, digest)).toEqual({ status: 'attached', bytes: Buffer.from(content) });
  });

  it('writes what is there already not again', async () => {
    const { ledger, file } = place();
    await writeContent(ledger, content);
    const before = statSync(file, { bigint: true });
    await writeContent(ledger, content);
    const after = statSync(file, { bigint: true });
    expect([after.ino, after.mtimeNs]).toEqual([before.ino, before.mtimeNs]);
  });

  it('is beside a folder of segments, however that is spelled', async () => {
    const folder = join(temporaryFolder(), 'segments');
    mkdirSync(folder);
    await writeContent(`${folder}//`, content);
    expect(contentsPath(`${folder}/`)).toBe(`${folder}.contents`);
    expect(readdirSync(`${folder}.contents`)).toEqual([NAME]);
    expect((await readContent(folder, digest)).status).toBe('attached');
  });

  it('needs a ledger, and leaves nothing where there is none', async () => {
    const { ledger, folder } = place();
    rmSync(ledger);
    expect(await codeOf(writeContent(ledger, content))).toBe('FILE_NOT_FOUND');
    expect(existsSync(folder)).toBe(false);
  });

  it('takes 1 MiB, and nothing beyond', async () => {
    const { ledger } = place();
    await writeContent(ledger, new Uint8Array(MAX_CONTENT_BYTES));
    expect(await codeOf(writeContent(ledger, new Uint8Array(MAX_CONTENT_BYTES + 1)))).toBe(
      'CONTENT_TOO_LARGE',
    );
  });

  it.each<[string, unknown, ContentOptions]>([
    ['no bytes', 'text', {}],
    ['an unknown option', content, { bytes: 1 } as ContentOptions],
    ['a size that is none', content, { maxBytes: '1' as never }],
  ])('refuses %s as misuse', async (_what, bytes, options) => {
    const { ledger, folder } = place();
    await expect(writeContent(ledger, bytes as Uint8Array, options)).rejects.toThrow(TypeError);
    await expect(writeContent(ledger, content, { maxBytes: -1 })).rejects.toThrow(RangeError);
    expect(existsSync(folder)).toBe(false);
  });

  it('holds a folder to its bound, counts a small file as 4,096 bytes, and makes use of what was deleted', async () => {
    const { ledger, folder } = place();
    const kept = new ContentFolder(ledger, { maxBytes: 3 * 4_096 });
    const write = (n: number): Promise<unknown> => kept.write(Buffer.from(String(n)));
    for (const n of [0, 1, 2]) await write(n);
    expect(await codeOf(write(3))).toBe('CONTENTS_FULL');
    // What is there needs no room.
    await write(2);
    expect(readdirSync(folder)).toHaveLength(3);
    const [first = ''] = readdirSync(folder);
    rmSync(join(folder, first));
    await write(3);
    // Another process measures the same.
    expect(await codeOf(writeContent(ledger, Buffer.from('4'), { maxBytes: 3 * 4_096 }))).toBe(
      'CONTENTS_FULL',
    );
    expect(await codeOf(writeContent(ledger, Buffer.from('4'), { maxBytes: 4_096 }))).toBe('CONTENTS_FULL');
    expect(await writeContent(ledger, Buffer.from('4'), { maxBytes: 4 * 4_096 })).toBeDefined();
    expect(DEFAULT_MAX_CONTENTS_BYTES).toBe(2 ** 30);
  });

  it('makes the folder again where it was deleted meanwhile', async () => {
    const { ledger, folder, file } = place();
    const kept = new ContentFolder(ledger);
    await kept.write(content);
    rmSync(folder, { recursive: true });
    await kept.write(content);
    expect(existsSync(file)).toBe(true);
  });

  it('replaces a file that does not agree with its name, and a link without following it', async () => {
    const { ledger, folder, file } = place();
    await writeContent(ledger, content);
    for (const other of [content.subarray(1), new Uint8Array(), new Uint8Array(MAX_CONTENT_BYTES + 1)]) {
      writeFileSync(file, other);
      await writeContent(ledger, content);
      expect(readFileSync(file).equals(content)).toBe(true);
    }
    const outside = join(dirname(folder), 'outside');
    writeFileSync(outside, 'other');
    rmSync(file);
    symlinkSync(outside, file);
    await writeContent(ledger, content);
    expect(readFileSync(outside, 'utf8')).toBe('other');
    expect((await readContent(ledger, digest)).status).toBe('attached');
  });

  it('removes what a killed writer left, once it is old', async () => {
    const { ledger, folder } = place();
    mkdirSync(folder);
    const [old, fresh] = ['0', '1'].map((n) => join(folder, `${NAME}.new-000000000000000${n}`));
    for (const each of [old, fresh]) writeFileSync(each, 'torn');
    utimesSync(old, 1, 1);
    await writeContent(ledger, content);
    expect(readdirSync(folder).sort()).toEqual([NAME, `${NAME}.new-0000000000000001`]);
  });

  it('takes many writers of the same and of others at once', async () => {
    const { ledger, folder } = place();
    const kept = new ContentFolder(ledger);
    const contents = Array.from({ length: 60 }, (_, n) => Buffer.from(`content ${n % 20}`));
    await Promise.all([
      ...contents.map((bytes) => kept.write(bytes)),
      ...contents.map((bytes) => writeContent(ledger, bytes)),
    ]);
    const names = readdirSync(folder);
    expect(names).toHaveLength(20);
    for (const name of names)
      expect(
        createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex'),
      ).toBe(name);
  });

  it.runIf(!isRoot)('says that it may not write', async () => {
    const { ledger } = place();
    chmodSync(dirname(ledger), 0o500);
    try {
      expect(await codeOf(writeContent(ledger, content))).toBe('ACCESS_DENIED');
    } finally {
      chmodSync(dirname(ledger), 0o700);
    }
  });
});

describe('where an operation fails', () => {
  const OPERATIONS: [Operation, number][] = [
    ['makeFolder', 1],
    ['open', 1],
    ['write', 1],
    ['datasync', 1],
    ['close', 1],
    ['rename', 1],
    ['syncFolderOf', 1],
    ['syncFolderOf', 2],
  ];

  it.each(
    OPERATIONS.flatMap(([operation, nth]) =>
      (['ENOSPC', 'EACCES', 'EIO'] as const).map((errno) => [operation, nth, errno] as const),
    ),
  )(
    '%s %i with %s is an error, leaves no torn file, and can be tried again',
    async (operation, nth, errno) => {
      const { ledger, folder, file } = place();
      const fileSystem = new FaultyFileSystem({ operation, nth, errno, mode: 'once' });
      const kept = new ContentFolder(ledger, {}, fileSystem);
      const code = { ENOSPC: 'DISK_FULL', EACCES: 'ACCESS_DENIED', EIO: 'IO_FAILED' }[errno];
      expect(await codeOf(kept.write(content))).toBe(code);
      expect(fileSystem.fired).toBe(true);
      const names = existsSync(folder) ? readdirSync(folder) : [];
      expect(names.filter((name) => name !== NAME)).toEqual([]);
      if (names.length > 0) expect(readFileSync(file).equals(content)).toBe(true);
      await kept.write(content);
      expect((await readContent(ledger, digest)).status).toBe('attached');
    },
  );

  it('a write that fails in the middle leaves nothing', async () => {
    const { ledger, folder } = place();
    const fileSystem = new FaultyFileSystem({ operation: 'write', nth: 1, errno: 'ENOSPC', mode: 'short' });
    expect(await codeOf(new ContentFolder(ledger, {}, fileSystem).write(content))).toBe('DISK_FULL');
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('readContent', () => {
  it('says what is missing, and what does not agree', async () => {
    const { ledger, folder, file } = place();
    expect(await readContent(ledger, digest)).toEqual({ status: 'missing' });
    mkdirSync(folder);
    expect(await readContent(ledger, digest)).toEqual({ status: 'missing' });
    for (const other of ['', 'swapped', new Uint8Array(MAX_CONTENT_BYTES + 1)]) {
      writeFileSync(file, other);
      expect(await readContent(ledger, digest)).toEqual({ status: 'mismatch' });
    }
    rmSync(file);
    mkdirSync(file);
    expect(await readContent(ledger, digest)).toEqual({ status: 'mismatch' });
  });

  it('follows no link, though its target has the digest', async () => {
    const { ledger, folder, file } = place();
    mkdirSync(folder);
    const outside = join(dirname(folder), 'outside');
    writeFileSync(outside, content);
    symlinkSync(outside, file);
    expect(await readContent(ledger, digest)).toEqual({ status: 'mismatch' });
    // A hard link is a file as any other.
    rmSync(file);
    linkSync(outside, file);
    expect((await readContent(ledger, digest)).status).toBe('attached');
  });

  it.each(['a link', 'a file'])('and writing refuse %s in place of the folder', async (what) => {
    const { ledger, folder } = place();
    const target = join(dirname(folder), 'elsewhere');
    mkdirSync(target);
    writeFileSync(join(target, NAME), content);
    if (what === 'a link') symlinkSync(target, folder);
    else writeFileSync(folder, '');
    expect(await codeOf(readContent(ledger, digest))).toBe('CONTENTS_UNUSABLE');
    expect(await codeOf(writeContent(ledger, content))).toBe('CONTENTS_UNUSABLE');
    expect(await codeOf(KeptContents.open(folder))).toBe('CONTENTS_UNUSABLE');
    expect(readdirSync(target)).toEqual([NAME]);
  });

  it('has nothing of a digest by another algorithm, and refuses what is none', async () => {
    const { ledger } = place();
    await writeContent(ledger, content);
    expect(await readContent(ledger, { alg: 'blake3', b64: digest.b64 })).toEqual({ status: 'missing' });
    await expect(readContent(ledger, { alg: 'sha-256', b64: '../../etc/passwd' })).rejects.toThrow(TypeError);
  });
});

describe('KeptContents', () => {
  it('finds what agrees with its name, counts what does not, and passes over other names', async () => {
    const { ledger, folder, file } = place();
    expect((await KeptContents.open(folder)).size).toBe(0);
    await writeContent(ledger, content);
    const other = sha256Digest(Buffer.from('other'));
    const otherName = Buffer.from(other.b64, 'base64url').toString('hex');
    writeFileSync(join(folder, otherName), 'swapped');
    for (const name of ['README', `${NAME}0`, NAME.toUpperCase().replace(/\d/g, 'A'), '.hidden'])
      writeFileSync(join(folder, name), 'x');
    const kept = await KeptContents.open(folder);
    expect(kept.size).toBe(2);
    expect(await kept.find(formatDigest(digest))).toEqual(Buffer.from(content));
    expect(await kept.find(formatDigest(other))).toBeUndefined();
    expect(kept.mismatched).toBe(1);
    rmSync(file);
    expect(await kept.find(formatDigest(digest))).toBeUndefined();
    expect(kept.mismatched).toBe(1);
  });

  it('and a writer take a folder of very many files', async () => {
    const { ledger, folder } = place();
    const many = times(3_000, 100_000);
    await writeContent(ledger, content);
    for (let n = 0; n < many; n += 1) writeFileSync(join(folder, n.toString(16).padStart(64, '0')), '');
    const kept = await KeptContents.open(folder);
    expect(kept.size).toBe(many + 1);
    expect(await kept.find(formatDigest(digest))).toEqual(Buffer.from(content));
    const maxBytes = (many + 2) * 4_096;
    await writeContent(ledger, Buffer.from('one more'), { maxBytes });
    expect(await codeOf(writeContent(ledger, Buffer.from('and more'), { maxBytes }))).toBe('CONTENTS_FULL');
  });
});

describe('a store by another digest', () => {
  it('names contents by it, and gives back only what agrees', async () => {
    const path = join(temporaryFolder(), 'results');
    const reversed = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest().reverse();
    const store = new ContentStore(path, { algorithm: { alg: 'blake3', hash: reversed } });
    const found = await store.put(content);
    expect([found.alg, readdirSync(path)]).toEqual([
      'blake3',
      [Buffer.from(reversed(content)).toString('hex')],
    ]);
    expect(await store.get(found)).toEqual({ status: 'attached', bytes: Buffer.from(content) });
    expect(await store.get(digest)).toEqual({ status: 'missing' });
    writeFileSync(join(path, readdirSync(path)[0]), 'other');
    expect(await store.get(found)).toEqual({ status: 'mismatch' });
    // It is replaced by what agrees.
    await store.put(content);
    expect((await store.get(found)).status).toBe('attached');
  });

  it('is bounded as any other', async () => {
    const store = new ContentStore(join(temporaryFolder(), 'results'), { maxBytes: 4_096 });
    await store.put(content);
    expect(await codeOf(store.put(new Uint8Array(1)))).toBe('CONTENTS_FULL');
    expect(await codeOf(store.put(new Uint8Array(MAX_CONTENT_BYTES + 1)))).toBe('CONTENT_TOO_LARGE');
  });
});
