/** The rules of Clasper's adapter contract that its files can decide. Open points are in docs/hosts/clasper.md. */

import { rulesOf } from '../shared/findings.js';

export const CLASPER_RULES = rulesOf({
  'CLA-1':
    'Telemetry is signed: payload hash and signature are right, all members are covered, and the key was not revoked at issue.',
  'CLA-2': 'The ids of an envelope match those of its payload and of the trace in it.',
  'CLA-3':
    'An execution that reports anything was allowed or approved before; a denied or pending one reports nothing.',
  'CLA-4':
    'An execution stays within its scope: capabilities, steps, cost, and the time until which it may start anything.',
  'CLA-5':
    'A decision token is consumed at most once, after the approval, by its holder and for its purpose; a decision is resolved once.',
  'CLA-6':
    'A tool token is used once, for its execution, tool and scope, before it expires; a refused tool does not run.',
  'CLA-7': 'Repeated telemetry of one execution and event type has the same content.',
  'CLA-8': 'The steps of a trace form a chain: each hash is right and names the previous one.',
  'CLA-9':
    "A tenant's audit chain has no gap, correct hashes, reaches the known head, and holds the audit log and the traces.",
  'CLA-10':
    'The files of a bundle are those in its integrity file, with their digests and counts, signed by the pinned key; its traces are the ingested ones.',
  'CLA-11': 'An execution that is requested again is not allowed more than before.',
  'CLA-12': 'An approval is given by a person with the required role or a higher one.',
});
