/** `northroot serve --face clasper`: the governance server of Clasper's adapter contract. */

import { type Command, InvalidArgumentError } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { isPrincipalPattern } from '../../base/value/principal.js';
import { isToolPattern } from '../../base/value/tool.js';
import type { Face } from '../../gate/service/face.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { LineFile } from '../../log/fs/line-file.js';
import { usageError } from '../command-error.js';
import type { Context } from '../context.js';
import { assertApart } from '../targets.js';
import type { FacePlace } from './face-place.js';

/** Of a file with secrets, in bytes. */
const MAX_SECRETS_BYTES = 16_384;
/** Of a key of HS256 (RFC 7518 §3.2), in bytes. */
const MIN_SECRET_BYTES = 32;
/** The names that the contract's own server has for them. */
const NAMES = {
  adapter: 'ADAPTER_JWT_SECRET',
  tool: 'CLASPER_TOOL_TOKEN_SECRET',
  decision: 'CLASPER_DECISION_TOKEN_SECRET',
} as const;

export interface ClasperFaceChoice {
  readonly clasperSecrets?: string;
  readonly clasperApprove?: string[];
  readonly clasperApprover?: string[];
  readonly clasperUnsigned?: boolean;
  readonly clasperCompat?: boolean;
  readonly clasperRecord?: string;
}

export function addClasperOptions(command: Command): Command {
  return command
    .option('--clasper-secrets <file>', 'lines NAME=VALUE with ADAPTER_JWT_SECRET (default: the environment)')
    .option(
      '--clasper-approve <pattern>',
      'executions with such a capability wait for approval (repeatable)',
      patterns(isToolPattern, 'a capability, or a pattern such as shell.*'),
    )
    .option(
      '--clasper-approver <pattern>',
      'who may approve those (repeatable; default: human:*)',
      patterns(isPrincipalPattern, 'a principal, or a pattern such as human:*'),
    )
    .option('--clasper-unsigned', 'take telemetry without a signature too')
    .option('--clasper-compat', 'answer another report of the same as a duplicate, not as a conflict')
    .option(
      '--clasper-record <file>',
      'append each exchange to this file, with contents and without secrets',
    );
}

function patterns(
  isPattern: (text: string) => boolean,
  expected: string,
): (text: string, previous?: readonly string[]) => string[] {
  return (text, previous = []) => {
    if (isPattern(text)) return [...previous, text];
    throw new InvalidArgumentError(`Expected ${expected}.`);
  };
}

/** @throws NorthrootError `USAGE`; as the files are read */
export async function makeClasperFace(
  { terminal }: Context,
  { ledger }: FacePlace,
  options: ClasperFaceChoice,
): Promise<Face> {
  const { clasperFace } = await import('../../hosts/clasper/live/face.js');
  const { writeExchange } = await import('../../hosts/clasper/live/recording.js');
  const secrets = await readSecrets(options.clasperSecrets);
  const { clasperApprove: approveCapabilities, clasperApprover: approvers, clasperRecord: path } = options;
  if (approvers !== undefined && approveCapabilities === undefined)
    throw usageError('--clasper-approver requires --clasper-approve');
  await assertApart(path, ledger);
  const file = path === undefined ? undefined : new LineFile(path);
  await file?.append([]);
  let isTold = false;
  // What was decided is in the ledger, whatever becomes of the recording.
  const tell = (): void => {
    if (!isTold) terminal.say(`cannot append to ${printable(path ?? '')}: exchanges are missing there`);
    isTold = true;
  };
  const face = clasperFace({
    secrets,
    signatures: options.clasperUnsigned === true ? 'warn' : 'enforce',
    ...defined({ approveCapabilities, approvers }),
    ...(options.clasperCompat === true ? { compatible: true } : {}),
    ...(file === undefined
      ? {}
      : { onExchange: (exchange) => file.append([writeExchange(exchange)]).catch(tell) }),
  });
  return { ...face, close: async () => file?.close() };
}

interface Secrets {
  readonly adapter: string;
  readonly tool?: string;
  readonly decision?: string;
}

/** Never an argument: those are seen by every user of a machine. */
async function readSecrets(path: string | undefined): Promise<Secrets> {
  const given = path === undefined ? process.env : await readLines(path);
  const secret = (name: string): string | undefined => {
    const text = given[name];
    if (text === undefined || text === '') return undefined;
    if (Buffer.byteLength(text) >= MIN_SECRET_BYTES) return text;
    throw usageError(
      `${name}: expected at least ${MIN_SECRET_BYTES} bytes`,
      'openssl rand -base64 32 makes one',
    );
  };
  const adapter = secret(NAMES.adapter);
  if (adapter === undefined)
    throw usageError(
      `--face clasper requires ${NAMES.adapter}`,
      'set it in the environment, or give --clasper-secrets a file that has it',
    );
  return { adapter, ...defined({ tool: secret(NAMES.tool), decision: secret(NAMES.decision) }) };
}

async function readLines(path: string): Promise<Readonly<Record<string, string | undefined>>> {
  const text = Buffer.from(await readSmallFile(path, MAX_SECRETS_BYTES)).toString('utf8');
  const lines = text.split(/\r?\n/).flatMap((line) => {
    const [, name, value] = /^(?:export\s+)?([A-Z_]+)=(.*)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, (value ?? '').replace(/^(["'])(.*)\1$/, '$2')]];
  });
  return Object.fromEntries(lines) as Record<string, string>;
}
