// The forms that the TypeScript servers ask, and what becomes of an answer.
import { appendFileSync } from 'node:fs';

const [, , file] = process.argv;

export const FORMS = {
  book: {
    type: 'object',
    properties: {
      name: { type: 'string', title: 'Name', description: 'Who travels' },
      seats: { type: 'integer', minimum: 1, maximum: 9, default: 1 },
      window: { type: 'boolean', default: false },
    },
    required: ['name'],
  },
  choice: {
    type: 'object',
    properties: {
      color: { type: 'string', enum: ['red', 'blue'], enumNames: ['Red', 'Blue'] },
      speed: { type: 'string', oneOf: [{ const: 'slow', title: 'Slow' }, { const: 'fast', title: 'Fast' }] },
    },
    required: ['color'],
  },
  several: {
    type: 'object',
    properties: { colors: { type: 'array', items: { type: 'string', enum: ['red', 'blue'] }, minItems: 1 } },
    required: ['colors'],
  },
  empty: { type: 'object', properties: {} },
  numbers: { type: 'object', properties: { level: { type: 'integer', enum: [1, 2, 3] } }, required: ['level'] },
  slips: {
    type: 'object',
    properties: { phone: { type: 'string', format: 'phone' }, color: { type: 'string', enum: ['red', 'blue'], default: 'green' } },
    required: ['phone'],
  },
};

/** Does the tool's work, a line in the file of the first argument, and returns its result. */
export function done(kind, { action, content }) {
  const outcome = action === 'accept' ? { action, content: content ?? {} } : { action };
  appendFileSync(file, `${JSON.stringify({ kind, ...outcome })}\n`);
  return { content: [{ type: 'text', text: JSON.stringify(outcome) }] };
}
