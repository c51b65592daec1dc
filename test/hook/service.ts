/** The gate's service on a Unix socket, behind a door that can break off: what its clients meet when it dies. */

import { connect, createServer, type Server, type Socket } from 'node:net';
import { Gate, type GateOptions, type GateServer, serveGate, type Tokens } from '../../src/api/index.js';

/** `refuse`: breaks off a request before the service hears of it. `lose`: the service answers, and nobody hears it. */
type Door = 'open' | 'refuse' | 'lose';

export class BreakableService {
  door: Door = 'open';
  /** The routes that the service answered. */
  readonly routes: string[] = [];
  readonly #sockets = new Set<Socket>();
  #close: () => Promise<void> = () => Promise.resolve();

  /** Serves a ledger on `LEDGER.sock`. */
  static async start(
    ledger: string,
    options: GateOptions & { readonly tokens?: Tokens },
  ): Promise<BreakableService> {
    const service = new BreakableService();
    const { tokens, ...ofGate } = options;
    const gate = await Gate.open(ledger, ofGate);
    const inner = `${ledger}.inner.sock`;
    const server: GateServer = await serveGate({
      gate,
      socket: inner,
      tokens,
      onEvent: ({ route }) => service.routes.push(route),
    });
    const front: Server = createServer((client) => service.#pass(client, connect(inner)));
    await new Promise<void>((resolve) => front.listen(`${ledger}.sock`, resolve));
    service.#close = async () => {
      const closed = new Promise((resolve) => front.close(resolve));
      for (const socket of service.#sockets) socket.destroy();
      await closed;
      await server.close();
      await gate.close();
    };
    return service;
  }

  stop(): Promise<void> {
    return this.#close();
  }

  #pass(client: Socket, inner: Socket): void {
    const end = (): void => {
      client.destroy();
      inner.destroy();
    };
    for (const socket of [client, inner]) {
      this.#sockets.add(socket);
      socket.on('error', end).on('close', () => {
        this.#sockets.delete(socket);
        end();
      });
    }
    client.on('data', (chunk) => (this.door === 'refuse' ? end() : inner.write(chunk)));
    inner.on('data', (chunk) => (this.door === 'lose' ? end() : client.write(chunk)));
  }
}
