/** The options of hosts that take no aids. */

import { checkOptions } from '../../base/options.js';
import type { HostOptions } from './host.js';

/** @throws TypeError, RangeError for options that are not known, or of the wrong type, and for any aid */
export function checkReadOptions(host: string, options: HostOptions): void {
  checkOptions(`${host}.read`, options, { occurredAt: 'string', aids: 'object' });
  const [aid] = Object.keys(options.aids ?? {});
  if (aid !== undefined) throw new RangeError(`${host}.read: takes no aids, found ${JSON.stringify(aid)}`);
}
