/** Slices from a parent's service. */

import { NorthrootError } from '../../base/error.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonValue } from '../../base/json/value.js';
import { parseSlice } from '../../log/fleet/slice-json.js';
import { requestJson } from '../json-client.js';
import type { SliceSource } from './slice-supply.js';

export interface SliceClientOptions {
  /** Of the parent's service, its path ending in `/`. */
  readonly url: URL;
  /** A token of that service which may take slices. */
  readonly token: string;
  readonly timeoutMs?: number | undefined;
}

const DEFAULT_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;

/**
 * A source of slices behind a service (`serveGate` of the parent).
 * @throws NorthrootError (from its functions) `PEER_TIMEOUT`, `PEER_UNREACHABLE`, `PEER_ANSWER_INVALID`; the code of a refusal
 */
export function sliceClient({ url, token, timeoutMs = DEFAULT_TIMEOUT_MS }: SliceClientOptions): SliceSource {
  const ask = async (path: string, body: object): Promise<JsonValue> => {
    const { status, bytes } = await requestJson({
      url: new URL(path, url),
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
      timeoutMs,
      maxBytes: MAX_ANSWER_BYTES,
    });
    const { value } = ingestJson(bytes);
    if (value === undefined || !isJsonObject(value)) throw invalid('it is no JSON object');
    if (status === 200) return value;
    const error = value['error'];
    const code = isJsonObject(error) ? error['code'] : undefined;
    if (typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code))
      throw new NorthrootError(code, `the parent's service refuses, status ${status}`);
    throw invalid(`status ${status}`);
  };
  return {
    next: async ({ childId, after, number }) => {
      const answer = await ask('v1/slice', { child_ledger_id: childId, after, number });
      try {
        return parseSlice(answer);
      } catch (cause) {
        throw invalid((cause as Error).message);
      }
    },
    settle: async (childId, settlements) => {
      await ask('v1/slice/settle', {
        child_ledger_id: childId,
        slices: settlements.map(({ sliceId, used, note }) => ({ event_id: sliceId, meter_used: used, note })),
      });
    },
  };
}

function invalid(why: string): NorthrootError {
  return new NorthrootError('PEER_ANSWER_INVALID', `the parent's service did not answer as expected: ${why}`);
}
