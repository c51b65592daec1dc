/** Outside text in the activity report: whatever it is, it stays text in every format. */

import { beforeAll, describe, expect, it } from 'vitest';
import { renderActivityCsv } from '../../src/out/activity/csv.js';
import { reportActivity } from '../../src/out/activity/report-activity.js';
import type { ActivityReport } from '../../src/format/schema/generated/types.js';
import { csvField } from '../../src/out/export/table/csv.js';
import { renderActivityHtml } from '../../src/out/text/activity-html.js';
import { renderActivity, renderActivityMarkdown } from '../../src/out/text/activity-document.js';
import { escapeHtml } from '../../src/out/text/html.js';
import { escapeMarkdown, markdownCode } from '../../src/out/text/markdown.js';
import { action, execution, grant } from '../docs/grant-kit.js';
import { genesis, keyOf, ledger, makeSigner } from '../docs/ledger-kit.js';
import { HOSTILE_STRINGS } from '../hostile-strings.js';

/** Controls, what reorders or hides text, and lone surrogates. */
const UNSAFE = /[^\n\r\P{C}]|[\p{Zl}\p{Zp}]/u;

/** Where the format lets anything stand: the name of a key, a policy, a check, a path. */
async function reportWith(text: string): Promise<ActivityReport> {
  const signer = makeSigner();
  const name = text.slice(0, 200).replace(/\p{Cs}/gu, '\ufffd');
  const own = grant({}, undefined, { policy_id: name === '' ? 'p' : name });
  const denied = action(own, 1, {
    decision: 'deny',
    decision_code: 'NO',
    checks: [{ check: name.slice(0, 64) || 'c', result: 'fail' }],
  });
  const events = [
    genesis([keyOf(signer, { name, roles: ['event', 'authority'] })]),
    own,
    denied,
    execution(own, 1),
  ];
  const broken = JSON.stringify({ event: { event_type: 'execution', principal_id: name, tool_name: name } });
  const bytes = ledger(...events.map((each) => ({ event: each, signers: [signer] })), broken);
  const report = await reportActivity(bytes, { by: 'principal' });
  return { ...report, ledger: { ...report.ledger, paths: [text] } };
}

describe('a report with outside text', () => {
  const reports: (readonly [text: string, report: ActivityReport])[] = [];

  beforeAll(async () => {
    for (const text of HOSTILE_STRINGS) reports.push([text, await reportWith(text)]);
  });

  it('is lines of printable text', () => {
    for (const [, report] of reports) {
      const text = renderActivity(report);
      expect(text).not.toMatch(UNSAFE);
      expect(text.split('\n').filter((line) => line.startsWith('::') || line.includes('##['))).toEqual([]);
    }
  });

  it('has in HTML the elements of any other report, and nothing that loads or runs', async () => {
    const tagsOf = (html: string): string[] => html.match(/<[^>]*>/g) ?? [];
    const allowed = new Set(tagsOf(renderActivityHtml(await reportWith('plain'))));
    for (const [, report] of reports) {
      const html = renderActivityHtml(report);
      expect(tagsOf(html).filter((tag) => !allowed.has(tag))).toEqual([]);
      expect(html).not.toMatch(UNSAFE);
      expect(html.replace(/<[^>]*>/g, '')).not.toMatch(/[<>]/);
    }
    expect([...allowed].join('')).not.toMatch(/<(?:script|img|link|iframe|a)\b|\b(?:src|href|on\w+)=/);
  });

  it('has in Markdown the same blocks, and outside text only in spans of code', async () => {
    const shapeOf = (markdown: string): string =>
      markdown
        .split('\n')
        .map((line) =>
          line.startsWith('|') ? `|${line.split('|').length}` : line.replace(/^(#*).*$/s, '$1'),
        )
        .join('\n');
    const shape = shapeOf(renderActivityMarkdown(await reportWith('plain')));
    for (const [text, report] of reports) {
      const markdown = renderActivityMarkdown(report);
      if (text.trim() !== '') expect(shapeOf(markdown)).toBe(shape);
      const outsideSpans = markdown.replace(/(`+)(?!`)[^\n]*?(?<!`)\1(?!`)/g, '');
      expect(outsideSpans).not.toMatch(/evil|script|forged|everyone|[`<]/);
      expect(markdown).not.toMatch(UNSAFE);
    }
  });

  it('has in CSV as many fields in each row, and no formula', () => {
    for (const [text, report] of reports) {
      const csv = renderActivityCsv({ ...report, groups: [{ key: text, totals: report.totals }] });
      const rows = csv.trimEnd().split('\r\n').map(parseRow);
      expect(new Set(rows.map(({ length }) => length)).size).toBe(1);
      expect(rows.flat().filter((field) => /^\s*[=+@]|^\s*-(?!\d+$)/.test(field))).toEqual([]);
    }
  });
});

describe('escaping', () => {
  it('lets numbers be numbers in CSV, and nothing else be a formula', () => {
    expect(['-1.5', '0', '12'].map(csvField)).toEqual(['-1.5', '0', '12']);
    expect(
      ['=1', '-1+1', ' =1', '\uff1d1', '@a', '+1'].map(csvField).every((field) => field.startsWith("'")),
    ).toBe(true);
    expect(['a;=1', 'a; "@b', 'a;b;-1'].map(csvField)).toEqual([`"a;'=1"`, `"a;' ""@b"`, `"a;b;'-1"`]);
    expect(csvField('a,"b"')).toBe('"a,""b"""');
  });

  it('leaves no markup in HTML', () => {
    expect(escapeHtml(`<a href="x" title='y'>&`)).toBe('&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;');
  });

  it('fences spans of code with more backticks than are in them, and lets them end no cell', () => {
    expect(['a', '`', 'a``b', ' x', 'a|b', ''].map((text) => markdownCode(text))).toEqual([
      '`a`',
      '`` ` ``',
      '```a``b```',
      '`  x `',
      '`a\\u{7c}b`',
      '',
    ]);
    expect(escapeMarkdown('*a* [b](c) | <d> `e` # 1. f')).toBe(
      '\\*a\\* \\[b\\]\\(c\\) \\| &lt;d&gt; \\`e\\` \\# 1. f',
    );
  });
});

/** A row of RFC 4180. */
function parseRow(row: string): string[] {
  return [...row.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(
    ([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare ?? '',
  );
}
