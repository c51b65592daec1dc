import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const noNodeFs = {
  paths: ['fs', 'fs/promises', 'node:fs', 'node:fs/promises'].map((name) => ({
    name,
    message: 'only src/fs touches the file system',
  })),
};

export default tseslint.config(
  { ignores: ['dist/', 'coverage/', 'src/schema/generated/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { project: ['./tsconfig.json', './test/tsconfig.json'] } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      'no-control-regex': 'off',
      eqeqeq: 'error',
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/fs/**', 'src/cli/**'],
    rules: {
      'no-restricted-imports': ['error', { ...noNodeFs, patterns: ['commander'] }],
      'no-console': 'error',
    },
  },
  { files: ['src/cli/**/*.ts'], rules: { 'no-restricted-imports': ['error', noNodeFs] } },
  {
    files: ['**/*.js'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        Buffer: 'readonly',
        URL: 'readonly',
        performance: 'readonly',
      },
    },
  },
);
