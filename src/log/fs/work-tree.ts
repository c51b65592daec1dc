/**
 * Whether git would track a file, judged from files alone: a private key in a work tree is soon committed. Git's own configuration and
 * index are not read.
 */

import { dirname, join, relative, resolve, sep } from 'node:path';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { withoutTrailing } from '../../base/bytes/trim.js';
import { kindOfPath, readSmallFile } from './file-system.js';

/** Larger pattern files are not read. */
const MAX_IGNORE_BYTES = 64 * 1024;
/** Patterns with more could take long to match. */
const MAX_STARS = 3;

/**
 * The git work tree of a path, unless a `.gitignore` or `info/exclude` ignores it.
 * @returns undefined outside of work trees, if the path is ignored, or if that cannot be known: unreadable files, patterns with `[`, `\` or
 *   many `*`
 */
export async function findTrackingWorkTree(path: string): Promise<string | undefined> {
  const file = resolve(path);
  const folders: string[] = [];
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    folders.unshift(folder);
    const kind = await kindOfPath(join(folder, '.git')).catch(() => 'missing');
    if (kind === 'folder' || kind === 'file') return (await isIgnored(file, folders)) ? undefined : folder;
    if (folder === dirname(folder)) return undefined;
  }
}

/** Whether a pattern ignores the file; the last match counts. True if unknown. */
async function isIgnored(file: string, folders: readonly string[]): Promise<boolean> {
  const [top = ''] = folders;
  const lists = [
    { base: top, list: join(top, '.git', 'info', 'exclude') },
    ...folders.map((base) => ({ base, list: join(base, '.gitignore') })),
  ];
  let ignored = false;
  for (const { base, list } of lists) {
    let text: string;
    try {
      if ((await kindOfPath(list)) !== 'file') continue;
      text = decodeUtf8(await readSmallFile(list, MAX_IGNORE_BYTES));
    } catch {
      return true;
    }
    const names = relative(base, file).split(sep);
    for (const line of text.split('\n')) {
      const pattern = withoutTrailing(line.replace(/\r$/, ''), ' ');
      if (pattern === '' || pattern.startsWith('#')) continue;
      const isNegated = pattern.startsWith('!');
      const matches = matcherOf(isNegated ? pattern.slice(1) : pattern);
      if (matches === undefined) return true;
      if (matches(names)) ignored = !isNegated;
    }
  }
  return ignored;
}

/** Whether a pattern matches the file or a folder above it; undefined for an unsupported pattern. */
function matcherOf(pattern: string): ((names: readonly string[]) => boolean) | undefined {
  if (/[[\\]/.test(pattern) || (pattern.match(/\*/g)?.length ?? 0) > MAX_STARS) return undefined;
  const isFolder = pattern.endsWith('/');
  const body = pattern.replace(/\/$/, '');
  const isAnchored = body.includes('/');
  const source = body
    .replace(/^\//, '')
    .replace(/[.+^${}()|]/g, '\\$&')
    .replace(/\*\*\/|\*+|\?/g, (wild) =>
      wild === '**/' ? '(?:.*/)?' : wild === '?' ? '[^/]' : wild === '**' ? '.*' : '[^/]*',
    );
  const regex = new RegExp(`^${isAnchored ? '' : '(?:.*/)?'}${source}$`, 'u');
  return (names) =>
    names.some((_, index) => {
      const isFile = index === names.length - 1;
      return !(isFile && isFolder) && regex.test(names.slice(0, index + 1).join('/'));
    });
}
