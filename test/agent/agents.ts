/** Processes with several agents each on one live ledger, on the built package. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { formatPrivateKey } from '../../src/format/key/private-key.js';
import { ed25519Key } from '../key/key-samples.js';
import { AGENT } from './support.js';

const SCRIPT = fileURLToPath(new URL('children/agents.js', import.meta.url));

interface Said {
  readonly ready?: boolean;
  readonly running?: string;
  readonly done?: string;
  readonly denied?: string;
}

/** A process with agents, on the built package. */
export class Agents {
  readonly said: Said[] = [];
  readonly #child;
  readonly #waiting = new Set<() => void>();
  /** Its exit status. */
  readonly ended: Promise<number | null>;

  constructor(task: object) {
    const key = formatPrivateKey(ed25519Key(Buffer.alloc(32, 1)), 'pem');
    const argument = JSON.stringify({ key, principalId: AGENT, hangs: false, ...task });
    const child = spawn(process.execPath, [SCRIPT, argument], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    createInterface(child.stdout).on('line', (line) => {
      this.said.push(JSON.parse(line) as Said);
      for (const wake of this.#waiting) wake();
    });
    this.ended = new Promise((resolve) => child.once('close', resolve));
    onTestFinished(() => void child.kill('SIGKILL'));
  }

  begin(): void {
    this.#child.stdin.write('begin\n');
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  /** Waits until it has said so many lines of one kind. */
  async until(kind: keyof Said, count = 1): Promise<void> {
    const isSaid = (): boolean => this.said.filter((said) => said[kind] !== undefined).length >= count;
    while (!isSaid()) {
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
        void this.ended.then(() => resolve());
      });
      if (this.#child.exitCode !== null && !isSaid()) throw new Error('the agents have ended');
    }
  }
}
