/** For the bundles of the build: cbor-x without its native extractor, and with its license. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const path = createRequire(import.meta.url).resolve('cbor-x/index-no-eval');
const license = readFileSync(join(dirname(path), '../LICENSE'), 'utf8').trim();

export const cborX = {
  name: 'cbor-x',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^cbor-x\/index-no-eval$/ }, () => ({ path }));
    onLoad({ filter: /[\\/]index-no-eval\.cjs$/ }, () => ({
      contents: `/*!\ncbor-x\n\n${license}\n*/\n${readFileSync(path, 'utf8')}`,
    }));
  },
};
