//! Values that members never have, and the texts that a condition requires.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::Required;
use crate::defect::nearest;

/// The values that a member can have.
enum Domain {
    Texts(&'static [&'static str]),
    /// The minimum and the maximum.
    Numbers(i64, i64),
}

/// Returns the values of a member; `None` if they are not a closed set.
fn domain(path: &str) -> Option<Domain> {
    Some(match path {
        "caller.kind" => Domain::Texts(&["local", "subject", "key"]),
        "question.mode" => Domain::Texts(&["form", "url"]),
        "method" => Domain::Texts(&["tools/call", "prompts/get", "resources/read"]),
        "now.hour" => Domain::Numbers(0, 23),
        "now.minute" => Domain::Numbers(0, 59),
        "now.weekday" => Domain::Numbers(1, 7),
        _ => return None,
    })
}

/// Returns the names of `a.b.c`, joined by dots.
fn path(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            let before = path(&select.operand.expr)?;
            Some(format!("{before}.{}", select.field))
        }
        _ => None,
    }
}

/// A literal that a member never equals, or that is outside its range.
pub(super) struct NeverHolds<'e> {
    /// The literal.
    pub(super) literal: &'e IdedExpr,
    pub(super) message: String,
    pub(super) help: String,
}

/// Returns the literals that make a comparison meaningless, since the member never has such a value.
pub(super) fn never_holds(call: &CallExpr) -> Vec<NeverHolds<'_>> {
    let [left, right] = call.args.as_slice() else {
        return Vec::new();
    };
    if call.target.is_some() {
        return Vec::new();
    }
    let operator = call.func_name.as_str();
    if operator == operators::IN {
        let Expr::List(list) = &right.expr else {
            return Vec::new();
        };
        let elements = list.elements.iter();
        return elements
            .filter_map(|element| never(operators::EQUALS, &left.expr, element))
            .collect();
    }
    let found = never(operator, &left.expr, right).or_else(|| {
        let turned = match operator {
            operators::LESS => operators::GREATER,
            operators::LESS_EQUALS => operators::GREATER_EQUALS,
            operators::GREATER => operators::LESS,
            operators::GREATER_EQUALS => operators::LESS_EQUALS,
            same => same,
        };
        never(turned, &right.expr, left)
    });
    found.into_iter().collect()
}

fn never<'e>(operator: &str, member: &Expr, literal: &'e IdedExpr) -> Option<NeverHolds<'e>> {
    let path = path(member)?;
    let (message, help) = match (domain(&path)?, &literal.expr) {
        (Domain::Texts(known), Expr::Literal(LiteralValue::String(text))) => {
            let text = text.inner();
            if !matches!(operator, operators::EQUALS | operators::NOT_EQUALS)
                || known.contains(&text)
            {
                return None;
            }
            let help = match nearest(text, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known: {}", known.join(", ")),
            };
            (format!("`{path}` is never `{}`", text.escape_debug()), help)
        }
        (Domain::Numbers(least, most), Expr::Literal(LiteralValue::Int(whole))) => {
            let whole = *whole.inner();
            let words = match operator {
                operators::EQUALS | operators::NOT_EQUALS if whole < least || whole > most => "",
                operators::LESS if whole <= least => "below ",
                operators::LESS_EQUALS if whole < least => "at most ",
                operators::GREATER if whole >= most => "above ",
                operators::GREATER_EQUALS if whole > most => "at least ",
                _ => return None,
            };
            (
                format!("`{path}` is never {words}{whole}"),
                format!("it is from {least} to {most}"),
            )
        }
        _ => return None,
    };
    Some(NeverHolds {
        literal,
        message,
        help,
    })
}

/// Returns the conjuncts that require one of several texts at a path. `at` returns the byte of an expression.
pub(super) fn required(expression: &IdedExpr, at: impl Fn(&IdedExpr) -> usize) -> Vec<Required> {
    let (mut found, mut todo) = (Vec::new(), vec![expression]);
    while let Some(next) = todo.pop() {
        let Expr::Call(call) = &next.expr else {
            continue;
        };
        if call.target.is_some() {
            continue;
        }
        let text = |one: &IdedExpr| match &one.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
            _ => None,
        };
        let conjunct = match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND, all) => {
                // The first is popped first.
                todo.extend(all.iter().rev());
                None
            }
            (operators::EQUALS, [left, right]) => match (text(left), text(right)) {
                (None, Some(text)) => path(&left.expr).map(|path| (path, vec![text], right)),
                (Some(text), None) => path(&right.expr).map(|path| (path, vec![text], left)),
                _ => None,
            },
            (operators::IN, [left, right]) => match &right.expr {
                Expr::List(list) => {
                    let texts: Option<Vec<_>> = list.elements.iter().map(text).collect();
                    texts.and_then(|texts| Some((path(&left.expr)?, texts, right)))
                }
                _ => None,
            },
            _ => None,
        };
        found.extend(conjunct.map(|(path, texts, place)| Required {
            path,
            texts,
            at: at(place),
        }));
    }
    found
}
