/** What the operating system says, in northroot's words: also where Node has no name for it, and where closing fails. */

import type * as Fs from 'node:fs';
import type * as FsPromises from 'node:fs/promises';
import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { readFileChunks, readSmallFile, replaceFile, writeNewFile } from '../../src/log/fs/file-system.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { draft, errorOf, expectSound, makeLedger, openLedger, temporaryFolder } from './support.js';

/** What every open file does. */
const faults = vi.hoisted((): { write: Error | undefined; close: Error | undefined } => ({
  write: undefined,
  close: undefined,
}));

vi.mock('node:fs/promises', async (importOriginal) => {
  const original = await importOriginal<typeof FsPromises>();
  return {
    ...original,
    open: async (...args: Parameters<typeof original.open>) => {
      const handle = await original.open(...args);
      const { close, write } = handle as unknown as Record<
        'close' | 'write',
        (...each: unknown[]) => unknown
      >;
      return Object.assign(handle, {
        write: (...each: unknown[]) =>
          faults.write === undefined ? write.apply(handle, each) : Promise.reject(faults.write),
        // Whatever close(2) says, the descriptor is gone.
        close: async () => {
          await close.apply(handle);
          if (faults.close !== undefined) throw faults.close;
        },
      });
    },
  };
});

// What is small is written at once.
vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof Fs>();
  const write = original.writeSync as (...each: unknown[]) => number;
  return {
    ...original,
    writeSync: (...each: unknown[]) => {
      if (faults.write !== undefined) throw faults.write;
      return write(...each);
    },
  };
});

afterEach(() => {
  faults.write = undefined;
  faults.close = undefined;
});

/** An error for which libuv has no name. */
function unnamed(errno: number): Error {
  const code = `Unknown system error -${errno}`;
  return Object.assign(new Error(`${code}: ${code}, write`), { errno: -errno, code, syscall: 'write' });
}

test.each([
  ['EDQUOT', 'DISK_FULL'],
  ['ENOLCK', 'IO_FAILED'],
] as const)('%s without a name is %s', async (name, code) => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openLedger(path);
  faults.write = unnamed(constants.errno[name]);
  const error = await errorOf(ledger.append({ event: draft(1) }));
  expect(error).toMatchObject({ code: 'LEDGER_FAILED', cause: { code } });
  expect(await errorOf(writeNewFile(`${path}.key`, Buffer.from('key'), 0o600))).toMatchObject({ code });
  await ledger.close();
  faults.write = undefined;
  await expectSound(path, 1);
});

describe('a close that fails', () => {
  const failCloses = (): void => {
    faults.close = Object.assign(new Error('EIO: i/o error, close'), { errno: -5, code: 'EIO' });
  };

  test.each<[string, (path: string) => Promise<unknown>]>([
    ['of a ledger that is verified', (path) => verifyLedger(path)],
    ['of a small file', (path) => readSmallFile(path, 1_000_000)],
    [
      'of an input',
      async (path) => {
        for await (const chunk of readFileChunks(path)) expect(chunk.length).toBeGreaterThan(0);
      },
    ],
    ['of a new file', (path) => writeNewFile(`${path}.new`, Buffer.from('new'), 0o644)],
    ['of a file that is replaced', (path) => replaceFile(`${path}.note`, Buffer.from('new'))],
  ])('%s is a failure of the device', async (_what, use) => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 1);
    writeFileSync(`${path}.note`, 'old');
    failCloses();
    const error = await errorOf(use(path));
    expect(error).toBeInstanceOf(NorthrootError);
    expect(error).toMatchObject({ code: 'IO_FAILED' });
  });

  test('of a ledger that is written to is told when it is closed, and nothing is lost', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    failCloses();
    expect(await ledger.append({ event: draft(1) })).toMatchObject({ seq: 1 });
    expect(await errorOf(ledger.close())).toMatchObject({ code: 'IO_FAILED' });
    faults.close = undefined;
    await expectSound(path, 2);
  });
});
