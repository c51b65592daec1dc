/** `northroot prices`: price files from lists of others, and what calls cost by them. */

import { beforeAll, describe, expect, it } from 'vitest';
import { GENAI, LITELLM } from '../gate/samples.js';
import { expectOk, Workshop } from './runner.js';

const shop = new Workshop();

interface Made {
  readonly digest: string;
  readonly models: number;
  readonly left_out: readonly object[];
}

beforeAll(() => {
  shop.write('litellm.json', LITELLM);
  shop.write('genai.json', GENAI);
  expectOk(shop.run(['prices', 'import', 'litellm.json', '--as-of', '2026-03-01', '--out', 'prices.json']));
});

describe('prices import', () => {
  it('writes a price file whose digest is that of its bytes, and says what it left out', () => {
    const args = ['prices', 'import', 'litellm.json', '--as-of', '2026-03-01T01:00:00+01:00'];
    const { status, stdout, stderr } = shop.run([...args, '--out', 'again.json', '--format', 'json']);
    expect([status, stderr]).toEqual([0, '']);
    expect(shop.read('again.json')).toBe(shop.read('prices.json'));
    const made = JSON.parse(stdout) as Made;
    expect(made).toMatchObject({
      file: 'again.json',
      as_of: '2026-03-01T00:00:00Z',
      source: 'litellm',
      models: 4,
    });
    expect(made.left_out).toEqual([
      { what: 'price', reason: 'input_cost_per_token_batches', count: 1, example: 'm-1' },
    ]);
    expect(shop.run(['digest', 'again.json']).stdout.trim()).toBe(made.digest);
    expect(shop.mode('again.json')).toBe('644');
  });

  it('writes to standard output, from standard input, only the models that are asked for', () => {
    const args = ['prices', 'import', '-', '--from', 'genai-prices', '--model', 'm-2', '--model', 'm1'];
    const { status, stdout, stderr } = shop.run(args, { input: GENAI });
    expect(status).toBe(0);
    expect((JSON.parse(stdout) as { models: object[] }).models).toHaveLength(2);
    expect(stderr.split('\n')).toHaveLength(3);
    expect(shop.run([...args, '--quiet'], { input: GENAI }).stderr).toBe('');
  });

  it('replaces no file', () => {
    const before = shop.read('prices.json');
    const { status, stderr } = shop.run(['prices', 'import', 'genai.json', '--out', 'prices.json']);
    expect([status, stderr]).toEqual([2, expect.stringContaining('error: FILE_EXISTS:')]);
    expect(shop.read('prices.json')).toBe(before);
  });

  it.each([
    ['FILE_NOT_FOUND', ['none.json']],
    ['PRICES_INVALID', ['prices.json']],
    ['PRICES_INVALID', ['litellm.json', '--from', 'genai-prices']],
    ['MODEL_UNKNOWN', ['litellm.json', '--model', 'none*']],
    ['USAGE', ['litellm.json', '--from', 'other']],
    ['USAGE', ['litellm.json', '--as-of', '2026-02-30']],
  ])('refuses as %s: %j', (code, args) => {
    const { status, stdout, stderr } = shop.run(['prices', 'import', ...args, '--out', 'never.json']);
    expect([status, stdout, stderr.startsWith(`error: ${code}: `)]).toEqual([2, '', true]);
    expect(shop.has('never.json')).toBe(false);
  });
});

it('prices import says nothing as JSON where standard output has the file', () => {
  const { status, stdout, stderr } = shop.run(['prices', 'import', 'litellm.json', '--format', 'json']);
  expect([status, stdout, stderr.startsWith('error: USAGE: ')]).toEqual([2, '', true]);
});

describe('prices show', () => {
  it('shows every price of a model, as decimals', () => {
    const { stdout } = shop.run(['prices', 'show', 'prices.json', 'm-1']);
    expect(stdout).toMatch(/^m-1 of acme\n/);
    expect(stdout).toContain(
      '  tokens.input                    0.000003, 0.000006 above 200000 input tokens\n',
    );
  });

  it('gives what the file has as JSON, and takes the provider', () => {
    const args = ['prices', 'show', 'prices.json', 'm-1', '--provider', 'cloud', '--format', 'json'];
    expect(JSON.parse(expectOk(shop.run(args)))).toMatchObject({ model: 'cloud/m-1', aliases: ['m-1'] });
  });

  it('of all times', () => {
    expectOk(shop.run(['prices', 'import', 'genai.json', '--out', 'dated.json']));
    const { stdout } = shop.run(['prices', 'show', 'dated.json', 'm-2']);
    expect(stdout).toContain('usd for one, from 2026-09-01T00:00:00Z:\n  tokens.input   0.000000123456789\n');
    const costAt = (at: string): string =>
      shop.run(['prices', 'cost', 'dated.json', 'm-2', '--input', '1', '--output', '0', '--at', at]).stdout;
    expect(costAt('2026-08-31')).toBe('0.000002 usd\n');
    expect(costAt('2026-09-01')).toBe('0.000000123456789 usd\n');
  });
});

describe('prices cost', () => {
  const cost = (...args: readonly string[]) => shop.run(['prices', 'cost', 'prices.json', ...args]);

  it('is exact', () => {
    const usage = ['--input', '1000', '--output', '100', '--cache-read', '200', '--cache-write', '100'];
    expect(cost('m-1', ...usage)).toEqual({ status: 0, stdout: '0.004035 usd\n', stderr: '' });
    const json = JSON.parse(cost('m-1', ...usage, '--format', 'json').stdout) as object;
    expect(json).toMatchObject({ model: 'm-1', provider: 'acme', usd: '0.004035' });
    expect(
      cost('m-1', '--input', '8', '--output', '2', '--cache-write-1h', '8', '--reasoning', '1').stdout,
    ).toBe('0.000078 usd\n');
    const input = shop.read('prices.json');
    expect(shop.run(['prices', 'cost', '-', 'm-1', '--input', '1', '--output', '0'], { input }).stdout).toBe(
      '0.000003 usd\n',
    );
  });

  it.each([
    ['MODEL_UNKNOWN', ['m-9', '--input', '1', '--output', '1']],
    ['MODEL_UNKNOWN', ['m-1', '--provider', 'none', '--input', '1', '--output', '1']],
    ['PRICE_UNKNOWN', ['pics', '--input', '1', '--output', '1']],
    ['USAGE', ['m-1', '--input', '1']],
    ['USAGE', ['m-1', '--input', '-1', '--output', '1']],
    ['USAGE', ['m-1', '--input', '1e3', '--output', '1']],
    ['USAGE', ['m-1', '--input', '1', '--output', '1', '--cache-read', '2']],
    ['USAGE', ['', '--input', '1', '--output', '1']],
  ])('refuses as %s: %j', (code, args) => {
    const { status, stdout, stderr } = cost(...args);
    expect([status, stdout, stderr.startsWith(`error: ${code}: `)]).toEqual([2, '', true]);
  });

  it('asks for the provider where it matters', () => {
    const prices = JSON.parse(shop.read('prices.json')) as { models: { provider: string; model: string }[] };
    for (const each of prices.models) if (each.provider === 'cloud') each.model = 'm-1';
    for (const each of prices.models) delete (each as { aliases?: unknown }).aliases;
    shop.write('two.json', JSON.stringify(prices));
    const asked = shop.run(['prices', 'cost', 'two.json', 'm-1', '--input', '1', '--output', '1']);
    expect([asked.status, asked.stderr]).toEqual([
      2,
      expect.stringMatching(/^error: MODEL_AMBIGUOUS: .*\nhint: .*--provider/),
    ]);
  });
});
