/** Files of settings and lists, which are JSON of one schema: read strictly and bounded, and refused with the place of the fault. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { ingestJson } from '../../base/json/ingest.js';
import { FaultList } from './fault-list.js';
import type { Validator } from './validator.js';

export interface DocumentKind {
  /** Of the error that refuses it. */
  readonly code: string;
  /** As the error calls it. */
  readonly name: string;
  readonly schema: string;
  /** How large it may be, in bytes. */
  readonly maxBytes: number;
  readonly validate: Validator;
}

/**
 * Reads JSON in any layout, without duplicate keys, as its schema has it.
 * @throws NorthrootError with the code of the kind; TypeError for what is no Uint8Array
 */
export function readDocument(bytes: Uint8Array, kind: DocumentKind): unknown {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`expected a Uint8Array, found ${typeof bytes}`);
  if (bytes.length > kind.maxBytes)
    throw documentRefused(kind, '', `at most ${kind.maxBytes} bytes`, `${bytes.length} bytes`);
  const { value, issues } = ingestJson(bytes);
  const [issue] = issues;
  if (value === undefined || issue !== undefined) {
    const found = `${issue?.code ?? 'NOT_JSON'} at byte ${issue?.offset ?? 0}`;
    throw documentRefused(kind, issue?.pointer ?? '', 'JSON without faults', found);
  }
  const faults = new FaultList(value);
  if (!kind.validate(value)) faults.addErrors(kind.validate.errors ?? []);
  const [fault] = faults.faults();
  if (fault !== undefined) throw documentRefused(kind, fault.pointer, fault.expected, fault.actual);
  return value;
}

/** The error for a document with a fault, that a schema may not be able to say. @param pointer - RFC 6901; empty for the root */
export function documentRefused(
  { code, name, schema }: Pick<DocumentKind, 'code' | 'name' | 'schema'>,
  pointer: string,
  expected: string,
  found: string,
): NorthrootError {
  const place = pointer === '' ? 'its root' : printable(pointer);
  const message = `${name} is not valid at ${place}: expected ${expected}, found ${found}`;
  return new NorthrootError(code, message, { hint: `the schema ${schema} shows the form` });
}
