/**
 * A helper that stays: it locks and unlocks one open file again and again, so that no process is started for each turn. The lock belongs to
 * the open file, not to the helper: the helper may die, and nothing is lost. It must not outlive this process, whose lock it would keep: the
 * kernel kills it with this process, even while it is stopped (PR_SET_PDEATHSIG of prctl(2)). Where the kernel or Perl cannot do that, there
 * is none.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';

/** The number of prctl(2), by `process.arch`. */
const PRCTL: Readonly<Partial<Record<NodeJS.Architecture, number>>> = {
  x64: 157,
  arm64: 167,
  riscv64: 167,
  loong64: 167,
  s390x: 172,
  arm: 172,
  ia32: 172,
  ppc64: 171,
};
const PERL = '/usr/bin/perl';
/** One letter asks, one answers. Signals of a terminal go to all its processes; this one ends with its input. */
const PROGRAM = (prctl: number): string =>
  [
    '$SIG{$_} = "IGNORE" for qw(INT TERM HUP QUIT TSTP);',
    `syscall(${prctl}, 1, 9) == 0 && getppid() == ${process.pid} or exit 1;`,
    'open(my $file, "<&=", 3) or exit 1;',
    'my %operation = (l => 2, t => 6, u => 8);',
    'while (sysread(STDIN, my $asked, 1)) {',
    '  my $is_done = flock($file, $operation{$asked});',
    `  exit 1 unless $is_done || $asked eq "t" && $! == ${constants.errno.EWOULDBLOCK};`,
    '  syswrite(STDOUT, $is_done ? "y" : "n") or exit 1;',
    '}',
  ].join('\n');

/** Helpers of one process. Further files are locked by helpers that exit. */
const MAX_HELPERS = 16;
let running = 0;
/** Set when one has failed at its start. */
let isImpossible = false;

/** What is asked: to lock, waiting or once, or to unlock. */
type Request = 'lock' | 'try' | 'unlock';

/** What keeps a process from ending. */
interface Counted {
  ref(): void;
  unref(): void;
}

/** A helper that stays; see the head of this file. */
export class LockHelper {
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #hasAnswered = false;
  #isAlive = true;
  #answer: ((isDone: boolean | undefined) => void) | undefined;

  private constructor(child: ChildProcess) {
    this.#child = child;
    running += 1;
    this.#exited = new Promise((resolve) => {
      const end = (): void => {
        if (!this.#isAlive) return;
        this.#isAlive = false;
        running -= 1;
        if (!this.#hasAnswered) isImpossible = true;
        this.#answer?.(undefined);
        resolve();
      };
      child.once('exit', end).once('error', end);
    });
    child.stdin?.on('error', () => undefined);
    child.stdout?.on('error', () => undefined);
    child.stdout?.on('data', (bytes: Buffer) => {
      this.#hasAnswered = true;
      this.#answer?.(bytes.toString('latin1') === 'y');
    });
    this.#hold(false);
  }

  /** Undefined where none can be had. */
  static start(fd: number): LockHelper | undefined {
    const prctl = PRCTL[process.arch];
    if (process.platform !== 'linux' || prctl === undefined || isImpossible || running >= MAX_HELPERS)
      return undefined;
    const child = spawn(PERL, ['-e', PROGRAM(prctl)], {
      stdio: ['pipe', 'pipe', 'ignore', fd],
      cwd: '/',
      env: {},
    });
    return new LockHelper(child);
  }

  /**
   * @param limitMs - After this long the helper is killed
   * @returns Whether it was done; undefined if the helper is dead: the file may be locked then
   */
  async ask(request: Request, limitMs: number, signal?: AbortSignal): Promise<boolean | undefined> {
    if (!this.#isAlive) return undefined;
    this.#hold(true);
    const kill = (): void => void this.#child.kill('SIGKILL');
    const timer = setTimeout(kill, limitMs);
    signal?.addEventListener('abort', kill);
    try {
      return await new Promise((resolve) => {
        this.#answer = resolve;
        this.#child.stdin?.write(request.slice(0, 1));
      });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', kill);
      this.#answer = undefined;
      this.#hold(false);
    }
  }

  /** Resolves when the helper is gone, and its descriptor with it. */
  async end(): Promise<void> {
    this.#hold(true);
    this.#child.kill('SIGKILL');
    await this.#exited;
    this.#child.stdin?.destroy();
    this.#child.stdout?.destroy();
  }

  /** Whether it keeps this process from ending. */
  #hold(isHeld: boolean): void {
    // Pipes are sockets; a process that could not be started may have none.
    const pipes = [this.#child.stdin, this.#child.stdout] as unknown as readonly (
      | Counted
      | null
      | undefined
    )[];
    for (const each of [this.#child, ...pipes]) {
      if (isHeld) each?.ref();
      else each?.unref();
    }
  }
}
