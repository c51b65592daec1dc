/** A small ledger with something of everything that goes wrong. */
export function mixedLedger(): Buffer;
