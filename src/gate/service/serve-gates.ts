/**
 * Serves gates of several ledgers from one process: each on a Unix socket of its own, with the paths of {@link serveGate}; and on one
 * address all of them, each below `/ledgers/NAME`.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import {
  type HttpRequest,
  type HttpResponse,
  type HttpServer,
  type ListenPlace,
  serveHttp,
} from '../../base/platform/serve-http.js';
import { GateService, type GateServiceOptions, refuse, toHealth, toMetrics } from './gate-service.js';
import { type GateServer, LIMITS, removeStale, type ServeGateOptions } from './serve-gate.js';

export interface ServedGate extends Pick<GateServiceOptions, 'gate' | 'approvers' | 'faces' | 'reopen'> {
  /** The path of its Unix socket. */
  readonly socket?: string | undefined;
}

export interface ServeGatesOptions extends Omit<ServeGateOptions, keyof ServedGate> {
  /** By the name that stands in paths, logs and metrics. */
  readonly gates: ReadonlyMap<string, ServedGate>;
}

const PREFIX = '/ledgers/';

/**
 * Serves gates until it is closed. On the address, `/healthz` and `/metrics` are about all of them, by the label `ledger`.
 * @throws as `serveGate`
 */
export async function serveGates(options: ServeGatesOptions): Promise<GateServer> {
  const { gates, listen, ...shared } = options;
  const { tokens, publicUrl, onEvent, onRole, peers } = shared;
  const places = [...gates.values()];
  if (listen === undefined && (places.length === 0 || places.some(({ socket }) => socket === undefined)))
    throw new TypeError('serveGates: expected listen, or a socket of each gate');
  const knowsClients = places.some(({ faces }) => faces?.some((face) => face.authenticates) === true);
  if (listen !== undefined && tokens === undefined && !knowsClients)
    throw new TypeError('serveGates: an address requires tokens: anybody can connect to it');
  if (peers !== undefined && (listen === undefined || tokens === undefined))
    throw new TypeError('serveGates: peers require an address and tokens');
  const services = new Map(
    [...gates].map(([name, { gate, approvers, faces, reopen }]) => [
      name,
      new GateService({
        ...shared,
        gate,
        approvers,
        faces,
        reopen,
        publicUrl: publicUrl === undefined ? undefined : `${publicUrl}${pathOf(name)}`,
        peers: peers?.map((url) => new URL(`${pathOf(name).slice(1)}/`, url)),
        onEvent: onEvent && ((event) => onEvent({ ...event, ledger: name })),
        onRole: onRole && ((change) => onRole({ ...change, ledger: name })),
      }),
    ]),
  );
  const servers: HttpServer[] = [];
  const urls: string[] = [];
  const open = async (
    handle: (request: HttpRequest) => Promise<HttpResponse>,
    place: ListenPlace,
  ): Promise<string> => {
    const server = await serveHttp(handle, place, LIMITS);
    servers.push(server);
    return server.url;
  };
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()));
    await Promise.all([...services.values()].map((service) => service.close()));
  };
  try {
    for (const [name, service] of services) {
      const socket = gates.get(name)?.socket;
      if (socket === undefined) continue;
      await removeStale(socket);
      urls.push(await open((request) => service.handle(request, true), { socket }));
    }
    if (listen !== undefined) {
      const url = await open((request) => route(services, request), listen);
      urls.push(...[...services.keys()].map((name) => `${url}${pathOf(name)}`));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { urls, close };
}

function pathOf(name: string): string {
  return `${PREFIX}${encodeURIComponent(name)}`;
}

/** Answers a request to the address. Never rejects. */
async function route(
  services: ReadonlyMap<string, GateService>,
  request: HttpRequest,
): Promise<HttpResponse> {
  try {
    const { pathname, search } = new URL(request.path, 'http://gate.invalid');
    if (request.method === 'GET' && pathname === '/healthz') return health(services);
    if (request.method === 'GET' && pathname === '/metrics') {
      for (const service of services.values()) service.bearerOf(request, false, 'read');
      return toMetrics([...services].map(([name, service]) => service.source({ ledger: name })));
    }
    for (const [name, service] of services) {
      const prefix = pathOf(name);
      if (pathname.startsWith(`${prefix}/`))
        return await service.handle({ ...request, path: `${pathname.slice(prefix.length)}${search}` });
    }
    throw new NorthrootError('NOT_FOUND', `there is no ${printable(pathname, 80)}`, {
      hint: 'paths begin with /ledgers/NAME',
    });
  } catch (error) {
    return refuse(error);
  }
}

function health(services: ReadonlyMap<string, GateService>): HttpResponse {
  const ledgers = Object.fromEntries([...services].map(([name, service]) => [name, service.health()]));
  const isOk = Object.values(ledgers).every(({ status }) => status === 'ok');
  const status = isOk ? 'ok' : 'failed';
  return toHealth(status, { status, ledgers });
}
