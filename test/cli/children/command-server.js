/**
 * Runs commands of northroot one after the other in one process. Descriptor 3 brings requests, 4 takes answers, each a frame: its
 * length as four bytes, then so many bytes. A request is JSON `{args, cwd, env}` and the input; an answer is JSON `{status}`.
 * Descriptors 1 and 2 are files to which is appended; they are empty when a command begins.
 */

import { ftruncateSync, readSync, writeSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { loadProgram } from '../../../bin/load.js';

const [REQUESTS, ANSWERS] = [3, 4];
/** As much as a pipe gives at once. */
const CHUNK_BYTES = 65_536;

function readFully(length) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length;) {
    const count = readSync(REQUESTS, bytes, at, length - at, null);
    if (count === 0) return undefined;
    at += count;
  }
  return bytes;
}

function readFrame() {
  const length = readFully(4)?.readUInt32BE();
  return length === undefined ? undefined : readFully(length);
}

function writeFrame(bytes) {
  const frame = Buffer.concat([Buffer.alloc(4), bytes]);
  frame.writeUInt32BE(bytes.length);
  writeFully(ANSWERS, frame);
}

function* chunksOf(bytes) {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
}

function writeFully(fd, bytes) {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
}

/** As a file is for a process: what is written is there at once, also before what a process that it starts writes. */
function outputTo(fd) {
  return new Writable({
    write: (chunk, _encoding, done) => {
      writeFully(fd, chunk);
      done();
    },
  });
}

function setStandardStreams(streams) {
  for (const [name, value] of Object.entries(streams)) {
    Object.defineProperty(process, name, { configurable: true, value });
  }
}

function setEnvironment(env) {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
}

for (let request = readFrame(); request !== undefined; request = readFrame()) {
  const { args, cwd, env } = JSON.parse(request.toString());
  const input = readFrame();
  for (const fd of [1, 2]) ftruncateSync(fd);
  setStandardStreams({
    stdin: Readable.from(chunksOf(input), { objectMode: false }),
    stdout: outputTo(1),
    stderr: outputTo(2),
  });
  setEnvironment(env);
  process.chdir(cwd);
  const status = await (await loadProgram(args)).main(args);
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtException']) process.removeAllListeners(name);
  writeFrame(Buffer.from(JSON.stringify({ status })));
}
process.exit(0);
