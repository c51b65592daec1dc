/** Bundles cbor-x, without its native extractor, into `dist/base/cbor/cbor-x.js`, with its license. Part of `npm run build`. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const library = dirname(createRequire(import.meta.url).resolve('cbor-x/package.json'));
const license = readFileSync(join(library, 'LICENSE'), 'utf8').trim();

await build({
  entryPoints: [here('cbor-x.ts')],
  outfile: here('../../../dist/base/cbor/cbor-x.js'),
  bundle: true,
  format: 'esm',
  target: 'node20',
  charset: 'utf8',
  logLevel: 'warning',
  banner: { js: `/*!\ncbor-x\n\n${license}\n*/` },
});
