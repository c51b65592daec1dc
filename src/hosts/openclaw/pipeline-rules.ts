/** The rules for events and stages of the canonical pipeline: the parts of OC-9. */

import { rulesOf } from '../shared/findings.js';

export const PIPELINE_RULES = rulesOf({
  'OC-9.1': 'an event has the 16 members of the envelope, each of its type, and no others',
  'OC-9.2': 'events and stages belong to a family of the pipeline',
  'OC-9.3': 'an event never changes: the same id means the same event',
  'OC-9.4': 'a handler declares exactly one class, which its stage allows',
  'OC-9.5': 'a stage runs in its mode; handlers of a sequential stage run sequentially',
  'OC-9.6': 'handlers run by priority descending, extension id ascending, contribution id ascending',
  'OC-9.7': 'a synchronous stage rejects asynchronous handlers',
  'OC-9.8': 'only vetoes and resolvers decide; observers return nothing',
  'OC-9.9': 'additions of augmenters are appended; only fields marked replaceable are replaced',
  'OC-9.10':
    'patches of mutators apply in order; the first override of the model wins; only trusted mutators replace the system prompt',
  'OC-9.11':
    'a veto says allow or cancel, and a cancel takes effect; if the stage fails closed, nothing runs after it',
  'OC-9.12': 'an explicit target wins, else the valid candidate of the highest rank, else the first',
  'OC-9.13': 'a stage states its error policy, and errors have the effect that it says',
  'OC-9.14': 'a stage belongs to an event of its family',
  'OC-9.15': 'nothing follows a cancelled event',
});
