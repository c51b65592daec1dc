/** What ends all that goes on at once. */

import { setMaxListeners } from 'node:events';

/** A controller to whose signal any number of calls may listen: above ten Node warns of a leak, in what operators read. */
export function makeSharedAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
