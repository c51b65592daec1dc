/** `fs.read`, `fs.list`, `fs.write`: files within the root, by paths relative to it. */

import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { formatDigest, sha256Digest } from '../../base/value/digest.js';
import type { ResourceRef } from '../../format/schema/generated/types.js';
import type { RootedFolder } from '../../log/fs/rooted-folder.js';
import { ArgumentFault, readArguments } from './arguments.js';
import { failure, jsonOutput } from './output.js';
import type { Act, Done } from './act.js';

/** The longest path, in characters: what a resource may have. */
const MAX_PATH = 1_024;
const MAX_NAMES = 64;
const MAX_NAME_BYTES = 255;
/** The most entries of a folder that are shown. */
const MAX_ENTRIES = 1_000;

export interface FileToolOptions {
  readonly root: RootedFolder;
  readonly maxOutputBytes: number;
  readonly maxWriteBytes: number;
}

/** The names of a path; none for the root itself. @throws ArgumentFault `PATH_INVALID`, `PATH_OUTSIDE_ROOT` */
export function readPath(root: RootedFolder, path: string): string[] {
  if (path === '' || path.length > MAX_PATH || printable(path, MAX_PATH) !== path)
    throw new ArgumentFault('PATH_INVALID', `path: expected 1 to ${MAX_PATH} characters that can be shown`);
  const isAbsolute = path.startsWith('/');
  if (isAbsolute && path !== root.path && !path.startsWith(`${root.path}/`))
    throw new ArgumentFault('PATH_OUTSIDE_ROOT', 'path: expected one within the root, relative to it');
  const names = (isAbsolute ? path.slice(root.path.length) : path)
    .split('/')
    .filter((name) => name !== '' && name !== '.');
  if (names.includes('..'))
    throw new ArgumentFault('PATH_OUTSIDE_ROOT', 'path: expected one within the root, without ..');
  if (names.length > MAX_NAMES || names.some((name) => encodeUtf8(name).length > MAX_NAME_BYTES))
    throw new ArgumentFault('PATH_INVALID', 'path: expected shorter names, and fewer of them');
  return names;
}

function readFilePath(root: RootedFolder, path: string): string[] {
  const names = readPath(root, path);
  if (names.length === 0 || path.endsWith('/'))
    throw new ArgumentFault('PATH_INVALID', 'path: expected the path of a file');
  return names;
}

export function resourceOf(names: readonly string[]): ResourceRef {
  return { kind: 'path', reference: names.join('/') || '.' };
}

export function planRead({ root, maxOutputBytes }: FileToolOptions, args: unknown): Act {
  const read = readArguments(args, { path: 'string', offset: 'number?', limit: 'number?' });
  const names = readFilePath(root, read.path);
  const { offset = 0, limit } = read;
  return {
    resources: [resourceOf(names)],
    act: (): Promise<Done> =>
      attempt(async () => {
        const most = Math.min(limit ?? maxOutputBytes, maxOutputBytes);
        const { bytes, size } = await root.read(names, offset, most);
        // Who did not ask for a part gets the whole, or knows that it is none.
        if (limit === undefined && size - offset > most)
          return { errorCode: 'OUTPUT_TOO_LARGE', output: failure('OUTPUT_TOO_LARGE', { size }) };
        return { output: bytes };
      }),
  };
}

export function planList({ root, maxOutputBytes }: FileToolOptions, args: unknown): Act {
  const { path = '.' } = readArguments(args, { path: 'string?' });
  const names = readPath(root, path);
  return {
    resources: [resourceOf(names)],
    act: (): Promise<Done> =>
      attempt(async () => {
        const { entries, more } = await root.list(names, MAX_ENTRIES);
        const shown = entries.map((entry) => ({ ...entry, name: printable(entry.name, MAX_NAME_BYTES) }));
        for (let count = shown.length; ; count = Math.floor(count / 2)) {
          const output = jsonOutput({ entries: shown.slice(0, count), more: more + shown.length - count });
          if (output.length <= maxOutputBytes || count === 0) return { output };
        }
      }),
  };
}

export function planWrite({ root, maxWriteBytes }: FileToolOptions, args: unknown): Act {
  const read = readArguments(args, {
    path: 'string',
    content: 'string?',
    content_base64: 'string?',
    make_folders: 'boolean?',
  });
  const names = readFilePath(root, read.path);
  const bytes = contentOf(read.content, read.content_base64, maxWriteBytes);
  return {
    resources: [resourceOf(names)],
    act: (): Promise<Done> =>
      attempt(async () => {
        const replaced = await root.write(names, bytes, read.make_folders === true);
        const digest = formatDigest(sha256Digest(bytes));
        return { output: jsonOutput({ path: names.join('/'), size: bytes.length, digest, replaced }) };
      }),
  };
}

function contentOf(text: string | undefined, base64: string | undefined, limit: number): Uint8Array {
  if ((text === undefined) === (base64 === undefined))
    throw new ArgumentFault('INVALID_ARGUMENTS', 'expected content or content_base64');
  const bytes = text === undefined ? Buffer.from(base64 as string, 'base64') : encodeUtf8(text);
  if (base64 !== undefined && Buffer.from(bytes).toString('base64') !== base64)
    throw new ArgumentFault('INVALID_ARGUMENTS', 'content_base64: expected base64 with padding');
  if (bytes.length > limit)
    throw new ArgumentFault('CONTENT_TOO_LARGE', `expected at most ${limit} bytes to write`);
  return bytes;
}

/** Faults of the file system by their code; their messages name paths of this machine. */
async function attempt(work: () => Promise<Done>): Promise<Done> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    return { errorCode: error.code, output: failure(error.code) };
  }
}
