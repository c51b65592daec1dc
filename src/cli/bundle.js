/**
 * Bundles the command line into one file, `dist/cli/northroot.js`, and what runs in other threads into `dist/batch/worker.js`: to open
 * and link a file for each module took more than half of what a short command costs. Part of `npm run build`; packages stay what they
 * are.
 */

import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { warnings } = await build({
  // As deep as the modules of dist/, for what is found from where it stands.
  entryPoints: { 'cli/northroot': here('main.ts'), 'batch/worker': here('../batch/worker.ts') },
  outdir: here('../../dist'),
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
