/** `northroot/hosts/openclaw`: OpenClaw's records and its canonical pipeline. */

export { openclaw } from './openclaw.js';
export { openclawPipeline } from './pipeline.js';
