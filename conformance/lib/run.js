/** Asks an implementation every chosen case, and says what came of each. */

import { Answers } from './check-decisions.js';
import { CLASSES, expand } from './content.js';
import { findFault } from './judge.js';
import { Peer, PeerError } from './peer.js';
import { printable } from './printable.js';

export const PROTOCOL_VERSION = 1;
const MAX_NAME = 128;
/** The longest text that later requests repeat: ids are shorter. */
const MAX_SAVED = 256;

/**
 * @param options - `classes` undefined for those that the implementation claims; `operations` undefined for all; `filter` a part of ids
 * @returns `{name, release, claimed, results: [{id, class, operations, outcome, why?}], broken?, unclean?}`; outcomes are `passed`,
 *   `failed`, `unsupported` and `not run`; `unclean` says what was wrong about the end of a process that had answered all
 */
export async function run(command, content, { timeoutMs, classes, operations, filter, onResult = () => {} }) {
  const peer = new Peer(command, { timeoutMs });
  const results = [];
  const stop = () => void peer.close().then(() => process.exit(2));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    const hello = await greet(peer);
    if (hello.broken !== undefined) return { ...hello, results, stderr: peer.stderr };
    const chosen = choose(content.cases, classes ?? hello.claimed, operations, filter);
    let broken;
    for (const each of chosen) {
      const outcome =
        broken !== undefined
          ? { outcome: 'not run', why: 'the run had ended' }
          : hello.claimed.includes(each.class)
            ? await runCase(peer, each, content.files)
            : { outcome: 'unsupported', why: 'the implementation does not claim this class' };
      broken ??= outcome.broken;
      const result = {
        id: each.id,
        class: each.class,
        about: each.about,
        operations: operationsOf(each),
        ...outcome,
      };
      results.push(result);
      onResult(result);
    }
    const unclean = await peer.close();
    const ended = broken === undefined && unclean !== undefined ? { unclean } : {};
    return { ...hello, results, ...(broken !== undefined && { broken }), ...ended, stderr: peer.stderr };
  } finally {
    process.removeListener('SIGINT', stop);
    process.removeListener('SIGTERM', stop);
    await peer.close();
  }
}

async function greet(peer) {
  try {
    const { result, unsupported } = await peer.ask({ op: 'hello', version: PROTOCOL_VERSION });
    if (unsupported !== undefined)
      return fault(`version ${PROTOCOL_VERSION} is not supported: ${printable(unsupported)}`);
    const { version, name, release, classes } = result ?? {};
    if (version !== PROTOCOL_VERSION) return fault(`it speaks version ${printable(version)} of the protocol`);
    if (![name, release].every((text) => typeof text === 'string' && text.length <= MAX_NAME))
      return fault('its answer to hello has no name and release');
    if (!Array.isArray(classes) || classes.length === 0 || !classes.every((each) => CLASSES.includes(each)))
      return fault('its answer to hello does not claim known classes');
    return {
      name: printable(name),
      release: printable(release),
      claimed: CLASSES.filter((each) => classes.includes(each)),
    };
  } catch (error) {
    if (error instanceof PeerError) return fault(error.message);
    throw error;
  }
}

function fault(broken) {
  return { name: 'unknown', release: 'unknown', claimed: [], broken };
}

/** The cases of classes, by operation and by a part of their id. */
export function choose(cases, classes = CLASSES, operations, filter = '') {
  return cases.filter(
    (each) =>
      classes.includes(each.class) &&
      each.id.includes(filter) &&
      (operations === undefined || operationsOf(each).every((name) => operations.includes(name))),
  );
}

export function operationsOf({ op, steps }) {
  return steps === undefined ? [op] : [...new Set(steps.map((step) => step.op))];
}

async function runCase(peer, { steps, op, input, expect }, files) {
  const saved = new Map();
  const answers = new Answers();
  const all = steps ?? [{ op, input, expect }];
  for (const [index, step] of all.entries()) {
    const at = steps === undefined ? '' : `step ${index + 1} (${step.op}): `;
    let answer;
    const asked = expand(step.input, files, saved);
    try {
      answer = await peer.ask({ op: step.op, input: asked });
    } catch (error) {
      if (error instanceof PeerError)
        return { outcome: 'failed', why: `${at}${error.message}`, broken: error.message };
      throw error;
    }
    const kinds = ['result', 'unsupported', 'error'].filter((kind) => answer[kind] !== undefined);
    if (kinds.length !== 1)
      return { outcome: 'failed', why: `${at}the answer has not one of result, unsupported and error` };
    if (answer.unsupported !== undefined)
      return { outcome: 'unsupported', why: printable(answer.unsupported) };
    if (answer.error !== undefined) return { outcome: 'failed', why: `${at}${printable(answer.error)}` };
    const why = tryFault(expand(step.expect, files, saved), answer.result, answers);
    if (why !== undefined) return { outcome: 'failed', why: `${at}${why}` };
    for (const [name, path] of Object.entries(step.save ?? {})) {
      const value = path.split('/').reduce((part, member) => part?.[member], answer.result);
      if (typeof value !== 'string' || value.length > MAX_SAVED)
        return { outcome: 'failed', why: `${at}${path}: expected text of at most ${MAX_SAVED} characters` };
      saved.set(name, value);
    }
    answers.note(step.op, asked, answer.result);
  }
  return { outcome: 'passed' };
}

/** An answer may be of any form, however deep. */
function tryFault(expect, result, answers) {
  try {
    return findFault(expect, result, answers);
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) return 'the result has another form';
    throw error;
  }
}
