/**
 * What is kept of an episode beside the ledger, in apm2's own forms, so that its checks and imports read it: the captured log, rows as of
 * the daemon's ledger, receipts with their index, and artifacts by their content address. Receipts and rows are signed with a key that is
 * made for the episode and forgotten with it; the ledger says which one it was.
 */

import { join } from 'node:path';
import { concatBytes } from '../../../base/bytes/concat.js';
import { encodeHex } from '../../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { NorthrootError } from '../../../base/error.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import { generatePrivateKey } from '../../../format/key/private-key.js';
import { createSigner, type Signer } from '../../../format/signature/signer.js';
import { type FileSystem, nodeFileSystem, type OpenFile, placeFile } from '../../../log/fs/file-system.js';
import { blake3Hex, cacBytes } from '../../shared/forms/cac.js';
import type { HostFile } from '../../shared/host.js';
import { compactJson } from '../../shared/reading.js';
import { GENESIS, ledgerRowHash, ledgerRowOf } from '../ledger-rows.js';
import {
  ARTIFACT_VERSION,
  INDEX_FIELDS,
  INDEX_SCHEMA,
  readToolReceipt,
  RECEIPT_FIELDS,
  RECEIPT_SCHEMA,
  receiptSigningBytes,
  serdeBytes,
  type ToolReceipt,
} from '../receipt.js';
import { frameOf } from '../tool-intent.js';

/** Plain values as apm2's JSON has them: numbers are whole. */
export type Plain =
  | string
  | boolean
  | bigint
  | readonly Plain[]
  | { readonly [name: string]: Plain | undefined };

/** An executed call, for its receipt. Hashes are 64 hexadecimal digits. */
export type ReceiptFacts = Pick<
  ToolReceipt,
  | 'requestId'
  | 'capabilityId'
  | 'toolClass'
  | 'argsHash'
  | 'resultHash'
  | 'timeEnvelopeRef'
  | 'startedAtNs'
  | 'durationNs'
>;

export interface RecordingOptions {
  /** Of the agent's output besides frames, in bytes; of what is more, only the end is kept. */
  readonly maxLogBytes: number;
  /** 64 hexadecimal digits. */
  readonly policy: string;
  readonly fileSystem?: FileSystem | undefined;
}

export interface IndexCounts {
  readonly successful: number;
  readonly failed: number;
  readonly tokens: bigint;
  readonly bytesIo: bigint;
  readonly wallMs: bigint;
}

export interface EpisodeNames {
  readonly workId: string;
  readonly episodeId: string;
  readonly sessionId: string;
}

/** The files of a record. */
const ROWS = 'ledger_events.jsonl';
const RECEIPTS = 'receipts.jsonl';
const INDEX = 'index.json';
const LOG = 'log.txt';

type StreamFiles = Readonly<Record<typeof ROWS | typeof RECEIPTS | typeof LOG, OpenFile>>;

/** What of a log that has no more room is kept of its end. */
const MAX_TAIL_BYTES = 64 * 1024;
const MAX_TAIL_LINES = 64;
const QUOTE = '| ';

export class Recording {
  readonly folder: string;
  /** 64 hexadecimal digits. */
  readonly publicKey: string;
  /** What decisions and receipts name as their policy: the hash of the profile. */
  readonly policy: string;
  readonly #names: EpisodeNames;
  readonly #fileSystem: FileSystem;
  readonly #signer: Signer;
  readonly #maxLogBytes: number;
  readonly #files: StreamFiles;
  /** What was written, for the check at the end. */
  readonly #written: Record<string, Uint8Array[]> = { [ROWS]: [], [RECEIPTS]: [], [LOG]: [] };
  readonly #artifacts = new Map<string, Uint8Array>();
  readonly #receiptHashes: string[] = [];
  #prevHash = GENESIS;
  #rows = 0;
  #lastNs = 0n;
  #logBytes = 0;
  #hasFrame = false;
  #tail: string[] = [];
  #tailBytes = 0;
  #leftOut = 0;

  private constructor(
    folder: string,
    names: EpisodeNames,
    files: StreamFiles,
    { maxLogBytes, policy, fileSystem = nodeFileSystem }: RecordingOptions,
  ) {
    this.folder = folder;
    this.policy = policy;
    this.#names = names;
    this.#files = files;
    this.#maxLogBytes = maxLogBytes;
    this.#fileSystem = fileSystem;
    this.#signer = createSigner(generatePrivateKey());
    this.publicKey = encodeHex(this.#signer.publicKey.bytes);
  }

  /**
   * Makes the folder of an episode's record.
   * @throws NorthrootError `FILE_EXISTS`: an episode of this id was recorded there; as `writeNewFile`
   */
  static async create(folder: string, names: EpisodeNames, options: RecordingOptions): Promise<Recording> {
    const { fileSystem = nodeFileSystem } = options;
    await fileSystem.makeFolder(folder, 0o700);
    const open = (name: string): Promise<OpenFile> => fileSystem.open(join(folder, name), 'new', 0o600);
    const files = { [ROWS]: await open(ROWS), [RECEIPTS]: await open(RECEIPTS), [LOG]: await open(LOG) };
    return new Recording(folder, names, files, options);
  }

  /** The hash of the last row: `genesis`, or 64 hexadecimal digits. */
  get head(): string {
    return this.#prevHash;
  }

  /** Nanoseconds since 1970 that never go back: rows and receipts are in the order of time. */
  nowNs(): bigint {
    const now = BigInt(Date.now()) * 1_000_000n;
    this.#lastNs = now > this.#lastNs ? now : this.#lastNs + 1n;
    return this.#lastNs;
  }

  /** Adds a row, signed and chained. */
  async row(
    eventType: string,
    facts: Readonly<Record<string, Plain | undefined>>,
    timestampNs = this.nowNs(),
  ): Promise<void> {
    this.#rows += 1;
    const domain = `apm2.event.${eventType}:`;
    const payload = { ...facts, timestamp_ns: timestampNs, prev_hash: this.#prevHash };
    const canonical = cacBytes(toSource(payload));
    if (!canonical.ok) throw new NorthrootError('EPISODE_NOT_RECORDED', 'an event has no canonical form');
    const bytes = canonical.value;
    const signature = this.#signer.sign(concatBytes([encodeUtf8(domain), bytes]));
    const row = {
      event_id: `${this.#names.episodeId}-${this.#rows}`,
      event_type: eventType,
      work_id: this.#names.workId,
      actor_id: this.publicKey,
      timestamp_ns: timestampNs.toString(),
      payload: new TextDecoder().decode(bytes),
      prev_hash: this.#prevHash,
      signature: encodeHex(signature),
      domain_prefix: domain,
    };
    const hash = ledgerRowHash(ledgerRowOf(toSource({ ...row, event_hash: '' }) as SourceObject)!);
    await this.#append(ROWS, encodeUtf8(compactJson(toSource({ ...row, event_hash: hash }))));
    this.#prevHash = hash;
  }

  /** Adds the receipt of an execution. @returns its hash */
  async receipt(facts: ReceiptFacts): Promise<string> {
    const body = {
      schemaVersion: ARTIFACT_VERSION,
      episodeId: this.#names.episodeId,
      policyHash: this.policy,
      ...facts,
      signerIdentity: this.publicKey,
    };
    const signing = receiptSigningBytes({ ...body, hash: '', signature: new Uint8Array(64) });
    const value = toSource({
      schema: RECEIPT_SCHEMA,
      schema_version: body.schemaVersion,
      episode_id: body.episodeId,
      policy_hash: bytesOfHex(body.policyHash),
      request_id: body.requestId,
      capability_id: body.capabilityId,
      tool_class: body.toolClass,
      args_hash: bytesOfHex(body.argsHash),
      result_hash: bytesOfHex(body.resultHash),
      time_envelope_ref: bytesOfHex(body.timeEnvelopeRef),
      started_at_ns: body.startedAtNs,
      duration_ns: body.durationNs,
      signer_identity: body.signerIdentity,
      signature: [...this.#signer.sign(signing)].map(BigInt),
    }) as SourceObject;
    const read = readToolReceipt(value);
    if (!read.ok)
      throw new NorthrootError('EPISODE_NOT_RECORDED', `a receipt is not valid: ${read.fault.expected}`);
    await this.#append(RECEIPTS, serdeBytes(value, RECEIPT_FIELDS));
    this.#receiptHashes.push(read.value.hash);
    return read.value.hash;
  }

  get receipts(): number {
    return this.#receiptHashes.length;
  }

  /** Adds the index over all receipts. @returns its hash */
  async index({ successful, failed, tokens, bytesIo, wallMs }: IndexCounts): Promise<string> {
    const value = toSource({
      schema: INDEX_SCHEMA,
      schema_version: ARTIFACT_VERSION,
      episode_id: this.#names.episodeId,
      tool_execution_receipt_hashes: this.#receiptHashes,
      counts: {
        total_executions: BigInt(successful + failed),
        successful_executions: BigInt(successful),
        failed_executions: BigInt(failed),
        total_tokens: tokens,
        total_bytes_io: bytesIo,
        total_wall_ms: wallMs,
      },
      first_sequence: 0n,
      is_final_chunk: true,
    }) as SourceObject;
    const bytes = serdeBytes(value, INDEX_FIELDS);
    await this.#place(INDEX, bytes);
    return blake3Hex(bytes);
  }

  /** Keeps an artifact under its content address. @returns that */
  async artifact(bytes: Uint8Array): Promise<string> {
    const hash = blake3Hex(bytes);
    await this.#place(`${hash}.json`, bytes);
    return hash;
  }

  /** An object as the artifact that its canonical form is. */
  artifactOf(value: Readonly<Record<string, Plain | undefined>>): Promise<string> {
    const canonical = cacBytes(toSource(value));
    if (!canonical.ok) throw new NorthrootError('EPISODE_NOT_RECORDED', 'an artifact has no canonical form');
    return this.artifact(canonical.value);
  }

  /** Adds a line of the agent that is a request. */
  async frame(line: string): Promise<void> {
    this.#hasFrame = true;
    await this.#append(LOG, encodeUtf8(line));
  }

  async answer(line: string): Promise<void> {
    this.#leftOut += this.#tail.length;
    this.#tail = [];
    this.#tailBytes = 0;
    await this.frame(line);
  }

  /**
   * Adds another line of the agent. What it could pass off as the kernel's is quoted: its answers, and before the first frame what would
   * make the log a file of events.
   */
  async output(line: string): Promise<void> {
    const isQuoted = frameOf(line) !== undefined || (!this.#hasFrame && /^[\s\uFEFF]*[{[]/.test(line));
    const kept = isQuoted ? `${QUOTE}${line}` : line;
    const bytes = encodeUtf8(kept);
    if (this.#logBytes + bytes.length <= this.#maxLogBytes) {
      this.#logBytes += bytes.length + 1;
      await this.#append(LOG, bytes);
      return;
    }
    this.#logBytes = this.#maxLogBytes;
    this.#tail.push(kept);
    this.#tailBytes += bytes.length + 1;
    while (this.#tailBytes > MAX_TAIL_BYTES || this.#tail.length > MAX_TAIL_LINES) {
      const first = this.#tail.shift() ?? '';
      this.#tailBytes -= encodeUtf8(first).length + 1;
      this.#leftOut += 1;
    }
  }

  /** Ends the log. @returns its hash */
  async endLog(): Promise<string> {
    if (this.#leftOut > 0) await this.#append(LOG, encodeUtf8(`| ${this.#leftOut} lines are left out`));
    for (const line of this.#tail.splice(0)) await this.#append(LOG, encodeUtf8(line));
    return blake3Hex(concatBytes(this.#written[LOG] ?? []));
  }

  /** All that was written, as files of the host. */
  files(): HostFile[] {
    const streams = Object.entries(this.#written).map(([name, pieces]) => ({
      name,
      bytes: concatBytes(pieces),
    }));
    const artifacts = [...this.#artifacts].map(([name, bytes]) => ({ name, bytes }));
    return [...streams, ...artifacts].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Puts all of it on disk, and closes. */
  async close(): Promise<void> {
    const files = Object.values(this.#files);
    try {
      for (const file of files) await file.datasync();
      await this.#fileSystem.syncFolderOf(join(this.folder, LOG));
    } finally {
      for (const file of files) await file.close().catch(() => undefined);
    }
  }

  async #append(name: keyof StreamFiles, line: Uint8Array): Promise<void> {
    const bytes = concatBytes([line, LINE_END]);
    const file = this.#files[name];
    for (let done = 0; done < bytes.length;) done += await file.write(bytes.subarray(done));
    this.#written[name]?.push(bytes);
  }

  async #place(name: string, bytes: Uint8Array): Promise<void> {
    await placeFile(join(this.folder, name), bytes, { fileSystem: this.#fileSystem });
    this.#artifacts.set(name, bytes);
  }
}

const LINE_END = new Uint8Array([0x0a]);

function bytesOfHex(hex: string): bigint[] {
  return (hex.match(/../g) ?? []).map((digits) => BigInt(`0x${digits}`));
}

function toSource(value: Plain): SourceValue {
  if (typeof value === 'string') return value.normalize('NFC');
  if (typeof value === 'boolean') return value;
  if (typeof value === 'bigint') return new SourceNumber(value.toString());
  if (isList(value)) return value.map(toSource);
  const members = Object.entries(value).filter(
    (member): member is [string, Plain] => member[1] !== undefined,
  );
  return new SourceObject(new Map(members.map(([name, member]) => [name, toSource(member)])));
}

function isList(value: Plain): value is readonly Plain[] {
  return Array.isArray(value);
}
