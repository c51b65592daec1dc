/**
 * Bundles what runs in the page, into `dist/out/page/`: `app.js`, which shows, `core.js`, which verifies, and `page.css`, compressed with
 * Brotli, since the package has a limit. Part of `npm run build`; who installs the package gets the bundles.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { build, transformSync } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const out = here('../../../../dist/out/page/');

/** The platform that is not Node's, and the fast path. */
const seams = {
  name: 'seams',
  setup: ({ onResolve }) => {
    onResolve({ filter: /^#platform$/ }, () => ({ path: here('../../../base/platform/web.ts') }));
    onResolve({ filter: /^#fast\// }, ({ path }) => ({ path: here(`../../../${path.slice(1)}.ts`) }));
  },
};

mkdirSync(out, { recursive: true });
for (const name of ['app', 'core']) {
  const { outputFiles, warnings } = await build({
    entryPoints: [here(name === 'app' ? 'main.ts' : 'core.ts')],
    bundle: true,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    minify: true,
    write: false,
    plugins: [seams],
    logLevel: 'silent',
  });
  if (warnings.length > 0) throw new Error(warnings.map(({ text }) => text).join('\n'));
  const { text } = outputFiles[0];
  // It stands in the page as it is.
  if (/<\/script|<!--/i.test(text)) throw new Error(`${name}.js would end the element that holds it`);
  write(`${name}.js`, text);
}
const style = readFileSync(here('page.css'), 'utf8');
const { code } = transformSync(style, { loader: 'css', minify: true, charset: 'utf8' });
if (/<\/style/i.test(code)) throw new Error('page.css would end the element that holds it');
write('page.css', code);

function write(name, text) {
  writeFileSync(`${out}${name}.br`, brotliCompressSync(text.trimEnd()));
}
