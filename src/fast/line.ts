/** `#fast/line` in package.json: the fast path of `format/`. `format/record/slow-line.ts` is its slow twin. */

export { glanceAt, readScannedLine } from './scan/scanned-line.js';
