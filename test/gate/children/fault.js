/**
 * Loaded before a program (`node --import`): lets writes to one file fail, or kills the process at one of them. FAULT of the environment
 * is `{"file","at","manner"}`: at which write to the file, from 1 on.
 *
 * These manners kill: `before` the write; `torn`, when `bytes` of it are written (`"line"`: its first line); `written`, before it is
 * synced; `synced`. `full` answers ENOSPC, at that write and all further ones, until the file `until` is there.
 */

import { existsSync, readlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';

const NEWLINE = 0x0a;
const fault = process.env.FAULT === undefined ? undefined : JSON.parse(process.env.FAULT);
let writes = 0;

function kill() {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => undefined);
}

function isMeant({ fd }) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === fault.file;
  } catch {
    return false;
  }
}

async function failWrite(write, bytes) {
  const { manner } = fault;
  if (manner === 'full') {
    const error = new Error('ENOSPC: no space left on device, write');
    throw Object.assign(error, { code: 'ENOSPC', errno: -28, syscall: 'write' });
  }
  if (manner === 'torn')
    await write(bytes.subarray(0, fault.bytes === 'line' ? bytes.indexOf(NEWLINE) + 1 : fault.bytes));
  if (manner === 'written') await write(bytes);
  return kill();
}

if (fault !== undefined) {
  const handle = await open(process.execPath);
  const prototype = Object.getPrototypeOf(handle);
  await handle.close();
  const { write, datasync } = prototype;
  prototype.write = function (...given) {
    if (!isMeant(this)) return write.apply(this, given);
    writes += 1;
    const isDue =
      fault.manner === 'full'
        ? writes >= fault.at && !existsSync(fault.until)
        : writes === fault.at && fault.manner !== 'synced';
    return isDue ? failWrite((bytes) => write.call(this, bytes), given[0]) : write.apply(this, given);
  };
  prototype.datasync = async function () {
    await datasync.call(this);
    if (fault.manner === 'synced' && writes === fault.at && isMeant(this)) await kill();
  };
}
