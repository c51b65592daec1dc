/** Pages made in memory, and what they hold taken apart and put together again. */

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { Engine } from '../../src/out/page/model/engine.js';
import type { Overview } from '../../src/out/page/model/protocol.js';
import { exportPage, type PageExport, type PageOptions } from '../../src/out/page/export-page.js';
import type { LedgerInput } from '../../src/log/read/verify-ledger.js';

/** The page of a ledger. */
export async function makePage(
  ledger: LedgerInput,
  options: PageOptions = {},
): Promise<PageExport & { readonly html: string }> {
  const pieces: Buffer[] = [];
  const made = await exportPage(
    ledger,
    {
      write: (piece) => {
        pieces.push(typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece));
        return undefined;
      },
    },
    options,
  );
  return { ...made, html: Buffer.concat(pieces).toString() };
}

const BLOCK = /<script type="application\/vnd\.northroot\.ledger">([^<]*)<\/script>\n/g;

/** The ledger's bytes in a page. */
export function ledgerIn(html: string): Buffer {
  const blocks = [...html.matchAll(BLOCK)].map(([, text = '']) => Buffer.from(text, 'base64'));
  return inflateRawSync(Buffer.concat(blocks));
}

/** The page with another ledger in it, as somebody would put it there who tampers. */
export function withLedger(html: string, bytes: Uint8Array): string {
  let isFirst = true;
  return html.replace(BLOCK, () => {
    const text = isFirst ? deflateRawSync(bytes).toString('base64') : '';
    isFirst = false;
    return text === '' ? '' : `<script type="application/vnd.northroot.ledger">${text}</script>\n`;
  });
}

/** What works behind the page, which has verified these bytes. */
export async function openOnPage(
  bytes: Buffer,
): Promise<{ readonly engine: Engine; readonly overview: Overview }> {
  const engine = new Engine({
    inflate: (packed) => Promise.resolve(packed),
    now: () => 0,
    pause: undefined,
    onProgress: () => undefined,
  });
  const overview = await engine.verify({
    paths: ['l'],
    bytes: new Blob([Uint8Array.from(bytes)]),
    isCompressed: false,
    segments: [{ file: 'l', firstSeq: undefined, bytes: bytes.length }],
    trust: undefined,
    witnessPolicy: undefined,
    checkpoints: [],
    predecessor: undefined,
    published: undefined,
    faults: undefined,
    growth: undefined,
    now: undefined,
  });
  return { engine, overview };
}
