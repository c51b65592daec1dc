/** `exec`: programs of the list, ended whatever they do, with nothing of this process. */

import {
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
  chmodSync,
  renameSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { openKernelTools } from '../../src/api/gate.js';
import { codeOf, temporaryFolder } from '../writer/support.js';
import { openKernel } from './support.js';

const SHELL = '/bin/sh';
const sh = (script: string, more: object = {}): object => ({ argv: ['sh', '-c', script], ...more });

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // What nobody has waited for is dead all the same.
  return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

describe('a program', () => {
  it('runs without a shell, by its name or path, in the root', async () => {
    const { call, root, tools } = await openKernel({ programs: ['/bin/echo', SHELL] });
    mkdirSync(join(root, 'sub'));
    expect((await call('exec', { argv: ['echo', '$HOME; `id`', '*'] })).json).toEqual({
      status: 0,
      stdout: '$HOME; `id` *\n',
      stderr: '',
    });
    expect((await call('exec', sh('pwd; echo $0 >&2', { cwd: 'sub' }))).json).toEqual({
      status: 0,
      stdout: `${root}/sub\n`,
      stderr: 'sh\n'.replace('sh', '/bin/sh'),
    });
    const plan = tools.plan('exec', { argv: ['/bin/echo'] });
    expect('denied' in plan ? plan : plan.resources[0]?.kind).toBe('program');
  });

  it.each([
    [{ argv: [] }, 'denied PROGRAM_NOT_ALLOWED'],
    [{ argv: ['ls'] }, 'denied PROGRAM_NOT_ALLOWED'],
    [{ argv: ['/bin/ls'] }, 'denied PROGRAM_NOT_ALLOWED'],
    [{ argv: ['./sh'] }, 'denied PROGRAM_NOT_ALLOWED'],
    [{ argv: ['/bin/../bin/sh'] }, 'denied PROGRAM_NOT_ALLOWED'],
    [{ argv: ['sh '] }, 'denied PROGRAM_NOT_ALLOWED'],
    [{ argv: 'sh' }, 'denied INVALID_ARGUMENTS'],
    [{ argv: ['sh', 1] }, 'denied INVALID_ARGUMENTS'],
    [{ argv: ['sh', 'a\0b'] }, 'denied INVALID_ARGUMENTS'],
    [{ argv: ['sh', ...Array<string>(256).fill('x')] }, 'denied INVALID_ARGUMENTS'],
    [{ argv: ['sh', 'x'.repeat(131_072)] }, 'denied INVALID_ARGUMENTS'],
    [{ argv: ['sh'], cwd: '..' }, 'denied PATH_OUTSIDE_ROOT'],
    [{ argv: ['sh'], env: { PATH: '.' } }, 'denied INVALID_ARGUMENTS'],
    [{ argv: ['sh'], cwd: 'none' }, 'FILE_NOT_FOUND'],
    [{ argv: ['sh'], cwd: 'out' }, 'LINK_REFUSED'],
  ])('%j is not run: %s', async (args, code) => {
    const { call, root, outside } = await openKernel({ programs: [SHELL] });
    symlinkSync(outside, join(root, 'out'));
    expect((await call('exec', args)).code).toBe(code);
  });

  it('has the given environment, nothing to read, and no other open files', async () => {
    process.env['NORTHROOT_TEST_SECRET'] = 'SECRET';
    const { call } = await openKernel({ programs: [SHELL], env: { PATH: '/usr/bin:/bin', A: 'b c' } });
    const { json } = await call(
      'exec',
      sh('env | grep -v "^PWD=\\|^_=\\|^SHLVL="; cat; ls -l /proc/self/fd | grep -c "[0-9] -> .*/root"'),
    );
    delete process.env['NORTHROOT_TEST_SECRET'];
    // None of the folders that are held open.
    expect((json['stdout'] as string).split('\n').sort()).toEqual(['', '0', 'A=b c', 'PATH=/usr/bin:/bin']);
  });

  it('tells how it ended', async () => {
    const { call } = await openKernel({ programs: [SHELL] });
    expect(await call('exec', sh('echo x; exit 3'))).toMatchObject({
      code: 'EXIT_STATUS',
      json: { error: 'EXIT_STATUS', status: 3, stdout: 'x\n' },
    });
    expect(await call('exec', sh('kill -9 $$'))).toMatchObject({
      code: 'KILLED',
      json: { error: 'KILLED', signal: 'SIGKILL' },
    });
    expect((await call('exec', sh("printf '\\377'"))).json).toMatchObject({ stdout_base64: '/w==' });
  });

  it('is killed where it writes too much', async () => {
    const { call } = await openKernel({ programs: [SHELL], maxOutputBytes: 16_384 });
    for (const script of ['yes', 'yes >&2', "yes '' | tr '\\n' '\\001'"]) {
      const { code, json, text } = await call('exec', sh(script));
      expect(code).toBe('OUTPUT_TOO_LARGE');
      expect(json).toMatchObject({ error: 'OUTPUT_TOO_LARGE', truncated: true });
      expect(text.length).toBeLessThanOrEqual(16_384);
    }
  });

  it('ends with its children, which hold its output open', async () => {
    const { call } = await openKernel({ programs: [SHELL] });
    const { json } = await call('exec', sh('sleep 600 & echo $!'));
    const pid = Number(json['stdout']);
    await expect.poll(() => isAlive(pid)).toBe(false);
    // One that leaves its group is not waited for.
    expect((await call('exec', sh('command -v setsid >/dev/null && setsid sleep 3 & exit 0'))).code).toBe(
      'ok',
    );
  });

  it('is asked to end at its deadline, then killed', async () => {
    const { call } = await openKernel({ programs: [SHELL], timeoutMs: 2_000 });
    expect(
      await call('exec', sh('echo $$; trap "echo asked; exit 0" TERM; while :; do sleep 0.05; done')),
    ).toMatchObject({
      code: 'TIMEOUT',
      json: { error: 'TIMEOUT', stdout: expect.stringContaining('asked') as string },
    });
    const { code, json } = await call('exec', sh('trap "" TERM; echo $$; sleep 600'));
    expect([code, json['signal']]).toEqual(['TIMEOUT', 'SIGKILL']);
    expect(isAlive(Number(json['stdout']))).toBe(false);
  });

  it('ends where the call is cancelled, or the tools are closed', async () => {
    const { call, tools } = await openKernel({ programs: [SHELL] });
    const stop = new AbortController();
    const cancelled = call('exec', sh('sleep 600'), stop.signal);
    await sleep(100);
    stop.abort();
    expect((await cancelled).code).toBe('CANCELLED');
    expect((await call('exec', sh('exit 0'), stop.signal)).code).toBe('CANCELLED');
    const closed = call('exec', sh('sleep 600'));
    await sleep(100);
    await tools.close();
    expect((await closed).code).toBe('CANCELLED');
  });

  it('is limited where the system can', async () => {
    if (!existsSync('/usr/bin/prlimit')) return;
    const { call } = await openKernel({ programs: [SHELL] });
    expect((await call('exec', sh('ulimit -n; ulimit -c'))).json).toMatchObject({ stdout: '1024\n0\n' });
  });
});

describe('the list of programs', () => {
  it('takes none that an agent may write, or lead elsewhere', async () => {
    const outside = temporaryFolder();
    const root = join(outside, 'root');
    mkdirSync(root);
    const own = join(root, 'own');
    writeFileSync(own, '#!/bin/sh\n');
    chmodSync(own, 0o755);
    symlinkSync('/bin/sh', join(root, 'link'));
    symlinkSync(join(root, 'link'), join(outside, 'over'));
    symlinkSync(own, join(outside, 'to-own'));
    for (const path of [own, join(root, 'link'), join(outside, 'over'), join(outside, 'to-own')])
      expect(await codeOf(openKernelTools({ root, programs: [path] }))).toBe('PROGRAM_IN_ROOT');
    for (const path of [join(outside, 'none'), '/etc/passwd', '/'])
      expect(await codeOf(openKernelTools({ root, programs: [path] }))).toBe('PROGRAM_NOT_FOUND');
    await expect(openKernelTools({ root, programs: ['sh'] })).rejects.toThrow(TypeError);
  });

  it('is of programs that stay where they were', async () => {
    const outside = temporaryFolder();
    symlinkSync('/bin/sh', join(outside, 'tool'));
    const { call } = await openKernel({ programs: [join(outside, 'tool')] });
    expect((await call('exec', { argv: ['tool', '-c', 'exit 0'] })).code).toBe('ok');
    symlinkSync('/bin/echo', join(outside, 'new'));
    renameSync(join(outside, 'new'), join(outside, 'tool'));
    expect((await call('exec', { argv: ['tool', '-c', 'exit 0'] })).code).toBe('PROGRAM_CHANGED');
  });
});
