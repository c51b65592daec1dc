/** Verifies the ledger that is named, if one is, and prints the peak memory of its process in MiB. */

import { verifyWhole } from './verify.js';

const [path] = process.argv.slice(2);
if (path !== undefined) await verifyWhole(path);
console.log(process.resourceUsage().maxRSS / 1024);
