/** Programs of the system. */

import { constants } from 'node:fs';
import { access, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** Where a system keeps its programs; nothing that its users write. */
const FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin'];

/** The path of a program of the system, whatever `PATH` says. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const folder of FOLDERS) {
    const path = await resolveProgram(join(folder, name));
    if (path !== undefined) return join(folder, name);
  }
  return undefined;
}

/** Where a path to a program leads, links followed; undefined unless it is a file that may be run. */
export async function resolveProgram(path: string): Promise<string | undefined> {
  try {
    const own = await realpath(path);
    await access(own, constants.X_OK);
    return (await stat(own)).isFile() ? own : undefined;
  } catch {
    return undefined;
  }
}

/** What the operating systems follow at most. */
const MAX_LINKS = 40;

/** A path, and where each link that it leads to lies. */
export async function linksOf(path: string): Promise<string[]> {
  const links: string[] = [];
  for (let at: string | undefined = path; at !== undefined && links.length < MAX_LINKS;) {
    links.push(at);
    const next: string | undefined = await readlink(at).catch(() => undefined);
    at = next === undefined ? undefined : resolve(dirname(at), next);
  }
  return links;
}
