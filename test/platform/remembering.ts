/**
 * The platform of the tests: Node's, which remembers what it said of a signature. Nothing but key, message and signature decides that,
 * and the ledgers of `fixtures/` are verified in many ways. Tests of signatures take Node's own, by its name.
 */

import { hash } from 'node:crypto';
import * as node from '../../src/base/platform/node.js';
import type { Equation } from '../../src/base/platform/platform.js';

export * from '../../src/base/platform/node.js';

const MAX_KEYS = 10_000;
const MAX_ANSWERS = 100_000;

const keys = new Map<string, Equation>();
const answers = new Map<string, boolean>();

export function importEd25519(publicKey: Uint8Array): Equation {
  return remember('ed25519', publicKey, node.importEd25519);
}

export function importP256(publicKey: Uint8Array): Equation {
  return remember('p256', publicKey, node.importP256);
}

function remember(alg: string, publicKey: Uint8Array, importKey: typeof node.importEd25519): Equation {
  const name = `${alg} ${Buffer.from(publicKey).toString('latin1')}`;
  const known = keys.get(name);
  if (known !== undefined) return known;
  const holds = importKey(publicKey);
  const remembering: Equation = (message, signature) => {
    const question = `${name} ${Buffer.from(signature).toString('latin1')} ${hash('sha256', message, 'binary')}`;
    let answer = answers.get(question);
    if (answer === undefined) {
      answer = holds(message, signature);
      if (answers.size >= MAX_ANSWERS) answers.clear();
      answers.set(question, answer);
    }
    return answer;
  };
  if (keys.size >= MAX_KEYS) keys.clear();
  keys.set(name, remembering);
  return remembering;
}
