/**
 * The command line with the commands that people and scripts run most, for its start: `bin/load.js` names them, and takes all
 * others from `other-commands.ts`.
 */

import { addAbandon } from './commands/abandon.js';
import { addAdjust } from './commands/adjust.js';
import { addAppend } from './commands/append.js';
import { addApprovals } from './commands/approvals.js';
import { addApprove, addReject } from './commands/approve.js';
import { addAuthorize } from './commands/authorize.js';
import { addBudget } from './commands/budget.js';
import { addCheckpoint } from './commands/checkpoint.js';
import { addGrant } from './commands/grant.js';
import { addHook } from './commands/hook.js';
import { addInit } from './commands/init.js';
import { addKey } from './commands/key.js';
import { addKeygen } from './commands/keygen.js';
import { addLog } from './commands/log.js';
import { addRecord } from './commands/record.js';
import { addReport } from './commands/report.js';
import { addResume, addRevoke, addSuspend } from './commands/revoke.js';
import { addShow } from './commands/show.js';
import { addStatus } from './commands/status.js';
import { addCanonicalize, addDigest, addEventId } from './commands/values.js';
import { addVerify } from './commands/verify.js';
import { addWhy } from './commands/why.js';
import { type Given, type Groups, runProgram } from './program.js';

export const GROUPS: Groups = {
  'Commands:': [
    ...[
      addInit,
      addAppend,
      addCheckpoint,
      addGrant,
      addAuthorize,
      addRecord,
      addAbandon,
      addAdjust,
      addBudget,
      addWhy,
    ],
    ...[addApprovals, addApprove, addReject, addRevoke, addSuspend, addResume, addHook],
    ...[
      addVerify,
      addReport,
      addStatus,
      addShow,
      addLog,
      addKeygen,
      addKey,
      addCanonicalize,
      addDigest,
      addEventId,
    ],
  ],
};

/** As that of `main.ts`. */
export function main(args: readonly string[], given?: Given): Promise<number> {
  return runProgram(GROUPS, args, given);
}
