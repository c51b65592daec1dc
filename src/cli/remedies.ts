/** Remedies for findings, with the commands that apply them. */

import { printable } from '../base/bytes/printable.js';
import { CODE_PAGES, type FindingCode } from '../format/finding/catalog.js';
import type { Guide } from '../out/text/guide.js';
import { withLedger } from './hints.js';

const DIFF = '`northroot diff LEDGER COPY` names the first record that differs.';

/** Codes for which a command helps; the others keep the remedy of the catalogue. */
const REMEDIES: Readonly<Partial<Record<FindingCode, string>>> = {
  LINE_TORN:
    '`northroot repair LEDGER` (or an append) saves the torn bytes beside the ledger and cuts them off. Fetch a copy again.',
  SCHEMA: 'Compare the named place with `northroot schema NAME`.',
  CHECKPOINT_ROOT_MISMATCH: DIFF,
  CHECKPOINT_SIZE_MISMATCH: DIFF,
  CHECKPOINT_MISSING: 'Make one: `northroot checkpoint LEDGER`.',
  WITNESS_QUORUM:
    'Collect them: `northroot checkpoint LEDGER --witness URL`. A witness that refuses may have seen another history.',
  FORKED: 'Keep both copies; `northroot diff` names the first record that differs.',
  TAIL_UNSEALED: 'Make a checkpoint: `northroot checkpoint LEDGER`.',
  TILE_MISSING: 'Copy the tree again, or write it anew with `northroot tiles`.',
  TILE_UNEXPECTED: 'Remove it, or publish the next checkpoint with `northroot tiles`.',
  EXECUTION_NOT_UNDER_GRANT: 'Adjust the grant that the execution used; `northroot why` shows it.',
  METER_CAP_EXCEEDED: '`northroot budget LEDGER` shows the accounts.',
  ADJUSTMENT_EXCEEDED: 'Credit at most the use that `northroot budget LEDGER` shows.',
  PRICE_MISMATCH: 'Compute it again: `northroot prices cost PRICES MODEL --input N --output N`.',
  DENIAL_UNFOUNDED: '`northroot why LEDGER ID` shows the denial and its checks.',
  RESERVATION_OVER_CAP:
    '`northroot budget LEDGER` shows the accounts; release reservations that are not needed.',
};

/** The remedy for findings of a code. `LEDGER` is a placeholder for the path of the ledger. */
export function remedyFor(code: FindingCode): string {
  return REMEDIES[code] ?? CODE_PAGES[code].remedy;
}

/** What would have checked what was not. */
const UNCHECKED: Readonly<Record<string, string>> = {
  PREDECESSOR: 'see --predecessor',
  PRICES: 'see --prices',
  SLICES: 'see --parent',
  TRUNCATION: 'see --checkpoint',
  TRUST: 'see --trust',
};

const PROOF: Readonly<Record<string, string>> = {
  ENTRY_MISSING: 'the proof does not carry its entry: give it with --entry FILE',
  KEY_UNKNOWN: "give the log's key with --key, or a trust policy that has it with --trust",
};

/** What reports on a ledger say of the command line. */
export const commandGuide: Guide = {
  finding: remedyFor,
  notChecked: (code) => (Object.hasOwn(UNCHECKED, code) ? UNCHECKED[code] : undefined),
  proof: (code) => (Object.hasOwn(PROOF, code) ? PROOF[code] : undefined),
  record: (ledger, reference) =>
    printable(ledger, Infinity) === ledger
      ? withLedger(`northroot show LEDGER ${reference}`, ledger)
      : undefined,
  more: {
    denied: 'northroot log LEDGER --verdict denied',
    diff: 'northroot verify LEDGER says what each is worth',
    findings: 'a higher --max-findings, or no filter, lists them',
    grants: 'northroot budget LEDGER',
    status: 'northroot verify LEDGER lists them',
  },
};

/** What the results of statements say of it. */
export const statementGuide: Guide = {
  proof: (code) => (code === 'KEY_UNKNOWN' ? "give the signer's public key with --key" : undefined),
};
