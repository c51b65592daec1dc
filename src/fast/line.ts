/** What `format/` asks of the fast path: `#fast/line` in package.json. `format/record/slow-line.ts` takes its place in a build without it. */

export { glanceAt, readScannedLine } from './scan/scanned-line.js';
