#!/usr/bin/env node
// What cannot even be loaded says nothing about a ledger: status 1, which Node would give, means broken evidence.
try {
  const args = process.argv.slice(2);
  const { loadProgram, readVersion } = await import('./load.js');
  // Asked by tools more often than anything else, and told without loading the program.
  if (args.length === 1 && args[0] === '--version') process.stdout.write(`${readVersion()}\n`);
  else process.exitCode = await loadProgram().main(args);
} catch (error) {
  console.error('error: INTERNAL_ERROR: northroot could not be started; this says nothing about the ledger');
  console.error(error);
  process.exitCode = 2;
}
