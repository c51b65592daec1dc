/**
 * northroot: a verifiable event ledger and its offline verifier. All of the entry points below, each of which can be imported by
 * itself. Other systems' records are `northroot/hosts`.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';
export { VERSION } from '../base/version.js';

// Output that is written piece by piece and appears whole or not at all
export { writeThrough, type WriteThroughOptions } from '../log/fs/file-sink.js';
export type { ByteSink } from '../base/bytes/byte-sink.js';
export * from './format.js';
export * from './verify.js';
export * from './log.js';
export * from './postgres.js';
export * from './gate.js';
export * from './proof.js';
export * from './witness.js';
export * from './export.js';

// The report's schema has a type of this name too; here it is the account's.
export { type OpenAuthorization } from '../rules/report/accounts.js';
