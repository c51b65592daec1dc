/** Links of Acta receipts. A receipt names the one before it by its digest, and nothing else says which chain it is in. */

import { printable } from '../../../base/bytes/printable.js';
import type { SourceObject } from '../../../base/json/source-json.js';
import type { Receipt } from '../receipt.js';
import type { Verification } from '../verification.js';
import { finding as common } from '../rules.js';
import { textAt, valueAt } from '../../shared/values.js';
import { type ActaFault, type ActaReceipt, linksTo } from './check.js';
import { finding } from './rules.js';

const LINK = /^(?:(sha256):)?([0-9a-f]{64})$/;
/** Of revisions that left open what a link is over. */
const OLD = /^draft-farley-acta-signed-receipts-0[0-2]$/;

/** A receipt, read. */
export interface ActaIssued extends Receipt, Pick<ActaReceipt, 'shape' | 'body'> {
  readonly value: SourceObject;
  /** Why it cannot be judged. */
  readonly fault?: ActaFault | undefined;
}

/** Checks each link against the receipts of all files, in their order. */
export function checkLinks(receipts: readonly ActaIssued[], verification: Verification): void {
  const byWhole = new Map<string, number>();
  const byPayload = new Map<string, number>();
  for (const [index, { value }] of receipts.entries()) {
    const links = linksTo(value);
    if (links === undefined) continue;
    if (!byWhole.has(links.whole)) byWhole.set(links.whole, index);
    if (!byPayload.has(links.payload)) byPayload.set(links.payload, index);
  }
  const inFile = new Map<string, number>();
  for (const { at } of receipts) inFile.set(at.file, (inFile.get(at.file) ?? 0) + 1);
  const followed = new Map<number, ActaIssued>();
  const begun = new Set<string>();
  let last: ActaIssued | undefined;
  for (const [index, receipt] of receipts.entries()) {
    const { at, body, fault } = receipt;
    // A file of one receipt is no log with a beginning of its own: it stands in the order of the files.
    const isFirst = index === 0 || (!begun.has(at.file) && inFile.get(at.file)! > 1);
    begun.add(at.file);
    if (fault !== undefined) continue;
    const link = valueAt(body, 'previousReceiptHash');
    if (link === undefined) continue;
    const place = {
      ...at,
      pointer: `${at.pointer ?? ''}${receipt.shape === 'envelope' ? '/payload' : ''}/previousReceiptHash`,
    };
    const [, algorithm, hash] = typeof link === 'string' ? (LINK.exec(link) ?? []) : [];
    if (hash === undefined) {
      const actual = typeof link === 'string' ? printable(link, 80) : 'no text';
      verification.find(receipt, finding('LINK_MALFORMED', place, { actual }));
      continue;
    }
    if (algorithm === undefined) verification.find(receipt, finding('LINK_WITHOUT_ALGORITHM', place));
    last = receipt;
    const found = byWhole.get(hash) ?? oldLink(receipts, byPayload.get(hash));
    if (found === undefined) {
      // What is before the first receipt of a file may be in one that was not given.
      if (isFirst) verification.find(receipt, common('CHAIN_PART', place));
      else {
        const actual = byPayload.has(hash) ? 'the digest of a payload alone' : 'that of none';
        verification.find(
          receipt,
          common('CHAIN_LINK', place, { expected: 'the digest of a receipt before it', actual }),
        );
      }
      continue;
    }
    if (!byWhole.has(hash)) verification.find(receipt, finding('LINK_OF_PAYLOAD', place));
    const before = receipts[found]!;
    const related = [before.at];
    if (found >= index && before.at.file === at.file)
      verification.find(receipt, finding('CHAIN_ORDER', place, { related }));
    const other = followed.get(found);
    if (other === undefined) followed.set(found, receipt);
    else {
      const [expected, actual] = ['one receipt after each', 'a second one'];
      verification.find(
        receipt,
        common('CHAIN_FORK', place, { expected, actual, related: [before.at, other.at] }),
      );
    }
  }
  if (last !== undefined) verification.find(last, common('CHAIN_OPEN', last.at));
}

function oldLink(receipts: readonly ActaIssued[], index: number | undefined): number | undefined {
  const spec = index === undefined ? undefined : textAt(receipts[index]!.body, 'spec');
  return spec !== undefined && OLD.test(spec) ? index : undefined;
}
