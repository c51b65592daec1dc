/** The data blocks of the page: base64, raw deflate. */

import type { JsonObject } from '../../../base/json/value.js';
import { CORE_ID, type Embedded, EMBEDDED_ID, LEDGER_TYPE } from '../embedded.js';
import type { Inputs } from '../model/protocol.js';

/** @throws Error for what is no base64 */
export function decodeBlock(text: string): Uint8Array<ArrayBuffer> {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < characters.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** Decompresses raw deflate. */
export async function inflateText(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Response(stream).text();
}

/** The embedded ledger and the exporter's report. @throws Error for a damaged page */
export function readEmbedded(): { readonly embedded: Embedded; readonly inputs: Inputs } {
  const embedded = JSON.parse(document.getElementById(EMBEDDED_ID)?.textContent ?? '') as Embedded;
  const parts: Blob[] = [];
  for (const element of document.querySelectorAll(`script[type="${LEDGER_TYPE}"]`)) {
    if (element.id === CORE_ID) continue;
    parts.push(new Blob([decodeBlock(element.textContent ?? '')]));
    // It is kept once.
    element.remove();
  }
  const { trust, witness_policy: policy, published, checkpoints } = embedded;
  return {
    embedded,
    inputs: {
      paths: embedded.paths,
      bytes: new Blob(parts),
      isCompressed: true,
      segments: embedded.segments.map(({ file, first_seq: first, bytes }) => ({
        file,
        firstSeq: first ?? undefined,
        bytes,
      })),
      trust: trust && new TextEncoder().encode(JSON.stringify(trust)),
      witnessPolicy: policy as JsonObject | undefined,
      checkpoints: checkpoints.map(({ name, note }) => ({ name, note: decodeBlock(note) })),
      predecessor: undefined,
      published: published && { name: published.name, note: decodeBlock(published.note) },
      faults: embedded.faults,
      growth: embedded.growth,
      now: embedded.now,
    },
  };
}
