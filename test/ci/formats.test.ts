/** The reports for CI hosts: what they say, their bounds, and hostile texts in each of them. */

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CODE_PAGES, renderReport, type FindingJson, type Report } from '../../src/api/index.js';
import { isFindingCode } from '../../src/format/finding/catalog.js';
import { MAX_BRIEF_COLUMNS, renderBrief } from '../../src/out/ci/brief.js';
import { MAX_STEP_ANNOTATIONS } from '../../src/out/ci/github.js';
import { MAX_MARKDOWN_LENGTH } from '../../src/out/ci/markdown.js';
import {
  decideExitStatus,
  renderGithub,
  renderGitlab,
  renderJunit,
  renderMarkdown,
  requireChecks,
} from '../../src/api/export.js';
import { messageOf } from '../../src/out/ci/ci-words.js';
import { groupOf } from '../../src/out/ci/check-groups.js';
import { hasProgram } from '../cli/runner.js';
import { HOSTILE_STRINGS } from '../hostile-strings.js';
import { cutReport, reportOf, reportOn, reportWith, UNSAFE } from './reports.js';

const XSD = new URL('../../../shared/specs/junit/JUnit.xsd', import.meta.url).pathname;
const RENDERERS = {
  junit: renderJunit,
  github: renderGithub,
  gitlab: renderGitlab,
  markdown: renderMarkdown,
  brief: renderBrief,
} as const;

const invalid = await reportOn('broken/auth-not-found-folded.jsonl');
const over = await reportOn('broken/meter-cap-exceeded.jsonl');
const good = await reportOn('ledgers/agent-run.jsonl');

describe.each(Object.entries(RENDERERS))('%s', (name, render) => {
  it('gives the same bytes for the same report', () => {
    expect(render(invalid)).toBe(render(structuredClone(invalid)));
  });

  it('says the verdict, and what was not checked', () => {
    const text = render(good);
    expect(good.not_checked.length).toBeGreaterThan(0);
    for (const { code } of good.not_checked) expect(text).toContain(code);
    if (name !== 'gitlab') expect(text).toContain('ok');
    expect(render(invalid)).toContain('AUTH_NOT_FOUND');
  });

  it('lets no outside text move a cursor, or turn or hide what follows', () => {
    for (const text of HOSTILE_STRINGS) expect(render(reportOf(text))).not.toMatch(UNSAFE);
  });
});

describe('what a finding is about', () => {
  const { principal_id: principal = '', tool_name: tool = '', amounts = '' } = over.findings[0] ?? {};
  const acts = [principal, tool, amounts];

  it('is in the report: whose act, with which tool, for how much', () => {
    expect(over.findings[0]).toMatchObject({ code: 'METER_CAP_EXCEEDED', event_type: 'execution' });
    for (const each of acts) expect(each).not.toBe('');
  });

  it.each([
    ['github', renderGithub(over)],
    ['gitlab', renderGitlab(over)],
    ['junit', renderJunit(over)],
    ['markdown', renderMarkdown(over)],
  ])('is in the line of %s that names it', (_, text) => {
    const line = text.split('\n').find((each) => each.includes('METER_CAP_EXCEEDED')) ?? '';
    for (const each of acts) expect(line).toContain(each);
  });

  it('is in the text for people, too', () => {
    expect(renderReport(over)).toContain(`${principal}, ${tool}, ${amounts}`);
  });

  it('is bounded, and said of grants, actions and executions alone', () => {
    const long = { ...over.findings[0], amounts: '9'.repeat(100_000) } as FindingJson;
    expect(renderGithub({ ...over, findings: [long] }).length).toBeLessThan(10_000);
    const other: FindingJson = { ...long };
    delete other.event_type;
    expect(messageOf(other)).toBe(other.message);
  });
});

describe('a ledger that was cut', () => {
  it('has no finding behind its last line', async () => {
    const cut = await cutReport();
    const finding = cut.findings.find(({ code }) => code === 'TRUNCATED');
    expect(finding?.at.line).toBe(6);
    expect(renderGithub(cut)).toContain('line=5,title=TRUNCATED');
    const issues = JSON.parse(renderGitlab(cut)) as Issue[];
    expect(issues.find((each) => each.check_name === 'TRUNCATED')?.location.lines.begin).toBe(5);
    for (const text of [renderMarkdown(cut), renderJunit(cut)]) expect(text).not.toContain(':6');
  });
});

describe('renderBrief', () => {
  it('names the worst finding, not the first', () => {
    const violation = over.findings[0];
    const worst = { ...invalid.findings[0], seq: 62 };
    const line = renderBrief({ ...invalid, findings: [worst, { ...violation, seq: 58 }] });
    expect(line).toContain('worst seq 62 AUTH_NOT_FOUND');
    expect(line).not.toContain('58');
    expect(renderBrief({ ...good, findings: [{ ...worst, severity: 'info', class: 'none' }] })).not.toContain(
      '62',
    );
  });

  it('is one line of at most 200 columns, whatever stands in it', () => {
    for (const text of HOSTILE_STRINGS) {
      const line = renderBrief(reportOf(text));
      expect(line.match(/\n/g)).toHaveLength(1);
      const columns = [...line.trimEnd()].reduce((sum, each) => sum + (/[ -~]/.test(each) ? 1 : 2), 0);
      expect(columns).toBeLessThanOrEqual(MAX_BRIEF_COLUMNS);
      expect(line).toMatch(/^invalid {2}.*; not checked: TRUST$/m);
    }
  });
});

describe('renderGithub', () => {
  /** The commands as the host's parser reads them. */
  function commands(
    report: Report,
  ): { readonly name: string; readonly properties: string[]; readonly message: string }[] {
    return renderGithub(report)
      .trimEnd()
      .split('\n')
      .map((line) => {
        const [, name = '', properties = '', message = ''] = /^::(\w+) (.*?)::(.*)$/.exec(line) ?? [];
        return { name, properties: properties.split(','), message };
      });
  }

  it('writes the same commands and properties, whatever stands in them', () => {
    const shapeOf = (text: string): string[] =>
      commands(reportOf(text)).map(
        ({ name, properties }) => `${name} ${properties.map((each) => each.replace(/=.*/, '')).join()}`,
      );
    for (const text of HOSTILE_STRINGS) {
      expect(shapeOf(text)).toEqual(['error file,line,title', 'warning file,line,title', 'notice title']);
      expect(renderGithub(reportOf(text))).not.toContain('##[');
    }
  });

  it('keeps within what the host shows of a step, and counts the rest', () => {
    const list = commands(reportWith(5_000, 1_000));
    expect(list.filter(({ name }) => name === 'error')).toHaveLength(MAX_STEP_ANNOTATIONS);
    expect(list).toHaveLength(MAX_STEP_ANNOTATIONS + 1);
    expect(list.at(-1)?.message).toContain('4,990 more');
  });

  it('points to the anchor, where there is one', () => {
    expect(renderGithub(invalid, { anchor: 'ci/a,b.yml' })).toContain('::error file=ci/a%2Cb.yml,line=1,');
  });
});

interface Issue {
  readonly fingerprint: string;
  readonly severity: string;
  readonly description: string;
  readonly check_name: string;
  readonly location: { readonly path: string; readonly lines: { readonly begin: number } };
}

describe('renderGitlab', () => {
  const read = (report: Report): Issue[] => JSON.parse(renderGitlab(report)) as Issue[];

  it('gives each issue a fingerprint of its own', () => {
    const twice = { ...invalid, findings: [...invalid.findings, ...invalid.findings], findings_total: 2 };
    const prints = read(twice).map(({ fingerprint }) => fingerprint);
    expect(prints).toHaveLength(2 + invalid.not_checked.length);
    expect(new Set(prints).size).toBe(prints.length);
  });

  it('tells what was not checked of one ledger from the same of another', () => {
    const other = { ...good, ledger: { ...good.ledger, origin: 'example.com/other' } };
    const [own, others] = [good, other].map((report) => read(report).map(({ fingerprint }) => fingerprint));
    expect(own?.length).toBeGreaterThan(0);
    expect(own?.filter((print) => others?.includes(print))).toEqual([]);
    const unnamed = ['a', 'b'].map((path) => ({
      ...good,
      ledger: { ...good.ledger, origin: null, paths: [path] },
    }));
    expect(new Set(unnamed.flatMap((report) => read(report).map((each) => each.fingerprint))).size).toBe(
      2 * (own?.length ?? 0),
    );
  });

  it('has what the host demands of each', () => {
    for (const text of HOSTILE_STRINGS) {
      const issues = read(reportOf(text));
      expect(issues).toHaveLength(3);
      for (const { description, check_name: name, severity, location } of issues) {
        expect(description).not.toBe('');
        expect(name).toMatch(/^[A-Z_]+$/);
        expect(['info', 'minor', 'major', 'critical', 'blocker']).toContain(severity);
        expect([typeof location.path, location.lines.begin >= 1]).toEqual(['string', true]);
      }
    }
  });
});

describe('renderMarkdown', () => {
  /** What is left when every code span (CommonMark §6.1) is taken out. */
  function skeleton(markdown: string): string {
    return markdown
      .split('\n')
      .map((line) => {
        let rest = '';
        for (let at = 0; at < line.length;) {
          const [run = ''] = /^`*/.exec(line.slice(at)) ?? [];
          if (run === '') {
            rest += line[at];
            at += 1;
            continue;
          }
          const close = [...line.slice(at + run.length).matchAll(/`+/g)].find(([other]) => other === run);
          if (close === undefined) return `${rest} OPEN`;
          at += run.length + close.index + run.length;
          rest += '<code>';
        }
        return rest;
      })
      .join('\n');
  }

  it('has outside text in code spans and nowhere else', () => {
    const plain = skeleton(renderMarkdown(reportOf('x')));
    expect(plain).toContain('<code>');
    for (const text of HOSTILE_STRINGS) {
      expect(skeleton(renderMarkdown(reportOf(text))).replaceAll('(empty)', '<code>')).toBe(plain);
    }
  });

  it('opens no span of code that it does not close, however many files a ledger has', () => {
    const paths = Array.from({ length: 20_000 }, (_, n) => `${n} @everyone ${'\u202e'.repeat(n % 50)}`);
    const text = renderMarkdown({ ...invalid, ledger: { ...invalid.ledger, paths } });
    expect(text.length).toBeLessThanOrEqual(MAX_MARKDOWN_LENGTH);
    expect(skeleton(text)).not.toMatch(/OPEN|@/);
    for (const { code } of [...invalid.findings, ...invalid.not_checked]) expect(text).toContain(code);
  });

  it('is no longer than a comment may be, and counts the rest', () => {
    const text = renderMarkdown(reportWith(1_000_000, 5_000));
    expect(text.length).toBeLessThanOrEqual(MAX_MARKDOWN_LENGTH);
    const listed = text.match(/^- \*\*error\*\*/gm)?.length ?? 0;
    expect(listed).toBeGreaterThan(100);
    expect(text).toContain(`${(1_000_000 - listed).toLocaleString('en')} more findings`);
  });
});

describe('what was required, and not checked', () => {
  const open = requireChecks(good, ['TRUST']);
  const status = (report: Report): number => decideExitStatus(report, 0, 'violation');

  it('ends with 2 in place of 0, and takes the place of nothing worse', () => {
    expect([status(good), status(open)]).toEqual([0, 2]);
    expect(status(requireChecks(invalid, ['TRUST']))).toBe(1);
    expect(decideExitStatus(requireChecks(over, ['TRUST']), 0, 'violation')).toBe(3);
    expect(decideExitStatus(requireChecks(over, ['TRUST']), 0, 'invalid')).toBe(2);
    expect(requireChecks(good, ['GROWTH'])).toEqual(good);
  });

  it('looks well in no format', () => {
    expect(renderMarkdown(open).slice(4, 6)).not.toBe(renderMarkdown(good).slice(4, 6));
    expect(renderGithub(open)).toMatch(/^::error .*required, and not checked: TRUST; not checked: /m);
    expect(renderBrief(open)).toMatch(/required and not checked: TRUST; not checked: /);
    expect(renderJunit(open)).toContain('failures="1"');
    const issues = JSON.parse(renderGitlab(open)) as Issue[];
    expect(issues.filter(({ severity }) => severity === 'blocker').map((each) => each.check_name)).toEqual([
      'TRUST',
    ]);
    expect(renderReport(open)).toContain('required');
  });

  it('is met for the end of a ledger by a checkpoint that is held, however much came after', () => {
    const anchor = { path: 'held', tree_size: 2, relation: 'extends', signed_by: [] } as const;
    const held = { ...good, checkpoints: { ...good.checkpoints, anchors: [{ ...anchor, signed_by: [] }] } };
    const isOpen = (report: Report): boolean =>
      requireChecks(report, ['TRUNCATION']).not_checked.some(({ required }) => required);
    expect([isOpen(good), isOpen(held)]).toEqual([true, false]);
  });
});

describe('a baseline in Markdown', () => {
  const baseline = { known: 1, new: 0, gone: 0, unlisted: 0 };
  const signOf = (report: Report): string => renderMarkdown(report).slice(4, 6);

  it('has a sign of its own where it acknowledges all errors', () => {
    const signs = [invalid, good, { ...invalid, findings: [], baseline }].map(signOf);
    expect(new Set(signs).size).toBe(3);
    const advice = { ...over.findings[0], severity: 'info', class: 'none' } as const;
    expect(signOf({ ...invalid, findings: [advice], baseline: { ...baseline, new: 1 } })).toBe(signs[2]);
  });

  it('has it not where anything new may be an error', () => {
    const fresh = { ...baseline, new: 1 };
    for (const findings of [invalid.findings, []]) {
      expect(signOf({ ...invalid, findings, baseline: fresh })).toBe(signOf(invalid));
    }
  });
});

describe('renderJunit', () => {
  it('fails the group of a finding, and skips what was not checked', () => {
    const xml = renderJunit(invalid);
    expect(xml).toContain('tests="11" failures="1" errors="0" skipped="4"');
    expect(xml.match(/<failure /g)).toHaveLength(1);
    expect(xml.match(/<skipped /g)).toHaveLength(4);
  });

  it('fails nothing for warnings that are not listed', () => {
    const findings = reportOf('x').findings.slice(1);
    const many = { ...good, findings, findings_total: 5_000 };
    expect(renderJunit(many)).toContain('failures="0"');
    expect(renderJunit({ ...invalid, findings: [], findings_total: 1 })).toContain('failures="1"');
  });

  it('fails when there is nothing to verify', async () => {
    const { verifyLedger } = await import('../../src/api/index.js');
    expect(renderJunit(await verifyLedger(new Uint8Array()))).toMatch(/failures="1"/);
  });

  it('has a group for each code', () => {
    const groups = Object.keys(CODE_PAGES).map((code) => `${groupOf(code).id} ${code}`);
    expect(new Set(groups.map((each) => each.split(' ')[0])).size).toBe(8);
    for (const each of [
      'lines NOT_JSON',
      'values SCHEMA',
      'identity EVENT_ID_MISMATCH',
      'chain PREV_MISMATCH',
      'signatures SIGNATURE_INVALID',
      'checkpoints FORKED',
      'links EXECUTION_NOT_FOUND',
      'bounds AUTH_NOT_FOUND',
      'bounds GRANT_NOT_FOUND',
      'bounds METER_CAP_EXCEEDED',
      'bounds HYGIENE_NOT_OK',
    ]) {
      expect(groups).toContain(each);
    }
    expect(isFindingCode('NOT_JSON')).toBe(true);
  });

  it.skipIf(!hasProgram('xmllint') || !existsSync(XSD))('is valid by its XSD, whatever stands in it', () => {
    const reports = [good, invalid, reportWith(5_000, 1_000), ...HOSTILE_STRINGS.map(reportOf)];
    // One process for all of them: a document each, one after the other, is what xmllint does not take.
    const suites = reports.map((report, id) => {
      const [, suite = ''] = /<testsuites>\n(.*)<\/testsuites>/s.exec(renderJunit(report)) ?? [];
      return suite.replace(' id="0"', ` id="${id}"`);
    });
    const input = `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('')}</testsuites>\n`;
    const { status, stderr } = spawnSync('xmllint', ['--noout', '--schema', XSD, '-'], {
      input,
      encoding: 'utf8',
    });
    expect([status, stderr.trim()]).toEqual([0, '- validates']);
  });
});
