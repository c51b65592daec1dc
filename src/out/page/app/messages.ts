/** What goes between the page and its worker. */

import type { Methods, Progress } from '../model/protocol.js';

export interface Question {
  readonly id: number;
  readonly method: keyof Methods;
  readonly argument: unknown;
}

/** Why something could not be done. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string | undefined;
}

/** What came of a call, or how far it is. */
export type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: Failure }
  | { readonly progress: Progress };

/** A worker's own scope, or a port. */
export interface Port {
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  postMessage(message: unknown): void;
}

/** Answers what comes through a port. @param isAlone - Whether it has a thread to itself. */
export type Serve = (port: Port, isAlone: boolean) => void;
