/** What a service on a Unix socket says of itself. */

import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject } from '../../base/json/value.js';
import { Wire } from '../hook/wire.js';

export interface ServiceState {
  readonly status: 'ok' | 'failed';
  /** Of several services of a ledger. */
  readonly role?: 'leader' | 'follower' | undefined;
}

/** A service that does not answer by then is not waited for. */
const ANSWER_MS = 1_000;

/** @returns Undefined where no service answers */
export async function askState(socket: string): Promise<ServiceState | undefined> {
  const wire = await Wire.connect(socket, undefined);
  if (wire === undefined) return undefined;
  const timer = setTimeout(() => wire.close(), ANSWER_MS);
  try {
    const { value } = ingestJson((await wire.request('GET', '/healthz', '')).body, { numbers: 'double' });
    if (!isJsonObject(value)) return undefined;
    const { status, role } = value;
    if (status !== 'ok' && status !== 'failed') return undefined;
    return { status, role: role === 'leader' || role === 'follower' ? role : undefined };
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    wire.close();
  }
}
