/**
 * Texts as bytes and bytes as texts, in UTF-8 and in Latin-1 (a byte for each character). Nothing is refused: what is not UTF-8
 * becomes U+FFFD, so that whoever must know has looked before.
 */

export { decodeLatin1, decodeUtf8, encodeLatin1, encodeUtf8, writeLatin1 } from '#platform';
