/** The faces of `northroot serve`: APIs of other systems, by name. Each adds options that begin with its name, and is loaded when asked for. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Face } from '../../gate/service/face.js';
import { usageError } from '../command-error.js';
import type { Context } from '../context.js';
import type { FacePlace } from './face-place.js';
import { addCgfOptions, type CgfFaceChoice, makeCgfFace } from './face-cgf.js';
import { addClasperOptions, type ClasperFaceChoice, makeClasperFace } from './face-clasper.js';

interface FaceEntry {
  readonly addOptions: (command: Command) => Command;
  /** @throws NorthrootError `USAGE` for options that do not go together; of files that are read */
  readonly make: (context: Context, place: FacePlace, options: FaceOptions) => Promise<Face>;
}

type FaceOptions = CgfFaceChoice & ClasperFaceChoice;

export interface FaceChoice extends FaceOptions {
  readonly face?: readonly string[];
}

const FACES: ReadonlyMap<string, FaceEntry> = new Map([
  ['cgf', { addOptions: addCgfOptions, make: makeCgfFace }],
  ['clasper', { addOptions: addClasperOptions, make: makeClasperFace }],
]);

/** Adds `--face`, and the options of every face. */
export function withFaces(command: Command): Command {
  const names = [...FACES.keys()];
  const option = new Option('--face <name>', 'answer the API of this system too (repeatable)')
    .choices(names)
    .argParser((text: string, previous: readonly string[] = []) => {
      if (!FACES.has(text)) throw new InvalidArgumentError(`Allowed choices are ${names.join(', ')}.`);
      return [...previous, text];
    });
  command.addOption(option);
  for (const { addOptions } of FACES.values()) addOptions(command);
  return command;
}

/**
 * Makes the faces that are asked for.
 * @throws NorthrootError `USAGE` for an option of another face; as the faces
 */
export async function facesOf(
  context: Context,
  place: FacePlace,
  options: FaceChoice,
): Promise<readonly Face[]> {
  const asked = new Set(options.face);
  for (const name of FACES.keys()) {
    if (asked.has(name)) continue;
    const [other] = Object.keys(options).filter((key) => new RegExp(`^${name}[A-Z]`).test(key));
    if (other !== undefined)
      throw usageError(
        `--${other.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} requires --face ${name}`,
      );
  }
  const faces: Face[] = [];
  for (const [name, { make }] of FACES) if (asked.has(name)) faces.push(await make(context, place, options));
  return faces;
}
