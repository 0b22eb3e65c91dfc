import type { Violation } from "../../types.js";
import type { Labels } from "../labels.js";

export const WORDS = {};
export const CSS = "";

/** The words of the element in French. */
export const labels: Required<Labels> = {
  asks: "demande",
  asksVisit: "vous demande de visiter une page",
  claims: "se nomme « {0} »",
  version: "version {0}",
  tool: "outil {0}",
  details: "Détails",
  neither: "Ni l’un ni l’autre : refuser ou annuler",
  required: "obligatoire",
  optional: "facultatif",
  noAnswer: "Sans réponse",
  yes: "Oui",
  no: "Non",
  accept: "Envoyer la réponse",
  review: "Vérifier les réponses",
  decline: "Refuser",
  cancel: "Annuler",
  notNow: "Pas maintenant",
  problems: "Rien n’a encore été envoyé. Réponses à revoir : {0}",
  failed: "La réponse n’a pas pu être envoyée. Rien n’est perdu : réessayez.",
  incomplete: "n’est pas encore complet",
  loading: "Chargement de la question…",
  submitting: "Envoi…",
  sent: "Réponse envoyée.",
  declined: "Refusé.",
  cancelled: "Annulé. Le serveur apprend que vous n’avez pas fait de choix.",
  withdrawn: "Le serveur a retiré cette question. Rien n’a été envoyé.",
  expired: "Le temps de répondre est écoulé. Rien n’a été envoyé.",
  refused: "Il n’est pas possible de répondre ici à cette question : elle n’est pas conforme.",
  missing: "Une partie de cette page n’a pas pu être chargée.",
  unchecked: "Le motif de {0} n’est pas vérifié ici.",
  exactly: "exactement {0}",
  range: "de {0} à {1}",
  least: "au moins {0}",
  most: "au plus {0}",
  characters: "{0} caractères",
  above: "plus de {0}",
  below: "moins de {0}",
  steps: "par pas de {0}",
  matches: "selon le motif {0}",
  choose: "choisir {0}",
  number: "un nombre",
  integer: "un nombre entier",
  email: "une adresse e-mail telle que ada@example.com",
  uri: "une adresse complète telle que https://example.com",
  date: "une date",
  "date-time": "une date et une heure avec fuseau",
  time: "Temps restant pour répondre :",
  days: "{0} jours",
  hours: "{0} h {1} min",
  open: "Ouvrir dans un nouvel onglet",
  visited: "C’est fait",
  where: "Est-ce bien là que vous voulez aller ?",
  whereText: "Vérifiez le nom en gras avant d’ouvrir la page. Ce que vous y faites reste entre vous et ce site.",
  address: "L’adresse entière",
  plain: "La connexion n’est pas chiffrée (pas de https).",
  user: "L’adresse contient un nom d’utilisateur, qui peut la faire passer pour une autre.",
  ip: "L’adresse a un numéro à la place d’un nom.",
  foreign: "Le nom a des lettres d’autres écritures, qui peuvent le faire passer pour un autre.",
  port: "L’adresse a un port inhabituel : {0}.",
  long: "L’adresse est inhabituellement longue.",
  change: "Modifier les réponses",
  reviewTitle: "Voici ce que le serveur recevra",
  nothingSent: "Rien n’a encore été envoyé.",
  empty: "sans réponse",
  search: "Chercher parmi {0} options",
  searchIn: "Chercher parmi les options de {0}",
  found: "Options trouvées : {0}.",
  chosen: "Choix : {0}",
  moment: "Date et heure",
  zone: "Fuseau horaire",
  unknownZone: "ce fuseau horaire n’est pas connu ici ; écrivez par exemple Europe/Brussels, UTC ou +02:00",
  lines: "une valeur par ligne",
  otherFormat: "{0}, non vérifié ici",
  sure: "Annuler cette question ?",
  sureText: "Ce que vous avez saisi est perdu. Le serveur apprend que vous n’avez pas fait de choix.",
  sureYes: "Annuler la question",
  sureNo: "Continuer à répondre",
  less: "Moins : {0}",
  more: "Plus : {0}",
  such: "par exemple {0}",
  inPattern: "selon un motif donné",
  pattern: "Motif",
  messages: ({ rule, limit, message }: Violation): string => {
    const sort = { string: "du texte", boolean: "oui ou non", array: "un choix d’options", date: "une date telle que 2026-02-28", "date-time": "une date et une heure avec fuseau, telles que 2026-02-28T09:30:00Z", number: labels.number, integer: labels.integer, email: labels.email, uri: labels.uri, object: "un formulaire" }[`${limit as string}`];
    const many = (one: string, more: string) => (limit === 1 ? one : `${limit as number} ${more}`);
    switch (rule) {
      case "required": return "une réponse est nécessaire";
      case "type": case "format": return sort ? `doit être ${sort}` : message;
      case "minLength": return limit === 1 ? "ne doit pas être vide" : `doit avoir au moins ${limit as number} caractères`;
      case "maxLength": return `doit avoir au plus ${many("un caractère", "caractères")}`;
      case "pattern": return `doit suivre le motif ${limit as string}`;
      case "minimum": return `doit être au moins ${limit as number}`;
      case "maximum": return `doit être au plus ${limit as number}`;
      case "exclusiveMinimum": return `doit être supérieur à ${limit as number}`;
      case "exclusiveMaximum": return `doit être inférieur à ${limit as number}`;
      case "multipleOf": return `doit être un multiple de ${limit as number}`;
      case "const": return `doit être ${JSON.stringify(limit)}`;
      case "enum": return Array.isArray(limit) && limit.length <= 8 ? `doit être l’une de ces options : ${limit.join(", ")}` : "doit être l’une des options";
      case "minItems": return `choisissez au moins ${many("une option", "options")}`;
      case "maxItems": return `choisissez au plus ${many("une option", "options")}`;
      case "uniqueItems": return "chaque option ne peut être choisie qu’une fois";
      case "additionalProperties": return "le formulaire n’a pas ce champ";
      case "precision": return "a plus de chiffres que cette page ne peut en envoyer exactement";
      default: return message;
    }
  },
};
