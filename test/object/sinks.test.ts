import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import { FolderSink } from '../../src/log/object/folder-sink.js';
import { openS3Sink } from '../../src/log/object/s3-sink.js';
import { readTree, temporaryFolder } from '../tile/support.js';
import { soundFileSystem } from '../writer/file-systems.js';
import { CREDENTIALS, REGION, S3Server } from './s3-server.js';
import { describeSink, type Place } from './sink-suite.js';

const server = await S3Server.start();
afterAll(() => server.stop());
let count = 0;

describeSink('a folder', () => {
  const folder = join(temporaryFolder(), 'tree');
  mkdirSync(folder);
  return {
    open: () => new FolderSink(folder, soundFileSystem),
    files: () => readTree(folder),
    set: (key, bytes) => {
      const path = join(folder, key);
      if (bytes === undefined) return rmSync(path);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, bytes);
    },
  };
});

function placeIn(prefix: string): Place {
  const url = `s3://logs/${prefix}`;
  return {
    open: () =>
      openS3Sink(url, { credentials: CREDENTIALS, endpoint: server.endpoint, region: REGION, pauseMs: 1 }),
    files: () => server.files(prefix),
    set: (key, bytes) => {
      if (bytes === undefined) server.objects.delete(prefix + key);
      else server.objects.set(prefix + key, { bytes, etag: `"${(count += 1)}"`, type: '', cache: '' });
    },
  };
}

describeSink('a bucket', () => placeIn(`tree-${(count += 1)}/deep/`));

describeSink('a whole bucket', () => {
  server.objects.clear();
  return placeIn('');
});
