/** What northroot is held against: which of it is on this machine, in which version, and whether it verifies what it says. */

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLI, runProgram } from './processes.js';

const GO_SOURCE = fileURLToPath(new URL('../go', import.meta.url));
const PYTHON_SCRIPT = fileURLToPath(new URL('../python/verify.py', import.meta.url));
const SPEED_SECONDS = 3;

const VERSIONS = {
  openssl: ['version'],
  go: ['version'],
  python3: ['--version'],
  jq: ['--version'],
  sha256sum: ['--version'],
};

/** Each peer with its version, or with why it is not measured. */
export function findPeers() {
  const peers = { node: { version: process.version } };
  for (const [name, args] of Object.entries(VERSIONS)) {
    const { status, error, stdout } = spawnSync(name, args, { encoding: 'utf8' });
    const [version = ''] = (stdout ?? '').split('\n');
    if (error?.code === 'ENOENT') peers[name] = { missing: `${name} not found` };
    else if (status !== 0) peers[name] = { missing: `${name} ${args.join(' ')} ended with ${status}` };
    else peers[name] = { version };
  }
  if (peers.python3.version !== undefined) {
    const script = 'import cryptography; print(cryptography.__version__)';
    const { status, stdout } = spawnSync('python3', ['-c', script], { encoding: 'utf8' });
    peers.cryptography = status === 0 ? { version: stdout.trim() } : { missing: 'cryptography not found' };
  }
  return peers;
}

/** Compiles the verifier in Go; its path. */
export function buildGo(folder) {
  const built = join(folder, 'go', 'northroot-peer');
  mkdirSync(join(folder, 'go'), { recursive: true });
  // It needs nothing that Go does not bring along, and no other Go than the one that is here.
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOPROXY: 'off' };
  runProgram('go', ['build', '-o', built, '.'], { cwd: GO_SOURCE, env });
  return built;
}

export const goVerify = (program, path, threads) => verifiedBy(program, ['-threads', String(threads), path]);
export const pythonVerify = (path) => verifiedBy('python3', [PYTHON_SCRIPT, path]);

function verifiedBy(program, args) {
  const { wall, stdout } = runProgram(program, args);
  const { cpu_ms: cpu, ...said } = JSON.parse(stdout);
  return { wall, cpu, ...said };
}

/** How many Ed25519 signatures `openssl speed` verifies in a second of wall time, in so many processes. */
export function opensslVerifies(processes) {
  const args = [
    'speed',
    '-elapsed',
    '-seconds',
    String(SPEED_SECONDS),
    '-multi',
    String(processes),
    'ed25519',
  ];
  return parseSpeed(runProgram('openssl', args).stdout);
}

/** The last number of its table's one row: `253 bits EdDSA (Ed25519)   0.0000s   0.0001s  23558.6   8992.4`. */
export function parseSpeed(text) {
  const [, rate] = /^.*Ed25519\).*\s(\d+(?:\.\d+)?)\s*$/m.exec(text) ?? [];
  if (rate === undefined) throw new Error('openssl speed printed no rate of verifying with Ed25519');
  return Number(rate);
}

/**
 * Holds verifiers to a small signed ledger and to changed copies of it: each has to say that the one is right, and none of the others.
 * What is changed stands in the last record, so that no later one betrays it.
 *
 * @param verifiers - By name; each throws for a ledger that is not right, and returns what it counted.
 * @throws Error when one does not: what it takes would then say nothing.
 */
export function checkVerifiers(verifiers, folder, path, { records, root }) {
  const text = readFileSync(path, 'utf8');
  const lines = text.trimEnd().split('\n');
  const last = lines.at(-1);
  const withLast = (line) => `${[...lines.slice(0, -1), line].join('\n')}\n`;
  const other = (character) => (character === 'A' ? 'B' : 'A');
  const changed = {
    'a signature': withLast(last.replace(/(?<="sig":"[^"]{20})[^"]/, other)),
    'an amount': withLast(last.replace('"v":"250"', '"v":"251"')),
    'an event_id': withLast(last.replace(/(?<="event_id":\{"alg":"sha-256","b64":")[^"]/, other)),
    'a prev': withLast(last.replace(/(?<="prev":\{"alg":"sha-256","b64":")[^"]/, other)),
    'a record left out': `${[...lines.slice(0, 9), ...lines.slice(10)].join('\n')}\n`,
  };
  const changedPath = join(folder, 'changed.jsonl');
  for (const [name, verify] of Object.entries(verifiers)) {
    const said = verify(path);
    const isRight = said.records === records && said.signatures === records;
    if (!isRight || (said.root !== undefined && said.root !== root))
      throw new Error(`${name} says of a ledger that is right: ${JSON.stringify(said)}`);
    for (const [what, content] of Object.entries(changed)) {
      if (content === text) throw new Error(`${what} was to be changed, and is not`);
      writeFileSync(changedPath, content);
      if (accepts(verify, changedPath)) throw new Error(`${name} does not see that ${what} was changed`);
    }
  }
}

function accepts(verify, path) {
  try {
    verify(path);
    return true;
  } catch {
    return false;
  }
}

/** northroot as one of those verifiers. */
export function northrootVerify(path) {
  const { stdout } = runProgram(process.execPath, [CLI, 'verify', path, '--format', 'json']);
  const { ledger, trust } = JSON.parse(stdout);
  return { records: ledger.records, signatures: trust.signatures.valid, root: ledger.root };
}
