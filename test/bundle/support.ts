/** What the tests of bundles share: bundles made in memory, of fixtures and of ledgers that a checkpoint seals. */

import { readFileSync } from 'node:fs';
import { exportBundle, type BundleExport, type BundleOptions } from '../../src/proof/bundle/export-bundle.js';
import { bytesSource } from '../bytes-source.js';
import type { JsonObject } from '../../src/base/json/value.js';
import type { OpenLedger } from '../../src/rules/source/read-lines.js';
import type { Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { makeKeyEntry } from '../../src/rules/trust/key-entry.js';
import { FIXTURES } from '../fixtures/cases.js';
import { ed25519Key } from '../key/key-samples.js';
import { noteOf } from '../proof/support.js';
import { ledgerOf, linesOf } from '../verify/support.js';

/** The log of the sealed fixtures, and their exporter. */
export const log = createSigner(ed25519Key(Buffer.alloc(32, 21)));
export const exporter = createSigner(ed25519Key(Buffer.alloc(32, 22)));

export function opener(bytes: Uint8Array, name = 'ledger.jsonl'): OpenLedger {
  return () => Promise.resolve(bytesSource(bytes, name));
}

export interface MadeBundle extends BundleExport {
  readonly file: Buffer;
}

/** Makes a bundle of a ledger's bytes. */
export async function bundleOf(
  ledger: Uint8Array,
  options: BundleOptions = {},
  name?: string,
): Promise<MadeBundle> {
  const pieces: Uint8Array[] = [];
  const made = await exportBundle(
    opener(ledger, name),
    {
      write: (piece) => {
        pieces.push(Buffer.from(piece as Uint8Array));
        return undefined;
      },
    },
    options,
  );
  return { ...made, file: Buffer.concat(pieces) };
}

/** A ledger, a checkpoint over all of it by {@link log}, and the policy that pins its own keys and that one. */
export interface Sealed {
  readonly lines: readonly Buffer[];
  readonly ledger: Buffer;
  readonly note: Buffer;
  readonly trust: TrustPolicy;
}

export function sealFixture(file: string): Sealed {
  return seal(linesOf(readFileSync(`${FIXTURES}${file}`)));
}

export function seal(lines: readonly Buffer[], by: Signer = log): Sealed {
  const { origin = '', keys = [] } = eventOf(lines[0]) as {
    origin?: string;
    keys?: readonly Key[];
  };
  const entry = makeKeyEntry(by.publicKey, { roles: ['checkpoint'] });
  return {
    lines,
    ledger: ledgerOf(lines),
    note: noteOf(lines, { origin, by }),
    trust: { trust_version: '1', origins: [origin], keys: [...keys, entry] },
  };
}

export function eventOf(line: Uint8Array): JsonObject {
  return (JSON.parse(Buffer.from(line).toString()) as { event: JsonObject }).event;
}
