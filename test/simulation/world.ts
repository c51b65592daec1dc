/**
 * One seed: machines with gates, a writer and an owner over one server, hosts that ask the gates, and what fails. The seed decides all of
 * it; what the machine does in real time decides nothing.
 */

import { NorthrootError } from '../../src/base/error.js';
import { Gate, type GateDecision } from '../../src/gate/gate.js';
import { LiveLedger, type LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { hashToBase64url, leafHash } from '../../src/format/tree/compact-range.js';
import { verifyChunks } from '../../src/rules/report/verify-chunks.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { ed25519Key } from '../key/key-samples.js';
import { accountsOf, type Asked, emptyHistory, type History, type Line } from '../history.js';
import { type Files, fileSystemOf } from './memory-files.js';
import { Chance, Life, Scheduler } from './scheduler.js';
import { type NetworkFaults, NO_FAULTS, SimServer, SimStore, type Weakness } from './sim-store.js';

/** What else is made wrong, to see that it is found: at the doors, never within. */
export type Frailty = Weakness | 'forgets-position' | 'forgets-requests';

/** What the seed fails by. */
export type Mode = 'calm' | 'lossy' | 'crashes' | 'sync' | 'async';

export interface Scenario {
  readonly seed: number;
  /** Default: drawn. */
  readonly mode?: Mode | undefined;
  /** Default: drawn. */
  readonly faults?: Partial<NetworkFaults> | undefined;
  readonly frailty?: Frailty | undefined;
  /** Whether the clocks of machines are set, ahead and back. Default: they are right. */
  readonly setsClocks?: boolean | undefined;
}

export interface Outcome {
  readonly history: History;
  readonly trace: readonly string[];
  /** Whether the seed rolled acknowledged records back. */
  readonly isRolledBack: boolean;
}

const AGENT = 'agent:a1';
const OWNER = 'human:olga';
const signer = createSigner(ed25519Key(Buffer.alloc(32, 1)));
const POSITION = '/kept/position';
/** When faults end, and when all must have ended. */
const HEALED_MS = 25_000;
const LIMIT_MS = 400_000;
const TTL_MS = 8_000;
const CODES_OF_REFUSALS = new Set([
  'CALL_NOT_FOUND',
  'GATE_CLOSED',
  'LEDGER_LOCKED',
  // An owner approved before the answer was lost, or another one did.
  'REQUEST_ALLOWED',
]);

/** A handle, and the program that has it. */
interface Program {
  readonly life: Life;
  readonly store: SimStore;
  readonly gate?: Gate;
  readonly live?: LiveLedger;
  readonly plain?: Ledger;
}

interface Machine {
  readonly name: string;
  readonly kind: 'gate' | 'owner' | 'writer';
  readonly files: Files;
  program: Program | undefined;
  lives: number;
  /** How far its clock is ahead. */
  shiftMs: number;
  /** It was told that what it was acknowledged is gone: it stays down. */
  isOut: boolean;
  isOpening: boolean;
}

type Heard<T> = { readonly value: T } | { readonly error: unknown } | { readonly silence: true };

export async function simulate(scenario: Scenario): Promise<Outcome> {
  return new World(scenario).run();
}

class World {
  readonly #chance: Chance;
  readonly #scheduler: Scheduler;
  readonly #server: SimServer;
  readonly #machines: Machine[] = [];
  readonly #history: History = emptyHistory();
  readonly #trace: string[] = [];
  readonly #frailty: Frailty | undefined;
  readonly #mode: Mode;
  readonly #faults: Scenario['faults'];
  readonly #setsClocks: boolean;
  #isHealed = false;
  #setupSize = 0;
  #isRolledBack = false;
  readonly #asked: { readonly life: Life; readonly asked: Asked }[] = [];
  #unique = 0;
  #grantId = '';

  constructor({ seed, frailty, mode, faults, setsClocks = false }: Scenario) {
    this.#chance = new Chance(seed);
    this.#frailty = frailty;
    this.#scheduler = new Scheduler(this.#chance.fork());
    const note = (text: string): void => this.#note(text);
    this.#server = new SimServer(new Life('server', this.#scheduler), this.#chance.fork(), note);
    const drawn = this.#chance.pick(['calm', 'lossy', 'crashes', 'sync', 'async'] as const);
    this.#mode = mode ?? drawn;
    this.#faults = faults;
    this.#setsClocks = setsClocks;
    this.#note(`seed ${seed}: ${this.#mode}`);
  }

  async run(): Promise<Outcome> {
    const history = this.#history;
    let isOver = false;
    let failure: unknown;
    void this.#play().then(
      () => (isOver = true),
      (error: unknown) => {
        failure = error;
        isOver = true;
      },
    );
    const isEnded = await this.#scheduler.run(() => isOver, LIMIT_MS);
    if (failure !== undefined) history.surprises.push(`the play failed: ${String(failure)}`);
    if (!isEnded) history.surprises.push('it does not end');
    // The dead answer nothing.
    for (const { life, asked } of this.#asked) if (life.isDead) asked.settled = 1;
    for (const { program } of this.#machines) program?.life.kill();
    await this.#lookAtLines();
    return { history, trace: this.#trace, isRolledBack: this.#isRolledBack };
  }

  #note(text: string): void {
    this.#trace.push(`${String(this.#scheduler.ms).padStart(7)} ${text}`);
  }

  async #play(): Promise<void> {
    await this.#server.begin();
    await this.#setUp();
    this.#server.faults = { ...this.#drawFaults(), ...this.#faults };
    if (frailtyOfStore(this.#frailty)) this.#server.weakness = this.#frailty;
    const actors: Promise<void>[] = [this.#harm(), this.#own()];
    const hosts = this.#chance.within(4, 14);
    for (let n = 0; n < hosts; n += 1) actors.push(this.#host(n, this.#chance.fork()));
    actors.push(this.#write(this.#chance.fork()));
    if (this.#setsClocks) actors.push(this.#setClocks(this.#chance.fork()));
    await Promise.all(actors);
    await this.#end();
  }

  /** The ledger, its grant and all machines, before anything fails. */
  async #setUp(): Promise<void> {
    const gates = this.#chance.within(1, 3);
    for (let n = 1; n <= gates; n += 1) this.#addMachine(`gate${n}`, 'gate');
    this.#addMachine('owner', 'owner');
    this.#addMachine('writer', 'writer');
    const owner = this.#machineOf('owner');
    await this.#open(owner, true);
    const { live } = owner.program as Program & { live: LiveLedger };
    const bounds = {
      calls: this.#chance.within(3, 9),
      concurrency: this.#chance.within(1, 4),
      perMinute: this.#chance.within(3, 12),
    };
    const draft = draftGrant({
      principalId: AGENT,
      allowedTools: ['fs.*', 'pay'],
      meterCaps: { calls: bounds.calls, usd: '5' },
      rateLimits: { 'calls.per_min': bounds.perMinute },
      concurrencyLimit: bounds.concurrency,
      approvals: [{ tools: ['pay'], approvers: ['human:*'] }],
    });
    const { eventId: grantId } = await live.append({ event: draft });
    Object.assign(this.#history, { grants: [{ ...bounds, grantId }] });
    this.#grantId = grantId;
    this.#note(`bounds ${JSON.stringify(bounds)}`);
    for (const machine of this.#machines) if (machine !== owner) await this.#open(machine);
    this.#setupSize = this.#server.memory.size;
  }

  #drawFaults(): NetworkFaults {
    const chance = this.#chance;
    if (this.#mode === 'calm') return { ...NO_FAULTS, delayMs: chance.within(0, 30) };
    const some = (most: number): number => (chance.is(0.6) ? chance.fraction() * most : 0);
    return {
      lostBefore: some(0.05),
      lostAfter: some(0.05),
      twice: some(0.1),
      late: some(0.04),
      sessionLost: some(0.05),
      delayMs: chance.pick([2, 20, 150]),
    };
  }

  #addMachine(name: string, kind: Machine['kind']): void {
    this.#machines.push({
      name,
      kind,
      files: new Map(),
      program: undefined,
      lives: 0,
      shiftMs: 0,
      isOut: false,
      isOpening: false,
    });
  }

  #machineOf(name: string): Machine {
    return this.#machines.find((each) => each.name === name) as Machine;
  }

  /** Starts a machine's program. */
  async #open(machine: Machine, isNew = false): Promise<void> {
    if (machine.isOut || machine.isOpening) return;
    machine.isOpening = true;
    machine.lives += 1;
    const life = new Life(`${machine.name}.${machine.lives}`, this.#scheduler, () => machine.shiftMs);
    const store = new SimStore(this.#server, life);
    const options: LiveLedgerOptions = {
      signer,
      signingThreads: 0,
      clock: life.clock,
      lockTimeoutMs: 20_000,
      fileSystem: fileSystemOf(machine.files, life),
      position: this.#frailty === 'forgets-position' ? false : POSITION,
      ...(isNew ? { create: { origin: 'example.com/simulation' } } : {}),
    };
    // What dies while it opens is never heard of again.
    machine.program = { life, store };
    const opening = this.#openAs(machine, store, options);
    const heard = await this.#hear(machine, 'open', opening, 120_000);
    machine.isOpening = false;
    if (machine.program?.life !== life) return;
    if ('value' in heard) machine.program = { life, store, ...heard.value };
    else this.#fail(machine, life);
  }

  async #openAs(machine: Machine, store: SimStore, options: LiveLedgerOptions): Promise<Partial<Program>> {
    switch (machine.kind) {
      case 'gate': {
        const gate = await Gate.open(store, { ...options, principalId: AGENT, ttlMs: TTL_MS });
        return { gate, live: gate.ledger };
      }
      case 'owner':
        return { live: await LiveLedger.open(store, { ...options, principalId: OWNER }) };
      case 'writer':
        return { plain: await Ledger.open(store, { ...options, principalId: 'service:w' }) };
    }
  }

  /** A program ends, as by kill -9, and is started again later. */
  #fail(machine: Machine, life: Life, isDead = true): void {
    const { program } = machine;
    if (program?.life !== life) return;
    program.life.kill();
    program.store.abandon();
    machine.program = undefined;
    machine.isOpening = false;
    if (isDead) this.#note(`${life.name} ends`);
    const pause = this.#chance.within(100, 3_000);
    this.#scheduler.after(this.#isHealed ? 50 : pause, () => void this.#open(machine));
  }

  /** Waits for what a program was asked for: until it dies, or `limitMs` have passed. */
  #hear<T>(machine: Machine, what: string, promise: Promise<T>, limitMs: number): Promise<Heard<T>> {
    const life = machine.program?.life as Life;
    const asked = { by: life.name, what, settled: 0 };
    this.#history.asked.push(asked);
    this.#asked.push({ life, asked });
    return new Promise((resolve) => {
      const watch = (): void => {
        if (life.isDead && asked.settled === 0) {
          resolve({ silence: true });
        } else if (asked.settled === 0 && limitMs > 0) {
          limitMs -= 250;
          if (limitMs <= 0) resolve({ silence: true });
          this.#scheduler.after(250, watch);
        }
      };
      this.#scheduler.after(250, watch);
      promise.then(
        (value) => {
          if (life.isDead) return;
          asked.settled += 1;
          resolve({ value });
        },
        (error: unknown) => {
          if (life.isDead) return;
          asked.settled += 1;
          this.#hearError(machine, life, what, error);
          resolve({ error });
        },
      );
    });
  }

  #hearError(machine: Machine, life: Life, what: string, error: unknown): void {
    const code = error instanceof NorthrootError ? error.code : String(error);
    this.#note(`${life.name}: ${what}: ${code}`);
    if (code === 'LEDGER_ROLLED_BACK') {
      this.#history.told.add(machine.name);
      machine.isOut = true;
      life.kill();
      machine.program?.store.abandon();
      machine.program = undefined;
      return;
    }
    if (code === 'LEDGER_FAILED') this.#fail(machine, life);
    else if (!CODES_OF_REFUSALS.has(code) && what !== 'open' && !this.#isRolledBack)
      this.#history.surprises.push(`${life.name}: ${what}: ${code}`);
  }

  #acknowledge(by: string, eventId: string, seq?: number, isInOrder = false): void {
    const isStored = this.#server.everStored.has(eventId.replace('sha-256:', ''));
    this.#history.acknowledged.push({ ms: this.#scheduler.ms, by, eventId, seq, isStored, isInOrder });
  }

  #gates(): (Machine & { readonly program: Program & { readonly gate: Gate } })[] {
    return this.#machines.filter(
      (each): each is never => each.kind === 'gate' && each.program?.gate !== undefined,
    );
  }

  get #areAllOut(): boolean {
    return this.#machines.filter(({ kind }) => kind === 'gate').every(({ isOut }) => isOut);
  }

  async #sleep(ms: number): Promise<void> {
    await this.#scheduler.sleep(ms);
  }

  /** A host with one call: it asks until it is answered, does what it may, and reports it. */
  async #host(n: number, chance: Chance): Promise<void> {
    await this.#sleep(chance.within(0, HEALED_MS - 5_000));
    const ref = `call-${n}`;
    const needsApproval = chance.is(0.2);
    const call = {
      ref,
      session: 's',
      tool: needsApproval ? 'pay' : 'fs.write',
      params: { n },
      reserve: { usd: '0.5' },
    };
    const patience = chance.pick([300, 2_000, 15_000]);
    for (let count = 0; count < 40 && !this.#areAllOut; count += 1) {
      const decision = await this.#decide(call, chance, patience);
      if (decision === undefined || decision.effect === 'ask') {
        await this.#sleep(chance.within(50, 1_500));
        continue;
      }
      if (decision.effect !== 'allow') return;
      if (chance.is(0.1)) return;
      await this.#perform(ref, decision, chance);
      return;
    }
  }

  async #decide(
    call: Parameters<Gate['decide']>[0] & { readonly ref: string },
    chance: Chance,
    patience: number,
  ): Promise<GateDecision | undefined> {
    const gates = this.#gates();
    if (gates.length === 0) return undefined;
    const machine = chance.pick(gates);
    const askedMs = this.#scheduler.ms;
    const ref = this.#frailty === 'forgets-requests' ? `${call.ref}-${this.#unique++}` : call.ref;
    const by = machine.program.life;
    const asking = machine.program.gate.decide({ ...call, ref });
    // What comes when the host has given up is an answer too.
    asking.then(
      (answer) => {
        if (by.isDead) return;
        const { effect, code, authorization, isRepeated } = answer;
        this.#note(`${by.name}: ${call.ref}: ${effect} ${code}${isRepeated ? ' again' : ''}`);
        const ms = this.#scheduler.ms;
        this.#history.answers.push({
          ms,
          askedMs,
          by: machine.name,
          ref: call.ref,
          effect,
          code,
          authorization,
          isRepeated,
        });
        if (effect === 'allow' || !isRepeated) this.#acknowledge(machine.name, authorization);
        if (answer.start !== undefined) this.#acknowledge(machine.name, answer.start);
      },
      () => undefined,
    );
    const heard = await this.#hear(machine, `decide ${call.ref}`, asking, patience);
    return 'value' in heard ? heard.value : undefined;
  }

  async #perform(ref: string, { authorization, expires = '' }: GateDecision, chance: Chance): Promise<void> {
    const lasts = chance.within(10, 2_500);
    // A host that keeps to the time that it has.
    const mayRun = this.#scheduler.now + lasts < Date.parse(expires);
    if (mayRun && !chance.is(0.1)) {
      const run = { ref, authorization, begunMs: this.#scheduler.ms, endedMs: Infinity };
      this.#history.runs.push(run);
      await this.#sleep(lasts);
      run.endedMs = this.#scheduler.ms;
      await this.#settle(ref, chance, 'settle');
    } else await this.#settle(ref, chance, 'release');
  }

  async #settle(ref: string, chance: Chance, how: 'settle' | 'release'): Promise<void> {
    for (let count = 0; count < 40 && !this.#areAllOut; count += 1) {
      const gates = this.#gates();
      if (gates.length > 0) {
        const machine = chance.pick(gates);
        const { gate, life } = machine.program;
        const name = { ref, session: 's' };
        const settling =
          how === 'settle'
            ? gate.settle(name, { outcome: 'success', used: { usd: '0.25' } })
            : gate.release(name);
        settling.then(
          ({ recorded }) => {
            if (life.isDead || recorded === undefined) return;
            this.#note(`${life.name}: ${how} ${ref} at ${recorded.seq}`);
            this.#acknowledge(machine.name, recorded.eventId, recorded.seq);
          },
          () => undefined,
        );
        const heard = await this.#hear(machine, `${how} ${ref}`, settling, chance.pick([500, 20_000]));
        if ('value' in heard) return;
        if (
          'error' in heard &&
          heard.error instanceof NorthrootError &&
          heard.error.code === 'CALL_NOT_FOUND'
        ) {
          const isExplained = this.#isRolledBack || this.#frailty !== undefined;
          if (!isExplained) this.#history.surprises.push(`${how} ${ref}: CALL_NOT_FOUND`);
          return;
        }
      }
      await this.#sleep(chance.within(50, 1_500));
    }
  }

  /** The owner approves what waits, and stops the grant for a while. */
  async #own(): Promise<void> {
    const chance = this.#chance.fork();
    const machine = this.#machineOf('owner');
    let isStopped = false;
    for (let count = 0; count < 16 && !machine.isOut; count += 1) {
      await this.#sleep(chance.within(300, 2_500));
      const { live } = machine.program ?? {};
      if (live === undefined) continue;
      if (chance.is(0.5)) await this.#approve(machine, live);
      else if (isStopped || chance.is(0.3)) isStopped = await this.#stopOrResume(machine, live, isStopped);
    }
    for (let count = 0; count < 40 && isStopped && !machine.isOut; count += 1) {
      const { live } = machine.program ?? {};
      if (live !== undefined) isStopped = await this.#stopOrResume(machine, live, true);
      await this.#sleep(300);
    }
    for (let count = 0; count < 5 && !machine.isOut; count += 1) {
      await this.#sleep(chance.within(300, 2_500));
      const { live } = machine.program ?? {};
      if (live !== undefined) await this.#approve(machine, live);
    }
  }

  async #approve(machine: Machine, live: LiveLedger): Promise<void> {
    const waiting = await this.#hear(machine, 'requests', live.requests(), 10_000);
    if (!('value' in waiting)) return;
    for (const { eventId, status } of waiting.value) {
      if (status !== 'waiting' || machine.program?.live !== live) continue;
      const heard = await this.#hear(machine, 'approve', live.approve(eventId), 10_000);
      if (!('value' in heard)) return;
      this.#note(`owner: approved at ${heard.value.seq}`);
      this.#acknowledge(machine.name, heard.value.eventId, heard.value.seq);
    }
  }

  /** @returns Whether the grant is stopped now, as far as is known */
  async #stopOrResume(machine: Machine, live: LiveLedger, isStopped: boolean): Promise<boolean> {
    const grantId = this.#grantId;
    const effect = isStopped ? 'resume' : 'suspend';
    const asking = isStopped
      ? live.resume(grantId, { reason: 'DONE' })
      : live.suspend(grantId, { reason: 'INCIDENT', inFlight: 'stop' });
    const { life } = machine.program as Program;
    asking.then(
      ([{ eventId, seq } = { eventId: '', seq: 0 }]) => {
        if (life.isDead) return;
        this.#note(`owner: ${effect} at ${seq}`);
        this.#acknowledge(machine.name, eventId, seq);
        this.#history.stops.push({ ms: this.#scheduler.ms, eventId, grantId, effect });
      },
      () => undefined,
    );
    const heard = await this.#hear(machine, effect, asking, 30_000);
    // What is not known is undone.
    return 'value' in heard ? !isStopped : true;
  }

  /** A writer of other events, several at once. */
  async #write(chance: Chance): Promise<void> {
    const machine = this.#machineOf('writer');
    for (let count = 0; count < 8 && !machine.isOut; count += 1) {
      await this.#sleep(chance.within(200, 4_000));
      const { plain, life } = machine.program ?? {};
      if (plain === undefined || life === undefined) continue;
      const burst = Array.from({ length: chance.within(1, 4) }, () => {
        const n = String(this.#unique++);
        const appending = plain.append({ event: { event_type: 'x.test', n } });
        appending.then(
          ({ eventId, seq }) => {
            if (life.isDead) return;
            this.#note(`${life.name}: wrote ${n} at ${seq}`);
            this.#acknowledge(machine.name, eventId, seq, true);
          },
          () => undefined,
        );
        return this.#hear(machine, `append ${n}`, appending, 20_000);
      });
      await Promise.all(burst);
    }
  }

  /** What goes wrong, until it is healed. */
  async #harm(): Promise<void> {
    const chance = this.#chance.fork();
    const mode = this.#mode;
    while (this.#scheduler.ms < HEALED_MS) {
      await this.#sleep(chance.within(200, 4_000));
      const machine = chance.pick(this.#machines);
      const { program } = machine;
      if (mode === 'calm' || mode === 'lossy') {
        if (mode === 'lossy' && program !== undefined && chance.is(0.3)) this.#pause(program.life, chance);
        continue;
      }
      const drawn = chance.fraction();
      if (program !== undefined && drawn < 0.4) this.#crashSoon(machine, program.life, chance);
      else if (program !== undefined && drawn < 0.65) this.#pause(program.life, chance);
      else if ((mode === 'sync' || mode === 'async') && drawn > 0.8) this.#promote(chance);
    }
    this.#isHealed = true;
    this.#server.faults = NO_FAULTS;
    this.#note('healed');
  }

  /** Clocks jump while groups are written and locks are held, and stay wrong when all else is healed. */
  async #setClocks(chance: Chance): Promise<void> {
    while (this.#scheduler.ms < HEALED_MS) {
      const machine = chance.pick(this.#machines);
      machine.shiftMs = chance.pick([-1, 1]) * chance.pick([1_500, 60_000, 3_600_000, 86_400_000]);
      this.#note(`the clock of ${machine.name} is ahead by ${machine.shiftMs}`);
      await this.#sleep(chance.within(100, 3_000));
    }
  }

  /** After so many steps from now, whatever it does then. */
  #crashSoon(machine: Machine, life: Life, chance: Chance): void {
    this.#scheduler.after(chance.below(300), () => {
      if (!this.#isHealed && machine.program?.life === life) this.#fail(machine, life);
    });
  }

  #pause(life: Life, chance: Chance): void {
    const ms = chance.pick([20, 600, 6_000]);
    this.#note(`${life.name} is paused for ${ms}`);
    life.pause(ms);
  }

  #promote(chance: Chance): void {
    const { memory } = this.#server;
    const { size } = memory;
    const lost = this.#mode === 'async' ? chance.within(0, 6) : 0;
    // A standby has whole commits.
    const to = Math.max(this.#setupSize, memory.groupEndBefore(size - lost));
    if (to < size) this.#isRolledBack = true;
    this.#server.promote(to);
    // What took the primary away may take others along.
    if (!chance.is(0.3)) return;
    for (const machine of this.#machines)
      if (machine.program !== undefined && chance.is(0.6)) this.#fail(machine, machine.program.life);
  }

  /** Every machine is asked once more, so that whoever must be told is. */
  async #end(): Promise<void> {
    for (let count = 0; count < 60; count += 1) {
      if (
        this.#machines.every(
          ({ isOut, program, isOpening }) => isOut || (program !== undefined && !isOpening),
        )
      )
        break;
      await this.#sleep(500);
    }
    for (const machine of this.#machines) {
      const { program } = machine;
      if (machine.isOut || program === undefined) continue;
      const writer = program.plain ?? program.live;
      if (writer === undefined) continue;
      const event = { event_type: 'x.test', n: `last-${machine.name}` };
      const heard = await this.#hear(machine, 'last append', writer.append({ event }), 60_000);
      if ('value' in heard) this.#acknowledge(machine.name, heard.value.eventId, heard.value.seq);
    }
    const isOpen = (): boolean => this.#asked.some(({ life, asked }) => !life.isDead && asked.settled === 0);
    for (let count = 0; count < 100 && isOpen(); count += 1) await this.#sleep(500);
    const [machine] = this.#gates();
    // Again where something was appended meanwhile, as by a sweeper.
    for (let size = -1; machine !== undefined && size !== this.#server.memory.size;) {
      ({ size } = this.#server.memory);
      const heard = await this.#hear(machine, 'budget', machine.program.gate.ledger.budget(), 60_000);
      const [budget] = 'value' in heard ? heard.value : [];
      this.#history.live = budget && accountsOf(this.#grantId, budget.balances);
    }
  }

  async #lookAtLines(): Promise<void> {
    const history = this.#history;
    const bytes = this.#server.memory.bytes();
    const texts = Buffer.from(bytes).toString().split('\n').slice(0, -1);
    history.lines = texts.map((text) => JSON.parse(text) as Line);
    history.hashes = texts.map((text) => hashToBase64url(leafHash(Buffer.from(text))));
    const report = await verifyChunks(bytes);
    history.report = report;
    const grant = report.grants.find(({ event_id: id }) => id === this.#grantId);
    history.reported = grant && accountsOf(this.#grantId, grant.meters);
  }
}

function frailtyOfStore(frailty: Frailty | undefined): frailty is Weakness {
  return (
    frailty !== undefined &&
    ['no-compare', 'answers-early', 'believes-in-success', 'resends-blindly'].includes(frailty)
  );
}
