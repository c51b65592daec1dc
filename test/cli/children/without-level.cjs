/** Loaded before a command (`node --require`): LevelDB cannot be loaded, as where its package has no binary. */
const Module = require('node:module');
const load = Module._load;
Module._load = function (request, ...rest) {
  if (request === 'classic-level') throw new Error('No native build was found');
  return load.call(this, request, ...rest);
};
