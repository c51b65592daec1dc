/** The package `northroot-conformance` as strangers have it: packed, unpacked elsewhere, and run on right and wrong implementations. */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADAPTER, PYTHON } from '../second/kit.js';
import { sample } from '../slow.js';

const SOURCE = fileURLToPath(new URL('../../conformance/', import.meta.url));
const PRODUCT = `${SOURCE}adapter/northroot.js`;

/** What test/second/README.md says that the second verifier leaves out. */
const LEFT_OUT = ['bundle', 'proof', 'receipt'];

let folder: string;
let unpacked: string;
/** With a sample of the cases: `generate.js` has held the product to all those of verifiers. */
let sampled: string;
/** With the cases of trees alone, which are read in a moment: for what is about the runner, and not about cases. */
let small: string;

/** How many cases of an operation are run; those without one are of deciders and witnesses. Fewer than these are all run. */
const MANY: Readonly<Record<string, number>> = {
  verify: 50,
  steps: 25,
  report: 25,
  record: 25,
  identity: 25,
  decider: 25,
};
/** What tests below ask for by name. */
const NAMED = /agent-run|event-id-mismatch|decider\/(?:order-|life)/;

interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function runIn(root: string, args: readonly string[]): Ran {
  const program = join(root, 'bin/northroot-conformance.js');
  return spawnSync(process.execPath, [program, ...args], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 2 ** 27,
  });
}

const run = (...args: string[]): Ran => runIn(sampled, args);

/** What comes of a program, given as its text, that answers the frames of `--filter`, or of trees. */
function runProgram(text: string, ...options: string[]): Ran {
  const path = join(
    folder,
    `implementation-${createHash('sha256').update(text).digest('hex').slice(0, 12)}.mjs`,
  );
  writeFileSync(path, text);
  const root = options.includes('tree') ? small : sampled;
  return runIn(root, ['run', ...options, '--', process.execPath, path]);
}

/** An implementation that says hello and then does as `answer`, the body of a function of a request, says. */
function implementation(answer: string, classes = ['verifier']): string {
  return `
    import { createInterface } from 'node:readline';
    const hello = { version: 1, name: 'wrong', release: '0', classes: ${JSON.stringify(classes)} };
    const say = (frame) => process.stdout.write(JSON.stringify(frame) + '\\n');
    const answer = async (request) => { const { id, op, input } = request; ${answer} };
    for await (const line of createInterface({ input: process.stdin })) {
      const request = JSON.parse(line);
      if (request.op === 'hello') say({ id: request.id, result: hello });
      else await answer(request);
    }`;
}

const TREES = ['--operation', 'tree'] as const;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'northroot-'));
  // Not beside its sources, where other tests look.
  const source = join(folder, 'source');
  const made = spawnSync(process.execPath, [`${SOURCE}generate.js`, source], { encoding: 'utf8' });
  expect({ status: made.status, stderr: made.stderr }).toEqual({ status: 0, stderr: '' });
  const packed = spawnSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    cwd: source,
    encoding: 'utf8',
  });
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  spawnSync('tar', ['xf', filename], { cwd: folder });
  unpacked = join(folder, 'package');
  sampled = makePart('sampled', sampleOf);
  small = makePart('small', (_, cases) => cases.filter(({ op }) => op === 'tree'));
});

interface PackagedCase {
  readonly id: string;
  readonly op?: string;
}

function sampleOf(kind: string, cases: readonly PackagedCase[]): readonly PackagedCase[] {
  const operations = [...new Set(cases.map(({ op }) => op))];
  const kept = new Set(
    operations.flatMap((operation) => {
      const own = cases.filter(({ op }) => op === operation);
      return sample(own, MANY[operation ?? kind] ?? own.length);
    }),
  );
  return cases.filter((one) => kept.has(one) || NAMED.test(one.id));
}

/** A package like the other, of some cases, and of the files that these name. */
function makePart(
  name: string,
  choose: (kind: string, cases: readonly PackagedCase[]) => readonly PackagedCase[],
): string {
  const root = join(folder, name);
  for (const path of ['bin', 'lib', 'package.json', 'content/cases', 'manifest.json'])
    cpSync(join(unpacked, path), join(root, path), { recursive: true });
  const hex = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');
  const files = new Set<string>();
  const sums = readdirSync(join(root, 'content/cases')).map((file) => {
    const path = `content/cases/${file}`;
    const whole = JSON.parse(readFileSync(join(root, path), 'utf8')) as { cases: PackagedCase[] };
    const text = JSON.stringify({ ...whole, cases: choose(file.replace('.json', ''), whole.cases) });
    for (const [, used] of text.matchAll(/"\$file":"([^"]+)"/g)) files.add(`content/files/${used}`);
    writeFileSync(join(root, path), text);
    return `${hex(text)}  ${path}\n`;
  });
  for (const path of files) {
    cpSync(join(unpacked, path), join(root, path));
    sums.push(`${hex(readFileSync(join(root, path)))}  ${path}\n`);
  }
  writeFileSync(join(root, 'SHA256SUMS'), sums.join(''));
  const manifest = JSON.parse(readFileSync(join(root, 'manifest.json'), 'utf8')) as object;
  writeFileSync(join(root, 'manifest.json'), JSON.stringify({ ...manifest, digest: hex(sums.join('')) }));
  return root;
}

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A program: the product, whose answers the statements of `change` alter. */
function productBut(change: string): string {
  return `
      import { spawn } from 'node:child_process';
      const child = spawn(process.execPath, [${JSON.stringify(PRODUCT)}], { stdio: ['pipe', 'pipe', 'inherit'] });
      process.stdin.pipe(child.stdin);
      let rest = '';
      child.stdout.on('data', (chunk) => {
        const lines = (rest + chunk).split('\\n');
        rest = lines.pop();
        for (const line of lines) {
          const answer = JSON.parse(line);
          ${change}
          process.stdout.write(JSON.stringify(answer) + '\\n');
        }
      });
      child.on('close', () => process.exit());`;
}

describe('the package', () => {
  test('has every file that it names, with its digest, and installs nothing', () => {
    const manifest = JSON.parse(readFileSync(join(unpacked, 'manifest.json'), 'utf8')) as {
      digest: string;
      files: number;
      cases: Record<string, number>;
    };
    const sums = readFileSync(join(unpacked, 'SHA256SUMS'));
    expect(createHash('sha256').update(sums).digest('hex')).toBe(manifest.digest);
    const lines = sums.toString().trimEnd().split('\n');
    expect(lines).toHaveLength(manifest.files);
    for (const line of lines) {
      const [digest, path] = line.split('  ') as [string, string];
      expect(
        createHash('sha256')
          .update(readFileSync(join(unpacked, path)))
          .digest('hex'),
      ).toBe(digest);
    }
    const { dependencies, scripts } = JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8')) as {
      dependencies?: object;
      scripts: Record<string, string>;
    };
    expect(dependencies).toBeUndefined();
    expect(Object.keys(scripts)).toEqual(['prepack']);
    for (const count of Object.values(manifest.cases)) expect(count).toBeGreaterThan(0);
  });

  test('lists its cases, by class and operation', () => {
    const { status, stdout } = run('list', '--class', 'witness');
    expect(status).toBe(0);
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((row) => row.split('\t'));
    expect(new Set(rows.map(([name]) => name))).toEqual(new Set(['witness']));
    expect(run('list', '--operation', 'tree').stdout).toContain('tree/11');
    expect(run('list', '--filter', 'no such case').status).toBe(2);
  });

  test('does not run when a file of it is another', () => {
    const damaged = join(folder, 'damaged');
    cpSync(small, damaged, { recursive: true });
    appendFileSync(join(damaged, 'content/cases/witness.json'), ' ');
    const { status, stderr, stdout } = runIn(damaged, ['run', '--', process.execPath, PRODUCT]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain('content/cases/witness.json');
  });
});

describe('the manifest', () => {
  test.each(['{', 'null', '{"digest":7}', ''])('%j is told, and nothing runs', (text) => {
    const damaged = join(folder, 'other-manifest');
    cpSync(small, damaged, { recursive: true });
    writeFileSync(join(damaged, 'manifest.json'), text);
    const { status, stderr } = runIn(damaged, ['list']);
    expect({ status, lines: stderr.split('\n').length }).toEqual({ status: 2, lines: 2 });
    expect(stderr).toContain('manifest.json');
  });
});

describe('northroot', () => {
  test('conforms in every class', () => {
    const [junit, markdown] = ['junit.xml', 'page.md'].map((name) => join(folder, name)) as [string, string];
    const { status, stdout } = run(
      'run',
      ...['--junit', junit, '--markdown', markdown],
      ...['--', process.execPath, PRODUCT],
    );
    expect(stdout.split('\n').filter((line) => line.startsWith('failed'))).toEqual([]);
    expect(status).toBe(0);
    for (const name of ['verifier', 'writer', 'decider', 'witness']) {
      expect(stdout).toMatch(new RegExp(`^${name} +conforms `, 'm'));
      expect(readFileSync(markdown, 'utf8')).toMatch(new RegExp(`^\\| ${name} \\| conforms \\|`, 'm'));
      expect(readFileSync(junit, 'utf8')).toMatch(new RegExp(`<testsuite name="${name}" .* failures="0"`));
    }
  });
});

describe.skipIf(PYTHON === undefined)('the second verifier', () => {
  test('passes all cases but of the operations that it leaves out', { timeout: 600_000 }, () => {
    const asked = ['run', '--timeout', '300', '--', PYTHON ?? '', '-B', ADAPTER];
    const { stdout, stderr } = run(...asked);
    expect(stdout.match(/^failed .*\n.*$/gm) ?? [], stderr).toEqual([]);
    const unsupported = [...stdout.matchAll(/^unsupported +\d+ cases: (\w+):/gm)].map(([, name]) => name);
    expect(unsupported.sort()).toEqual(LEFT_OUT);
    expect(stdout).toMatch(/^verifier .*incomplete.* 0 failed, \d+ unsupported, 0 not run/m);
  });
});

describe('a wrong implementation', () => {
  test('that finds nothing ever fails', () => {
    const text = implementation(
      `say({ id, result: { verdict: 'ok', exit_status: 0, findings: [], leaves: [], roots: [], valid: true } });`,
    );
    const junit = join(folder, 'lying.xml');
    const { status, stdout } = runProgram(text, '--operation', 'verify', '--junit', junit);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^failed +verify\/broken\/event-id-mismatch$/m);
    expect(stdout).not.toMatch(/^failed +verify\/ledgers\/agent-run$/m);
    expect(stdout).toMatch(/^verifier +fails /m);
    expect(readFileSync(junit, 'utf8')).toContain('<failure');
    expect(runProgram(text, '--operation', 'signature').status).toBe(1);
  });

  test.each([
    ['hangs', `await new Promise(() => setInterval(() => {}, 1000));`, 'no answer within'],
    ['dies', `process.exit(7);`, 'the process has ended, with status 7'],
    ['is killed', `process.kill(process.pid, 'SIGKILL');`, 'the process has ended, with SIGKILL'],
    [
      'floods',
      `for (;;) if (!process.stdout.write('x'.repeat(2 ** 20))) await new Promise((r) => process.stdout.once('drain', r));`,
      'an answer of more than',
    ],
    [
      'answers twice',
      `const twice = JSON.stringify({ id, result: {} }) + '\\n'; process.stdout.write(twice + twice);`,
      'a frame that nobody asked for',
    ],
    ['answers another request', `say({ id: id + 1, result: {} });`, 'the id of another request'],
    ['speaks no JSON', `process.stdout.write('nonsense\\n');`, 'not one JSON object in UTF-8'],
    [
      'speaks no UTF-8',
      `process.stdout.write(Buffer.from([0x22, 0xff, 0x22, 0x0a]));`,
      'not one JSON object in UTF-8',
    ],
    ['answers a list', `process.stdout.write('[]\\n');`, 'not one JSON object in UTF-8'],
    [
      'begins with a byte order mark',
      `process.stdout.write('\\ufeff' + JSON.stringify({ id, result: {} }) + '\\n');`,
      'not one JSON object in UTF-8',
    ],
    [
      'speaks UTF-16',
      `process.stdout.write(Buffer.from(JSON.stringify({ id, result: {} }) + '\\n', 'utf16le'));`,
      'a frame that nobody asked for',
    ],
  ])('that %s ends the run', (_, answer, why) => {
    // Only who says nothing is to be given up soon.
    const soon = why === 'no answer within' ? ['--timeout', '5'] : [];
    const { status, stdout } = runProgram(implementation(answer), ...TREES, ...soon);
    expect(status).toBe(1);
    expect(stdout).toContain(why);
    expect(stdout).toContain('The run ended early');
    expect(stdout).toMatch(/^verifier +fails \(0 passed, \d failed, 0 unsupported, [1-9]\d* not run/m);
  });

  test.each([
    ['neither result nor error', `say({ id });`],
    ['both', `say({ id, result: {}, error: 'no' });`],
    ['an error', `say({ id, error: 'no' });`],
    ['a list', `say({ id, result: [] });`],
    ['other types', `say({ id, result: { leaves: {}, roots: 7 } });`],
    [
      'deep nesting',
      `process.stdout.write('{"id":' + id + ',"result":{"leaves":' + '['.repeat(4000) + ']'.repeat(4000) + '}}\\n');`,
    ],
  ])('that answers %s fails, and the run goes on', (_, answer) => {
    const { status, stdout } = runProgram(implementation(answer), ...TREES);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^verifier +fails \(0 passed, 7 failed, 0 unsupported, 0 not run/m);
  });

  test('cannot write to the terminal', () => {
    const text = implementation(`say({ id, error: '\\u001b[2J\\nverifier  conforms\\u202e' });`);
    const { stdout } = runProgram(text, ...TREES);
    expect(stdout).toContain('\\u{1b}[2J\\u{a}verifier  conforms\\u{202e}');
    expect(stdout).not.toContain('\u001b');
  });

  test('that is of other groups, or deep, is not waited for and not shown', () => {
    const child = `const { spawn } = await import('node:child_process'); spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60000)'], { detached: true, stdio: 'inherit' });`;
    const path = join(folder, 'pid');
    const keep = `const { writeFileSync } = await import('node:fs');`;
    const text = implementation(
      `${child.replace('spawn(process', 'const kept = spawn(process')} ${keep} writeFileSync(${JSON.stringify(path)}, String(kept.pid)); process.exit(3);`,
    );
    try {
      const { status, stdout } = runProgram(text, ...TREES, '--timeout', '3');
      expect(status).toBe(1);
      expect(stdout).toContain('The run ended early');
    } finally {
      process.kill(Number(readFileSync(path, 'utf8')), 'SIGKILL');
    }
    for (const member of ['unsupported', 'error']) {
      const deep = implementation(
        `process.stdout.write('{"id":' + id + ',"${member}":' + '['.repeat(2e5) + ']'.repeat(2e5) + '}\\n');`,
      );
      const { status, stderr } = runProgram(deep, ...TREES);
      expect({ status, stderr }).toEqual({ status: member === 'error' ? 1 : 2, stderr: '' });
    }
  });

  test('cannot make marks, cells or characters that XML has not, in reports', () => {
    const [junit, markdown] = ['hostile.xml', 'hostile.md'].map((name) => join(folder, name)) as [
      string,
      string,
    ];
    const hostile = 'a\\\\| passed | ![x](http://x.example/) @someone #1 \\ufffe\\uffff <b>';
    const text = implementation(`say({ id, error: '${hostile}' });`);
    runProgram(text, ...TREES, '--junit', junit, '--markdown', markdown);
    const page = readFileSync(markdown, 'utf8');
    expect(page).toContain(
      'a&#92;&#124; passed &#124; &#33;&#91;x&#93;(http://x.example/) &#64;someone &#35;1',
    );
    expect(readFileSync(junit, 'utf8')).toContain('\\u{fffe}\\u{ffff} &lt;b&gt;');
  });

  test('whose report says more than there is, under the name of a pattern', () => {
    const text = productBut(`
          if (answer.result?.report) answer.result.report = { ...answer.result.report, $type: 'object', more: 1 };
    `);
    const { stdout } = runProgram(text, '--operation', 'report', '--filter', 'agent-run');
    expect(stdout).toMatch(/^verifier +fails \(0 passed, [1-9]/m);
  });

  test('is told no expectation', () => {
    const path = join(folder, 'heard.jsonl');
    const text = `import { appendFileSync } from 'node:fs'; ${implementation(
      `appendFileSync(${JSON.stringify(path)}, JSON.stringify(request) + '\\n'); say({ id, unsupported: 'it listens' });`,
      ['verifier', 'writer', 'decider', 'witness'],
    )}`;
    expect(runProgram(text).status).toBe(2);
    const frames = readFileSync(path, 'utf8').trimEnd().split('\n');
    expect(frames.length).toBeGreaterThan(300);
    for (const frame of frames) {
      expect(Object.keys(JSON.parse(frame) as object)).toEqual(['id', 'op', 'input']);
      expect(frame).not.toMatch(/"(?:expect|intermediate|about)":/);
    }
  });

  test('in a class of its own: decides wrong, cosigns all, writes wrong', () => {
    const decider = implementation(
      `say({ id, result: { decision: 'allow', decision_code: 'ALLOW', recorded: true, event_id: 'x', records: 2, bytes: '', results: [] } });`,
      ['decider'],
    );
    expect(runProgram(decider).stdout).toMatch(/^decider +fails \(0 passed/m);
    const witness = implementation(
      `say({ id, result: { name: 'w1.example/witness', status: 200, body: '' } });`,
      ['witness'],
    );
    expect(runProgram(witness).stdout).toMatch(/^witness +fails \(0 passed/m);
    const writer = implementation(`say({ id, result: { line: '', refused: 'SCHEMA' } });`, ['writer']);
    expect(runProgram(writer, '--filter', 'agent-run').stdout).toMatch(/^writer +fails \(0 passed/m);
  });

  test('that forges the ledger of a trace is found out by the runner', () => {
    // The product, whose ledgers lose a record on the way.
    const text = productBut(`
          if (answer.result?.ledgers) {
            const records = Buffer.from(answer.result.ledgers.gate, 'base64').toString().split('\\n');
            records.splice(-2, 1);
            records[records.length - 2] = records[records.length - 2].replace('"seq"', '"seq" ');
            answer.result.ledgers.gate = Buffer.from(records.join('\\n')).toString('base64');
          }
    `);
    const { status, stdout } = runProgram(text, '--filter', 'decider/order-');
    expect(status).toBe(1);
    expect(stdout).toMatch(/^decider +fails \(0 passed, 6 failed/m);
    expect(stdout).toContain('the ledger is wrong');
  });
});

/** What a program that answers all does when its input ends. */
function ending(statements: string): string {
  return `${implementation(`say({ id, unsupported: 'nothing' });`)}\n${statements}`;
}

describe('the end of a run', () => {
  const UNSUPPORTED = 2;

  test('by itself, with status 0, is no fault', () => {
    const { status, stdout } = runProgram(ending(''), ...TREES);
    expect(status).toBe(UNSUPPORTED);
    expect(stdout).not.toContain('The run failed');
  });

  test.each([
    ['another status', `process.exitCode = 7;`, 'with status 7'],
    [
      'a signal',
      `process.kill(process.pid, 'SIGTERM'); await new Promise(() => setInterval(() => {}, 1000));`,
      'with SIGTERM',
    ],
    ['one frame more', `say({ id: 0, result: {} });`, 'a frame that nobody asked for'],
    ['half a frame more', `process.stdout.write('{');`, 'a frame that nobody asked for'],
    ['an empty line', `process.stdout.write('\\n');`, 'a frame that nobody asked for'],
    ['a throw', `throw new Error('too late');`, 'with status 1'],
    ['no end', `await new Promise(() => setInterval(() => {}, 1000));`, 'it did not end within 5 seconds'],
  ])('with %s fails it', (_, statements, why) => {
    const [junit, markdown] = ['end.xml', 'end.md'].map((name) => join(folder, name)) as [string, string];
    const { status, stdout } = runProgram(
      ending(statements),
      ...[...TREES, '--junit', junit, '--markdown', markdown],
    );
    expect(status).toBe(1);
    expect(stdout).toContain(`The run failed at its end: `);
    expect(stdout).toContain(why);
    expect(stdout).toMatch(/^verifier +fails: the run did not end as it must/m);
    expect(readFileSync(junit, 'utf8')).toMatch(/ errors="1"[^]*name="end"><error message="[^"]+"/);
    expect(readFileSync(markdown, 'utf8')).toContain('The run failed at its end');
  });
});

describe('a liar', () => {
  test('that sends every request back', () => {
    const { status, stdout } = runProgram(
      implementation(`say(request);`, ['verifier', 'writer', 'decider', 'witness']),
      ...['--filter', 'agent-run'],
    );
    expect(status).toBe(1);
    expect(stdout).toMatch(/^verifier +fails \(0 passed/m);
  });

  test('that answers one request late, and the next with that', () => {
    const text = implementation(`
      globalThis.kept ??= [];
      kept.push(id);
      if (kept.length === 1) return;
      say({ id: kept[1], result: {} });
      say({ id: kept[0], result: {} });`);
    const { status, stdout } = runProgram(text, ...TREES, '--timeout', '2');
    expect(status).toBe(1);
    expect(stdout).toContain('no answer within');
  });

  test('whose ids are as long as a frame', () => {
    const long = `'x'.repeat(32 * 1024 * 1024 - 200)`;
    const text = implementation(
      `say({ id, result: op === 'open' ? { records: input.ledger ? 2 : 1 } : { event_id: ${long}, decision: 'allow', recorded: true } });`,
      ['decider'],
    );
    const { status, stdout, stderr } = runProgram(text, '--filter', 'decider/life');
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
    expect(stdout).toContain('expected text of at most');
  });

  test('that reads what is expected from the package, and has decided nothing', () => {
    const text = `
      import { readFileSync } from 'node:fs';
      const { cases } = JSON.parse(readFileSync(${JSON.stringify(join(sampled, 'content/cases/decider.json'))}));
      const steps = cases.flatMap((each) => each.steps);
      let at = 0;
      const valueOf = (value) => {
        if (Array.isArray(value)) return value.map(valueOf);
        if (typeof value !== 'object' || value === null) return value;
        if (value.$oneOf) return valueOf(value.$oneOf[0]);
        if (value.$type) return value.$type === 'number' ? 1 : 'sha-256:' + 'A'.repeat(43);
        if (value.$ref) return 'sha-256:' + 'A'.repeat(43);
        return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, valueOf(item)]));
      };
      ${implementation(
        `
        const { ledgers, ...result } = valueOf(steps[at++].expect);
        if (ledgers) result.ledgers = Object.fromEntries(Object.entries(ledgers).map(([name, { begins }]) => [name, begins]));
        say({ id, result: { event_id: 'sha-256:' + 'A'.repeat(43), ...result } });`,
        ['decider'],
      ).replace(
        `import { createInterface } from 'node:readline';`,
        `const { createInterface } = await import('node:readline');`,
      )}`;
    const { status, stdout } = runProgram(text);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^decider +fails \(0 passed, \d+ failed/m);
    expect(stdout).toContain('which the ledger has not');
  });

  test.each([
    [
      'answers another decision',
      `answer.result.decision &&= 'deny'; answer.result.decision_code &&= 'RESERVATION_OVER_CAP';`,
    ],
    ['names another event', `answer.result.event_id &&= 'sha-256:' + 'A'.repeat(43);`],
    ['hides what it recorded', `answer.result.recorded &&= false;`],
    ['keeps no ledger', `if (answer.result.ledgers) answer.result.ledgers = {};`],
    [
      'keeps the ledger as it was',
      `if (answer.result.ledgers) answer.result.ledgers.gate = Buffer.from(Buffer.from(answer.result.ledgers.gate, 'base64').toString().split('\\n').slice(0, 2).join('\\n') + '\\n').toString('base64');`,
    ],
    [
      'keeps a very long ledger',
      `if (answer.result.ledgers) answer.result.ledgers.gate = Buffer.concat([Buffer.from(answer.result.ledgers.gate, 'base64'), Buffer.alloc(2e6, 10)]).toString('base64');`,
    ],
  ])('that %s fails', (_, change) => {
    const text = productBut(`if (answer.result) { ${change} }`);
    const { status, stdout, stderr } = runProgram(text, '--filter', 'decider/order-abc');
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
    expect(stdout).toMatch(/^decider +fails \(0 passed, 1 failed/m);
  });
});

describe('what was not run is not called right', () => {
  test('an operation that is not supported', () => {
    const text = implementation(`say({ id, unsupported: 'not yet' });`);
    const { status, stdout } = runProgram(text, ...TREES);
    expect(status).toBe(2);
    expect(stdout).toMatch(/^unsupported +7 cases: tree: not yet$/m);
    expect(stdout).toMatch(/^verifier +incomplete: not all was run \(0 passed, 0 failed, 7 unsupported/m);
    expect(stdout).not.toContain('conforms');
  });

  test('a part of a class', () => {
    const { status, stdout } = run('run', ...TREES, '--', process.execPath, PRODUCT);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^verifier +incomplete: all that was chosen passed /m);
    expect(stdout).toMatch(/^decider +not run /m);
  });

  test('a class that is asked for and not claimed', () => {
    const { status, stdout } = runProgram(implementation(''), '--class', 'witness');
    expect(status).toBe(2);
    expect(stdout).toMatch(/^unsupported .*does not claim this class$/m);
  });

  test.each([
    [
      'another version',
      `process.stdout.write('{"id":0,"result":{"version":2,"name":"a","release":"b","classes":["verifier"]}}\\n');`,
    ],
    ['no version', `process.stdout.write('{"id":0,"unsupported":"version 1"}\\n');`],
    [
      'a class that there is not',
      `process.stdout.write('{"id":0,"result":{"version":1,"name":"a","release":"b","classes":["judge"]}}\\n');`,
    ],
    ['no name', `process.stdout.write('{"id":0,"result":{"version":1,"classes":["verifier"]}}\\n');`],
    ['nothing', ''],
  ])('an implementation that greets with %s', (_, text) => {
    const junit = join(folder, 'greeting.xml');
    const { status, stdout } = runProgram(
      `${text} process.stdin.resume();`,
      '--timeout',
      '5',
      '--junit',
      junit,
    );
    expect(status).toBe(2);
    // A file without a suite would read as a run in which nothing failed.
    expect(readFileSync(junit, 'utf8')).toMatch(/ errors="1"[^]*<error message="[^"]+"/);
    expect(stdout).toContain('The run ended early');
  });

  test.each([
    [['run']],
    [['run', '--']],
    [['nonsense']],
    [['run', '--class', 'judge', '--', 'true']],
    [['run', '--operation', 'judge', '--', 'true']],
    [['run', '--timeout', '0', '--', 'true']],
    [['run', '--nonsense', 'x', '--', 'true']],
    [['run', '--junit', '', '--', 'true']],
    [['run', '--', join('/', 'no', 'such', 'program')]],
    [['run', '--', process.execPath, '-e', '']],
    [['run', 'true']],
  ])('%j', (args) => {
    expect(run(...args).status).toBe(2);
  });

  test('a report that cannot be written', () => {
    mkdirSync(join(folder, 'a-folder'), { recursive: true });
    const { status, stderr } = run(
      'run',
      ...TREES,
      '--junit',
      join(folder, 'a-folder'),
      '--',
      process.execPath,
      PRODUCT,
    );
    expect(status).toBe(2);
    expect(stderr).toContain('EISDIR');
  });

  test('a report that cannot be written is told before anything is run', () => {
    const [heard, earlier] = [join(folder, 'heard'), join(folder, 'earlier.xml')];
    writeFileSync(earlier, 'of an earlier run');
    const program = `import('node:fs').then((fs) => fs.writeFileSync(${JSON.stringify(heard)}, ''))`;
    const { status, stdout } = run(
      'run',
      ...['--junit', earlier, '--markdown', join(folder, 'none', 'page.md')],
      ...['--', process.execPath, '-e', program],
    );
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect([existsSync(heard), readFileSync(earlier, 'utf8')]).toEqual([false, '']);
  });
});
