/** The program around the commands: help, version, wrong use, completion, colours, and its own failures. */

import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { buildEvent } from '../../src/format/event/build.js';
import { bare } from '../docs/ledger-kit.js';
import { denial, execution, ndjson, note } from './drafts.js';
import { CLI, expectCode, expectError, expectOk, hasProgram, parse, Workshop, type Run } from './runner.js';

const shop = new Workshop();
const { version } = parse<{ version: string }>(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);
const SUBCOMMANDS: Readonly<Record<string, readonly string[]>> = {
  key: ['show', 'list', 'add', 'revoke'],
  prices: ['import', 'show', 'cost'],
  trust: ['init', 'show'],
  hook: ['run', 'install', 'uninstall'],
  gate: ['status', 'token'],
  fleet: ['verify'],
};
const help = expectOk(shop.run(['--help']));
const COMMANDS = [...help.matchAll(/^ {2}([a-z][a-z-]*)/gm)]
  .map(([, name]) => name)
  .filter((name) => name !== 'help');

describe('northroot', () => {
  it('says its version', () => {
    expect(shop.runProcess(['--version'])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
    expect(shop.run(['-V'])).toMatchObject({ status: 0, stdout: `${version}\n` });
  });

  it.each([
    [['slice', 'l.jsonl', '--gran', '2', '--to', 'x', '--cap', 'usd=1'], '--gran', '--grant'],
    [['prices', 'cost', 'p.json', 'm', '--inptu=1', '--output', '1'], '--inptu', '--input'],
  ])('names a misspelt option before the required one that it was to be: %j', (args, found, meant) => {
    const run = shop.run(args);
    expectError(run, 2, 'USAGE');
    for (const word of [`'${found}`, `Did you mean ${meant}?`]) expect(run.stderr).toContain(word);
    expect(shop.run([...args, '--help'])).toMatchObject({ status: 0, stderr: '' });
  });

  it('without arguments shows its help, and could not decide', () => {
    const run = shop.run([]);
    expect(run).toEqual({ status: 2, stdout: '', stderr: help });
    expect(help).toContain('Exit status: 0 ok, 1 invalid, 3 violation, 2 could not decide');
  });

  it('lists its commands', () => {
    expect(COMMANDS).toEqual(
      expect.arrayContaining([
        'init',
        'keygen',
        'key',
        'append',
        'grant',
        'adjust',
        'verify',
        'show',
        'log',
        'canonicalize',
        'digest',
        'event-id',
        'schema',
        'explain',
        'repair',
        'completion',
      ]),
    );
  });

  it.each([
    [['nonsense']],
    [['verfy', 'x']],
    [['--nonsense']],
    [['verify', '--nonsense', 'x']],
    [['verify']],
    [['key', 'hide']],
    [['completion', 'tcsh']],
  ])('answers wrong use with USAGE: %j', (args) => {
    const run = shop.run(args);
    expectError(run, 2, 'USAGE');
    expect(run.stderr).toContain('--help');
  });

  it('shows the help of a command in either way', () => {
    expect(shop.run(['help', 'verify'])).toEqual(shop.run(['verify', '--help']));
  });

  it('suggests what may have been meant', () => {
    expect(shop.run(['verfy', 'x']).stderr).toContain('verify');
    expect(shop.run(['verify', '--frmat', 'json']).stderr).toContain('--format');
  });
});

/** The vkey of a log. */
function makeVkey(): string {
  const text = expectOk(shop.run(['keygen', '--form', 'jwk']));
  shop.write('sample.jwk', text, 0o600);
  return expectOk(shop.run(['key', 'show', 'sample.jwk', '--form', 'vkey', '--name', 'log.example'])).trim();
}

const vkey = makeVkey();

/** A value that an option's parser takes, by the name that its help gives the value. */
const SAMPLES: Readonly<Record<string, string>> = {
  uri: 'https://example.com/auditor',
  address: '127.0.0.1:0',
  'principal=file': 'human:olga=olga.pem',
  use: 'read',
  basis: 'billed',
  bucket: 's3://some-bucket/some-prefix',
  amounts: 'usd=0.25,calls=1',
  check: 'TRUST',
  code: 'ABANDONED',
  digest: 'sha-256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  file: 'some.file',
  'file...': 'some.file',
  'unit=code...': 'usd=USD',
  'format=path': 'json=some.json',
  'i/n': '2/4',
  'part...': 'some.part',
  'from..to': '100..199',
  folder: 'some-folder',
  id: 'agent:a1',
  key: vkey,
  keyid: 'A'.repeat(43),
  list: 'resources,sampling',
  name: 'some-name',
  'name=path': 'some-aid=some.file',
  'name=value': 'LANG=C',
  system: 'clasper',
  n: '1',
  note: 'some.note',
  origin: 'https://app.example',
  path: '/w1',
  pattern: '*',
  prefix: 'agent:a1/',
  point: '1',
  report: 'report.json',
  resource: 'file=/etc/hosts',
  role: 'event',
  seconds: '0.5',
  span: '7d',
  size: '64KiB',
  text: 'rotation',
  time: '2026-03-01',
  tokens: '1',
  type: 'x.note',
  url: 'http://127.0.0.1:8787/w1',
  vkey,
  zone: 'Europe/Vienna',
};

/** The commands, those within `key`, `prices` and `trust` instead of these. */
const PATHS = COMMANDS.flatMap((name) => {
  const subs = SUBCOMMANDS[name];
  return subs === undefined ? [[name]] : subs.map((sub) => [name, sub]);
});

describe.each(PATHS)('the help of %s', (...words) => {
  const text = expectOk(shop.run([...words, '--help']));
  const usage = /^Usage: northroot (.*)$/m.exec(text)?.[1] ?? '';
  const [, options = ''] = /\nOptions:\n((?: .*\n)+)/.exec(text) ?? [];

  it('names every argument, and tells of it', () => {
    expect(usage.startsWith(words.join(' '))).toBe(true);
    const [, told = ''] = /\nArguments:\n((?: .*\n)+)/.exec(text) ?? [];
    for (const [, name] of usage.matchAll(/[<[]([a-z-]+)(?:\.\.\.)?[>\]]/g)) {
      if (name !== 'options') expect(told).toMatch(new RegExp(`^ {2}${name} {2,}\\S`, 'm'));
    }
    expect(text.split('\n\n')[1]?.trim()).not.toBe('');
  });

  it('calls global what every command takes', () => {
    const [, globals = ''] = /\nGlobal Options:\n((?: .*\n)+)/.exec(text) ?? [];
    expect(globals.match(/--[a-z-]+/g)).toEqual(['--version', '--quiet']);
  });

  it('lists only options that are taken', () => {
    const flags: string[][] = [];
    for (const entry of options.split(/\n(?= {2}-)/)) {
      const flat = entry.replace(/\s+/g, ' ');
      const [, flag, value] = /(--[a-z0-9-]+)(?: <([a-z.=/]+)>)?/.exec(flat) ?? [];
      const choice = /choices: "([^"]+)"/.exec(flat)?.[1];
      if (flag === undefined || flag === '--help') continue;
      const sample = value === undefined ? [] : [choice ?? SAMPLES[value]];
      expect(sample, `a sample of <${value}>`).not.toContain(undefined);
      flags.push([flag, ...sample]);
    }
    // One argument too many, or too few, stops the command after it has read its options.
    const tooMany = Array<string>(usage.includes('...') ? 0 : 3).fill('surplus');
    const take = (given: readonly string[][]): Run =>
      shop.run([...words, ...tooMany, ...given.flat(), '--quiet']);
    const all = take(flags);
    const isExclusive = all.stderr.includes('cannot be used with option');
    for (const run of isExclusive ? flags.map((flag) => take([flag])) : [all]) {
      expectError(run, 2, 'USAGE');
      expect(run.stderr).toMatch(/too many arguments|missing required argument/);
    }
  });
});

describe('completion', () => {
  const script = expectOk(shop.run(['completion', 'bash']));
  shop.write('completion.bash', script);

  function complete(...words: string[]): string[] {
    const quoted = words.map((word) => `'${word}'`).join(' ');
    const trick = `source completion.bash; COMP_WORDS=(northroot ${quoted}); COMP_CWORD=${words.length}; _northroot; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { status, stdout, stderr } = shop.shell(trick);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout.split('\n').filter((word) => word !== '');
  }

  it('for bash is a script that bash takes', () => {
    expect(shop.shell('bash -n completion.bash')).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  it.each<[string[], string[]]>([
    [['ver'], ['verify', 'verify-proof']],
    [['ke'], ['keygen', 'key']],
    [
      ['-q', 'ver'],
      ['verify', 'verify-proof'],
    ],
    [['--ver'], ['--version']],
    [['verify', '--fo'], ['--format']],
    [
      ['verify', '--format', ''],
      ['text', 'json', 'ndjson', 'sarif', 'junit', 'github', 'gitlab', 'markdown', 'brief'],
    ],
    [['verify', 'x', '--format', 'n'], ['ndjson']],
    [['verify', '--trust', ''], []],
    [
      ['key', ''],
      ['show', 'list', 'add', 'revoke', '--help'],
    ],
    [['key', 'show', '--form', 'j'], ['jwk']],
    [
      ['key', 'show', 'some.key', '--'],
      ['--form', '--name', '--help'],
    ],
    [
      ['key', 'add', '--v'],
      ['--valid-from', '--valid-until'],
    ],
    [['key', 'revoke', 'x', '--v'], []],
    [['-q', 'key', 're'], ['revoke']],
    [
      ['trust', 'init', '--'],
      ['--out', '--include-revoked', '--anchor-out', '--yes', '--help'],
    ],
    [
      ['trust', 'show', '--format', ''],
      ['text', 'json'],
    ],
    [['show', 'x', '--form'], ['--format']],
    [['checkpoint', 'x', '--witness-k'], ['--witness-key']],
    [['checkpoint', '--note', ''], []],
    [['explain', 'PREV_M'], ['PREV_MISMATCH']],
    [['schema', 'ex'], ['execution']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish', '--help'],
    ],
    [['verify', 'led'], []],
  ])('completes %j', (words, expected) => {
    expect(complete(...words)).toEqual(expected);
  });

  it('offers every command', () => {
    expect(complete('').filter((word) => !word.startsWith('-'))).toEqual(COMMANDS);
  });

  it.each(['zsh', 'fish'])('names every command for %s', (shell) => {
    const text = expectOk(shop.run(['completion', shell]));
    for (const name of COMMANDS) expect(text).toContain(name);
    shop.write(`completion.${shell}`, text);
    if (!hasProgram(shell)) return;
    expect(shop.shell(`${shell} -n completion.${shell}`)).toMatchObject({ status: 0 });
  });
});

expectOk(shop.run(['append', 'ledger.jsonl', '--create'], { input: ndjson([note(1), note(2)]) }));
shop.write('broken.jsonl', shop.read('ledger.jsonl').replace('"n":1', '"n":7'));

describe('a process of its own', () => {
  const denied = buildEvent(denial());
  const done = buildEvent(execution(`sha-256:${denied.event_id.b64}`, 'net.send'));
  shop.write('violated.jsonl', bare(denied, done));
  it.each<[status: number, args: string[], input?: string]>([
    [0, ['verify', 'ledger.jsonl']],
    [1, ['verify', 'broken.jsonl']],
    [2, ['verify', 'missing.jsonl']],
    [3, ['verify', 'violated.jsonl']],
    [2, ['verify', 'ledger.jsonl', '--no-such-option']],
    [0, ['log', 'ledger.jsonl', '--format', 'ndjson']],
    [0, ['digest', '-'], 'some bytes'],
    [0, ['show', 'ledger.jsonl', '1', '--format', 'event']],
    [1, ['append', 'ledger.jsonl'], '{"event_type":"genesis"}\n'],
    [3, ['budget', 'violated.jsonl']],
  ])('ends with %s, and prints what it does beside others: %j', (status, args, input = '') => {
    const run = shop.runProcess(args, { input });
    expect(run.status).toBe(status);
    expect(shop.run(args, { input })).toEqual(run);
  });
});

describe('on a terminal', () => {
  shop.write('northroot.sh', `exec '${process.execPath}' '${CLI}' "$@"\n`);
  const ESCAPE = '\u001b[';

  /** `northroot ARGS…` with a terminal for its standard output and error. */
  function onTerminal(args: string, env: Readonly<Record<string, string>> = {}): Run {
    return shop.shell(`script -qec 'sh northroot.sh ${args}' /dev/null`, { env });
  }

  it('shows nothing of it in a pipe', () => {
    for (const path of ['ledger.jsonl', 'broken.jsonl', 'missing.jsonl']) {
      const { stdout, stderr } = shop.run(['verify', path]);
      expect(stdout + stderr).not.toContain('\u001b');
    }
  });

  describe.skipIf(!hasProgram('script'))('with script(1)', () => {
    it('paints the verdict and errors', () => {
      expect(onTerminal('verify ledger.jsonl').stdout).toContain(`${ESCAPE}32mok`);
      const broken = onTerminal('verify broken.jsonl');
      expect(broken).toMatchObject({ status: 1 });
      expect(broken.stdout).toContain(`${ESCAPE}31minvalid`);
      expect(onTerminal('verify missing.jsonl').stdout).toContain(`${ESCAPE}31merror`);
    });

    it.each([{ NO_COLOR: '1' }, { TERM: 'dumb' }])('paints nothing with %j', (env) => {
      const { stdout } = onTerminal('verify broken.jsonl --quiet', env);
      expect(stdout).toContain('invalid');
      expect(stdout).not.toContain('\u001b');
    });

    it('draws how far it has come, and clears it away, unless it is to be quiet', async () => {
      expectOk(shop.shell('mkfifo late'));
      const bytes = shop.bytes('broken.jsonl');
      /** Gives the ledger byte by byte until it was enough, and then the rest. */
      const verifySlowly = async (flag: string, isEnough: (output: string, given: number) => boolean) => {
        const command = `sh northroot.sh verify late ${flag}`;
        const running = shop.startProgram(['script', '-qec', command, '/dev/null']);
        // A pipe with a name opens for writing when it is opened for reading.
        const late = await open(shop.path('late'), 'w');
        let given = 0;
        while (!isEnough(running.stdout, given)) {
          await late.write(bytes.subarray(given, (given += 1)));
          await sleep(5);
        }
        await late.write(bytes.subarray(given));
        await late.close();
        return { output: (await running.end()).stdout, given };
      };
      const { output: talking, given } = await verifySlowly('', (output) => / MB/.test(output));
      const { output: quiet } = await verifySlowly('--quiet', (_, count) => count === given);
      expect(talking).toMatch(/\d\.\d MB/);
      expect(talking.lastIndexOf(`\r${ESCAPE}K`)).toBeGreaterThan(talking.lastIndexOf(' MB'));
      expect(quiet).not.toContain(' MB');
      for (const text of [talking, quiet]) expect(text).toContain('EVENT_ID_MISMATCH');
    });

    it('ends an event that it shows with a newline', () => {
      expect(onTerminal('show ledger.jsonl 0 --format event').stdout.endsWith('}\r\n')).toBe(true);
    });
  });
});

describe('a failure of its own', () => {
  const breakage = (code: string): string =>
    `import crypto from 'node:crypto';\nimport { syncBuiltinESMExports } from 'node:module';\n${code}\nsyncBuiltinESMExports();\n`;
  shop.write('no-hash.mjs', breakage("crypto.hash = () => { throw new Error('no hash today'); };"));
  shop.write(
    'late.mjs',
    breakage(
      "const { hash } = crypto;\ncrypto.hash = (...args) => { setTimeout(() => { throw new Error('nobody waits for this'); }); return hash(...args); };",
    ),
  );
  const env = (module: string) => ({ NODE_OPTIONS: `--import=${shop.path(module)}` });

  it.each([
    ['verify', 'no-hash.mjs', ['verify', 'ledger.jsonl']],
    ['append', 'no-hash.mjs', ['append', 'ledger.jsonl']],
    ['a waiting command', 'late.mjs', ['verify', '-']],
  ])('says nothing about the ledger: %s', async (_what, module, args) => {
    const before = shop.read('ledger.jsonl');
    const running = shop.start(args, env(module));
    // Its input does not end.
    if (args.includes('-')) void running.feed(before);
    else await running.feed(ndjson([note(1), note(2)])).then(() => running.endInput());
    const run = await running.end();
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expectCode(run, 'INTERNAL_ERROR');
    expect(run.stderr).toContain('says nothing about the ledger');
    expect(run.stderr).toMatch(/^ +at /m);
    expect(shop.read('ledger.jsonl')).toBe(before);
  });
});
