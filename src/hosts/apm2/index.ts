/** `northroot/hosts/apm2`: black-box agents behind a kernel. */

export { apm2 } from './apm2.js';
export { episodeChecker } from './episode-checker.js';
export { adapterProfileChecker } from './profile-checker.js';
export { type EpisodeResult, runAgent, type RunAgentOptions } from './live/run-agent.js';
