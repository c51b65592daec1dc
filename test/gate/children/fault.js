/**
 * Loaded before a program (`node --import`): lets writes to one file fail, or kills the process at one of them. FAULT of the environment
 * is `{"file","at","manner"}`: at which write to the file, from 1 on.
 *
 * These manners kill: `before` the write; `torn`, when `bytes` of it are written (`"line"`: its first line); `written`, before it is
 * synced; `synced`. `full` answers ENOSPC, at that write and all further ones, until the file `until` is there.
 */

import fs, { existsSync, readlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const NEWLINE = 0x0a;
const fault = process.env.FAULT === undefined ? undefined : JSON.parse(process.env.FAULT);
const { writeSync } = fs;
let writes = 0;

function kill() {
  process.kill(process.pid, 'SIGKILL');
}

function isMeant(fd) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === fault.file;
  } catch {
    return false;
  }
}

/** Counts a write. */
function isDue(fd) {
  if (!isMeant(fd)) return false;
  writes += 1;
  if (fault.manner === 'full') return writes >= fault.at && !existsSync(fault.until);
  return writes === fault.at && fault.manner !== 'synced';
}

function failWrite(fd, bytes) {
  const { manner } = fault;
  if (manner === 'full') {
    const error = new Error('ENOSPC: no space left on device, write');
    throw Object.assign(error, { code: 'ENOSPC', errno: -28, syscall: 'write' });
  }
  if (manner === 'torn')
    writeSync(fd, bytes.subarray(0, fault.bytes === 'line' ? bytes.indexOf(NEWLINE) + 1 : fault.bytes));
  if (manner === 'written') writeSync(fd, bytes);
  kill();
}

if (fault !== undefined) {
  const handle = await open(process.execPath);
  const prototype = Object.getPrototypeOf(handle);
  await handle.close();
  const { write, datasync } = prototype;
  prototype.write = async function (...given) {
    return isDue(this.fd) ? failWrite(this.fd, given[0]) : write.apply(this, given);
  };
  fs.writeSync = (fd, ...given) => (isDue(fd) ? failWrite(fd, given[0]) : writeSync(fd, ...given));
  syncBuiltinESMExports();
  prototype.datasync = async function () {
    await datasync.call(this);
    if (fault.manner === 'synced' && writes === fault.at && isMeant(this.fd)) kill();
  };
}
