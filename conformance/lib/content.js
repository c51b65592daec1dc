/** The content of the package: cases, files, digests. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../', import.meta.url));
export const CLASSES = ['verifier', 'writer', 'decider', 'witness'];
const MAX_DEPTH = 200;

/** The content is not what its manifest says. */
export class ContentError extends Error {}

/**
 * Reads the manifest, and every file that it names.
 * @throws ContentError for a file that is missing or another
 */
export function readContent() {
  const manifest = readManifest();
  const sums = read('SHA256SUMS');
  if (hex(sums) !== manifest.digest) throw new ContentError('SHA256SUMS is not the one of manifest.json');
  const files = new Map();
  for (const line of sums.toString().split('\n').slice(0, -1)) {
    const [digest, path] = line.split('  ');
    const bytes = read(path);
    if (hex(bytes) !== digest) throw new ContentError(`${path} is not the file that was packed`);
    files.set(path, bytes);
  }
  const cases = CLASSES.flatMap((name) => {
    const { cases: own } = JSON.parse(files.get(`content/cases/${name}.json`));
    return own.map((each) => ({ class: name, ...each }));
  });
  return { manifest, files, cases };
}

function readManifest() {
  let manifest;
  try {
    manifest = JSON.parse(read('manifest.json'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (typeof manifest?.digest !== 'string' || typeof manifest.version !== 'string')
    throw new ContentError('manifest.json has no version and digest');
  return manifest;
}

function read(path) {
  try {
    return readFileSync(`${ROOT}${path}`);
  } catch (error) {
    const hint = path === 'manifest.json' ? ': in a checkout, make it by `node conformance/generate.js`' : '';
    throw new ContentError(`${path} cannot be read: ${error.code}${hint}`);
  }
}

function hex(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * A value of a case as it is sent or compared.
 * @param files - For `{"$file"}`
 * @param saved - For `{"$ref"}`: what earlier answers gave
 */
export function expand(value, files, saved = new Map(), depth = 0) {
  if (depth > MAX_DEPTH) throw new ContentError('a case is nested too deep');
  if (Array.isArray(value)) return value.map((item) => expand(item, files, saved, depth + 1));
  if (typeof value !== 'object' || value === null) return value;
  const [[name, of] = []] = Object.entries(value);
  if (name === '$file') return need(files.get(`content/files/${of}`), of).toString('base64');
  if (name === '$utf8') return Buffer.from(of).toString('base64');
  if (name === '$hex') return Buffer.from(of, 'hex').toString('base64');
  if (name === '$ref') return need(saved.get(of), of);
  return Object.fromEntries(
    Object.entries(value).map(([member, item]) => [member, expand(item, files, saved, depth + 1)]),
  );
}

function need(value, name) {
  if (value === undefined) throw new ContentError(`${name} is not there`);
  return value;
}
