/** A face: the HTTP API of another system, answered by the same service and the same gate. */

import type { HttpRequest, HttpResponse } from '../../base/platform/serve-http.js';
import type { LiveLedger } from '../../log/agent/live-ledger.js';
import type { Gate } from '../gate.js';
import type { Bearer, TokenUse } from './tokens.js';

export interface OpenGate {
  readonly gate: Gate;
  /** Ledgers that sign as approvers, by principal. Default: the gate's ledger. */
  readonly approvers?: ReadonlyMap<string, LiveLedger> | undefined;
}

export type RequestFacts = {
  -readonly [K in 'code' | 'effect' | 'tool' | 'principal' | 'authorization']?: string | undefined;
};

export interface FaceRequest extends OpenGate {
  readonly request: HttpRequest;
  /** Without the query. */
  readonly path: string;
  /**
   * Who asks, by the service's tokens.
   * @throws NorthrootError `TOKEN_INVALID`, `NOT_ALLOWED`
   */
  readonly bearerFor: (use: TokenUse) => Bearer;
  readonly facts: RequestFacts;
}

export interface Face {
  readonly name: string;
  /** Whether it knows its clients by credentials of their own, so that an address needs no tokens. */
  readonly authenticates: boolean;
  /** The name of a route for logs and metrics, such as `POST /v1/evaluate`; undefined for what is not its own. */
  routeOf(method: string, path: string): string | undefined;
  /** Answers, in its system's own errors too; what it throws is answered as the service does. */
  answer(asked: FaceRequest): Promise<HttpResponse>;
  /** Ends what it does in the background. */
  close?(): Promise<void>;
}
