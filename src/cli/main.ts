/** The command line with all its commands. */

import { addAbandon } from './commands/abandon.js';
import { addAdjust } from './commands/adjust.js';
import { addApprovals } from './commands/approvals.js';
import { addApprove, addReject } from './commands/approve.js';
import { addResume, addRevoke, addSuspend } from './commands/revoke.js';
import { addAnchor } from './commands/anchor.js';
import { addAppend } from './commands/append.js';
import { addAuthorize } from './commands/authorize.js';
import { addBudget } from './commands/budget.js';
import { addCheckpoint } from './commands/checkpoint.js';
import { addCompletion } from './commands/completion.js';
import { addCopy } from './commands/copy.js';
import { addDiff } from './commands/diff.js';
import { addDisclose } from './commands/disclose.js';
import { addDoctor } from './commands/doctor.js';
import { addExport } from './commands/export.js';
import { addFleet } from './commands/fleet.js';
import { addGate } from './commands/gate.js';
import { addGrant } from './commands/grant.js';
import { addCheck, addImport } from './commands/import.js';
import { addHook } from './commands/hook.js';
import { addInit } from './commands/init.js';
import { addKey } from './commands/key.js';
import { addKeygen } from './commands/keygen.js';
import { addIndex } from './commands/ledger-index.js';
import { addLlm } from './commands/llm.js';
import { addLog } from './commands/log.js';
import { addMcp } from './commands/mcp.js';
import { addPrices } from './commands/prices.js';
import { addProve } from './commands/prove.js';
import { addReconcile } from './commands/reconcile.js';
import { addRecord } from './commands/record.js';
import { addExplain, addSchema } from './commands/reference.js';
import { addRepair } from './commands/repair.js';
import { addReport } from './commands/report.js';
import { addRunAgent } from './commands/run-agent.js';
import { addServe } from './commands/serve.js';
import { addSettle } from './commands/settle.js';
import { addShow } from './commands/show.js';
import { addDraftGrant, addSimulate } from './commands/simulate.js';
import { addSlice } from './commands/slice.js';
import { addStatus } from './commands/status.js';
import { addTiles } from './commands/tiles.js';
import { addTrust } from './commands/trust.js';
import { addCanonicalize, addDigest, addEventId } from './commands/values.js';
import { addVerifyProof } from './commands/verify-proof.js';
import { addVerify } from './commands/verify.js';
import { addWhy } from './commands/why.js';
import { addWitness } from './commands/witness.js';
import { type Given, type Groups, REFERENCE, runProgram } from './program.js';

export const GROUPS: Groups = {
  'Ledgers:': [addInit, addAppend, addCheckpoint, addCopy, addRepair, addIndex],
  'Grants and budgets:': [
    addGrant,
    addSimulate,
    addDraftGrant,
    addAuthorize,
    addRecord,
    addAbandon,
    addAdjust,
    addBudget,
    addPrices,
    addWhy,
  ],
  'Approving and stopping:': [addApprovals, addApprove, addReject, addRevoke, addSuspend, addResume],
  'Many ledgers:': [addSlice, addSettle, addAnchor, addFleet],
  'In the path of calls:': [addServe, addLlm, addMcp, addRunAgent, addGate, addHook, addDoctor],
  'Verifying and reading:': [
    addVerify,
    addReport,
    addStatus,
    addShow,
    addLog,
    addDiff,
    addProve,
    addVerifyProof,
  ],
  'Other systems:': [addImport, addCheck, addReconcile],
  'Keys and trust:': [addKeygen, addKey, addTrust],
  'Exporting and publishing:': [addExport, addDisclose, addTiles, addWitness],
  [REFERENCE]: [addCanonicalize, addDigest, addEventId, addSchema, addExplain, addCompletion],
};

/** Runs a command; returns the exit status. */
export function main(args: readonly string[], given?: Given): Promise<number> {
  return runProgram(GROUPS, args, given);
}
