/** An index never changes an answer: every command that uses one answers as with `--no-index`, whatever others did to the ledger. */

import {
  appendFileSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { times } from '../slow.js';
import { expectOk, parse, Workshop, type ResultJson, type Run } from './runner.js';

const shop = new Workshop();
const at = (...names: string[]): string => join(shop.folder, ...names);
/** In a file, from which each ledger of a test is copied. */
const BASE = 'base';
/** With which record the second segment begins. */
const SECOND = 6;
let action: number;
let started: number;
let startId: string;

/** What a command answers, without what is another one each time. */
interface Answer {
  readonly status: number | null;
  readonly out: string;
  readonly errors: readonly string[];
  readonly lines: number;
}

function filesOf(ledger: string): string[] {
  if (statSync(at(ledger)).isFile()) return [at(ledger)];
  return readdirSync(at(ledger))
    .sort()
    .map((name) => at(ledger, name));
}

/** The file of a ledger that is appended to. */
function lastFile(ledger: string): string {
  return filesOf(ledger).at(-1) as string;
}

function linesOf(ledger: string): number {
  return filesOf(ledger).reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').length - 1, 0);
}

/** Cuts out what depends on when a command ran, and where. */
function essence(text: string, ledger: string): string {
  return text
    .replaceAll(ledger, 'LEDGER')
    .replace(/sha-256:[A-Za-z0-9_-]{10,43}|[A-Za-z0-9_-]{43}=?/g, 'DIGEST')
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

type Command = (ledger: string) => readonly [args: readonly string[], input?: string];

/** Those that write, or decide. */
const WRITING: Readonly<Record<string, Command>> = {
  append: (l) => [['append', l], DRAFT],
  authorize: (l) => [
    [
      ...['authorize', l, '--no-position', '--principal', 'agent:a1', '--tool', 'sh.x'],
      ...['--reserve', 'calls=1', '--', 'true'],
    ],
  ],
  record: (l) => [['record', l, '--no-position', '--auth', String(action), '--', 'true']],
  'record --abandon': (l) => [
    ['record', l, '--no-position', '--auth', String(started), '--abandon', startId],
  ],
  abandon: (l) => [['abandon', l, '--no-position', '--older-than', '0s']],
  grant: (l) => [['grant', l, '--no-position', '--to', 'agent:a2', '--tool', 'sh.*', '--cap', 'calls=1']],
  checkpoint: (l) => [['checkpoint', l]],
};
const READING: Readonly<Record<string, Command>> = {
  budget: (l) => [['budget', l, '--json']],
  status: (l) => [['status', l, '--json']],
  'why of the first': (l) => [['why', l, '2']],
  'why of the last': (l) => [['why', l, String(action)]],
  'show of the first': (l) => [['show', l, '1']],
  'show of the last': (l) => [['show', l, '10']],
  log: (l) => [['log', l, '-n', '3']],
  prove: (l) => [['prove', l, '2']],
};
const BROKEN = '{"x":1}\n';

/** An amount in the record of the grant, as long as before. */
function changeMiddle(ledger: string): () => void {
  const file = filesOf(ledger)[0];
  const before = readFileSync(file);
  const text = before.toString('latin1');
  const changed = text.replace('"v":"9"', '"v":"8"');
  expect(changed).not.toBe(text);
  const { atime, mtime } = statSync(file);
  writeFileSync(file, changed, 'latin1');
  utimesSync(file, atime, mtime);
  return () => writeFileSync(file, before);
}

function withoutIndex(...args: string[]): void {
  const [command = '', ...rest] = args;
  expectOk(shop.run([command, ...rest, '--no-index'], { input: DRAFT }));
}

function dropLast(ledger: string): void {
  const text = readFileSync(lastFile(ledger), 'latin1');
  writeFileSync(lastFile(ledger), text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1), 'latin1');
}

/** What others do to a ledger. */
const CHANGES: Readonly<Record<string, (ledger: string) => void>> = {
  nothing: () => undefined,
  'a record is appended': (l) => withoutIndex('append', l),
  'a broken line is appended': (l) => appendFileSync(lastFile(l), BROKEN),
  'a blank line is appended': (l) => appendFileSync(lastFile(l), '\n'),
  'a line that is too long is appended': (l) => appendFileSync(lastFile(l), `"${'x'.repeat(1024 * 1024)}"\n`),
  'a blank line and a record are appended': (l) => {
    appendFileSync(lastFile(l), '\n');
    const before = readFileSync(lastFile(l), 'latin1');
    writeFileSync(lastFile(l), before.replace(/\n\n$/, '\n'), 'latin1');
    withoutIndex('append', l);
    const after = readFileSync(lastFile(l), 'latin1');
    const end = after.lastIndexOf('\n', after.length - 2) + 1;
    writeFileSync(lastFile(l), `${after.slice(0, end)}\n${after.slice(end)}`, 'latin1');
  },
  'a broken line is appended, and asked about': (l) => {
    appendFileSync(lastFile(l), BROKEN);
    shop.run(['budget', l]);
  },
  'the tail is torn': (l) => appendFileSync(lastFile(l), '{"event":{"canon'),
  'the last line is cut': (l) => truncateSync(lastFile(l), statSync(lastFile(l)).size - 40),
  'the last line is broken': (l) => {
    const text = readFileSync(lastFile(l), 'latin1');
    writeFileSync(lastFile(l), `${text.slice(0, -40)}${'x'.repeat(39)}\n`, 'latin1');
  },
  'the last record is gone': dropLast,
  'one byte is changed': (l) => void changeMiddle(l),
  'one byte is changed, and asked about': (l) => {
    changeMiddle(l);
    shop.run(['budget', l]);
  },
  'one byte is changed, asked about, and changed back': (l) => {
    const back = changeMiddle(l);
    shop.run(['budget', l]);
    back();
  },
  'one byte is changed, the index made, and changed back': (l) => {
    rmSync(at(`${l}.index`), { recursive: true });
    const back = changeMiddle(l);
    mkdirSync(at(`${l}.index`));
    shop.run(['budget', l]);
    back();
  },
  'one byte is changed, and a record is appended': (l) => {
    changeMiddle(l);
    withoutIndex('append', l);
  },
  'it is another that went on otherwise': (l) => {
    dropLast(l);
    withoutIndex('append', l);
    withoutIndex('grant', l, '--no-position', '--to', 'agent:a3', '--tool', 'sh.*', '--cap', 'calls=3');
  },
  'it is replaced by the same bytes': (l) => {
    copyFileSync(lastFile(l), at('same'));
    renameSync(at('same'), lastFile(l));
  },
  'it is emptied': (l) => truncateSync(lastFile(l), 0),
};

const segment = (ledger: string, seq: number): string => at(ledger, `${String(seq).padStart(20, '0')}.jsonl`);

/** The same to a folder, and what can be done to no file. */
const FOLDER_CHANGES: Readonly<Record<string, (ledger: string) => void>> = {
  nothing: () => undefined,
  'a broken line is appended': CHANGES['a broken line is appended'],
  'one byte is changed': CHANGES['one byte is changed'],
  'one byte is changed, the index made, and changed back':
    CHANGES['one byte is changed, the index made, and changed back'],
  'the first segment is gone': (l) => rmSync(segment(l, 0)),
  'the last segment is gone': (l) => rmSync(segment(l, SECOND)),
  'a segment has another name': (l) => renameSync(segment(l, SECOND), segment(l, SECOND + 1)),
  'a record is moved to the next segment': (l) => {
    const lines = [0, SECOND].map((seq) => readFileSync(segment(l, seq), 'latin1').split(/(?<=\n)/));
    const [first = [], second = []] = lines;
    rmSync(segment(l, SECOND));
    writeFileSync(segment(l, 0), first.slice(0, -1).join(''), 'latin1');
    writeFileSync(segment(l, SECOND - 1), [...first.slice(-1), ...second].join(''), 'latin1');
  },
  'the first segment is torn': (l) => appendFileSync(segment(l, 0), '{"event":{"canon'),
  'a segment follows that is misplaced': (l) => {
    writeFileSync(segment(l, 40), readFileSync(lastFile(l), 'utf8').split('\n')[0] + '\n');
    shop.run(['budget', l]);
  },
  'an empty segment follows': (l) => writeFileSync(segment(l, action + 1), ''),
};

const WAYS = ['with', 'without'] as const;
type Way = (typeof WAYS)[number];
/** What is done to a new copy of the ledger. */
interface Treatment {
  readonly makeLedger: (ledger: string) => void;
  readonly change: (ledger: string) => void;
}

/** A ledger that was changed since it had an index; an empty one is made at once. */
function makeChanged(way: Way, { makeLedger, change }: Treatment, hasIndex = true): string {
  const ledger = `${way}.d`;
  for (const name of [ledger, `${ledger}.index`]) rmSync(at(name), { recursive: true, force: true });
  makeLedger(ledger);
  copyFileSync(at(`${BASE}.key`), at(`${ledger}.key`));
  if (hasIndex) expectOk(shop.run(['index', ledger]));
  else mkdirSync(at(`${ledger}.index`));
  change(ledger);
  return ledger;
}

function answer(way: Way, ledger: string, command: Command): string {
  const [args, input = ''] = command(ledger);
  const end = args.indexOf('--');
  const flags = way === 'with' ? [] : ['--no-index'];
  const all = end === -1 ? [...args, ...flags] : [...args.slice(0, end), ...flags, ...args.slice(end)];
  return JSON.stringify(answerOf(shop.run(all, { input }), ledger), null, 1);
}

/**
 * The answers of all commands that read, and of some that write, by the number of the change: each of these for a third of the changes,
 * with SLOW=1 for all. Those that read share one ledger, and find its index as the change left it.
 */
function answers(way: Way, treatment: Treatment, number: number): ReadonlyMap<string, string> {
  const all = new Map<string, string>();
  for (const [n, [name, command]] of Object.entries(WRITING).entries()) {
    if ((n + number) % times(3, 1) > 0) continue;
    all.set(name, answer(way, makeChanged(way, treatment, way === 'with'), command));
  }
  const ledger = makeChanged(way, treatment);
  const [index, kept] = [at(`${ledger}.index`), at('kept.index')];
  rmSync(kept, { recursive: true, force: true });
  cpSync(index, kept, { recursive: true });
  for (const [name, command] of Object.entries(READING)) {
    rmSync(index, { recursive: true });
    cpSync(kept, index, { recursive: true });
    all.set(name, answer(way, ledger, command));
  }
  return all;
}

function expectAlike(treatment: Treatment, number: number): void {
  const [own, other] = WAYS.map((way) => answers(way, treatment, number));
  expect(own).toEqual(other);
}

beforeAll(() => {
  const run = (...args: string[]): ResultJson =>
    parse<ResultJson>(expectOk(shop.run(args, { input: DRAFT })));
  run('init', BASE, '--origin', 'example.com/matrix');
  const none = '--no-position';
  run('grant', BASE, none, '--to', 'agent:a1', '--tool', 'sh.*', '--cap', 'calls=9');
  const [AUTHORIZE] = [WRITING['authorize'](BASE)[0]];
  const authorize = (...command: string[]): number =>
    run(...AUTHORIZE.slice(0, -1), ...(command.length === 0 ? ['true'] : command)).seq;
  expectOk(shop.run(['record', BASE, none, '--auth', String(authorize()), '--', 'true']));
  // Killed in the midst of its command: its start stays open.
  const kill = ['sh', '-c', 'kill -9 $PPID'];
  started = authorize(...kill);
  shop.shell(`northroot record ${BASE} ${none} --auth ${started} -- sh -c 'kill -9 $PPID'`);
  const [line = ''] = readFileSync(at(BASE), 'utf8')
    .split('\n')
    .filter((each) => each.includes('x.northroot.start'))
    .slice(-1);
  startId = `sha-256:${parse<{ readonly event: { readonly event_id: { readonly b64: string } } }>(line).event.event_id.b64}`;
  expectOk(shop.run(['checkpoint', BASE]));
  run('append', BASE);
  action = authorize();
});

describe('a ledger in a file', () => {
  it.each(Object.keys(CHANGES).map((name, n) => [name, n] as const))(
    'is answered for alike when %s',
    (change, number) => {
      const makeLedger = (ledger: string): void => copyFileSync(at(BASE), at(ledger));
      expectAlike({ makeLedger, change: CHANGES[change] }, number);
    },
  );
});

describe('a ledger in a folder', () => {
  it.each(Object.keys(FOLDER_CHANGES).map((name, n) => [name, n] as const))(
    'is answered for alike when %s',
    (change, number) => {
      const makeLedger = (ledger: string): void => {
        const lines = readFileSync(at(BASE), 'latin1').split(/(?<=\n)/);
        mkdirSync(at(ledger));
        writeFileSync(segment(ledger, 0), lines.slice(0, SECOND).join(''), 'latin1');
        writeFileSync(segment(ledger, SECOND), lines.slice(SECOND).join(''), 'latin1');
      };
      expectAlike({ makeLedger, change: FOLDER_CHANGES[change] }, number);
    },
  );
});
