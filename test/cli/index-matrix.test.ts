/** An index never changes an answer: every command that uses one answers as with `--no-index`, whatever others did to the ledger. */

import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { expectOk, parse, Workshop, type ResultJson, type Run } from './runner.js';

const shop = new Workshop();
const at = (...names: string[]): string => join(shop.folder, ...names);
/** Of which an index has no view before it is asked. */
const BASE = 'base';
let action: number;
let started: number;
const startId = '';

/** What a command answers, without what is another one each time. */
interface Answer {
  readonly status: number | null;
  readonly out: string;
  readonly errors: readonly string[];
  readonly lines: number;
}

/** The file of a ledger that is appended to. */
function lastFile(ledger: string): string {
  if (statSync(at(ledger)).isFile()) return at(ledger);
  const names = readdirSync(at(ledger)).sort();
  return at(ledger, names.at(-1) as string);
}

function linesOf(ledger: string): number {
  const files = statSync(at(ledger)).isFile()
    ? [at(ledger)]
    : readdirSync(at(ledger)).map((name) => at(ledger, name));
  return files.reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').length - 1, 0);
}

/** Cuts out what depends on when a command ran, and where. */
function essence(text: string, ledger: string): string {
  return text
    .replaceAll(ledger, 'LEDGER')
    .replace(/sha-256:[A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{43}=?/g, 'DIGEST')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\b\d+(?:\.\d+)? ?(?:s|ms|min|h)\b/g, 'DURATION');
}

function answerOf({ status, stdout, stderr }: Run, ledger: string): Answer {
  const said = stderr.split('\n').filter((line) => /^(?:error|warning):/.test(line));
  return {
    status,
    out: essence(stdout, ledger),
    errors: said.map((line) => essence(line, ledger)),
    lines: linesOf(ledger),
  };
}

const DRAFT = '{"event_type":"x.matrix","principal_id":"agent:a1","n":"new"}\n';

const COMMANDS: Readonly<
  Record<string, (ledger: string) => readonly [args: readonly string[], input?: string]>
> = {
  append: (l) => [['append', l], DRAFT],
  authorize: (l) => [
    [
      'authorize',
      l,
      '--no-position',
      '--principal',
      'agent:a1',
      '--tool',
      'sh.x',
      '--reserve',
      'calls=1',
      '--',
      'true',
    ],
  ],
  record: (l) => [['record', l, '--no-position', '--auth', String(action), '--', 'true']],
  abandon: (l) => [['record', l, '--no-position', '--auth', String(started), '--abandon', startId]],
  grant: (l) => [['grant', l, '--no-position', '--to', 'agent:a2', '--tool', 'sh.*', '--cap', 'calls=1']],
  checkpoint: (l) => [['checkpoint', l]],
  budget: (l) => [['budget', l, '--json']],
  status: (l) => [['status', l, '--json']],
  'why of the first': (l) => [['why', l, '2']],
  'why of the last': (l) => [['why', l, String(action)]],
  'show of the first': (l) => [['show', l, '1']],
  'show of the last': (l) => [['show', l, '12']],
  log: (l) => [['log', l, '-n', '3']],
  prove: (l) => [['prove', l, '2']],
};

const BROKEN = '{"x":1}\n';

/** The middle of a file: an amount in a record of a grant, as long as before. */
function changeMiddle(file: string): () => void {
  const before = readFileSync(file);
  const text = before.toString('latin1');
  const changed = text.replace('"v":"9"', '"v":"8"');
  expect(changed).not.toBe(text);
  writeFileSync(file, changed, 'latin1');
  return () => writeFileSync(file, before);
}

function withoutIndex(...args: string[]): void {
  const [command = '', ...rest] = args;
  expectOk(shop.run([command, ...rest, '--no-index'], { input: DRAFT }));
}

/** What others do to a ledger. */
const CHANGES: Readonly<Record<string, (ledger: string) => void>> = {
  nothing: () => undefined,
  'a record is appended': (l) => withoutIndex('append', l),
  'a broken line is appended': (l) => appendFileSync(lastFile(l), BROKEN),
  'a blank line is appended': (l) => appendFileSync(lastFile(l), '\n'),
  'a broken line is appended, and asked about': (l) => {
    appendFileSync(lastFile(l), BROKEN);
    shop.run(['budget', l]);
  },
  'the tail is torn': (l) => appendFileSync(lastFile(l), '{"event":{"canon'),
  'the last line is cut': (l) => {
    const { length } = readFileSync(lastFile(l));
    truncateSync(lastFile(l), length - 40);
  },
  'the last line is broken': (l) => {
    const text = readFileSync(lastFile(l), 'latin1');
    writeFileSync(lastFile(l), text.slice(0, -40) + 'x'.repeat(39) + '\n', 'latin1');
  },
  'the last record is gone': (l) => {
    const text = readFileSync(lastFile(l), 'latin1');
    writeFileSync(lastFile(l), text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1), 'latin1');
  },
  'one byte is changed': (l) => void changeMiddle(lastFile(l)),
  'one byte is changed, and asked about': (l) => {
    changeMiddle(lastFile(l));
    shop.run(['budget', l]);
  },
  'one byte is changed, asked about, and changed back': (l) => {
    const back = changeMiddle(lastFile(l));
    shop.run(['budget', l]);
    back();
  },
  'one byte is changed, the index made, and changed back': (l) => {
    rmSync(at(`${l}.index`), { recursive: true });
    const back = changeMiddle(lastFile(l));
    mkdirSync(at(`${l}.index`));
    shop.run(['budget', l]);
    back();
  },
  'it is another that went on otherwise': (l) => {
    const text = readFileSync(lastFile(l), 'latin1');
    writeFileSync(lastFile(l), text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1), 'latin1');
    withoutIndex('append', l);
    withoutIndex('grant', l, '--no-position', '--to', 'agent:a3', '--tool', 'sh.*', '--cap', 'calls=3');
  },
  'it is replaced by the same bytes': (l) => {
    copyFileSync(lastFile(l), at('same'));
    renameSync(at('same'), lastFile(l));
  },
  'it is emptied': (l) => truncateSync(lastFile(l), 0),
};

beforeAll(() => {
  const run = (...args: string[]): ResultJson =>
    parse<ResultJson>(expectOk(shop.run(args, { input: DRAFT })));
  run('init', BASE, '--origin', 'example.com/matrix');
  const none = '--no-position';
  run('grant', BASE, none, '--to', 'agent:a1', '--tool', 'sh.*', '--cap', 'calls=9');
  const authorize = (): number =>
    run(
      'authorize',
      BASE,
      none,
      '--principal',
      'agent:a1',
      '--tool',
      'sh.x',
      '--reserve',
      'calls=1',
      '--',
      'true',
    ).seq;
  expectOk(shop.run(['record', BASE, none, '--auth', String(authorize()), '--', 'true']));
  started = authorize();
  // Killed in the midst of its command: its start stays open.
  shop.shell(`northroot record ${BASE} ${none} --auth ${started} -- true & P=$!; wait $P`);
  expectOk(shop.run(['checkpoint', BASE]));
  run('append', BASE);
  action = authorize();
});

describe('a ledger in a file', () => {
  describe.each(Object.keys(CHANGES))('%s', (change) => {
    it('is answered for alike', () => {
      const differences: string[] = [];
      for (const [name, command] of Object.entries(COMMANDS)) {
        const answers = ['with', 'without'].map((way) => {
          const ledger = `${way}.jsonl`;
          rmSync(at(`${ledger}.index`), { recursive: true, force: true });
          copyFileSync(at(BASE), at(ledger));
          copyFileSync(at(`${BASE}.key`), at(`${ledger}.key`));
          expectOk(shop.run(['index', ledger]));
          CHANGES[change](ledger);
          const [args, input = ''] = command(ledger);
          const flags = way === 'with' ? [] : ['--no-index'];
          const position = args.indexOf('--');
          const all =
            position === -1
              ? [...args, ...flags]
              : [...args.slice(0, position), ...flags, ...args.slice(position)];
          return answerOf(shop.run(all, { input }), ledger);
        });
        const [own, other] = answers.map((answer) => JSON.stringify(answer, null, 1));
        if (own !== other) differences.push(`${name}\n${own}\n${other}`);
      }
      expect(differences.join('\n\n')).toBe('');
    });
  });
});
