/** Puts what real programs need into a folder of its own, by npm, and runs programs there. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
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
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const CLI = join(ROOT, 'bin/northroot.js');
const INSTALL = [
  ...['install', '--ignore-scripts', '--no-audit', '--no-fund'],
  ...['--legacy-peer-deps', '--engine-strict=false'],
];

/** A folder that stays, since packages are large, with packages and with the programs of a folder beside this file. */
export class Peers {
  readonly folder: string;
  readonly #programs: string;
  readonly #packages: Readonly<Record<string, string>>;

  /** @param place - Where the packages are, or are put. Default: `northroot-PROGRAMS` in the folder for temporary files. */
  constructor(programs: string, packages: Readonly<Record<string, string>>, place: string | undefined) {
    this.folder = place ?? join(tmpdir(), `northroot-${programs}`);
    this.#programs = programs;
    this.#packages = packages;
  }

  /** Installs what is missing. Why they cannot be run here; undefined if they can. */
  findObstacle(): string | undefined {
    if (!existsSync(join(ROOT, 'dist/api/index.js'))) return 'there is no build: npm run build';
    const modules = join(this.folder, 'node_modules');
    if (!Object.keys(this.#packages).every((name) => existsSync(join(modules, name)))) {
      mkdirSync(this.folder, { recursive: true });
      const own = { private: true, type: 'module', dependencies: this.#packages };
      writeFileSync(join(this.folder, 'package.json'), JSON.stringify(own));
      const { status, stderr } = spawnSync('npm', INSTALL, { cwd: this.folder, encoding: 'utf8' });
      if (status !== 0) return `npm cannot install the packages: ${stderr.slice(-300)}`;
    }
    if (!existsSync(join(modules, 'northroot'))) symlinkSync(ROOT, join(modules, 'northroot'));
    cpSync(join(ROOT, 'test/live', this.#programs), this.folder, { recursive: true });
    return undefined;
  }

  /** The JSON that a program prints as its last line. */
  async run(program: string, ...args: readonly string[]): Promise<unknown> {
    const child = spawn(process.execPath, [program, ...args], { cwd: this.folder, stdio: 'pipe' });
    const [stdout, stderr] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    const last = stdout.trim().split('\n').at(-1) ?? '';
    if (!last.startsWith('{')) throw new Error(`${program}: ${stdout}${stderr}`);
    return JSON.parse(last);
  }

  /** Starts a server: its process, and what of its first line that has a URL is that. */
  serve(...args: readonly string[]): Promise<Served> {
    return serve(process.execPath, args, { cwd: this.folder });
  }
}

async function text(stream: NodeJS.ReadableStream): Promise<string> {
  let all = '';
  for await (const chunk of stream) all += String(chunk);
  return all;
}

export interface Served {
  readonly url: string;
  readonly child: ChildProcess;
  /** What it has said on stderr. */
  readonly said: () => string;
  stop(): Promise<number | null>;
}

/** Starts a program that says where it listens. */
export async function serve(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Served> {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', (line) => {
        said += `${line}\n`;
        const found = /https?:\/\/(?:127\.0\.0\.1|localhost):\d+[^\s"'()]*/.exec(line);
        if (found !== null) resolve(found[0]);
      });
    child.once('close', () => reject(new Error(`${args.join(' ')}: ${said}`)));
  });
  const closed = once(child, 'close');
  const stop = async (): Promise<number | null> => {
    child.kill('SIGTERM');
    await closed;
    return child.exitCode;
  };
  return { url, child, said: () => said, stop };
}

/** A ledger in a folder of its own. */
export class TestLedger {
  readonly folder = mkdtempSync(join(tmpdir(), 'northroot-live-'));
  readonly path = join(this.folder, 'ledger.jsonl');

  constructor() {
    northroot('init', this.path, '--origin', 'example.com/live');
  }

  grant(tool: string, ...more: readonly string[]): void {
    northroot('grant', this.path, '--to', 'agent:a1', '--tool', tool, '--expires', '1h', ...more);
  }

  /** Each end of a call, and each denial, as `TOOL outcome CODE`, sorted: calls at once end in any order. */
  events(): string[] {
    return this.#all()
      .flatMap((event) => {
        const { event_type: type, tool_name: tool, outcome, error_code: code } = event;
        if (type === 'execution')
          return [`${String(tool)} ${String(outcome)}${code === undefined ? '' : ` ${String(code)}`}`];
        if (event.decision === 'deny')
          return [`${String(event.authorization?.action?.tool_name)} deny ${String(event.decision_code)}`];
        return [];
      })
      .sort();
  }

  /** How many authorizations allow a tool. */
  countAllowed(tool: string): number {
    return this.#all().filter(
      ({ event_type: type, decision, authorization }) =>
        type === 'authorization' && decision === 'allow' && authorization?.action?.tool_name === tool,
    ).length;
  }

  verify(): string {
    return northroot('verify', this.path);
  }

  /** The ledger's text. */
  text(): string {
    return readFileSync(this.path, 'utf8');
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #all(): Event[] {
    const lines = this.text().trim().split('\n');
    return lines.map((line) => (JSON.parse(line) as { readonly event: Event }).event);
  }
}

/** What the tests read of an event. */
interface Event {
  readonly event_type: string;
  readonly tool_name?: string;
  readonly outcome?: string;
  readonly error_code?: string;
  readonly decision?: string;
  readonly decision_code?: string;
  readonly authorization?: { readonly action?: { readonly tool_name: string } };
}

export function northroot(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`northroot ${args.join(' ')}: ${String(status)}: ${stdout}${stderr}`);
  return stdout;
}
