/**
 * Ed25519 by the host's own Web Cryptography where that gives SPEC §5's verdict: many times as fast as plain JavaScript. It answers
 * only later, and the rules ask at once; so the signatures of a piece of the ledger are computed before the piece is verified, and
 * what was not computed, or not of these very bytes, is left to the other backend. Whether the host decides by the cofactorless
 * equation is probed first, with a signature on which the two equations differ.
 */

import { equalBytes } from '../../../base/bytes/compare.js';
import { tryDecodeBase64url } from '../../../base/bytes/encoding.js';
import { decodeLatin1, decodeUtf8, encodeUtf8 } from '../../../base/bytes/text.js';
import { MemberMarks, scanCanonical } from '../../../base/json/scan.js';
import { importNobleEd25519 } from '../../../base/platform/noble-ed25519.js';
import { findMember } from '../../../format/record/event-bytes.js';
import { MAX_LINE_BYTES } from '../../../format/record/line-splitter.js';
import { importVerificationKey, type SignatureBackend } from '../../../format/signature/backend.js';
import { eventMessage } from '../../../format/signature/event-signature.js';

/** A key as the host holds it. */
type HostKey = object;

/** The part of Web Cryptography that is used. */
export interface HostCrypto {
  importKey(
    format: 'raw',
    key: Uint8Array,
    algorithm: 'Ed25519',
    extractable: boolean,
    usages: readonly ['verify'],
  ): Promise<HostKey>;
  verify(algorithm: 'Ed25519', key: HostKey, signature: Uint8Array, message: Uint8Array): Promise<boolean>;
}

interface Answer {
  readonly message: Uint8Array;
  readonly holds: boolean;
}

interface KnownKey {
  readonly hostKey: Promise<HostKey>;
  /** By signature, as latin1. */
  readonly answers: Map<string, Answer>;
}

const NEWLINE = 0x0a;
const SIGNATURE_LENGTH = 64;

/** A key, a message, a valid signature, and one whose R has a part of order 8: only the cofactored equation accepts it. */
const PROBE = {
  key: 'F6WMBXKHW4RYpTyiBmRFbNWS2h-gxLtN9O6M5eQHJwA',
  message: 'northroot',
  right: 'PI0i2r8Ri_QmX4d7UuZbyGtl_7vcntPGlbQjaj2Z0RdDvx8RpvRyjOEULPmV1KItk5G3_49F4xdOedsTNAHVAg',
  cofactored: 'Wo-1Op0S1QUZtnamUkwod8oo2E4dTeOi3mGOV7rof4tZ_FgiRooFpkDFI_leP4wO555044QpPcafUj7zv_zaBQ',
};

/** Whether a host has Ed25519, and decides by the equation of SPEC §5. */
export async function isExact(host: HostCrypto): Promise<boolean> {
  try {
    const key = await importHostKey(host, decode(PROBE.key));
    const message = encodeUtf8(PROBE.message);
    const other = encodeUtf8(`${PROBE.message}.`);
    const answers = await Promise.all([
      host.verify('Ed25519', key, decode(PROBE.right), message),
      host.verify('Ed25519', key, decode(PROBE.right), other),
      host.verify('Ed25519', key, decode(PROBE.cofactored), message),
    ]);
    return answers.join() === 'true,false,false';
  } catch {
    return false;
  }
}

export class NativeSignatures {
  readonly #host: HostCrypto;
  readonly #keys = new Map<string, KnownKey>();
  readonly #marks = new MemberMarks();
  /** How many signatures the host answered for. */
  used = 0;

  /** @param host - One that {@link isExact}. */
  constructor(host: HostCrypto) {
    this.#host = host;
  }

  /** Gives every signature the verdict that each other backend gives. */
  readonly backend: SignatureBackend = {
    name: 'webcrypto',
    importKey: (publicKey) =>
      importVerificationKey(publicKey, (bytes) => {
        const answers = new Map<string, Answer>();
        const hostKey = importHostKey(this.#host, bytes);
        // Reported where it is awaited.
        hostKey.catch(() => undefined);
        this.#keys.set(publicKey.keyid, { hostKey, answers });
        const holds = importNobleEd25519(bytes);
        return (message, signature) => {
          const answer = answers.get(decodeLatin1(signature));
          if (answer === undefined || !equalBytes(answer.message, message)) return holds(message, signature);
          this.used += 1;
          return answer.holds;
        };
      }),
  };

  /** Asks the host for the signatures in whole lines, by keys that are known; forgets those before. */
  async prepare(lines: Uint8Array): Promise<void> {
    for (const { answers } of this.#keys.values()) answers.clear();
    const asked: Promise<void>[] = [];
    for (let start = 0, end = lines.indexOf(NEWLINE); end !== -1; end = lines.indexOf(NEWLINE, start)) {
      const line = lines.subarray(start, end);
      start = end + 1;
      if (line.length > 0 && line.length <= MAX_LINE_BYTES) asked.push(...this.#ask(line));
    }
    await Promise.all(asked);
  }

  /** Skips what is not a record. */
  #ask(line: Uint8Array): Promise<void>[] {
    if (scanCanonical(line, 0, line.length, this.#marks) !== -1) return [];
    const event = findMember(line, this.#marks, 'event');
    const signatures = findMember(line, this.#marks, 'signatures');
    if (event === undefined || signatures === undefined) return [];
    const entries: unknown = JSON.parse(decodeUtf8(line.subarray(signatures.start, signatures.end)));
    if (!Array.isArray(entries)) return [];
    let message: Uint8Array | undefined;
    return (entries as readonly unknown[]).flatMap((entry) => {
      const { keyid, sig } = (entry ?? {}) as { readonly keyid?: unknown; readonly sig?: unknown };
      const known = typeof keyid === 'string' ? this.#keys.get(keyid) : undefined;
      const signature = typeof sig === 'string' ? tryDecodeBase64url(sig) : undefined;
      if (known === undefined || signature?.length !== SIGNATURE_LENGTH) return [];
      message ??= eventMessage(line.subarray(event.start, event.end));
      return [this.#askOne(known, signature, message)];
    });
  }

  async #askOne({ hostKey, answers }: KnownKey, signature: Uint8Array, message: Uint8Array): Promise<void> {
    try {
      const holds = await this.#host.verify('Ed25519', await hostKey, signature, message);
      answers.set(decodeLatin1(signature), { message, holds });
    } catch {
      // The other backend answers.
    }
  }
}

function importHostKey(host: HostCrypto, bytes: Uint8Array): Promise<HostKey> {
  return host.importKey('raw', bytes, 'Ed25519', false, ['verify']);
}

function decode(text: string): Uint8Array {
  return tryDecodeBase64url(text) ?? new Uint8Array();
}
