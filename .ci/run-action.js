/**
 * Runs the steps of a composite action as GitHub's runner does, without it: `node .ci/run-action.js NAME=VALUE…`, the action's inputs.
 * Only what action.yml uses of expressions is known: inputs and the action's path, and these in `env` alone, since an expression in a
 * script would be a way into it. Ends with the status of the first step that fails; the outputs are printed after `outputs:`.
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from 'js-yaml';

const folder = fileURLToPath(new URL('..', import.meta.url));
const action = load(readFileSync(join(folder, 'action.yml'), 'utf8'));

const given = Object.fromEntries(
  process.argv.slice(2).map((arg) => [arg.slice(0, arg.indexOf('=')), arg.slice(arg.indexOf('=') + 1)]),
);
for (const name of Object.keys(given)) {
  if (!Object.hasOwn(action.inputs, name)) throw new Error(`the action has no input ${name}`);
}
const inputs = Object.fromEntries(
  Object.entries(action.inputs).map(([name, { default: value = '', required = false }]) => {
    if (required && given[name] === undefined) throw new Error(`the action needs the input ${name}`);
    return [name, given[name] ?? value];
  }),
);

const work = mkdtempSync(join(tmpdir(), 'northroot-action-'));
const files = Object.fromEntries(
  ['GITHUB_OUTPUT', 'GITHUB_STEP_SUMMARY'].map((name) => [name, process.env[name] ?? join(work, name)]),
);
for (const path of Object.values(files)) writeFileSync(path, '', { flag: 'a' });

/** The value of an entry of `env`. */
function evaluate(text) {
  return text.replace(/\$\{\{ ([\w.-]+) \}\}/g, (expression, name) => {
    const [of, input] = name.split('.');
    if (name === 'github.action_path') return folder;
    if (of === 'inputs' && Object.hasOwn(inputs, input)) return inputs[input];
    throw new Error(`not known here: ${expression}`);
  });
}

let status = 0;
try {
  for (const [index, { run, shell, env }] of action.runs.steps.entries()) {
    if (shell !== 'bash' || run.includes('${{')) throw new Error(`not a step that is run here: ${run}`);
    const script = join(work, `step-${index}.sh`);
    writeFileSync(script, run);
    const own = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, evaluate(value)]));
    const step = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], {
      stdio: 'inherit',
      env: { ...process.env, RUNNER_TEMP: work, ...files, ...own },
    });
    status = step.status ?? 2;
    if (status !== 0) break;
  }
  console.log(`outputs:\n${readFileSync(files.GITHUB_OUTPUT, 'utf8').trimEnd()}`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
process.exitCode = status;
