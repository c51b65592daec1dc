/** Names a bucket, a prefix in it and the store that has it; and the URL of each of its objects. */

/** How a bucket is named in a URL: `https://HOST/BUCKET/KEY` or `https://BUCKET.HOST/KEY`. */
export type BucketAddressing = 'path' | 'virtual';

export interface S3PlaceOptions {
  /** The store's URL: https, or http on this machine's loopback. Default: Amazon's of the region. */
  readonly endpoint?: string | undefined;
  /** Default `us-east-1`. */
  readonly region?: string | undefined;
  /** Default: `path` with an endpoint, or for a bucket with dots; else `virtual`. */
  readonly addressing?: BucketAddressing | undefined;
}

const S3_URL = /^s3:\/\/([A-Za-z0-9][A-Za-z0-9._-]{1,62})(?:\/(.*))?$/;
/** Characters that no server and no signature writes in two ways. */
const PART = /^[A-Za-z0-9._~-]+$/;
const MAX_PREFIX_LENGTH = 512;
const REGION = /^[A-Za-z0-9-]{1,64}$/;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

export class S3Place {
  /** `s3://BUCKET/PREFIX`. */
  readonly name: string;
  readonly region: string;
  /** Ends in `/`. */
  readonly #base: string;

  /** @throws TypeError unless `url` is `s3://BUCKET/PREFIX`, and for a malformed option; what is malformed is not in the message */
  constructor(url: string, { endpoint, region = 'us-east-1', addressing }: S3PlaceOptions = {}) {
    const [, bucket, rest = ''] = S3_URL.exec(url) ?? [];
    const prefix = rest.replace(/\/$/, '');
    const parts = prefix === '' ? [] : prefix.split('/');
    const isPlain = parts.every((part) => PART.test(part) && part !== '.' && part !== '..');
    if (bucket === undefined || bucket.includes('..') || !isPlain || prefix.length > MAX_PREFIX_LENGTH)
      throw new TypeError('expected s3://BUCKET/PREFIX of letters, digits, ".", "_", "~" and "-"');
    if (!REGION.test(region)) throw new TypeError('region: expected letters, digits and "-"');
    this.name = ['s3:/', bucket, ...parts].join('/');
    this.region = region;
    const style = addressing ?? (endpoint !== undefined || bucket.includes('.') ? 'path' : 'virtual');
    const base = parseEndpoint(endpoint ?? `https://s3.${region}.amazonaws.com`);
    if (style === 'path') base.pathname += `${bucket}/`;
    else {
      const host = `${bucket}.${base.hostname}`;
      base.hostname = host;
      // An address has no names below it.
      if (base.hostname !== host.toLowerCase())
        throw new TypeError('addressing: the endpoint is an address, which has no name for a bucket');
    }
    this.#base = `${base.href}${parts.map((part) => `${part}/`).join('')}`;
  }

  urlOf(key: string): URL {
    return new URL(this.#base + key);
  }
}

/** @throws TypeError; the text, which may have a password, is not in the message */
function parseEndpoint(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSafe =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.test(url.hostname.toLowerCase()));
  if (url === undefined || !isSafe)
    throw new TypeError('endpoint: expected an https URL, or http on this machine');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('endpoint: expected a URL without credentials, query and fragment');
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}
