/**
 * Strict binary-to-text encodings: a text is accepted only if its bytes encode to the same text. Base64url has no padding
 * (RFC 4648 §5), base64 has (§4); hexadecimal is written in lower case and read in either.
 */

export {
  encodeBase64,
  encodeBase64url,
  encodeHex,
  tryDecodeBase64,
  tryDecodeBase64url,
  tryDecodeHex,
  writeBase64url,
} from '#platform';
