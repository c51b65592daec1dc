/** Links of Acta receipts. A receipt names the one before it by its digest, and nothing else says which chain it is in. */

import { printable } from '../../../base/bytes/printable.js';
import type { SourceObject, SourceValue } from '../../../base/json/source-json.js';
import type { HostPlace } from '../../shared/host.js';
import type { Receipt } from '../receipt.js';
import type { Verification } from '../verification.js';
import { finding as common } from '../rules.js';
import { addTo, textAt, valueAt } from '../../shared/values.js';
import { type ActaFault, type ActaReceipt, linksTo } from './check.js';
import { finding } from './rules.js';

const LINK = /^(?:(sha256):)?([0-9a-f]{64})$/;
/** Of revisions that left open what a link is over. */
const OLD = /^draft-farley-acta-signed-receipts-0[0-2]$/;

export interface ActaIssued extends Receipt, Pick<ActaReceipt, 'shape' | 'body'> {
  readonly value: SourceObject;
  /** Why it cannot be judged. */
  readonly fault?: ActaFault | undefined;
}

interface Link {
  /** RFC 6901, in the receipt. */
  readonly pointer: string;
  readonly value: SourceValue;
}

/** A file that begins with a receipt whose predecessor is none of those given. */
interface Beginning {
  readonly index: number;
  readonly place: HostPlace;
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
  const followers = new Map<number, ActaIssued[]>();
  const begun = new Set<string>();
  const linked: number[] = [];
  const beginnings: Beginning[] = [];
  for (const [index, receipt] of receipts.entries()) {
    const { at, fault } = receipt;
    // A file of one receipt is no log with a beginning of its own: it stands in the order of the files.
    const isFirst = index === 0 || (!begun.has(at.file) && inFile.get(at.file)! > 1);
    begun.add(at.file);
    if (fault !== undefined) continue;
    const link = linkOf(receipt);
    if (link === undefined) continue;
    const place = { ...at, pointer: `${at.pointer ?? ''}${link.pointer}` };
    if (link.value === null && isOld(receipt)) {
      verification.find(receipt, finding('LINK_EMPTY', place));
      continue;
    }
    const text = typeof link.value === 'string' ? link.value : undefined;
    const [, algorithm, hash] = LINK.exec(text ?? '') ?? [];
    if (hash === undefined) {
      const actual = text === undefined ? 'no text' : printable(text, 80);
      verification.find(receipt, finding('LINK_MALFORMED', place, { actual }));
      continue;
    }
    if (algorithm === undefined) verification.find(receipt, finding('LINK_WITHOUT_ALGORITHM', place));
    linked.push(index);
    const found = byWhole.get(hash) ?? oldLink(receipts, byPayload.get(hash));
    if (found === undefined) {
      if (isFirst) beginnings.push({ index, place });
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
    if (before.issuer !== receipt.issuer) {
      const [expected, actual] = [`a receipt of ${receipt.issuer}`, `one of ${before.issuer}`];
      verification.find(receipt, finding('LINK_TO_OTHER_ISSUER', place, { expected, actual, related }));
    }
    addTo(followers, found, receipt);
  }
  for (const [found, all] of followers) checkFork(receipts[found]!, all, verification);
  const ends = linked.filter((index) => !followers.has(index));
  checkBeginnings(receipts, beginnings, ends, verification);
  for (const index of ends) verification.find(receipts[index]!, common('CHAIN_OPEN', receipts[index]!.at));
}

/**
 * A receipt has one successor: of several the first that stands best, and best of the same issuer. Whoever forges one, or signs it himself,
 * must not break the one that is genuine.
 */
function checkFork(before: ActaIssued, followers: readonly ActaIssued[], verification: Verification): void {
  const weigh = (receipt: ActaIssued): number => {
    const { standing } = verification.of(receipt);
    const weight = standing === 'vouched' ? 2 : standing === 'broken' ? 0 : 1;
    return 2 * weight + Number(receipt.issuer === before.issuer);
  };
  const [first, ...others] = followers;
  const next = others.reduce((best, each) => (weigh(each) > weigh(best) ? each : best), first!);
  for (const receipt of followers) {
    if (receipt === next) continue;
    const { pointer } = linkOf(receipt)!;
    const place = { ...receipt.at, pointer: `${receipt.at.pointer ?? ''}${pointer}` };
    const [expected, actual] = ['one receipt after each', 'a second one'];
    const related = [before.at, next.at];
    verification.find(receipt, common('CHAIN_FORK', place, { expected, actual, related }));
  }
}

/**
 * What is before the first receipt of a file may be in one that was not given; but where a file before it ends in a chain of the same issuer,
 * which nothing follows, what was between the two is missing.
 */
function checkBeginnings(
  receipts: readonly ActaIssued[],
  beginnings: readonly Beginning[],
  ends: readonly number[],
  verification: Verification,
): void {
  const endOf = new Map<string, number>();
  let next = 0;
  for (const { index, place } of beginnings) {
    for (; next < ends.length && ends[next]! < index; next++) {
      const end = receipts[ends[next]!]!;
      if (verification.of(end).standing === 'vouched') endOf.set(end.issuer, ends[next]!);
    }
    const receipt = receipts[index]!;
    const end = receipts[endOf.get(receipt.issuer) ?? -1];
    if (end === undefined) verification.find(receipt, common('CHAIN_PART', place));
    else {
      const [expected, actual] = [`the receipt after ${end.id}`, 'one that names another'];
      verification.find(receipt, common('CHAIN_GAP', place, { expected, actual, related: [end.at] }));
    }
  }
}

/** Names of links of flat receipts, each with what its first receipt may have instead of one: of the profiles that the draft grew from. */
const FLAT_LINKS: readonly (readonly [name: string, first: readonly SourceValue[]])[] = [
  ['parent_receipt_hash', [null]],
  ['previous_receipt_hash', [null, '']],
];

function linkOf({ body, value, shape }: ActaIssued): Link | undefined {
  const own = valueAt(body, 'previousReceiptHash');
  if (own !== undefined)
    return { pointer: `${body === value ? '' : '/payload'}/previousReceiptHash`, value: own };
  if (shape !== 'flat' || body !== value) return undefined;
  for (const [name, first] of FLAT_LINKS) {
    const link = valueAt(value, name);
    if (link !== undefined && !first.includes(link)) return { pointer: `/${name}`, value: link };
  }
  return undefined;
}

function oldLink(receipts: readonly ActaIssued[], index: number | undefined): number | undefined {
  return index !== undefined && isOld(receipts[index]!) ? index : undefined;
}

function isOld({ body }: ActaIssued): boolean {
  return OLD.test(textAt(body, 'spec') ?? '');
}
