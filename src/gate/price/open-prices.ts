/** Price files on disk. */

import { readSmallFile } from '../../log/fs/file-system.js';
import { MAX_PRICES_BYTES, parsePrices, type Prices } from './price-file.js';

/**
 * Reads a price file.
 * @param from - Its path, or its bytes
 * @throws NorthrootError `PRICES_INVALID`; `FILE_NOT_FOUND`, `FILE_TOO_BIG` beyond 64 MiB, and other failures to read
 */
export async function openPrices(from: string | Uint8Array): Promise<Prices> {
  return parsePrices(typeof from === 'string' ? await readSmallFile(from, MAX_PRICES_BYTES) : from);
}
