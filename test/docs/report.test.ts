/** docs/guide/report.md shows what `northroot report` prints. */

import { expect, it } from 'vitest';
import { commandGuide } from '../../src/cli/remedies.js';
import { plainPaint, renderActivity, reportActivity, type ActivityGrouping } from '../../src/api/index.js';
import { readText } from './markdown.js';

it('the report in docs/guide/report.md is the real one', async () => {
  const [, ledger = '', by = '', output] =
    /^```console\n\$ northroot report (\S+) --by (\S+)\n(.*?)^```$/ms.exec(
      readText('docs/guide/report.md'),
    ) ?? [];
  const report = await reportActivity(ledger, { by: by as ActivityGrouping });
  expect(renderActivity(report, plainPaint, commandGuide)).toBe(output);
});
