#!/usr/bin/env node
// What cannot even be loaded says nothing about a ledger: status 1, which Node would give, means broken evidence.
import { createRequire } from 'node:module';

/** As in package.json. */
const LEAST_NODE = [20, 19];

const [major, minor] = process.versions.node.split('.').map(Number);
const isOld = major < LEAST_NODE[0] || (major === LEAST_NODE[0] && minor < LEAST_NODE[1]);

try {
  if (isOld)
    throw new Error(`expected Node.js ${LEAST_NODE.join('.')} or later, found ${process.versions.node}`);
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
  if (isOld) console.error(`error: NODE_TOO_OLD: ${error.message}\nhint: run northroot with a later Node.js`);
  else {
    console.error(
      'error: INTERNAL_ERROR: northroot could not be started; this says nothing about the ledger',
    );
    console.error(error);
  }
  process.exitCode = 2;
}
