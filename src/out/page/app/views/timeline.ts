/** The timeline: events by verdict, checkpoints, the sealed part, refused and broken records. */

import type { Mark, Overview, Timeline } from '../../model/protocol.js';
import { type Child, count, h, s, timeText } from '../dom.js';
import { recordLink } from '../icons.js';
import { entry, muted, scroll, section } from '../parts.js';

/** How a picture is divided: a narrow screen has one of its own, in which marks are as large as in the wide one. */
interface Shape {
  readonly name: 'wide' | 'narrow';
  readonly width: number;
  /** Where the events begin: before it are the names of the lanes. */
  readonly left: number;
  readonly ticks: number;
}

const SHAPES: readonly Shape[] = [
  { name: 'wide', width: 960, left: 96, ticks: 4 },
  { name: 'narrow', width: 360, left: 98, ticks: 1 },
];
const RIGHT = 16;
const BARS = 88;
const LANE = 24;
const TOP = 22;
const LISTED = 12;

const LANES = [
  ['checkpoints', 'Checkpoints'],
  ['refused', 'Denied'],
  ['violations', 'Violations'],
  ['invalid', 'Invalid'],
] as const;

const STACK = ['ok', 'denied', 'violation', 'invalid'] as const;

export function timelineView({ timeline, report }: Overview): HTMLElement {
  return section(
    'timeline',
    'Timeline',
    muted(sealText(timeline)),
    scroll(
      'Timeline as a picture',
      SHAPES.map((shape) => picture(timeline, report.ledger.records, shape)),
    ),
    h(
      'dl',
      { class: 'marks' },
      LANES.map(([lane, label]) => entry(label, markList(timeline[lane]))),
    ),
  );
}

function sealText({ sealedX, sealedRecords, unsealedRecords: rest, isByTime }: Timeline): string {
  const order = isByTime ? '' : ' Places are by order: all events have the same time.';
  if (sealedX === undefined) return `No checkpoint by a known key seals these records.${order}`;
  return `A checkpoint seals ${count(sealedRecords, 'record')}${rest > 0 ? `; ${count(rest, 'record')} after it ${rest === 1 ? 'is' : 'are'} not covered, and could have been dropped or moved.` : ', up to the last.'}${order}`;
}

function markList(marks: readonly Mark[]): Child[] {
  if (marks.length === 0) return ['none'];
  return [
    ...marks.slice(0, LISTED).flatMap(({ ordinal }, index) => [index === 0 ? '' : ', ', recordLink(ordinal)]),
    marks.length > LISTED ? ' and more' : '',
  ];
}

function picture(timeline: Timeline, records: number, shape: Shape): SVGElement {
  const { sealedX, from, to, isByTime } = timeline;
  const { width, left, name } = shape;
  const plot = width - left - RIGHT;
  const bins = name === 'wide' ? timeline.bins : halved(halved(timeline.bins));
  const highest = Math.max(1, ...bins.map((bin) => STACK.reduce((sum, verdict) => sum + bin[verdict], 0)));
  const step = plot / bins.length;
  const lanes = LANES.filter(([lane]) => lane === 'checkpoints' || timeline[lane].length > 0);
  const bottom = TOP + BARS;
  const height = bottom + lanes.length * LANE + 34;
  const x = (share: number): number => left + share * plot;
  const axisY = bottom + lanes.length * LANE + 6;
  const words = lanes.map(
    ([lane, label]) =>
      `${timeline[lane].length}${timeline[lane].length >= 200 ? ' or more' : ''} ${label.toLowerCase()}`,
  );
  return s(
    'svg',
    {
      viewBox: `0 0 ${width} ${height}`,
      class: `timeline ${name}`,
      role: 'img',
      'aria-label': `${count(records, 'record')} from ${timeText(from)} to ${timeText(to)}; ${words.join(', ')}. The records are listed below.`,
    },
    s(
      'defs',
      s(
        'pattern',
        {
          id: `unsealed-${name}`,
          width: 6,
          height: 6,
          patternUnits: 'userSpaceOnUse',
          patternTransform: 'rotate(45)',
        },
        s('rect', { width: 6, height: 6, class: 'hatch-ground' }),
        s('line', { y2: 6, class: 'hatch' }),
      ),
    ),
    sealedX !== undefined &&
      s('rect', {
        x: left,
        y: TOP,
        width: Math.max(2, sealedX * plot),
        height: axisY - TOP,
        class: 'sealed',
      }),
    s('rect', {
      x: x(sealedX ?? 0),
      y: TOP,
      width: Math.max(0, plot * (1 - (sealedX ?? 0))),
      height: axisY - TOP,
      fill: `url(#unsealed-${name})`,
    }),
    sealedX !== undefined && sealedX > 0.06 && s('text', { x: left + 6, y: 14, class: 'label' }, 'sealed'),
    (sealedX ?? 0) < 0.92 &&
      s('text', { x: width - 16, y: 14, class: 'label', 'text-anchor': 'end' }, 'not sealed'),
    s('text', { x: left - 10, y: TOP + 12, class: 'label', 'text-anchor': 'end' }, 'Events'),
    s('text', { x: left - 10, y: TOP + 28, class: 'label small', 'text-anchor': 'end' }, `up to ${highest}`),
    bins.map((bin, index) => {
      let top = bottom;
      return STACK.map((verdict) => {
        const size = (bin[verdict] / highest) * (BARS - 6);
        if (size === 0) return undefined;
        const shown = Math.max(size, 1.5);
        top -= shown;
        return s('rect', {
          x: (left + index * step).toFixed(2),
          y: top.toFixed(2),
          width: Math.max(1, step - 1).toFixed(2),
          height: shown.toFixed(2),
          class: `event ${verdict}`,
        });
      });
    }),
    s('line', { x1: left, x2: left + plot, y1: bottom, y2: bottom, class: 'axis' }),
    lanes.map(([lane, label], index) => {
      const y = bottom + index * LANE + LANE / 2 + 3;
      return [
        s('text', { x: left - 10, y: y + 4, class: 'label', 'text-anchor': 'end' }, label),
        timeline[lane].map((mark) => markShape(lane, x(mark.x), y)),
      ];
    }),
    isByTime ? ticks(from, to, axisY, shape) : [],
  );
}

function halved(bins: Timeline['bins']): Timeline['bins'] {
  return Array.from({ length: Math.ceil(bins.length / 2) }, (_, i) => {
    const [one, other] = [bins[2 * i], bins[2 * i + 1]];
    const sum = (verdict: (typeof STACK)[number]): number => (one?.[verdict] ?? 0) + (other?.[verdict] ?? 0);
    return { ok: sum('ok'), denied: sum('denied'), violation: sum('violation'), invalid: sum('invalid') };
  });
}

function markShape(lane: (typeof LANES)[number][0], x: number, y: number): SVGElement {
  const at = (points: string): Record<string, string> => ({
    d: points,
    class: `mark ${lane}`,
    transform: `translate(${x.toFixed(1)} ${y})`,
  });
  switch (lane) {
    case 'checkpoints':
      return s('path', at('M0-7 5-4V0C5 3 3 5 0 7-3 5-5 3-5 0V-4Z'));
    case 'refused':
      return s('path', at('M-3.5 3.5 3.5-3.5M0-5A5 5 0 1 0 0 5 5 5 0 1 0 0-5Z'));
    case 'violations':
      return s('path', at('M0-6 6 5H-6Z'));
    case 'invalid':
      return s('path', at('M-4.5-4.5 4.5 4.5M4.5-4.5-4.5 4.5'));
  }
}

function ticks(from: string, to: string, y: number, { left, width, ticks: parts }: Shape): Child[] {
  const start = Date.parse(from);
  const end = Date.parse(to);
  const plot = width - left - RIGHT;
  return Array.from({ length: parts + 1 }, (_, i) => {
    const share = i / parts;
    const time = timeText(new Date(start + (end - start) * share).toISOString());
    const isSameDay = from.slice(0, 10) === to.slice(0, 10);
    const words = isSameDay
      ? time.slice(11)
      : end - start > 4 * 86_400_000
        ? time.slice(0, 10)
        : time.slice(5, 16);
    const anchor = i === 0 ? 'start' : i === parts ? 'end' : 'middle';
    return [
      s('line', { x1: left + share * plot, x2: left + share * plot, y1: y, y2: y + 5, class: 'axis' }),
      s(
        'text',
        { x: left + share * plot, y: y + 20, class: 'label small', 'text-anchor': anchor },
        i === 0 && isSameDay ? time : words,
      ),
    ];
  });
}
