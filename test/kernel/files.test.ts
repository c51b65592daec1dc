/** `fs.read`, `fs.list`, `fs.write`: nothing outside of the root, whatever is in it, and whoever changes it at that moment. */

import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openKernelTools } from '../../src/api/gate.js';
import { RootedFolder } from '../../src/log/fs/rooted-folder.js';
import { codeOf, temporaryFolder } from '../writer/support.js';
import { type Kernel, openKernel } from './support.js';

/** A root with one of everything. */
async function openFull(): Promise<Kernel> {
  const kernel = await openKernel();
  const { root, outside } = kernel;
  writeFileSync(join(root, 'a.txt'), 'hello');
  mkdirSync(join(root, 'folder'));
  symlinkSync(join(outside, 'secret'), join(root, 'link'));
  symlinkSync('a.txt', join(root, 'inner'));
  symlinkSync(outside, join(root, 'way'));
  linkSync(join(outside, 'secret'), join(root, 'hard'));
  expect(spawnSync('mkfifo', [join(root, 'pipe')]).status).toBe(0);
  return kernel;
}

const OUT = [
  ['../secret', 'denied PATH_OUTSIDE_ROOT'],
  ['folder/../../secret', 'denied PATH_OUTSIDE_ROOT'],
  ['/etc/passwd', 'denied PATH_OUTSIDE_ROOT'],
  ['link', 'LINK_REFUSED'],
  ['inner', 'LINK_REFUSED'],
  ['way/secret', 'LINK_REFUSED'],
  ['way/root/a.txt', 'LINK_REFUSED'],
  ['pipe', 'NOT_A_FILE'],
  ['folder', 'NOT_A_FILE'],
  ['a.txt/b', 'NOT_A_FOLDER'],
  ['', 'denied PATH_INVALID'],
  ['.', 'denied PATH_INVALID'],
  ['folder/', 'denied PATH_INVALID'],
  ['a\n.txt', 'denied PATH_INVALID'],
  ['a\0.txt', 'denied PATH_INVALID'],
  ['a\u202e.txt', 'denied PATH_INVALID'],
  ['\ud800', 'denied INVALID_ARGUMENTS'],
  ['x'.repeat(256), 'denied PATH_INVALID'],
  ['x/'.repeat(65) + 'y', 'denied PATH_INVALID'],
  ['x/'.repeat(600), 'denied PATH_INVALID'],
] as const;

describe('a path', () => {
  it.each(OUT)('%j is neither read nor written: %s', async (path, code) => {
    const { call, outside } = await openFull();
    expect((await call('fs.read', { path })).code).toBe(code);
    expect((await call('fs.write', { path, content: 'X' })).code).toBe(code);
    expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('SECRET');
    expect(readdirSync(outside).sort()).toEqual(['root', 'secret']);
  });

  it('may be absolute within the root', async () => {
    const { call, root } = await openFull();
    expect((await call('fs.read', { path: `${root}/./a.txt` })).text).toBe('hello');
    expect((await call('fs.read', { path: `${root}x/a.txt` })).code).toBe('denied PATH_OUTSIDE_ROOT');
  });
});

describe('arguments', () => {
  it.each([
    ['fs.read', undefined],
    ['fs.read', []],
    ['fs.read', { path: 1 }],
    ['fs.read', { path: 'a', more: true }],
    ['fs.read', { path: 'a', offset: -1 }],
    ['fs.read', { path: 'a', limit: 1.5 }],
    ['fs.write', { path: 'a' }],
    ['fs.write', { path: 'a', content: 'x', content_base64: 'eA==' }],
    ['fs.write', { path: 'a', content_base64: 'eA' }],
    ['fs.write', { path: 'a', content: '\ud800' }],
  ])('of %s %j are refused', async (tool, args) => {
    const { call } = await openFull();
    expect((await call(tool, args)).code).toBe('denied INVALID_ARGUMENTS');
  });

  it('of a tool that is not there are not looked at', async () => {
    const { call, tools } = await openKernel({ write: false });
    expect(tools.names).toEqual(['fs.read', 'fs.list']);
    expect(tools.definitions.map(({ name }) => name)).toEqual(tools.names);
    expect((await call('fs.remove', {})).code).toBe('denied UNKNOWN_TOOL');
    for (const tool of ['fs.write', 'exec', 'net.fetch'])
      expect((await call(tool, {})).code).toBe('denied TOOL_DISABLED');
  });
});

describe('fs.read', () => {
  it('gives bytes as they are, or a part', async () => {
    const { call, root, tools } = await openKernel();
    writeFileSync(join(root, 'a'), Buffer.from([0, 255, 1, 2]));
    const plan = tools.plan('fs.read', { path: 'a' });
    if ('denied' in plan) throw new Error(plan.denied);
    expect(plan).toMatchObject({
      toolName: 'fs.read',
      resources: [{ kind: 'path', reference: 'a' }],
      reserve: { calls: 1, 'time.ms': 65_000, 'bytes.evidence': 262_144 },
    });
    const done = await plan.run();
    expect([...done.output]).toEqual([0, 255, 1, 2]);
    expect(done.used).toMatchObject({ calls: 1, 'bytes.evidence': 4 });
    await expect(plan.run()).rejects.toThrow(TypeError);
    expect((await call('fs.read', { path: 'a', offset: 2, limit: 1 })).text).toBe('\x01');
    expect((await call('fs.read', { path: 'a', offset: 9 })).text).toBe('');
  });

  it('gives no part of a large file for the whole', async () => {
    const { call, root } = await openKernel({ maxOutputBytes: 16_384 });
    writeFileSync(join(root, 'large'), 'x'.repeat(16_385));
    expect(await call('fs.read', { path: 'large' })).toMatchObject({
      code: 'OUTPUT_TOO_LARGE',
      json: { error: 'OUTPUT_TOO_LARGE', size: 16_385 },
    });
    expect((await call('fs.read', { path: 'large', offset: 1 })).text).toHaveLength(16_384);
    expect((await call('fs.read', { path: 'large', limit: 99_999 })).text).toHaveLength(16_384);
  });
});

describe('fs.list', () => {
  it('tells kinds and sizes, follows nothing, and shows names that can be shown', async () => {
    const { call, root } = await openFull();
    writeFileSync(join(root, 'evil\n\u001b[2J'), '');
    const { json } = await call('fs.list', {});
    expect(json).toEqual({
      more: 0,
      entries: [
        { name: 'a.txt', kind: 'file', size: 5 },
        { name: 'evil\\u{a}\\u{1b}[2J', kind: 'file', size: 0 },
        { name: 'folder', kind: 'folder' },
        { name: 'hard', kind: 'file', size: 6 },
        { name: 'inner', kind: 'link' },
        { name: 'link', kind: 'link' },
        { name: 'pipe', kind: 'other' },
        { name: 'way', kind: 'link' },
      ],
    });
    expect((await call('fs.list', { path: 'way' })).code).toBe('LINK_REFUSED');
    expect((await call('fs.list', { path: 'a.txt' })).code).toBe('NOT_A_FOLDER');
  });

  it('stays within its bounds', async () => {
    const { call, root } = await openKernel({ maxOutputBytes: 16_384 });
    for (let n = 0; n < 1_100; n += 1) writeFileSync(join(root, `${n}-${'x'.repeat(60)}`), '');
    const { json, text } = await call('fs.list', {});
    expect(text.length).toBeLessThanOrEqual(16_384);
    const entries = json['entries'] as unknown[];
    expect(entries.length).toBeGreaterThan(50);
    expect((json['more'] as number) + entries.length).toBe(1_100);
  });
});

describe('fs.write', () => {
  it('writes whole files, and keeps what may be done with them', async () => {
    const { call, root } = await openKernel();
    expect(await call('fs.write', { path: 'a', content: 'é' })).toMatchObject({
      code: 'ok',
      json: { path: 'a', size: 2, replaced: false },
    });
    expect(statSync(join(root, 'a')).mode & 0o7777).toBe(0o644);
    chmodSync(join(root, 'a'), 0o4750);
    expect((await call('fs.write', { path: 'a', content_base64: '/w==' })).json).toMatchObject({
      replaced: true,
    });
    expect([...readFileSync(join(root, 'a'))]).toEqual([255]);
    // Nothing that an agent wrote runs as another.
    expect(statSync(join(root, 'a')).mode & 0o7777).toBe(0o750);
    expect(readdirSync(root)).toEqual(['a']);
  });

  it('makes folders where it is told to', async () => {
    const { call, root } = await openKernel();
    expect((await call('fs.write', { path: 'x/y/z', content: '' })).code).toBe('FILE_NOT_FOUND');
    expect((await call('fs.write', { path: 'x/y/z', content: '', make_folders: true })).code).toBe('ok');
    expect(statSync(join(root, 'x/y')).mode & 0o777).toBe(0o755);
  });

  it('leaves a file that has another name as it is', async () => {
    const { call, outside } = await openFull();
    expect((await call('fs.write', { path: 'hard', content: 'X' })).code).toBe('FILE_HAS_LINKS');
    expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('SECRET');
  });

  it('takes no more than it may', async () => {
    const { call } = await openKernel({ maxWriteBytes: 3 });
    expect((await call('fs.write', { path: 'a', content: 'éé' })).code).toBe('denied CONTENT_TOO_LARGE');
    expect((await call('fs.write', { path: 'a', content: 'abc' })).code).toBe('ok');
  });
});

/** Swaps a folder of the root for a link out of it, and back, as fast as it can. */
const SWAPPER = `
const { renameSync, mkdirSync, symlinkSync, writeFileSync } = require('node:fs');
process.chdir(process.argv[1]);
process.send('ready');
for (;;) {
  try { renameSync('d', 'kept'); renameSync('link', 'd'); renameSync('d', 'link'); renameSync('kept', 'd'); } catch {}
}`;

describe('while a folder is swapped for a link', () => {
  it('nothing outside is read or written', async () => {
    // Elsewhere this does not hold, and is not claimed.
    if (process.platform !== 'linux') return;
    const outside = temporaryFolder();
    const root = join(outside, 'root');
    for (const folder of [root, join(root, 'd'), join(outside, 'out')]) mkdirSync(folder);
    writeFileSync(join(root, 'd', 'f'), 'inside');
    writeFileSync(join(outside, 'out', 'f'), 'SECRET');
    symlinkSync(join(outside, 'out'), join(root, 'link'));
    const swapper = spawn(process.execPath, ['-e', SWAPPER, root], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    onTestFinished(() => void swapper.kill('SIGKILL'));
    await new Promise((resolve) => swapper.once('message', resolve));
    const folder = await RootedFolder.open(root);
    onTestFinished(() => folder.close());
    const seen = new Map<string, number>();
    const note = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);
    for (let n = 0; n < 1_500; n += 1) {
      await folder.read(['d', 'f'], 0, 100).then(
        ({ bytes }) => note(Buffer.from(bytes).toString()),
        (error: { code: string }) => note(error.code),
      );
      await folder.write(['d', 'g'], Buffer.from('X'), false).then(
        () => note('written'),
        (error: { code: string }) => note(error.code),
      );
    }
    expect(seen.get('SECRET')).toBeUndefined();
    // The test saw both.
    expect(seen.get('inside')).toBeGreaterThan(0);
    expect(seen.get('LINK_REFUSED')).toBeGreaterThan(0);
    expect(seen.get('written')).toBeGreaterThan(0);
    expect(readdirSync(join(outside, 'out'))).toEqual(['f']);
  });
});

describe('without /proc', () => {
  it('the same is refused', async () => {
    const { root } = await openFull();
    const folder = await RootedFolder.open(root, { byHandle: false });
    onTestFinished(() => folder.close());
    for (const [names, code] of [
      [['link'], 'LINK_REFUSED'],
      [['way', 'secret'], 'LINK_REFUSED'],
      [['pipe'], 'NOT_A_FILE'],
      [['a.txt', 'b'], 'NOT_A_FOLDER'],
      [['none', 'b'], 'FILE_NOT_FOUND'],
    ] as const) {
      expect(await codeOf(folder.read(names, 0, 10))).toBe(code);
      expect(await codeOf(folder.write(names, Buffer.from('X'), false))).toBe(code);
    }
    expect(await codeOf(folder.write(['hard'], Buffer.from('X'), false))).toBe('FILE_HAS_LINKS');
    await folder.write(['x', 'y'], Buffer.from('X'), true);
    expect(Buffer.from((await folder.read(['x', 'y'], 0, 9)).bytes).toString()).toBe('X');
    expect((await folder.list(['x'], 9)).entries).toEqual([{ name: 'y', kind: 'file', size: 1 }]);
  });
});

describe('a root', () => {
  it('is a folder of its own, without what is to be kept out', async () => {
    const outside = temporaryFolder();
    writeFileSync(join(outside, 'file'), '');
    for (const [root, code] of [
      ['/', 'ROOT_UNUSABLE'],
      ['/proc/self', 'ROOT_UNUSABLE'],
      ['/dev', 'ROOT_UNUSABLE'],
      [join(outside, 'none'), 'FILE_NOT_FOUND'],
      [join(outside, 'file'), 'NOT_A_FOLDER'],
    ] as const)
      expect(await codeOf(openKernelTools({ root }))).toBe(code);
    symlinkSync(outside, join(temporaryFolder(), 'l'));
    for (const kept of [join(outside, 'file'), join(outside, 'new/one'), outside])
      expect(await codeOf(openKernelTools({ root: outside, keepOut: [kept] }))).toBe('ROOT_HOLDS_KEPT_OUT');
    const tools = await openKernelTools({ root: outside, keepOut: ['/etc/passwd', `${outside}x`] });
    await tools.close();
  });
});

describe('malformed options', () => {
  it.each([
    [{ timeoutMs: 0 }, RangeError],
    [{ maxOutputBytes: 1 }, RangeError],
    [{ maxOutputBytes: 1_048_577 }, RangeError],
    [{ maxWriteBytes: 16_777_217 }, RangeError],
    [{ hosts: ['a b'] }, RangeError],
    [{ hosts: ['example.com/path'] }, RangeError],
    [{ hosts: ['u:p@example.com'] }, RangeError],
    [{ hosts: ['*'] }, RangeError],
    [{ hosts: ['*.10.0.0.1'] }, RangeError],
    [{ hosts: ['ftp://example.com'] }, RangeError],
    [{ hosts: ['example.com'], methods: ['TRACE'] }, RangeError],
    [{ programs: ['/bin/true'] }, TypeError],
    [{ env: { 'A=B': 'x' } }, TypeError],
    [{ isolation: 'all' as 'none', root: '.' }, RangeError],
  ])('%j are refused', async (options, type) => {
    await expect(openKernelTools(options)).rejects.toThrow(type);
  });
});
