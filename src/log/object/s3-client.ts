/**
 * One signed request to an S3 store: a deadline for the whole exchange, a bound on the answer, no redirects. Credentials are in no error,
 * and of an answer's text only codes that are known.
 */

import { createHash } from 'node:crypto';
import { startDeadline } from '../../base/deadline.js';
import { NorthrootError } from '../../base/error.js';
import { connectionFault, readBounded } from '../../base/http-answer.js';
import type { S3Place } from './s3-place.js';

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials. */
  readonly sessionToken?: string | undefined;
}

export interface S3Request {
  readonly method: 'GET' | 'PUT' | 'DELETE';
  readonly key: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Of a successful answer, in bytes. */
  readonly limit?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface S3Answer {
  readonly status: number;
  /** Of a successful answer; undefined if it is longer than the limit. */
  readonly bytes: Uint8Array | undefined;
  readonly etag: string | undefined;
  /** The store's name of a failure, such as `AccessDenied`; undefined if it is none that is known. */
  readonly code: string | undefined;
  /** How long the store asks to wait. */
  readonly retryAfterMs: number | undefined;
  /** Where the bucket is, if the store says so. */
  readonly region: string | undefined;
}

/** Of the answer of a failure. */
const MAX_FAILURE_BYTES = 16 * 1024;
/** What is slower is given up. */
const LEAST_BYTES_PER_MS = 256;

/** Others are not shown: an answer may have parts of the request. */
const KNOWN_CODES: ReadonlySet<string> = new Set([
  ...[
    'AccessDenied',
    'AllAccessDisabled',
    'AuthorizationHeaderMalformed',
    'BadDigest',
    'BucketAlreadyExists',
  ],
  ...['ConditionalRequestConflict', 'EntityTooLarge', 'ExpiredToken', 'IllegalLocationConstraintException'],
  ...['InternalError', 'InvalidAccessKeyId', 'InvalidArgument', 'InvalidBucketName', 'InvalidRequest'],
  ...['InvalidSecurity', 'InvalidToken', 'MethodNotAllowed', 'MissingSecurityHeader', 'NoSuchBucket'],
  ...['NoSuchKey', 'NotImplemented', 'OperationAborted', 'PermanentRedirect', 'PreconditionFailed'],
  ...[
    'QuotaExceeded',
    'RequestTimeout',
    'RequestTimeTooSkewed',
    'ServiceUnavailable',
    'SignatureDoesNotMatch',
  ],
  ...[
    'SlowDown',
    'TemporaryRedirect',
    'TokenRefreshRequired',
    'TooManyRequests',
    'XAmzContentSHA256Mismatch',
  ],
]);

/** What goes into headers as it is. */
const HEADER_TEXT = /^[\x21-\x7e]{1,8192}$/;

export class S3Client {
  readonly #place: S3Place;
  readonly #credentials: S3Credentials;
  readonly #timeoutMs: number;
  /** Signing keys of the day. */
  readonly #cache = new Map<string, ArrayBuffer>();

  /** @throws TypeError for malformed credentials, which are not in the message */
  constructor(place: S3Place, credentials: S3Credentials, timeoutMs: number) {
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    for (const text of [accessKeyId, secretAccessKey, ...(sessionToken === undefined ? [] : [sessionToken])])
      if (typeof text !== 'string' || !HEADER_TEXT.test(text))
        throw new TypeError('credentials: expected printable characters, without spaces');
    this.#place = place;
    this.#credentials = credentials;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Sends a request, once.
   * @throws NorthrootError `PEER_TIMEOUT`, `PEER_UNREACHABLE`: what was asked may have been done, or may yet be done
   * @throws the signal's reason
   */
  async send({ method, key, headers, body, limit = 0, signal }: S3Request): Promise<S3Answer> {
    signal?.throwIfAborted();
    const ms = this.#timeoutMs + Math.ceil(Math.max(body?.length ?? 0, limit) / LEAST_BYTES_PER_MS);
    const deadline = startDeadline(ms, [signal]);
    try {
      const { AwsV4Signer } = await import('aws4fetch');
      const signed = await new AwsV4Signer({
        method,
        url: this.#place.urlOf(key).href,
        // The store refuses a body that was cut or changed on its way.
        headers: { ...headers, 'X-Amz-Content-Sha256': hexDigest(body ?? Buffer.of()) },
        ...this.#credentials,
        service: 's3',
        region: this.#place.region,
        cache: this.#cache,
      } as ConstructorParameters<typeof AwsV4Signer>[0]).sign();
      // After signing: proxies change it.
      signed.headers.set('Accept-Encoding', 'identity');
      const response = await fetch(signed.url, {
        method,
        headers: signed.headers,
        ...(body === undefined ? {} : { body: new Uint8Array(body) }),
        signal: deadline.signal,
        // A redirection could lead elsewhere, with what is in the request.
        redirect: 'manual',
      });
      const { status } = response;
      const isOk = status >= 200 && status < 300;
      const read = await readBounded(response, isOk ? limit : MAX_FAILURE_BYTES);
      return {
        status,
        bytes: isOk && read.isWhole ? Buffer.from(read.bytes) : undefined,
        etag: response.headers.get('etag') ?? undefined,
        code: isOk ? undefined : codeOf(read.bytes),
        retryAfterMs: secondsOf(response.headers.get('retry-after')),
        region: regionOf(response.headers.get('x-amz-bucket-region')),
      };
    } catch (error) {
      signal?.throwIfAborted();
      if (deadline.signal.aborted)
        throw new NorthrootError('PEER_TIMEOUT', `there was no answer within ${ms} ms`);
      throw new NorthrootError('PEER_UNREACHABLE', `the connection failed: ${connectionFault(error)}`);
    } finally {
      deadline.clear();
    }
  }
}

function hexDigest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function codeOf(bytes: Uint8Array): string | undefined {
  const code = /<Code>([A-Za-z0-9]{1,64})<\/Code>/.exec(Buffer.from(bytes).toString('latin1'))?.[1];
  return code !== undefined && KNOWN_CODES.has(code) ? code : undefined;
}

function secondsOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
}

function regionOf(text: string | null): string | undefined {
  return text !== null && /^[a-z]{2}(?:-[a-z]{1,16}){1,3}-\d$/.test(text) ? text : undefined;
}
