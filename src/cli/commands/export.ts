/** `northroot export`: writes what other tools read, each kind to a path of its own. */

import type { Command } from 'commander';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import type { ExportKind } from '../exports/export-kind.js';
import { EXPORT_KINDS } from '../exports/kinds.js';
import { STDIN } from '../input.js';
import { addSampling, ofSample, readSample, sampleText, type SamplingOptions } from '../sampling.js';
import { addSelection, type SelectionOptions, toSelection } from '../selection.js';
import { assertTargets, filesOf, STDOUT, type Target } from '../targets.js';
import { addVerifying, filesOfVerifying, readVerifying, type VerifyingOptions } from '../verifying.js';

interface ExportOptions
  extends SelectionOptions, SamplingOptions, VerifyingOptions, Readonly<Record<string, unknown>> {}

/** Of several statuses the worst: broken evidence, then undecided, then a broken bound. */
const WORST: readonly ExitStatus[] = [1, 2, 3, 0];

export function addExport(program: Command, run: Run): void {
  const command = addSelection(
    program
      .command('export')
      .summary('write a verified ledger for other tools')
      .description(
        'Verifies a ledger and writes it, or the selected records, in one or more formats. Each output says what was verified and what was not. Exit status as verify: 0 ok, 1 invalid, 3 violation, 2 could not decide.',
      )
      .argument('<ledger>', 'the file or folder'),
  );
  addVerifying(addSampling(command));
  for (const kind of EXPORT_KINDS) {
    command.option(kind.flags, kind.description);
    for (const [flags, description, parse] of kind.further ?? []) {
      if (command.options.some((option) => option.flags === flags)) continue;
      if (parse === undefined) command.option(flags, description);
      else command.option(flags, description, parse as (text: string, previous: unknown) => unknown);
    }
  }
  command.action((ledger: string, options: ExportOptions) =>
    run((context) => exportLedger(context, ledger, options)),
  );
}

async function exportLedger(context: Context, ledger: string, options: ExportOptions): Promise<ExitStatus> {
  const asked = EXPORT_KINDS.flatMap((kind) => {
    const path = options[nameOf(kind.flags)];
    return typeof path === 'string' ? [{ kind, path }] : [];
  });
  if (asked.length === 0)
    throw usageError(
      'say what to export',
      `one or more of ${EXPORT_KINDS.map(({ flags }) => flags).join(', ')}`,
    );
  assertOptionsApply(
    asked.map(({ kind }) => kind),
    options,
  );
  if (ledger === STDIN) throw usageError('export needs a file: the ledger may be read more than once');
  const wrong = asked.find(({ kind, path }) => kind.target !== 'file' && path === STDOUT);
  if (wrong !== undefined)
    throw usageError(`${wrong.kind.flags} writes several files: standard output takes one`);
  const { key } = options;
  await assertTargets(
    asked.flatMap(({ kind: { target, filesAt = (only) => [only] }, path }): Target[] => [
      ...(target === 'folder' ? [{ path, kind: 'folder' } as const] : []),
      ...filesAt(path).map((file) => ({ path: file, kind: 'file' }) as const),
    ]),
    [...filesOf(ledger), ...filesOfVerifying(options), ...(typeof key === 'string' ? [key] : [])],
  );
  const conditions = await toSelection(context, ledger, options);
  const verifying = await readVerifying(options, context.terminal);
  const sample = await readSample(context, ledger, options, conditions, verifying);
  if (sample !== undefined) context.terminal.say(`sample: ${sampleText(sample)}`);
  const selection = ofSample(conditions, sample);
  const given = { context, ledger, selection, ...verifying, options };
  const statuses: ExitStatus[] = [];
  for (const { kind, path } of asked) statuses.push(await kind.write({ ...given, path }));
  return WORST.find((status) => statuses.includes(status)) ?? 0;
}

/** Refuses an option that would have no effect. */
function assertOptionsApply(kinds: readonly ExportKind[], options: ExportOptions): void {
  const taken = new Set(kinds.flatMap(({ further = [] }) => further.map(([flags]) => flags)));
  for (const [flags] of EXPORT_KINDS.flatMap(({ further = [] }) => further)) {
    if (taken.has(flags) || !isGiven(flags, options)) continue;
    const takers = EXPORT_KINDS.filter(({ further = [] }) => further.some(([each]) => each === flags));
    const [option = ''] = flags.split(' ');
    throw usageError(
      `${option} is for none of the requested exports`,
      `it is for ${takers.map((kind) => kind.flags.split(' ')[0]).join(', ')}`,
    );
  }
}

/** `--no-x` leaves `x` true unless it is given. */
function isGiven(flags: string, options: ExportOptions): boolean {
  return flags.startsWith('--no-')
    ? options[nameOf(flags.replace('--no-', '--'))] === false
    : options[nameOf(flags)] !== undefined;
}

/** `--in-toto <file>` is `inToto`. */
function nameOf(flags: string): string {
  const [, name = ''] = /--([a-z-]+)/.exec(flags) ?? [];
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
