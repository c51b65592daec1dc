/** The conformance suite against a server: `node conformance.js URL REVISION` prints, by scenario, what passed and failed. */

import { spawnSync } from 'node:child_process';

const [url, revision] = process.argv.slice(2);
const data = (text) => `data:text/javascript,${encodeURIComponent(text)}`;
// The suite imports what `fs` of Node 20 has not; it serves commands that are not run here.
const FS = data(
  'export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => [];',
);
const HOOKS = data(`export const resolve = (name, context, next) =>
  name === 'fs' && context.parentURL?.includes('/conformance/')
    ? { url: ${JSON.stringify(FS)}, shortCircuit: true }
    : next(name, context);`);
const register = data(`import { register } from 'node:module'; register(${JSON.stringify(HOOKS)});`);
const suite = './node_modules/@modelcontextprotocol/conformance/dist/index.js';
const args = ['--import', register, suite, 'server', '--url', url, '--requirements', revision];
const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
const summary = stdout.slice(stdout.indexOf('=== SUMMARY ==='));
const lines = summary.matchAll(/^. (\S+): (\d+ passed, \d+ failed)/gm);
const scenarios = Object.fromEntries([...lines].map(([, name, result]) => [name, result]));
if (Object.keys(scenarios).length === 0) throw new Error(`${stdout}${stderr}`);
console.log(JSON.stringify(scenarios));
