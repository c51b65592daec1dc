/** Rules for messages of MCP: what is decided, forwarded and settled, in both eras. */

import { describe, expect, it } from 'vitest';
import { canonicalBytes } from '../../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../../src/base/value/digest.js';
import { memoryPlace } from '../../agent/support.js';
import { call, MODERN, openGuard, result, story, TEXT } from './support.js';

describe('a call of a tool', () => {
  it('is authorized and begun before it is forwarded, and settled before its answer is', async () => {
    const place = memoryPlace();
    const { client, server, events } = await openGuard(place);
    const asked = call(7, 'echo', { m: 'x' }, { _meta: { progressToken: 1 } });
    expect(await client(asked)).toEqual(['>', asked]);
    expect(story(place)).toEqual(['allow', 'start']);
    const answer = result(7, { ...TEXT, _meta: { a: 1 } });
    expect(await server(answer)).toEqual(['>', answer]);
    expect(story(place)).toEqual(['allow', 'start', 'success']);
    const [authorization, , execution] = place.events().slice(2) as unknown as Record<string, never>[];
    expect(authorization).toMatchObject({
      checks: expect.arrayContaining([{ check: 'coverage', result: 'pass', code: 'PROXY' }]) as never,
      authorization: {
        action: { tool_name: 'mcp.s.echo', tool_params_digest: sha256Digest(canonicalBytes({ m: 'x' })) },
      },
    });
    expect(execution!['output_digest']).toEqual(sha256Digest(canonicalBytes(TEXT)));
    expect(events.map(({ event }) => event)).toEqual(['decided', 'settled']);
    expect(await place.verdict()).toBe('ok');
  });

  it('that is denied is not forwarded: the model is told by a result', async () => {
    const place = memoryPlace();
    const { client } = await openGuard(place, {}, { allowedTools: ['mcp.s.echo'] });
    const [way, told] = (await client(call('a', 'rm'))) as [string, Record<string, unknown>];
    expect(way).toBe('<');
    expect(told).toMatchObject({ jsonrpc: '2.0', id: 'a', result: { isError: true } });
    expect(told['result']).not.toHaveProperty('resultType');
    expect(JSON.stringify(told)).toContain('TOOL_NOT_ALLOWED');
    const modern = await client(call('a', 'rm', {}, { _meta: MODERN }));
    expect(modern).toMatchObject(['<', { id: 'a', result: { resultType: 'complete', isError: true } }]);
    expect(story(place)).toEqual(['deny', 'deny']);
  });
});
