/** Who decides remembers outside the ledger what was acknowledged: a backup that is put back is not spent again. */

import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { expectError, expectOk, parse, Workshop, type ResultJson, type Run } from './runner.js';

const shop = new Workshop();
const RUN = ['--', 'sh', '-c', ':'];
let count = 0;
let ledger: string;

const at = (name: string): string => shop.path(name);
const authorize = (...more: string[]): Run =>
  shop.run([
    'authorize',
    ledger,
    '--principal',
    'agent:a1',
    '--tool',
    'sh.x',
    '--reserve',
    'calls=1',
    ...more,
    ...RUN,
  ]);
const record = (seq: number, ...more: string[]): Run =>
  shop.run(['record', ledger, '--auth', String(seq), ...more, ...RUN]);

/** @returns the seq of the authorization */
function spend(...more: string[]): number {
  const { seq } = parse<ResultJson>(expectOk(authorize(...more)));
  expectOk(record(seq, ...more));
  return seq;
}

beforeEach(() => {
  count += 1;
  ledger = `l${count}.jsonl`;
  expectOk(shop.run(['init', ledger, '--origin', `example.com/l${count}`]));
  expectOk(shop.run(['grant', ledger, '--to', 'agent:a1', '--tool', 'sh.*', '--cap', 'calls=2']));
});

const backUp = (): void => copyFileSync(at(ledger), at(`${ledger}.backup`));
const restore = (): void => copyFileSync(at(`${ledger}.backup`), at(ledger));

describe('a ledger that is restored from a backup', () => {
  it('is not decided upon, executed under or granted in, until its position is removed', () => {
    spend();
    backUp();
    const seq = spend();
    restore();
    const grant = (): Run =>
      shop.run(['grant', ledger, '--to', 'agent:a2', '--tool', 'sh.*', '--cap', 'calls=1']);
    for (const run of [authorize(), record(seq), grant()]) {
      expectError(run, 1, 'LEDGER_ROLLED_BACK');
      expect(run.stderr).toContain(`${ledger}.position`);
    }
    expectOk(authorize('--no-position'));
    restore();
    rmSync(at(`${ledger}.position`));
    expectOk(authorize());
  });

  it('is found by what is kept beside the key, also where all that is beside the ledger is restored', () => {
    mkdirSync(at(`keys${count}`));
    const key = `keys${count}/own.pem`;
    copyFileSync(at(`${ledger}.key`), at(key));
    rmSync(at(`${ledger}.position`));
    backUp();
    spend('--key', key);
    expect(existsSync(at(`${ledger}.position`))).toBe(false);
    expect(readdirSync(at(`keys${count}`))).toContainEqual(expect.stringMatching(/^[0-9a-f]{64}\.position$/));
    restore();
    expectError(authorize('--key', key), 1, 'LEDGER_ROLLED_BACK');
  });

  it('is found by a position that is kept where the user says', () => {
    backUp();
    spend('--position', 'kept');
    restore();
    expectError(authorize('--position', 'kept'), 1, 'LEDGER_ROLLED_BACK');
  });
});
