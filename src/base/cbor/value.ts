/** What northroot's CBOR holds: the data model of RFC 8949 without floats, without undefined, and with few tags. */

import type { Fault } from '../fault.js';

/** An integer is a safe one; a map's keys are integers and texts. */
export type CborValue =
  | number
  | string
  | boolean
  | null
  | Uint8Array
  | readonly CborValue[]
  | CborMap
  | TaggedCbor;

export type CborKey = number | string;

export type CborMap = ReadonlyMap<CborKey, CborValue>;

/** A value with a tag (RFC 8949 §3.4). */
export class TaggedCbor {
  readonly tag: number;
  readonly value: CborValue;

  constructor(tag: number, value: CborValue) {
    this.tag = tag;
    this.value = value;
  }
}

/** Why bytes are not the CBOR that was asked for. */
export interface CborFault extends Fault<'CBOR_MALFORMED'> {
  readonly offset: number;
}
