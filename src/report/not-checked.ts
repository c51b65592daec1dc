/** What a verification did not, or could not, check (SPEC §9): said in every report, so that "ok" is never read as more than it is. */

import type { VerifyState } from '../verify/state.js';

/** Something that was not checked. */
export interface NotChecked {
  readonly code: string;
  readonly message: string;
}

/** Everything that this verification leaves open, most important first. */
export function listNotChecked(state: VerifyState): NotChecked[] {
  const list: NotChecked[] = [];
  const add = (when: boolean, code: string, message: string): void => {
    if (when) list.push({ code, message });
  };
  const { signatures } = state;
  const bare = state.layout === 'bare';
  add(
    bare,
    'CHAIN',
    'these are bare events with no records around them: there is no chain, no order and no signature to check',
  );
  add(!bare && state.mode === 'none', 'SIGNATURES', 'no keys are known, so no signature was checked');
  add(
    state.mode === 'self-declared',
    'TRUST',
    "the keys are the ledger's own claim (self-declared): whoever wrote the ledger chose them; pin the keys you know with --trust",
  );
  add(
    state.mode !== 'none' && signatures.unverified > 0,
    'SIGNATURES_UNVERIFIED',
    `signatures by unknown keys, which could not be checked: ${signatures.unverified}`,
  );
  add(
    !bare && signatures.missing > 0 && !state.signaturesRequired,
    'SIGNATURES_MISSING',
    `records without a signature, where none is required: ${signatures.missing}`,
  );
  add(
    !bare,
    'TRUNCATION',
    'nothing shows that no records were cut off at the end: no checkpoint kept elsewhere was given',
  );
  add(
    state.checkpoints > 0,
    'CHECKPOINTS',
    `checkpoints that are chained and signed as events, but whose tree roots and notes were not checked: ${state.checkpoints}`,
  );
  add(
    state.keyEvents > 0,
    'KEY_EVENTS',
    `key events that were not applied, as only the first keys count: ${state.keyEvents}`,
  );
  return list;
}
