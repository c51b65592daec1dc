/** Traffic of other systems, recorded from real runs and kept beside the checkout. Tests that need it are skipped where it is missing. */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { HostFile } from '../../src/hosts/shared/host.js';

const ROOT = fileURLToPath(new URL('../../../shared/traffic/', import.meta.url));

/** Whether the recordings are there: for `describe.skipIf(!hasRecordings)`. */
export const hasRecordings = existsSync(ROOT);

/** The path of a recording: `recorded('cgf/run/driver/http.jsonl')`. */
export function recorded(path: string): string {
  return `${ROOT}${path}`;
}

/** A recording as a host is given it, named by its path. */
export function recordedFile(path: string): HostFile {
  return { name: path, bytes: readFileSync(recorded(path)) };
}

/** The text of a recording. */
export function recordedText(path: string): string {
  return readFileSync(recorded(path), 'utf8');
}
