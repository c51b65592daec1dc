#!/usr/bin/env node
// What cannot even be loaded says nothing about a ledger: status 1, which Node would give, means broken evidence.
import { createRequire } from 'node:module';

try {
  const args = process.argv.slice(2);
  // A hook is waited for at every call of a tool: it is told without loading the program, where a service decides.
  const left =
    args[0] === 'hook'
      ? await createRequire(import.meta.url)('../dist/cli/hook.cjs').runOverService(args.slice(1))
      : {};
  if (typeof left === 'number') process.exitCode = left;
  else {
    const { loadProgram, readVersion } = await import('./load.js');
    // Asked by tools more often than anything else, and told without loading the program.
    if (args.length === 1 && args[0] === '--version') process.stdout.write(`${readVersion()}\n`);
    else process.exitCode = await (await loadProgram(args)).main(args, left);
  }
} catch (error) {
  console.error('error: INTERNAL_ERROR: northroot could not be started; this says nothing about the ledger');
  console.error(error);
  process.exitCode = 2;
}
