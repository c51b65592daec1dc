/** The tools as agents are told of them: names, words and JSON Schemas of their arguments. */

import { printable } from '../../base/bytes/printable.js';
import type { KernelToolDefinition, KernelToolName } from './kernel-tool.js';

const path = { type: 'string', description: 'relative to the root folder' };
const MAX_NAMED = 40;

interface Listed {
  readonly programs: readonly string[];
  readonly hosts: readonly string[];
  readonly methods: readonly string[];
}

/** What is said of a tool. */
export function defineTool(name: KernelToolName, { programs, hosts, methods }: Listed): KernelToolDefinition {
  switch (name) {
    case 'fs.read':
      return define(
        name,
        'Read a file',
        'Gives the bytes of a file. A part with offset and limit.',
        ['path'],
        {
          path,
          offset: { type: 'integer', minimum: 0, description: 'in bytes' },
          limit: { type: 'integer', minimum: 0, description: 'in bytes' },
        },
      );
    case 'fs.list':
      return define(name, 'List a folder', 'Lists the entries of a folder, with kinds and sizes.', [], {
        path,
      });
    case 'fs.write':
      return define(
        name,
        'Write a file',
        'Writes a whole file, and replaces what was there. Give content or content_base64.',
        ['path'],
        {
          path,
          content: { type: 'string' },
          content_base64: { type: 'string' },
          make_folders: { type: 'boolean', description: 'make missing folders on the way' },
        },
      );
    case 'exec':
      return define(
        name,
        'Run a program',
        `Runs a program without a shell and without input, and gives its status and output. Programs: ${named(programs)}.`,
        ['argv'],
        {
          argv: {
            type: 'array',
            items: { type: 'string' },
            minItems: 1,
            description: 'the program and its arguments',
          },
          cwd: { ...path, description: 'the folder to run in, relative to the root folder' },
        },
      );
    case 'net.fetch':
      return define(
        name,
        'Fetch a URL',
        `Fetches a URL, and gives its status and body. Hosts: ${named(hosts)}.`,
        ['url'],
        {
          url: { type: 'string' },
          method: { type: 'string', enum: methods },
          accept: { type: 'string', description: 'media types' },
          ...(methods.some((each) => each !== 'GET' && each !== 'HEAD')
            ? { body: { type: 'string' }, content_type: { type: 'string' } }
            : {}),
        },
      );
  }
}

function define(
  name: KernelToolName,
  title: string,
  description: string,
  required: readonly string[],
  properties: object,
): KernelToolDefinition {
  const inputSchema = { type: 'object', properties, required, additionalProperties: false };
  return { name, title, description, inputSchema };
}

function named(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMED).map((each) => printable(each, 80));
  return `${shown.join(', ')}${names.length > MAX_NAMED ? ', …' : ''}`;
}
