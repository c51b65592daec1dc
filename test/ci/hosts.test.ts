/** The action, the hook and the examples, run without the hosts that they are for, as those would run them. */

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from 'js-yaml';
import { describe, expect, it, onTestFinished } from 'vitest';
import { VERSION } from '../../src/api/index.js';
import { CLI, hasProgram, Workshop, type Run } from '../cli/runner.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const shop = new Workshop();
const fixture = (from: string, to: string): void => copyFileSync(join(root, 'fixtures', from), shop.path(to));
fixture('ledgers/agent-run.jsonl', 'good.jsonl');
fixture('broken/auth-not-found-folded.jsonl', 'bad.jsonl');
fixture('broken/meter-cap-exceeded.jsonl', 'over.jsonl');

// The commands by the names that hosts know them by.
mkdirSync(shop.path('bin'));
for (const [name, script] of [
  ['northroot', `exec '${process.execPath}' '${CLI}' "$@"`],
  [
    'npm',
    // As npm does, it takes what lies in the folder that it is called in.
    `[ "$1" = install ] || exit 9; echo "$*" > '${shop.path('npm-args')}'; echo "$PWD" > '${shop.path('npm-folder')}'
[ ! -e node_modules/northroot ] || exit 0
[ "$2" != --prefix ] || { mkdir -p "$3/node_modules" && ln -s '${root}' "$3/node_modules/northroot"; }`,
  ],
] as const) {
  shop.write(`bin/${name}`, `#!/bin/sh\n${script}\n`);
  chmodSync(shop.path(`bin/${name}`), 0o755);
}

function bash(
  [command, ...args]: readonly [string, ...string[]],
  env: Readonly<Record<string, string>> = {},
): Run {
  const PATH = `${shop.path('bin')}:${process.env['PATH']}`;
  const { HOME } = process.env;
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: shop.folder,
    encoding: 'utf8',
    env: { PATH, HOME, ...env },
  });
  return { status, stdout, stderr };
}

const read = <T>(path: string): T => load(readFileSync(join(root, path), 'utf8')) as T;

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string; readonly description: string }>>;
  readonly outputs: Readonly<Record<string, { readonly value: string }>>;
  readonly runs: {
    readonly using: string;
    readonly steps: readonly {
      readonly run: string;
      readonly shell: string;
      readonly env: Record<string, string>;
    }[];
  };
}

const action = read<Action>('action.yml');

describe('the action', () => {
  let runs = 0;

  /** Runs its steps; gives the run, its outputs and its summary. */
  function run(
    inputs: Readonly<Record<string, string>>,
  ): Run & { readonly outputs: string; readonly summary: string } {
    runs += 1;
    const files = { GITHUB_OUTPUT: `output-${runs}`, GITHUB_STEP_SUMMARY: `summary-${runs}` };
    const args = Object.entries({ path: root, ...inputs }).map(([name, value]) => `${name}=${value}`);
    const result = bash([process.execPath, join(root, '.ci/run-action.js'), ...args], files);
    return {
      ...result,
      outputs: shop.read(files.GITHUB_OUTPUT),
      summary: shop.read(files.GITHUB_STEP_SUMMARY),
    };
  }

  it('has no expression in a script, and each input in the environment of its step', () => {
    expect(action.runs.using).toBe('composite');
    for (const { run: script, shell } of action.runs.steps) {
      expect(shell).toBe('bash');
      expect(script).not.toContain('${{');
    }
    const values = action.runs.steps.flatMap(({ env }) => Object.values(env)).sort();
    expect(values).toEqual(
      Object.keys(action.inputs)
        .map((name) => `\${{ inputs.${name} }}`)
        .sort(),
    );
    expect(action.inputs['version']?.default).toBe(VERSION);
  });

  it('passes a ledger that is well, and says what was not checked', () => {
    const { status, stdout, outputs, summary } = run({ ledger: 'good.jsonl' });
    expect([status, outputs]).toEqual([0, 'verdict=ok\nexit-status=0\nsarif=\n']);
    expect(stdout).toMatch(/^::notice title=northroot::ok: .*not checked: TRUST/m);
    expect(summary).toContain('### ✅ northroot: ok');
  });

  it('fails with annotations, a summary, SARIF and JUnit', () => {
    const { status, stdout, outputs, summary } = run({
      ledger: 'bad.jsonl',
      sarif: 'a b.sarif',
      junit: 'j.xml',
      anchor: 'x.yml',
    });
    expect([status, outputs]).toEqual([1, 'verdict=invalid\nexit-status=1\nsarif=a b.sarif\n']);
    expect(stdout).toContain('::error file=x.yml,line=1,title=AUTH_NOT_FOUND');
    expect(summary).toContain('northroot: invalid');
    expect([
      shop.read('a b.sarif').includes('AUTH_NOT_FOUND'),
      shop.read('j.xml').includes('<failure'),
    ]).toEqual([true, true]);
  });

  it('fails for what it is told to, and acknowledges a baseline', () => {
    expect(run({ ledger: 'over.jsonl', 'fail-on': 'invalid' }).outputs).toContain(
      'verdict=violation\nexit-status=0',
    );
    expect(shop.run(['verify', 'bad.jsonl', '--output', 'json=base.json']).status).toBe(1);
    const known = run({ ledger: 'bad.jsonl', baseline: 'base.json', annotations: 'false', summary: 'false' });
    expect([known.status, known.outputs, known.summary]).toEqual([
      0,
      'verdict=invalid\nexit-status=0\nsarif=\n',
      '',
    ]);
    expect(known.stdout).not.toMatch(/^::(?:error|warning|notice)/m);
  });

  it('takes several checkpoints, and does not call a ledger well that could not be read', () => {
    const { status, stderr, outputs } = run({
      ledger: 'good.jsonl',
      checkpoint: 'none-1\nnone-2',
      sarif: 'left.sarif',
    });
    expect([status, outputs]).toEqual([2, 'verdict=undecided\nexit-status=2\nsarif=\n']);
    expect(stderr).toContain('none-1');
    expect(existsSync(shop.path('left.sarif'))).toBe(false);
  });

  it('fails where something was not checked that must be', () => {
    const { status, stdout, outputs } = run({ ledger: 'good.jsonl', require: 'TRUNCATION\nTRUST' });
    expect([status, outputs]).toEqual([2, 'verdict=ok\nexit-status=2\nsarif=\n']);
    expect(stdout).toMatch(/^::error title=northroot::.*required, and not checked: TRUST, TRUNCATION/m);
    expect(run({ ledger: 'good.jsonl', require: 'NOTHING' }).outputs).toContain('verdict=undecided');
  });

  it('runs nothing of what its inputs say', () => {
    const attacks = [
      '$(touch forged)',
      '`touch forged`',
      '"; touch forged; "',
      "'; touch forged; '",
      '--help',
      '\n::error::x',
    ];
    for (const attack of attacks) {
      const inputs = Object.keys(action.inputs).filter(
        (name) => !['path', 'sarif', 'version'].includes(name),
      );
      const given = Object.fromEntries(inputs.map((name) => [name, attack]));
      const { status, stdout } = run({ ...given, annotations: 'true', summary: 'true' });
      expect([attack, status, existsSync(shop.path('forged'))]).toEqual([attack, 2, false]);
      expect(stdout).not.toMatch(/^::error::x/m);
    }
    for (const version of ['1.2.3; touch forged', 'latest', 'git+https://evil.example/x', '1.2.3\n4']) {
      const { status } = run({ ledger: 'good.jsonl', path: '', version });
      expect([status, existsSync(shop.path('forged')), existsSync(shop.path('npm-args'))]).toEqual([
        2,
        false,
        false,
      ]);
    }
    expect(run({ ledger: 'good.jsonl', sarif: 'x\nverdict=ok' }).outputs).toBe(
      'verdict=undecided\nexit-status=2\nsarif=\n',
    );
    expect(run({ ledger: 'good.jsonl', annotations: attacks[5] ?? '' }).stdout).not.toMatch(/^::error::x/m);
  });

  it('fetches the exact version where it is given no folder', () => {
    const { status, outputs } = run({ ledger: 'good.jsonl', path: '' });
    expect([status, outputs]).toEqual([0, 'verdict=ok\nexit-status=0\nsarif=\n']);
    expect(shop.read('npm-args')).toMatch(/^install --prefix \S+ --ignore-scripts /);
    expect(shop.read('npm-args').trim().split(' ').at(-1)).toBe(`northroot@${VERSION}`);
  });

  it('runs no verifier that lies in the checkout', () => {
    mkdirSync(shop.path('node_modules/northroot/bin'), { recursive: true });
    shop.write('node_modules/northroot/bin/northroot.js', '');
    const { status, outputs } = run({ ledger: 'bad.jsonl', path: '' });
    expect([status, outputs]).toEqual([1, 'verdict=invalid\nexit-status=1\nsarif=\n']);
    expect(shop.read('npm-folder').trim()).not.toBe(shop.folder);
  });

  it.each([
    ['ends well and writes no report', ''],
    ['ends as an invalid ledger does', 'process.exit(1)'],
    ['is killed', 'process.kill(process.pid, "SIGKILL")'],
    [
      'is killed after its report',
      `const at = process.argv.find((arg) => arg.startsWith('--output=json=')).slice(14);
       require('fs').writeFileSync(at, '{"verdict":"ok"}');
       process.kill(process.pid, "SIGKILL")`,
    ],
  ])('decides nothing when the verifier %s', (_, script) => {
    mkdirSync(shop.path('fake/bin'), { recursive: true });
    shop.write('fake/bin/northroot.js', script);
    const { status, stdout, outputs } = run({ ledger: 'good.jsonl', path: 'fake', sarif: 'x.sarif' });
    expect([status, outputs]).toEqual([2, 'verdict=undecided\nexit-status=2\nsarif=\n']);
    expect(stdout).toMatch(/^::error title=northroot::nothing could be decided/m);
  });

  it.each([
    { annotations: 'yes' },
    { summary: 'False' },
    { junit: '-' },
    { path: 'no/such/folder' },
    { path: '--version' },
    { 'fail-on': 'nothing' },
    { ledger: '' },
  ])('refuses wrong inputs: %j', (inputs) => {
    const { status, outputs } = run({ ledger: 'good.jsonl', ...inputs });
    expect([status, outputs]).toEqual([2, 'verdict=undecided\nexit-status=2\nsarif=\n']);
  });
});

/** A ledger with checkpoints, the note of its last one and a policy: and the same ledger, cut. */
const sealed = readFileSync(join(root, 'fixtures/ledgers/checkpoints.jsonl'), 'utf8').trimEnd().split('\n');
const notes = sealed.flatMap((line) => {
  const { event } = JSON.parse(line) as { event: { note?: string } };
  return event.note ?? [];
});
shop.write('ledger.jsonl', `${sealed.join('\n')}\n`);
shop.write('cut.jsonl', `${sealed.slice(0, 5).join('\n')}\n`);
shop.write('kept.checkpoint', notes.at(-1) ?? '');
const trusted = shop.run(['trust', 'init', 'ledger.jsonl', '--yes', '--out', 'trust.json']);

it('the policy of these tests was made', () => {
  expect(trusted).toMatchObject({ status: 0 });
});

interface Hook {
  readonly id: string;
  readonly entry: string;
  readonly args: readonly string[];
  readonly language: string;
  readonly files: string;
  readonly verbose?: boolean;
}

interface HookConfiguration {
  readonly repos: readonly { readonly repo: string; readonly hooks: readonly Hook[] }[];
}

const example = read<HookConfiguration>('examples/pre-commit-config.yaml');

describe('the pre-commit hook', () => {
  const [hook] = read<readonly Hook[]>('.pre-commit-hooks.yaml');
  const on = (...args: string[]): Run => bash(['bash', '-c', `${hook?.entry ?? ''} "$@"`, 'hook', ...args]);

  it('verifies each ledger that it is given, and fails when one fails', () => {
    const both = on('--', 'bad.jsonl', 'good.jsonl');
    expect([both.status, both.stdout.split('\n').map((line) => line.split(' ')[0])]).toEqual([
      1,
      ['invalid', 'ok', ''],
    ]);
    const good = on('--', 'good.jsonl');
    expect([good.status, good.stdout]).toEqual([0, expect.stringContaining('not checked: TRUST')]);
    expect([hook?.verbose, hook?.language, hook?.args.at(-1)]).toEqual([true, 'system', '--']);
  });

  it('takes a policy and a checkpoint before the ledgers, and so sees that one was cut', () => {
    const args = ['--trust=trust.json', '--checkpoint=kept.checkpoint', '--require=TRUNCATION', '--'];
    expect(on(...args, 'ledger.jsonl')).toMatchObject({ status: 0 });
    const cut = on(...args, 'cut.jsonl');
    expect([cut.status, cut.stdout.includes('TRUNCATED')]).toEqual([1, true]);
    expect(on('--', 'cut.jsonl').status).toBe(0);
    expect(on('--require=TRUNCATION', '--', 'cut.jsonl').status).toBe(2);
  });

  it('takes no file for an option', () => {
    for (const name of ['--help', '--output=json=forged', '--']) expect(on('--', name).status).toBe(2);
    expect(on('good.jsonl').status).toBe(2);
    expect(existsSync(shop.path('forged'))).toBe(false);
  });

  it('takes files that are named as ledgers are', () => {
    const pattern = new RegExp(hook?.files ?? '');
    expect(['ledger.jsonl', 'a/ledger.jsonl', 'x-ledger.jsonl'].map((name) => pattern.test(name))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.skipIf(!hasProgram('pre-commit') || !hasProgram('git'))('runs, and so does the example', () => {
    const args = ['--trust=trust.json', '--checkpoint=kept.checkpoint', '--'];
    // What fetches the package is left to pre-commit: it is on the PATH here.
    const local = example.repos.map(({ repo, hooks }) => ({
      repo,
      hooks: hooks.map((each) => ({ ...each, language: 'system', additional_dependencies: [] })),
    }));
    const script = `set -e
export PRE_COMMIT_HOME="$PWD/pre-commit" GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@x
mkdir hooks work
cp '${join(root, '.pre-commit-hooks.yaml')}' hooks/
git -C hooks init -q && git -C hooks add . && git -C hooks commit -qm x
rev=$(git -C hooks rev-parse HEAD)
cp ledger.jsonl kept.checkpoint trust.json work/ && cd work && git init -q && git add .
sed "s/REV/$rev/" ../config.json > .pre-commit-config.yaml
pre-commit run --all-files
cp ../cut.jsonl ledger.jsonl && git add .
pre-commit run --all-files && exit 99
git rm -qf ledger.jsonl
pre-commit run northroot-verify-example --all-files && exit 99
exit 0`;
    const [first] = local;
    const hooks = first?.hooks.map((each) => ({ ...each, id: `${each.id}-example` })) ?? [];
    shop.write(
      'config.json',
      JSON.stringify({
        repos: [
          { repo: '../hooks', rev: 'REV', hooks: [{ id: hook?.id, args }] },
          { repo: 'local', hooks },
        ],
      }),
    );
    const run = bash(['bash', '-c', script]);
    expect([run.status, run.stdout.match(/\.(?:Passed|Failed)$/gm)], run.stdout + run.stderr).toEqual([
      0,
      ['.Passed', '.Passed', '.Failed', '.Failed', '.Failed'],
    ]);
    expect(run.stdout.match(/TRUNCATED/g)).toHaveLength(2);
  });
});

describe('examples', () => {
  it('the workflow gives the action inputs that it has, and reads outputs that it has', () => {
    const { jobs } = read<{ jobs: { verify: { steps: readonly { uses?: string; with?: object }[] } } }>(
      'examples/github-workflow.yml',
    );
    const own = jobs.verify.steps.find(({ uses }) => uses?.includes('/northroot@'));
    for (const name of Object.keys(own?.with ?? {})) expect(Object.keys(action.inputs)).toContain(name);
    const text = JSON.stringify(jobs);
    const outputs = [...text.matchAll(/steps\.northroot\.outputs\.([\w-]+)/g)].map(([, name]) => name);
    expect(outputs.length).toBeGreaterThan(0);
    for (const name of outputs) expect(Object.keys(action.outputs)).toContain(name);
    expect(own?.uses).toContain(`@v${VERSION}`);
  });

  it("GitLab's job writes the reports that it names", () => {
    const { 'verify-ledger': job } = read<{
      'verify-ledger': {
        before_script: string[];
        script: string[];
        artifacts: { reports: Record<string, string> };
      };
    }>('examples/gitlab-ci.yml');
    const script = [...job.before_script, ...job.script].join('\n');
    const on = (LEDGER: string, held: object = { LEDGER_CHECKPOINT: 'kept.checkpoint' }): number | null =>
      bash(['bash', '-ec', script], { LEDGER, TRUST: 'trust.json', ...held }).status;
    expect(on('ledger.jsonl')).toBe(0);
    expect(on('ledger.jsonl', {})).toBe(2);
    expect(on('cut.jsonl')).toBe(1);
    expect([shop.read('npm-folder'), shop.read('npm-args').trim().split(' ').at(-1)]).toEqual([
      '/\n',
      `northroot@${VERSION}`,
    ]);
    const { codequality = '', junit = '' } = job.artifacts.reports;
    expect(JSON.parse(shop.read(codequality))).not.toEqual([]);
    expect(shop.read(junit)).toContain('<failure');
  });

  it('the workflow takes the policy of the branch that a pull request goes to', () => {
    const { jobs } = read<{
      jobs: { verify: { steps: readonly { if?: string; run?: string; env?: object }[] } };
    }>('examples/github-workflow.yml');
    const step = jobs.verify.steps.find(({ run }) => run?.includes('trust.json'));
    expect(step?.if).toContain('pull_request');
    expect(step?.env).toEqual({ BASE: '${{ github.base_ref }}' });
    const folder = mkdtempSync(join(tmpdir(), 'northroot-fork-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const git = (cwd: string, ...args: string[]): void => {
      const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.com'];
      expect(spawnSync('git', [...identity, ...args], { cwd, encoding: 'utf8' }).stderr ?? '').not.toMatch(
        /fatal/,
      );
    };
    const [base, fork] = [join(folder, 'base'), join(folder, 'fork')];
    git(folder, 'init', '--quiet', '--initial-branch=main', base);
    writeFileSync(join(base, 'trust.json'), 'of the base');
    git(base, 'add', '.');
    git(base, 'commit', '--quiet', '-m', 'base');
    git(folder, 'clone', '--quiet', `file://${base}`, fork);
    // What a fork may commit: a policy of its own, or a link to somewhere else.
    writeFileSync(join(fork, 'other.json'), 'of the fork');
    rmSync(join(fork, 'trust.json'));
    symlinkSync('other.json', join(fork, 'trust.json'));
    const run = spawnSync('bash', ['-ec', step?.run ?? 'exit 9'], {
      cwd: fork,
      env: { ...process.env, BASE: 'main' },
      encoding: 'utf8',
    });
    expect([run.status, run.stderr]).toEqual([0, '']);
    expect(readFileSync(join(fork, 'trust.json'), 'utf8')).toBe('of the base');
    expect(readFileSync(join(fork, 'other.json'), 'utf8')).toBe('of the fork');
  });

  it('the workflow fails a ledger that was cut, and one of which no checkpoint is held', () => {
    const { jobs } = read<{
      jobs: { verify: { steps: readonly { uses?: string; run?: string; with?: object }[] } };
    }>('examples/github-workflow.yml');
    const { steps } = jobs.verify;
    const script = steps.find(({ run }) => run !== undefined)?.run ?? 'exit 9';
    const own = steps.find(({ uses }) => uses?.includes('/northroot@'))?.with ?? {};
    const runWith = (ledger: string, note: string): number | null => {
      expect(bash(['bash', '-ec', script], { LEDGER_CHECKPOINT: note.trimEnd() }).status).toBe(0);
      const inputs = Object.entries({ ...own, ledger, path: root }).map(
        ([name, value]) => `${name}=${value}`,
      );
      return bash([process.execPath, join(root, '.ci/run-action.js'), ...inputs]).status;
    };
    const note = notes.at(-1) ?? '';
    expect([runWith('ledger.jsonl', note), runWith('cut.jsonl', note), runWith('ledger.jsonl', '')]).toEqual([
      0, 1, 2,
    ]);
    shop.write('kept.checkpoint', note);
  });

  it('the configuration of pre-commit installs this version, and demands a policy and a checkpoint', () => {
    const [hook] = example.repos[0]?.hooks ?? [];
    expect(hook).toMatchObject({ language: 'node', additional_dependencies: [`northroot@${VERSION}`] });
    expect(hook?.args).toEqual(expect.arrayContaining(['--require=TRUST', '--require=TRUNCATION']));
  });
});

describe('the container file', () => {
  const text = readFileSync(join(root, 'Containerfile'), 'utf8');
  const lines = text.split('\n').filter((line) => /^[A-Z]/.test(line));

  it('builds from what the repository has, and does not run as root', () => {
    expect(
      lines.filter((line) => line.startsWith('FROM')).every((line) => /:22-alpine(?: AS build)?$/.test(line)),
    ).toBe(true);
    expect(lines.indexOf('USER node')).toBeGreaterThan(
      lines.findIndex((line) => line.startsWith('RUN npm install')),
    );
    expect(lines.slice(-2)).toEqual(['ENTRYPOINT ["northroot"]', 'CMD ["--help"]']);
    const { name } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { name: string };
    for (const [file] of text.matchAll(/\/tmp\/[\w*-]+\.tgz/g)) expect(file).toBe(`/tmp/${name}-*.tgz`);
  });

  it.skipIf(!hasProgram('podman') || process.env['SLOW'] !== '1')('builds, and verifies', () => {
    expect(bash(['podman', 'build', '-q', '-t', 'northroot-test', root]).status).toBe(0);
    const mount = `${shop.folder}:/ledgers:ro`;
    expect(
      bash(['podman', 'run', '--rm', '-v', mount, 'northroot-test', 'verify', 'good.jsonl']).status,
    ).toBe(0);
  });
});
