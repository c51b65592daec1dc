/**
 * The project's checks, recorded in a ledger of northroot's own: each step is authorized under a grant
 * before it runs and recorded as an execution with its measured time after it, through `northroot append` as any pipeline
 * would do it; at the end the ledger is sealed and verified by the steps of the project's own action, with what
 * was just built. First the build, with formatting beside it, then what only
 * looks, two at a time, each with its output in one piece, and then the tests, which share the processors out by themselves. The
 * last line printed is `N passed, N failed`: a step counts as one, the tests count by themselves.
 */

import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = `${root}.ci/ledger`;
const ledger = `${folder}/ci.jsonl`;
const testReport = `${folder}/tests.json`;
const cli = [`${root}bin/northroot.js`];

/** Packing runs no build: it would write anew what other steps read. */
const unbuilt = { npm_config_ignore_scripts: 'true' };

/** Every step: its tool name and its command, with what it adds to the environment. `timeMs` is what it may take at most. */
const build = { tool: 'ci.build', command: ['npm', 'run', 'build'], timeMs: 300_000 };
/** Reads sources alone, and so needs no build. */
const format = { tool: 'ci.format', command: ['npx', 'oxfmt', '--check', '.'], timeMs: 300_000 };
/** The longest first: they are taken in this order. */
const looks = [
  {
    tool: 'ci.without-fast',
    command: ['npx', 'vitest', 'run', 'test/bounds', 'test/fixtures', 'test/verify'],
    env: { WITHOUT_FAST: '1' },
    timeMs: 1_200_000,
  },
  { tool: 'ci.formal', command: ['node', 'formal/check.js'], timeMs: 600_000 },
  // With the compiler's own findings, of tests and of the exported page, too.
  { tool: 'ci.lint', command: ['npm', 'run', 'lint'], timeMs: 300_000 },
  {
    tool: 'ci.attw',
    command: ['npx', 'attw', '--pack', '.', '--profile', 'esm-only'],
    env: unbuilt,
    timeMs: 300_000,
  },
  { tool: 'ci.unused', command: ['npx', 'knip', '--exclude', 'types'], timeMs: 300_000 },
  { tool: 'ci.publint', command: ['npx', 'publint', '--strict'], env: unbuilt, timeMs: 300_000 },
  { tool: 'ci.reference', command: ['node', '.ci/api-reference.js'], timeMs: 300_000 },
  { tool: 'ci.generated', command: ['node', 'schemas/generate.js', '--check'], timeMs: 300_000 },
  { tool: 'ci.assembly', command: ['node', 'assembly/build.js', '--check'], timeMs: 300_000 },
];
const tests = {
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
};
const steps = [build, format, ...looks, tests];
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

/** Runs a command to its end; gives its status, and its output where that is kept and not shown at once. */
function run({ command: [program, ...args], env = {} }, isKept) {
  return new Promise((resolve) => {
    const stdio = isKept ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'];
    const child = spawn(program, args, { cwd: root, env: { ...process.env, ...env }, stdio });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => (output += text));
    }
    child.once('error', () => resolve({ status: 127, output }));
    child.once('close', (status) => resolve({ status: status ?? 1, output }));
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

/** @param settled - What is waited for before the step is recorded */
async function takeStep(step, isKept = false, settled = () => undefined) {
  const { tool, command, timeMs } = step;
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
  const header = `\n== ${tool}: ${command.join(' ')}`;
  if (!isKept) console.log(header);
  const startedAt = new Date();
  const start = performance.now();
  const { status, output } = await run(step, isKept);
  const elapsed = performance.now() - start;
  await settled();
  append({
    event_type: 'execution',
    intents,
    auth_event_id: authorization,
    tool_name: tool,
    tool_params_digest: params,
    started_at: startedAt.toISOString(),
    ended_at: new Date(startedAt.getTime() + elapsed).toISOString(),
    meter_used: meters(elapsed),
    outcome: status === 0 ? 'success' : 'failure',
    ...(status === 0 ? {} : { error_code: `EXIT_${status}` }),
  });
  if (isKept) console.log(`${header}\n${output.trimEnd()}`);
  console.log(
    `== ${tool}: ${status === 0 ? 'passed' : `FAILED with ${status}`} in ${(elapsed / 1000).toFixed(1)} s`,
  );
  if (step === tests) countTests();
  else if (status === 0) passed += 1;
  else failed += 1;
}

// Nothing is recorded while northroot is built: formatting begins before, and is recorded after it.
let built;
const formatted = takeStep(format, true, () => built);
built = takeStep(build);
const waiting = [...looks];
const lane = async (before) => {
  await before;
  for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) await takeStep(step, true);
};
await Promise.all([lane(built), lane(formatted)]);
await takeStep(tests);

console.log('\n== the ledger of this run');
northroot(['checkpoint', ledger, '--quiet']);
// By the steps of action.yml, as a pipeline on GitHub would.
const verify = spawnSync(
  'node',
  [
    `${root}.ci/run-action.js`,
    ...[`path=${root}`, `ledger=${ledger}`, `checkpoint=${ledger}.checkpoint`],
    ...[`sarif=${folder}/ci.sarif`, `junit=${folder}/ci.junit.xml`],
  ],
  { stdio: ['ignore', 'inherit', 'inherit'] },
);
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
