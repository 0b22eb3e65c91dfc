// The questions every peer asks, and the one shape in which every peer says what it was answered.
import { readFileSync } from 'node:fs';

export const questions = JSON.parse(readFileSync(new URL('./questions.json', import.meta.url), 'utf8'));

/** A tool result whose only text is the answer (or answers) as JSON. */
export const told = answers => ({ content: [{ type: 'text', text: JSON.stringify(answers) }] });

/** Just the part of an ElicitResult that the tests compare. */
export const answered = ({ action, content }) => (content === undefined ? { action } : { action, content });

export const TOOLS = {
  echo: 'Asks nothing',
  contact: 'Asks for a name, an email address and an age',
  'every-kind': 'Asks a form with one field of every kind',
  visit: 'Asks the person to visit a link',
  'require-visit': 'Cannot go on before a link was visited',
  'two-steps': 'Asks for a contact, then for a seat',
  both: 'Asks for a contact and a seat at once',
};
