/** The vectors that others wrote, read in place; tests of them are skipped where the folder is not there. */

import { existsSync, readFileSync, readdirSync } from 'node:fs';

const ROOT = new URL('../../../shared/vectors/', import.meta.url);

export function hasVectors(folder: string): boolean {
  return existsSync(new URL(folder, ROOT));
}

export function listVectors(folder: string): string[] {
  return hasVectors(folder) ? readdirSync(new URL(`${folder}/`, ROOT)).sort() : [];
}

export function readVector(path: string): Buffer {
  return readFileSync(new URL(path.split('/').map(encodeURIComponent).join('/'), ROOT));
}
