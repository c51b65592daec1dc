/** What the tests of Clasper share: recordings read in place, edited in one line, read, and verified as a ledger. */

import { gzipSync } from 'node:zlib';
import { ed25519 } from '@noble/curves/ed25519.js';
import { encodeBase64url, tryDecodeHex } from '../../../src/base/bytes/encoding.js';
import { encodeUtf8 } from '../../../src/base/bytes/text.js';
import { accountFor } from '../../../src/hosts/shared/account.js';
import { eventsOfClaims } from '../../../src/hosts/shared/claims.js';
import { envelopeSigningInput } from '../../../src/hosts/clasper/envelope.js';
import { clasper } from '../../../src/hosts/clasper/index.js';
import { hashText, stableHash } from '../../../src/hosts/shared/forms/stable.js';
import type { Claim, HostFile, HostOptions, HostReading } from '../../../src/hosts/shared/host.js';
import { canonicalBytes } from '../../../src/base/json/canonicalize.js';
import { decodeSourceJson, SourceObject, type SourceValue } from '../../../src/base/json/source-json.js';
import { verifyLedger } from '../../../src/log/read/verify-ledger.js';
import type { Report } from '../../../src/rules/report/report.js';
import { recordedText } from '../recorded.js';

export const RUN = 'clasper/run/';

/** The names of a bundle's files, as its archive has them. */
export const BUNDLE = [
  ...['metadata.json', 'traces.jsonl', 'audits.jsonl', 'adapters.json', 'public_keys.json'],
  ...['audit_chain.jsonl', 'integrity.json', 'verify.sha256'],
];

export function file(name: string, text: string): HostFile {
  return { name, bytes: encodeUtf8(text) };
}

/** The recorded calls, without line feeds; `line(6)` is that of line 6. */
export function httpLines(): string[] {
  return recordedText(`${RUN}http.jsonl`).trimEnd().split('\n');
}

/** The recorded calls with these lines alone, from 1. */
export function calls(...numbers: number[]): string[] {
  const lines = httpLines();
  return numbers.map((number) => lines[number - 1]);
}

export function http(lines: readonly string[]): HostFile {
  return file('http.jsonl', `${lines.join('\n')}\n`);
}

/** The recorded bundle's files as texts. */
export function bundleTexts(): Map<string, string> {
  return new Map(BUNDLE.map((name) => [name, recordedText(`${RUN}bundle-unsigned/${name}`)]));
}

export function bundleFiles(texts: ReadonlyMap<string, string>): HostFile[] {
  return [...texts].map(([name, text]) => file(`bundle/${name}`, text));
}

/** `RULE CODE` of each finding that is an error, sorted. */
export function errorsOf({ findings }: HostReading): string[] {
  return findings
    .filter(({ severity }) => severity === 'error')
    .map(({ rule, code }) => `${rule} ${code}`)
    .sort();
}

/** `RULE CODE` of every finding but those that say that a time or a key is not stated. */
export function codesOf({ findings }: HostReading): string[] {
  const dull = [
    'TIME_NOT_STATED',
    'HEAD_NOT_ANCHORED',
    'KEY_NOT_KNOWN',
    'BUNDLE_UNSIGNED',
    'DATED_BEFORE_TOKEN',
  ];
  return findings
    .filter(({ code }) => !dull.includes(code))
    .map(({ rule, code }) => `${rule} ${code}`)
    .sort();
}

export function read(files: readonly HostFile[], options?: HostOptions): HostReading {
  const reading = clasper.read(files, options);
  const { total } = accountFor(reading.items);
  if (total.items !== total.mapped + total.evidence + total.repeated + total.dropped)
    throw new Error('items do not add up');
  return reading;
}

export function claimOf(reading: HostReading, id: string): Claim | undefined {
  return reading.claims.find((claim) => claim.id === id || claim.id.startsWith(id));
}

/** The report on the ledger of what was read; every claim fits into an event. */
export async function ledgerOf({ claims }: Pick<HostReading, 'claims'>): Promise<Report> {
  const { events, unfit } = eventsOfClaims(claims, { system: 'clasper' });
  if (unfit.length > 0) throw unfit[0].error;
  const lines = events.map(({ event }) => `${new TextDecoder().decode(canonicalBytes(event as never))}\n`);
  return verifyLedger(encodeUtf8(lines.join('')));
}

/** Codes of a report's findings, each once, sorted, without those that are for information. */
export function ledgerCodes({ findings }: Report): string[] {
  return [...new Set(findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code))].sort();
}

export function parse(text: string): SourceValue {
  const decoded = decodeSourceJson(encodeUtf8(text), { loneSurrogates: true });
  if (!decoded.ok) throw new Error(decoded.fault.code);
  return decoded.value;
}

export function parseObject(text: string): SourceObject {
  const value = parse(text);
  if (!(value instanceof SourceObject)) throw new Error('not an object');
  return value;
}

/** The key of the recorded run: RFC 8032, test 1. */
const SECRET = tryDecodeHex('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60')!;
export const PUBLIC_JWK = '{"crv":"Ed25519","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}';

export function sign(message: Uint8Array): string {
  return encodeBase64url(ed25519.sign(message, SECRET));
}

interface TarMember {
  readonly name: string;
  readonly text?: string;
  readonly kind?: string;
  readonly link?: string;
}

/** A tar archive, packed. */
export function tarGz(members: readonly TarMember[], end = 1024): Uint8Array {
  return gzipSync(tar(members, end));
}

/** A tar archive. */
export function tar(members: readonly TarMember[], end = 1024): Uint8Array {
  const blocks: Buffer[] = [];
  for (const { name, text = '', kind = '0', link = '' } of members) {
    const content = Buffer.from(text);
    const header = Buffer.alloc(512);
    header.write(name, 0, 100);
    header.write('0000644\0', 100);
    header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
    header.write('00000000000\0', 136);
    header.write('        ', 148);
    header.write(kind, 156);
    header.write(link, 157);
    header.write('ustar\0' + '00', 257);
    const sum = header.reduce((all, byte) => all + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    blocks.push(header, content, Buffer.alloc((512 - (content.length % 512)) % 512));
  }
  return Buffer.concat([...blocks, Buffer.alloc(end)]);
}

type Members = Record<string, unknown>;

/** A recorded call with its request edited. */
export function edited(
  line: string,
  edit: (call: { request: Members; response: Members } & Members) => void,
): string {
  const call = JSON.parse(line) as { request: Members; response: Members } & Members;
  edit(call);
  return JSON.stringify(call);
}

/** A recorded envelope with its payload edited, or itself, and signed anew. */
export function resigned(line: string, edit: (payload: Members, envelope: Members) => void): string {
  return edited(line, (call) => {
    const envelope = call.request;
    edit(envelope['payload'] as Members, envelope);
    envelope['payload_hash'] = stableHash(parse(JSON.stringify(envelope['payload'])));
    envelope['signature'] = sign(envelopeSigningInput(parseObject(JSON.stringify(envelope))));
  });
}

/** A token with these claims. Nobody verifies it. */
export function token(claims: Members): string {
  const part = (value: unknown): string => encodeBase64url(encodeUtf8(JSON.stringify(value)));
  return `${part({ alg: 'HS256' })}.${part(claims)}.c2lnbmF0dXJl`;
}

/** What a token claims. */
export function claimsOf(text: unknown): Members {
  const [, part = ''] = String(text).split('.');
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Members;
}

/** A bundle with files edited and the digests of all of them made anew, as a forger would. */
export function forged(
  edit: (texts: Map<string, string>) => void,
  integrity?: (value: Members) => void,
): HostFile[] {
  const texts = bundleTexts();
  edit(texts);
  const value = JSON.parse(texts.get('integrity.json')!) as Members & { files: Members };
  const lines = (name: string): number =>
    texts
      .get(name)!
      .split('\n')
      .filter((line) => line !== '').length;
  const metadata = JSON.parse(texts.get('metadata.json')!) as { counts: Members };
  metadata.counts['traces'] = lines('traces.jsonl');
  metadata.counts['audits'] = lines('audits.jsonl');
  metadata.counts['audit_chain_entries'] = lines('audit_chain.jsonl');
  texts.set('metadata.json', JSON.stringify(metadata, null, 2));
  for (const name of Object.keys(value.files))
    value.files[name] = hashText(encodeUtf8(texts.get(name) ?? ''));
  integrity?.(value);
  texts.set('integrity.json', JSON.stringify(value, null, 2));
  texts.set('verify.sha256', `${hashText(encodeUtf8(texts.get('integrity.json')!))}  integrity.json\n`);
  return bundleFiles(texts);
}

/** The lines of a text without those of these numbers, from 1. */
export function without(text: string, ...numbers: number[]): string {
  const lines = text.trimEnd().split('\n');
  return `${lines.filter((_, i) => !numbers.includes(i + 1)).join('\n')}\n`;
}
