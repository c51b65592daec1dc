/** Times without an offset: read of the zone that somebody says, never guessed. */

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planImport } from '../../src/hosts/shared/import.js';
import { parseTimeZone, readingLocalTimes } from '../../src/hosts/shared/local-time.js';
import { readHost } from '../../src/hosts/shared/read-host.js';
import { readSource } from '../../src/hosts/shared/reconcile-sources.js';
import { claudeCode } from '../../src/hosts/claude-code/index.js';
import { litellm } from '../../src/hosts/litellm/index.js';
import { openclaw } from '../../src/hosts/openclaw/index.js';
import { timeOfText } from '../../src/hosts/shared/values.js';
import { fileOf } from './samples.js';

const entry = (timestamp: string) =>
  fileOf('f', [{ type: 'session', version: 3, id: 's', timestamp, cwd: '/' }]);

const inZone = (zone: string, text: string) => readingLocalTimes(parseTimeZone(zone), () => timeOfText(text));

describe('a time without an offset', () => {
  it('is not read unless a zone is given, and is told of with the count', () => {
    const file = fileOf('f', [
      { type: 'session', id: 's', version: 3, timestamp: '2026-02-25T16:09:44.068405' },
      { type: 'message', id: 'm', timestamp: '2026-02-25T16:09:45', message: { role: 'user', content: [] } },
    ]);
    const plan = planImport(openclaw, [file]);
    expect(plan.events).toEqual([]);
    expect(plan.findings[0]).toMatchObject({
      code: 'TIME_ZONE_NOT_STATED',
      severity: 'error',
      class: 'invalid',
      actual: expect.stringMatching(/^2 .*2026-02-25T16:09:44\.068405$/) as unknown,
      expected: expect.stringContaining('time zone') as unknown,
    });
    const codes = readHost(openclaw, [file], { timeZone: '+02:00' }).findings.map(({ code }) => code);
    expect(codes).not.toContain('TIME_ZONE_NOT_STATED');
  });

  it.each([
    ['UTC', '2026-02-25T16:09:44.068405Z'],
    ['Z', '2026-02-25T16:09:44.068405Z'],
    ['+02:00', '2026-02-25T14:09:44.068405Z'],
    ['-03:30', '2026-02-25T19:39:44.068405Z'],
    ['Europe/Berlin', '2026-02-25T15:09:44.068405Z'],
    ['America/New_York', '2026-02-25T21:09:44.068405Z'],
    ['Asia/Kathmandu', '2026-02-25T10:24:44.068405Z'],
  ])('is read of %s, by every door', (timeZone, expected) => {
    const file = entry('2026-02-25T16:09:44.068405');
    expect(planImport(openclaw, [file], { timeZone }).events[0]?.event.occurred_at).toBe(expected);
    expect(readSource(openclaw, [file], { timeZone }).reading.claims[0]?.occurredAt).toBe(expected);
  });

  it('leaves times with an offset as they are', () => {
    const plan = planImport(openclaw, [entry('2026-02-25T16:09:44+01:00')], { timeZone: 'Asia/Tokyo' });
    expect(plan.events[0]?.event.occurred_at).toBe('2026-02-25T15:09:44Z');
  });

  it('holds for one reading only', () => {
    planImport(openclaw, [entry('2026-02-25T16:09:44')], { timeZone: 'UTC' });
    expect(timeOfText('2026-02-25T16:09:44')).toBeUndefined();
  });

  it('is refused where clocks were put forward over it', () => {
    const { value, times } = inZone('Europe/Berlin', '2026-03-29T02:30:00');
    expect([value, [...times.skipped]]).toEqual([undefined, ['2026-03-29T02:30:00']]);
    const { findings } = readHost(openclaw, [entry('2026-03-29T02:30:00')], { timeZone: 'Europe/Berlin' });
    expect(findings[0]).toMatchObject({ code: 'TIME_SKIPPED', severity: 'error' });
  });

  it('is the earlier of two where clocks were put back, with a finding', () => {
    expect(inZone('Europe/Berlin', '2026-10-25T02:30:00').value).toBe('2026-10-25T00:30:00Z');
    const { findings } = readHost(openclaw, [entry('2026-10-25T02:30:00')], { timeZone: 'Europe/Berlin' });
    expect(findings[0]).toMatchObject({ code: 'TIME_AMBIGUOUS', severity: 'warning', class: 'none' });
    for (const [text, time] of [
      ['2026-10-25T01:59:59', '2026-10-24T23:59:59Z'],
      ['2026-10-25T03:00:00', '2026-10-25T02:00:00Z'],
      ['2026-03-29T01:59:59.999', '2026-03-29T00:59:59.999Z'],
      ['2026-03-29T03:00:00', '2026-03-29T01:00:00Z'],
    ] as const) {
      const { value, times } = inZone('Europe/Berlin', text);
      expect([value, times.skipped.size + times.twice.size]).toEqual([time, 0]);
    }
  });

  it('is what the clock of the zone shows at its instant', () => {
    const zone = fc.constantFrom(
      'Europe/Berlin',
      'America/St_Johns',
      'Australia/Lord_Howe',
      'Pacific/Apia',
      'UTC',
    );
    const instant = fc.integer({ min: Date.UTC(1975, 0), max: Date.UTC(2037, 0) });
    fc.assert(
      fc.property(zone, instant, (name, ms) => {
        const at = Math.floor(ms / 1000) * 1000;
        const shown = new Date(at + parseTimeZone(name).offsetAt(at)).toISOString().slice(0, 19);
        const { value, times } = inZone(name, shown);
        const found = Date.parse(value ?? '');
        if (times.twice.size === 0) expect(found).toBe(at);
        else expect(found).toBeLessThanOrEqual(at);
      }),
    );
  });
});

it('reads times of LiteLLM, whose tables are in UTC, as such unless another zone is given', () => {
  const row = { request_id: 'r', spend: 1, startTime: '2026-03-01 10:05:00.5', model: 'm' };
  const timeOf = (timeZone?: string): unknown =>
    planImport(litellm, [fileOf('f', [row])], { timeZone }).events[0]?.event.occurred_at;
  expect(timeOf()).toBe('2026-03-01T10:05:00.5Z');
  expect(timeOf('+01:00')).toBe('2026-03-01T09:05:00.5Z');
  expect(planImport(litellm, [fileOf('f', [row])]).findings).toEqual([]);
});

it('reads lines of Claude Code of the zone that is given', () => {
  const line = {
    type: 'user',
    uuid: 'u',
    sessionId: 's',
    timestamp: '2026-02-25T16:09:44.068405',
    message: { role: 'user', content: 'hi' },
  };
  const plan = planImport(claudeCode, [fileOf('f', [line])], { timeZone: '-05:00' });
  expect(plan.events[0]?.event.occurred_at).toBe('2026-02-25T21:09:44.068405Z');
});

it.each([
  '',
  'Berlin/Europe',
  '+2:00',
  '+24:00',
  '+02:60',
  '02:00',
  'Europe/',
  '../etc',
  'UTC+2',
  'x'.repeat(500),
])('refuses %j as a zone', (timeZone) => {
  expect(() => readHost(openclaw, [], { timeZone })).toThrow(RangeError);
});
