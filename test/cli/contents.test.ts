/** `authorize --attach`, `approvals LEDGER REQUEST`, `approve` on a terminal, and the contents of a ledger in its bundles. */

import { createHash } from 'node:crypto';
import { chmodSync, readdirSync, symlinkSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { CLI, expectError, expectOk, hasProgram, parse, Workshop } from './runner.js';

const shop = new Workshop();
const L = 'l.jsonl';
const FOLDER = `${L}.contents`;
const PARAMS = '{ "path": "/srv",\n  "env": "prod" }';
const CONTENT = '{"env":"prod","path":"/srv"}';
const NAME = nameOf(CONTENT);

function nameOf(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

interface Decision {
  readonly decision: string;
  readonly event_id: string;
  readonly seq: number;
}

const ASKED = ['--principal', 'agent:a1', '--tool', 'deploy', '--reserve', 'usd=500', '--key', 'agent.pem'];

function authorize(...args: string[]): Decision {
  const run = shop.run(['authorize', L, ...ASKED, ...args]);
  expect(run.status).toBe(3);
  return parse<Decision>(run.stdout);
}

interface Shown {
  readonly status: string;
  readonly tool_params: { readonly status: string; readonly file: string | null; readonly value?: unknown };
  readonly rules: readonly { readonly approvers: readonly string[]; readonly count: number }[];
  readonly grants: readonly { readonly decimals: Record<string, { readonly left: string }> }[];
  readonly answer: { readonly decision_code: string };
}

function look(id: string): Shown {
  return parse<Shown>(expectOk(shop.run(['approvals', L, id, '--format', 'json'])));
}

beforeAll(() => {
  shop.write('p.json', PARAMS);
  expectOk(shop.run(['init', L, '--origin', 'example.com/contents']));
  for (const name of ['agent', 'olga']) {
    expectOk(shop.run(['keygen', '--out', `${name}.pem`]));
    const principal = name === 'agent' ? 'agent:a1' : `human:${name}`;
    expectOk(shop.run(['key', 'add', L, `${name}.pem`, '--role', 'event', '--for', principal]));
  }
  const rule = ['--approve-tool', 'deploy', '--approve-above', 'usd=100', '--approver', 'human:*'];
  expectOk(shop.run(['grant', L, '--to', 'agent:a1', '--tool', '*', '--cap', 'usd=1000', ...rule]));
});

describe('authorize --attach', () => {
  it('keeps the canonical parameters for their owner alone, and nothing without it', () => {
    authorize('--params', 'p.json');
    expect(shop.has(FOLDER)).toBe(false);
    authorize('--params', 'p.json', '--attach');
    expect(shop.files(FOLDER)).toEqual([FOLDER]);
    expect(readdirSync(shop.path(FOLDER))).toEqual([NAME]);
    expect(shop.read(`${FOLDER}/${NAME}`)).toBe(CONTENT);
    expect([shop.mode(FOLDER), shop.mode(`${FOLDER}/${NAME}`)]).toEqual(['700', '600']);
  });

  it('keeps the words of a command', () => {
    authorize('--attach', '--', 'echo', 'a b');
    expect(shop.has(`${FOLDER}/${nameOf('["echo","a b"]')}`)).toBe(true);
  });

  it('refuses a digest, of which there is no content, and makes nothing without a ledger', () => {
    const before = shop.records(L).length;
    const digest = `sha-256:${'A'.repeat(43)}`;
    expectError(shop.run(['authorize', L, ...ASKED, '--params-digest', digest, '--attach']), 2, 'USAGE');
    const nowhere = ['authorize', 'none.jsonl', ...ASKED, '--params', 'p.json', '--attach'];
    expectError(shop.run(nowhere), 2, 'FILE_NOT_FOUND');
    shop.write('other.txt', 'no ledger\n');
    const other = ['authorize', 'other.txt', ...ASKED, '--params', 'p.json', '--attach'];
    expect(shop.run(other).status).not.toBe(0);
    expect([...shop.files('none'), ...shop.files('other')]).toEqual(['other.txt']);
    expect(shop.records(L).length).toBe(before);
  });

  it('records nothing where the parameters cannot be kept', () => {
    const before = shop.records(L).length;
    shop.write('big.json', JSON.stringify('x'.repeat(2 ** 20)));
    const attach = (file: string): ReturnType<Workshop['run']> =>
      shop.run(['authorize', L, ...ASKED, '--params', file, '--attach']);
    expectError(attach('big.json'), 2, 'CONTENT_TOO_LARGE');
    shop.write('q.json', '{"n":1}');
    shop.run(['init', 'm.jsonl']);
    symlinkSync(shop.path(FOLDER), shop.path('m.jsonl.contents'));
    const linked = ['authorize', 'm.jsonl', ...ASKED, '--params', 'q.json', '--attach'];
    expectError(shop.run(linked), 2, 'CONTENTS_UNUSABLE');
    if (process.getuid?.() !== 0) {
      chmodSync(shop.path(FOLDER), 0o500);
      expectError(attach('q.json'), 2, 'ACCESS_DENIED');
      chmodSync(shop.path(FOLDER), 0o700);
    }
    expect(shop.has(`${FOLDER}/${nameOf('{"n":1}')}`)).toBe(false);
    expect([shop.records(L).length, shop.records('m.jsonl').length]).toEqual([before, 1]);
  });

  it('can be given by two processes at once', async () => {
    shop.write('both.json', '{"both":1}');
    const before = shop.records(L).length;
    const args = ['authorize', L, ...ASKED, '--params', 'both.json', '--attach'];
    const runs = await Promise.all([shop.start(args).end(), shop.start(args).end()]);
    expect(runs.map(({ status }) => status)).toEqual([3, 3]);
    expect(shop.records(L).length).toBe(before + 2);
    expect(shop.read(`${FOLDER}/${nameOf('{"both":1}')}`)).toBe('{"both":1}');
    expect(readdirSync(shop.path(FOLDER)).filter((name) => !/^[0-9a-f]{64}$/.test(name))).toEqual([]);
  });
});

describe('approvals LEDGER REQUEST', () => {
  it('shows one request whole, as text and as JSON', () => {
    const { event_id: id, seq } = authorize('--params', 'p.json', '--attach');
    expect(look(id)).toMatchObject({
      status: 'waiting',
      tool_params: { status: 'attached', value: { env: 'prod', path: '/srv' }, file: `${FOLDER}/${NAME}` },
      rules: [{ approvers: ['human:*'], count: 1 }],
      grants: [{ decimals: { usd: { left: '1000' } } }],
      answer: { decision_code: 'APPROVAL_REQUIRED' },
    });
    const text = expectOk(shop.run(['approvals', L, String(seq)]));
    for (const part of [
      id,
      'agent:a1',
      '    |   "env": "prod",\n',
      `northroot approve ${L} ${id}`,
      '500 usd',
    ])
      expect(text).toContain(part);
  });

  it('says what is not attached, and what is attached under a false name', () => {
    const { event_id: id } = authorize('--params', 'p.json', '--attach');
    shop.write(`${FOLDER}/${NAME}`, '{"env":"test"}');
    expect(look(id).tool_params).toEqual({ status: 'mismatch', file: `${FOLDER}/${NAME}` });
    expect(shop.run(['approvals', L, id]).stdout).not.toContain('"test"');
    shop.remove(`${FOLDER}/${NAME}`);
    expect(look(id).tool_params).toEqual({ status: 'missing', file: `${FOLDER}/${NAME}` });
    // No verdict rests on it.
    expectOk(shop.run(['verify', L]));
    authorize('--params', 'p.json', '--attach');
    expect(look(id).tool_params.status).toBe('attached');
  });

  it('refuses what is no request, and options of the list', () => {
    expectError(shop.run(['approvals', L, '0']), 1, 'AUTH_NOT_AN_AUTHORIZATION');
    expectError(shop.run(['approvals', L, '999']), 2, 'RECORD_NOT_FOUND');
    expectError(shop.run(['approvals', L, '4', '--all']), 2, 'USAGE');
    expectError(shop.run(['approvals', L, '4', '--follow']), 2, 'USAGE');
    expectError(shop.run(['approvals', '-', '4'], { input: shop.read(L) }), 2, 'USAGE');
  });

  it('says that the evidence is broken', () => {
    const { event_id: id } = authorize('--params', 'p.json', '--attach');
    shop.write('broken.jsonl', shop.read(L).replace('"usd"', '"eur"'));
    const run = shop.run(['approvals', 'broken.jsonl', id]);
    expect(run.status).toBe(1);
    expect(run.stderr).toContain('the evidence is broken');
  });
});

describe('approve', () => {
  it.runIf(hasProgram('script')).each<[string, boolean]>([
    ['y', true],
    ['n', false],
  ])('on a terminal shows the request, and takes %j for an answer: %s', async (answer, isYes) => {
    const { event_id: id } = authorize('--attach', '--', 'echo', `asked-${answer}`);
    const before = shop.records(L).length;
    const command = `'${process.execPath}' '${CLI}' approve ${L} ${id} --key olga.pem`;
    shop.write('asked.sh', `exec ${command} "$@"\n`);
    const running = shop.startProgram(['script', '-qec', 'sh asked.sh', '/dev/null']);
    await running.until(({ stdout }) => stdout.includes('[y/N]'));
    await running.feed(`${answer}\n`);
    const run = await running.end();
    expect(run.stdout).toContain(`"asked-${answer}"`);
    expect(run.stdout).toContain('500 usd');
    expect([run.status, shop.records(L).length - before]).toEqual(isYes ? [0, 1] : [2, 0]);
    if (!isYes) expect(run.stdout).toContain('NOT_CONFIRMED');
  });

  it('does not ask with --yes, nor where there is no terminal', () => {
    for (const args of [[], ['--yes']]) {
      const { event_id: id } = authorize('--attach', '--', 'echo', `unasked${args.join('')}`);
      const run = shop.run(['approve', L, id, '--key', 'olga.pem', ...args]);
      expectOk(run);
      expect(run.stderr).not.toContain('unasked');
    }
  });
});

describe('contents of a bundle', () => {
  interface Result {
    readonly verdict: string;
    readonly contents: readonly { readonly digest: string }[];
  }
  const contentsOf = (file: string): readonly unknown[] => {
    const { verdict, contents } = parse<Result>(expectOk(shop.run(['verify', file, '--format', 'json'])));
    expect(verdict).toBe('ok');
    return contents;
  };

  beforeAll(() => {
    authorize('--params', 'p.json', '--attach');
    expectOk(shop.run(['checkpoint', L]));
  });

  it('are those of the folder that its records name, unless --no-contents', () => {
    shop.write(`${FOLDER}/README`, 'other');
    const named = readdirSync(shop.path(FOLDER)).filter((name) => /^[0-9a-f]{64}$/.test(name)).length;
    shop.write(`${FOLDER}/${nameOf('unnamed')}`, 'unnamed');
    const run = shop.run(['export', L, '--bundle', 'all.nrb']);
    expectOk(run);
    expect(run.stderr).toContain(`${named} contents attached, readable by everyone who has the bundle`);
    expect(contentsOf('all.nrb')).toHaveLength(named);
    expectOk(shop.run(['export', L, '--bundle', 'bare.nrb', '--no-contents']));
    expect(contentsOf('bare.nrb')).toEqual([]);
    const last = shop.records(L).length - 2;
    expectOk(shop.run(['export', L, '--bundle', 'one.nrb', '--event', String(last)]));
    expect(contentsOf('one.nrb')).toHaveLength(1);
    expectError(shop.run(['export', L, '--csv', 'out', '--no-contents']), 2, 'USAGE');
  });

  it('are attached afterwards from the folder', () => {
    const run = shop.run(['disclose', 'bare.nrb', '--content', FOLDER, '--out', 'later.nrb']);
    expectOk(run);
    expect(shop.bytes('later.nrb').equals(shop.bytes('all.nrb'))).toBe(true);
    expectOk(shop.run(['disclose', 'bare.nrb', '--content', 'p.json', '--out', 'by-file.nrb']));
    expect(contentsOf('by-file.nrb')).toHaveLength(1);
  });

  it('leave out what is not what its name says', () => {
    shop.write(`${FOLDER}/${NAME}`, 'swapped');
    const run = shop.run(['export', L, '--bundle', 'swapped.nrb']);
    expectOk(run);
    expect(run.stderr).toContain('1 content left out: not what the name says');
    const disclosed = shop.run(['disclose', 'bare.nrb', '--content', FOLDER, '--out', 'swapped2.nrb']);
    expectOk(disclosed);
    expect(disclosed.stderr).toContain('1 in');
    expect(shop.bytes('swapped.nrb').equals(shop.bytes('swapped2.nrb'))).toBe(true);
  });
});
