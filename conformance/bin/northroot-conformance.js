#!/usr/bin/env node
import { main } from '../lib/main.js';

// Whoever reads the output may stop early, as `head` does.
process.stdout.on('error', (error) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main(process.argv.slice(2));
