/**
 * Loads the command line. The commands that are run most are one script, which `npm run build` makes of their modules, with the code that
 * V8 made of it then; all others are modules, which they share with the library, and of which each loads its own.
 *
 * The code is as good as the script itself, or it is not used: it lies beside it, belongs to whom the script belongs, nobody may write it
 * who may not write the script, and it begins with the SHA-256 of both, since V8 checks neither. What another version of V8 made, V8
 * refuses. Without the code the same script is compiled, which takes some 40 ms.
 */

import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

/** The script: one expression, a function that gets `require` and its own URL and returns what the command line exports. */
export const SCRIPT = new URL('../dist/cli/northroot.cjs', import.meta.url);
/** Loads the other commands. */
const OTHERS = new URL('../dist/cli/other-commands.js', import.meta.url);
/** What V8 made of the script, behind {@link hashBoth}. */
export const CODE = new URL('../dist/cli/northroot.code', import.meta.url);

const HASH_BYTES = 32;
/** Modules outside the script that most commands do not need: each is loaded when a member of it is asked for. */
export const RARE = [
  'node:child_process',
  'node:http',
  'node:readline/promises',
  'node:v8',
  'node:worker_threads',
  'node:zlib',
];
const WRITABLE_BY_OTHERS = 0o022;

/** The commands of src/cli/frequent.ts. */
export const FREQUENT = [
  ...['init', 'append', 'checkpoint', 'grant', 'authorize', 'record', 'abandon', 'adjust', 'budget', 'why'],
  ...['approvals', 'approve', 'reject', 'revoke', 'suspend', 'resume', 'hook'],
  ...['verify', 'report', 'status', 'show', 'log', 'keygen', 'key', 'canonicalize', 'digest', 'event-id'],
];
let frequent;

/** @returns `main`, which runs the command of these arguments. */
export async function loadProgram(args) {
  const command = args.find((arg) => arg !== '-q' && arg !== '--quiet');
  if (!FREQUENT.includes(command)) return (await import(OTHERS.href)).loadCommand(command);
  return (frequent ??= run(compile().script));
}

/** What `--version` says, too. */
export function readVersion() {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;
}

/** The compiled script, and whether V8 took the code that was made before. */
export function compile(scriptUrl = SCRIPT, codeUrl = CODE) {
  const source = readWithOwner(scriptUrl);
  const cachedData = readCode(codeUrl, source);
  // Of ASCII alone, which Latin-1 reads fastest.
  const script = new Script(source.bytes.latin1Slice(), {
    filename: fileURLToPath(scriptUrl),
    ...(cachedData && { cachedData }),
  });
  return { script, bytes: source.bytes, isPrepared: script.cachedDataRejected === false };
}

/** What the compiled script exports. */
export function run(script) {
  const require = createRequire(SCRIPT);
  return script.runInThisContext()(
    (name) => (RARE.includes(name) ? lazily(name, require) : require(name)),
    SCRIPT.href,
  );
}

/** A module whose members are asked for by their names, as the bundle does. */
function lazily(name, require) {
  let module;
  return new Proxy({}, { get: (_target, member) => (module ??= require(name))[member] });
}

export function hashBoth(source, code) {
  return createHash('sha256').update(source).update(code).digest();
}

function readCode(url, source) {
  try {
    const { bytes, uid, gid, mode } = readWithOwner(url);
    const others = mode & WRITABLE_BY_OTHERS;
    if (uid !== source.uid || (others !== 0 && gid !== source.gid) || (others & ~source.mode) !== 0)
      return undefined;
    const code = bytes.subarray(HASH_BYTES);
    return hashBoth(source.bytes, code).equals(bytes.subarray(0, HASH_BYTES)) ? code : undefined;
  } catch {
    // It only saves time.
    return undefined;
  }
}

/** A file's bytes, and who may write the very file that they are of. */
function readWithOwner(url) {
  const file = openSync(url, 'r');
  try {
    const { uid, gid, mode } = fstatSync(file);
    return { bytes: readFileSync(file), uid, gid, mode };
  } finally {
    closeSync(file);
  }
}
