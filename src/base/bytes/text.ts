/** Text encodings, UTF-8 and Latin-1 (one byte per character). Nothing is refused: what is not UTF-8 becomes U+FFFD. */

export { decodeLatin1, decodeUtf8, encodeLatin1, encodeUtf8, writeLatin1 } from '#platform';
