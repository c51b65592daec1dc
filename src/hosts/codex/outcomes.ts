/** How calls ended: outputs are texts for the model, most of which say it in words of Codex's own. */

import { encodeUtf8 } from '../../base/bytes/text.js';
import { decodeSourceJson, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { Quantity } from '../../base/value/quantity.js';
import { amountOf, listAt, numberAt, textAt, valueAt } from '../shared/values.js';

export interface Outcome {
  readonly denial?: string | undefined;
  readonly notCalled?: string | undefined;
  readonly outcome: 'success' | 'failure' | 'unknown';
  readonly errorCode?: string | undefined;
  readonly duration?: Quantity | undefined;
}

const DENIALS: readonly (readonly [string, RegExp])[] = [
  [
    'USER_REJECTED',
    /^(?:(?:exec command |patch )?rejected by user|user (?:rejected|cancelled) MCP tool call)\.?$/,
  ],
  ['HOOK_DENIED', /^Command blocked by PreToolUse hook: /],
  ['POLICY_DENIED', /^(?:(?:exec command|patch) rejected: |approval policy is .{1,64}; reject command)/],
];
const NOT_CALLED: readonly (readonly [string, RegExp])[] = [
  ['TOOL_UNKNOWN', /^unsupported (?:custom tool )?call: /],
  ['INPUT_REFUSED', /^failed to parse function arguments: /],
];
/** Codex's own words for what failed before or beside the tool's own output. */
const FAILED = /^(?:execution error: |exec_command failed|apply_patch verification failed: |Script failed\n)/;

/** How an output says that its call ended. @param event - What the end of the call was told with, where it was. */
export function outcomeOf(output: SourceValue | undefined, event: SourceObject | undefined): Outcome {
  const told = event === undefined ? undefined : outcomeOfEvent(event);
  if (told !== undefined && (told.outcome !== 'unknown' || told.denial !== undefined)) return told;
  const text = textOf(output);
  const code = (list: typeof DENIALS): string | undefined => list.find(([, words]) => words.test(text))?.[0];
  const [denial, notCalled] = [code(DENIALS), code(NOT_CALLED)];
  if (denial !== undefined || notCalled !== undefined) return { denial, notCalled, outcome: 'unknown' };
  const said = saidIn(text);
  if (said !== undefined) return said;
  const success = valueAt(output, 'success');
  if (typeof success === 'boolean') return { outcome: success ? 'success' : 'failure' };
  return told ?? { outcome: 'unknown' };
}

/** How an event about the end of a call says that it ended. */
export function outcomeOfEvent(event: SourceObject): Outcome {
  const status = textAt(event, 'status');
  const duration = durationOf(valueAt(event, 'duration'));
  if (status === 'declined') return { denial: 'USER_REJECTED', outcome: 'unknown' };
  const exit = numberAt(event, 'exit_code');
  if (exit !== undefined) return { ...byExit(exit), duration };
  const result = valueAt(event, 'result');
  if (result instanceof SourceObject) {
    const isError =
      result.has('Err') ||
      valueAt(result, 'Ok', 'isError') === true ||
      valueAt(result, 'Ok', 'is_error') === true;
    if (isError || result.has('Ok')) return { outcome: isError ? 'failure' : 'success', duration };
  }
  const success = valueAt(event, 'success');
  if (success === true || status === 'completed') return { outcome: 'success', duration };
  if (success === false || status === 'failed') return { outcome: 'failure', duration };
  return { outcome: 'unknown', duration };
}

function saidIn(text: string): Outcome | undefined {
  if (text.startsWith('{')) {
    const decoded = decodeSourceJson(encodeUtf8(text));
    const exit = decoded.ok ? numberAt(decoded.value, 'metadata', 'exit_code') : undefined;
    if (!decoded.ok || exit === undefined) return undefined;
    return {
      ...byExit(exit),
      duration: inMilliseconds(numberAt(decoded.value, 'metadata', 'duration_seconds')),
    };
  }
  if (/^aborted by user\b/.test(text)) return { outcome: 'failure', errorCode: 'INTERRUPTED' };
  if (FAILED.test(text)) return { outcome: 'failure' };
  if (text.startsWith('Script completed\n')) return { outcome: 'success' };
  // What a tool wrote itself begins after this.
  const head = /^(?:(?!Output:)[^\n]{0,200}\n){1,8}/.exec(text)?.[0] ?? text.slice(0, 200);
  if (!/^(?:Chunk ID|Wall time|Exit code|Process)\b/.test(head)) return undefined;
  const exit = /^(?:Exit code:|Process exited with code) (-?\d{1,10})$/m.exec(head)?.[1];
  if (exit === undefined) return undefined;
  const duration = inMilliseconds(/^Wall time:? (\d{1,9}(?:\.\d{1,9})?) seconds$/m.exec(head)?.[1]);
  return { ...byExit(exit), duration };
}

function byExit(exit: string): Pick<Outcome, 'outcome' | 'errorCode'> {
  if (exit === '0') return { outcome: 'success' };
  return { outcome: 'failure', errorCode: /^\d{1,10}$/.test(exit) ? `EXIT_${exit}` : 'FAILED' };
}

function durationOf(value: SourceValue | undefined): Quantity | undefined {
  const [seconds, nanos] = [numberAt(value, 'secs'), numberAt(value, 'nanos')];
  if (seconds === undefined || nanos === undefined || !/^\d{1,15}$/.test(seconds) || !/^\d{1,9}$/.test(nanos))
    return undefined;
  return inMilliseconds(`${seconds}.${nanos.padStart(9, '0')}`);
}

function inMilliseconds(seconds: string | undefined): Quantity | undefined {
  return seconds === undefined || /e/i.test(seconds) ? undefined : amountOf(`${seconds}e3`);
}

/** The text of an output: of a list its first text. */
function textOf(output: SourceValue | undefined): string {
  if (typeof output === 'string') return output;
  if (output instanceof SourceObject) return textAt(output, 'content') ?? '';
  const first = listAt(output)?.find((each) => textAt(each, 'text') !== undefined);
  return textAt(first, 'text') ?? '';
}
