/** Verdicts of a signature. It is not computed where its key is not known. */
export const NOT_COMPUTED = 0;
export const INVALID = 1;
export const VALID = 2;
