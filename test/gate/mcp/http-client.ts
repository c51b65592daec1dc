/** A client of MCP over HTTP that sends what it is told, and leaves when it is told. */

import { type Agent, request as httpRequest } from 'node:http';
import type { JsonObject } from '../../../src/base/json/value.js';
import { modernMeta } from './http-upstream.js';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** Whether it came whole. */
  readonly isWhole: boolean;
}

export interface SendOptions {
  readonly method?: string;
  readonly path?: string;
  readonly agent?: Agent;
  /** Called when the answer has come so far. */
  readonly onData?: (text: string, leave: () => void) => void;
  /** Called when the request was sent. */
  readonly onSent?: (leave: () => void) => void;
}

export function callOf(tool: string, id: string | number = 1, params: JsonObject = {}): JsonObject {
  return {
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: tool, arguments: { n: 1 }, _meta: modernMeta(), ...params },
  };
}

export function legacyCall(tool: string, id: string | number = 1): JsonObject {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name: tool, arguments: {} } };
}

export function post(
  url: string,
  message: unknown,
  headers: Record<string, string>,
  { method = 'POST', path, agent, onData, onSent }: SendOptions,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const target = new URL(path ?? new URL(url).pathname, url);
    const asked = httpRequest(
      target,
      {
        method,
        agent: agent ?? false,
        headers: {
          Accept: 'application/json, text/event-stream',
          'Content-Type': 'application/json',
          ...headers,
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
          onData?.(text, () => asked.destroy());
        });
        response.on('error', () => undefined);
        response.on('close', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            isWhole: response.complete,
          }),
        );
      },
    );
    asked.on('error', (error) =>
      onSent === undefined && onData === undefined
        ? reject(error)
        : resolve({ status: 0, headers: {}, text: '', isWhole: false }),
    );
    const body = typeof message === 'string' ? message : message === undefined ? '' : JSON.stringify(message);
    asked.end(body, () => onSent?.(() => asked.destroy()));
  });
}

export function parsed({ text }: Answer): Record<string, Record<string, unknown>> {
  return JSON.parse(text) as Record<string, Record<string, unknown>>;
}

export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}
