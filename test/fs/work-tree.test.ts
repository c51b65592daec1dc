/** Whether a file would come under version control. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { findTrackingWorkTree } from '../../src/log/fs/work-tree.js';

const folder = mkdtempSync(join(tmpdir(), 'work-tree-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
mkdirSync(join(folder, '.git'));

it.each([
  ['nothing', '', folder],
  ['its name, with blanks after it', 'a.key  \r\n', undefined],
  ['its name, and then not', '*.key\n!a.key \n', folder],
])('with %s in the list of what is ignored', async (_, list, found) => {
  writeFileSync(join(folder, '.gitignore'), list);
  expect(await findTrackingWorkTree(join(folder, 'a.key'))).toBe(found);
});
