/**
 * Makes the content of the package, the same bytes every time: `node conformance/generate.js`, after `npm run build`. With the path of a
 * folder it makes the whole package there, and touches nothing here. What the rules
 * state apart from the product (`fixtures/expected.json`, hashes, trees, sums) is computed apart, and held against the product: where
 * they differ, nothing is written.
 */

import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeProofs } from './make/proofs.js';
import { makeFineLedgers, makeVectors } from './make/vectors.js';
import { makeDeciderCases } from './make/decider.js';
import { makePolicyLedgers } from './make/policies.js';
import { makeSliceLedgers } from './make/slices.js';
import { makeWitnessCases } from './make/witness.js';
import { makeWriterCases } from './make/writer.js';
import { makeVerifierCases, readFixtureFiles } from './make/verifier.js';

const HERE = dirname(fileURLToPath(import.meta.url));
const OWN = ['README.md', 'package.json', 'bin', 'lib'];
const PACKED = [...OWN, 'LICENSE', 'content'];

/** @param folder - Where the package is made */
async function main(folder) {
  const files = readFixtureFiles();
  const cases = {
    verifier: [
      ...(await makeProofs(files)),
      ...makeVectors(files),
      ...(await makeVerifierCases(files, [
        ...makeFineLedgers(files),
        ...makeSliceLedgers(files),
        ...makePolicyLedgers(files),
      ])),
    ],
    writer: [],
    decider: makeDeciderCases(),
    witness: makeWitnessCases(),
  };
  cases.writer = makeWriterCases(files, cases.verifier);
  assertUnique(Object.values(cases).flat());
  if (folder !== HERE)
    for (const path of OWN) cpSync(join(HERE, path), join(folder, path), { recursive: true });
  rmSync(join(folder, 'content'), { recursive: true, force: true });
  const write = (path, bytes) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  };
  for (const [path, bytes] of files) write(`content/files/${path}`, bytes);
  for (const [name, own] of Object.entries(cases))
    write(`content/cases/${name}.json`, formatCases(name, own));
  cpSync(join(HERE, '../LICENSE'), join(folder, 'LICENSE'));
  writeManifest(cases, folder, write);
}

function assertUnique(cases) {
  const ids = new Set();
  for (const { id } of cases) {
    if (ids.has(id)) throw new Error(`${id} is made twice`);
    ids.add(id);
  }
}

/** One case a line: a change shows as what it is. */
function formatCases(name, cases) {
  const lines = cases.map((each) => `    ${JSON.stringify(each)}`);
  return `{\n  "class": "${name}",\n  "cases": [\n${lines.join(',\n')}\n  ]\n}\n`;
}

/** `SHA256SUMS` has every packed file but itself and the manifest, in the form of `sha256sum -c`; the manifest has its digest. */
function writeManifest(cases, folder, write) {
  const paths = PACKED.flatMap((path) => listFiles(folder, path)).sort();
  const hex = (bytes) => createHash('sha256').update(bytes).digest('hex');
  const sums = paths.map((path) => `${hex(readFileSync(join(folder, path)))}  ${path}\n`).join('');
  write('SHA256SUMS', sums);
  const { name, version } = JSON.parse(readFileSync(join(HERE, 'package.json')));
  const counts = Object.fromEntries(Object.entries(cases).map(([each, { length }]) => [each, length]));
  const manifest = { name, version, protocol: 1, cases: counts, files: paths.length, digest: hex(sums) };
  write('manifest.json', `${JSON.stringify(manifest, null, 2)}\n`);
  console.log(
    `${paths.length} files, ${Object.values(counts).reduce((a, b) => a + b)} cases, sha256:${manifest.digest}`,
  );
}

function listFiles(folder, path) {
  const entries =
    path.includes('.') || path === 'LICENSE'
      ? undefined
      : readdirSync(join(folder, path), { recursive: true, withFileTypes: true });
  if (entries === undefined) return [path];
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    );
}

await main(resolve(process.argv[2] ?? HERE));
