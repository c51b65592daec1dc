/** Hints in terms of commands and flags. A code without an entry keeps the hint of the library. */

import { printable } from '../base/bytes/printable.js';
import type { NorthrootError } from '../base/error.js';
import { isFindingCode } from '../format/finding/catalog.js';
import { OtherFileError } from '../log/fs/other-file.js';
import { UnwitnessedError } from '../log/postgres/durability.js';
import { NoLedgerError } from '../log/store/no-ledger-error.js';
import { StrictError } from '../log/writer/admission.js';
import { CommandError } from './command-error.js';
import { shellWord } from './shell-word.js';

/** In texts, `LEDGER` stands for the ledger argument of the command. */
type Hint = string | ((error: NorthrootError) => string | undefined);

const GRANTS = 'northroot log LEDGER --type authorization lists the grants';
const AUTHORIZATIONS = 'northroot log LEDGER --type authorization lists them';
const RECORDS = 'northroot log LEDGER lists the records';
/** What to do about authority that was imported. */
export const IMPORTED_HINT =
  '--honour-imported SYSTEM lets what was imported from it count; better, make a grant of your own: northroot grant LEDGER';
const VERIFY = 'northroot verify LEDGER says what is wrong with it';

const HINTS: Readonly<Record<string, Hint>> = {
  // Signing
  KEY_NOT_VALID_HERE: 'sign with another key: --key',
  SIGNATURE_MISSING: 'give the key with --key',
  // Keys
  KEY_IS_PRIVATE: 'northroot key show FILE --form pem writes its public half',
  // Ledgers and their files
  // Errors of the file system have a cause; without one the ledger itself is missing.
  FILE_NOT_FOUND: (error) =>
    error instanceof NoLedgerError
      ? noLedgerHint(error)
      : error.cause === undefined
        ? 'northroot init LEDGER makes one'
        : error.hint,
  INDEX_UNUSABLE: ({ hint }) => join(hint, '--no-index goes on without it'),
  LEDGER_EMPTY: 'northroot init LEDGER makes a ledger of it',
  LEDGER_INVALID: VERIFY,
  // With a cause, waiting does not help.
  LEDGER_LOCKED: ({ cause, hint }) =>
    cause === undefined ? 'wait until it has finished, or give a longer --lock-timeout' : hint,
  LEDGER_TAIL_INVALID: VERIFY,
  NOT_A_LEDGER: (error) => (error instanceof OtherFileError ? OTHER_FILES[error.looksLike] : error.hint),
  NOT_A_TILE_TREE: ({ hint }) => hint ?? 'northroot tiles LEDGER --out DIR makes a tile tree of a ledger',
  STORE_NOT_DURABLE: (error) =>
    error instanceof UnwitnessedError
      ? 'set synchronous_standby_names, or name a witness of positions, the same for all writers: --position-witness FILE'
      : error.hint,
  RECORD_NOT_FOUND: ({ hint }) => join(hint, RECORDS),
  // What may be executed
  AUTHORIZATION_REUSED: 'an action authorizes one execution: northroot authorize asks for another',
  AUTHORIZATION_STARTED:
    'wait for it; when its recorder was killed, --resume runs it now and --abandon settles what was begun',
  AUTH_NOT_AN_AUTHORIZATION: AUTHORIZATIONS,
  AUTH_NOT_FOUND: AUTHORIZATIONS,
  EXECUTION_UNDER_DENY: 'northroot why LEDGER ID says why it was denied',
  GRANT_DENIED: GRANTS,
  GRANT_NOT_A_GRANT: GRANTS,
  GRANT_NOT_FOUND: GRANTS,
  GRANT_REVOKED:
    'northroot budget LEDGER says what is in force; what was stopped gives its reservation back: northroot record LEDGER --auth ID --abandon',
  GRANT_UNSOUND: 'northroot why LEDGER GRANT says what is wrong with it; ask for another grant',
  IMPORTED_AUTHORITY: IMPORTED_HINT,
  REQUEST_ALLOWED: 'northroot approvals LEDGER lists what waits for approval',
  SLICE_BEGUN:
    'northroot verify LEDGER says what it reserved; it is settled by a checkpoint of the ledger that spends it',
  STARTS_UNSETTLED:
    'settle those whose recorders were killed: northroot record LEDGER --auth ID --abandon START, or northroot abandon LEDGER --older-than 1h',
  START_AMBIGUOUS: 'northroot budget LEDGER lists them: name one, as in --abandon 17',
  START_NOT_FOUND: 'northroot budget LEDGER lists what was started and is not recorded',
  TOOL_MISMATCH: 'name that tool with --tool, or leave --tool out',
  TOOL_PARAMS_MISMATCH: 'give the same words after -- as to northroot authorize, or authorize these',
  // Prices
  MODEL_AMBIGUOUS: ({ hint }) => join(hint, 'as in --provider NAME'),
  BILL_INVALID: 'northroot report --help says which bills are read',
  PRICES_INVALID: 'northroot schema prices shows the form of a price file; northroot prices import makes one',
  // Checkpoints, proofs, trust
  CHECKPOINT_MISSING: 'northroot checkpoint LEDGER makes one; with --witness URL others cosign it',
  FORKED: ({ hint }) => join(hint, 'northroot diff LEDGER COPY names the first record that differs'),
  TRUST_POLICY_INVALID: 'northroot schema trust-policy shows the form',
};

const PROOF = 'northroot verify-proof verifies proofs';
const NOTE = 'name the ledger, and give the note with --checkpoint';
const PUBLIC = 'name the ledger; a key is given to verify in a trust policy, to verify-proof with --key';
const BUNDLE =
  'it holds one signed statement: name the ledger; northroot show LEDGER SEQ --format dsse writes such envelopes';

/** Hints for files that are not ledgers, by their detected type. */
const OTHER_FILES: Readonly<Partial<Record<OtherFileError['looksLike'], string>>> = {
  'a northroot bundle': 'northroot verify takes bundles; every other command takes the ledger',
  'a Northroot journal': 'northroot append LEDGER FILE appends the events of a journal',
  'a COSE message': 'northroot verify-proof verifies COSE receipts, without a ledger',
  'a public key': PUBLIC,
  'a proof': PROOF,
  'a consistency proof': `${PROOF} with --consistency`,
  'a checkpoint': NOTE,
  'a signed note': NOTE,
  'a trust policy': 'name the ledger, and give the policy with --trust',
  'a witness policy': 'name the ledger, and give the policy with --witness-policy',
  'a Sigstore bundle': BUNDLE,
  'a DSSE envelope': 'northroot verify-proof verifies in-toto statements; for all else name the ledger',
  'a JSON array': 'northroot append LEDGER FILE appends the events of an array',
  'a saved state': 'name the ledger, and give the state with --state',
  'a gzip archive': 'unpack it first: gunzip -c … | northroot verify -',
};

/** The hint for an error. @param ledger - The ledger argument of the command. */
export function hintFor(error: NorthrootError, ledger?: string): string | undefined {
  if (error instanceof CommandError) return error.hint && withLedger(error.hint, ledger);
  if (error instanceof StrictError) return 'without --strict it is recorded as it is';
  const { code } = error;
  const own = hasHint(code) ? HINTS[code] : undefined;
  const hint = (typeof own === 'function' ? own(error) : own) ?? error.hint;
  if (hint === undefined) return isFindingCode(code) ? `northroot explain ${code}` : undefined;
  return own === undefined || hint === error.hint ? hint : withLedger(hint, ledger);
}

/** Whether the command line has its own hint for a code. */
export function hasHint(code: string): boolean {
  return Object.hasOwn(HINTS, code);
}

/** A text with the ledger's name in place of `LEDGER`. */
export function withLedger(words: string, ledger: string | undefined): string {
  const isNamed = ledger !== undefined && ledger !== '-' && printable(ledger, Infinity) === ledger;
  return isNamed ? words.replace(/\bLEDGER\b/g, () => shellWord(ledger)) : words;
}

/** It need not be the first argument; `init` makes no folder around it. */
function noLedgerHint({ path, hasFolder, hint }: NoLedgerError): string | undefined {
  return hasFolder ? withLedger('northroot init LEDGER makes one', path) : hint;
}

function join(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join('; ');
}
