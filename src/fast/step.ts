/** `#fast/step` in package.json: the fast path of rules, writers and indexes. `rules/verify/slow-step.ts` is its slow twin. */

export { BlockSteps, type LineSteps } from './blocks/block-steps.js';
export { examinePart, type PartOptions } from './blocks/examine-part.js';
export { rememberKeys } from './blocks/known-keys.js';
export { openParts, type PartInput } from './blocks/open-parts.js';
export { MAX_PARTS } from './blocks/part-file.js';
export { defaultThreads, readBlocks } from './blocks/read-blocks.js';
export { FastStep } from './fast-step.js';
export { isFastPathOn } from './scan/scanned-line.js';
export { type FastEvent, LINE_ROOM, placeFastEvent, scanFastEvent } from './writer/fast-line.js';
export { WriterFastPath } from './writer/writer-fast-path.js';
