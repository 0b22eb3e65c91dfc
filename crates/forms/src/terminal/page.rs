//! Styled lines for a screen.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::charset::Charset;

/// The style of a piece of text. Style never carries meaning alone: signs and words express it too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SpanStyle {
    #[default]
    Plain,
    Strong,
    Dim,
    Accent,
    Chosen,
    Warn,
    Bad,
    Pressed,
}

/// A piece of text in one style.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct StyledSpan {
    pub(super) text: String,
    pub(super) style: SpanStyle,
}

/// One row of the screen.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct ScreenLine {
    pub(super) spans: Vec<StyledSpan>,
}

impl ScreenLine {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn of(text: impl Into<String>, style: SpanStyle) -> Self {
        Self::new().and(text, style)
    }

    #[must_use]
    pub(super) fn and(mut self, text: impl Into<String>, style: SpanStyle) -> Self {
        self.spans.push(StyledSpan {
            text: text.into(),
            style,
        });
        self
    }

    /// Returns this line followed by another on the same row.
    #[must_use]
    pub(super) fn followed_by(mut self, other: Self) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// Returns the line padded with spaces to `width` columns.
    #[must_use]
    pub(super) fn padded(self, width: usize) -> Self {
        let gap = width.saturating_sub(self.width());
        self.and(" ".repeat(gap), SpanStyle::Plain)
    }

    pub(super) fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// Returns the line cut to `width` columns, with a sign in place of the rest.
    pub(super) fn cut(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let mut line = Self::new();
        let mut left = width.saturating_sub(1);
        for span in &self.spans {
            let (text, all) = fitting(&span.text, left);
            left -= text.width();
            line = line.and(text, span.style);
            if !all {
                break;
            }
        }
        if width > 0 {
            line.and("…", SpanStyle::Dim)
        } else {
            line
        }
    }

    /// Returns the line in a character set.
    fn spelled(&self, charset: Charset) -> Self {
        let spans = self.spans.iter().map(|span| StyledSpan {
            text: charset.spell(&span.text).into_owned(),
            style: span.style,
        });
        Self {
            spans: spans.collect(),
        }
    }

    /// Returns the column that `column` becomes in the character set.
    fn columns_before(&self, column: usize, charset: Charset) -> usize {
        let text: String = self.spans.iter().map(|span| span.text.as_str()).collect();
        let (before, _) = fitting(&text, column);
        charset.spell(before).width() + column.saturating_sub(before.width())
    }

    /// Returns the text without its styles.
    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

/// Returns the beginning that fits in `width` columns, and whether it is the whole text.
fn fitting(text: &str, width: usize) -> (&str, bool) {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += grapheme.width();
        if used > width {
            return (&text[..at], false);
        }
    }
    (text, true)
}

/// Returns text as rows of at most `width` columns, broken between words if there are any.
pub(super) fn wrap(text: &str, width: usize, style: SpanStyle) -> Vec<ScreenLine> {
    text.lines()
        .flat_map(|line| textwrap::wrap(line, width.max(1)))
        .map(|row| ScreenLine::of(row.into_owned(), style))
        .collect()
}

/// Returns styled text as rows of at most `width` columns, broken anywhere: for addresses, which have no words.
pub(super) fn break_anywhere(line: &ScreenLine, width: usize) -> Vec<ScreenLine> {
    let width = width.max(2);
    let mut rows = vec![ScreenLine::new()];
    let mut used = 0;
    for span in &line.spans {
        let mut piece = String::new();
        for grapheme in span.text.graphemes(true) {
            if used + grapheme.width() > width {
                push(&mut rows, &mut piece, span.style);
                rows.push(ScreenLine::new());
                used = 0;
            }
            used += grapheme.width();
            piece.push_str(grapheme);
        }
        push(&mut rows, &mut piece, span.style);
    }
    rows
}

fn push(rows: &mut [ScreenLine], piece: &mut String, style: SpanStyle) {
    if let Some(row) = rows.last_mut().filter(|_| !piece.is_empty()) {
        row.spans.push(StyledSpan {
            text: std::mem::take(piece),
            style,
        });
    }
}

/// The middle of a screen: its rows, the important ones, and the cursor.
#[derive(Clone, Default)]
pub(super) struct ScreenBody {
    pub(super) lines: Vec<ScreenLine>,
    /// The first and last row that must be visible.
    pub(super) focus: Option<(usize, usize)>,
    /// The row that keys act on.
    pub(super) here: Option<usize>,
    /// The row and column of the cursor, during input.
    pub(super) cursor: Option<(usize, usize)>,
}

impl ScreenBody {
    pub(super) fn push(&mut self, line: ScreenLine) {
        self.lines.push(line);
    }

    pub(super) fn extend(&mut self, lines: impl IntoIterator<Item = ScreenLine>) {
        self.lines.extend(lines);
    }

    pub(super) fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.spans.is_empty()) {
            self.lines.push(ScreenLine::new());
        }
    }
}

/// The number of rows from which the first and the last may be replaced by a mark.
const MARKED: usize = 3;
/// The number of body rows that a person can work with.
const ENOUGH: usize = 10;
/// The rows of a screen below which the pinned rows take the place of the line about who asks.
const TINY: usize = 8;

/// The rows of a screen.
#[derive(Clone, Default)]
pub(super) struct ScreenPage {
    pub(super) head: Vec<ScreenLine>,
    /// The number of rows of the question, with which the head begins. After them comes who asks.
    pub(super) question: usize,
    pub(super) body: ScreenBody,
    /// Rows below the body that are never omitted.
    pub(super) pinned: Vec<ScreenLine>,
    pub(super) foot: Vec<ScreenLine>,
    /// The first row of the body to show, if it is scrolled.
    pub(super) scroll: Option<usize>,
}

/// A page cut to a screen: exactly the rows to show, and the cursor as column and row.
pub(super) struct ScreenFrame {
    pub(super) rows: Vec<ScreenLine>,
    pub(super) cursor: Option<(usize, usize)>,
    /// The visible rows of the body; the end is exclusive.
    pub(super) seen: Range<usize>,
    pub(super) total: usize,
    /// The first row that the screen had room for, even if a mark replaced it.
    pub(super) start: usize,
}

impl ScreenPage {
    /// Cuts the page to `width` by `height`. On a low screen the head shrinks to one row of the question and one about who
    /// asks, and the foot to the keys that leave, before the body loses important rows.
    pub(super) fn fit(self, width: usize, height: usize) -> ScreenFrame {
        let Self {
            mut head,
            question,
            body,
            mut pinned,
            mut foot,
            scroll,
        } = self;
        let wanted = body.lines.len().min(ENOUGH) + pinned.len();
        let spare = |head: &[ScreenLine], foot: &[ScreenLine]| {
            (head.len() + foot.len() + wanted).saturating_sub(height)
        };
        let about = (question + 1).min(head.len());
        head.truncate(head.len().saturating_sub(spare(&head, &foot)).max(about));
        let extra = spare(&head, &foot).min(question.saturating_sub(1));
        head.drain(question - extra..question);
        if extra > 0
            && let Some(first) = head.first_mut()
        {
            *first = first.clone().and(" …", SpanStyle::Dim);
        }
        if height < TINY && question > 0 && !pinned.is_empty() {
            head.truncate(1);
        }
        let extra = spare(&head, &foot).min(foot.len().saturating_sub(1));
        foot.drain(..extra);
        head.truncate(height.saturating_sub(foot.len()));
        foot.truncate(height);
        pinned.truncate(height - head.len() - foot.len());
        let room = height - head.len() - pinned.len() - foot.len();

        let total = body.lines.len();
        let start = match scroll {
            Some(row) => row.min(total.saturating_sub(room)),
            None => first_row(&body, room),
        };
        let end = (start + room).min(total);
        let mut shown: Vec<ScreenLine> = body.lines[start..end].to_vec();
        let (above, below) = mark_more(&mut shown, start, total - end);
        let seen = start + usize::from(above)..end - usize::from(below);
        shown.resize(room, ScreenLine::new());

        let cursor = body
            .cursor
            .filter(|(row, _)| (start..end).contains(row))
            .map(|(row, column)| {
                (
                    column.min(width.saturating_sub(1)),
                    row - start + head.len(),
                )
            });
        let rows = head
            .into_iter()
            .chain(shown)
            .chain(pinned)
            .chain(foot)
            .map(|line| line.cut(width))
            .collect();
        ScreenFrame {
            rows,
            cursor,
            seen,
            total,
            start,
        }
    }

    /// Returns the page in a character set. A line that becomes longer than `width` columns continues on another row,
    /// so that nothing is lost.
    #[must_use]
    pub(super) fn spelled(self, charset: Charset, width: usize) -> Self {
        if charset == Charset::Unicode {
            return self;
        }
        let spelled = |lines: Vec<ScreenLine>| -> Vec<ScreenLine> {
            let one = |line: &ScreenLine| line.spelled(charset).cut(width);
            lines.iter().map(one).collect()
        };
        let mut rows = Vec::new();
        // The new position of each row of the body.
        let mut starts = Vec::new();
        for line in &self.body.lines {
            starts.push(rows.len());
            let line = line.spelled(charset);
            if line.width() <= width {
                rows.push(line);
            } else {
                rows.extend(break_anywhere(&line, width));
            }
        }
        let at = |row: usize| starts.get(row).copied().unwrap_or(rows.len());
        let body = ScreenBody {
            focus: self
                .body
                .focus
                .map(|(first, last)| (at(first), at(last + 1).saturating_sub(1).max(at(first)))),
            here: self.body.here.map(at),
            cursor: self.body.cursor.map(|(row, column)| {
                let column = match self.body.lines.get(row) {
                    Some(line) => line.columns_before(column, charset),
                    None => column,
                };
                (at(row) + column / width.max(2), column % width.max(2))
            }),
            lines: Vec::new(),
        };
        Self {
            head: spelled(self.head),
            question: self.question,
            body: ScreenBody {
                lines: rows,
                ..body
            },
            pinned: spelled(self.pinned),
            foot: spelled(self.foot),
            scroll: self.scroll,
        }
    }
}

fn first_row(body: &ScreenBody, room: usize) -> usize {
    let total = body.lines.len();
    if total <= room {
        return 0;
    }
    let (first, last) = body.focus.unwrap_or((0, 0));
    // The end of the important rows is visible, then their beginning, then the row that keys act on; with a row of room
    // for the marks.
    let start = (last + 2).saturating_sub(room).min(first.saturating_sub(1));
    let here = body
        .here
        .or(body.cursor.map(|(row, _)| row))
        .unwrap_or(first);
    let start = start
        .max((here + 2).saturating_sub(room))
        .min(here.saturating_sub(1));
    start.min(total - room)
}

/// Replaces the first and the last row with marks if there is more above or below, and returns which rows it replaced.
/// On the smallest screens the rows themselves are kept.
fn mark_more(shown: &mut [ScreenLine], above: usize, below: usize) -> (bool, bool) {
    let room = shown.len() >= MARKED;
    let (up, down) = (above > 0 && room, below > 0 && room);
    if let Some(first) = shown.first_mut().filter(|_| up) {
        *first = ScreenLine::of(format!("↑ {} more", above + 1), SpanStyle::Dim);
    }
    if let Some(last) = shown.last_mut().filter(|_| down) {
        *last = ScreenLine::of(format!("↓ {} more", below + 1), SpanStyle::Dim);
    }
    (up, down)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: usize, focus: (usize, usize)) -> ScreenPage {
        let lines = (0..body)
            .map(|n| ScreenLine::of(format!("row {n}"), SpanStyle::Plain))
            .collect();
        ScreenPage {
            head: vec![
                ScreenLine::of("head", SpanStyle::Strong),
                ScreenLine::of("more head", SpanStyle::Plain),
            ],
            body: ScreenBody {
                lines,
                focus: Some(focus),
                here: None,
                cursor: Some((focus.0, 3)),
            },
            foot: vec![
                ScreenLine::of("keys", SpanStyle::Dim),
                ScreenLine::of("Esc cancel", SpanStyle::Dim),
            ],
            ..ScreenPage::default()
        }
    }

    fn texts(frame: &ScreenFrame) -> Vec<String> {
        frame.rows.iter().map(ScreenLine::text).collect()
    }

    #[test]
    fn what_matters_stays_in_sight() {
        let frame = page(20, (12, 12)).fit(20, 9);
        let seen = [
            "head",
            "↑ 8 more",
            "row 8",
            "row 9",
            "row 10",
            "row 11",
            "row 12",
            "↓ 7 more",
            "Esc cancel",
        ];
        assert_eq!(texts(&frame), seen);
        assert_eq!(frame.cursor, Some((3, 6)));
    }

    #[test]
    fn scrolling_says_which_rows_are_in_sight() {
        let scrolled = |row| ScreenPage {
            scroll: Some(row),
            pinned: vec![ScreenLine::of("buttons", SpanStyle::Plain)],
            ..page(20, (0, 0))
        };
        let frame = scrolled(0).fit(20, 8);
        assert_eq!((frame.seen, frame.total), (0..4, 20));
        let frame = scrolled(4).fit(20, 8);
        assert_eq!(frame.seen, 5..8);
        assert_eq!(texts(&scrolled(4).fit(20, 8))[6], "buttons");
        assert_eq!(scrolled(99).fit(20, 8).seen, 16..20);
        assert_eq!(scrolled(7).fit(20, 4).seen, 7..8);
    }

    #[test]
    fn longer_rows_of_another_character_set_lose_nothing() {
        let mut page = page(3, (1, 1));
        page.body.lines[1] = ScreenLine::of("ab日本cd", SpanStyle::Plain);
        page.body.cursor = Some((1, 6));
        let page = page.spelled(Charset::Ascii, 10);
        let rows: Vec<_> = page.body.lines.iter().map(ScreenLine::text).collect();
        assert_eq!(rows, ["row 0", "ab<U+65E5>", "<U+672C>cd", "row 2"]);
        assert_eq!(page.body.focus, Some((1, 2)));
        assert_eq!(page.body.cursor, Some((2, 8)));
    }

    #[test]
    fn any_size_is_filled_exactly() {
        for height in 0..30 {
            for width in [0, 1, 2, 5, 80] {
                let frame = page(9, (4, 5)).fit(width, height);
                assert_eq!(frame.rows.len(), height, "{width}x{height}");
                assert!(
                    frame.rows.iter().all(|row| row.width() <= width),
                    "{width}x{height}"
                );
            }
        }
    }

    #[test]
    fn wide_characters_are_cut_whole() {
        assert_eq!(
            ScreenLine::of("日本語", SpanStyle::Plain).cut(4).text(),
            "日…"
        );
        let rows = break_anywhere(&ScreenLine::of("日本語", SpanStyle::Plain), 5);
        assert_eq!(
            rows.iter().map(ScreenLine::text).collect::<Vec<_>>(),
            ["日本", "語"]
        );
    }
}
