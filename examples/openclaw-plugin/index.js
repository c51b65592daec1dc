/**
 * A plugin of OpenClaw 2026.9: before each tool call it asks `northroot serve`, and after it tells how it ended. A call that nobody can
 * decide on is blocked.
 */

import { readConfig } from './config.js';
import { HostGate } from './host-gate.js';

/**
 * What is used of the plugin API.
 * @typedef {object} PluginApi
 * @property {unknown} [pluginConfig]
 * @property {import('./host-gate.js').Logger} logger
 * @property {(name: string, handler: (...args: any[]) => unknown, options?: { priority?: number, timeoutMs?: number }) => void} on
 */

/** The last of all handlers: an allowed call is not looked at by others afterwards. */
const LAST = Number.MIN_SAFE_INTEGER;
/** What the host gives beyond the plugin's own deadline. */
const GRACE_MS = 5_000;

export default {
  id: 'northroot',
  name: 'northroot',
  description: 'Asks northroot before each tool call, and records how it ended.',

  /**
   * The host may call this several times for one start: nothing is opened here. It never throws, for a plugin that is not loaded blocks
   * nothing.
   * @param {PluginApi} api
   */
  register(api) {
    const config = readConfig(api.pluginConfig, process.env);
    if (config.fault !== undefined) api.logger.error(`northroot: every call is blocked: ${config.fault}`);
    else if (config.failsOpen)
      api.logger.warn('northroot: fails open: calls run without a record where the service is gone');
    const gate = new HostGate(config, api.logger);
    const timeoutMs = config.timeoutMs + config.waitMs + GRACE_MS;
    api.on('before_tool_call', (event, ctx) => gate.before(event, ctx), { priority: LAST, timeoutMs });
    api.on('after_tool_call', (event, ctx) => gate.after(event, ctx));
    api.on('gateway_stop', () => gate.drain());
  },
};
