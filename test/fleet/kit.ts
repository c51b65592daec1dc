/** Ledgers of a fleet, in a folder of their own. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import type { AmountsByUnit } from '../../src/base/value/meter.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { grantSlice } from '../../src/log/fleet/grant-slice.js';
import { openSlice, sliceKey } from '../../src/log/fleet/slice.js';
import { authorizeAndStart } from '../../src/log/policy/authorize.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import { draftExecution } from '../../src/log/policy/record.js';
import { Ledger, type LedgerOptions } from '../../src/log/writer/ledger.js';

const signer = createSigner(generatePrivateKey());
export const AGENT = 'agent:a1';

export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-fleet-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function open(path: string, options: LedgerOptions = {}): Promise<Ledger> {
  return Ledger.open(path, {
    signer,
    decides: true,
    checkpoints: true,
    position: false,
    lingerMs: 0,
    ...options,
  });
}

export function create(path: string): Promise<Ledger> {
  return open(path, { create: {} });
}

/** A parent with one grant; its id. */
export async function createParent(
  path: string,
  caps: AmountsByUnit = { usd: '100' },
  more: { readonly expiresAt?: string } = {},
): Promise<{ readonly parent: Ledger; readonly grantId: string }> {
  const parent = await create(path);
  const bounds = { allowedTools: ['northroot.slice'], meterCaps: caps, ...more };
  const { eventId } = await parent.append({ event: draftGrant({ principalId: AGENT, ...bounds }) });
  return { parent, grantId: eventId };
}

/** A child that spends a slice; the slice and its grant. */
export async function createChild(
  path: string,
  parent: Ledger,
  grantId: string,
  caps: AmountsByUnit,
): Promise<{ readonly child: Ledger; readonly sliceId: string; readonly grantId: string }> {
  const child = await create(path);
  const childId = child.genesisId;
  const slice = await openSlice(parent, { grantId, childId, caps, requestKey: sliceKey(childId) });
  const granted = await grantSlice(child, slice, { allowedTools: ['fs.*'] });
  return { child, sliceId: slice.eventId, grantId: granted.eventId };
}

let made = 0;

/** Begins a call that may use so much; returns what records its end. */
export async function begin(
  ledger: Ledger,
  meters: AmountsByUnit,
): Promise<(used?: AmountsByUnit) => Promise<void>> {
  const params = sha256Digest(canonicalBytes({ n: (made += 1) }));
  const reserved = Object.entries(meters).map(([unit, amount]) => ({ unit, amount: int(amount) }));
  const decided = await authorizeAndStart(
    ledger,
    { principalId: AGENT, toolName: 'fs.read', paramsDigest: params, intentDigest: params, meters: reserved },
    { meterUsed: [] },
  );
  if (decided.started === undefined) throw new Error(decided.reason ?? String(decided.refusal));
  const { permission, startedAt } = decided.started;
  return async (used = meters) => {
    const meterUsed = Object.entries(used).map(([unit, amount]) => ({ unit, amount: int(amount) }));
    const event = draftExecution(permission, {
      startedAt,
      endedAt: startedAt,
      meterUsed,
      outcome: 'success',
    });
    await ledger.append({ event });
  };
}

export async function spend(ledger: Ledger, amount: number): Promise<void> {
  const end = await begin(ledger, { usd: String(amount) });
  await end();
}

export function int(amount: unknown): { readonly t: 'int'; readonly v: string } {
  return { t: 'int', v: String(amount) };
}
