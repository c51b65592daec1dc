/**
 * The keys for verifying signatures ahead of order: those that policies pin and those that lines declare. A keyid is the thumbprint of
 * its key, so a signature's validity does not depend on when, or whether, the key was declared.
 */

import { tryParseWirePublicKey } from '../../format/key/public-key.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { SignatureBackend, VerificationKey } from '../../format/signature/backend.js';

/** How many keys are kept. Signatures by others are verified in order. */
const MAX_KEYS = 10_000;

/** Keys by keyid, each prepared at its first use. */
export class KnownKeys {
  readonly #backend: SignatureBackend;
  readonly #declared = new Map<string, string>();
  readonly #prepared = new Map<string, VerificationKey | undefined>();

  constructor(backend: SignatureBackend) {
    this.#backend = backend;
  }

  /** @param declared - Keyids and `public_key`s (SPEC §7). Malformed ones are ignored. */
  add(declared: readonly DeclaredKey[]): void {
    for (const { keyid, publicKey } of declared)
      if (this.#declared.size < MAX_KEYS && !this.#declared.has(keyid)) this.#declared.set(keyid, publicKey);
  }

  find(keyid: string): VerificationKey | undefined {
    if (this.#prepared.has(keyid)) return this.#prepared.get(keyid);
    const text = this.#declared.get(keyid);
    if (text === undefined) return undefined;
    const publicKey = tryParseWirePublicKey(text);
    const key = publicKey?.keyid === keyid ? this.#backend.importKey(publicKey) : undefined;
    this.#prepared.set(keyid, key);
    return key;
  }
}

export interface DeclaredKey {
  readonly keyid: string;
  readonly publicKey: string;
}

/** The keys that a line declares, whoever signed it. */
export function keysDeclaredBy(line: ExaminedLine): readonly DeclaredKey[] {
  if (line.type === 'genesis') return line.event().keys.map(toDeclared);
  if (line.type !== 'key') return [];
  const { action, key } = line.event();
  return action === 'add' ? [toDeclared(key)] : [];
}

function toDeclared(key: { readonly keyid: string; readonly public_key: string }): DeclaredKey {
  return { keyid: key.keyid, publicKey: key.public_key };
}

/** A backend that prepares each key once. */
export function rememberKeys(backend: SignatureBackend): SignatureBackend {
  const prepared = new Map<string, VerificationKey>();
  return {
    name: backend.name,
    importKey: (publicKey) => {
      const known = prepared.get(publicKey.keyid) ?? backend.importKey(publicKey);
      prepared.set(publicKey.keyid, known);
      return known;
    },
  };
}
