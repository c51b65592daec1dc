/** What headers of MCP over HTTP must say, and how values are encoded. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeHeaderValue,
  HEADER_MISMATCH,
  isPlainJson,
  judgeHeaders,
  readHeaders,
  UNSUPPORTED_VERSION,
} from '../../../src/gate/mcp/http-rules.js';
import type { JsonObject } from '../../../src/base/json/value.js';
import { encodeHeaderValue, modernHeaders, modernMeta } from './http-upstream.js';

/** `era` or the code of the fault. */
function judge(headers: Record<string, string>, message: JsonObject, isLegacyAllowed = false): unknown {
  const read = readHeaders(Object.entries(headers).flat());
  if ('fault' in read) return read.fault.code;
  const verdict = judgeHeaders(read.headers, message, isLegacyAllowed);
  return 'fault' in verdict ? verdict.fault.code : verdict.era;
}

function call(name: string, more: JsonObject = {}): JsonObject {
  return {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: {}, _meta: modernMeta(), ...more },
  };
}

const BARE: JsonObject = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } };

describe('a value of a header', () => {
  it.each([
    ['us-west1', 'us-west1'],
    ['=?base64?SGVsbG8sIOS4lueVjA==?=', 'Hello, 世界'],
    ['=?base64?IHBhZGRlZCA=?=', ' padded '],
    ['=?base64?bGluZTEKbGluZTI=?=', 'line1\nline2'],
    ['=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=', '=?base64?literal?='],
    ['=?base64??=', ''],
    ['=?base64?=', ''],
    ['=?BASE64?eA==?=', '=?BASE64?eA==?='],
    ['=?base64?eA==', '=?base64?eA=='],
  ])('%s is %j', (value, expected) => {
    expect(decodeHeaderValue(value)).toBe(expected);
  });

  it.each([
    ['base64 without padding', '=?base64?eA?='],
    ['base64 of the URL alphabet', '=?base64?_-8=?='],
    ['bits that are left over', '=?base64?eB==?='],
    ['white space in it', '=?base64?e A==?='],
    ['no UTF-8', '=?base64?/w==?='],
    ['a character beyond ASCII', 'caf\u00e9'],
    ['a control character', 'a\u0001'],
    ['a line feed', 'a\nb'],
    ['DEL', 'a\u007f'],
  ])('that has %s is none', (_, value) => {
    expect(decodeHeaderValue(value)).toBeUndefined();
  });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(decodeHeaderValue(encodeHeaderValue(text))).toBe(text);
      }),
    );
  });
});

describe('a modern request', () => {
  it('with headers that say what its body says is modern', () => {
    const message = call('echo');
    expect(judge(modernHeaders(message), message)).toBe('modern');
    const odd = call('wörld ');
    expect(judge(modernHeaders(odd), odd)).toBe('modern');
    expect(judge(modernHeaders(odd), odd, true)).toBe('modern');
  });

  it('of a later version is modern too', () => {
    const message = call('echo', { _meta: modernMeta('2031-01-01') });
    expect(judge({ ...modernHeaders(message), 'MCP-Protocol-Version': '2031-01-01' }, message)).toBe(
      'modern',
    );
  });

  it.each(['MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name'])('without %s is refused', (name) => {
    const message = call('echo');
    const headers = modernHeaders(message);
    delete headers[name];
    expect(judge(headers, message)).toBe(HEADER_MISMATCH);
    expect(judge(headers, message, true)).toBe(HEADER_MISMATCH);
  });

  it.each([
    ['MCP-Protocol-Version', '2025-11-25'],
    ['MCP-Protocol-Version', '2027-01-01'],
    ['Mcp-Method', 'ping'],
    ['Mcp-Method', 'Tools/call'],
    ['Mcp-Name', 'other'],
    ['Mcp-Name', 'Echo'],
    ['Mcp-Name', '=?base64?b3RoZXI=?='],
    ['Mcp-Name', '=?base64?ZWNobw?='],
    ['Mcp-Name', 'echo, echo'],
    ['Mcp-Param-Region', '=?base64?%?='],
    ['mcp-param-region', 'caf\u00e9'],
  ])('whose %s is %s is refused', (name, value) => {
    const message = call('echo');
    for (const isLegacyAllowed of [false, true])
      expect(judge({ ...modernHeaders(message), [name]: value }, message, isLegacyAllowed)).toBe(
        HEADER_MISMATCH,
      );
  });

  it.each([
    'Mcp-Name',
    'Mcp-Method',
    'MCP-Protocol-Version',
    'Authorization',
    'Mcp-Param-A',
    'Mcp-Session-Id',
  ])('that says %s twice is refused, though both say the same', (name) => {
    const message = call('echo');
    const headers: Record<string, string> = {
      ...modernHeaders(message),
      'Mcp-Param-A': 'x',
      Authorization: 'y',
      'Mcp-Session-Id': 'z',
    };
    const raw = [...Object.entries(headers).flat(), name.toLowerCase(), headers[name]];
    expect(readHeaders(raw)).toMatchObject({ fault: { code: HEADER_MISMATCH } });
    expect(readHeaders(Object.entries(headers).flat())).toHaveProperty('headers');
  });

  it.each([
    ['resources/read', 'uri', 'file:///a'],
    ['prompts/get', 'name', 'p'],
    ['tasks/get', 'taskId', 't'],
    ['tasks/update', 'taskId', 't'],
    ['tasks/cancel', 'taskId', 't'],
  ])('%s has the name in params.%s', (method, member, value) => {
    const message: JsonObject = {
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { [member]: value, _meta: modernMeta() },
    };
    const headers = { ...modernHeaders(message), 'Mcp-Name': value };
    expect(judge(headers, message)).toBe('modern');
    expect(judge({ ...headers, 'Mcp-Name': 'x' }, message)).toBe(HEADER_MISMATCH);
  });

  it('that says no version in its body is left to the server, which refuses it', () => {
    const headers = modernHeaders(call('echo'));
    expect(judge(headers, BARE)).toBe('modern');
  });

  it('may be a notification without Mcp-Method, and is no response', () => {
    const version = { 'MCP-Protocol-Version': '2026-07-28' };
    expect(judge(version, { jsonrpc: '2.0', method: 'notifications/x' })).toBe('modern');
    expect(judge({ ...version, 'Mcp-Method': 'other' }, { jsonrpc: '2.0', method: 'n' })).toBe(
      HEADER_MISMATCH,
    );
    expect(judge(version, { jsonrpc: '2.0', id: 1, result: {} })).toBe(-32600);
  });

  it('may have any method', () => {
    for (const method of ['constructor', '__proto__', 'toString', '']) {
      const message: JsonObject = { jsonrpc: '2.0', id: 1, method, params: { _meta: modernMeta() } };
      expect(judge(modernHeaders(message), message)).toBe('modern');
      expect(judge({ ...modernHeaders(message), 'Mcp-Name': 'x' }, message)).toBe('modern');
    }
  });
});

describe('a legacy request', () => {
  const initialize: JsonObject = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {} },
  };

  it('is refused unless it is allowed', () => {
    expect(judge({}, initialize)).toBe(UNSUPPORTED_VERSION);
    expect(judge({ 'MCP-Protocol-Version': '2025-11-25' }, BARE)).toBe(UNSUPPORTED_VERSION);
    expect(judge({}, BARE)).toBe(HEADER_MISMATCH);
    expect(judge({}, initialize, true)).toBe('legacy');
    expect(judge({}, BARE, true)).toBe('legacy');
    expect(judge({ 'MCP-Protocol-Version': '2025-11-25' }, BARE, true)).toBe('legacy');
    expect(judge({}, { jsonrpc: '2.0', id: 1, result: {} }, true)).toBe('legacy');
  });

  it('needs no mirrors, but those that it has must be right', () => {
    expect(judge({ 'Mcp-Name': 'other' }, BARE, true)).toBe(HEADER_MISMATCH);
    expect(judge({ 'Mcp-Method': 'ping' }, BARE, true)).toBe(HEADER_MISMATCH);
    expect(judge({ 'Mcp-Name': 'echo', 'Mcp-Method': 'tools/call' }, BARE, true)).toBe('legacy');
  });
});

describe('a body', () => {
  it.each([
    [{ 'Content-Type': 'application/json' }, true],
    [{ 'content-type': 'Application/JSON; charset=UTF-8' }, true],
    [{ 'content-type': 'application/json; charset=utf-16' }, false],
    [{ 'content-type': 'text/plain' }, false],
    [{ 'content-type': 'application/json-patch+json' }, false],
    [{ 'content-type': 'application/json', 'content-encoding': 'gzip' }, false],
    [{ 'content-type': 'application/json', 'content-encoding': 'identity' }, true],
    [{}, false],
  ])('of %j is plain JSON: %s', (headers, expected) => {
    const read = readHeaders(Object.entries(headers).flat());
    expect('headers' in read && isPlainJson(read.headers)).toBe(expected);
  });
});
