/**
 * The project's checks, one after the other, recorded in a ledger of northroot's own: each step is authorized under a grant
 * before it runs and recorded as an execution with its measured time after it, through `northroot append` as any pipeline
 * would do it; at the end the ledger is sealed and verified with the CLI that was just built. The last line printed is
 * `N passed, N failed`: a step counts as one, the tests count by themselves.
 */

import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = `${root}.ci/ledger`;
const ledger = `${folder}/ci.jsonl`;
const testReport = `${folder}/tests.json`;
const cli = [`${root}bin/northroot.js`];

/** Every step: its tool name and its command. `time.ms` is what it may take at most. */
const steps = [
  { tool: 'ci.build', command: ['npm', 'run', 'build'], timeMs: 300_000 },
  { tool: 'ci.generated', command: ['node', 'schemas/generate.js', '--check'], timeMs: 120_000 },
  { tool: 'ci.format', command: ['npx', 'prettier', '--check', '.'], timeMs: 120_000 },
  { tool: 'ci.lint', command: ['npx', 'eslint', '.'], timeMs: 300_000 },
  { tool: 'ci.types', command: ['npx', 'tsc', '-p', 'test/tsconfig.json'], timeMs: 300_000 },
  { tool: 'ci.unused', command: ['npx', 'knip', '--exclude', 'types'], timeMs: 120_000 },
  { tool: 'ci.publint', command: ['npx', 'publint', '--strict'], timeMs: 120_000 },
  { tool: 'ci.attw', command: ['npx', 'attw', '--pack', '.', '--profile', 'esm-only'], timeMs: 120_000 },
  {
    tool: 'ci.test',
    command: [
      'npx',
      'vitest',
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${testReport}`,
    ],
    timeMs: 3_600_000,
  },
];
const principal = 'service:ci';

/** A digest as events have it, of a value's canonical JSON. */
function digestOf(value) {
  return JSON.parse(northroot(['digest', '--json', '--object'], JSON.stringify(value)));
}

function northroot(args, input) {
  const { status, stdout, stderr } = spawnSync('node', [...cli, ...args], { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`northroot ${args.join(' ')} ended with ${status}:\n${stderr}${stdout}`);
  return stdout;
}

/** Appends one event; returns the digest that is its id. */
function append(event) {
  const line = northroot(['append', ledger, '--principal', principal], `${JSON.stringify(event)}\n`);
  return { alg: 'sha-256', b64: JSON.parse(line).event_id.slice('sha-256:'.length) };
}

function run([command, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
    child.once('error', () => resolve(127));
    child.once('close', (status) => resolve(status ?? 1));
  });
}

const int = (value) => ({ t: 'int', v: String(Math.ceil(value)) });
const meters = (timeMs) => [
  { unit: 'calls', amount: int(1) },
  { unit: 'time.ms', amount: int(timeMs) },
];

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
northroot(['init', ledger, '--origin', 'northroot.dev/ci', '--quiet']);

const policy = {
  policy_id: 'northroot-ci/1',
  policy_digest: digestOf(steps.map(({ tool, command }) => ({ tool, command }))),
};
const runIntent = { intent_digest: digestOf({ run: 'every check of the project' }) };
const grant = append({
  event_type: 'authorization',
  intents: runIntent,
  ...policy,
  decision: 'allow',
  decision_code: 'ALLOW',
  authorization: {
    kind: 'grant',
    bounds: {
      allowed_tools: ['ci.*'],
      meter_caps: [
        { unit: 'calls', amount: int(steps.length) },
        { unit: 'time.ms', amount: int(steps.reduce((sum, { timeMs }) => sum + timeMs, 0)) },
      ],
    },
  },
});

let passed = 0;
let failed = 0;
for (const { tool, command, timeMs } of steps) {
  const intents = { intent_digest: digestOf({ tool, command }), user_intent_digest: runIntent.intent_digest };
  const params = digestOf(command);
  const authorization = append({
    event_type: 'authorization',
    intents,
    ...policy,
    decision: 'allow',
    decision_code: 'ALLOW',
    authorization: {
      kind: 'action',
      grant_event_id: grant,
      action: { tool_name: tool, tool_params_digest: params, meter_reservation: meters(timeMs) },
    },
  });
  console.log(`\n== ${tool}: ${command.join(' ')}`);
  const startedAt = new Date().toISOString();
  const start = performance.now();
  const status = await run(command);
  const elapsed = performance.now() - start;
  append({
    event_type: 'execution',
    intents,
    auth_event_id: authorization,
    tool_name: tool,
    tool_params_digest: params,
    started_at: startedAt,
    ended_at: new Date().toISOString(),
    meter_used: meters(elapsed),
    outcome: status === 0 ? 'success' : 'failure',
    ...(status === 0 ? {} : { error_code: `EXIT_${status}` }),
  });
  console.log(
    `== ${tool}: ${status === 0 ? 'passed' : `FAILED with ${status}`} in ${(elapsed / 1000).toFixed(1)} s`,
  );
  if (tool === 'ci.test') countTests();
  else if (status === 0) passed += 1;
  else failed += 1;
}

console.log('\n== the ledger of this run');
northroot(['checkpoint', ledger, '--quiet']);
const verify = spawnSync('node', [...cli, 'verify', ledger, '--checkpoint', `${ledger}.checkpoint`], {
  stdio: ['ignore', 'inherit', 'inherit'],
});
if (verify.status === 0) passed += 1;
else failed += 1;

console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

/** A run of the tests that left no report is one failure. */
function countTests() {
  try {
    const { numPassedTests, numFailedTests, success } = JSON.parse(readFileSync(testReport, 'utf8'));
    passed += numPassedTests;
    failed += numFailedTests + (success || numFailedTests > 0 ? 0 : 1);
  } catch {
    failed += 1;
  }
}
