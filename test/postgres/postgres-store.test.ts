/** A ledger in a real PostgreSQL, held to what every store must do; and what only a database can come to. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PostgresStore } from '../../src/log/postgres/postgres-store.js';
import { describeStore } from '../store/conformance.js';
import { hasNoPostgres, PostgresServer } from './server.js';

describe.skipIf(hasNoPostgres)('PostgreSQL', () => {
  let server: PostgresServer;
  let count = 0;

  beforeAll(async () => {
    server = await PostgresServer.start();
  }, 120_000);
  afterAll(() => server?.stop());

  describeStore(
    'a ledger in PostgreSQL',
    () => {
      const url = server.url(`ledger-${(count += 1)}`);
      return { open: () => PostgresStore.open(url, { create: true }) };
    },
    { hasLocks: true },
  );

  test('a ledger that is not there is not opened', async () => {
    await expect(PostgresStore.open(server.url('missing'))).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
  });
});
