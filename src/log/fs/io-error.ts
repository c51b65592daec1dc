/** Maps operating system errors to northroot's, with a hint. */

import { constants } from 'node:os';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';

/** The hint where a path is taken. */
export const NAME_ANOTHER = 'name another path: what is there stays as it is';

const KNOWN: Readonly<Record<string, readonly [code: string, what: string, hint?: string]>> = {
  ENOENT: ['FILE_NOT_FOUND', 'there is no such file or folder', 'check the path'],
  ENOTDIR: ['FILE_NOT_FOUND', 'a part of the path is not a folder', 'check the path'],
  EISDIR: ['IS_A_FOLDER', 'it is a folder', 'name a file'],
  EEXIST: ['FILE_EXISTS', 'it exists already', NAME_ANOTHER],
  EACCES: ['ACCESS_DENIED', 'access is denied', 'check the permissions of the file and its folder'],
  EPERM: [
    'ACCESS_DENIED',
    'the operation is not permitted',
    'check the permissions and attributes of the file',
  ],
  EROFS: ['READ_ONLY', 'the file system is read-only'],
  ENOSPC: ['DISK_FULL', 'there is no space left', 'free some space, then try again'],
  EDQUOT: ['DISK_FULL', 'the disk quota is used up', 'free some space, then try again'],
  EFBIG: ['FILE_TOO_BIG', 'the file would grow beyond its limit', 'check the file size limit (ulimit -f)'],
  EIO: ['IO_FAILED', 'the device failed', 'check the disk and the system log before you go on'],
  EMFILE: ['TOO_MANY_FILES', 'too many files are open'],
  ENAMETOOLONG: ['FILE_NOT_FOUND', 'the path is too long'],
  ELOOP: ['FILE_NOT_FOUND', 'there are too many symbolic links in the path'],
};

/** The hint where a file cannot be made, since its folder is missing. */
export const MAKE_FOLDER = 'make the folder first';

const NO_FOLDER = ['FILE_NOT_FOUND', 'there is no such folder', MAKE_FOLDER] as const;

/**
 * The NorthrootError for an error of `node:fs`.
 * @param action - The verb of the message, as in "cannot `read` FILE".
 */
export function toIoError(cause: unknown, action: string, path: string): NorthrootError {
  if (cause instanceof NorthrootError) return cause;
  const errno = errnoOf(cause);
  // What is created is missing itself: then it is its folder that is meant.
  const known = errno === 'ENOENT' && action === 'create' ? NO_FOLDER : KNOWN[errno];
  const [code, what, hint] = known ?? ['IO_FAILED', cause instanceof Error ? cause.message : String(cause)];
  return new NorthrootError(code, `cannot ${action} ${printable(path)}: ${what}`, {
    cause,
    ...(hint === undefined ? {} : { hint }),
  });
}

/** The name of an operating system error, such as `EDQUOT`, which Node may give only as a number; else empty. */
export function errnoOf(error: unknown): string {
  const { code = '', errno } = (error ?? {}) as NodeJS.ErrnoException;
  if (errno === undefined || Object.hasOwn(constants.errno, code)) return code;
  return Object.entries(constants.errno).find(([, number]) => number === -errno)?.[0] ?? code;
}

/** Rejects with the NorthrootError of a failed read. */
export async function orIoError<T>(result: Promise<T>, path: string): Promise<T> {
  return result.catch((error: unknown) => {
    throw toIoError(error, 'read', path);
  });
}
