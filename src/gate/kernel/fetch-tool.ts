/**
 * `net.fetch`: HTTP to hosts of a list. A name is resolved once, its addresses are judged, and the connection is made to one of them. A
 * redirect to another host is not followed. Nothing of this process goes along: no proxy, no cookie, no credential.
 */

import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import {
  Agent as HttpAgent,
  type IncomingMessage,
  request as requestHttp,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { abortCode } from '../../base/deadline.js';
import type { Act, Done } from './act.js';
import { ArgumentFault, readArguments } from './arguments.js';
import { type HostRule, isListed, isReachable, type Target, targetOf, tryUrl } from './host-rules.js';
import { carriedBytes, carryingOutput, failure } from './output.js';

const MAX_URL = 4_096;
const MAX_REDIRECTS = 5;
const MAX_BODY_BYTES = 1_048_576;
const MAX_ADDRESSES = 16;
const MAX_HEADER = 512;
const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const DEFAULT_METHODS: readonly string[] = ['GET', 'HEAD'];
const MEDIA_TYPE =
  /^[A-Za-z0-9!#$&^_.+-]{1,80}\/[A-Za-z0-9!#$&^_.+*-]{1,80}(?:; ?charset=[A-Za-z0-9_-]{1,40})?$/;
const ACCEPT = /^[A-Za-z0-9!#$&^_.+*/;=, -]{1,256}$/;
/** Of an answer's headers, what is shown. */
const SHOWN = ['content-type', 'content-encoding', 'etag', 'last-modified', 'location'] as const;

export interface FetchOptions {
  readonly rules: readonly HostRule[];
  readonly methods: readonly string[];
  readonly ca: readonly string[] | undefined;
  readonly maxOutputBytes: number;
}

/** @throws TypeError, RangeError for others than those of {@link METHODS} */
export function checkMethods(methods: readonly string[] = DEFAULT_METHODS): readonly string[] {
  if (methods.length > 0 && methods.every((each) => METHODS.includes(each))) return methods;
  throw new RangeError(`openKernelTools: methods: expected some of ${METHODS.join(', ')}`);
}

interface Asked {
  readonly method: string;
  readonly accept: string;
  readonly body: Uint8Array | undefined;
  readonly contentType: string;
}

export function planFetch(options: FetchOptions, args: unknown): Act {
  const { rules, methods } = options;
  const read = readArguments(args, {
    url: 'string',
    method: 'string?',
    accept: 'string?',
    body: 'string?',
    content_type: 'string?',
  });
  const { method = 'GET', accept = '*/*', content_type: contentType = 'application/json' } = read;
  const url = read.url.length > MAX_URL ? undefined : tryUrl(read.url);
  if (url === undefined) throw new ArgumentFault('INVALID_ARGUMENTS', 'url: expected an absolute URL');
  const target = targetOf(url);
  if (target === undefined || !isListed(rules, target))
    throw new ArgumentFault('HOST_NOT_ALLOWED', 'url: the host is not one that may be fetched from');
  if (!methods.includes(method))
    throw new ArgumentFault('METHOD_NOT_ALLOWED', `method: expected ${methods.join(', ')}`);
  if (!ACCEPT.test(accept) || !MEDIA_TYPE.test(contentType))
    throw new ArgumentFault('INVALID_ARGUMENTS', 'expected a media type such as application/json');
  const body = read.body === undefined ? undefined : encodeUtf8(read.body);
  if (body !== undefined && isSafe(method))
    throw new ArgumentFault('INVALID_ARGUMENTS', `body: expected none with ${method}`);
  if ((body?.length ?? 0) > MAX_BODY_BYTES)
    throw new ArgumentFault('CONTENT_TOO_LARGE', `body: expected at most ${MAX_BODY_BYTES} bytes`);
  return {
    resources: [{ kind: 'host', reference: originOf(target) }],
    act: (signal) => follow(options, url, target, { method, accept, body, contentType }, signal),
  };
}

const isSafe = (method: string): boolean => method === 'GET' || method === 'HEAD';

function originOf({ protocol, host, port }: Target): string {
  return `${protocol}//${host.includes(':') ? `[${host}]` : host}:${port}`;
}

async function follow(
  options: FetchOptions,
  first: URL,
  target: Target,
  asked: Asked,
  signal: AbortSignal,
): Promise<Done> {
  let url = first;
  for (let redirects = 0; ; redirects += 1) {
    const answer = await exchange(options, url, target, asked, signal);
    if (typeof answer === 'string') return toFailure(answer);
    const { status, headers, body, isCut } = answer;
    const next = isRedirect(status) && isSafe(asked.method) ? headers['location'] : undefined;
    if (typeof next === 'string') {
      if (redirects === MAX_REDIRECTS) return toFailure('TOO_MANY_REDIRECTS');
      const led = next.length > MAX_URL ? undefined : tryUrl(next, url.href);
      const to = led && targetOf(led);
      if (led === undefined || to === undefined || !isListed(options.rules, to))
        return toFailure('HOST_NOT_ALLOWED');
      // It was decided on this host. Another one is to be asked for.
      if (originOf(to) !== originOf(target)) {
        const value = { error: 'REDIRECTED', status, location: printable(led.href, MAX_HEADER) };
        return { errorCode: value.error, output: encodeUtf8(JSON.stringify(value)) };
      }
      url = led;
      continue;
    }
    const errorCode = isCut ? 'OUTPUT_TOO_LARGE' : status >= 400 ? 'HTTP_STATUS' : undefined;
    const shown = SHOWN.flatMap((name): [string, string][] => {
      const value = headers[name];
      return typeof value === 'string' ? [[name.replace('-', '_'), printable(value, MAX_HEADER)]] : [];
    });
    const value = {
      ...(errorCode === undefined ? {} : { error: errorCode }),
      status,
      ...(redirects === 0 ? {} : { url: printable(url.href, MAX_HEADER) }),
      ...Object.fromEntries(shown),
      ...(isCut ? { truncated: true } : {}),
    };
    return { errorCode, output: carryingOutput(value, { body }, options.maxOutputBytes) };
  }
}

function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status);
}

function toFailure(code: string): Done {
  return { errorCode: code, output: failure(code) };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Uint8Array;
  readonly isCut: boolean;
}

/** One request and its answer, or why there is none. */
async function exchange(
  { rules, ca, maxOutputBytes }: FetchOptions,
  url: URL,
  target: Target,
  { method, accept, body, contentType }: Asked,
  signal: AbortSignal,
): Promise<Answer | string> {
  const addresses = await resolveHost(target, signal);
  if (typeof addresses === 'string') return addresses;
  // One that may not be connected to is enough: whoever answers for the name may put any beside it.
  if (!addresses.every(({ address }) => isReachable(rules, target, address))) return 'ADDRESS_NOT_ALLOWED';
  const isSecure = target.protocol === 'https:';
  const common: RequestOptions & { rejectUnauthorized?: boolean; ca?: string[]; servername?: string } = {
    method,
    host: target.host,
    port: target.port,
    path: `${url.pathname}${url.search}`,
    headers: {
      host: url.host,
      accept,
      // What is not compressed cannot be blown up.
      'accept-encoding': 'identity',
      'user-agent': 'northroot',
      ...(body === undefined ? {} : { 'content-type': contentType, 'content-length': body.length }),
    },
    agent: isSecure ? new HttpsAgent({ keepAlive: false }) : new HttpAgent({ keepAlive: false }),
    lookup: (_host, asked, done) => {
      const [one] = addresses as [LookupAddress];
      if (asked.all === true) done(null, addresses);
      else done(null, one.address, one.family);
    },
    signal,
    ...(isSecure ? { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca: [...ca] }) } : {}),
  };
  return new Promise((resolve) => {
    const asking = (isSecure ? requestHttps : requestHttp)(common);
    const fail = (error: NodeJS.ErrnoException): void =>
      resolve(signal.aborted ? abortCode(signal) : failureOf(error));
    asking.on('error', fail);
    // Who answers with another protocol is left, without an error.
    asking.once('close', () => resolve(signal.aborted ? abortCode(signal) : 'CONNECTION_FAILED'));
    asking.once('response', (answer) => {
      const { statusCode = 0, headers } = answer;
      const done = (pieces: readonly Uint8Array[], isCut: boolean): void => {
        resolve({ status: statusCode, headers, body: Buffer.concat(pieces), isCut });
        asking.destroy();
      };
      if (isRedirect(statusCode) && isSafe(method) && headers['location'] !== undefined)
        return done([], false);
      const limit = carriedBytes(maxOutputBytes);
      const pieces: Buffer[] = [];
      let size = 0;
      answer.on('data', (piece: Buffer) => {
        const room = limit - size;
        if (room > 0) pieces.push(piece.subarray(0, room));
        size += piece.length;
        if (piece.length > room) done(pieces, true);
      });
      answer.once('end', () => (answer.complete ? done(pieces, false) : resolve('CONNECTION_FAILED')));
      answer.on('error', fail);
    });
    asking.end(body);
  });
}

async function resolveHost({ host }: Target, signal: AbortSignal): Promise<LookupAddress[] | string> {
  const family = isIP(host);
  if (family !== 0) return [{ address: host, family }];
  if (signal.aborted) return abortCode(signal);
  let stop: (() => void) | undefined;
  const stopped = new Promise<string>((resolve) => {
    stop = () => resolve(abortCode(signal));
    signal.addEventListener('abort', stop, { once: true });
  });
  const found = lookup(host, { all: true, order: 'ipv4first' }).then(
    (addresses) => (addresses.length === 0 ? 'HOST_NOT_FOUND' : addresses.slice(0, MAX_ADDRESSES)),
    () => 'HOST_NOT_FOUND',
  );
  try {
    return await Promise.race([found, stopped]);
  } finally {
    signal.removeEventListener('abort', stop as () => void);
  }
}

function failureOf({ code = '' }: NodeJS.ErrnoException): string {
  return /^(?:ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)
    ? 'CERTIFICATE_REFUSED'
    : 'CONNECTION_FAILED';
}
