/** What is said of errors of the file system holds for every command. */

import { expect, it } from 'vitest';
import { toIoError } from '../../src/log/fs/io-error.js';

it.each(['ENOSPC', 'EDQUOT'])('%s is a full disk, whatever was to be written', (errno) => {
  const error = toIoError(Object.assign(new Error('x'), { code: errno }), 'write', 'report.sarif');
  expect(error.code).toBe('DISK_FULL');
  expect(error.hint).not.toContain('append');
});
