/** Bytes made: of zero, and of parts one after the other. */
export { allocateBytes, concatBytes } from '#platform';
