/** Spans as OTLP JSON has them: attributes as plain values, times and ids as the protocol states them. */

import { encodeUtf8 } from '../../base/bytes/text.js';
import {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../base/json/source-json.js';
import type { SourceItem } from '../shared/host.js';
import { listAt, numberAt, objectAt, textAt, timeOf, valueAt } from '../shared/values.js';

export type Attributes = ReadonlyMap<string, SourceValue>;

export interface Span {
  readonly item: SourceItem;
  /** In lower case; undefined where it is not of the protocol. */
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
  readonly parentId: string | undefined;
  readonly statedIds: string;
  readonly start: string | undefined;
  readonly end: string | undefined;
  readonly status: 'unset' | 'ok' | 'error';
  readonly attributes: Attributes;
  readonly repeatedKeys: readonly string[];
  readonly resource: Attributes;
}

const STATUS: Readonly<Record<string, Span['status']>> = {
  '1': 'ok',
  STATUS_CODE_OK: 'ok',
  '2': 'error',
  STATUS_CODE_ERROR: 'error',
};

/** Reads one member of `spans`. */
export function readSpan(item: SourceItem, resource: Attributes): Span {
  const { value } = item;
  const traceId = textAt(value, 'traceId') ?? '';
  const spanId = textAt(value, 'spanId') ?? '';
  const parentId = textAt(value, 'parentSpanId') ?? '';
  const { attributes, repeated } = attributesOf(listAt(value, 'attributes'));
  return {
    item,
    traceId: hexId(traceId, 32),
    spanId: hexId(spanId, 16),
    parentId: /^0*$/.test(parentId) ? undefined : parentId.toLowerCase(),
    statedIds: `${traceId}/${spanId}`,
    start: nanosAt(value, 'startTimeUnixNano'),
    end: nanosAt(value, 'endTimeUnixNano'),
    status: STATUS[textAt(value, 'status', 'code') ?? numberAt(value, 'status', 'code') ?? ''] ?? 'unset',
    attributes,
    repeatedKeys: repeated,
    resource,
  };
}

/** The attributes of a resource. */
export function resourceOf(value: SourceValue): Attributes {
  return attributesOf(listAt(value, 'resource', 'attributes')).attributes;
}

/** The attributes of a record that has them as its own. */
export function attributesAt(value: SourceValue): Attributes {
  return attributesOf(listAt(value, 'attributes')).attributes;
}

/** The text of an attribute. */
export function attributeText(attributes: Attributes, ...names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = attributes.get(name);
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

/** An attribute that may hold JSON as a value or as its text. */
export function attributeJson(attributes: Attributes, name: string): SourceValue | undefined {
  const value = attributes.get(name);
  if (typeof value !== 'string') return value;
  const decoded = decodeSourceJson(encodeUtf8(value));
  return decoded.ok && decoded.value instanceof SourceObject ? decoded.value : value;
}

/** The first of several of one key stands. */
function attributesOf(list: readonly SourceValue[] | undefined): {
  readonly attributes: Attributes;
  readonly repeated: readonly string[];
} {
  const attributes = new Map<string, SourceValue>();
  const repeated: string[] = [];
  for (const attribute of list ?? []) {
    const key = textAt(attribute, 'key');
    if (key === undefined) continue;
    if (attributes.has(key)) repeated.push(key);
    else attributes.set(key, anyValue(valueAt(attribute, 'value')));
  }
  return { attributes, repeated };
}

/** An AnyValue as the value that it holds. At most as deep as JSON is read. */
function anyValue(value: SourceValue | undefined): SourceValue {
  const object = value instanceof SourceObject ? value : undefined;
  for (const name of ['stringValue', 'boolValue', 'doubleValue', 'bytesValue']) {
    const found = object?.get(name);
    if (found !== undefined) return found;
  }
  const integer = object?.get('intValue');
  if (typeof integer === 'string')
    return /^-?(?:0|[1-9]\d{0,38})$/.test(integer) ? new SourceNumber(integer) : integer;
  if (integer !== undefined) return integer;
  const list = listAt(value, 'arrayValue', 'values');
  if (list !== undefined) return list.map(anyValue);
  if (objectAt(value, 'kvlistValue') === undefined) return null;
  return new SourceObject(attributesOf(listAt(value, 'kvlistValue', 'values')).attributes);
}

function hexId(text: string, length: number): string | undefined {
  const id = text.toLowerCase();
  return id.length === length && /^[0-9a-f]+$/.test(id) && !/^0+$/.test(id) ? id : undefined;
}

/** 64-bit integers are texts, and numbers are taken too. 0 is what the protocol has for no time. */
function nanosAt(value: SourceValue, name: string): string | undefined {
  const count = textAt(value, name) ?? numberAt(value, name);
  return count === undefined || !/^[1-9]\d{0,19}$/.test(count) ? undefined : timeOf(count, 'ns');
}
