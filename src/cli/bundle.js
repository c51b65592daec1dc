/**
 * Bundles the command line into one file, `dist/cli/northroot.js`: to open and link a file for each module took more than half of what
 * a short command costs. Part of `npm run build`; packages stay what they are.
 */

import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { warnings } = await build({
  entryPoints: [here('main.ts')],
  // As deep as the modules of dist/, for what is found from where it stands.
  outfile: here('../../dist/cli/northroot.js'),
  bundle: true,
  format: 'esm',
  platform: 'node',
  conditions: ['node'],
  packages: 'external',
  target: 'node20',
  charset: 'utf8',
  logLevel: 'silent',
  plugins: [
    {
      name: 'platform',
      setup: ({ onResolve }) =>
        onResolve({ filter: /^#platform$/ }, () => ({ path: here('../platform/node.ts') })),
    },
  ],
});
if (warnings.length > 0) throw new Error(warnings.map(({ text }) => text).join('\n'));
