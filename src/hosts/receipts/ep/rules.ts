/** The rules of EP receipts, beside those of all receipts. */

import { findingsOf, rulesOf } from '../../shared/findings.js';

export const EP_RULES = rulesOf({
  'EP-1': 'a document says that it is EP-RECEIPT-v1: another artifact, however signed, is no receipt',
  'EP-2': 'all numbers are whole and safe; other amounts are texts',
  'EP-3': 'it has a payload, and a signature with its algorithm, Ed25519, and its value in base64url',
  'EP-4': 'an anchor is of EP-MERKLE-v2, its leaf is that of this payload, and its path leads to its root',
  'EP-5': [
    'the root of an anchor is that of a log that others see',
    'a receipt states the root itself, and nothing in it signs it',
  ],
  'EP-6': ['a receipt is not revoked', 'revocations are statements of their own, and none is given'],
});

export const finding = findingsOf({
  VERSION_UNSUPPORTED: ['EP-1', 'invalid'],
  NUMBER_NOT_SAFE: ['EP-2', 'invalid'],
  PROOF_MISSING: ['EP-3', 'invalid'],
  ALGORITHM_UNSUPPORTED: ['EP-3', 'invalid'],
  SIGNATURE_ENCODING: ['EP-3', 'invalid'],
  ANCHOR_LEGACY: ['EP-4', 'invalid'],
  ANCHOR_INCOMPLETE: ['EP-4', 'invalid'],
  ANCHOR_UNBOUND: ['EP-4', 'invalid'],
  ANCHOR_MISMATCH: ['EP-4', 'invalid'],
});
