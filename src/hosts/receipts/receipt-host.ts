/** A host of a format of receipts: files go in, and what was verified comes out as evidence. */

import { sha256Base64url } from '../../base/bytes/sha256.js';
import { defined } from '../../base/defined.js';
import { SourceObject } from '../../base/json/source-json.js';
import { jcsBytes, roundedAt } from '../shared/forms/jcs.js';
import type { Host, HostFile, HostFinding, HostOptions, HostReading, SourceItem } from '../shared/host.js';
import { factText } from '../shared/names.js';
import { inFileOrder, inTimeOrder } from '../shared/order.js';
import {
  checkReadOptions,
  documentsOf,
  membersOf,
  peekDocuments,
  ReadingBuilder,
} from '../shared/reading.js';
import { listAt } from '../shared/values.js';
import { KeyRing, KEYS_AID, readKeyRing } from './keys.js';
import type { Receipt } from './receipt.js';
import type { ReceiptFormat } from './receipt-format.js';
import { COMMON_RULES, finding } from './rules.js';
import { Shape } from './shape.js';
import { type Standing, Verification, verifyReceipts } from './verification.js';

/** The longest receipt in its canonical form, in bytes. */
const MAX_RECEIPT_BYTES = 1_048_576;
/** So many values of a file are looked at for what it is. */
const LOOKED_AT = 64;

/** Keys for all formats, and those for one of them, where receipts of several are read together. */
function aidsOf(name: string): Readonly<Record<string, string>> {
  return { keys: KEYS_AID, [`${name}-keys`]: `the same, for ${name} alone, instead of keys` };
}

/** The host of a format. */
export function receiptHost<R extends Receipt>(format: ReceiptFormat<R>): Host {
  return {
    name: format.name,
    title: format.title,
    rules: [...COMMON_RULES, ...format.rules],
    aids: aidsOf(format.name),
    hasReceipts: true,
    recognises: (file) => recognises(format, file),
    read: (files, options) => read(format, files, options),
  };
}

function recognises<R extends Receipt>(format: ReceiptFormat<R>, file: HostFile): boolean {
  let left = LOOKED_AT;
  for (const item of peekDocuments(file)) {
    for (const { value } of receiptsIn(format, item)) {
      if (format.isOwn(value)) return true;
      if (--left === 0) return false;
    }
  }
  return false;
}

/** The values of an item that may be receipts: itself, or the elements of a list. */
function receiptsIn<R extends Receipt>(format: ReceiptFormat<R>, item: SourceItem): Iterable<SourceItem> {
  const { at, value } = item;
  const pointer = at.pointer ?? '';
  if (Array.isArray(value)) return membersOf(at, pointer, value as SourceItem['value'][]);
  if (!(value instanceof SourceObject) || format.isOwn(value)) return [item];
  for (const name of ['receipts', ...(format.lists ?? [])]) {
    const list = listAt(value, name);
    if (list !== undefined) return membersOf(at, `${pointer}/${name}`, list);
  }
  return [item];
}

function read<R extends Receipt>(
  format: ReceiptFormat<R>,
  files: readonly HostFile[],
  options: HostOptions = {},
): HostReading {
  checkReadOptions(`${format.name}.read`, options, aidsOf(format.name), { hasReceipts: true });
  const reading = new ReadingBuilder(options);
  const find = (found: HostFinding): void => reading.find(found);
  const ring = ringOf(format.name, options, find);
  const receipts: R[] = [];
  let malformed = 0;
  const known = new Map<string, Set<string>>();
  for (const file of files) {
    for (const document of documentsOf(reading, file)) {
      for (const item of receiptsIn(format, document)) {
        const receipt = readOne(format, item, reading);
        if (receipt === undefined) {
          malformed += 1;
          continue;
        }
        const digest = sha256Base64url(jcsBytes(receipt.value)!);
        const before = known.get(receipt.id) ?? new Set();
        if (before.has(digest)) reading.repeat(receipt.at, receipt.type, 'RECEIPT_REPEATED');
        else receipts.push(receipt);
        known.set(receipt.id, before.add(digest));
      }
    }
  }
  const verification = new Verification(ring, options.unverified === true, find);
  if (format.verify !== undefined) format.verify(receipts, verification);
  else verifyReceipts(receipts, verification);
  const standings = take(format, receipts, verification, reading, options.unverified === true);
  const made = inFileOrder(reading.finish(), files, true);
  return {
    ...made,
    claims: inTimeOrder(made.claims),
    receipts: {
      verified: standings.vouched,
      ownKey: standings.stated,
      unverified: standings.unverified,
      broken: standings.broken + malformed,
    },
  };
}

function ringOf(name: string, { aids }: HostOptions, find: (found: HostFinding) => void): KeyRing {
  const file = aids?.[`${name}-keys`] ?? aids?.['keys'];
  if (file === undefined) return new KeyRing();
  const ring = readKeyRing(file);
  if (typeof ring !== 'string') return ring;
  find(finding('KEYS_UNREADABLE', { file: file.name }, { actual: ring }));
  // What was to be checked against them must not pass for want of them.
  return new KeyRing(true);
}

function readOne<R extends Receipt>(
  format: ReceiptFormat<R>,
  item: SourceItem,
  reading: ReadingBuilder,
): R | undefined {
  const { at, value } = item;
  const drop = (reason: string, found?: HostFinding): undefined => {
    if (found !== undefined) reading.find(found);
    reading.drop(at, 'unknown', reason);
    return undefined;
  };
  if (!(value instanceof SourceObject) || !format.isOwn(value)) {
    const expected = `a receipt of ${format.title}`;
    return drop('NOT_A_RECEIPT', finding('MALFORMED', at, { expected, actual: 'other JSON' }));
  }
  const canonical = jcsBytes(value);
  if (canonical === undefined) return drop('NO_CANONICAL_FORM', finding('NO_CANONICAL_FORM', at));
  if (canonical.length > MAX_RECEIPT_BYTES) {
    const [expected, actual] = [`at most ${MAX_RECEIPT_BYTES} bytes`, `${canonical.length} bytes`];
    return drop('RECEIPT_TOO_LONG', finding('RECEIPT_TOO_LONG', at, { expected, actual }));
  }
  const rounded = roundedAt(value);
  if (rounded !== undefined)
    reading.find(finding('NUMBER_ROUNDED', { ...at, pointer: `${at.pointer ?? ''}${rounded}` }));
  const shape = new Shape(item, (found) => reading.find(found));
  const receipt = format.read(item, shape);
  return shape.isBroken || receipt === undefined ? drop('MALFORMED') : receipt;
}

/** What became of each receipt: evidence, an observation, or nothing. */
function take<R extends Receipt>(
  { form }: ReceiptFormat<R>,
  receipts: readonly R[],
  verification: Verification,
  reading: ReadingBuilder,
  takesUnverified: boolean,
): Readonly<Record<Standing, number>> {
  const counts = { vouched: 0, stated: 0, unverified: 0, broken: 0 };
  const isKept = (standing: Standing): boolean =>
    standing === 'vouched' || standing === 'stated' || (standing === 'unverified' && takesUnverified);
  // Whatever stands better has the id, wherever it is: what is not verified must not stand in the way of what is.
  const holders = new Map<string, R>();
  for (const rank of ['vouched', 'stated', 'unverified'] as const)
    for (const receipt of isKept(rank) ? receipts : [])
      if (verification.of(receipt).standing === rank && !holders.has(receipt.id))
        holders.set(receipt.id, receipt);
  for (const receipt of receipts) {
    const { at, id, type } = receipt;
    const holder = holders.get(id);
    if (isKept(verification.of(receipt).standing) && holder !== receipt)
      verification.find(receipt, finding('ID_REUSED', at, { related: [holder!.at] }));
    const { standing, reason, keyid } = verification.of(receipt);
    counts[standing] += 1;
    if (!isKept(standing)) {
      reading.drop(at, type, reason ?? 'NOT_CHECKED');
      continue;
    }
    const occurredAt = reading.timeOf(receipt.occurredAt, at, id);
    if (occurredAt === undefined) {
      reading.drop(at, type, 'TIME_NOT_STATED');
      continue;
    }
    const isChecked = standing !== 'unverified';
    reading.item({ at, type, fate: 'evidence', ...(isChecked ? {} : { reason: 'UNVERIFIED' }) });
    reading.claim({
      kind: 'evidence',
      ...idsOf(standing, id),
      at,
      // The same whatever white space and order of members it came in.
      bytes: jcsBytes(receipt.value)!,
      occurredAt,
      principalId: receipt.principalId,
      type,
      facts: {
        ...receipt.facts,
        receipt_id: factText(id),
        receipt_digest: { form, value: receipt.digest },
        signature: {
          standing: WORDS[standing],
          ...(keyid === undefined ? { reason: reason ?? '' } : { keyid }),
        },
      },
    });
    const { action } = receipt;
    if (action === undefined) continue;
    const { callIds, meters = [], ...seen } = action;
    const correctedAt = verification.correctionOf(receipt)?.at;
    reading.observe({ at, ...seen, callIds, meters, occurredAt, ...defined({ correctedAt }) });
  }
  return counts;
}

const WORDS = {
  vouched: 'verified',
  stated: 'verified_by_its_own_key',
  unverified: 'not_verified',
  broken: 'broken',
} as const satisfies Readonly<Record<Standing, string>>;

/** What is verified later is recorded then too; what is known to be verified is not recorded again as something less. */
function idsOf(standing: Standing, id: string): { readonly id: string; readonly sameAs?: string[] } {
  if (standing === 'vouched') return { id: `receipt:${id}` };
  if (standing === 'stated') return { id: `own-key:${id}`, sameAs: [`receipt:${id}`] };
  return { id: `unverified:${id}`, sameAs: [`receipt:${id}`, `own-key:${id}`] };
}
