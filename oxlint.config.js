/**
 * The rules of the linter, each by its name: what ESLint and typescript-eslint recommend, with types, and what this project adds. Two
 * of ESLint's are missing, for modules with octal numbers or arguments of one name do not parse.
 */

const NO_NODE_FS = {
  paths: ['fs', 'fs/promises', 'node:fs', 'node:fs/promises'].map((name) => ({
    name,
    message: 'only src/log/fs touches the file system',
  })),
};

/** What `northroot/verify` may load runs without Node: what differs between hosts is `#platform`. */
const CORE = [
  ...['base', 'format', 'rules', 'fast', 'proof/bundle'],
  ...['out/text', 'out/activity', 'out/export/table', 'out/page/model', 'out/page/app'],
].map((folder) => `src/${folder}/**/*.ts`);
const NODES_OWN = [
  // Private keys, and the two that name Node's crypto by its name.
  ...[
    'src/format/key/private-key.ts',
    'src/format/key/pkcs8.ts',
    'src/format/signature/signer.ts',
    'src/format/signature/node-backend.ts',
  ],
  'src/base/platform/{node,buffer,serve-http}.ts',
  'src/fast/blocks/worker.ts',
  'src/rules/verify/saved-state.ts',
];

const errors = (names, scope = '') =>
  Object.fromEntries(names.split(/\s+/).map((name) => [`${scope}${name}`, 'error']));

/** Of JavaScript and of TypeScript. */
const OF_BOTH = `for-direction no-async-promise-executor no-case-declarations no-compare-neg-zero no-cond-assign
  no-constant-binary-expression no-constant-condition no-debugger no-delete-var no-dupe-else-if no-duplicate-case no-empty
  no-empty-character-class no-empty-pattern no-empty-static-block no-ex-assign no-extra-boolean-cast no-fallthrough no-global-assign
  no-invalid-regexp no-irregular-whitespace no-loss-of-precision no-misleading-character-class no-nonoctal-decimal-escape
  no-prototype-builtins no-regex-spaces no-self-assign no-shadow-restricted-names no-sparse-arrays no-unassigned-vars
  no-unexpected-multiline no-unsafe-finally no-unsafe-optional-chaining no-unused-labels no-unused-private-class-members
  no-useless-assignment no-useless-backreference no-useless-catch no-useless-escape preserve-caught-error require-yield use-isnan
  valid-typeof`;

/** Of JavaScript, where no compiler looks. */
const OF_JAVASCRIPT = `constructor-super getter-return no-class-assign no-const-assign no-control-regex no-dupe-class-members
  no-dupe-keys no-func-assign no-import-assign no-new-native-nonconstructor no-obj-calls no-redeclare no-setter-return
  no-this-before-super no-undef no-unreachable no-unsafe-negation no-unused-vars no-with`;

const OF_TYPESCRIPT = {
  ...errors(
    'no-var prefer-const prefer-rest-params prefer-spread no-array-constructor no-unused-expressions',
  ),
  ...errors(
    `await-thenable ban-ts-comment no-array-delete no-base-to-string no-duplicate-enum-values no-duplicate-type-constituents
    no-empty-object-type no-explicit-any no-extra-non-null-assertion no-floating-promises no-for-in-array no-implied-eval
    no-misused-new no-misused-promises no-namespace no-non-null-asserted-optional-chain no-redundant-type-constituents
    no-require-imports no-this-alias no-unnecessary-type-assertion no-unnecessary-type-constraint no-unsafe-argument
    no-unsafe-assignment no-unsafe-call no-unsafe-declaration-merging no-unsafe-enum-comparison no-unsafe-function-type
    no-unsafe-member-access no-unsafe-return no-unsafe-unary-minus no-wrapper-object-types only-throw-error prefer-as-const
    prefer-namespace-keyword prefer-promise-reject-errors require-await restrict-plus-operands triple-slash-reference
    unbound-method consistent-type-imports`,
    'typescript/',
  ),
  'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
  'typescript/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
  'no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
  eqeqeq: 'error',
};

/** Rules that ask for the type of nearly every expression. A test that takes an `any` for what it is not fails. */
const NOT_OF_TESTS = [
  ...['argument', 'assignment', 'call', 'member-access', 'return'].map((use) => `no-unsafe-${use}`),
  ...['no-base-to-string', 'unbound-method', 'no-unnecessary-type-assertion'],
];

export default {
  plugins: ['eslint', 'typescript'],
  categories: { correctness: 'off' },
  options: { typeAware: true, typeCheck: true, denyWarnings: true },
  ignorePatterns: ['dist/', 'coverage/', 'src/**/generated/', 'assembly/*.ts'],
  rules: errors(OF_BOTH),
  overrides: [
    { files: ['**/*.ts'], rules: OF_TYPESCRIPT },
    {
      // A test that waits for no promise cannot fail.
      files: ['test/**/*.ts'],
      rules: {
        ...Object.fromEntries(NOT_OF_TESTS.map((name) => [`typescript/${name}`, 'off'])),
        'typescript/no-misused-promises': ['error', { checksVoidReturn: false }],
      },
    },
    {
      files: ['src/**/*.ts'],
      excludeFiles: ['src/log/fs/**', 'src/cli/**'],
      rules: {
        'no-restricted-imports': ['error', { ...NO_NODE_FS, patterns: ['commander'] }],
        'no-console': 'error',
      },
    },
    {
      files: [...CORE, 'src/api/verify.ts', 'src/proof/*.ts'],
      excludeFiles: NODES_OWN,
      rules: {
        'no-restricted-imports': [
          'error',
          {
            ...NO_NODE_FS,
            patterns: [
              {
                group: ['node:*', 'commander'],
                message: 'the core runs without Node: see src/base/platform',
              },
              { group: ['**/platform/{node,buffer,web}.js'], message: 'import #platform' },
            ],
          },
        ],
        'no-restricted-globals': [
          'error',
          ...['Buffer', 'process', 'global', 'setImmediate'].map((name) => ({
            name,
            message: 'the core runs without Node: see src/base/platform',
          })),
        ],
      },
    },
    { files: ['src/cli/**/*.ts'], rules: { 'no-restricted-imports': ['error', NO_NODE_FS] } },
    {
      files: ['**/*.js'],
      rules: errors(OF_JAVASCRIPT),
      globals: Object.fromEntries(
        [
          ...['process', 'console', 'Buffer', 'URL', 'AbortController', 'AbortSignal', 'performance'],
          ...['fetch', 'setTimeout'],
        ].map((name) => [name, 'readonly']),
      ),
    },
    { files: ['test/platform/page.js'], globals: { Blob: 'readonly', atob: 'readonly' } },
  ],
};
