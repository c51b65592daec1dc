/** Agents in several processes share one budget, to the last unit; one that is killed leaves what it had begun to be seen. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { formatPrivateKey } from '../../src/key/private-key.js';
import { verifyLedger } from '../../src/report/verify-ledger.js';
import { ed25519Key } from '../key/key-samples.js';
import { AGENT, filePlace, grant, leftOf, openLive } from './support.js';

const SCRIPT = fileURLToPath(new URL('children/agents.js', import.meta.url));

interface Said {
  readonly ready?: boolean;
  readonly running?: string;
  readonly done?: string;
  readonly denied?: string;
}

/** A process with agents, on the built package. */
class Agents {
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

it(
  'five processes with five agents each use up a cap, and never exceed it',
  { timeout: 120_000 },
  async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { calls: 100, usd: '6.1' } });
    const task = { path: place.path, agents: 5, reserve: { usd: '0.1' } };
    const processes = Array.from({ length: 5 }, () => new Agents(task));
    await Promise.all(processes.map((each) => each.until('ready')));
    for (const each of processes) each.begin();
    expect(await Promise.all(processes.map(({ ended }) => ended))).toEqual([0, 0, 0, 0, 0]);
    const said = processes.flatMap((each) => each.said);
    const done = said.flatMap((each) => each.done ?? []);
    expect(new Set(done).size).toBe(61);
    expect(said.filter(({ denied }) => denied !== undefined)).toHaveLength(25);
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0');
    expect(await leftOf(ledger, grantId)).toBe('39');
    expect(await verifyLedger(place.path)).toMatchObject({ verdict: 'ok' });
  },
);

it(
  'one that is killed loses nothing acknowledged, and its starts can be settled',
  { timeout: 120_000 },
  async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { calls: 5 } });
    await ledger.guard('fs.read', { own: true }, () => undefined);
    const agents = new Agents({ path: place.path, agents: 5, reserve: { calls: 1 }, hangs: true });
    await agents.until('ready');
    agents.begin();
    await agents.until('running', 4);
    await agents.until('denied');
    await agents.kill();
    const running = agents.said.flatMap((each) => each.running ?? []);
    const { started, executions } = await ledger.budget(grantId);
    expect(executions).toBe(1);
    expect(started.map(({ eventId }) => eventId).sort()).toEqual(running.sort());
    expect(await leftOf(ledger, grantId)).toBe('0');
    for (const { authorizationId, eventId } of started) {
      await ledger.abandon(authorizationId, { start: eventId });
    }
    expect(await leftOf(ledger, grantId)).toBe('4');
    await expect(ledger.guard('fs.read', {}, () => 'runs')).resolves.toBe('runs');
    expect(await verifyLedger(place.path)).toMatchObject({ verdict: 'ok' });
  },
);
