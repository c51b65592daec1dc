/** Attaches contents to a bundle, or finds the records that name them by digest. */

import { equalBytes } from '../../base/bytes/compare.js';
import { printable } from '../../base/bytes/printable.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { NorthrootError } from '../../base/error.js';
import type { JsonObject } from '../../base/json/value.js';
import { examineLine } from '../../format/record/examine-line.js';
import { readRecords } from '../../log/read/read-records.js';
import type { OpenLedger } from '../../rules/source/read-lines.js';
import {
  type BundleFile,
  decodeBundle,
  MAX_BUNDLE_BYTES,
  replaceAttachments,
  sortContents,
} from './bundle-file.js';
import { formsOfContent, listDigests, MAX_NAMED_BY } from './contents.js';

interface ContentPlace {
  readonly seq: number;
  /** The claimed event id, `sha-256:…`. */
  readonly eventId: string | undefined;
  readonly eventType: string | undefined;
  /** RFC 6901, from the event's root. */
  readonly pointer: string;
}

export interface FoundContent {
  readonly name: string;
  /** `sha-256:…` of its bytes and, if it is JSON in another form, of its canonical form. */
  readonly digests: readonly string[];
  /** The first places that name one of the digests. */
  readonly places: readonly (ContentPlace & { readonly digest: string })[];
  /** How many places there are. */
  readonly total: number;
}

interface NamedContent {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/**
 * Finds the records that name contents by their digests. Verifies nothing.
 *
 * @param from - The bytes of a bundle, or a function that opens a ledger.
 * @throws NorthrootError `BUNDLE_MALFORMED`, `BUNDLE_DIGEST_MISMATCH`; as `readRecords` for a ledger
 */
export async function findContent(
  from: Uint8Array | OpenLedger,
  contents: readonly NamedContent[],
  signal?: AbortSignal,
): Promise<FoundContent[]> {
  const found = contents.map(({ name, bytes }) => ({
    name,
    digests: formsOfContent(bytes).map(({ digest }) => digest),
    places: [] as (ContentPlace & { readonly digest: string })[],
    total: 0,
  }));
  const byDigest = new Map<string, typeof found>();
  for (const each of found)
    for (const digest of each.digests) byDigest.set(digest, [...(byDigest.get(digest) ?? []), each]);
  for await (const { event, ...place } of from instanceof Uint8Array
    ? eventsOf(from)
    : readEvents(from, signal)) {
    for (const { digest, pointer } of listDigests(event)) {
      for (const each of byDigest.get(digest) ?? []) {
        each.total += 1;
        if (each.places.length < MAX_NAMED_BY) each.places.push({ ...place, pointer, digest });
      }
    }
  }
  return found;
}

/**
 * Attaches further contents to a bundle, each in the form that a record names. The exporter's signature stays valid: it covers the records,
 * which name the contents.
 *
 * @param bytes - The bundle.
 * @throws NorthrootError `BUNDLE_MALFORMED`, `BUNDLE_DIGEST_MISMATCH`; `CONTENT_NOT_NAMED` for a content that no record of the bundle names; `BUNDLE_TOO_LARGE`
 */
export function attachContents(bytes: Uint8Array, contents: readonly NamedContent[]): Uint8Array {
  const file = parseBundle(bytes);
  const named = namedIn(file);
  const attached = contents.map(({ name, bytes: content }) => {
    const forms = formsOfContent(content);
    const form = forms.find(({ digest }) => named.has(digest));
    if (form !== undefined) return form.bytes;
    const digests = forms.map(({ digest }) => digest).join(' or ');
    throw new NorthrootError(
      'CONTENT_NOT_NAMED',
      `no record of the bundle names ${printable(name)}, ${digests}`,
    );
  });
  const whole = replaceAttachments(bytes, sortContents([...file.attachments, ...attached]));
  if (whole.length <= MAX_BUNDLE_BYTES) return whole;
  throw new NorthrootError('BUNDLE_TOO_LARGE', `the bundle would have more than ${MAX_BUNDLE_BYTES} bytes`);
}

/** The SHA-256 digests that records of a bundle name, `sha-256:…`. @throws NorthrootError as {@link attachContents} */
export function listNamedDigests(bytes: Uint8Array): ReadonlySet<string> {
  return namedIn(parseBundle(bytes));
}

function namedIn(file: BundleFile): ReadonlySet<string> {
  const named = new Set<string>();
  for (const { event } of eventsIn(file)) for (const { digest } of listDigests(event)) named.add(digest);
  return named;
}

interface PlacedEvent extends Omit<ContentPlace, 'pointer'> {
  readonly event: JsonObject;
}

function parseBundle(bytes: Uint8Array): BundleFile {
  const decoded = decodeBundle(bytes);
  if (decoded.ok) {
    const { content, digest } = decoded.value;
    // Writing it again would state a correct digest of damaged content.
    if (equalBytes(sha256(content), digest)) return decoded.value;
    throw new NorthrootError(
      'BUNDLE_DIGEST_MISMATCH',
      'the bundle is damaged: its content does not have the digest that it states',
      { hint: 'ask its exporter for another one' },
    );
  }
  const { expected, actual } = decoded.fault;
  throw new NorthrootError(
    'BUNDLE_MALFORMED',
    `the bundle is malformed: expected ${printable(expected)}, found ${printable(actual)}`,
  );
}

async function* eventsOf(bytes: Uint8Array): AsyncGenerator<PlacedEvent, void, void> {
  for (const each of eventsIn(parseBundle(bytes))) yield await Promise.resolve(each);
}

function* eventsIn({ bundle }: BundleFile): Generator<PlacedEvent, void, void> {
  for (const { seq, line } of bundle.records) {
    const examined = examineLine(line, 'records');
    const event = examined.json();
    if (event === undefined) continue;
    const { eventId, eventType } = examined;
    yield { seq, eventId: eventId === undefined ? undefined : `sha-256:${eventId}`, eventType, event };
  }
}

async function* readEvents(
  open: OpenLedger,
  signal: AbortSignal | undefined,
): AsyncGenerator<PlacedEvent, void, void> {
  for await (const { seq, eventId, event } of readRecords(await open(), { signal })) {
    const { event_type: type } = event;
    yield { seq, eventId, eventType: typeof type === 'string' ? type : undefined, event };
  }
}
