/**
 * Bundles the library into `dist/`: every file that package.json exports or imports, what runs in threads, and the whole command line,
 * where their sources have them; what several of these share is in `dist/lib/`, once. Part of `npm run build`.
 *
 * Packages stay imports, and so do the seams, which package.json resolves for the program that loads or bundles the library.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { cborX } from '../base/cbor/plugin.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { exports, imports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));

const COMMANDS = 'dist/cli/other-commands.js';
const THREADS = ['dist/fast/blocks/worker.js', 'dist/log/writer/signing-worker.js'];
/** For the programs of this repository; not in the package. */
const INTERNALS = 'dist/api/internals.js';

const targets = [...Object.values(exports), ...Object.values(imports)].flatMap((each) =>
  typeof each === 'string'
    ? []
    : Object.entries(each).flatMap(([key, path]) => (key === 'types' ? [] : [path])),
);
const entries = [...targets.flatMap(filesOf), COMMANDS, ...THREADS, INTERNALS];

const { metafile, outputFiles, warnings } = await build({
  entryPoints: Object.fromEntries(
    entries.map((path) => [path.slice('dist/'.length, -'.js'.length), sourceOf(path)]),
  ),
  outdir: `${root}dist`,
  chunkNames: 'lib/[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'neutral',
  target: 'es2023',
  charset: 'utf8',
  packages: 'external',
  external: Object.keys(imports),
  legalComments: 'inline',
  minify: true,
  metafile: true,
  write: false,
  logLevel: 'silent',
  plugins: [cborX],
});
if (warnings.length > 0) throw new Error(warnings.map(({ text }) => text).join('\n'));
for (const { path, text } of outputFiles) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, withoutBareImports(text));
}
for (const [file, { inputs }] of Object.entries(metafile.outputs)) {
  // It finds the package from where it is.
  if ('src/base/dist.ts' in inputs && !/^dist\/[^/]+\/[^/]+$/.test(file))
    throw new Error(`src/base/dist.ts is in ${file}, which is not two folders below the root`);
}

/** esbuild imports files for what they do when they are loaded, too; none of these does anything, and bundlers of users warn of it. */
function withoutBareImports(text) {
  return text.replace(/(?<=^|;)import"\.{1,2}\/[\w./-]+\.js";/gm, '');
}

/** @param path - Of package.json: `./dist/…`, perhaps with one `*` */
function filesOf(path) {
  const [before, after] = path.slice('./'.length).split('*');
  if (after === undefined) return [before];
  return readdirSync(root + before.replace(/^dist/, 'src'))
    .map((name) => before + name + after)
    .filter((file) => existsSync(sourceOf(file)));
}

function sourceOf(path) {
  const source = `${root}${path.replace(/^dist/, 'src').replace(/\.js$/, '')}`;
  return path === INTERNALS ? `${source}.js` : `${source}.ts`;
}
