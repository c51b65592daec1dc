/**
 * The rules for messages of MCP, without pipes or sockets: which calls are decided, what is forwarded, and how a call is settled. A guard
 * stands before one server; each connection to it is a link, with ids of its own.
 *
 * A call is authorized and begun in one write before it is forwarded; its answer passes while it is being settled. Until that is on disk the
 * reservation holds, and a call whose settlement fails stays open. What has two readings is not forwarded.
 */

import { McpCalls, type McpGuardOptions } from './mcp-calls.js';
import { McpLink } from './mcp-link.js';

/** See the head of this file. */
export class McpGuard {
  readonly #calls: McpCalls;
  readonly #links = new Set<McpLink>();

  /** @throws TypeError, RangeError naming the malformed option */
  constructor(options: McpGuardOptions) {
    this.#calls = new McpCalls(options);
  }

  /** A connection of a client to the server. Ids are unique in it, each way. */
  connect(): McpLink {
    const link = new McpLink(this.#calls, () => this.#links.delete(link));
    this.#links.add(link);
    return link;
  }

  /** Calls that are decided, run, or wait for input. */
  get openCalls(): number {
    return this.#calls.openCalls;
  }

  /** Opens the gate, if it is not open. @throws as `McpGuardOptions.open` */
  async open(): Promise<void> {
    await this.#calls.gate();
  }

  /** Resolves when the calls whose answers have passed are settled on disk, or cannot be. */
  async settled(): Promise<void> {
    await this.#calls.settled();
  }

  /** Ends all links and settles all that is open as unknown; resolves when that and all else is on disk. The gate stays open. */
  async close(): Promise<void> {
    await Promise.all([...this.#links].map((link) => link.close()));
    await this.#calls.close();
  }
}
