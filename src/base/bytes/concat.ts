/** Bytes made: of zero, of anything, and of parts one after the other. */
export { allocateBytes, allocateScratch, concatBytes } from '#platform';
