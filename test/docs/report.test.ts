/** docs/report.md shows what `northroot report` prints. */

import { expect, it } from 'vitest';
import { renderActivity, reportActivity, type ActivityGrouping } from '../../src/index.js';
import { readText } from './markdown.js';

it('the report in docs/report.md is the real one', async () => {
  const [, ledger = '', by = '', output] =
    /^```console\n\$ northroot report (\S+) --by (\S+)\n(.*?)^```$/ms.exec(readText('docs/report.md')) ?? [];
  expect(renderActivity(await reportActivity(ledger, { by: by as ActivityGrouping }))).toBe(output);
});
