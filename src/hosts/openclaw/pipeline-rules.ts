/** What must hold of events and stages of the canonical pipeline: the parts of OC-9. */

import type { HostRule } from '../shared/host.js';

/** OC-9.1 to OC-9.15. */
export const PIPELINE_RULES: readonly HostRule[] = [
  { id: 'OC-9.1', statement: 'an event has the 16 members of the envelope, each of its type, and no others' },
  { id: 'OC-9.2', statement: 'an event, and a stage, is of a family of the pipeline' },
  { id: 'OC-9.3', statement: 'an event is never changed: what has its id is the same event' },
  { id: 'OC-9.4', statement: 'a handler declares exactly one class, and one that its stage allows' },
  {
    id: 'OC-9.5',
    statement: 'a stage runs in its mode, and handlers of a sequential one run one after the other',
  },
  {
    id: 'OC-9.6',
    statement: 'handlers run by priority descending, extension id ascending, contribution id ascending',
  },
  { id: 'OC-9.7', statement: 'a synchronous stage rejects asynchronous handlers' },
  { id: 'OC-9.8', statement: 'only vetoes and resolvers decide; observers give nothing' },
  { id: 'OC-9.9', statement: 'what augmenters add is appended; only fields marked replaceable are replaced' },
  {
    id: 'OC-9.10',
    statement:
      'patches of mutators apply in order; of overrides of the model the first wins; only trusted ones replace the system prompt',
  },
  {
    id: 'OC-9.11',
    statement:
      'a veto says allow or cancel, and what one cancelled is cancelled; where the stage fails closed nothing runs after it',
  },
  {
    id: 'OC-9.12',
    statement:
      'of candidates an explicit target wins, else the valid one of the highest rank, else the first',
  },
  {
    id: 'OC-9.13',
    statement: 'a stage states its error policy, and an error has the effect that the policy says',
  },
  { id: 'OC-9.14', statement: 'a stage is of an event of its family' },
  { id: 'OC-9.15', statement: 'what was cancelled does not follow' },
];
