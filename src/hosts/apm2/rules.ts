/** The rules for recordings of apm2, from its own documents and code. */

import { rulesOf } from '../shared/findings.js';

export const APM2_RULES = rulesOf({
  'AP-1':
    "Requests in a captured log follow the grammar and limits of ToolIntent 1 and carry the episode's nonce.",
  'AP-2': 'A request id names one request of its episode, with one decision and one answer.',
  'AP-3':
    'Every execution was allowed under its request id, nothing denied was executed, and every receipt has its execution.',
  'AP-4': 'Receipts keep their form and limits, and their signatures verify.',
  'AP-5': 'The tool log index lists existing receipts, in order, in complete chunks with correct counts.',
  'AP-6': 'Arguments are canonical JSON, and their BLAKE3 is the hash in events and receipts.',
  'AP-7': 'The answer, the event and the receipt of a request state the same result hash.',
  'AP-8': 'An episode stays within its budget; a limit of 0 means no limit.',
  'AP-9':
    'An episode is attributed to work, session and adapter profile; the profile has that hash and is valid.',
  'AP-10':
    'Ledger rows are linked, hashed and signed under the domain of their type, and agree with their payload.',
  'AP-11': 'The intent that was joined is the intent that was consumed.',
});
