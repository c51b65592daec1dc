/** What the command line prints as JSON has the names of the wire: snake_case, whichever command prints it. */

import { expect, it } from 'vitest';
import { ndjson, note } from './drafts.js';
import { expectOk, parseLines, Workshop } from './runner.js';

const shop = new Workshop();

function print(args: readonly string[], input = ''): unknown[] {
  const stdout = expectOk(shop.run(args, { input }));
  return stdout.startsWith('{\n') ? [JSON.parse(stdout)] : parseLines<unknown>(stdout);
}

const EVENT = ['ledger.jsonl', '--key', 'ledger.jsonl.key'];
const NAME = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;
/** Objects by a name that is a datum: by event types, and by codes of hygiene. */
const BY_DATA = new Set(['by_type', 'metrics']);

/** The names of members, at any depth, that are not the wire's. */
function otherNames(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    ...(Array.isArray(value) || NAME.test(name) ? [] : [name]),
    ...(BY_DATA.has(name) ? [] : otherNames(member)),
  ]);
}

const made = {
  init: print(['init', 'ledger.jsonl', '--origin', 'example.com/names', '--principal', 'human:op']),
  grant: print([
    'grant',
    ...EVENT,
    '--to',
    'agent:a1',
    '--tool',
    'fs.*',
    '--cap',
    'usd=5',
    '--rate',
    'calls.per_min=9',
  ]),
  authorize: print([
    'authorize',
    ...EVENT,
    '--principal',
    'agent:a1',
    '--tool',
    'fs.read',
    '--reserve',
    'usd=1',
    '--params-digest',
    `sha-256:${'A'.repeat(43)}`,
  ]),
  record: print(['record', ...EVENT, '--auth', '2', '--meter', 'usd=1', '--outcome', 'success']),
  adjust: print(['adjust', ...EVENT, '--grant', '1', '--credit', 'usd=1', '--reason', 'CORRECTION']),
  append: print(['append', ...EVENT], ndjson([note(1)])),
  keygen: print(['keygen', '--out', 'other.key']),
  'key add': print(['key', 'add', ...EVENT, 'other.key', '--role', 'event', '--for', 'agent:a1']),
  checkpoint: print(['checkpoint', ...EVENT]),
  repair: print(['repair', 'ledger.jsonl']),
};
const proof = expectOk(shop.run(['prove', 'ledger.jsonl', '1']));
shop.write('proof', proof);
expectOk(shop.run(['trust', 'init', 'ledger.jsonl', '--out', 'trust.json', '--yes']));

const JSON_FORMAT = ['--format', 'json'];
const shown: Record<string, readonly string[]> = {
  budget: ['budget', 'ledger.jsonl', ...JSON_FORMAT],
  'key list': ['key', 'list', 'ledger.jsonl', ...JSON_FORMAT],
  status: ['status', 'ledger.jsonl', ...JSON_FORMAT],
  tiles: ['tiles', 'ledger.jsonl', '--out', 'tiles', ...JSON_FORMAT],
  'trust show': ['trust', 'show', 'trust.json', ...JSON_FORMAT],
  verify: ['verify', 'ledger.jsonl', ...JSON_FORMAT],
  'verify-proof': ['verify-proof', 'proof', '--trust', 'trust.json', ...JSON_FORMAT],
  diff: ['diff', 'ledger.jsonl', 'ledger.jsonl', ...JSON_FORMAT],
  why: ['why', 'ledger.jsonl', '3', ...JSON_FORMAT],
  'why of a grant': ['why', 'ledger.jsonl', '1', ...JSON_FORMAT],
};

it.each(Object.entries(made))('%s prints names of the wire', (_command, printed) => {
  expect(printed.length).toBeGreaterThan(0);
  expect(otherNames(printed)).toEqual([]);
});

it.each(Object.entries(shown))('%s prints names of the wire', (_command, args) => {
  const printed = print(args);
  expect(printed.length).toBeGreaterThan(0);
  expect(otherNames(printed)).toEqual([]);
});
