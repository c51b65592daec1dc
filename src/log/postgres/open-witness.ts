/** Opens a witness of positions by its place: a file, a folder with a file for each ledger, or another database. */

import { nodeFileSystem } from '../fs/file-system.js';
import { isStoreUrl, placeUrl } from '../fs/place.js';
import { FileWitness } from './file-witness.js';
import { PostgresWitness } from './postgres-witness.js';
import type { PositionWitness } from './witness.js';

/**
 * @param place - A file; a folder, existing or ending in `/`, for `NAME.witness`; or `postgres://USER@HOST/DATABASE#NAME`, elsewhere
 * @param ledger - The ledger's name in its database: the same for all writers, however each of them reaches it
 * @throws NorthrootError as `PostgresWitness.open`, and as the file system does
 */
export async function openWitness(place: string, ledger: string): Promise<PositionWitness> {
  if (isStoreUrl(place)) return PostgresWitness.open(placeUrl(place));
  const isFolder = place.endsWith('/') || (await nodeFileSystem.kindOf(place)) === 'folder';
  return new FileWitness(isFolder ? `${place.replace(/\/+$/, '')}/${ledger}.witness` : place);
}
