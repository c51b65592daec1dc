/** What a format of receipts is: how one is recognised, read and checked. */

import type { SourceValue } from '../../base/json/source-json.js';
import type { HostRule, SourceItem } from '../shared/host.js';
import type { Receipt } from './receipt.js';
import type { Shape } from './shape.js';
import type { Verification } from './verification.js';

/** A format of receipts. A further one is a file with one of these, and a line in the registry. */
export interface ReceiptFormat<R extends Receipt = Receipt> {
  /** Names it on the command line and in `source.system`: `agent-receipts`. */
  readonly name: string;
  /** For people. */
  readonly title: string;
  /** Its own rules; the common rules, RC-1 to RC-5, hold for all. */
  readonly rules: readonly HostRule[];
  /** Of the form that `digest` and the signature are over: `rfc8785`. */
  readonly form: string;
  /** Members of an object that is no receipt itself and whose elements are receipts, beside `receipts`. */
  readonly lists?: readonly string[];
  /** Whether a value looks like one of its receipts, however broken. */
  isOwn(value: SourceValue): boolean;
  /**
   * Reads a receipt that {@link isOwn}. What is wrong with it is said to `shape`; undefined where it cannot be used.
   *
   * @param shape - Looks at members, and finds what is wrong with them.
   */
  read(item: SourceItem, shape: Shape): R | undefined;
  /**
   * Checks all receipts, signatures and links, each item of the input once. Without it each signature is verified, and chains are checked as
   * `checkChains` does.
   */
  verify?(receipts: readonly R[], verification: Verification): void;
}
