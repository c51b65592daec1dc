/** The least of the gate's service on a Unix socket: what its wire says, over a gate of the test's own process. */

import { createServer, type Server } from 'node:http';
import type { NorthrootError } from '../../src/api/index.js';
import { type CallOutcome, Gate, type GateCall, parseDigest } from '../../src/api/index.js';

interface Body extends Record<string, unknown> {
  readonly ref?: string;
  readonly session?: string;
  readonly principal?: string;
  readonly tool?: string;
  readonly params?: unknown;
}

export class TestService {
  readonly gate: Gate;
  /** Called with each request; what it returns is answered instead. */
  intercept: ((target: string) => 'break' | undefined) | undefined;
  readonly targets: string[] = [];
  readonly #server: Server;

  private constructor(gate: Gate, socket: string, ready: () => void) {
    this.gate = gate;
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const target = request.url ?? '';
        this.targets.push(target);
        if (this.intercept?.(target) === 'break') {
          request.socket.destroy();
          return;
        }
        const body = JSON.parse(Buffer.concat(chunks).toString()) as Body;
        this.#answer(target, body).then(
          (answer) => response.end(JSON.stringify(answer)),
          (error: unknown) => {
            const { code, message } = error as NorthrootError;
            response.statusCode = code === 'CALL_NOT_FOUND' ? 404 : code === 'REQUEST_CONFLICT' ? 409 : 500;
            response.end(JSON.stringify({ error: { code, message } }));
          },
        );
      });
    });
    this.#server.listen(socket, ready);
  }

  static async start(ledger: string, options: Parameters<typeof Gate.open>[1]): Promise<TestService> {
    const gate = await Gate.open(ledger, options);
    return new Promise((resolve) => {
      const service: TestService = new TestService(gate, `${ledger}.sock`, () => resolve(service));
    });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.gate.close();
  }

  async #answer(target: string, body: Body): Promise<object> {
    const { ref, session, principal, tool, params } = body;
    const name = { ref, session, principal, ...(ref === undefined ? { tool, params } : {}) };
    if (target === '/v1/decide') {
      const call = {
        ref,
        session,
        principal,
        tool,
        params,
        ttlMs: body['ttl_ms'],
        start: body['start'],
      } as GateCall;
      const { need, isRepeated, ...decision } = await this.gate.decide(call, {
        waitMs: (body['wait_ms'] as number | undefined) ?? 0,
      });
      return { ...decision, is_repeated: isRepeated, need };
    }
    if (target === '/v1/settle') {
      const digest = body['output_digest'] as string | undefined;
      const { authorization } = await this.gate.settle(name, {
        outcome: body['outcome'] as CallOutcome['outcome'],
        outputDigest: digest === undefined ? undefined : parseDigest(digest),
        errorCode: body['error_code'] as string | undefined,
        durationMs: body['duration_ms'] as number | undefined,
      });
      return { authorization: authorization ?? null, recorded: null };
    }
    if (ref === undefined && tool === undefined) {
      const open = this.gate.listOpen(session);
      for (const each of open) await this.gate.release(each);
      return { released: open.length };
    }
    const { authorization } = await this.gate.release(name);
    return { authorization: authorization ?? null, recorded: null };
  }
}
