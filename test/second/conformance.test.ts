/** The second verifier as an implementation of the class verifier, asked by the runner of `northroot-conformance`. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADAPTER, PYTHON } from './kit.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** What README.md says it leaves out. */
const LEFT_OUT = ['bundle', 'proof', 'receipt'];

const folder = mkdtempSync(join(tmpdir(), 'northroot-second-'));
afterAll(() => rmSync(folder, { recursive: true }));

function run(...args: string[]): { readonly stdout: string; readonly stderr: string } {
  return spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 26 });
}

describe.skipIf(PYTHON === undefined)('the second verifier', () => {
  beforeAll(() => {
    const { stderr } = run(`${ROOT}conformance/generate.js`, join(folder, 'package'));
    expect(stderr).toBe('');
  }, 600_000);

  test('passes all cases but of the operations that it leaves out', { timeout: 600_000 }, () => {
    const asked = ['run', '--timeout', '300', '--', PYTHON ?? '', '-B', ADAPTER];
    const { stdout, stderr } = run('package/bin/northroot-conformance.js', ...asked);
    expect(stdout.match(/^failed .*\n.*$/gm) ?? [], stderr).toEqual([]);
    const unsupported = [...stdout.matchAll(/^unsupported +\d+ cases: (\w+):/gm)].map(([, name]) => name);
    expect(unsupported.sort()).toEqual(LEFT_OUT);
    expect(stdout).toMatch(/^verifier .*incomplete.* 0 failed, \d+ unsupported, 0 not run/m);
  });
});
