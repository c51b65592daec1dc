/** The rules of Agent Action Receipts and correction records, beside those of all receipts. */

import { findingsOf, rulesOf } from '../../shared/findings.js';

export const AAR_RULES = rulesOf({
  'AAR-1': 'a receipt is signed with Ed25519 over its canonical form without the signature itself',
  'AAR-2':
    'a receipt states who acted for whom, what was done within which permissions, and the digests of input and output',
  'AAR-3': [
    'the digests of input and output are those of what went in and came out',
    'receipts hold no contents',
  ],
  'AAR-4': ['every action has a receipt', 'receipts are not numbered or linked'],
  'AAR-5': 'a correction says what was wrong and what was done, and names what it amends by id and digest',
  'AAR-6': ['every mistake has a correction', 'what nobody found out or told leaves no record'],
});

export const finding = findingsOf({
  CORRECTED_MISMATCH: ['AAR-5', 'invalid'],
  CORRECTED_NOT_GIVEN: [
    'AAR-5',
    'warning',
    'the record that is corrected',
    'none in these files; its digest was not checked',
  ],
  CORRECTED_BY_OTHER: ['AAR-5', 'warning'],
  CORRECTED_BEFORE: ['AAR-5', 'warning'],
  CORRECTED_TWICE: ['AAR-5', 'warning', 'one correction of a record', 'a further one'],
  CORRECTED_NOT_CHECKED: ['AAR-5', 'warning', 'a digest of SHA-256', 'one of another algorithm'],
});
