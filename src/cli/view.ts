/** The view of a ledger, through its index if it has one. */

import type { TrustPolicy } from '../format/schema/generated/types.js';
import { LedgerView } from '../log/read/ledger-view.js';
import { describeNotice } from './commands/notices.js';
import type { Context } from './context.js';
import { openLedgerOf, STDIN } from './input.js';

/** The option of commands that use an index. */
export const NO_INDEX = ['--no-index', 'read the ledger, not the index beside it'] as const;

export interface IndexChoice {
  /** False with `--no-index`. */
  readonly index: boolean;
}

/** @param record - The argument after the ledger, for a hint if the two are swapped. */
export function viewOf(
  context: Context,
  ledger: string,
  record: string | undefined,
  { index }: IndexChoice,
  trust?: TrustPolicy,
): LedgerView {
  const { terminal, signal } = context;
  return new LedgerView(ledger, {
    index: index && ledger !== STDIN,
    trust,
    open: () => openLedgerOf(ledger, record, context),
    signal,
    onNotice: (notice) => terminal.say(describeNotice(notice)),
  });
}
