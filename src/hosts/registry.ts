/** All hosts, and all that files can be checked as. A fifth host is one folder and one line here. */

import { cgf } from './cgf/index.js';
import { clasper } from './clasper/index.js';
import type { Checker, Host } from './host.js';

/** In the order in which help lists them. */
export const HOSTS: readonly Host[] = [cgf, clasper];

/** In the order in which help lists them. */
export const CHECKERS: readonly Checker[] = [];
