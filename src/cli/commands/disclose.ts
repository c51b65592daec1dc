/** `northroot disclose`: attaches contents to a bundle, or finds the records that name a file. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { KeptContents } from '../../log/contents/content-folder.js';
import { kindOfPath, writeNewFile } from '../../log/fs/file-system.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { MAX_BUNDLE_BYTES } from '../../proof/bundle/bundle-file.js';
import {
  attachContents,
  findContent,
  type FoundContent,
  listNamedDigests,
} from '../../proof/bundle/disclose.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readBundleInput, readInput, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { textOrJson } from '../options.js';

interface DiscloseOptions {
  readonly content?: readonly string[];
  readonly check?: readonly string[];
  readonly out?: string;
  readonly format: 'text' | 'json';
}

/** So many places are shown. */
const MAX_SHOWN = 10;

export function addDisclose(program: Command, run: Run): void {
  program
    .command('disclose')
    .summary('attach contents, or look them up by digest')
    .description(
      'A ledger holds SHA-256 digests of contents, not the contents. --content attaches files to a bundle; verify then checks them against the records that name them. The signature of the bundle stays valid. --check lists the records of a ledger or bundle that name a file. A file matches by its bytes or, if it is JSON, by its canonical form, also as {"salt","value"}. With --check, exits with 0 if every file is named, 1 if not.',
    )
    .argument('<path>', 'the bundle; with --check a bundle or a ledger')
    .option(
      '--content <file...>',
      'the files to attach; of a folder such as LEDGER.contents those that a record names',
    )
    .option('--check <file...>', 'the files to look up')
    .option('-o, --out <file>', 'with --content: the bundle to write')
    .addOption(textOrJson('output format of --check'))
    .action((path: string, options: DiscloseOptions) => run((context) => disclose(context, path, options)));
}

async function disclose(context: Context, path: string, options: DiscloseOptions): Promise<ExitStatus> {
  const { content = [], check = [], out } = options;
  if ((content.length === 0) === (check.length === 0))
    throw usageError('expected --content or --check, with files');
  if (content.length > 0 !== (out !== undefined))
    throw usageError('--content needs --out, the bundle to make; --check makes none');
  if ([path, ...content, ...check].filter((each) => each === STDIN).length > 1)
    throw usageError('standard input can be one of the files only');
  const bundle = await readBundleInput(path, context);
  if (out === undefined) return checkFiles(context, path, bundle, options);
  if (bundle === undefined)
    throw new CommandError('NOT_A_BUNDLE', `${printable(path)} is not a bundle`, {
      hint: 'northroot export LEDGER --bundle FILE makes one',
    });
  const contents = [];
  for (const each of content) {
    const isFolder = each !== STDIN && (await kindOfPath(each)) === 'folder';
    contents.push(...(await (isFolder ? readKept(each, bundle, context) : readContents([each], context))));
  }
  await writeNewFile(out, attachContents(bundle, contents), 0o644);
  const many = contents.length === 1 ? '1 content' : `${contents.length} contents`;
  context.terminal.say(`made ${printable(out)}: ${many} attached, readable by everyone who has the bundle`);
  return 0;
}

/** What a folder of contents has of what the records of a bundle name. */
async function readKept(
  folder: string,
  bundle: Uint8Array,
  { terminal }: Context,
): Promise<{ readonly name: string; readonly bytes: Uint8Array }[]> {
  const kept = await KeptContents.open(folder);
  const found = [];
  let size = 0;
  for (const digest of listNamedDigests(bundle)) {
    const bytes = await kept.find(digest);
    if (bytes === undefined) continue;
    found.push({ name: digest, bytes });
    size += bytes.length;
    // More is refused with the bundle.
    if (size > MAX_BUNDLE_BYTES) break;
  }
  if (kept.mismatched > 0)
    terminal.say(`note: ${kept.mismatched} in ${printable(folder)} left out: not what the name says`);
  return found;
}

async function checkFiles(
  context: Context,
  path: string,
  bundle: Uint8Array | undefined,
  { check = [], format }: DiscloseOptions,
): Promise<ExitStatus> {
  if (bundle === undefined && path === STDIN)
    throw usageError('disclose needs a file: a ledger is not read from standard input');
  const contents = await readContents(check, context);
  const found = await findContent(bundle ?? (() => openLedger(path)), contents, context.signal);
  const text = found.map((each) => `${describe(each)}\n`).join('');
  await context.terminal.write(format === 'json' ? `${jsonText(found, 2)}\n` : text);
  return found.every(({ total }) => total > 0) ? 0 : 1;
}

function describe({ name, digests, places, total }: FoundContent): string {
  const shown = places
    .slice(0, MAX_SHOWN)
    .map(
      ({ seq, eventType, pointer, digest }) =>
        `  seq ${seq} ${printable(eventType ?? 'event')} ${printable(pointer)} ${digest}`,
    );
  const more = total > shown.length ? [`  … and ${total - shown.length} more`] : [];
  const head =
    total === 0
      ? `${printable(name)}: named by no record, as ${digests.join(' or ')}`
      : `${printable(name)}: named ${total === 1 ? 'once' : `${total} times`}`;
  return [head, ...shown, ...more].join('\n');
}

async function readContents(
  paths: readonly string[],
  context: Context,
): Promise<{ readonly name: string; readonly bytes: Uint8Array }[]> {
  const contents = [];
  for (const path of paths) contents.push({ name: path, bytes: await readInput(path, context) });
  return contents;
}
