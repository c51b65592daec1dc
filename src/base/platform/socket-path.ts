/** How long the path of a Unix socket may be. Node alone has sockets. */

/**
 * What every system holds (macOS has the least), its final zero left out. Node cuts off what is longer, and then opens the socket of
 * another name: that of another ledger's service, if both begin alike.
 */
export const MAX_SOCKET_PATH_BYTES = 103;

/** Whether a socket can have this path, whole. */
export function fitsSocket(path: string): boolean {
  return new TextEncoder().encode(path).length <= MAX_SOCKET_PATH_BYTES;
}
