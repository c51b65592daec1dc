/** The rules of CyclesEvidence, beside those of all receipts. */

import { findingsOf, rulesOf } from '../../shared/findings.js';

export const CYCLES_RULES = rulesOf({
  'CYC-1':
    'an envelope has the members of cycles-evidence/v0.1 and no other, and its payload is that of its type',
  'CYC-2': 'the id of an envelope is the SHA-256 of its content',
  'CYC-3': 'the key is the one that the key set of the server gives for the time of issue',
  'CYC-4': 'a reservation is committed or released once, by the server that made it, and not before it',
  'CYC-5': 'what is charged and released is of the unit of the reservation, and adds up to it or is more',
  'CYC-6': [
    'a key set is that of the server that an envelope names',
    'a file does not say where it was fetched from',
  ],
  'CYC-7': ['every reservation has an end', 'a reservation that expires leaves no envelope'],
});

export const finding = findingsOf({
  NUMBER_NOT_EXACT: ['CYC-1', 'invalid'],
  ENVELOPE_SHAPE: ['CYC-1', 'invalid'],
  EVIDENCE_ID_MISMATCH: ['CYC-2', 'invalid'],
  SIGNER_NOT_AUTHORIZED: ['CYC-3', 'invalid'],
  RESERVATION_NOT_GIVEN: ['CYC-4', 'info', 'the reservation', 'none; what it reserved was not compared'],
  RESERVATION_REPEATED: ['CYC-4', 'warning'],
  SETTLED_TWICE: ['CYC-4', 'warning'],
  SETTLED_BEFORE: ['CYC-4', 'warning'],
  UNIT_DIFFERS: ['CYC-5', 'warning'],
  AMOUNTS_DIFFER: ['CYC-5', 'warning'],
});
