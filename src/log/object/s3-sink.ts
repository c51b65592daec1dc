/**
 * A bucket of an S3 store as a place of objects. Nothing is locked: `If-None-Match: *` keeps what is there, `If-Match` replaces only what
 * was read. Whatever has no certain answer is asked again under the same condition, and then the bytes decide: a delayed first request can
 * do no more than the second one did. A 404 is no proof, so nothing rests on one.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { checkOptions } from '../../base/options.js';
import { NorthrootError } from '../../base/error.js';
import { changedMeanwhile, isSame, type ObjectSink, type StoredObject, tileMismatch } from './object-sink.js';
import { assertConditions } from './probe.js';
import { type S3Answer, S3Client, type S3Credentials, type S3Request } from './s3-client.js';
import { type BucketAddressing, S3Place } from './s3-place.js';

export interface S3SinkOptions {
  readonly credentials: S3Credentials;
  /** The store's URL: https, or http on this machine's loopback. Default: Amazon's of the region. */
  readonly endpoint?: string | undefined;
  /** Default `us-east-1`. */
  readonly region?: string | undefined;
  /** `https://HOST/BUCKET/KEY` or `https://BUCKET.HOST/KEY`. Default: `path` with an endpoint or a bucket with dots, else `virtual`. */
  readonly addressing?: BucketAddressing | undefined;
  /** For one request, besides a millisecond for each 256 bytes. Default 30 s. */
  readonly timeoutMs?: number | undefined;
  /** How often a request is sent that has no certain answer. Default 8. */
  readonly attempts?: number | undefined;
  /** The first pause before one is sent again; each is up to twice the one before. Default 200 ms. */
  readonly pauseMs?: number | undefined;
}

const TIMEOUT_MS = 30_000;
const ATTEMPTS = 8;
const PAUSE_MS = 200;
/** Also of what a store asks for. */
const MAX_PAUSE_MS = 20_000;
const MAX_REQUESTS = 16;
/** How often a store may say that an object is there, or changed, and not show it. */
const MAX_READS = 4;

type Condition = { readonly 'If-None-Match': '*' } | { readonly 'If-Match': string };

const NEW: Condition = { 'If-None-Match': '*' };
const AGAIN: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/**
 * A bucket to publish a tile tree in, as `s3://BUCKET/PREFIX`. Nothing is connected to before it is used. Needed are the permissions to
 * get, put and list below the prefix; what is there is never deleted, but for one small object per use, named `northroot-probe-…`.
 * @throws TypeError, RangeError for a malformed URL or option, which is not in the message
 */
export function openS3Sink(url: string, options: S3SinkOptions): ObjectSink {
  checkOptions('openS3Sink', options, {
    credentials: 'object',
    endpoint: 'string',
    region: 'string',
    addressing: 'string',
    timeoutMs: 'number',
    attempts: 'number',
    pauseMs: 'number',
  });
  return new S3Sink(url, options);
}

class S3Sink implements ObjectSink {
  readonly name: string;
  readonly isRemote = true;
  readonly concurrency = MAX_REQUESTS;
  readonly #client: S3Client;
  readonly #attempts: number;
  readonly #pauseMs: number;

  constructor(url: string, options: S3SinkOptions) {
    const { addressing, timeoutMs = TIMEOUT_MS, attempts = ATTEMPTS, pauseMs = PAUSE_MS } = options;
    if (addressing !== undefined && addressing !== 'path' && addressing !== 'virtual')
      throw new TypeError('openS3Sink: option addressing: expected path or virtual');
    for (const [name, value] of Object.entries({ timeoutMs, attempts, pauseMs }))
      if (!Number.isSafeInteger(value) || value < 1 || value > 3_600_000)
        throw new RangeError(`openS3Sink: option ${name}: expected an integer from 1 to 3,600,000`);
    const place = new S3Place(url, options);
    this.name = place.name;
    this.#client = new S3Client(place, options.credentials, timeoutMs);
    this.#attempts = attempts;
    this.#pauseMs = pauseMs;
  }

  nameOf(key: string): string {
    return `${this.name}/${key}`;
  }

  async get(key: string, limit: number, signal?: AbortSignal): Promise<StoredObject | undefined> {
    const { answer } = await this.#send({ method: 'GET', key, limit, signal });
    if (answer.status === 404 && answer.code !== 'NoSuchBucket') return undefined;
    if (answer.status !== 200) throw this.#refusal('read', key, answer);
    return { bytes: answer.bytes, tag: this.#tagOf(key, answer) };
  }

  begin(signal?: AbortSignal): Promise<void> {
    return assertConditions(this, {
      writers: MAX_REQUESTS,
      remove: (key) => this.#remove(key, signal),
      pause: (nth) => this.#pause(nth, undefined, signal),
      signal,
    });
  }

  async putNew(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'written' | 'kept'> {
    let wasUncertain = false;
    for (let reads = 1; ; reads += 1) {
      const put = await this.#put(key, bytes, NEW, signal);
      if (put.isWritten) return 'written';
      wasUncertain ||= put.wasUncertain;
      // An answer that was cut is not taken for other bytes.
      for (let looks = 1; looks <= 2; looks += 1) {
        const found = await this.get(key, bytes.length, signal);
        // Its own first try may have written it.
        if (isSame(found?.bytes, bytes)) return wasUncertain ? 'written' : 'kept';
        if (found === undefined) break;
        if (looks === 2) throw tileMismatch(this.nameOf(key));
      }
      if (reads === MAX_READS) throw this.#unseen(key);
      await this.#pause(reads, undefined, signal);
    }
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  async replaceIf(
    key: string,
    bytes: Uint8Array,
    expected: StoredObject | undefined,
    signal?: AbortSignal,
  ): Promise<void> {
    if (expected !== undefined && isSame(expected.bytes, bytes)) return;
    const condition = expected === undefined ? NEW : { 'If-Match': expected.tag };
    for (let reads = 1; ; reads += 1) {
      const put = await this.#put(key, bytes, condition, signal);
      if (put.isWritten) return;
      const found = await this.get(key, bytes.length, signal);
      if (isSame(found?.bytes, bytes)) return;
      // A read may be older than the refusal.
      if (found?.tag !== expected?.tag || reads === MAX_READS) throw changedMeanwhile(this.nameOf(key));
      await this.#pause(reads, undefined, signal);
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Writes under a condition, as often as it takes for a certain answer. */
  async #put(
    key: string,
    body: Uint8Array,
    condition: Condition,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly isWritten: boolean; readonly wasUncertain: boolean }> {
    const headers = { ...headersOf(key), ...condition };
    const { answer, wasUncertain } = await this.#send({ method: 'PUT', key, headers, body, signal });
    const { status, code } = answer;
    if (status === 200 || status === 201 || status === 204) {
      this.#tagOf(key, answer);
      return { isWritten: true, wasUncertain };
    }
    // Where the object that was to be replaced is missing, it is a 404.
    const isRefused = status === 412 || (status === 404 && code === 'NoSuchKey' && 'If-Match' in condition);
    if (!isRefused) throw this.#refusal('write', key, answer);
    return { isWritten: false, wasUncertain };
  }

  /** An object that nothing refers to; that it stays is no failure. */
  async #remove(key: string, signal: AbortSignal | undefined): Promise<void> {
    await this.#client.send({ method: 'DELETE', key, signal }).catch(() => undefined);
    signal?.throwIfAborted();
  }

  /** Sends a request until its answer is certain. @throws NorthrootError `PEER_TIMEOUT`, `PEER_UNREACHABLE`, `OBJECT_STORE_REFUSED` */
  async #send(request: S3Request): Promise<{ readonly answer: S3Answer; readonly wasUncertain: boolean }> {
    let wasUncertain = false;
    for (let attempt = 1; ; attempt += 1) {
      let answer: S3Answer | undefined;
      try {
        answer = await this.#client.send(request);
        const { status, code } = answer;
        const isFailure = status >= 500 && status !== 501;
        if (!isFailure && !AGAIN.has(status) && code !== 'RequestTimeout') return { answer, wasUncertain };
        wasUncertain ||= isFailure;
        if (attempt === this.#attempts) throw this.#refusal('answer for', request.key, answer, attempt);
      } catch (error) {
        if (!(error instanceof NorthrootError) || !error.code.startsWith('PEER_')) throw error;
        wasUncertain = true;
        if (attempt === this.#attempts)
          throw new NorthrootError(
            error.code,
            `${this.nameOf(request.key)}: ${error.message}, at the last of ${attempt} tries`,
            { hint: 'what was published is whole: run the command again' },
          );
      }
      await this.#pause(attempt, answer?.retryAfterMs, request.signal);
    }
  }

  async #pause(nth: number, asked: number | undefined, signal: AbortSignal | undefined): Promise<void> {
    const most = Math.min(this.#pauseMs * 2 ** (nth - 1), MAX_PAUSE_MS);
    const ms = Math.max(Math.min(asked ?? 0, MAX_PAUSE_MS), (most * (1 + Math.random())) / 2);
    try {
      await wait(ms, undefined, { ...(signal && { signal }) });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  }

  #tagOf(key: string, { etag }: S3Answer): string {
    // A weak one does not tell states apart.
    if (etag !== undefined && /^"[\x21\x23-\x7e]{1,1024}"$/.test(etag)) return etag;
    throw new NorthrootError('OBJECT_STORE_UNFIT', `the store gave no strong ETag for ${this.nameOf(key)}`, {
      hint: 'publish to a store that has conditional writes',
    });
  }

  #unseen(key: string): NorthrootError {
    const message = `the store says that ${this.nameOf(key)} is there, and does not give it`;
    return new NorthrootError('OBJECT_STORE_UNFIT', message, { hint: 'run the command again later' });
  }

  #refusal(action: string, key: string, answer: S3Answer, tries = 1): NorthrootError {
    const { status, code, region } = answer;
    const said = `status ${status}${code === undefined ? '' : `, ${code}`}`;
    const times = tries === 1 ? '' : `, at the last of ${tries} tries`;
    const message = `the store did not ${action} ${this.nameOf(key)}: ${said}${times}`;
    if (status === 501)
      return new NorthrootError('OBJECT_STORE_UNFIT', message, {
        hint: 'publish to a store that has conditional writes',
      });
    const hint = hintOf(status, code, region);
    return new NorthrootError('OBJECT_STORE_REFUSED', message, { ...(hint === undefined ? {} : { hint }) });
  }
}

/** As https://c2sp.org/tlog-tiles says. */
function headersOf(key: string): Record<string, string> {
  return key.startsWith('tile/')
    ? {
        'Content-Type': 'application/octet-stream',
        'Cache-Control': 'public, max-age=31536000, immutable',
      }
    : { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-cache' };
}

function hintOf(status: number, code: string | undefined, region: string | undefined): string | undefined {
  if (region !== undefined && (status === 301 || status === 307 || status === 400))
    return `the bucket is in the region ${region}`;
  if (status >= 300 && status < 400)
    return 'redirections are not followed: give the endpoint and region of the bucket';
  if (code === 'RequestTimeTooSkewed') return 'set the clock of this machine';
  if (code === 'ExpiredToken') return 'get new temporary credentials';
  if (code === 'SignatureDoesNotMatch' || code === 'InvalidAccessKeyId')
    return 'give the credentials and the region of this store';
  if (status === 403) return 'the credentials need permission to get, put and list objects below the prefix';
  if (code === 'NoSuchBucket' || status === 404)
    return 'make the bucket first, or give its endpoint and region';
  if (status >= 500 || status === 429) return 'what was published is whole: run the command again later';
  return undefined;
}
