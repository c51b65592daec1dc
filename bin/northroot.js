#!/usr/bin/env node
// What cannot even be loaded says nothing about a ledger: status 1, which Node would give, means broken evidence.
try {
  const { loadProgram } = await import('./load.js');
  process.exitCode = await loadProgram().main(process.argv.slice(2));
} catch (error) {
  console.error('error: INTERNAL_ERROR: northroot could not be started; this says nothing about the ledger');
  console.error(error);
  process.exitCode = 2;
}
