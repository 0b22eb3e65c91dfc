import type { Violation } from "../../types.js";
import type { Labels } from "../labels.js";

export const WORDS = {};
export const CSS = "";

/** The words of the element in Spanish. */
export const labels: Required<Labels> = {
  asks: "pregunta",
  asksVisit: "le pide que visite una página",
  claims: "dice llamarse «{0}»",
  version: "versión {0}",
  tool: "herramienta {0}",
  details: "Detalles",
  neither: "Ninguna de las dos: rechazar o cancelar",
  required: "obligatorio",
  optional: "opcional",
  noAnswer: "Sin respuesta",
  yes: "Sí",
  no: "No",
  accept: "Enviar respuesta",
  review: "Revisar respuestas",
  decline: "Rechazar",
  cancel: "Cancelar",
  notNow: "Ahora no",
  problems: "Aún no se ha enviado nada. Respuestas que revisar: {0}",
  failed: "No se pudo enviar la respuesta. No se ha perdido nada: inténtelo de nuevo.",
  incomplete: "aún no está completo",
  loading: "Cargando la pregunta…",
  submitting: "Enviando…",
  sent: "Respuesta enviada.",
  declined: "Rechazada.",
  cancelled: "Cancelada. Se comunica al servidor que usted no ha elegido.",
  withdrawn: "El servidor ha retirado esta pregunta. No se ha enviado nada.",
  expired: "Se acabó el tiempo para responder. No se ha enviado nada.",
  refused: "Aquí no se puede responder a esta pregunta: no es conforme.",
  missing: "No se pudo cargar una parte de esta página.",
  unchecked: "El patrón de {0} no se comprueba aquí.",
  exactly: "exactamente {0}",
  range: "de {0} a {1}",
  least: "al menos {0}",
  most: "como máximo {0}",
  characters: "{0} caracteres",
  above: "más de {0}",
  below: "menos de {0}",
  steps: "en pasos de {0}",
  matches: "según el patrón {0}",
  choose: "elegir {0}",
  number: "un número",
  integer: "un número entero",
  email: "una dirección de correo como ada@example.com",
  uri: "una dirección completa como https://example.com",
  date: "una fecha",
  "date-time": "fecha y hora con zona horaria",
  time: "Tiempo para responder:",
  days: "{0} días",
  hours: "{0} h {1} min",
  open: "Abrir en otra pestaña",
  visited: "Ya lo he hecho",
  where: "¿Es aquí adonde quiere ir?",
  whereText: "Compruebe el nombre en negrita antes de abrir la página. Lo que haga allí queda entre usted y ese sitio.",
  address: "La dirección completa",
  plain: "La conexión no está cifrada (sin https).",
  user: "La dirección lleva un nombre de usuario, que puede hacerla parecer otra.",
  ip: "La dirección tiene un número en lugar de un nombre.",
  foreign: "El nombre tiene letras de otras escrituras, que pueden hacerlo parecer otro.",
  port: "La dirección tiene un puerto poco habitual: {0}.",
  long: "La dirección es más larga de lo habitual.",
  change: "Cambiar respuestas",
  reviewTitle: "Esto es lo que recibirá el servidor",
  nothingSent: "Aún no se ha enviado nada.",
  empty: "sin respuesta",
  search: "Buscar entre {0} opciones",
  searchIn: "Buscar entre las opciones de {0}",
  found: "Opciones encontradas: {0}.",
  chosen: "Elegido: {0}",
  moment: "Fecha y hora",
  zone: "Zona horaria",
  unknownZone: "la zona horaria no se conoce aquí; escríbala como Europe/Brussels, UTC o +02:00",
  lines: "un valor por línea",
  otherFormat: "{0}, no se comprueba aquí",
  sure: "¿Cancelar esta pregunta?",
  sureText: "Lo que ha escrito se pierde. Se comunica al servidor que usted no ha elegido.",
  sureYes: "Cancelar la pregunta",
  sureNo: "Seguir respondiendo",
  less: "Menos: {0}",
  more: "Más: {0}",
  such: "por ejemplo {0}",
  inPattern: "según un patrón dado",
  pattern: "Patrón",
  messages: ({ rule, limit, message }: Violation): string => {
    const sort = { string: "un texto", boolean: "sí o no", array: "una selección de opciones", date: "una fecha como 2026-02-28", "date-time": "fecha y hora con zona horaria, como 2026-02-28T09:30:00Z", number: labels.number, integer: labels.integer, email: labels.email, uri: labels.uri, object: "un formulario" }[`${limit as string}`];
    const many = (one: string, more: string) => (limit === 1 ? one : `${limit as number} ${more}`);
    switch (rule) {
      case "required": return "se necesita una respuesta";
      case "type": case "format": return sort ? `debe ser ${sort}` : message;
      case "minLength": return limit === 1 ? "no debe estar vacío" : `debe tener al menos ${limit as number} caracteres`;
      case "maxLength": return `debe tener como máximo ${many("un carácter", "caracteres")}`;
      case "pattern": return `debe seguir el patrón ${limit as string}`;
      case "minimum": return `debe ser al menos ${limit as number}`;
      case "maximum": return `debe ser como máximo ${limit as number}`;
      case "exclusiveMinimum": return `debe ser mayor que ${limit as number}`;
      case "exclusiveMaximum": return `debe ser menor que ${limit as number}`;
      case "multipleOf": return `debe ser múltiplo de ${limit as number}`;
      case "const": return `debe ser ${JSON.stringify(limit)}`;
      case "enum": return Array.isArray(limit) && limit.length <= 8 ? `debe ser una de estas opciones: ${limit.join(", ")}` : "debe ser una de las opciones";
      case "minItems": return `elija al menos ${many("una opción", "opciones")}`;
      case "maxItems": return `elija como máximo ${many("una opción", "opciones")}`;
      case "uniqueItems": return "cada opción se puede elegir una vez";
      case "additionalProperties": return "el formulario no tiene este campo";
      case "precision": return "tiene más cifras de las que esta página puede enviar con exactitud";
      default: return message;
    }
  },
};
