/**
 * Accepts values by schemas, as `shape.ts` defines it and without saying why: nearly all values are valid. A test is made when a value
 * first needs it, so that a program makes those of the events that it meets. What a test declines may be valid all the same.
 */

import { isObject, isOfType, isValid, resolveNode, type SchemaNode, shapeOf } from './shape.js';

export type Test = (value: unknown) => boolean;

const acceptAll: Test = () => true;

/** Of schemas that others refer to. Bounded by the number of definitions. */
const referred = new Map<string, Test>();

/** The test of a schema, which makes those of its members when they are needed. */
export function testOf(node: SchemaNode): Test {
  const { $ref } = node;
  if ($ref === undefined) return all(testsOf(node));
  let test = referred.get($ref);
  if (test === undefined) {
    test = testOf(resolveNode(node));
    referred.set($ref, test);
  }
  return all([test, ...testsOf(node)]);
}

function all(tests: readonly Test[]): Test {
  const [first = acceptAll, second, ...more] = tests;
  if (second === undefined) return first;
  if (more.length === 0) return (value) => first(value) && second(value);
  return (value) => {
    for (let i = 0; i < tests.length; i++) if (!tests[i]!(value)) return false;
    return true;
  };
}

const TEXT_KEYWORDS = ['minLength', 'maxLength', 'pattern'];
const NUMBER_KEYWORDS = ['minimum', 'maximum'];
const ARRAY_KEYWORDS = ['minItems', 'maxItems', 'items'];
const OBJECT_KEYWORDS = [
  ...['required', 'properties', 'additionalProperties', 'minProperties', 'maxProperties'],
  'discriminator',
];

/** Tests of all keywords but `$ref`. */
function testsOf(node: SchemaNode): Test[] {
  const tests: Test[] = [];
  const has = (keywords: readonly string[]): boolean => keywords.some((keyword) => keyword in node);
  const { type, const: constant, enum: values } = node;
  if (constant !== undefined) tests.push((value) => value === constant);
  if (values !== undefined) tests.push((value) => (values as readonly unknown[]).includes(value));
  if (has(TEXT_KEYWORDS)) tests.push(textTest(node));
  if (has(NUMBER_KEYWORDS)) tests.push(numberTest(node));
  if (has(ARRAY_KEYWORDS)) tests.push(arrayTest(node));
  if (has(OBJECT_KEYWORDS)) tests.push(objectTest(node));
  const isImplied =
    (type === 'string' && (constant !== undefined || has(TEXT_KEYWORDS))) ||
    (type === 'array' && has(ARRAY_KEYWORDS)) ||
    (type === 'object' && has(OBJECT_KEYWORDS));
  if (type !== undefined && !isImplied) tests.unshift(typeTest(type));
  for (const each of node.allOf ?? []) tests.push(testOf(each));
  if (node.not !== undefined) {
    const shape = shapeOf(node.not);
    tests.push((value) => !isValid(shape, value));
  }
  if (node.if !== undefined) tests.push(conditionTest(node.if, node.then, node.else));
  return tests;
}

function typeTest(type: string | readonly string[]): Test {
  if (typeof type === 'object') return (value) => type.some((each) => isOfType(each, value));
  return (value) => isOfType(type, value);
}

function textTest({ type, minLength = 0, maxLength = Infinity, pattern }: SchemaNode): Test {
  const isOther = type !== 'string';
  const expression = pattern === undefined ? undefined : expressionOf(pattern);
  // A character is one or two units.
  const least = Math.max(0, 2 * minLength - 1);
  return (value) =>
    typeof value === 'string'
      ? value.length <= maxLength &&
        value.length >= least &&
        (expression === undefined || expression.test(value))
      : isOther;
}

/** V8 is faster without `u`, which changes nothing where a pattern has only ASCII and sets, none of them negated. */
function expressionOf(pattern: string): RegExp {
  const others = pattern.replace(/\\\.|\[(?!\^)[^\]\\]+\]/g, '');
  return new RegExp(pattern, /^[ -~]*$/.test(pattern) && !/[.\\[]/.test(others) ? '' : 'u');
}

function numberTest({ minimum = -Infinity, maximum = Infinity }: SchemaNode): Test {
  return (value) => typeof value !== 'number' || (value >= minimum && value <= maximum);
}

function arrayTest({ type, minItems = 0, maxItems = Infinity, items }: SchemaNode): Test {
  const isOther = type !== 'array';
  let test: Test | undefined;
  return (value) => {
    if (!Array.isArray(value)) return isOther;
    if (value.length < minItems || value.length > maxItems) return false;
    if (items === undefined) return true;
    test ??= testOf(items);
    for (let i = 0; i < value.length; i++) if (!test(value[i])) return false;
    return true;
  };
}

function objectTest(node: SchemaNode): Test {
  const { required = [], additionalProperties, minProperties = 0, maxProperties = Infinity } = node;
  const properties = Object.entries(node.properties ?? {});
  const names = properties.map(([name]) => name);
  const known = new Set(names);
  const isRequired = names.map((name) => required.includes(name));
  const others = required.filter((name) => !known.has(name));
  const tests: (Test | undefined)[] = names.map(() => undefined);
  const isClosed = 'additionalProperties' in node;
  const isCounted = minProperties > 0 || maxProperties < Infinity;
  const branchOf = branchesOf(node);
  const isOther = node.type !== 'object';
  let additional: Test | undefined;

  return (value) => {
    if (!isObject(value)) return isOther;
    if (isCounted) {
      const { length } = Object.keys(value);
      if (length < minProperties || length > maxProperties) return false;
    }
    for (let i = 0; i < names.length; i++) {
      const member = value[names[i]!];
      if (member === undefined) {
        if (isRequired[i]!) return false;
        continue;
      }
      const test = (tests[i] ??= testOf(properties[i]![1]));
      if (!test(member)) return false;
    }
    for (let i = 0; i < others.length; i++) if (value[others[i]!] === undefined) return false;
    if (isClosed) {
      for (const name in value) {
        if (known.has(name)) continue;
        if (!additionalProperties) return false;
        additional ??= testOf(additionalProperties);
        if (!additional(value[name])) return false;
      }
    }
    return branchOf === undefined || branchOf(value)?.(value) === true;
  };
}

/** The test of the branch that a value is of, by its tag. */
function branchesOf({
  discriminator,
  oneOf = [],
}: SchemaNode): ((value: Readonly<Record<string, unknown>>) => Test | undefined) | undefined {
  if (discriminator === undefined) return undefined;
  const tag = discriminator.propertyName;
  const nodes = new Map<unknown, SchemaNode>(
    oneOf.map((each) => [resolveNode(each).properties?.[tag]?.const, each]),
  );
  const tests = new Map<unknown, Test>();
  return (value) => {
    const kind = value[tag];
    const known = tests.get(kind);
    const node = nodes.get(kind);
    if (known !== undefined || node === undefined) return known;
    const test = testOf(node);
    tests.set(kind, test);
    return test;
  };
}

function conditionTest(condition: SchemaNode, then?: SchemaNode, otherwise?: SchemaNode): Test {
  const [shape, test] = [shapeOf(condition), testOf(condition)];
  let [thenTest, otherTest]: (Test | undefined)[] = [];
  return (value) => {
    // What is not accepted need not be invalid.
    if (test(value) || isValid(shape, value)) return then === undefined || (thenTest ??= testOf(then))(value);
    return otherwise === undefined || (otherTest ??= testOf(otherwise))(value);
  };
}
