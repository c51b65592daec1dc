/** Prints the transcripts of an agent's database as JSON lines. Needs the host's own Node. */

import { DatabaseSync } from 'node:sqlite';
import { zstdDecompressSync } from 'node:zlib';

const db = new DatabaseSync(process.argv[2], { readOnly: true });
const rows = db
  .prepare('select event_json, event_zstd from transcript_events order by session_id, seq')
  .all();
for (const { event_json: text, event_zstd: packed } of rows)
  console.log(text ?? zstdDecompressSync(packed).toString('utf8'));
