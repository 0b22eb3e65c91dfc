//! Conjuncts such as `arguments.environment == "production"`, which are compared without CEL: most of a thousand rules
//! are excluded at once.

use std::collections::BTreeMap;

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::ConditionError;
use super::environment::{Environment, Scalar};

/// The paths that comparisons read, each with a number.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    numbers: BTreeMap<Vec<String>, usize>,
    pub(super) paths: Vec<Vec<String>>,
}

impl Interner {
    fn number(&mut self, path: Vec<String>) -> usize {
        if let Some(number) = self.numbers.get(&path) {
            return *number;
        }
        let number = self.paths.len();
        self.paths.push(path.clone());
        self.numbers.insert(path, number);
        number
    }
}

/// A literal that a path is compared with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Int(i64),
    Bool(bool),
}

/// One conjunct.
#[derive(Debug)]
pub(super) enum Comparison {
    /// `path == literal` or `path in [literals]`, the path by its number.
    Equals(usize, Vec<Literal>),
    /// `"name" in groups`
    InGroups(String),
}

impl Comparison {
    /// Returns the comparisons among the conjuncts of a condition, and `true` if there are no other conjuncts.
    pub(super) fn of_condition(expression: &IdedExpr, names: &mut Interner) -> (Vec<Self>, bool) {
        let (mut comparisons, mut is_all) = (Vec::new(), true);
        let mut todo = vec![expression];
        while let Some(next) = todo.pop() {
            match &next.expr {
                Expr::Call(call)
                    if call.func_name == operators::LOGICAL_AND && call.target.is_none() =>
                {
                    todo.extend(&call.args);
                }
                Expr::Call(call) => match Self::of_call(call, names) {
                    Some(comparison) => comparisons.push(comparison),
                    None => is_all = false,
                },
                _ => is_all = false,
            }
        }
        (comparisons, is_all)
    }

    fn of_call(call: &CallExpr, names: &mut Interner) -> Option<Self> {
        let [left, right] = call.args.as_slice() else {
            return None;
        };
        if call.target.is_some() {
            return None;
        }
        match call.func_name.as_str() {
            operators::EQUALS => {
                let (path, literal) = match (literal(&left.expr), literal(&right.expr)) {
                    (None, Some(literal)) => (path(&left.expr)?, literal),
                    (Some(literal), None) => (path(&right.expr)?, literal),
                    _ => return None,
                };
                Some(Self::Equals(names.number(path), vec![literal]))
            }
            operators::IN => match (&left.expr, &right.expr) {
                (Expr::Literal(LiteralValue::String(name)), Expr::Ident(groups))
                    if groups == "groups" =>
                {
                    Some(Self::InGroups(name.inner().to_owned()))
                }
                (left, Expr::List(list)) if list.optional_indices.is_empty() => {
                    let literals: Option<Vec<_>> = list
                        .elements
                        .iter()
                        .map(|element| literal(&element.expr))
                        .collect();
                    Some(Self::Equals(names.number(path(left)?), literals?))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the path, by its number, and the texts that it is compared with, if all are texts.
    pub(super) fn texts(&self) -> Option<(usize, Vec<&str>)> {
        let Self::Equals(path, literals) = self else {
            return None;
        };
        let texts = literals.iter().map(|literal| match literal {
            Literal::Text(text) => Some(text.as_str()),
            Literal::Int(_) | Literal::Bool(_) => None,
        });
        Some((*path, texts.collect::<Option<_>>()?))
    }

    /// Returns `true` if the conjunct reads none of these unknown facts.
    pub(super) fn is_known(&self, environment: &Environment<'_>, gaps: &[&'static str]) -> bool {
        match self {
            Self::InGroups(_) => !gaps.contains(&"groups"),
            Self::Equals(path, _) => environment.is_known(*path, gaps),
        }
    }

    /// Returns the truth of the conjunct, if it can be determined without CEL: a value of another type than all
    /// literals is an error, as in CEL.
    pub(super) fn holds(
        &self,
        environment: &Environment<'_>,
    ) -> Option<Result<bool, ConditionError>> {
        match self {
            Self::InGroups(name) => Some(Ok(environment.facts.groups.contains(name))),
            Self::Equals(path, literals) => {
                let scalar = environment.scalar(*path)?;
                let mut is_expected = literals.is_empty();
                for literal in literals {
                    let is_equal = match (literal, scalar) {
                        (Literal::Text(literal), Scalar::Text(text)) => literal == text,
                        (Literal::Int(literal), Scalar::Int(whole)) => *literal == whole,
                        (Literal::Bool(literal), Scalar::Bool(truth)) => *literal == truth,
                        _ => continue,
                    };
                    is_expected = true;
                    if is_equal {
                        return Some(Ok(true));
                    }
                }
                Some(if is_expected {
                    Ok(false)
                } else {
                    Err(ConditionError::wrong_comparison())
                })
            }
        }
    }
}

fn literal(expression: &Expr) -> Option<Literal> {
    match expression {
        Expr::Literal(LiteralValue::String(text)) => Some(Literal::Text(text.inner().to_owned())),
        Expr::Literal(LiteralValue::Int(whole)) => Some(Literal::Int(*whole.inner())),
        Expr::Literal(LiteralValue::Boolean(truth)) => Some(Literal::Bool(*truth.inner())),
        _ => None,
    }
}

/// Returns the names of `a.b.c`.
fn path(expression: &Expr) -> Option<Vec<String>> {
    match expression {
        Expr::Ident(name) => Some(vec![name.clone()]),
        Expr::Select(select) if !select.test => {
            let mut path = path(&select.operand.expr)?;
            path.push(select.field.clone());
            Some(path)
        }
        _ => None,
    }
}
