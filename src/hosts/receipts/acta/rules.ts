/** The rules of Acta receipts, beside those of all receipts. */

import { findingsOf, rulesOf } from '../../shared/findings.js';

export const ACTA_RULES = rulesOf({
  'ACTA-1': 'a receipt is an envelope of payload and signature, or flat, and has what its shape must have',
  'ACTA-2':
    'its signature is of a known algorithm, in lower-case hexadecimal, and nothing of it is in what is signed',
  'ACTA-3': 'the issuer is whom the key is named after',
  'ACTA-4': 'a key that a receipt carries proves nothing, and is the one that it is signed by',
  'ACTA-5': 'a receipt is issued while its key is valid',
  'ACTA-6':
    'a link is the SHA-256 of the whole receipt before it, in the order of the file, and each receipt has one successor',
  'ACTA-7': ['a set of receipts is complete', 'nothing in a chain says how long it is'],
  'ACTA-8': ['what was allowed was executed', 'a receipt of a decision says nothing about its execution'],
});

export const finding = findingsOf({
  SHAPE_UNKNOWN: ['ACTA-1', 'invalid'],
  FIELD_MISSING: ['ACTA-1', 'invalid'],
  NUMBER_NOT_EXACT: ['ACTA-1', 'invalid'],
  SIGNATURE_MISSING: ['ACTA-2', 'invalid'],
  ALGORITHM_UNSUPPORTED: ['ACTA-2', 'invalid'],
  SIGNATURE_ENCODING: ['ACTA-2', 'invalid'],
  SIGNATURE_IN_PAYLOAD: ['ACTA-2', 'invalid'],
  ISSUER_MISMATCH: ['ACTA-3', 'invalid'],
  EMBEDDED_KEY: [
    'ACTA-4',
    'warning',
    'a key from elsewhere',
    'only the key that the receipt carries, which counts for nothing',
  ],
  EMBEDDED_KEY_DIFFERS: ['ACTA-4', 'invalid', 'the key that it is signed by', 'another'],
  KEY_OUTSIDE_WINDOW: ['ACTA-5', 'invalid'],
  WINDOW_NOT_APPLICABLE: ['ACTA-5', 'invalid', 'a time of issue and bounds with offsets', 'other text'],
  KEY_REVOKED: ['ACTA-5', 'warning'],
  WINDOW_NOT_STATED: ['ACTA-5', 'info', 'from when to when the key is valid', 'nothing that says it'],
  LINK_MALFORMED: ['ACTA-6', 'invalid', 'sha256: and 64 lower-case hexadecimal digits'],
  LINK_WITHOUT_ALGORITHM: [
    'ACTA-6',
    'info',
    'sha256: before the digits',
    'the digits alone, as revision 02 has them',
  ],
  LINK_EMPTY: ['ACTA-6', 'info', 'no link in a first receipt', 'null, as revisions before 03 have it'],
  LINK_OF_PAYLOAD: [
    'ACTA-6',
    'warning',
    'the digest of the whole receipt',
    'that of its payload, as before revision 03',
  ],
  LINK_TO_OTHER_ISSUER: ['ACTA-6', 'warning'],
  CHAIN_ORDER: ['ACTA-6', 'invalid', 'a receipt before it', 'one after it'],
});
