#!/usr/bin/env node
/**
 * northroot as an implementation under test: `northroot-conformance run -- node conformance/adapter/northroot.js`, after
 * `npm run build`. It uses what the package exports, and nothing behind that.
 */

import { VERSION } from '../../dist/api/verify.js';
import { DECIDER } from './decider.js';
import { VERIFIER } from './verifier.js';
import { WITNESS } from './witness.js';
import { WRITER } from './writer.js';

const OPERATIONS = { ...VERIFIER, ...WRITER, ...DECIDER, ...WITNESS };
const HELLO = {
  version: 1,
  name: 'northroot',
  release: VERSION,
  classes: ['verifier', 'writer', 'decider', 'witness'],
};

async function answer({ id, op, input, version }) {
  if (op === 'hello') return version === 1 ? { id, result: HELLO } : { id, unsupported: 'another version' };
  const operation = Object.hasOwn(OPERATIONS, op) ? OPERATIONS[op] : undefined;
  if (operation === undefined) return { id, unsupported: `no operation ${op}` };
  try {
    return { id, result: await operation(input) };
  } catch (error) {
    return { id, error: String(error) };
  }
}

let rest = [];
for await (const chunk of process.stdin) {
  let start = 0;
  for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
    const line = Buffer.concat([...rest, chunk.subarray(start, end)]).toString();
    rest = [];
    start = end + 1;
    process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
  }
  rest.push(chunk.subarray(start));
}
