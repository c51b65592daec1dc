/** The plugin's configuration. */

/**
 * @typedef {object} Config
 * @property {string | undefined} fault - Why nothing can be decided
 * @property {string} socket
 * @property {string | undefined} tokenFile
 * @property {string | undefined} token
 * @property {string | undefined} principal
 * @property {string | undefined} agents
 * @property {string | undefined} subagents
 * @property {boolean} failsOpen
 * @property {number} timeoutMs
 * @property {number} waitMs
 * @property {boolean} pin
 */

/** @type {Readonly<Record<string, (value: unknown) => boolean>>} */
const MEMBERS = {
  socket: isText,
  tokenFile: isText,
  principal: isText,
  agents: isText,
  subagents: isText,
  fail: (value) => value === 'closed' || value === 'open',
  timeoutSeconds: (value) => isBetween(value, 1, 10),
  waitSeconds: (value) => isBetween(value, 0, 3_600),
  pin: (value) => typeof value === 'boolean',
};

/**
 * The host checks the configuration by the schema of openclaw.plugin.json; what it lets through is checked here again.
 * @param {unknown} given
 * @param {Readonly<Record<string, string | undefined>>} env
 * @returns {Config} Never throws: with a `fault` every call is blocked, whatever `fail` says
 */
export function readConfig(given, env) {
  const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
  const all = /** @type {Record<string, any>} */ (isObject ? given : {});
  const [wrong] = Object.keys(all).filter(
    (name) => !Object.hasOwn(MEMBERS, name) || MEMBERS[name]?.(all[name]) !== true,
  );
  const socket = all['socket'] ?? env['NORTHROOT_SOCKET'];
  const isGiven = given === undefined || given === null || isObject;
  const fault = !isGiven
    ? 'the configuration is no object'
    : wrong !== undefined
      ? `the configuration is wrong: ${/^\w{1,40}$/.test(wrong) ? wrong : 'an unknown member'}`
      : isText(socket)
        ? undefined
        : 'no socket is configured';
  /** @type {Record<string, any>} */
  const sound = fault === undefined ? all : {};
  return {
    fault,
    socket: fault === undefined ? socket : '',
    tokenFile: sound['tokenFile'],
    token: env['NORTHROOT_TOKEN'] || undefined,
    principal: sound['principal'],
    agents: sound['agents'],
    subagents: sound['subagents'],
    failsOpen: sound['fail'] === 'open',
    timeoutMs: (sound['timeoutSeconds'] ?? 10) * 1_000,
    waitMs: (sound['waitSeconds'] ?? 0) * 1_000,
    pin: sound['pin'] === true,
  };
}

/**
 * @param {unknown} value
 * @returns {value is string}
 */
function isText(value) {
  return typeof value === 'string' && value !== '' && value.length <= 4_096;
}

/**
 * @param {unknown} value
 * @param {number} least
 * @param {number} most
 */
function isBetween(value, least, most) {
  return typeof value === 'number' && value >= least && value <= most;
}
