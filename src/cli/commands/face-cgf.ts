/** `northroot serve --face cgf`: the server of CGF HostAdapter. */

import type { Command } from 'commander';
import { defined } from '../../base/defined.js';
import type { Face } from '../../gate/service/face.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { usageError } from '../command-error.js';
import type { Context } from '../context.js';
import type { FacePlace } from './face-place.js';

/** Of a file with a token, in bytes. */
const MAX_TOKEN_BYTES = 4_096;

/** What the face is made of. */
export interface CgfFaceChoice {
  readonly cgfToken?: string;
}

export function addCgfOptions(command: Command): Command {
  return command.option('--cgf-token <file>', 'the bearer token that adapters of CGF send');
}

/** @throws NorthrootError `USAGE`; `FILE_UNREADABLE` */
export async function makeCgfFace(
  _context: Context,
  _place: FacePlace,
  { cgfToken }: CgfFaceChoice,
): Promise<Face> {
  const { cgfFace } = await import('../../hosts/cgf/live/face.js');
  const token = cgfToken === undefined ? undefined : await readToken(cgfToken);
  return cgfFace(defined({ token }));
}

async function readToken(file: string): Promise<string> {
  const token = Buffer.from(await readSmallFile(file, MAX_TOKEN_BYTES))
    .toString('utf8')
    .trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw usageError('--cgf-token: expected a file with a token of printable ASCII characters');
}
