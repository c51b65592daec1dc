/**
 * Checks the models of this folder in small scopes: each must hold, and each weakened variant must fail (README.md). Then the built
 * northroot itself, on all ledgers of a small scope, against what the rules say. `node formal/check.js`, after a build.
 *
 * Models need `spin` and a C compiler, the Horn clauses `z3`; what is not installed is reported as skipped.
 */

import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'northroot-formal-'));

/** Breadth first, for the shortest counterexample; depth first, to see all states. */
const SHORTEST = ['-DSAFETY', '-DNOCLAIM', '-DBFS'];
const ALL = ['-DSAFETY', '-DNOCLAIM'];
const CLAIM = ['-DSAFETY'];

const SMALL = ['-DNP=3', '-DNA=3', '-DMAXC=1', '-DMAXR=1'];
const TWO = ['-DNP=2', '-DMAXC=1'];

/** Name, holds or fails, model, definitions, options of the compiler, options of the search. */
const MODELS = [
  [
    'abandoning gives back what was started',
    'fails',
    'live',
    ['-DCHECK=1', '-DRESUME=0', '-DABANDON=0', '-DPICK=0'],
    SHORTEST,
  ],
  [
    'a guard releases what another began',
    'fails',
    'live',
    ['-DCHECK=1', '-DRESUME=0', '-DGUARD=0', '-DMAXC=0'],
    SHORTEST,
  ],
  ['a takeover is free', 'fails', 'live', ['-DCHECK=1', '-DRESUME=1'], SHORTEST],
  ['nothing runs after stop', 'fails', 'live', ['-DCHECK=3', '-DREVOKE=2'], SHORTEST],
  [
    'the cap holds, and no action runs twice unless taken over',
    'holds',
    'live',
    ['-DCHECK=4', '-DALIVE=1', ...SMALL],
    ALL,
  ],
  ['no deadlock', 'holds', 'live', ['-DREVOKE=3', '-DAPPROVE=1', '-DNA=3', '-DMAXR=1', ...TWO], ALL],
  [
    'the account keeps to the cap, and actions to approvals',
    'holds',
    'live',
    ['-DREVOKE=3', '-DAPPROVE=1', '-DNA=2', ...TWO],
    CLAIM,
    ['-N', 'both'],
  ],
  [
    'no honest process records a violation',
    'holds',
    'live',
    ['-DREVOKE=3', '-DNA=3', ...TWO],
    CLAIM,
    ['-N', 'honest'],
  ],
  [
    'each reservation is settled in the end',
    'holds',
    'live',
    ['-DREVOKE=2', '-DNP=2', '-DNA=2', '-DMAXC=2'],
    [],
    ['-a', '-f', '-N', 'settled'],
  ],
  [
    'appending compares the size alone',
    'fails',
    'store',
    ['-DCAS=1', '-DPROXY=1', '-DRESTARTS=0', '-DLOST=0', '-DSTRICT=2'],
    ['-DSAFETY', '-DBFS'],
  ],
  [
    'nobody asks for what was acknowledged',
    'fails',
    'store',
    ['-DROLLBACK=0', '-DRESTARTS=0', '-DLOST=0', '-DSTRICT=0'],
    ['-DSAFETY', '-DBFS'],
  ],
  [
    'the acknowledged position is lost at a restart',
    'fails',
    'store',
    ['-DROLLBACK=1', '-DLOST=0', '-DSTRICT=0'],
    ['-DSAFETY', '-DBFS'],
  ],
  [
    'the lock can expire',
    'fails',
    'store',
    ['-DCAS=3', '-DLEASE=1', '-DFAILOVER=0', '-DRESTARTS=0', '-DLOST=0'],
    ['-DSAFETY', '-DBFS'],
  ],
  [
    'size and tip are compared',
    'holds',
    'store',
    ['-DPROXY=1', '-DRESTARTS=0', '-DSTRICT=0', '-DEV=1'],
    ['-DSAFETY'],
  ],
  ['the acknowledged position is kept', 'holds', 'store', ['-DLOST=0', '-DSTRICT=0', '-DEV=1'], ['-DSAFETY']],
  [
    'the lock of a local file',
    'holds',
    'store',
    ['-DCAS=3', '-DFAILOVER=0', '-DRESTARTS=0', '-DLOST=0'],
    ['-DSAFETY'],
  ],
  [
    'an event is sent again without looking',
    'holds',
    'store',
    ['-DLOOK=0', '-DFAILOVER=0', '-DEV=1'],
    ['-DSAFETY'],
  ],
  ['a slice is settled by any checkpoint', 'fails', 'slice', ['-DCLOSE=0'], ['-DSAFETY', '-DBFS']],
  ['a slice that is begun is released', 'fails', 'slice', ['-DFREE=1'], ['-DSAFETY', '-DBFS']],
  ['a child spends a slice before it is begun', 'fails', 'slice', ['-DBEGIN=0'], ['-DSAFETY', '-DBFS']],
  ['a child grants twice under one slice', 'fails', 'slice', ['-DONE=0'], ['-DSAFETY', '-DBFS']],
  [
    'a settled slice has forgotten what ran',
    'fails',
    'slice',
    ['-DCLOSE=0', '-DCHECK=2'],
    ['-DSAFETY', '-DBFS'],
  ],
  ['parent and child keep to one cap', 'holds', 'slice', [], ['-DSAFETY']],
  ['what a settled slice says is what ran', 'holds', 'slice', ['-DCHECK=2'], ['-DSAFETY']],
  ['an approval serves again', 'fails', 'approvals', ['-DONCE=0'], ['-DSAFETY']],
  ['one approver counts twice', 'fails', 'approvals', ['-DEACH=0'], ['-DSAFETY']],
  ['an approval is for any call', 'fails', 'approvals', ['-DBOUND=0'], ['-DSAFETY']],
  ['the asker approves', 'fails', 'approvals', ['-DOWN=0'], ['-DSAFETY']],
  [
    'an approval counts that was withdrawn meanwhile',
    'fails',
    'approvals',
    ['-DHOLDS=0'],
    ['-DSAFETY', '-DBFS'],
  ],
  ['an action says when it was', 'fails', 'approvals', ['-DCLOCK=0'], ['-DSAFETY']],
  ['each action has approvals of its own, of others, in time', 'holds', 'approvals', [], ['-DSAFETY']],
  ['a withdrawal of the grant above is ignored', 'fails', 'withdrawal', ['-DABOVE=0'], SHORTEST],
  ['a decision is judged where the grant was read', 'fails', 'withdrawal', ['-DPLACE=0'], SHORTEST],
  ['a resume revives what a stop has met', 'fails', 'withdrawal', ['-DBEGUN=0'], SHORTEST],
  ['a start serves any number of runs', 'fails', 'withdrawal', ['-DSERVES=0'], SHORTEST],
  ['a resume ends a revocation', 'fails', 'withdrawal', ['-DFINAL=0'], SHORTEST],
  ['a stop becomes a finish', 'fails', 'withdrawal', ['-DLATER=0'], [], ['-a', '-N', 'stop']],
  ['nothing is allowed or begun that is withdrawn or over', 'holds', 'withdrawal', [], ALL],
  ['what is revoked stays revoked', 'holds', 'withdrawal', [], [], ['-a', '-N', 'final']],
  ['a stop stays a stop', 'holds', 'withdrawal', [], [], ['-a', '-N', 'stop']],
  ['a gate knows its own calls alone', 'fails', 'table', ['-DKEYED=0', '-DCAP=2'], SHORTEST],
  [
    'a gate knows its own calls alone and forgets them',
    'fails',
    'table',
    ['-DKEYED=0', '-DBUILT=0', '-DCAP=2'],
    SHORTEST,
  ],
  ['an action and its start are two groups', 'fails', 'table', ['-DGROUP=0'], SHORTEST],
  ['what is overdue is released', 'fails', 'table', ['-DSWEEP=1'], SHORTEST],
  ['a second report counts again', 'fails', 'table', ['-DTWICE=0'], SHORTEST],
  ['a late report counts beside the sweep', 'fails', 'table', ['-DLATE=0'], SHORTEST],
  ['nothing is swept', 'fails', 'table', ['-DSWEEP=0'], [], ['-a', '-f', '-N', 'ended']],
  ['one request has one action, and the cap holds', 'holds', 'table', ['-DCAP=2'], ALL],
  ['each open call ends', 'holds', 'table', [], [], ['-a', '-f', '-N', 'ended']],
  ['a leader appends without a fence', 'fails', 'leader', ['-DFENCE=0'], ['-DSAFETY', '-DBFS']],
  ['a new leader does not read on', 'fails', 'leader', ['-DRELOAD=0'], ['-DSAFETY', '-DBFS']],
  ['a new leader does not know the keys', 'fails', 'leader', ['-DKEYED=0'], ['-DSAFETY', '-DBFS']],
  ['a refused leader goes on', 'fails', 'leader', ['-DSTEP=0'], ['-DSAFETY', '-DBFS']],
  ['leaders decide each request once, within the cap', 'holds', 'leader', [], ['-DSAFETY']],
];

/** Name, the answer of z3 (unsat: the claim holds), the query, further facts. */
const ADMIN =
  '(rule (key 6 5 1)) (rule (covers 6 12)) (rule (=> (and (key k 5 1) (covers k 12)) (key 7 2 1))) (rule (=> (key 7 2 1) (covers 7 11)))';
const CLAUSES = [
  ['no action counts that goes back to no authority key', 'unsat', '(acts p 0)'],
  ['no grant counts that goes back to no authority key', 'unsat', '(counts e p 0)'],
  ['nobody acts for a principal whose keys he does not have', 'unsat', '(acts 11 1)'],
  ['somebody acts for a principal of his own', 'sat', '(acts 10 1)'],
  ['a delegator delegates to anybody', 'sat', '(and (counts e 11 1) (>= e 200))'],
  ['with an admin key: authority is added', 'sat', '(acts p 0)', ADMIN],
];

const PROGRAMS = [
  ['accounts.js', '2', 'full', 'all'],
  ['accounts.js', '3', 'small', '1'],
  ['authority.js', '1', 'admin'],
];

let failed = 0;
const say = (isRight, line) => {
  if (!isRight) failed += 1;
  console.log(`${isRight ? 'ok  ' : 'FAIL'} ${line}`);
};

/** Runs a program to its end; `undefined` where it is not installed. */
function run(command, args, options = {}) {
  return new Promise((resolve) => {
    execFile(command, args, { maxBuffer: 2 ** 26, ...options }, (error, stdout, stderr) => {
      resolve(error?.code === 'ENOENT' ? undefined : { status: error?.code ?? 0, output: stdout + stderr });
    });
  });
}

async function checkModel([name, expected, model, definitions, compiler, search = []], number) {
  const cwd = join(folder, String(number));
  mkdirSync(cwd);
  copyFileSync(here(`${model}.pml`), join(cwd, 'm.pml'));
  const steps = [
    ['spin', ['-a', ...definitions, 'm.pml']],
    // Compiling takes longer than most searches: one that soon fails is not worth optimizing.
    ['gcc', [expected === 'fails' ? '-O0' : '-O1', '-w', '-DMEMLIM=3000', ...compiler, '-o', 'pan', 'pan.c']],
    [join(cwd, 'pan'), ['-m100000', ...search]],
  ];
  let last;
  for (const [command, args] of steps) {
    last = await run(command, args, { cwd });
    if (last === undefined) return;
  }
  const errors = /errors: (\d+)/.exec(last.output)?.[1];
  const isWhole =
    expected === 'fails' || !/max search depth too small|not completed|out of memory/.test(last.output);
  const states = /(\S+) states, stored/.exec(last.output)?.[1] ?? '?';
  say(
    errors === (expected === 'fails' ? '1' : '0') && isWhole,
    `${model}: ${name}: ${expected} (${states} states)`,
  );
}

async function checkClauses([name, expected, query, facts = '']) {
  const text = readFileSync(here('authority.smt2'), 'utf8');
  const file = join(folder, `${CLAUSES.findIndex(([other]) => other === name)}.smt2`);
  const filled = text
    .replace('; @ADMIN@', facts)
    .replace('; @QUERY@', `(rule (=> ${query} bad)) (query bad)`);
  writeFileSync(file, filled);
  const ended = await run('z3', [file]);
  if (ended !== undefined) say(ended.output.trim() === expected, `authority: ${name}: ${expected}`);
}

async function checkProgram([file, ...args]) {
  const { status, output } = await run(process.execPath, [here(file), ...args]);
  if (status !== 0) console.log(output);
  say(status === 0, `${file} ${args.join(' ')}: ${/ledgers: (\d+)/.exec(output)?.[1] ?? 'no'} ledgers`);
}

const hasSpin = (await run('spin', ['-V'])) !== undefined && (await run('gcc', ['--version'])) !== undefined;
const hasZ3 = (await run('z3', ['--version'])) !== undefined;
if (!hasSpin) console.log('skipped: the models, since spin or gcc is not installed');
if (!hasZ3) console.log('skipped: the Horn clauses, since z3 is not installed');
const tasks = [
  ...PROGRAMS.map((each) => () => checkProgram(each)),
  ...(hasSpin ? MODELS.map((each, number) => () => checkModel(each, number)) : []),
  ...(hasZ3 ? CLAUSES.map((each) => () => checkClauses(each)) : []),
];
const lane = async () => {
  for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) await task();
};
await Promise.all([lane(), lane()]);
rmSync(folder, { recursive: true, force: true });
console.log(failed === 0 ? 'all as expected' : `${failed} not as expected`);
process.exitCode = failed === 0 ? 0 : 1;
