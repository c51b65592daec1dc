/**
 * Strips comments and indentation from `dist/**\/*.js`, a third of the package. Declarations keep comments, for editors, and names stay,
 * for stack traces. Part of `npm run build`.
 */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
const files = readdirSync(dist, { recursive: true })
  .filter((file) => file.endsWith('.js') && !file.startsWith('cli/'))
  .map((file) => dist + file);
await Promise.all(
  files.map(async (file) => {
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
