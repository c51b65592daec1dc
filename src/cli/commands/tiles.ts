/** `northroot tiles`: publishes a ledger as a tlog-tiles tree, or updates one. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { toDigestText } from '../../base/value/digest.js';
import { MAX_NOTE_BYTES } from '../../format/note/signed-note.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import type { ObjectSink } from '../../log/object/object-sink.js';
import { S3Place } from '../../log/object/s3-place.js';
import { openS3Sink } from '../../log/object/s3-sink.js';
import { openStoreSource } from '../../log/store/open-store.js';
import { type FileCount, writeTiles } from '../../log/tile/tile-writer.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { textOrJson } from '../options.js';

interface TilesOptions {
  readonly out?: string;
  readonly to?: string;
  readonly endpoint?: string;
  readonly addressing?: 'path' | 'virtual';
  readonly recheck?: true;
  readonly checkpoint?: string;
  readonly format: 'text' | 'json';
}

export function addTiles(program: Command, run: Run): void {
  program
    .command('tiles')
    .summary('publish a ledger as a tile tree')
    .description(
      'Writes the tree of a checkpoint as C2SP tlog-tiles: the checkpoint, the hash tiles and the entries. Any file server can publish it, or a bucket of an S3 store with conditional writes; its credentials and region are those of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION. Of an existing tree, writes only what is missing. Signatures are not checked; northroot verify does that.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--out <folder>', 'the folder of the tree; created if missing')
    .addOption(
      new Option('--to <bucket>', 'where in a bucket the tree is: s3://BUCKET/PREFIX').conflicts('out'),
    )
    .addOption(
      new Option(
        '--endpoint <url>',
        "the store's URL (default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or Amazon's)",
      ).conflicts('out'),
    )
    .addOption(
      new Option(
        '--addressing <mode>',
        'how URLs name the bucket: in the path, or before the host (default: path with an endpoint, else virtual)',
      )
        .choices(['path', 'virtual'])
        .conflicts('out'),
    )
    .addOption(
      new Option('--recheck', 'with --to: compare also what the published checkpoint covers').conflicts(
        'out',
      ),
    )
    .option('--checkpoint <file>', "the signed note to publish (default: the ledger's last checkpoint)")
    .addOption(textOrJson())
    .action((ledger: string, options: TilesOptions) => run((context) => tiles(context, ledger, options)));
}

async function tiles(context: Context, ledger: string, options: TilesOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  if (ledger === STDIN) throw usageError('tiles needs a file: the ledger is read more than once');
  const target = targetOf(options);
  const note =
    options.checkpoint === undefined ? undefined : await readSmallFile(options.checkpoint, MAX_NOTE_BYTES);
  const written = await writeTiles(() => openStoreSource(ledger), target, {
    ...defined({ note, recheck: options.recheck }),
    signal,
    onProgress: (bytes, size) => terminal.progress(bytes, size),
  });
  const { checkpoint, previousSize, tiles: hashTiles, bundles, removed } = written;
  const root = toDigestText(Buffer.from(checkpoint.root, 'latin1').toString('base64url'));
  if (options.format === 'json') {
    const result = {
      ...(typeof target === 'string' ? { out: target } : { to: target.name }),
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
    `${typeof target === 'string' ? printable(target) : target.name}: the tree of ${printable(checkpoint.origin)}`,
    `size     ${checkpoint.size}${before}`,
    `root     ${root}`,
    `tiles    ${describe(hashTiles)}`,
    `bundles  ${describe(bundles)}`,
    ...(removed === 0 ? [] : [`removed  ${removed} partial, replaced by full ones`]),
  ];
  await terminal.write(`${lines.join('\n')}\n`);
  return 0;
}

/** @throws CommandError for malformed options, and credentials that are missing */
function targetOf({ out, to, endpoint, addressing }: TilesOptions): string | ObjectSink {
  if (to === undefined) {
    if (out === undefined) throw usageError('tiles needs --out FOLDER or --to s3://BUCKET/PREFIX');
    return out;
  }
  const { env } = process;
  // An empty variable is none.
  const given = (...names: readonly string[]): string | undefined =>
    names.map((name) => env[name]).find((value) => value !== undefined && value !== '');
  const accessKeyId = given('AWS_ACCESS_KEY_ID');
  const secretAccessKey = given('AWS_SECRET_ACCESS_KEY');
  const place = defined({
    endpoint: endpoint ?? given('AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'),
    region: given('AWS_REGION', 'AWS_DEFAULT_REGION'),
    addressing,
  });
  try {
    // No credentials help a place that cannot be.
    const { name } = new S3Place(to, place);
    if (accessKeyId === undefined || secretAccessKey === undefined)
      throw usageError(`--to ${name} needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`);
    const credentials = {
      accessKeyId,
      secretAccessKey,
      ...defined({ sessionToken: given('AWS_SESSION_TOKEN') }),
    };
    return openS3Sink(to, { credentials, ...place });
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    throw usageError(`--to: ${error.message}`);
  }
}

function describe({ written, kept }: FileCount): string {
  return `${written} written, ${kept} there already`;
}

function describeGrowth(records: number): string {
  return records === 0 ? ', as before' : `, ${records} more than before`;
}
