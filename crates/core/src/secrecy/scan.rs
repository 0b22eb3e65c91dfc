//! The search for credentials in a text. A secret counts if it is the subject of the text: "GitHub API key" is one,
//! "name of the API key" and "API key rotation interval" are not.

use std::cell::OnceCell;

use super::terms::{self, Term, TermLists};
use super::words::{folded, undisguised_words, words};
use super::{Confidence, CredentialKind};

/// The kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextStyle {
    /// A name or a title: a few words that name the field.
    Label,
    /// A description: sentences about one field, in which a secret may merely be mentioned.
    Prose,
    /// The message above a form: sentences about anything, in which only a request counts fully.
    Message,
}

/// A finding: the credential that a text asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundCredential {
    pub(super) secret: CredentialKind,
    pub(super) level: Confidence,
    pub(super) intent: Intent,
}

/// The directness with which a text asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Intent {
    /// The secret is mentioned.
    Mentioned,
    /// The text attributes the secret to the reader ("your").
    Owned,
    /// The text asks the reader for it, or labels the field with it.
    Asked,
}

/// The result of reading one text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The gravest finding.
    pub(super) found: Option<FoundCredential>,
    /// Secrets mentioned in a harmless sense, which disambiguates a name beside it.
    pub(super) harmless: Vec<CredentialKind>,
}

/// The most words of a spelled-out term; `LETTERS` applies if each word is one letter.
const WINDOW: usize = 6;
const LETTERS: usize = 16;

/// The most words before the subject of a sentence.
const LEAD: usize = 5;

/// Scans a text.
pub(super) fn scan(text: &str, style: TextStyle) -> Scan {
    let mut scan = Scan::default();
    for clause in text.split([
        '.', '!', '?', ';', ':', ',', '(', ')', '[', ']', '\n', '。', '、', '，', '：', '？', '！',
    ]) {
        scan.read(&words(clause), style);
        if let Some(plain) = undisguised_words(clause) {
            scan.read(&plain, style);
        }
        scan.read_glued(clause, style);
    }
    scan
}

/// The state of a clause, which is read from left to right.
struct ClauseState<'a> {
    words: &'a [String],
    /// The words after each word, from the first term on.
    ahead: OnceCell<Ahead>,
    /// `true` if a noun at this point is the subject of the clause.
    open: bool,
    intent: Intent,
    style: TextStyle,
    lead: usize,
}

impl Scan {
    fn read(&mut self, words: &[String], style: TextStyle) {
        let intent = if style == TextStyle::Label {
            Intent::Asked
        } else {
            Intent::Mentioned
        };
        let mut clause = ClauseState {
            words,
            ahead: OnceCell::new(),
            open: true,
            intent,
            style,
            lead: 0,
        };
        let mut at = 0;
        while at < words.len() {
            let Some((term, length, plural)) = term_at(words, at) else {
                let lists = terms::lists(&words[at]);
                if lists.is_denying() {
                    return;
                }
                clause.pass(lists);
                at += 1;
                continue;
            };
            if clause.open {
                match clause.judge(term, at, length, plural) {
                    Some(found) => self.put(found),
                    None => self.harmless.push(term.secret),
                }
            }
            at += length;
        }
    }

    fn read_glued(&mut self, clause: &str, style: TextStyle) {
        if clause.is_ascii() {
            return;
        }
        let text: String = folded(clause)
            .chars()
            .filter(|c| c.is_alphanumeric())
            .collect();
        if let Some((secret, at_end)) = terms::glued(&text) {
            let short = text.chars().count() <= 24;
            let level = if short && (at_end || style != TextStyle::Label) {
                Confidence::Certain
            } else {
                Confidence::Suspicious
            };
            self.put(FoundCredential {
                secret,
                level,
                intent: Intent::Asked,
            });
        }
    }

    fn put(&mut self, found: FoundCredential) {
        let graver = self
            .found
            .is_none_or(|known| (found.level, found.intent) > (known.level, known.intent));
        if graver {
            self.found = Some(found);
        }
    }
}

impl ClauseState<'_> {
    /// Skips a word that is not a term.
    fn pass(&mut self, word: TermLists) {
        if word.is_asking() {
            (self.open, self.intent, self.lead) = (true, Intent::Asked, 0);
        } else if word.is_own() {
            self.intent = self.intent.max(Intent::Owned);
        } else if word.is_turning() {
            self.open = false;
        } else if !word.is_ending() {
            self.lead += 1;
            if self.style != TextStyle::Label && self.lead > LEAD {
                self.open = false;
            }
        }
    }

    /// Returns the meaning of a term in its context; `None` if it is harmless there.
    fn judge(&self, term: Term, at: usize, length: usize, plural: bool) -> Option<FoundCredential> {
        let before = at
            .checked_sub(1)
            .map(|before| self.words[before].as_str())
            .unwrap_or_default();
        if terms::lists(before).is_another() {
            return None;
        }
        let mut level = term.level;
        let ahead = self.ahead.get_or_init(|| Ahead::of(self.words));
        let rest = at + length;
        if self.style == TextStyle::Message && self.intent < Intent::Asked && ahead.only_tells(rest)
        {
            return None;
        }
        let unknown = plural | ahead.is_unknown(rest)?;
        let enough = if self.style == TextStyle::Message {
            Intent::Asked
        } else {
            Intent::Owned
        };
        if unknown || self.intent < enough {
            level = level.lower()?;
        }
        Some(FoundCredential {
            secret: term.secret,
            level,
            intent: self.intent,
        })
    }
}

/// The words after each word of a clause: read once for all its terms, of which there may be as many as words.
#[derive(Debug)]
struct Ahead {
    /// The position of the next word by which the term is only mentioned, and of the next that ends its part of the clause;
    /// the number of words if there is none.
    about: Vec<usize>,
    end: Vec<usize>,
    /// The number of words from here on that say something else of a term.
    unknown: Vec<usize>,
    /// `true` if a later word says something about a term, and if one says that it is needed.
    telling: Vec<bool>,
    needed: Vec<bool>,
}

impl Ahead {
    fn of(words: &[String]) -> Self {
        let count = words.len();
        let mut ahead = Self {
            about: vec![count; count + 1],
            end: vec![count; count + 1],
            unknown: vec![0; count + 1],
            telling: vec![false; count + 1],
            needed: vec![false; count + 1],
        };
        for (at, word) in words.iter().enumerate().rev() {
            let lists = terms::lists(word);
            let is_end = lists.is_turning() || lists.is_ending() || lists.is_asking();
            ahead.about[at] = if lists.is_about() {
                at
            } else {
                ahead.about[at + 1]
            };
            ahead.end[at] = if is_end { at } else { ahead.end[at + 1] };
            ahead.telling[at] = lists.is_telling() || ahead.telling[at + 1];
            ahead.needed[at] = lists.is_needed() || ahead.needed[at + 1];
            let is_unknown = !lists.is_qualifier() && word.parse::<u32>().is_err();
            ahead.unknown[at] = ahead.unknown[at + 1] + usize::from(is_unknown);
        }
        ahead
    }

    /// Returns `true` if the words from here on only say something about the term.
    fn only_tells(&self, from: usize) -> bool {
        self.telling[from] && !self.needed[from]
    }

    /// Returns `true` if a word of unknown meaning follows the term in its part of the clause; `None` if the term is only
    /// mentioned there.
    fn is_unknown(&self, from: usize) -> Option<bool> {
        let (about, end) = (self.about[from], self.end[from]);
        let is_mentioned = about <= end && about + 1 < self.about.len();
        (!is_mentioned).then(|| self.unknown[from] > self.unknown[end])
    }
}

/// Returns the longest term that begins at a word, its number of words, and whether it is a plural.
fn term_at(words: &[String], at: usize) -> Option<(Term, usize, bool)> {
    let rest = &words[at..];
    let ending = || terms::glued_ending(&rest[0]).map(|term| (term, 1, false));
    if !terms::may_begin(rest.iter().flat_map(|word| word.bytes())) {
        return ending();
    }
    let letters = rest
        .iter()
        .take(LETTERS)
        .take_while(|word| word.chars().count() == 1)
        .count();
    let mut joined = String::new();
    let mut longest = None;
    for (index, word) in rest.iter().take(letters.max(WINDOW)).enumerate() {
        joined.push_str(word);
        if !terms::may_match(&joined) {
            break;
        }
        let found = terms::term(&joined).or_else(|| terms::term(&unleeted(&joined)?));
        longest = found
            .map(|(term, plural)| (term, index + 1, plural))
            .or(longest);
    }
    longest.or_else(ending)
}

/// Returns `p4ssw0rd` with its digits as letters; `None` without a digit among letters.
fn unleeted(word: &str) -> Option<String> {
    let mixed = word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic());
    mixed.then(|| {
        let meant = |c: char| match u8::try_from(c) {
            Ok(byte) if c.is_ascii() => char::from(terms::letter_meant(byte)),
            _ => c,
        };
        word.chars().map(meant).collect()
    })
}

#[cfg(test)]
mod tests;
