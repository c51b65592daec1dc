/** The server of CGF HostAdapter as a face of the service: its adapters ask the gate. */

import type { Face } from '../../../gate/service/face.js';

export interface CgfFaceOptions {
  /** The bearer token of all adapters. Default: the service's tokens. */
  readonly token?: string | undefined;
}

/** Makes the face. */
export function cgfFace({ token }: CgfFaceOptions = {}): Face {
  return {
    name: 'cgf',
    authenticates: token !== undefined,
    routeOf: (method, path) => (method === 'GET' && path === '/v1/health' ? 'GET /v1/health' : undefined),
    answer: ({ gate }) =>
      Promise.resolve({
        status: 200,
        contentType: 'application/json',
        body: JSON.stringify({ status: 'healthy', events: gate.ledger.size }),
      }),
  };
}
