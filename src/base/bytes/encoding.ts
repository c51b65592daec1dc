/**
 * Binary-to-text encodings, strict in both directions: a text is accepted only if encoding the decoded bytes gives the same text
 * again. Base64url is without padding (RFC 4648 §5), base64 with it (§4); hexadecimal is written in lower case and read in either.
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
