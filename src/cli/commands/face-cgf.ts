/** `northroot serve --face cgf`: the server of CGF HostAdapter. */

import type { Command } from 'commander';
import { defined } from '../../base/defined.js';
import type { NorthrootError } from '../../base/error.js';
import type { Face } from '../../gate/service/face.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { LineFile } from '../../log/fs/line-file.js';
import { usageError } from '../command-error.js';
import type { Context } from '../context.js';
import { spanMs } from '../options.js';
import { assertApart } from '../targets.js';
import type { FacePlace } from './face-place.js';
import { logEvent } from './serving.js';

/** Of a file with a token, in bytes. */
const MAX_TOKEN_BYTES = 4_096;
/** Of a policy bundle, in bytes. */
const MAX_POLICY_BYTES = 4 * 1024 * 1024;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;

export interface CgfFaceChoice {
  readonly cgfPolicy?: string;
  readonly cgfEvents?: string;
  readonly cgfToken?: string;
  readonly cgfAnonymous?: boolean;
  readonly cgfPlain?: boolean;
  readonly cgfExpires?: number;
}

export function addCgfOptions(command: Command): Command {
  return command
    .option('--cgf-policy <file>', 'a policy bundle of CGF, asked before the grants')
    .option('--cgf-events <file>', "append events to this file, in CGF's ratified vocabulary")
    .option('--cgf-token <file>', 'the bearer token that adapters of CGF send, in a file')
    .option(
      '--cgf-anonymous',
      'let adapters of CGF in without a token; with a --listen of this machine alone',
    )
    .option('--cgf-plain', 'answer ALLOW and BLOCK alone, for adapters that act upon no other decision')
    .option(
      '--cgf-expires <span>',
      'how long a registration holds after its last use, such as 1h (default: 1h)',
      spanMs,
    );
}

/** @throws NorthrootError `USAGE`; `POLICY_INVALID`; as files give it */
export async function makeCgfFace(
  { terminal }: Context,
  { ledger, ledgers, listen, attach }: FacePlace,
  options: CgfFaceChoice,
): Promise<Face> {
  const { cgfPolicy, cgfEvents, cgfToken, cgfAnonymous, cgfPlain, cgfExpires } = options;
  if (cgfEvents !== undefined && ledgers > 1)
    throw usageError('--cgf-events is for one ledger', 'serve each ledger by itself');
  if (cgfAnonymous === true && listen !== undefined && !LOOPBACK.test(listen.host))
    throw usageError(
      '--cgf-anonymous is for an address of this machine alone',
      'such as --listen 127.0.0.1:8080; from elsewhere adapters need a token: --cgf-token',
    );
  await assertApart(cgfEvents, ledger);
  if (cgfEvents !== undefined) await assertWritable(cgfEvents);
  const { cgfFace } = await import('../../hosts/cgf/index.js');
  return cgfFace(
    defined({
      policy: cgfPolicy === undefined ? undefined : await readSmallFile(cgfPolicy, MAX_POLICY_BYTES),
      token: cgfToken === undefined ? undefined : await readToken(cgfToken),
      anonymous: cgfAnonymous,
      plain: cgfPlain,
      events: cgfEvents,
      attach,
      expiresMs: cgfExpires,
      onEventsFailed: ({ code, message }: NorthrootError) =>
        logEvent(terminal, { events: 'failed', code, message }),
    }),
  );
}

/** Says at the start what would else be lost with each event. @throws NorthrootError as files give it */
async function assertWritable(path: string): Promise<void> {
  const file = new LineFile(path);
  await file.append([]);
  await file.close();
}

async function readToken(file: string): Promise<string> {
  const token = Buffer.from(await readSmallFile(file, MAX_TOKEN_BYTES))
    .toString('utf8')
    .trim();
  if (/^[\x21-\x7e]{16,512}$/.test(token)) return token;
  throw usageError('--cgf-token: expected a file with a token of 16 to 512 printable ASCII characters');
}
