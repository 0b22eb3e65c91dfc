import type { Violation } from "../../types.js";
import type { Labels } from "../labels.js";

export const WORDS = {};
export const CSS = "";

/** The words of the element in German. */
export const labels: Required<Labels> = {
  asks: "fragt",
  asksVisit: "bittet Sie, eine Seite zu besuchen",
  claims: "nennt sich „{0}“",
  version: "Version {0}",
  tool: "Werkzeug {0}",
  details: "Einzelheiten",
  neither: "Weder noch: ablehnen oder abbrechen",
  required: "nötig",
  optional: "freiwillig",
  noAnswer: "Keine Antwort",
  yes: "Ja",
  no: "Nein",
  accept: "Antwort senden",
  review: "Antworten prüfen",
  decline: "Ablehnen",
  cancel: "Abbrechen",
  notNow: "Jetzt nicht",
  problems: "Noch wurde nichts gesendet. Bitte noch einmal ansehen: {0}",
  failed: "Die Antwort konnte nicht gesendet werden. Nichts ist verloren: Versuchen Sie es noch einmal.",
  incomplete: "ist noch nicht vollständig",
  loading: "Die Frage wird geladen …",
  submitting: "Wird gesendet …",
  sent: "Antwort gesendet.",
  declined: "Abgelehnt.",
  cancelled: "Abgebrochen. Dem Server wird gesagt, dass Sie keine Wahl getroffen haben.",
  withdrawn: "Der Server hat die Frage zurückgezogen. Es wurde nichts gesendet.",
  expired: "Die Zeit zum Antworten ist abgelaufen. Es wurde nichts gesendet.",
  refused: "Diese Frage kann hier nicht beantwortet werden: Sie ist nicht regelgerecht.",
  missing: "Ein Teil dieser Seite konnte nicht geladen werden.",
  unchecked: "Das Muster von {0} wird hier nicht geprüft.",
  exactly: "genau {0}",
  range: "{0} bis {1}",
  least: "mindestens {0}",
  most: "höchstens {0}",
  characters: "{0} Zeichen",
  above: "mehr als {0}",
  below: "weniger als {0}",
  steps: "in Schritten von {0}",
  matches: "nach dem Muster {0}",
  choose: "{0} auswählen",
  number: "eine Zahl",
  integer: "eine ganze Zahl",
  email: "eine E-Mail-Adresse wie ada@example.com",
  uri: "eine vollständige Adresse wie https://example.com",
  date: "ein Datum",
  "date-time": "Datum und Uhrzeit mit Zeitzone",
  time: "Zeit zum Antworten:",
  days: "{0} Tage",
  hours: "{0} Std. {1} Min.",
  open: "In neuem Tab öffnen",
  visited: "Ich habe das erledigt",
  where: "Wollen Sie dorthin?",
  whereText: "Prüfen Sie den fett gesetzten Namen, bevor Sie die Seite öffnen. Was Sie dort tun, bleibt zwischen Ihnen und dieser Seite.",
  address: "Die ganze Adresse",
  plain: "Die Verbindung ist nicht verschlüsselt (kein https).",
  user: "Die Adresse enthält einen Benutzernamen und kann dadurch wie eine andere aussehen.",
  ip: "Die Adresse hat eine Nummer statt eines Namens.",
  foreign: "Der Name hat Buchstaben anderer Schriften und kann wie ein anderer aussehen.",
  port: "Die Adresse hat einen ungewöhnlichen Port: {0}.",
  long: "Die Adresse ist ungewöhnlich lang.",
  change: "Antworten ändern",
  reviewTitle: "Das bekommt der Server",
  nothingSent: "Noch wurde nichts gesendet.",
  empty: "keine Antwort",
  search: "{0} Möglichkeiten durchsuchen",
  searchIn: "Möglichkeiten von {0} durchsuchen",
  found: "Gefunden: {0}.",
  chosen: "Gewählt: {0}",
  moment: "Datum und Uhrzeit",
  zone: "Zeitzone",
  unknownZone: "die Zeitzone ist hier nicht bekannt; schreiben Sie sie wie Europe/Brussels, UTC oder +02:00",
  lines: "ein Wert je Zeile",
  otherFormat: "{0}, wird hier nicht geprüft",
  sure: "Diese Frage abbrechen?",
  sureText: "Was Sie eingegeben haben, geht verloren. Dem Server wird gesagt, dass Sie keine Wahl getroffen haben.",
  sureYes: "Frage abbrechen",
  sureNo: "Weiter antworten",
  less: "Weniger: {0}",
  more: "Mehr: {0}",
  such: "etwa {0}",
  inPattern: "nach einem vorgegebenen Muster",
  pattern: "Muster",
  messages: ({ rule, limit, message }: Violation): string => {
    const sort = { text: "Text", string: "Text", boolean: "Ja oder Nein", array: "eine Auswahl", date: "ein Datum wie 2026-02-28", "date-time": "Datum und Uhrzeit mit Zeitzone, wie 2026-02-28T09:30:00Z", number: labels.number, integer: labels.integer, email: labels.email, uri: labels.uri, object: "ein Formular" }[`${limit as string}`];
    const many = (one: string, more: string) => (limit === 1 ? one : `${limit as number} ${more}`);
    switch (rule) {
      case "required": return "eine Angabe ist nötig";
      case "type": case "format": return sort ? `muss ${sort} sein` : message;
      case "minLength": return limit === 1 ? "darf nicht leer sein" : `muss mindestens ${limit as number} Zeichen haben`;
      case "maxLength": return `darf höchstens ${limit as number} Zeichen haben`;
      case "pattern": return `muss dem Muster ${limit as string} entsprechen`;
      case "minimum": return `muss mindestens ${limit as number} sein`;
      case "maximum": return `darf höchstens ${limit as number} sein`;
      case "exclusiveMinimum": return `muss mehr als ${limit as number} sein`;
      case "exclusiveMaximum": return `muss weniger als ${limit as number} sein`;
      case "multipleOf": return `muss ein Vielfaches von ${limit as number} sein`;
      case "const": return `muss ${JSON.stringify(limit)} sein`;
      case "enum": return Array.isArray(limit) && limit.length <= 8 ? `muss eine Möglichkeit von diesen sein: ${limit.join(", ")}` : "muss eine der Möglichkeiten sein";
      case "minItems": return `wählen Sie mindestens ${many("eine Möglichkeit", "Möglichkeiten")}`;
      case "maxItems": return `wählen Sie höchstens ${many("eine Möglichkeit", "Möglichkeiten")}`;
      case "uniqueItems": return "jede Möglichkeit kann einmal gewählt werden";
      case "additionalProperties": return "dieses Feld hat das Formular nicht";
      case "precision": return "hat mehr Stellen, als diese Seite genau senden kann";
      default: return message;
    }
  },
};
