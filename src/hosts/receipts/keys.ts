/** The keys of those who issue receipts, as they are given beside the receipts. */

import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { findInvalidUtf8 } from '../../base/json/utf8.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { makePublicKey, parsePublicKey, type PublicKey } from '../../format/key/public-key.js';
import { stableText } from '../shared/forms/stable.js';
import type { HostFile } from '../shared/host.js';
import { jsonIn } from '../shared/reading.js';
import { listAt, objectAt, textAt, timeOfText, valueAt } from '../shared/values.js';

export const KEYS_AID =
  'public keys of issuers: one key, or names with their keys (JSON, JWKS, a DID document)';

/** The most bytes and keys of a file of them. */
const MAX_KEYS_BYTES = 1_048_576;
const MAX_KEYS = 10_000;

/** Keys by the names that they were given under. */
export class KeyRing {
  readonly #named = new Map<string, PublicKey[]>();
  readonly #unnamed: PublicKey[] = [];
  readonly #ends = new Map<PublicKey, string>();
  #isGiven: boolean;

  /** @param isGiven - Whether keys were given, though none could be read. */
  constructor(isGiven = false) {
    this.#isGiven = isGiven;
  }

  /** Whether none was given: what receipts state themselves counts only then. */
  get isEmpty(): boolean {
    return !this.#isGiven;
  }

  /** The members of the JWK sets among what was given, as they were given: some formats say there until when a key is valid. */
  readonly sets: (readonly SourceObject[])[] = [];

  /**
   * @param name - Undefined for a key of any issuer
   * @param end - When it was revoked or expired, a Timestamp: it signs nothing from then on. Default: never
   */
  add(name: string | undefined, key: PublicKey, end?: string): void {
    this.#isGiven = true;
    if (end !== undefined) this.#ends.set(key, end);
    if (name === undefined) this.#unnamed.push(key);
    else {
      const keys = this.#named.get(name);
      if (keys === undefined) this.#named.set(name, [key]);
      else keys.push(key);
    }
  }

  /** When a key of this ring was revoked or expired, as it was added. */
  endOf(key: PublicKey): string | undefined {
    return this.#ends.get(key);
  }

  /** The keys under the first of the names that has any; else those of any issuer. Of what names nobody, all. */
  find(names: readonly string[]): readonly PublicKey[] {
    if (names.length === 0) return [...this.#unnamed, ...[...this.#named.values()].flat()];
    return this.findNamed(names) ?? this.#unnamed;
  }

  /** The keys under the first of the names that has any. */
  findNamed(names: readonly string[]): readonly PublicKey[] | undefined {
    for (const name of names) {
      const keys = this.#named.get(name);
      if (keys !== undefined) return keys;
    }
    return undefined;
  }
}

/** The keys of a file; a text that says what is wrong with it. */
export function readKeyRing({ bytes }: HostFile): KeyRing | string {
  if (bytes.length > MAX_KEYS_BYTES) return `${bytes.length} bytes`;
  if (findInvalidUtf8(bytes, 0, bytes.length) >= 0) {
    const key = readKey(bytes);
    if (typeof key === 'string') return key;
    return ringOf([[undefined, key]]);
  }
  const text = decodeUtf8(bytes).replace(/^\uFEFF/, '');
  const value = /^\s*[[{]/.test(text) ? jsonIn(bytes) : undefined;
  if (value !== undefined) return readJson(value);
  const blocks = text.match(/-----BEGIN [^-]+-----[\s\S]*?-----END [^-]+-----/g);
  const entries: [string | undefined, string][] =
    blocks === null ? text.split(/\r?\n/).flatMap(readLine) : blocks.map((block) => [undefined, block]);
  return collect(entries.map(([name, key]) => [name, key]));
}

/** `NAME KEY`, or a key alone; the forms of keys with white space in them begin with their algorithm. */
function readLine(line: string): [string | undefined, string][] {
  const text = line.trim();
  if (text === '' || text.startsWith('#')) return [];
  const [, name, key] = /^(\S+)\s+(\S.*)$/.exec(text) ?? [];
  if (name === undefined || key === undefined || /^(?:ssh-|ecdsa-)/.test(name)) return [[undefined, text]];
  return [[name, key]];
}

function readJson(value: SourceValue): KeyRing | string {
  if (Array.isArray(value)) return collect((value as readonly SourceValue[]).flatMap(keysIn));
  if (!(value instanceof SourceObject)) return 'no object';
  const jwks = listAt(value, 'keys');
  if (jwks !== undefined) return setOf(jwks);
  const published = publishedKeys(value);
  if (published !== undefined) return collect(published);
  if (textAt(value, 'kty') !== undefined) return collect(namedJwk(value));
  const methods = methodsOf(objectAt(value, 'didDocument') ?? value);
  if (methods !== undefined) return collect(methods);
  // The configuration that an agent publishes of itself.
  const agent = objectAt(value, 'agent');
  const own = textAt(agent, 'publicKey');
  if (agent !== undefined && own !== undefined) return collect([[textAt(agent, 'id'), own]]);
  // The file that a signer keeps has its private key too, which is none of anybody's.
  const only = textAt(value, 'publicKey');
  if (only !== undefined) return collect([[undefined, only]]);
  return collect(value.entries().map(([name, key]) => [name, key]));
}

/** A JWK set may have keys of other kinds, and malformed ones: those that cannot be used are passed over (RFC 7517 §5). */
function setOf(jwks: readonly SourceValue[]): KeyRing | string {
  if (jwks.length > MAX_KEYS) return `${jwks.length} keys, more than ${MAX_KEYS}`;
  const members = jwks.filter((jwk) => jwk instanceof SourceObject);
  const usable = members.filter((jwk) => typeof readKey(jwk) !== 'string');
  const ring = collect((usable.length === 0 ? jwks : usable).flatMap(namedJwk));
  if (typeof ring !== 'string') ring.sets.push(members);
  return ring;
}

/** The keys of an operator of the EMILIA protocol: of its own, of any receipt; of others and earlier ones by whose they are. */
function publishedKeys(value: SourceObject): [string | undefined, SourceValue][] | undefined {
  const groups = ['operator_signing_keys', 'keys', 'historical_keys'];
  if (objectAt(value, groups[0]!) === undefined && objectAt(value, groups[1]!) === undefined)
    return undefined;
  return groups.flatMap((group) =>
    (objectAt(value, group)?.entries() ?? []).flatMap(([name, entry]) => {
      const entries = Array.isArray(entry) ? (entry as readonly SourceValue[]) : [entry];
      return entries.flatMap((each): [string | undefined, SourceValue][] => {
        const key = textAt(each, 'public_key');
        if (key === undefined) return [];
        return [[group === 'operator_signing_keys' ? undefined : name, key]];
      });
    }),
  );
}

function namedJwk(jwk: SourceValue): [string | undefined, SourceValue][] {
  return [[textAt(jwk, 'kid'), jwk]];
}

/** A JWK, or a DID document. */
function keysIn(value: SourceValue): NamedKey[] {
  return (value instanceof SourceObject ? methodsOf(value) : undefined) ?? namedJwk(value);
}

/**
 * The keys of a DID document, of any method. Where it says which of them are for assertions, only these sign receipts (DID 1.0, 5.3.2).
 *
 * @returns Undefined where it is no such document.
 */
function methodsOf(document: SourceObject): NamedKey[] | undefined {
  const methods = listAt(document, 'verificationMethod');
  const asserting = assertionsIn(document);
  if (methods === undefined && (asserting === undefined || textAt(document, 'id') === undefined))
    return undefined;
  const did = textAt(document, 'id') ?? '';
  const idOf = (method: SourceValue): string => fullId(textAt(method, 'id') ?? '', did);
  const embedded = (asserting ?? []).filter((each) => each instanceof SourceObject);
  const repeated = repeatedIds([...(methods ?? []), ...embedded], idOf);
  const named = (methods ?? []).filter((each) => !repeated.has(idOf(each)));
  if (asserting === undefined) return usableMethods(document, named);
  const referred = new Set(asserting.flatMap((each) => (typeof each === 'string' ? fullId(each, did) : [])));
  const listed = named.filter((each) => referred.has(idOf(each)));
  return usableMethods(document, [...listed, ...embedded.filter((each) => !repeated.has(idOf(each)))]);
}

/** A document that gives two methods one id names neither by it: nothing says which was meant. */
function repeatedIds(
  methods: readonly SourceValue[],
  idOf: (method: SourceValue) => string,
): ReadonlySet<string> {
  const texts = new Map<string, string>();
  const repeated = new Set<string>();
  for (const method of methods) {
    const [id, text] = [idOf(method), stableText(method)];
    if (id !== '' && (texts.get(id) ?? text) !== text) repeated.add(id);
    texts.set(id, text);
  }
  return repeated;
}

/** A relation to one method may be written without a list. */
function assertionsIn(document: SourceObject): readonly SourceValue[] | undefined {
  const stated = valueAt(document, 'assertionMethod');
  return stated === undefined || stated === null
    ? undefined
    : (listAt(document, 'assertionMethod') ?? [stated]);
}

/** Methods of other kinds are passed over, as in a JWK set; if all are, they are told of. */
function usableMethods(document: SourceObject, methods: readonly SourceValue[]): NamedKey[] {
  const entries = methods.slice(0, MAX_KEYS).flatMap((each) => methodOf(document, each));
  const usable = entries.filter(([, key]) => typeof readKey(key) !== 'string');
  return usable.length === 0 ? entries : usable;
}

/** A key of a DID document, under its own id and under the document's. Under an id of another DID it is no key of that one. */
function methodOf(document: SourceObject, method: SourceValue): NamedKey[] {
  const key = objectAt(method, 'publicKeyJwk') ?? textAt(method, 'publicKeyMultibase') ?? method;
  const did = textAt(document, 'id');
  const id = textAt(method, 'id');
  const end = endOf(method);
  if (did === undefined || id === undefined) return [[id ?? did, key, end]];
  const full = fullId(id, did);
  return full.startsWith(`${did}#`)
    ? [
        [full, key, end],
        [did, key, end],
      ]
    : [[did, key, end]];
}

/** When a method was revoked or expired, if it says so (Controlled Identifiers 1.0, 2.2); what cannot be read is no time at which it was valid. */
function endOf(method: SourceValue): string | undefined {
  const ends = ['revoked', 'expires'].flatMap((name) => {
    const stated = valueAt(method, name);
    if (stated === undefined || stated === null) return [];
    return typeof stated === 'string' && ZONED.test(stated) ? (timeOfText(stated) ?? BEGINNING) : BEGINNING;
  });
  return ends.sort(compareTimestamps)[0];
}

const ZONED = /(?:[Zz]|[+-]\d\d:\d\d)$/;
const BEGINNING = '0000-01-01T00:00:00Z';

function fullId(id: string, did: string): string {
  return id.startsWith('#') ? `${did}${id}` : id;
}

/** A key, as it is written, under its name; and when it was revoked or expired. */
type NamedKey = readonly [name: string | undefined, key: SourceValue, end?: string | undefined];

function collect(entries: readonly NamedKey[]): KeyRing | string {
  if (entries.length === 0) return 'no key';
  if (entries.length > MAX_KEYS) return `${entries.length} keys, more than ${MAX_KEYS}`;
  const read: [string | undefined, PublicKey, end: string | undefined][] = [];
  for (const [name, source, end] of entries) {
    const key = readKey(source);
    if (typeof key === 'string') return name === undefined ? key : `${name}: ${key}`;
    read.push([name, key, end]);
  }
  return ringOf(read);
}

function ringOf(
  keys: readonly (readonly [string | undefined, PublicKey, end?: string | undefined])[],
): KeyRing {
  const ring = new KeyRing();
  for (const [name, key, end] of keys) ring.add(name, key, end);
  return ring;
}

function readKey(source: SourceValue | Uint8Array): PublicKey | string {
  if (typeof source === 'string') {
    const bytes = multibaseKey(source) ?? spkiKey(source);
    if (bytes !== undefined) return readKey(bytes);
    if (source.startsWith(DID_JWK)) return didJwkKey(source);
  }
  try {
    if (typeof source === 'string' || source instanceof Uint8Array) return parsePublicKey(source);
    return source instanceof SourceObject ? parsePublicKey(stableText(source)) : 'no text of a key';
  } catch (error) {
    if (error instanceof NorthrootError) return error.message;
    throw error;
  }
}

const DID_JWK = 'did:jwk:';
const MAX_DID_JWK_LENGTH = 1_024;

/** The key of a `did:jwk`: base64url of the JWK. The only DID URL that is taken is that of the key itself, `#0`. */
function didJwkKey(did: string): PublicKey | string {
  const text = did.slice(DID_JWK.length).replace(/#0$/, '');
  const bytes = text.length <= MAX_DID_JWK_LENGTH ? tryDecodeBase64url(text) : undefined;
  const jwk = bytes === undefined ? undefined : jsonIn(bytes);
  return jwk instanceof SourceObject ? readKey(jwk) : 'no JWK in the did:jwk';
}

/** The bytes of an Ed25519 key whose SPKI is written in base64url without the lines of a PEM. */
export function spkiKey(text: string): Uint8Array | undefined {
  if (!/^MCowBQYDK2VwAyEA[A-Za-z0-9_-]{43}$/.test(text)) return undefined;
  return tryDecodeBase64url(text)?.subarray(SPKI_PREFIX_LENGTH);
}

const SPKI_PREFIX_LENGTH = 12;

/** The bytes of a key in multibase: `u` and base64url of the bytes, `z` and base58btc of the codec and the bytes. */
function multibaseKey(text: string): Uint8Array | undefined {
  if (/^u[A-Za-z0-9_-]{43}$/.test(text)) return tryDecodeBase64url(text.slice(1));
  if (/^z[1-9A-HJ-NP-Za-km-z]{44,60}$/.test(text)) return tryKey(`did:key:${text}`)?.bytes;
  return undefined;
}

/** The key of a text in any form that keys have, or of a JWK; undefined where it is none that signatures can be by. */
export function tryKey(source: SourceValue): PublicKey | undefined {
  const key = readKey(source);
  return typeof key === 'string' ? undefined : key;
}

/** The Ed25519 key of 32 bytes in base64url, with or without padding; undefined of any other text. */
export function tryEd25519Text(text: string): PublicKey | undefined {
  const plain = text.replace(/=$/, '');
  if (plain.length !== 43) return undefined;
  const bytes = tryDecodeBase64url(plain);
  return bytes?.length === 32 ? makePublicKey('ed25519', bytes) : undefined;
}
