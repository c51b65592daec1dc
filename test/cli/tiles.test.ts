/** `northroot tiles`. */

import { describe, expect, it } from 'vitest';
import { openTileTree } from '../../src/log/tile/tile-tree.js';
import { Workshop, expectError, expectOk, parse } from './runner.js';

const shop = new Workshop();
const append = (count: number, from = 0): void => {
  const events = Array.from({ length: count }, (_, n) => `{"event_type":"x.test","n":${from + n}}\n`);
  expectOk(shop.run(['append', 'l.jsonl', '--principal', 'agent:a1'], { input: events.join('') }));
};
const seal = (): void => void expectOk(shop.run(['checkpoint', 'l.jsonl']));

interface Written {
  readonly root: string;
}

/** The entries of a tree as a ledger, when nothing is wrong with it. */
async function entriesOf(name: string): Promise<string> {
  const tree = await openTileTree(shop.path(name));
  let text = '';
  for await (const { chunks } of tree.source.segments) {
    for await (const chunk of chunks) text += Buffer.from(chunk).toString();
  }
  expect((await tree.finish()).faults).toEqual([]);
  return text;
}

const firstLines = (count: number): string =>
  shop
    .lines('l.jsonl')
    .slice(0, count)
    .map((line) => `${line}\n`)
    .join('');

expectOk(shop.run(['init', 'l.jsonl', '--origin', 'example.com/tests/cli']));
append(2);

describe('tiles', () => {
  it('says first that no bucket is where --to says, and then what it lacks', () => {
    const wrong = shop.run(['tiles', 'l.jsonl', '--to', 'http://example.com/logs']);
    expectError(wrong, 2, 'USAGE');
    expect(wrong.stderr).toContain('s3://');
    expect(wrong.stderr).not.toContain('AWS_');
    const lacking = shop.run(['tiles', 'l.jsonl', '--to', 's3://my-logs/agents']);
    expectError(lacking, 2, 'USAGE');
    expect(lacking.stderr).toContain('AWS_ACCESS_KEY_ID');
  });

  it('needs a checkpoint', () => {
    const run = shop.run(['tiles', 'l.jsonl', '--out', 'none']);
    expectError(run, 2, 'CHECKPOINT_MISSING');
    expect(run.stderr).toContain('hint: northroot checkpoint l.jsonl ');
    expect(shop.has('none')).toBe(false);
  });

  it('publishes the last checkpoint, and says what it wrote', async () => {
    seal();
    const { stdout, stderr } = shop.run(['tiles', 'l.jsonl', '--out', 'tree']);
    const { root } = parse<Written>(
      expectOk(shop.run(['tiles', 'l.jsonl', '--out', 'tree', '--format', 'json'])),
    );
    expect(stderr).toBe('');
    expect(stdout).toBe(
      [
        'tree: the tree of example.com/tests/cli',
        'size     3',
        `root     ${root}`,
        'tiles    1 written, 0 there already',
        'bundles  1 written, 0 there already',
        '',
      ].join('\n'),
    );
    expect(shop.read('tree/checkpoint')).toBe(shop.read('l.jsonl.checkpoint'));
    expect(await entriesOf('tree')).toBe(firstLines(3));
  });

  it('brings the tree up to date', async () => {
    append(300, 2);
    seal();
    const { root, ...result } = parse<Written>(
      expectOk(shop.run(['tiles', 'l.jsonl', '--out', 'tree', '--format', 'json'])),
    );
    expect(result).toEqual({
      out: 'tree',
      origin: 'example.com/tests/cli',
      tree_size: 304,
      previous_tree_size: 3,
      tiles: { written: 3, kept: 0 },
      bundles: { written: 2, kept: 0 },
      removed: 2,
    });
    const base64 = Buffer.from(root.slice('sha-256:'.length), 'base64url').toString('base64');
    expect(shop.lines('tree/checkpoint').slice(0, 3)).toEqual(['example.com/tests/cli', '304', base64]);
    expect(await entriesOf('tree')).toBe(firstLines(304));
  });

  it('publishes a note that it is given', async () => {
    const note = (shop.records('l.jsonl')[3].event as unknown as { note: string }).note;
    shop.write('old.note', note);
    expectOk(shop.run(['tiles', 'l.jsonl', '--out', 'old', '--checkpoint', 'old.note']));
    expect(await entriesOf('old')).toBe(firstLines(3));
    expectError(shop.run(['tiles', 'l.jsonl', '--out', 'tree', '--checkpoint', 'old.note']), 1, 'TRUNCATED');
    shop.write('bad.note', note.slice(1));
    expectError(
      shop.run(['tiles', 'l.jsonl', '--out', 'bad', '--checkpoint', 'bad.note']),
      1,
      'ORIGIN_MISMATCH',
    );
    shop.write('bad.note', 'x');
    expectError(
      shop.run(['tiles', 'l.jsonl', '--out', 'bad', '--checkpoint', 'bad.note']),
      2,
      'NOTE_MALFORMED',
    );
    expect(shop.has('bad')).toBe(false);
  });

  it('writes nothing where the history is another', () => {
    expectOk(shop.run(['init', 'other.jsonl', '--origin', 'example.com/tests/cli']));
    expectOk(shop.run(['checkpoint', 'other.jsonl']));
    const before = shop.read('tree/checkpoint');
    expectError(shop.run(['tiles', 'other.jsonl', '--out', 'tree']), 1, 'TRUNCATED');
    const cut = shop.lines('l.jsonl').slice(0, 304);
    cut[1] = cut[1].replace('"n":0', '"n":7');
    shop.write('cut.jsonl', cut.map((line) => `${line}\n`).join(''));
    shop.write('last.note', before);
    const run = shop.run(['tiles', 'cut.jsonl', '--out', 'tree', '--checkpoint', 'last.note']);
    expectError(run, 1, 'FORKED');
    expect(shop.read('tree/checkpoint')).toBe(before);
  });

  it('refuses what it cannot use', () => {
    expectError(shop.run(['tiles', 'l.jsonl']), 2, 'USAGE');
    expectError(shop.run(['tiles', '-', '--out', 'x'], { input: 'x' }), 2, 'USAGE');
    expectError(shop.run(['tiles', 'nothing.jsonl', '--out', 'x']), 2, 'FILE_NOT_FOUND');
    expectError(shop.run(['tiles', 'l.jsonl', '--out', 'l.jsonl']), 2, 'FILE_EXISTS');
    expectError(shop.run(['tiles', 'l.jsonl', '--out', 'x', '--checkpoint', 'nothing']), 2, 'FILE_NOT_FOUND');
    expect(shop.has('x')).toBe(false);
  });
});
