/**
 * Bundles the commands that are run most into one script, `dist/cli/northroot.cjs`, and keeps what V8 makes of it in
 * `dist/cli/northroot.code`: to open, link and compile a file for each module took most of what a short command costs. The client of
 * hooks is bundled into `dist/cli/hook.cjs`. Part of `npm run build`; `bin/load.js` runs the script.
 *
 * Packages are in it, too, but for LevelDB, which is native code, the driver of PostgreSQL, which is optional, and what is rarely asked for.
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { CODE, compile, hashBoth, RARE, run, SCRIPT } from '../../bin/load.js';
import { cborX } from '../base/cbor/plugin.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
/** What a hook is told by where a service listens; bin/northroot.js loads it. */
const HOOK = new URL('../../dist/cli/hook.cjs', import.meta.url);
/** What `#fast/…` is; `npm run build -- --without-fast` bundles a command line without the fast path. */
const isFast = !process.argv.includes('--without-fast');
const FAST = isFast
  ? { '#fast/line': 'fast/line', '#fast/step': 'fast/step' }
  : { '#fast/line': 'format/record/slow-line', '#fast/step': 'rules/verify/slow-step' };
/** Given to this file, it makes the code: V8 keeps of a script what was compiled when it ran. */
const WARM = '--warm';

if (process.argv[2] === WARM) await makeCode(process.argv[3]);
else await bundle();

async function bundle() {
  await buildAll({
    entryPoints: [here('frequent.ts')],
    // Where `base/dist.ts` finds the package from.
    outfile: fileURLToPath(SCRIPT),
    format: 'cjs',
    external: ['level', 'pg', ...RARE],
    // An `import()` needs a loader; `require` of what is native does not.
    supported: { 'dynamic-import': false },
    charset: 'ascii',
    // A stack has columns, not names: with `sourcemap`, the same version builds the map from one to the other.
    minify: true,
    legalComments: 'eof',
    define: { 'import.meta.url': 'scriptUrl' },
    banner: { js: '(function(require,scriptUrl){const module={exports:{}};' },
    footer: { js: 'return module.exports})' },
  });
  await buildAll({
    entryPoints: [here('hook-client.ts')],
    outfile: fileURLToPath(HOOK),
    format: 'cjs',
    charset: 'ascii',
    minify: true,
    // Only who starts threads asks where the package is.
    define: { 'import.meta.url': '__filename' },
  });
  if (!isFast) {
    // In place of the one that shares modules with the library.
    await buildAll({
      entryPoints: [here('other-commands.ts')],
      outfile: here('../../dist/cli/other-commands.js'),
      format: 'esm',
      packages: 'external',
    });
  }
  const source = readFileSync(SCRIPT, 'latin1');
  for (const name of RARE) {
    // Members of these can be had, and nothing else: a default import would look at the module itself.
    if (source.includes(`(require("${name}")`)) throw new Error(`import members of ${name} by their names`);
  }
  rmSync(CODE, { force: true });
  const folder = mkdtempSync(join(tmpdir(), 'northroot-build-'));
  try {
    const { status, stderr } = spawnSync(process.execPath, [here('bundle.js'), WARM, folder]);
    if (status !== 0) throw new Error(`the bundle does not run:\n${stderr}`);
    if (!compile().isPrepared) throw new Error('the code that V8 made is not taken');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What is alike in both. */
async function buildAll(options) {
  const { warnings } = await build({
    ...options,
    bundle: true,
    platform: 'node',
    conditions: ['node'],
    target: 'node20',
    logLevel: 'silent',
    plugins: [
      cborX,
      {
        name: 'seams',
        setup: ({ onResolve }) => {
          onResolve({ filter: /^#platform$/ }, () => ({ path: here('../base/platform/node.ts') }));
          onResolve({ filter: /^#fast\// }, ({ path }) => ({ path: here(`../${FAST[path]}.ts`) }));
        },
      },
    ],
  });
  if (warnings.length > 0) throw new Error(warnings.map(({ text }) => text).join('\n'));
}

/** Runs what most who start the program run, so that V8 compiles it, and keeps the code. */
async function makeCode(folder) {
  const { script, bytes } = compile();
  const { main } = run(script);
  const [ledger, drafts] = ['warm.jsonl', 'drafts.jsonl'].map((name) => join(folder, name));
  writeFileSync(drafts, `${JSON.stringify({ event_type: 'x.build', principal_id: 'service:build' })}\n`);
  for (const args of [
    ['append', ledger, '--origin', 'example.com/warm', drafts],
    ['verify', ledger],
  ]) {
    const status = await main(['--quiet', ...args]);
    if (status !== 0) throw new Error(`${args[0]} ended with ${status}`);
  }
  const code = script.createCachedData();
  writeFileSync(CODE, Buffer.concat([hashBoth(bytes, code), code]));
}
