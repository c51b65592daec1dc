/** Refusals as each API's clients know errors. */

import { describe, expect, it } from 'vitest';
import { refusalOf } from '../../../src/gate/llm/refusal.js';

const told = (...args: Parameters<typeof refusalOf>): { status: number; headers: object; body: unknown } => {
  const { status, headers, body } = refusalOf(...args);
  return { status, headers, body: JSON.parse(Buffer.from(body).toString('utf8')) };
};

describe('a refusal', () => {
  const denied = { status: 429, code: 'CAP_EXCEEDED', message: 'the budget does not allow it' };

  it('is an error of OpenAI', () => {
    expect(told('openai-chat', { ...denied, requestId: 'r1' })).toEqual({
      status: 429,
      headers: { 'content-type': 'application/json', 'x-should-retry': 'false', 'x-request-id': 'r1' },
      body: {
        error: { message: denied.message, type: 'insufficient_quota', param: null, code: 'CAP_EXCEEDED' },
      },
    });
  });

  it('is an error of Anthropic', () => {
    expect(told('anthropic-messages', { ...denied, requestId: 'r1' })).toEqual({
      status: 429,
      headers: { 'content-type': 'application/json', 'x-should-retry': 'false', 'request-id': 'r1' },
      body: {
        type: 'error',
        error: { type: 'rate_limit_error', message: denied.message, code: 'CAP_EXCEEDED' },
        request_id: 'r1',
      },
    });
  });

  it.each([
    [400, 'invalid_request_error', 'invalid_request_error'],
    [401, 'authentication_error', 'authentication_error'],
    [403, 'permission_error', 'permission_error'],
    [404, 'invalid_request_error', 'not_found_error'],
    [405, 'invalid_request_error', 'invalid_request_error'],
    [413, 'invalid_request_error', 'request_too_large'],
    [502, 'server_error', 'api_error'],
    [504, 'server_error', 'timeout_error'],
  ])('of status %s has the types %s and %s', (status, openai, anthropic) => {
    const refusal = { ...denied, status };
    expect(told('openai', refusal).body).toMatchObject({ error: { type: openai } });
    expect(told('anthropic', refusal).body).toMatchObject({ error: { type: anthropic } });
  });

  it('says when to try again, if ever', () => {
    expect(told('openai', { ...denied, retryAfterS: 1.2 }).headers).toMatchObject({
      'retry-after': '2',
      'x-should-retry': 'true',
    });
    expect(told('openai', denied).headers).not.toHaveProperty('retry-after');
  });

  it('shows no control characters, and ends', () => {
    const { body } = told('openai', { ...denied, message: `\u001b[2J\u202e${'x'.repeat(5_000)}` });
    const { message } = (body as { error: { message: string } }).error;
    expect(message.startsWith('\\u{1b}[2J\\u{202e}x')).toBe(true);
    expect(message.length).toBeLessThan(1_100);
  });

  it.each([200, 302, 600, 429.5, Number.NaN])('refuses the status %s', (status) => {
    expect(() => refusalOf('openai', { ...denied, status })).toThrow(RangeError);
  });
});
