/** `northroot/postgres`: ledgers in PostgreSQL. Requires the package `pg`. */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

export { PostgresStore, type PostgresStoreOptions } from '../log/postgres/postgres-store.js';
export { POSTGRES_SCHEMA } from '../log/postgres/schema.js';

// Positions kept outside of the database
export { FileWitness } from '../log/postgres/file-witness.js';
export { PostgresWitness } from '../log/postgres/postgres-witness.js';
export { type PositionWitness } from '../log/postgres/witness.js';
