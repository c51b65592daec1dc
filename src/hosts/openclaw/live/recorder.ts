/** Recordings of a pipeline, as lines that `check --as openclaw-pipeline` reads. */

import { createHmac, randomBytes } from 'node:crypto';
import { NorthrootError } from '../../../base/error.js';
import { canonicalText } from '../../../base/json/canonicalize.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/json/value.js';
import { checkOptions } from '../../../base/options.js';
import { MAX_ITEM_BYTES } from '../../shared/reading.js';
import type { PipelineEvent } from './event.js';
import type { StageTrace } from './runner.js';

export interface RecorderOptions {
  /** Keeps contents: parameters, prompts, messages, results. Default false: each text and number of them is a keyed digest. */
  readonly contents?: boolean | undefined;
}

/** Members of an event that may hold contents. */
const CONTENTS = [
  ...['accountRef', 'conversationRef', 'threadRef', 'messageRef'],
  ...['payload', 'metadata', 'providerMetadata'],
];

/** Members of a payload that name a call. */
const NAMES: readonly string[] = ['toolName', 'toolCallId'];

/**
 * What `record` of a pipeline may be: it writes each event and each trace as one line of JSON. Without contents, equal texts have equal
 * digests within the recording, so that it can be checked all the same; their key is random and kept nowhere.
 *
 * @param write - Given each line with its line feed, in order. What it throws is a problem `RECORDING_FAILED` of the pipeline
 * @throws TypeError for malformed options
 */
export function createRecorder(
  write: (line: string) => void,
  options: RecorderOptions = {},
): (item: PipelineEvent | StageTrace) => void {
  if (typeof write !== 'function') throw new TypeError('createRecorder: expected write to be a function');
  checkOptions('createRecorder', options, { contents: 'boolean' });
  const { contents = false } = options;
  const hidden = hiderOf(randomBytes(32));
  return (item) => {
    const given = item as unknown as JsonObject;
    const text = canonicalText(
      contents ? given : 'trace' in item ? hideTrace(given, hidden) : hideEvent(given, hidden),
    );
    if (Buffer.byteLength(text) > MAX_ITEM_BYTES)
      throw new NorthrootError(
        'LINE_TOO_LONG',
        `a line of more than ${MAX_ITEM_BYTES} bytes cannot be read again`,
      );
    write(`${text}\n`);
  };
}

type Hide = (value: JsonValue) => JsonValue;

/** What stands for contents: of objects and lists the same shape, with digests for texts, numbers and inner names. */
function hiderOf(key: Uint8Array): Hide {
  const digest = (text: string): string =>
    `hmac:${createHmac('sha256', key).update(text).digest('base64url').slice(0, 22)}`;
  const hide = (value: JsonValue): JsonValue => {
    if (typeof value === 'string') return value === '' ? '' : digest(`t${value}`);
    if (typeof value === 'number') return digest(`n${value}`);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(hide);
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [digest(`k${name}`), hide(each)]));
  };
  return hide;
}

/** The same with the names of the fields themselves, which the rules of stages speak of. */
function hideFields(value: JsonValue | undefined, hide: Hide): JsonValue {
  if (!isJsonObject(value)) return hide(value ?? null);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, hide(each)]));
}

function hideEvent(event: JsonObject, hide: Hide): JsonObject {
  const hidden = Object.fromEntries(
    Object.entries(event).map(([name, value]) => [
      name,
      CONTENTS.includes(name) ? hideFields(value, hide) : value,
    ]),
  );
  const { payload } = event;
  if (!isJsonObject(payload)) return hidden;
  const names = NAMES.filter((name) => Object.hasOwn(payload, name)).map((name) => [
    name,
    payload[name] ?? null,
  ]);
  return {
    ...hidden,
    payload: { ...(hidden['payload'] as JsonObject), ...(Object.fromEntries(names) as JsonObject) },
  };
}

function hideTrace(trace: JsonObject, hide: Hide): JsonObject {
  const { input, output, handlers, providers } = trace;
  return {
    ...trace,
    ...(providers === undefined ? {} : { providers: hide(providers) }),
    input: hideObjects(input, hide),
    output: hideObjects(output, hide),
    handlers: (handlers as JsonObject[]).map((handler) => {
      const { sees, result } = handler;
      return {
        ...handler,
        ...(sees === undefined ? {} : { sees: hideFields(sees, hide) }),
        ...(result === undefined ? {} : { result: hideResult(result as JsonObject, hide) }),
      };
    }),
  };
}

function hideObjects(value: JsonValue | undefined, hide: Hide): JsonObject {
  const { context, working, selected, ...rest } = value as JsonObject;
  return {
    ...rest,
    context: hideFields(context, hide),
    working: hideFields(working, hide),
    ...(selected === undefined ? {} : { selected: hide(selected) }),
  };
}

function hideResult({ add, patch, reason, candidates, ...rest }: JsonObject, hide: Hide): JsonObject {
  return {
    ...rest,
    ...(add === undefined ? {} : { add: hideFields(add, hide) }),
    ...(patch === undefined ? {} : { patch: hideFields(patch, hide) }),
    ...(reason === undefined ? {} : { reason: hide(reason) }),
    ...(candidates === undefined
      ? {}
      : {
          candidates: (candidates as JsonObject[]).map((each) => ({
            ...each,
            target: hide(each['target'] ?? null),
          })),
        }),
  };
}
