/**
 * docs/guide/report.md shows the first lines of what `northroot report` prints: `UPDATE=1 npx vitest run
 * test/docs/report.test.ts` writes them.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { commandGuide } from '../../src/cli/remedies.js';
import { renderActivity, reportActivity, type ActivityGrouping } from '../../src/api/index.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { readText, root } from './markdown.js';

const PATH = 'docs/guide/report.md';
const BLOCK = /^```console\n\$ northroot report (\S+) --by (\S+) \| head -n (\d+)\n(.*?)^```$/ms;

it('the report in docs/guide/report.md is the real one', async () => {
  const text = readText(PATH);
  const [block = '', ledger = '', by = '', count = '', shown = ''] = BLOCK.exec(text) ?? [];
  const report = await reportActivity(ledger, { by: by as ActivityGrouping });
  const lines = renderActivity(report, plainPaint, commandGuide).split('\n');
  const output = `${lines.slice(0, Number(count)).join('\n')}\n`;
  const updated = text.replace(block, () => block.replace(shown, () => output));
  if (process.env['UPDATE'] === '1') writeFileSync(join(root, PATH), updated);
  else expect(shown).toBe(output);
});
