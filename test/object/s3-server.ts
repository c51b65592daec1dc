/**
 * A small S3 store, stricter than most: it checks signatures (written here from AWS's description, not with the client's library), digests
 * of bodies and conditions, all of a request at one moment. `intercept` makes it as broken as a test needs it.
 */

import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const CREDENTIALS = {
  accessKeyId: 'AKIATESTTESTTESTTEST',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'FwoGZXIvYXdzEXAMPLEsessiontoken==',
};
export const REGION = 'eu-test-1';

export interface Stored {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly type: string;
  readonly cache: string;
}

export interface Seen {
  readonly method: string;
  /** Within the bucket. */
  readonly key: string;
  /** From 1. */
  readonly nth: number;
}

/** What becomes of a request. */
export type Fault =
  /** No answer, and nothing done; or done. */
  | 'lose-before'
  | 'lose-after'
  /** Done after this many milliseconds, whatever becomes of the connection; the answer is lost. */
  | { readonly doneAfter: number }
  | {
      readonly status: number;
      readonly code?: string;
      readonly headers?: Record<string, string>;
      readonly text?: string;
    }
  /** As good, but the body is cut, or has no end, or never begins. */
  | 'truncate'
  | 'endless'
  | 'stall'
  /** Conditions are ignored; or looked at, and later acted on. */
  | 'unconditional'
  | 'racy'
  | { readonly etag: string | undefined };

export class S3Server {
  readonly objects = new Map<string, Stored>();
  readonly seen: Seen[] = [];
  intercept: (seen: Seen) => Promise<undefined> | Fault | undefined = () => undefined;
  /** Called with each object as it is written. */
  onWrite: (key: string, bytes: Buffer) => void = () => undefined;
  readonly #server: Server;

  readonly bucket: string;

  private constructor(bucket: string) {
    this.bucket = bucket;
    this.#server = createServer((request, response) => {
      void this.#take(request, response).catch(() => response.destroy());
    });
  }

  static async start(bucket = 'logs'): Promise<S3Server> {
    const server = new S3Server(bucket);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The objects below a prefix, without the probes. */
  files(prefix: string): Map<string, Buffer> {
    const found = [...this.objects].filter(
      ([key]) => key.startsWith(prefix) && !key.includes('northroot-probe'),
    );
    return new Map(
      found
        .map(([key, { bytes }]): [string, Buffer] => [key.slice(prefix.length), bytes])
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method = '', url = '' } = request;
    const key = url.slice(this.bucket.length + 2);
    const seen = { method, key, nth: this.seen.length + 1 };
    this.seen.push(seen);
    const fault = await this.intercept(seen);
    if (fault === 'stall') return;
    if (fault === 'lose-before') return void response.destroy();
    if (typeof fault === 'object' && 'status' in fault) {
      const { status, code = '', headers = {}, text = '' } = fault;
      response.writeHead(status, headers).end(text || `<Error><Code>${code}</Code></Error>`);
      return;
    }
    if (typeof fault === 'object' && 'doneAfter' in fault) {
      response.destroy();
      await new Promise((resolve) => setTimeout(resolve, fault.doneAfter));
      this.#do(request, method, key, body, false);
      return;
    }
    if (fault === 'racy' && method === 'PUT') {
      const refused = this.#refusalOf(request, key);
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (refused !== undefined) return fail(response, refused[0], refused[1]);
    }
    const isIgnored = fault === 'unconditional' || fault === 'racy';
    const answer = this.#do(request, method, key, body, isIgnored);
    if (fault === 'lose-after') return void response.destroy();
    if (typeof answer[1] === 'string') return fail(response, answer[0], answer[1]);
    const { etag, bytes } = answer[1];
    const shown = typeof fault === 'object' ? fault.etag : etag;
    const headers = shown === undefined ? {} : { etag: shown };
    if (fault === 'truncate') {
      response.writeHead(answer[0], { ...headers, 'content-length': bytes.length + 10 }).write(bytes);
      setTimeout(() => response.destroy(), 5);
    } else if (fault === 'endless') {
      response.writeHead(answer[0], headers);
      const pour = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(64 * 1024, 'x')));
      };
      response.on('drain', pour);
      pour();
    } else response.writeHead(answer[0], headers).end(bytes);
  }

  #do(
    request: IncomingMessage,
    method: string,
    key: string,
    body: Buffer,
    isUnconditional: boolean,
  ): readonly [number, string | { readonly etag: string; readonly bytes: Buffer }] {
    const fault = faultOfSignature(request, body);
    if (fault !== undefined) return [403, fault];
    if (!request.url?.startsWith(`/${this.bucket}/`)) return [404, 'NoSuchBucket'];
    const found = this.objects.get(key);
    if (method === 'GET') return found === undefined ? [404, 'NoSuchKey'] : [200, found];
    if (method === 'DELETE') {
      this.objects.delete(key);
      return [204, { etag: '""', bytes: Buffer.of() }];
    }
    if (method !== 'PUT') return [405, 'MethodNotAllowed'];
    const refused = isUnconditional ? undefined : this.#refusalOf(request, key);
    if (refused !== undefined) return refused;
    const { 'content-type': type = '', 'cache-control': cache = '' } = request.headers;
    const etag = `"${createHash('md5').update(body).digest('hex')}"`;
    this.objects.set(key, { bytes: body, etag, type, cache });
    this.onWrite(key, body);
    return [200, { etag, bytes: Buffer.of() }];
  }

  #refusalOf(request: IncomingMessage, key: string): readonly [number, string] | undefined {
    const found = this.objects.get(key);
    const { 'if-none-match': none, 'if-match': match } = request.headers;
    // A publisher that writes without a condition is a bug.
    if (none === undefined && match === undefined) return [400, 'InvalidRequest'];
    if (none !== undefined && found !== undefined) return [412, 'PreconditionFailed'];
    if (match !== undefined && found === undefined) return [404, 'NoSuchKey'];
    if (match !== undefined && match !== found?.etag) return [412, 'PreconditionFailed'];
    return undefined;
  }
}

function fail(response: ServerResponse, status: number, code: string): void {
  const text = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`;
  response.writeHead(status, { 'content-type': 'application/xml' }).end(text);
}

/** Signature Version 4, as AWS describes it. */
function faultOfSignature(request: IncomingMessage, body: Buffer): string | undefined {
  const { headers, method = '', url = '' } = request;
  const [, credential = '', signed = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    ) ?? [];
  const [id, day = '', region = '', service = '', end = ''] = credential.split('/');
  if (id !== CREDENTIALS.accessKeyId) return 'InvalidAccessKeyId';
  if (headers['x-amz-security-token'] !== CREDENTIALS.sessionToken) return 'InvalidToken';
  if (region !== REGION || service !== 's3' || end !== 'aws4_request') return 'AuthorizationHeaderMalformed';
  const digest = createHash('sha256').update(body).digest('hex');
  if (headers['x-amz-content-sha256'] !== digest) return 'XAmzContentSHA256Mismatch';
  const names = signed.split(';');
  const needed = [
    'host',
    ...Object.keys(headers).filter((name) => name.startsWith('x-amz-') || name.startsWith('if-')),
  ];
  if (needed.some((name) => !names.includes(name))) return 'AccessDenied';
  const [path = '', query = ''] = url.split('?');
  const canonical = [
    ...[method, path, query],
    ...names.map((name) => `${name}:${String(headers[name] ?? '').trim()}`),
    ...['', signed, digest],
  ].join('\n');
  const date = String(headers['x-amz-date']);
  const scope = [day, region, service, end].join('/');
  const hash = createHash('sha256').update(canonical).digest('hex');
  const hmac = (key: string | Buffer, text: string): Buffer =>
    createHmac('sha256', key).update(text).digest();
  let key: string | Buffer = `AWS4${CREDENTIALS.secretAccessKey}`;
  for (const part of [day, region, service, end]) key = hmac(key, part);
  const expected = hmac(key, ['AWS4-HMAC-SHA256', date, scope, hash].join('\n')).toString('hex');
  return signature === expected ? undefined : 'SignatureDoesNotMatch';
}
