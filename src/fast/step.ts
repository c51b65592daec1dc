/**
 * What the rules, writers and indexes ask of the fast path: `#fast/step` in package.json. `rules/verify/slow-step.ts` takes its place in
 * a build without it.
 */

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
