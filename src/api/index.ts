/**
 * northroot: a verifiable event ledger and its offline verifier. Everything that the command line does, it does through
 * what is exported here: all of the entry points below, each of which can be imported by itself.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';
export { VERSION } from '../base/version.js';

// Words: outside text made fit for a terminal, and the nearest of what is known
export { printable } from '../base/bytes/printable.js';
export { didYouMean } from '../base/bytes/did-you-mean.js';

// Small files, which appear whole or not at all
export {
  isOpenToOthers,
  isSameFile,
  isWritableFolder,
  kindOfPath,
  readFileChunks,
  readSmallFile,
  removeFile,
  replaceFile,
  writeNewFile,
  type PathKind,
  type ReplaceOptions,
} from '../log/fs/file-system.js';
export { findTrackingWorkTree } from '../log/fs/work-tree.js';

export { listFiles } from '../log/fs/plain-file.js';

// What is written piece by piece, and appears whole or not at all
export { Spool } from '../log/fs/spool.js';
export { openScratchFile } from '../log/fs/scratch-file.js';
export type { ScratchFile } from '../rules/source/scratch-file.js';
export {
  writeFilesThrough,
  writeFolderThrough,
  writeThrough,
  type WriteThroughOptions,
} from '../log/fs/file-sink.js';
export type { ByteSink } from '../base/bytes/byte-sink.js';

export * from './format.js';
export * from './verify.js';
export * from './log.js';
export * from './proof.js';
export * from './witness.js';
export * from './export.js';
export * from './hosts.js';

// A name of the report's schema too; here it is the account's.
export { type OpenAuthorization } from '../rules/report/accounts.js';
