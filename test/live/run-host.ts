/**
 * Runs the command line of a real coding agent against a scripted model, in a home of its own and, where the system can, without a network.
 * The models' scripts are those of ../shared/live/mocks; the agents are what npm has installed in a folder of its own.
 */

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HookName } from '../../src/gate/hook/profile.js';

export const MOCKS = fileURLToPath(new URL('../../../shared/live/mocks/', import.meta.url));
const CLI = fileURLToPath(new URL('../../bin/northroot.js', import.meta.url));
/** Where the agents are, or are put: a folder that stays, since they are large. */
export const PEERS = process.env['PEERS'] ?? join(tmpdir(), 'northroot-peers');
const PACKAGES = ['@anthropic-ai/claude-code', '@openai/codex', '@google/gemini-cli'];
/** An agent takes ten seconds on a quiet machine. */
const LIMIT_MS = 280_000;

export type LiveHost = Exclude<HookName, 'copilot'>;

interface Host {
  /** In {@link PEERS}. */
  readonly bin: string;
  readonly mock: string;
  readonly port: number;
  /** Its tool for shell commands, and how a command is given to it. */
  readonly tool: string;
  input(command: string): object;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** What it must find in its home. */
  files(): Readonly<Record<string, string>>;
}

export const HOSTS: Readonly<Record<LiveHost, Host>> = {
  'claude-code': {
    bin: 'node_modules/@anthropic-ai/claude-code-linux-x64/claude',
    mock: 'mock-anthropic.mjs',
    port: 18999,
    tool: 'Bash',
    input: (command) => ({ command, description: 'make' }),
    args: ['-p', 'go', '--output-format', 'json', '--model', 'claude-sonnet-4-5', '--allowedTools', 'Bash'],
    env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:18999', ANTHROPIC_API_KEY: 'dummy' },
    files: () => ({}),
  },
  codex: {
    bin: 'node_modules/.bin/codex',
    mock: 'mock-openai.mjs',
    port: 18997,
    tool: 'exec_command',
    input: (cmd) => ({ cmd }),
    args: ['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-hook-trust', 'go'],
    env: {},
    files: () => ({
      '.codex/config.toml': [
        'model = "gpt-5"',
        'model_provider = "mock"',
        'approval_policy = "never"',
        'sandbox_mode = "danger-full-access"',
        '[analytics]',
        'enabled = false',
        '[model_providers.mock]',
        'name = "mock"',
        'base_url = "http://127.0.0.1:18997/v1"',
        'wire_api = "responses"',
        '',
      ].join('\n'),
    }),
  },
  gemini: {
    bin: 'node_modules/@google/gemini-cli/bundle/gemini.js',
    mock: 'mock-gemini.mjs',
    port: 18998,
    tool: 'run_shell_command',
    input: (command) => ({ command, description: 'make' }),
    args: ['-p', 'go', '-m', 'gemini-2.5-flash', '--output-format', 'json', '--approval-mode', 'yolo'],
    env: {
      GEMINI_API_KEY: 'dummy',
      GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:18998',
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    },
    files: () => ({
      '.gemini/settings.json': JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
      }),
    }),
  },
};

/** Whether each run has a network of its own, so that several listen at one port. */
export const CAN_ISOLATE = spawnSync('unshare', ['-rn', 'true']).status === 0;

/** Why agents cannot be run here; undefined if they can. */
export function findObstacle(): string | undefined {
  if (!existsSync(MOCKS)) return `there is no ${MOCKS}`;
  if (PACKAGES.every((name) => existsSync(join(PEERS, 'node_modules', name)))) return undefined;
  mkdirSync(PEERS, { recursive: true });
  writeFileSync(join(PEERS, 'package.json'), '{"private":true}\n');
  const { status, stderr } = spawnSync('npm', ['install', '--ignore-scripts', '--no-audit', ...PACKAGES], {
    cwd: PEERS,
    encoding: 'utf8',
  });
  return status === 0 ? undefined : `npm cannot install the agents: ${stderr.slice(-300)}`;
}

/** A home with a ledger that grants so many calls, and an agent that is guarded by it. */
export class LiveRun {
  readonly host: LiveHost;
  readonly home = mkdtempSync(join(tmpdir(), 'northroot-live-'));
  readonly ledger = join(this.home, 'ledger.jsonl');

  constructor(host: LiveHost, calls: number) {
    this.host = host;
    for (const [name, text] of Object.entries(HOSTS[host].files())) this.write(name, text);
    this.northroot('init', this.ledger);
    const grant = ['--to', `agent:${host}`, '--tool', '*', '--cap', `calls=${calls}`, '--expires', '1h'];
    this.northroot('grant', this.ledger, ...grant);
    this.northroot('hook', 'install', host, '--ledger', this.ledger);
  }

  write(name: string, text: string): void {
    mkdirSync(join(this.home, name, '..'), { recursive: true });
    writeFileSync(join(this.home, name), text);
  }

  northroot(...args: readonly string[]): string {
    const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], {
      cwd: this.home,
      env: this.#env(),
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`northroot ${args.join(' ')}: ${String(status)}: ${stderr}`);
    return stdout;
  }

  /**
   * Has the model call for these commands, one after the other, in a folder of the home; the names of the files that they left, and what the
   * agent said.
   */
  async run(
    commands: readonly string[],
    folder = 'work',
  ): Promise<{ readonly files: readonly string[]; readonly said: string }> {
    mkdirSync(join(this.home, folder));
    const { bin, mock, port, tool, input, args } = HOSTS[this.host];
    this.write(`${folder}.json`, JSON.stringify(commands.map((each) => ({ tool, input: input(each) }))));
    const program = join(PEERS, bin);
    const words = [...(bin.endsWith('.js') ? [process.execPath] : []), program, ...args];
    const script = `
      "$1" "$2" ${port} ${folder}.json ${folder}.log & mock=$!
      until (exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null; do sleep 0.1; done
      shift 2; cd ${folder}; "$@" < /dev/null; kill $mock`;
    const inside = CAN_ISOLATE ? ['unshare', '-rn', 'bash', '-c', 'ip link set lo up; exec "$@"', '--'] : [];
    const [command = '', ...rest] = [
      ...inside,
      ...['bash', '-c', script, '--', process.execPath, join(MOCKS, mock), ...words],
    ];
    const said = await new Promise<string>((resolve) => {
      const child = spawn(command, rest, { cwd: this.home, env: this.#env(), timeout: LIMIT_MS });
      let text = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => (text += String(chunk)));
      child.on('close', (status) => resolve(`${text}\nended with ${String(status)}\n`));
    });
    return { files: readdirSync(join(this.home, folder)).sort(), said };
  }

  /** The ledger's records: type, decision, outcome. */
  records(): string[] {
    const told = this.northroot('log', this.ledger);
    return told.split('\n').flatMap((line) => {
      const [, what] =
        /(allow action \S+|deny action \S+|\S+ (?:success|failure|unknown)\b)/.exec(line) ?? [];
      return what === undefined ? [] : [what];
    });
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true });
  }

  #env(): NodeJS.ProcessEnv {
    const { PATH } = process.env;
    const quiet = {
      DISABLE_TELEMETRY: '1',
      DISABLE_AUTOUPDATER: '1',
      DO_NOT_TRACK: '1',
      NO_COLOR: '1',
      CI: '1',
    };
    const own = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ...HOSTS[this.host].env };
    return { PATH, HOME: this.home, LANG: 'C.UTF-8', ...quiet, ...own };
  }
}
