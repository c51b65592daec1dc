/** The id of a message that is too long to be kept, and whether it asks or answers: read as the bytes pass, of which nothing else is kept. */

import type { JsonValue } from '../../base/json/value.js';
import { isRpcId, type RpcId } from './json-rpc.js';
import { tryParse } from '../../base/json/value.js';

/** A longer key or value is not looked at. */
const MAX_TEXT_BYTES = 256;

const LENIENT = new TextDecoder('utf-8');
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const SPACE = 0x20;

/** See the head of this file. Bytes that are no JSON have some id or none: whoever wrote them gets no answer but its own. */
export class LongId {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  /** Of a key or a value of the message itself. */
  readonly #text = new Uint8Array(MAX_TEXT_BYTES);
  /** May be more than are kept. */
  #length = 0;
  #isOfId = false;
  #id: JsonValue | undefined;
  #isTwofold = false;
  #hasMethod = false;

  /** Whether it has a method, as requests and notifications have, and no answer. Two sides number their requests alike. */
  get hasMethod(): boolean {
    return this.#hasMethod;
  }

  /** Undefined where it has none, or two that differ. */
  get id(): RpcId | undefined {
    return !this.#isTwofold && isRpcId(this.#id) ? this.#id : undefined;
  }

  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (this.#isInText) {
        if (this.#depth === 1) this.#keep(byte);
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isInText = false;
        continue;
      }
      // A bracket and a brace differ in this bit.
      const isOpening = (byte | 0x20) === 0x7b;
      if ((byte | 0x20) === 0x7d || (byte === COMMA && this.#depth === 1)) this.#endMember();
      if (isOpening) this.#depth += 1;
      else if ((byte | 0x20) === 0x7d) this.#depth -= 1;
      else if (byte === COLON && this.#depth === 1) this.#beginMember();
      else if (byte !== COMMA && byte > SPACE) {
        this.#isInText = byte === QUOTE;
        if (this.#depth === 1) this.#keep(byte);
      }
    }
  }

  #keep(byte: number): void {
    if (this.#length < MAX_TEXT_BYTES) this.#text[this.#length] = byte;
    this.#length += 1;
  }

  #take(): JsonValue | undefined {
    const length = this.#length;
    this.#length = 0;
    return length > MAX_TEXT_BYTES ? undefined : tryParse(LENIENT.decode(this.#text.subarray(0, length)));
  }

  #beginMember(): void {
    const name = this.#take();
    this.#isOfId = name === 'id';
    if (name === 'method') this.#hasMethod = true;
  }

  #endMember(): void {
    if (this.#depth !== 1) return;
    const value = this.#take();
    if (!this.#isOfId) return;
    this.#isOfId = false;
    // `null`, for one that is no id, so that another one differs.
    const id = isRpcId(value) ? value : null;
    if (this.#id !== undefined && this.#id !== id) this.#isTwofold = true;
    this.#id = id;
  }
}
