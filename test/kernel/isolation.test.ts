/** Isolation: what a level claims is so, for programs of a kernel and for any command; and what is not to be had is refused. */

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isolate, openKernelTools, probeIsolation } from '../../src/api/gate.js';
import { codeOf, temporaryFolder } from '../writer/support.js';
import { openKernel } from './support.js';

const found = await probeIsolation();
const SHELL = '/bin/sh';

async function run(level: 'netns' | 'container', script: string, options: object = {}): Promise<string> {
  const { command, args } = await isolate(level, SHELL, ['-c', script], options);
  return spawnSync(command, [...args], { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } }).stdout;
}

const OWN = 'readlink /proc/self/ns/net; grep -c : /proc/net/dev; cat /proc/net/route | wc -l';

describe('none', () => {
  it('changes nothing', async () => {
    expect(await isolate('none', 'x', ['y'])).toEqual({ command: 'x', args: ['y'] });
  });
});

describe.each(['netns', 'container'] as const)('%s', (level) => {
  it.runIf(!found[level])('is refused where it is not to be had', async () => {
    expect(await codeOf(isolate(level, SHELL, []))).toBe('ISOLATION_UNAVAILABLE');
    expect(await codeOf(openKernelTools({ root: temporaryFolder(), isolation: level }))).toBe(
      'ISOLATION_UNAVAILABLE',
    );
  });

  it.runIf(found[level])('has no network but its own', async () => {
    const [net, devices, routes] = (await run(level, OWN)).split('\n');
    expect(net).not.toBe(readlinkSync('/proc/self/ns/net'));
    // The loopback alone, and no routes but a heading.
    expect(devices).toBe('1');
    expect(Number(routes)).toBeLessThanOrEqual(1);
  });

  it.runIf(found[level])('passes arguments as they are, and the exit status', async () => {
    const { command, args } = await isolate(level, SHELL, [
      '-c',
      'printf "%s|" "$@"; exit 7',
      'x',
      '--',
      '-e',
      '$A',
    ]);
    const { stdout, status } = spawnSync(command, [...args], { encoding: 'utf8' });
    expect([stdout, status]).toEqual(['--|-e|$A|', 7]);
  });

  it.runIf(found[level])('is what the tools say, and have', async () => {
    const { call, tools } = await openKernel({ programs: [SHELL], isolation: level });
    expect(tools.isolation).toBe(level);
    const { json } = await call('exec', {
      argv: ['sh', '-c', 'readlink /proc/self/ns/net; echo x > written; pwd'],
    });
    const [net, pwd] = (json['stdout'] as string).split('\n');
    expect(net).not.toBe(readlinkSync('/proc/self/ns/net'));
    expect((await call('fs.read', { path: 'written' })).text).toBe('x\n');
    expect(pwd?.endsWith('/root')).toBe(true);
  });
});

describe('a container', () => {
  it.runIf(found.container)('writes nothing but what is named, and does not see what is hidden', async () => {
    // Not below /tmp or /dev, which are empty in any case.
    const outside = mkdtempSync('/var/tmp/northroot-');
    onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
    const secret = join(outside, 'secret');
    writeFileSync(secret, 'SECRET');
    const script = `cat ${secret}; echo X > ${outside}/new; echo X > /etc/new; ls -A /tmp /run | grep -v :; true`;
    expect((await run('container', script)).trim()).toBe('SECRET');
    expect((await run('container', script, { hide: [secret] })).trim()).toBe('');
    expect((await run('container', script, { hide: [outside] })).trim()).toBe('');
    expect(existsSync(join(outside, 'new'))).toBe(false);
    await run('container', script, { writable: [outside] });
    expect(readFileSync(join(outside, 'new'), 'utf8')).toBe('X\n');
  });

  it.runIf(found.container)('sees no other processes, and leaves none', async () => {
    expect((await run('container', 'ls -d /proc/[0-9]* | wc -l')).trim()).toMatch(/^[1-5]$/);
    const { call } = await openKernel({ programs: [SHELL], isolation: 'container' });
    const mark = `31${process.pid}`;
    await call('exec', { argv: ['sh', '-c', `setsid sleep ${mark} & exit 0`] });
    await expect.poll(() => spawnSync('pgrep', ['-f', `^sleep ${mark}$`]).status).toBe(1);
  });

  it.runIf(found.container)('does not show programs what is kept out', async () => {
    const outside = mkdtempSync('/var/tmp/northroot-');
    onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
    const kept = join(outside, 'ledger.key');
    writeFileSync(kept, 'SECRET');
    const { call } = await openKernel({ programs: ['/bin/cat'], isolation: 'container', keepOut: [kept] });
    expect((await call('exec', { argv: ['cat', kept] })).text).not.toContain('SECRET');
  });

  it.runIf(found.container)('does so where paths have links in them', async () => {
    const outside = mkdtempSync('/var/tmp/northroot-');
    const link = `${outside}-link`;
    const below = mkdtempSync('/tmp/northroot-');
    const belowLink = `${below}-link`;
    onTestFinished(() => {
      for (const each of [outside, link, below, belowLink]) rmSync(each, { recursive: true, force: true });
    });
    symlinkSync(outside, link);
    symlinkSync(below, belowLink);
    writeFileSync(join(outside, 'secret'), 'SECRET');
    writeFileSync(join(below, 'given'), 'GIVEN');
    const script = `cat ${link}/secret ${outside}/secret ${belowLink}/given; echo X > ${link}/new; true`;
    const places = { hide: [join(link, 'secret')], readable: [belowLink] };
    expect((await run('container', script, places)).trim()).toBe('GIVEN');
    expect(existsSync(join(outside, 'new'))).toBe(false);
    expect((await run('container', script, { ...places, writable: [link] })).trim()).toBe(
      'SECRETSECRETGIVEN',
    );
    expect(readFileSync(join(outside, 'new'), 'utf8')).toBe('X\n');
  });

  it.runIf(found.container)('keeps a deadline', async () => {
    const { call } = await openKernel({ programs: [SHELL], isolation: 'container', timeoutMs: 300 });
    const { code } = await call('exec', { argv: ['sh', '-c', 'trap "" TERM; sleep 600'] });
    expect(code).toBe('TIMEOUT');
  });
});
