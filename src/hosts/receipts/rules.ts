/** The rules that hold for receipts of every format. */

import { findingsOf, rulesOf } from '../shared/findings.js';

export const COMMON_RULES = rulesOf({
  'RC-1': 'a receipt has what its format requires, and no number that its canonical form writes otherwise',
  'RC-2': 'its signature is of an algorithm of the format, and valid over its canonical form',
  'RC-3': 'the key of its issuer is known by other means than the receipt, and is one key',
  'RC-4': 'an id names one receipt',
  'RC-5':
    'a chain begins with its first receipt, each later one names the one before it, and none is missing',
});

export const finding = findingsOf({
  MALFORMED: ['RC-1', 'invalid'],
  SHAPE_UNUSUAL: ['RC-1', 'warning'],
  RECEIPT_TOO_LONG: ['RC-1', 'invalid'],
  NUMBER_ROUNDED: ['RC-1', 'warning', 'a number that its canonical form writes as it is'],
  NO_CANONICAL_FORM: ['RC-1', 'invalid', 'numbers within the range of doubles'],
  SIGNATURE_MISSING: ['RC-2', 'invalid', 'a signature', 'none'],
  SIGNATURE_INVALID: ['RC-2', 'invalid'],
  ALGORITHM_REFUSED: ['RC-2', 'invalid'],
  KEY_UNKNOWN: ['RC-3', 'invalid', 'the key of the issuer', 'none; the signature was not checked'],
  KEY_STATED: [
    'RC-3',
    'warning',
    'the key of the issuer, by other means',
    'only the key that the receipt itself states: whoever made the receipt chose it',
  ],
  KEY_CHANGED: ['RC-3', 'invalid'],
  KEY_ENDED: ['RC-3', 'invalid'],
  KEYS_UNREADABLE: ['RC-3', 'invalid', 'public keys'],
  ID_REUSED: ['RC-4', 'invalid', 'the receipt that had the id before', 'another'],
  CHAIN_START: ['RC-5', 'invalid'],
  CHAIN_GAP: ['RC-5', 'invalid'],
  CHAIN_LINK: ['RC-5', 'invalid'],
  CHAIN_FORK: ['RC-5', 'invalid'],
  CHAIN_SPLICED: ['RC-5', 'invalid'],
  CHAIN_AFTER_END: ['RC-5', 'invalid', 'nothing after the last receipt of the chain', 'this receipt'],
  CHAIN_PART: ['RC-5', 'warning', 'the receipts before it', 'none; its place in the chain was not checked'],
  CHAIN_OPEN: ['RC-5', 'info', 'a last receipt', 'none; that no more followed was not checked'],
});
