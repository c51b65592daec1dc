/**
 * The commands that `frequent.ts` does not have, each by itself: what it does not need is not loaded. `main.ts` has all, for the help and
 * for misspelt names.
 */

import { type Given, type Groups, runProgram } from './program.js';

/** By the command's name. */
export const OTHERS: Readonly<Record<string, () => Promise<Groups[string]>>> = {
  anchor: async () => [(await import('./commands/anchor.js')).addAnchor],
  check: async () => [(await import('./commands/import.js')).addCheck],
  copy: async () => [(await import('./commands/copy.js')).addCopy],
  diff: async () => [(await import('./commands/diff.js')).addDiff],
  disclose: async () => [(await import('./commands/disclose.js')).addDisclose],
  doctor: async () => [(await import('./commands/doctor.js')).addDoctor],
  'draft-grant': async () => [(await import('./commands/simulate.js')).addDraftGrant],
  explain: async () => [(await import('./commands/reference.js')).addExplain],
  export: async () => [(await import('./commands/export.js')).addExport],
  fleet: async () => [(await import('./commands/fleet.js')).addFleet],
  gate: async () => [(await import('./commands/gate.js')).addGate],
  import: async () => [(await import('./commands/import.js')).addImport],
  index: async () => [(await import('./commands/ledger-index.js')).addIndex],
  llm: async () => [(await import('./commands/llm.js')).addLlm],
  mcp: async () => [(await import('./commands/mcp.js')).addMcp],
  prices: async () => [(await import('./commands/prices.js')).addPrices],
  prove: async () => [(await import('./commands/prove.js')).addProve],
  reconcile: async () => [(await import('./commands/reconcile.js')).addReconcile],
  repair: async () => [(await import('./commands/repair.js')).addRepair],
  'run-agent': async () => [(await import('./commands/run-agent.js')).addRunAgent],
  schema: async () => [(await import('./commands/reference.js')).addSchema],
  serve: async () => [(await import('./commands/serve.js')).addServe],
  settle: async () => [(await import('./commands/settle.js')).addSettle],
  simulate: async () => [(await import('./commands/simulate.js')).addSimulate],
  slice: async () => [(await import('./commands/slice.js')).addSlice],
  tiles: async () => [(await import('./commands/tiles.js')).addTiles],
  trust: async () => [(await import('./commands/trust.js')).addTrust],
  'verify-proof': async () => [(await import('./commands/verify-proof.js')).addVerifyProof],
  witness: async () => [(await import('./commands/witness.js')).addWitness],
};

interface Program {
  main(args: readonly string[], given?: Given): Promise<number>;
}

/** What runs a command: that one alone, or all of them. */
export async function loadCommand(name = ''): Promise<Program> {
  const load = Object.hasOwn(OTHERS, name) ? OTHERS[name] : undefined;
  if (load === undefined) {
    const { main } = await import('./main.js');
    return { main };
  }
  const groups = { 'Commands:': await load() };
  return { main: (args, given) => runProgram(groups, args, given) };
}
