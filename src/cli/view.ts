/** The view of a ledger, through its index if it has one. */

import type { TrustPolicy } from '../format/schema/generated/types.js';
import { LedgerView } from '../log/read/ledger-view.js';
import { describeNotice } from './commands/notices.js';
import type { Context } from './context.js';
import { openLedgerOf, STDIN } from './input.js';

/** The options of commands that use an index. */
export const INDEX = [
  '--index <folder>',
  'the folder of the index, a copy that this machine keeps (default: LEDGER.index beside a large file; none of a database)',
] as const;
export const NO_INDEX = ['--no-index', 'read the ledger, not its index'] as const;

export interface IndexChoice {
  /** A folder; false with `--no-index`. */
  readonly index?: string | boolean;
}

/** @param record - The argument after the ledger, for a hint if the two are swapped. */
export function viewOf(
  context: Context,
  ledger: string,
  record: string | undefined,
  { index = true }: IndexChoice,
  trust?: TrustPolicy,
): LedgerView {
  const { terminal, signal } = context;
  return new LedgerView(ledger, {
    index: ledger === STDIN ? false : index,
    trust,
    open: () => openLedgerOf(ledger, record, context),
    signal,
    onNotice: (notice) => terminal.say(describeNotice(notice)),
  });
}
