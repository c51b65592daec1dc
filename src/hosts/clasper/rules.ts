/** The rules of Clasper's adapter contract, as far as its files are about them. */

import type { HostRule } from '../shared/host.js';

/** CLA-1 to CLA-12. Each is decided; what its files leave open is in docs/hosts/clasper.md. */
export const CLASPER_RULES: readonly HostRule[] = [
  {
    id: 'CLA-1',
    statement:
      'Telemetry is signed: the envelope’s payload hash and signature are right, its members are all covered, and its key was not revoked when it was issued.',
  },
  { id: 'CLA-2', statement: 'The ids of an envelope are those of its payload, and of the trace in it.' },
  {
    id: 'CLA-3',
    statement:
      'What an execution reports was allowed before, or approved; nothing is reported of one that was denied or is pending.',
  },
  {
    id: 'CLA-4',
    statement:
      'An execution keeps to its scope: capabilities, steps, cost, and the time until which it may begin anything.',
  },
  {
    id: 'CLA-5',
    statement:
      'A decision token is consumed at most once, after the approval, by whom and for what it was issued; a decision is resolved once.',
  },
  {
    id: 'CLA-6',
    statement:
      'A tool token is used once, by the execution, for the tool and the scope that it was issued for, before it expires; a tool that was refused does not run.',
  },
  {
    id: 'CLA-7',
    statement: 'What is ingested again for one execution and type of event has the same content.',
  },
  {
    id: 'CLA-8',
    statement: 'The steps of a trace are a chain: each hash is right, each names the one before it.',
  },
  {
    id: 'CLA-9',
    statement:
      'The audit chain of a tenant has no gap, each hash is right, it reaches the head that is known, and the audit log and the traces are in it.',
  },
  {
    id: 'CLA-10',
    statement:
      'A bundle’s files are those that its integrity file lists, with their digests and counts, signed by the pinned key; its traces are what was ingested.',
  },
  { id: 'CLA-11', statement: 'An execution that is requested again is not allowed more than before.' },
  {
    id: 'CLA-12',
    statement: 'An approval is given by somebody with the role that it requires, or a higher one.',
  },
];
