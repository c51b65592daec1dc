/**
 * The program that holds the ways against each other, as one file: bundled it takes a quarter of the time, and what it turns on stands
 * in place of the modules that would have it otherwise.
 */

import { readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HERE = fileURLToPath(new URL('./', import.meta.url));
const PLATFORM = `${ROOT}src/base/platform/node.ts`;

/** Modules that another stands in for, where anybody else than that imports them. */
const REPLACED: Readonly<Record<string, string>> = {
  [`${ROOT}src/fast/blocks/read-blocks.ts`]: 'readBlocks',
  [`${ROOT}src/fast/blocks/line-scanner.ts`]: 'scannerFor',
  [`${ROOT}src/fast/signature/batch-verifier.ts`]: 'BatchVerifier',
  [PLATFORM]: 'importEd25519, importP256',
};
const REPLACING = `${HERE}differential-examining.ts`;
const NAMESPACE = 'replaced';

const replace: Plugin = {
  name: 'replace',
  setup(builds) {
    builds.onResolve(
      { filter: /^#(?:platform$|fast\/)|^\.{1,2}\// },
      async ({ path, importer, resolveDir, kind, pluginData }) => {
        if (pluginData === NAMESPACE) return undefined;
        const found = path.startsWith('#')
          ? path === '#platform'
            ? PLATFORM
            : `${ROOT}src/${path.slice(1)}.ts`
          : (await builds.resolve(path, { importer, resolveDir, kind, pluginData: NAMESPACE })).path;
        const isReplaced = REPLACED[found] !== undefined && importer !== REPLACING && importer !== found;
        return isReplaced ? { path: found, namespace: NAMESPACE } : { path: found };
      },
    );
    builds.onLoad({ filter: /./, namespace: NAMESPACE }, ({ path }) => ({
      contents: `export * from ${JSON.stringify(path)};
        export { ${REPLACED[path] ?? ''} } from ${JSON.stringify(REPLACING)};`,
      resolveDir: HERE,
      loader: 'js',
    }));
    // Packages stay where they are; what is found from where a module stands is found from there.
    builds.onResolve({ filter: /^[a-z@]/ }, ({ path }) =>
      path.startsWith('node:') ? undefined : { path: import.meta.resolve(path), external: true },
    );
    builds.onLoad({ filter: /\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll(
        'import.meta.url',
        JSON.stringify(pathToFileURL(path).href),
      ),
      loader: 'ts',
    }));
  },
};

/** Writes the program. */
export async function bundleWays(outfile: string): Promise<void> {
  await build({
    entryPoints: [`${HERE}differential-main.ts`],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    plugins: [replace],
    logLevel: 'error',
  });
}

/** The verifier as a page would bundle it: to be imported, or to be evaluated. */
export async function bundleVerifier(format: 'esm' | 'iife', outfile: string): Promise<void> {
  await build({
    stdin: { contents: "export { verifyChunks } from 'northroot/verify';", resolveDir: ROOT },
    outfile,
    bundle: true,
    format,
    globalName: 'northroot',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'error',
  });
}
