/** `northroot tiles`: publishes a ledger as a tlog-tiles tree, or updates one. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { toDigestText } from '../../base/value/digest.js';
import { MAX_NOTE_BYTES } from '../../format/note/signed-note.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { openStoreSource } from '../../log/store/open-store.js';
import { type FileCount, writeTiles } from '../../log/tile/tile-writer.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { textOrJson } from '../options.js';

interface TilesOptions {
  readonly out: string;
  readonly checkpoint?: string;
  readonly format: 'text' | 'json';
}

export function addTiles(program: Command, run: Run): void {
  program
    .command('tiles')
    .summary('publish a ledger as a tile tree')
    .description(
      'Writes the tree of a checkpoint as C2SP tlog-tiles: the checkpoint, the hash tiles and the entries. Any file server can publish it. Of an existing tree, writes only what is missing. Signatures are not checked; northroot verify does that.',
    )
    .argument('<ledger>', 'the file or folder')
    .requiredOption('--out <folder>', 'the folder of the tree; created if missing')
    .option('--checkpoint <file>', "the signed note to publish (default: the ledger's last checkpoint)")
    .addOption(textOrJson())
    .action((ledger: string, options: TilesOptions) => run((context) => tiles(context, ledger, options)));
}

async function tiles(context: Context, ledger: string, options: TilesOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  if (ledger === STDIN) {
    throw usageError('tiles needs a file: the ledger is read more than once');
  }
  const note =
    options.checkpoint === undefined ? undefined : await readSmallFile(options.checkpoint, MAX_NOTE_BYTES);
  const written = await writeTiles(() => openStoreSource(ledger), options.out, {
    ...defined({ note }),
    signal,
    onProgress: (bytes, size) => terminal.progress(bytes, size),
  });
  const { checkpoint, previousSize, tiles: hashTiles, bundles, removed } = written;
  const root = toDigestText(Buffer.from(checkpoint.root, 'latin1').toString('base64url'));
  if (options.format === 'json') {
    const result = {
      out: options.out,
      origin: checkpoint.origin,
      tree_size: checkpoint.size,
      root,
      previous_tree_size: previousSize ?? null,
      tiles: hashTiles,
      bundles,
      removed,
    };
    await terminal.write(`${jsonText(result, 2)}\n`);
    return 0;
  }
  const before = previousSize === undefined ? '' : describeGrowth(checkpoint.size - previousSize);
  const lines = [
    `${printable(options.out)}: the tree of ${printable(checkpoint.origin)}`,
    `size     ${checkpoint.size}${before}`,
    `root     ${root}`,
    `tiles    ${describe(hashTiles)}`,
    `bundles  ${describe(bundles)}`,
    ...(removed === 0 ? [] : [`removed  ${removed} partial, replaced by full ones`]),
  ];
  await terminal.write(`${lines.join('\n')}\n`);
  return 0;
}

function describe({ written, kept }: FileCount): string {
  return `${written} written, ${kept} there already`;
}

function describeGrowth(records: number): string {
  return records === 0 ? ', as before' : `, ${records} more than before`;
}
