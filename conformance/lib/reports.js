/** What came of a run, for people and for CI. */

import { CLASSES } from './content.js';

export const OUTCOMES = ['passed', 'failed', 'unsupported', 'not run'];

/** Per class how many cases there are, were chosen, and had each outcome; and what may be said of the class. */
export function summarise({ results, claimed, unclean }, cases) {
  return CLASSES.map((name) => {
    const own = results.filter((each) => each.class === name);
    const counts = Object.fromEntries(
      OUTCOMES.map((outcome) => [outcome, own.filter((each) => each.outcome === outcome).length]),
    );
    const total = cases.filter((each) => each.class === name).length;
    return {
      name,
      total,
      chosen: own.length,
      counts,
      says: verdictOf(name, claimed, total, own.length, counts, unclean),
    };
  });
}

function verdictOf(name, claimed, total, chosen, { passed, failed }, unclean) {
  if (failed > 0) return 'fails';
  if (chosen === 0) return claimed.includes(name) ? 'not run' : 'not claimed, not run';
  if (unclean !== undefined) return 'fails: the run did not end as it must';
  if (passed === total) return 'conforms';
  return passed === chosen ? 'incomplete: all that was chosen passed' : 'incomplete: not all was run';
}

/** 0 if all that was chosen passed; 1 if anything failed, the end of the process too; 2 if nothing did and something was not run. */
export function exitStatusOf({ results, broken, unclean }) {
  if (unclean !== undefined || results.some(({ outcome }) => outcome === 'failed')) return 1;
  const isWhole = results.length > 0 && broken === undefined;
  return isWhole && results.every(({ outcome }) => outcome === 'passed') ? 0 : 2;
}

export function renderText(run, summary, { version, digest }) {
  const lines = [
    `${run.name} ${run.release}, cases of northroot-conformance ${version} (sha256:${digest})`,
    '',
  ];
  for (const { id, outcome, why } of run.results)
    if (outcome === 'failed') lines.push(`failed       ${id}`, `             ${why}`);
  for (const [why, ids] of groupReasons(run.results)) lines.push(`unsupported  ${ids.length} cases: ${why}`);
  if (lines.length > 2) lines.push('');
  for (const { name, total, counts, says } of summary) {
    lines.push(
      `${name.padEnd(9)} ${says} (${OUTCOMES.map((outcome) => `${counts[outcome]} ${outcome}`).join(', ')}; of ${total})`,
    );
  }
  if (run.broken !== undefined) lines.push('', `The run ended early: ${run.broken}.`);
  if (run.unclean !== undefined) lines.push('', `The run failed at its end: ${run.unclean}.`);
  return `${lines.join('\n')}\n`;
}

function groupReasons(results) {
  const groups = new Map();
  for (const { outcome, operations, why } of results) {
    if (outcome !== 'unsupported') continue;
    const key = `${operations.join(', ')}: ${why}`;
    groups.set(key, [...(groups.get(key) ?? []), key]);
  }
  return groups;
}

export function renderMarkdown(run, summary, { version, digest }) {
  // What Markdown makes marks, links, mentions or cells of.
  const cell = (text) => escapeXml(text).replace(/[\\`*_[\]#!|~@]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const lines = [
    `# Conformance of ${cell(run.name)} ${cell(run.release)}`,
    '',
    `northroot-conformance ${version}, \`sha256:${digest}\``,
    '',
    '| class | result | passed | failed | unsupported | not run | cases |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...summary.map(
      ({ name, says, counts, total }) =>
        `| ${name} | ${says} | ${OUTCOMES.map((outcome) => counts[outcome]).join(' | ')} | ${total} |`,
    ),
  ];
  if (run.broken !== undefined) lines.push('', `The run ended early: ${cell(run.broken)}.`);
  if (run.unclean !== undefined) lines.push('', `The run failed at its end: ${cell(run.unclean)}.`);
  const shown = run.results.filter(({ outcome }) => outcome !== 'passed');
  if (shown.length > 0) lines.push('', '| case | outcome | why |', '| --- | --- | --- |');
  for (const { id, outcome, why } of shown) lines.push(`| ${cell(id)} | ${outcome} | ${cell(why ?? '')} |`);
  return `${lines.join('\n')}\n`;
}

export function renderJunit(run, summary) {
  const lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites name="northroot-conformance">'];
  for (const { name, chosen, counts } of summary) {
    if (chosen === 0) continue;
    const skipped = counts.unsupported + counts['not run'];
    lines.push(
      `  <testsuite name="${name}" tests="${chosen}" failures="${counts.failed}" errors="0" skipped="${skipped}">`,
    );
    for (const each of run.results.filter((result) => result.class === name)) {
      const head = `    <testcase classname="${name}" name="${escapeXml(each.id)}"`;
      const why = escapeXml(each.why ?? '');
      if (each.outcome === 'passed') lines.push(`${head}/>`);
      else if (each.outcome === 'failed') lines.push(`${head}><failure message="${why}"/></testcase>`);
      else lines.push(`${head}><skipped message="${each.outcome}: ${why}"/></testcase>`);
    }
    lines.push('  </testsuite>');
  }
  // Without it the file would read as a run in which nothing failed.
  if (run.results.length === 0 || run.unclean !== undefined) {
    const why = escapeXml(run.unclean ?? run.broken ?? 'no case was chosen');
    const name = run.unclean === undefined ? 'hello' : 'end';
    lines.push(
      '  <testsuite name="run" tests="1" failures="0" errors="1" skipped="0">',
      `    <testcase classname="run" name="${name}"><error message="${why}"/></testcase>`,
      '  </testsuite>',
    );
  }
  return `${[...lines, '</testsuites>'].join('\n')}\n`;
}

function escapeXml(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
