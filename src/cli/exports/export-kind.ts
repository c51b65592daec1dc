/** What `northroot export` can write. Each kind is one option of it, whose value is where to. */

import type { RecordSelection } from '../../rules/selection.js';
import type { Context, ExitStatus } from '../context.js';
import type { Verifying } from '../verifying.js';

export interface ExportJob extends Verifying {
  readonly context: Context;
  /** The ledger: a path, or `-`. */
  readonly ledger: string;
  /** Where to: the value of the kind's option. */
  readonly path: string;
  readonly selection: RecordSelection;
  /** Every option of the command, for those that only this kind has. */
  readonly options: Readonly<Record<string, unknown>>;
}

export interface ExportKind {
  /** As commander has it, such as `--csv <folder>`; the option's name is the kind's. */
  readonly flags: string;
  readonly description: string;
  /** Whether it writes one file, which may be `-`, or several, named after a file or in a folder. */
  readonly target: 'file' | 'files' | 'folder';
  /** The files that it writes for its option's value; default: the one that has that name. */
  readonly filesAt?: (path: string) => readonly string[];
  /** Further options that this kind has, each with its description and, where its value is no text, what reads it; kinds may share one. */
  readonly further?: readonly (readonly [
    flags: string,
    description: string,
    parse?: (text: string, previous: never) => unknown,
  ])[];
  /** Writes it, whole or not at all, and says on standard error what was written. The status is that of the verdict, as `verify` gives it. */
  write(job: ExportJob): Promise<ExitStatus>;
}
