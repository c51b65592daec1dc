/** The command line of the runner. */

import { writeFileSync } from 'node:fs';
import { CLASSES, ContentError, readContent } from './content.js';
import { printable } from './printable.js';
import { exitStatusOf, renderJunit, renderMarkdown, renderText, summarise } from './reports.js';
import { choose, operationsOf, run } from './run.js';

const USAGE = `Usage: northroot-conformance list [--class CLASS]… [--operation NAME]… [--filter TEXT]
       northroot-conformance run [OPTIONS] -- COMMAND [ARGUMENT…]

  --class CLASS      verifier, writer, decider or witness; default: what the implementation claims
  --operation NAME   only cases of these operations
  --filter TEXT      only cases with this in their id
  --timeout SECONDS  for each answer; default 60
  --junit FILE       also writes JUnit XML
  --markdown FILE    also writes a page

Exit status: 0 all that was chosen passed; 1 something failed; 2 something was not run, or the command is wrong.
`;
const MAX_TIMEOUT_S = 3_600;
const DEFAULT_TIMEOUT_S = 60;

class UsageError extends Error {}

/** @returns The exit status */
export async function main(args) {
  try {
    const [command, ...rest] = args;
    const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
    if (command === 'help' || own.includes('--help') || own.includes('-h')) {
      process.stdout.write(USAGE);
      return 0;
    }
    if (command === '--version') {
      process.stdout.write(`${readContent().manifest.version}\n`);
      return 0;
    }
    const end = rest.indexOf('--');
    const options = parseOptions(end < 0 ? rest : rest.slice(0, end));
    if (command === 'list' && end < 0) return list(options);
    if (command !== 'run') throw new UsageError('expected list, or run -- COMMAND');
    if (end < 0 || end + 1 === rest.length) throw new UsageError('expected -- and the command to run');
    return await runCommand(rest.slice(end + 1), options);
  } catch (error) {
    if (error instanceof UsageError)
      process.stderr.write(`northroot-conformance: ${error.message}\n\n${USAGE}`);
    else if (error instanceof ContentError || error.code !== undefined)
      process.stderr.write(`northroot-conformance: ${printable(error.message)}\n`);
    else throw error;
    return 2;
  }
}

function parseOptions(args) {
  const options = { timeoutMs: DEFAULT_TIMEOUT_S * 1_000 };
  for (let index = 0; index < args.length; index += 2) {
    const [name, value] = args.slice(index, index + 2);
    if (!name.startsWith('-'))
      throw new UsageError(`${printable(name)}: expected -- before the command to run`);
    if (value === undefined || (value === '' && name !== '--filter'))
      throw new UsageError(`${printable(name)}: expected a value after it`);
    if (name === '--class') {
      if (!CLASSES.includes(value)) throw new UsageError(`--class: expected one of ${CLASSES.join(', ')}`);
      options.classes = [...(options.classes ?? []), value];
    } else if (name === '--operation') options.operations = [...(options.operations ?? []), value];
    else if (name === '--filter') options.filter = value;
    else if (name === '--junit') options.junit = value;
    else if (name === '--markdown') options.markdown = value;
    else if (name === '--timeout') {
      const seconds = Number(value);
      if (!(seconds > 0 && seconds <= MAX_TIMEOUT_S))
        throw new UsageError(`--timeout: expected seconds, at most ${MAX_TIMEOUT_S}`);
      options.timeoutMs = seconds * 1_000;
    } else throw new UsageError(`${printable(name)}: no such option`);
  }
  return options;
}

function list({ classes, operations, filter }) {
  const { manifest, cases } = readContent();
  const chosen = choose(cases, classes, operations, filter);
  const rows = chosen.map(
    (each) => `${each.class}\t${operationsOf(each).join(',')}\t${each.id}\t${each.about}\n`,
  );
  process.stdout.write(rows.join(''));
  process.stderr.write(
    `${chosen.length} cases of northroot-conformance ${manifest.version} (sha256:${manifest.digest})\n`,
  );
  return chosen.length > 0 ? 0 : 2;
}

async function runCommand(command, options) {
  const content = readContent();
  for (const name of options.operations ?? []) {
    if (!content.cases.some((each) => operationsOf(each).includes(name)))
      throw new UsageError(`--operation: there is no ${printable(name)}`);
  }
  // What cannot be written is told before an hour of cases, and what an earlier run left is not taken for this one's.
  for (const path of [options.junit, options.markdown]) if (path !== undefined) writeFileSync(path, '');
  const ran = await run(command, content, options);
  const summary = summarise(ran, content.cases);
  process.stdout.write(renderText(ran, summary, content.manifest));
  if ((ran.broken ?? ran.unclean) !== undefined && ran.stderr !== '')
    process.stderr.write(
      `${ran.stderr
        .split('\n')
        .map((line) => printable(line))
        .join('\n')}\n`,
    );
  if (options.junit !== undefined) writeFileSync(options.junit, renderJunit(ran, summary));
  if (options.markdown !== undefined)
    writeFileSync(options.markdown, renderMarkdown(ran, summary, content.manifest));
  return exitStatusOf(ran);
}
