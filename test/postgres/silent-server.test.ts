/** Servers that take a connection and then say nothing: who waits for one may end that at any time. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { PostgresStore } from '../../src/log/postgres/postgres-store.js';
import { CuttingProxy, hasNoPostgres, PostgresServer } from './server.js';

const AUTHENTICATED = Buffer.from('520000000800000000', 'hex');
const READY = Buffer.from('5a0000000549', 'hex');

const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

/** @param isDeaf - Whether it does not hang up either when its client does */
async function startSilent(isDeaf: boolean, greeting?: Buffer): Promise<{ server: Server; port: number }> {
  const server = createServer({ allowHalfOpen: isDeaf }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', () => server.emit('asked'));
    if (greeting !== undefined) socket.once('data', () => socket.write(greeting));
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

describe('a server that says nothing', () => {
  test.each([
    ['and hangs up when its client does', false, undefined],
    ['and does not hang up', true, undefined],
    ['after its greeting', false, Buffer.concat([AUTHENTICATED, READY])],
    ['after its greeting, and does not hang up', true, Buffer.concat([AUTHENTICATED, READY])],
  ])('%s: opening is ended at once', async (_, isDeaf, greeting) => {
    const { server, port } = await startSilent(isDeaf, greeting);
    const ending = new AbortController();
    const opening = PostgresStore.open(`postgres://u@127.0.0.1:${port}/d#x`, { signal: ending.signal });
    await once(server, 'asked');
    // After a greeting, the statement that follows it.
    if (greeting !== undefined) await once(server, 'asked');
    ending.abort(new Error('enough'));
    await expect(opening).rejects.toThrow('enough');
  });

  test.skipIf(hasNoPostgres)('while a store connects anew: the store is closed at once', async () => {
    const real = await PostgresServer.start();
    onTestFinished(() => real.stop());
    const proxy = await CuttingProxy.start(real.port);
    onTestFinished(() => proxy.stop());
    const { server, port } = await startSilent(false);
    const store = await PostgresStore.open(real.url('x', { port: proxy.port }), { create: true });
    proxy.target = port;
    proxy.cutAll();
    const waiting = store.waitForMore({ size: 0, tip: '', file: '', line: 1, byteOffset: 0 });
    await once(server, 'asked');
    await store.close();
    await waiting;
  });
});
