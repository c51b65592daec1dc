/**
 * The order in which files of tests are begun: those that take longest first, so that no worker is left with one of them at the end
 * while the others have nothing to do. Vitest alone takes the largest files first, where it has not yet measured any.
 */

import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** From `test/`, the longest first; those that mostly wait among them. */
const LONGEST = [
  ...[
    'docs/guides',
    'page/page',
    'conformance/conformance',
    'postgres/failover',
    'cli/signals',
    'postgres/paused',
  ],
  ...['cli/index-matrix', 'gate/peers', 'gate/mcp/stdio', 'object/s3-faults', 'simulation/simulation'],
  ...['exploration/exploration', 'second/second', 'gate/processes', 'hook/command', 'fleet/processes'],
  ...['cli/memory', 'verify/fast-step', 'hosts/apm2/live-hostile', 'gate/settle-after', 'hook/doctor'],
  ...['verify/differential', 'ci/hosts', 'hosts/clasper/hostile', 'platform/browser', 'cli/witness'],
  ...['hosts/cgf/live-processes', 'cli/checkpoint', 'cli/streams', 'tile/tile-writer', 'writer/faults'],
  ...['writer/locks', 'agent/faults', 'postgres/rolled-back', 'hosts/cgf/hostile', 'activity/meaning'],
  ...['activity/bill', 'postgres/pooler', 'fleet/commands', 'fleet/fleet', 'docs/witness', 'docs/readme'],
].map((name) => `test/${name}.test.ts`);

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const { root } = this.ctx.config;
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const rank = LONGEST.indexOf(relative(root, moduleId));
      return rank === -1 ? LONGEST.length : rank;
    };
    return sorted.sort((one, other) => rankOf(one) - rankOf(other));
  }
}
