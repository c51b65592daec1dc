/** Parameters that are kept beside the ledger: before the request that names them is on disk, or nothing is recorded. */

import { existsSync, readdirSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { DeniedError } from '../../src/log/agent/errors.js';
import { authorizeAction } from '../../src/log/policy/authorize.js';
import { readRequest } from '../../src/log/policy/explain-request.js';
import { readContent } from '../../src/log/contents/content-folder.js';
import type { FileSystem } from '../../src/log/fs/file-system.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import { FaultyFileSystem, soundFileSystem } from '../writer/file-systems.js';
import { codeOf, signer } from '../writer/support.js';
import { AGENT, filePlace, grant, memoryPlace, openLive, request } from './support.js';

const params = { env: 'prod', path: '/srv' };
const bytes = canonicalBytes(params);
const paramsDigest = sha256Digest(bytes);
const asked = { ...request(0), paramsDigest };

describe('attach', () => {
  it('keeps the parameters of a guarded call, denied or not, and only where it is asked for', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 2 } });
    expect(await ledger.guard('fs.read', { n: 1 }, () => 'done')).toBe('done');
    expect(existsSync(`${place.path}.contents`)).toBe(false);
    expect(await ledger.guard('fs.read', params, () => 'done', { attach: true })).toBe('done');
    expect(await readContent(place.path, paramsDigest)).toEqual({
      status: 'attached',
      bytes: Buffer.from(bytes),
    });
    const other = { ...params, env: undefined };
    await expect(ledger.guard('fs.read', other, () => 'done', { attach: true })).rejects.toThrow(DeniedError);
    const without = sha256Digest(canonicalBytes({ path: '/srv' }));
    expect((await readContent(place.path, without)).status).toBe('attached');
    await ledger.close();
    expect(await place.verdict()).toBe('ok');
  });

  it('shows the approver what is asked for, when it is asked for', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    const approvals = [{ tools: ['deploy'], approvers: ['human:*'] }];
    await grant(ledger, { allowedTools: ['deploy'], meterCaps: { calls: 5 }, approvals });
    const seen: unknown[] = [];
    const call = ledger.guard('deploy', params, () => 'done', {
      attach: true,
      approval: 'wait',
      onApprovalNeeded: async ({ recorded }) => {
        const { status, content } = await readRequest(place.path, recorded.eventId);
        seen.push([status, content.status === 'attached' && Buffer.from(content.bytes).toString()]);
        await ledger.approve(recorded.eventId, { principalId: 'human:olga' });
      },
    });
    expect(await call).toBe('done');
    expect(seen).toEqual([['waiting', '{"env":"prod","path":"/srv"}']]);
  });

  it('is on disk, with its name, before anything is recorded', async () => {
    const place = filePlace();
    const owner = await openLive(place);
    await grant(owner, { meterCaps: { calls: 2 } });
    await owner.close();
    const done: string[] = [];
    const note =
      <A extends [string, ...unknown[]], R>(name: string, run: (...args: A) => R) =>
      (...args: A): R => {
        done.push(`${name} ${args[0].includes('.contents/') ? 'content' : args[0].slice(place.path.length)}`);
        return run(...args);
      };
    const fileSystem: FileSystem = {
      ...soundFileSystem,
      rename: note('rename', (from: string, to: string) => soundFileSystem.rename(from, to)),
      syncFolderOf: note('syncFolderOf', (path: string) => soundFileSystem.syncFolderOf(path)),
      open: async (path, mode, permissions) => {
        const file = await soundFileSystem.open(path, mode, permissions);
        const kind = path.includes('.contents/') ? 'content' : path.slice(place.path.length);
        return {
          ...file,
          write: (piece) => {
            done.push(`write ${kind}`);
            return file.write(piece);
          },
          datasync: () => {
            done.push(`datasync ${kind}`);
            return file.datasync();
          },
        };
      },
    };
    const ledger = await openLive(place, { fileSystem });
    done.length = 0;
    await ledger.authorize(asked, { attach: bytes });
    const upTo = done.indexOf('write ');
    expect(upTo).toBeGreaterThan(-1);
    expect(
      done.slice(0, upTo).filter((each) => each.endsWith(' content') || each.includes('.contents')),
    ).toEqual(
      // Of `.contents` itself: its name, once made and once for another who made it.
      [
        'syncFolderOf .contents',
        'write content',
        'datasync content',
        'rename content',
        'syncFolderOf content',
      ],
    );
  });

  it.each([
    ['ENOSPC', 'DISK_FULL'],
    ['EACCES', 'ACCESS_DENIED'],
    ['EIO', 'IO_FAILED'],
  ] as const)(
    'where it fails with %s nothing is recorded or run, and the next call works',
    async (errno, code) => {
      const place = filePlace();
      const owner = await openLive(place);
      await grant(owner, { meterCaps: { calls: 2 } });
      const records = place.events().length;
      const fileSystem = new FaultyFileSystem({ operation: 'makeFolder', nth: 1, errno, mode: 'once' });
      const ledger = await openLive(place, { fileSystem, index: false });
      let ran = 0;
      const run = (): number => (ran += 1);
      expect(await codeOf(ledger.guard('fs.read', params, run, { attach: true }))).toBe(code);
      expect(fileSystem.fired).toBe(true);
      expect([ran, place.events().length]).toEqual([0, records]);
      expect(await ledger.guard('fs.read', params, run, { attach: true })).toBe(1);
      expect(await place.verdict()).toBe('ok');
    },
  );

  it('that is kept for a decision which then fails harms nothing', async () => {
    const place = filePlace();
    const owner = await openLive(place);
    await grant(owner, { meterCaps: { calls: 2 } });
    const wrong = owner.authorize({ ...asked, expiresAt: 'never' }, { attach: bytes });
    await expect(wrong).rejects.toThrow(TypeError);
    expect((await readContent(place.path, paramsDigest)).status).toBe('attached');
    expect((await owner.authorize(asked, { attach: bytes })).decision).toBe('allow');
    await owner.close();
    expect(await place.verdict()).toBe('ok');
  });

  it('is bounded for a ledger', async () => {
    const place = filePlace();
    const ledger = await openLive(place, { maxContentsBytes: 4_096 });
    await grant(ledger, { meterCaps: { calls: 9 } });
    await ledger.guard('fs.read', params, () => 0, { attach: true });
    await ledger.guard('fs.read', params, () => 0, { attach: true });
    const records = place.events().length;
    expect(await codeOf(ledger.guard('fs.read', { n: 2 }, () => 0, { attach: true }))).toBe('CONTENTS_FULL');
    expect(await codeOf(ledger.guard('fs.read', 'x'.repeat(2 ** 20), () => 0, { attach: true }))).toBe(
      'CONTENT_TOO_LARGE',
    );
    expect(place.events().length).toBe(records);
  });

  it('follows no link to another folder', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 9 } });
    symlinkSync(tmpdir(), `${place.path}.contents`);
    const call = ledger.guard('fs.read', params, () => 0, { attach: true });
    expect(await codeOf(call)).toBe('CONTENTS_UNUSABLE');
  });

  it('is refused as misuse of other bytes, of a ledger in a store, and of an open ledger', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 9 } });
    const before = place.events().length;
    await expect(ledger.authorize(asked, { attach: Buffer.from('other') })).rejects.toThrow(TypeError);
    await expect(ledger.authorize(asked, { attach: params as never })).rejects.toThrow(TypeError);
    const misled = ledger.guard('fs.read', params, () => 0, { attach: 'yes' as never });
    await expect(misled).rejects.toThrow(TypeError);
    await expect(openLive(filePlace(), { maxContentsBytes: -1 })).rejects.toThrow(RangeError);
    const inMemory = await openLive(memoryPlace());
    await expect(inMemory.authorize(asked, { attach: bytes })).rejects.toThrow(TypeError);
    await ledger.close();
    const opened = await Ledger.open(place.path, { signer, decides: true });
    const whole = { ...asked, principalId: AGENT };
    await expect(authorizeAction(opened, whole, { attach: bytes })).rejects.toThrow(TypeError);
    await opened.close();
    await expect(authorizeAction(place.path, whole, { signer, attach: Buffer.from('x') })).rejects.toThrow(
      TypeError,
    );
    expect(place.events().length).toBe(before);
    expect(existsSync(`${place.path}.contents`)).toBe(false);
    await authorizeAction(place.path, whole, { signer, attach: bytes });
    expect(readdirSync(`${place.path}.contents`)).toHaveLength(1);
  });
});
