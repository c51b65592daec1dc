/** What became of a signature: it was not computed, as its key was not known there, or the equation says so. */
export const NOT_COMPUTED = 0;
export const INVALID = 1;
export const VALID = 2;
