/**
 * `npm run check`: types, lint and formatting, and tests of what changed since the upstream branch, or since the last commit. The
 * tests of what changed are those that changed themselves and those that import a changed file; the rest is for `npm test`. Takes
 * less than a minute on two cores after a small change.
 */

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** More test files than these take longer than a minute. */
const MAX_TEST_FILES = 12;

function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.split('\n').filter((line) => line !== '') : [];
}

const [base = 'HEAD'] = git('merge-base', 'HEAD', '@{upstream}');
const changed = [
  ...new Set([...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')]),
].filter((file) => existsSync(join(root, file)));

/** Whether a test imports one of the changed files. */
function importsChanged(test) {
  const imported = [...readFileSync(join(root, test), 'utf8').matchAll(/from '(\.[^']+)'/g)];
  return imported.some(([, path]) =>
    changed.includes(normalize(join(dirname(test), path)).replace(/\.js$/, '.ts')),
  );
}

const own = changed.filter((file) => file.endsWith('.test.ts'));
const tests = [
  ...own,
  ...git('ls-files', 'test/*.test.ts').filter((test) => !own.includes(test) && importsChanged(test)),
];
const left = tests.slice(MAX_TEST_FILES);

/** Runs a command; prints its output in one piece where it fails. */
function run(name, command, ...args) {
  return new Promise((resolve) => {
    const start = performance.now();
    const child = spawn('npx', [command, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.once('close', (status) => {
      if (status !== 0) console.log(output.trimEnd());
      const seconds = ((performance.now() - start) / 1000).toFixed(1);
      console.log(`${name}: ${status === 0 ? 'passed' : 'FAILED'} in ${seconds} s`);
      resolve(status === 0);
    });
  });
}

const steps = [
  ['types and lint', 'oxlint', '-c', 'oxlint.config.js'],
  ['format', 'oxfmt', '--check', '.'],
  ...(tests.length === 0 ? [] : [['tests', 'vitest', 'run', ...tests.slice(0, MAX_TEST_FILES)]]),
];
const results = await Promise.all(steps.map((step) => run(...step)));
if (left.length > 0) console.log(`not run: ${left.length} more files of tests, which npm test runs`);
process.exitCode = results.every(Boolean) ? 0 : 1;
