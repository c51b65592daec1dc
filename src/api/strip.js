/**
 * Leaves out of `dist/` what a package need not have. Part of `npm run build`.
 *
 * - Comments and indentation of `dist/**\/*.js`, a third of the package. Declarations keep comments, for editors, and names stay, for
 *   stack traces.
 * - Declarations that no entry point reaches.
 */

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { imports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
const dist = readdirSync(`${root}dist`, { recursive: true }).map((file) => join(root, 'dist', file));

await Promise.all(
  dist
    .filter((file) => file.endsWith('.js') && !file.includes('/dist/cli/'))
    .map(async (file) => {
      const { code } = await transform(readFileSync(file, 'utf8'), {
        loader: 'js',
        target: 'es2023',
        charset: 'utf8',
        legalComments: 'inline',
        minifyWhitespace: true,
      });
      writeFileSync(file, code);
    }),
);

const declarations = dist.filter((file) => file.endsWith('.d.ts'));
const reached = new Set(
  declarations.filter((file) =>
    /\/dist\/(?:api\/[^/]+|gate\/sdk\/[^/]+|hosts\/[^/]+\/index)\.d\.ts$/.test(file),
  ),
);
// A set goes on to what is added while it is read.
for (const file of reached) {
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"]([.#][^'"]+)['"]/g)) {
    const targets = name.startsWith('#')
      ? Object.values(imports[name]).map((target) => join(root, target))
      : [join(dirname(file), name)];
    for (const target of targets) reached.add(target.replace(/\.js$/, '.d.ts'));
  }
}
for (const file of declarations) if (!reached.has(file)) rmSync(file);
