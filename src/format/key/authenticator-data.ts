/** The layout of WebAuthn's authenticator data (WebAuthn §6.1): the RP id's hash, a byte of flags, a counter, and what the flags announce. */

export const RP_ID_HASH_BYTES = 32;
/** The RP id's hash, the flags and the counter. */
export const FIXED_BYTES = 37;

export const USER_PRESENT = 0x01;
export const USER_VERIFIED = 0x04;
export const BACKUP_ELIGIBLE = 0x08;
export const BACKED_UP = 0x10;
export const ATTESTED = 0x40;
export const EXTENDED = 0x80;
