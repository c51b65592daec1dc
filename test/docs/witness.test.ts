/** The commands of docs/guide/witness.md are run as they stand, in its order, with a port that is free. */

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { spawn, spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readText, root } from './markdown.js';

const ADDRESS = '127.0.0.1:8787';
const blocks = [...readText('docs/guide/witness.md').matchAll(/^```sh (\w+)\n(.*?)^```$/gms)].map(
  ([, kind = '', text = '']) => ({ kind, text }),
);
const folder = mkdtempSync(join(tmpdir(), 'northroot-witness-docs-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
mkdirSync(join(folder, 'bin'));
writeFileSync(
  join(folder, 'bin', 'northroot'),
  `#!/bin/sh\nexec node '${join(root, 'bin/northroot.js')}' "$@"\n`,
);
chmodSync(join(folder, 'bin', 'northroot'), 0o755);
const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH']}` };

it('docs/guide/witness.md', async () => {
  expect(blocks.map(({ kind }) => kind)).toEqual([
    ...['walk', 'serve', 'walk'],
    ...['walk', 'walk', 'walk', 'walk'],
  ]);
  let address = ADDRESS;
  let stop = (): Promise<number | null> => Promise.resolve(null);
  for (const { kind, text } of blocks) {
    if (kind === 'serve') {
      const command = `exec ${text.replace(ADDRESS, '127.0.0.1:0')}`;
      const child = spawn('bash', ['-c', command], { cwd: folder, env });
      const ended = new Promise<number | null>((resolve) => child.once('close', (status) => resolve(status)));
      stop = () => {
        child.kill('SIGTERM');
        return ended;
      };
      const url = await new Promise<string>((resolve, reject) => {
        child.stdout.once('data', (data: Buffer) => resolve(data.toString().trim()));
        void ended.then(() => reject(new Error('the witness has ended')));
      });
      address = new URL(url).host;
      continue;
    }
    const script = `set -e -o pipefail\n${text.replaceAll(ADDRESS, address)}`;
    // The witness answers from a process of its own: this one may wait.
    const { status, stderr } = spawnSync('bash', ['-c', script], { cwd: folder, env, encoding: 'utf8' });
    expect({ status, text, stderr }).toMatchObject({ status: 0 });
  }
  expect(await stop()).toBe(0);
});
