//! An editor for text of one or several lines.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::view::sanitize;

/// The longest text that can be typed or pasted, in bytes.
const MOST: usize = 1 << 20;

/// Text with a cursor. The cursor is always between graphemes, so a letter and its accents, or an emoji and its parts,
/// are passed and deleted as one.
#[derive(Clone, Default)]
pub(super) struct Editor {
    text: String,
    /// Byte index of the cursor.
    at: usize,
    lines: bool,
    /// `true` while the value is an unchanged suggestion, which typing replaces.
    suggested: bool,
    /// `true` if each character is shown as a star.
    masked: bool,
}

/// The drawing of an editor: its rows, and the cursor's row and column.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) rows: Vec<String>,
    pub(super) cursor: (usize, usize),
}

impl Editor {
    /// Creates an editor with `text` and the cursor at its end; `lines` allows line breaks.
    pub(super) fn new(text: &str, lines: bool) -> Self {
        let mut editor = Self {
            text: String::new(),
            at: 0,
            lines,
            suggested: false,
            masked: false,
        };
        editor.insert(text);
        editor
    }

    /// Creates an editor with a suggested text: it stays if nothing is typed, and is replaced otherwise.
    pub(super) fn suggesting(text: &str, lines: bool) -> Self {
        let mut editor = Self::new(text, lines);
        editor.suggested = !editor.text.is_empty();
        editor
    }

    /// Sets whether the text is hidden.
    pub(super) fn masked(mut self, masked: bool) -> Self {
        self.masked = masked;
        self
    }

    pub(super) fn is_suggested(&self) -> bool {
        self.suggested
    }

    /// Turns the suggestion into text that can be edited.
    pub(super) fn keep(&mut self) {
        self.suggested = false;
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn has_lines(&self) -> bool {
        self.text.contains('\n')
    }

    /// Inserts text at the cursor. Line breaks become spaces in a single-line editor; other control characters, which
    /// people do not type, are removed.
    pub(super) fn insert(&mut self, typed: &str) {
        if std::mem::take(&mut self.suggested) {
            self.text.clear();
            self.at = 0;
        }
        let unified = typed.replace("\r\n", "\n").replace('\r', "\n");
        let unified = if self.lines {
            unified.as_str()
        } else {
            unified.trim_end_matches('\n')
        };
        let mut clean: String = unified
            .chars()
            .map(|c| {
                if c == '\t' || (c == '\n' && !self.lines) {
                    ' '
                } else {
                    c
                }
            })
            .filter(|c| !c.is_control() || *c == '\n')
            .collect();
        if self.text.len() + clean.len() > MOST {
            clean = String::new();
        }
        self.text.insert_str(self.at, &clean);
        self.at += clean.len();
        // A combining mark joins the letter before it, so the cursor may now be inside a grapheme.
        while self.at < self.text.len() && !self.is_boundary(self.at) {
            self.at += 1;
        }
    }

    pub(super) fn backspace(&mut self) {
        self.suggested = false;
        let before = self.before();
        self.text.replace_range(before..self.at, "");
        self.at = before;
    }

    pub(super) fn delete(&mut self) {
        self.text.replace_range(self.at..self.after(), "");
    }

    pub(super) fn left(&mut self) {
        self.at = self.before();
    }

    pub(super) fn right(&mut self) {
        self.at = self.after();
    }

    pub(super) fn word_left(&mut self) {
        self.at = self.word_before();
    }

    pub(super) fn word_right(&mut self) {
        let rest = &self.text[self.at..];
        let mut words = rest.unicode_word_indices();
        self.at += words
            .next()
            .map_or(rest.len(), |(start, word)| start + word.len());
    }

    pub(super) fn delete_word(&mut self) {
        let start = self.word_before();
        self.text.replace_range(start..self.at, "");
        self.at = start;
    }

    pub(super) fn home(&mut self) {
        self.at = self.line_start();
    }

    pub(super) fn end(&mut self) {
        self.at = self.line_end();
    }

    pub(super) fn delete_to_home(&mut self) {
        let start = self.line_start();
        self.text.replace_range(start..self.at, "");
        self.at = start;
    }

    pub(super) fn delete_to_end(&mut self) {
        self.text.replace_range(self.at..self.line_end(), "");
    }

    /// Moves a line up, keeping the column; returns `false` on the first line.
    pub(super) fn up(&mut self) -> bool {
        let start = self.line_start();
        let Some(previous_end) = start.checked_sub(1) else {
            return false;
        };
        let column = self.text[start..self.at].graphemes(true).count();
        let previous = self.text[..previous_end].rfind('\n').map_or(0, |at| at + 1);
        self.at = previous + prefix(&self.text[previous..previous_end], column);
        true
    }

    /// Moves a line down, keeping the column; returns `false` on the last line.
    pub(super) fn down(&mut self) -> bool {
        let end = self.line_end();
        if end == self.text.len() {
            return false;
        }
        let column = self.text[self.line_start()..self.at]
            .graphemes(true)
            .count();
        let next_end = self.text[end + 1..]
            .find('\n')
            .map_or(self.text.len(), |at| end + 1 + at);
        self.at = end + 1 + prefix(&self.text[end + 1..next_end], column);
        true
    }

    /// Returns the text broken into rows of at most `width` columns.
    pub(super) fn rows(&self, width: usize) -> Rows {
        let width = width.max(2);
        let mut rows = vec![String::new()];
        let mut used = 0;
        let mut cursor = None;
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let shown = if self.masked && grapheme != "\n" {
                "*".to_owned()
            } else {
                sanitize::text(grapheme, sanitize::LABEL)
            };
            let columns = if grapheme == "\n" { 0 } else { shown.width() };
            // A full row breaks before the next character, and before the cursor, which needs a column too.
            if used + columns > width || (used == width && at == self.at) {
                rows.push(String::new());
                used = 0;
            }
            if at == self.at {
                cursor = Some((rows.len() - 1, used));
            }
            if grapheme == "\n" {
                rows.push(String::new());
                used = 0;
            } else if let Some(row) = rows.last_mut() {
                row.push_str(&shown);
                used += columns;
            }
        }
        if cursor.is_none() && used >= width {
            rows.push(String::new());
            used = 0;
        }
        let cursor = cursor.unwrap_or((rows.len() - 1, used));
        Rows { rows, cursor }
    }

    fn is_boundary(&self, at: usize) -> bool {
        self.text.is_char_boundary(at)
            && self
                .text
                .grapheme_indices(true)
                .any(|(start, _)| start == at)
    }

    fn before(&self) -> usize {
        self.text[..self.at]
            .grapheme_indices(true)
            .next_back()
            .map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.at..]
            .graphemes(true)
            .next()
            .map_or(self.at, |grapheme| self.at + grapheme.len())
    }

    fn word_before(&self) -> usize {
        self.text[..self.at]
            .unicode_word_indices()
            .next_back()
            .map_or(0, |(start, _)| start)
    }

    fn line_start(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.at..]
            .find('\n')
            .map_or(self.text.len(), |at| self.at + at)
    }
}

/// Bytes of the first `graphemes` graphemes.
fn prefix(text: &str, graphemes: usize) -> usize {
    text.grapheme_indices(true)
        .nth(graphemes)
        .map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grapheme_goes_as_one() {
        let mut editor = Editor::new("ae\u{301}👨\u{200d}👩\u{200d}👧", false);
        editor.backspace();
        assert_eq!(editor.text(), "ae\u{301}");
        editor.backspace();
        assert_eq!(editor.text(), "a");
        editor.left();
        editor.delete();
        assert_eq!(editor.text(), "");
        editor.backspace();
        editor.delete();
    }

    #[test]
    fn a_suggestion_gives_way_to_typing_but_not_to_editing() {
        let mut typed = Editor::suggesting("2", false);
        typed.insert("1");
        typed.insert("2");
        assert_eq!(typed.text(), "12");
        let mut edited = Editor::suggesting("2", false);
        edited.keep();
        edited.insert("1");
        assert_eq!(edited.text(), "21");
    }

    #[test]
    fn pasted_lines_stay_or_become_spaces() {
        assert_eq!(Editor::new("a\r\nb\x1b[31m\n", true).text(), "a\nb[31m\n");
        assert_eq!(Editor::new("a\r\nb\n", false).text(), "a b");
    }

    #[test]
    fn up_and_down_keep_the_column() {
        let mut editor = Editor::new("first\nab\nthird", true);
        assert!(editor.up());
        editor.insert("!");
        assert!(editor.up());
        editor.insert("?");
        assert!(!editor.up());
        assert!(editor.down());
        assert_eq!(editor.text(), "fir?st\nab!\nthird");
    }

    #[test]
    fn rows_break_at_the_width_and_leave_the_cursor_a_place() {
        let editor = Editor::new("abcd", false);
        assert_eq!(
            editor.rows(3),
            Rows {
                rows: vec!["abc".into(), "d".into()],
                cursor: (1, 1)
            }
        );
        assert_eq!(
            editor.rows(4),
            Rows {
                rows: vec!["abcd".into(), String::new()],
                cursor: (1, 0)
            }
        );
        let wide = Editor::new("日本", false);
        assert_eq!(
            wide.rows(3),
            Rows {
                rows: vec!["日".into(), "本".into()],
                cursor: (1, 2)
            }
        );
    }

    #[test]
    fn words_and_ends_are_reached() {
        let mut editor = Editor::new("one two three", false);
        editor.delete_word();
        editor.word_left();
        editor.delete_to_home();
        assert_eq!(editor.text(), "two ");
        editor.word_right();
        editor.delete_to_end();
        assert_eq!(editor.text(), "two");
        editor.home();
        editor.insert("the ");
        editor.end();
        editor.insert(".");
        assert_eq!(editor.text(), "the two.");
    }
}
