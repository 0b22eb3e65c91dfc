//! A parsed condition.

use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::extractors::This;
use cel::{Context, Env, ExecutionError, ParseError, ParseErrors, Value};
use regex::Regex;

use super::check::{CheckedCondition, check};
use super::comparison::{Comparison, Interner};
use super::environment::Environment;
use super::size::too_large;
use super::{ConditionError, Recalled, Remark, Required, typed_operators};

/// Functions and macros. Shared, since it takes longer to create than to evaluate a condition.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(false);
    typed_operators::add_to(&mut env);
    Arc::new(env)
});
/// The same without macros, for the check of the source as written.
static WRITTEN: LazyLock<Env> = LazyLock::new(|| Env::default().with_optional_support(false));

/// A condition.
pub(crate) struct Condition {
    source: String,
    expression: IdedExpr,
    comparisons: Vec<Comparison>,
    /// `true` if the comparisons are the whole condition.
    is_compared: bool,
    patterns: Arc<[(String, Regex)]>,
    variables: Vec<(&'static str, usize)>,
    required: Vec<Required>,
    constant: Option<bool>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.source).finish()
    }
}

impl Condition {
    /// Returns the condition as written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Parses and checks a condition. Returns it with warnings, or else every error.
    pub(crate) fn compile(
        source: &str,
        names: &mut Interner,
    ) -> Result<(Self, Vec<Remark>), Vec<Remark>> {
        if let Some(message) = too_large(source) {
            return Err(vec![Remark {
                at: 0,
                code: "condition-too-large",
                message,
                help: "write several rules".to_owned(),
            }]);
        }
        let parsed = WRITTEN.parser().parse_with_source_info(source);
        let (written, info) = parsed.map_err(|errors| syntax(source, errors))?;
        let CheckedCondition {
            defects,
            warnings,
            variables,
            patterns,
            required,
        } = check(&written, &info);
        if !defects.is_empty() {
            return Err(defects);
        }
        let expanded = ENV.parser().parse(source);
        let mut expression = expanded.map_err(|errors| syntax(source, errors))?;
        let (comparisons, is_compared) = Comparison::of_condition(&expression, names);
        typed_operators::put_into(&mut expression);
        let mut condition = Self {
            source: source.to_owned(),
            expression,
            comparisons,
            is_compared,
            patterns: patterns.into(),
            variables,
            required,
            constant: None,
        };
        if condition.variables.is_empty() {
            condition.constant = condition
                .result(&Context::with_env(Arc::clone(&ENV)), |_| {
                    ConditionError::Other
                })
                .ok();
        }
        Ok((condition, warnings))
    }

    /// Returns the byte at which one of these variables first occurs.
    fn reads(&self, names: &[&str]) -> Option<usize> {
        self.variables
            .iter()
            .filter(|(name, _)| names.contains(name))
            .map(|(_, at)| *at)
            .min()
    }

    /// Returns the byte at which the condition reads the question, if it does.
    pub(crate) fn reads_question(&self) -> Option<usize> {
        self.reads(&["question", "fields"])
    }

    /// Returns `true` if the condition reads the arguments of the call.
    pub(crate) fn reads_arguments(&self) -> bool {
        self.reads(&["arguments"]).is_some()
    }

    /// Returns the byte at which the condition reads the tool's annotations, if it does.
    pub(crate) fn reads_annotations(&self) -> Option<usize> {
        self.reads(&["annotations"])
    }

    /// Returns the texts that are required for the condition to be true, each with its path.
    pub(crate) fn required(&self) -> &[Required] {
        &self.required
    }

    /// Returns the truth of a condition that reads nothing.
    pub(crate) fn constant(&self) -> Option<bool> {
        self.constant
    }

    /// Returns `true` if part of the condition is compared without CEL.
    pub(crate) fn has_comparison(&self) -> bool {
        !self.comparisons.is_empty()
    }

    /// Returns the number of a path, and the texts of which one must be there for the condition to be true.
    pub(crate) fn compared_texts(&self) -> Option<(usize, Vec<&str>)> {
        self.comparisons.iter().find_map(Comparison::texts)
    }

    /// Returns the truth of the condition.
    pub(crate) fn evaluate(&self, environment: &Environment<'_>) -> Result<bool, ConditionError> {
        let mut all = self.is_compared;
        let mut compared = Ok(true);
        for comparison in &self.comparisons {
            match comparison.holds(environment) {
                // One false conjunct makes the whole condition false.
                Some(Ok(false)) => return Ok(false),
                Some(Ok(true)) => {}
                Some(Err(error)) => compared = Err(error),
                None => all = false,
            }
        }
        if all { compared } else { self.run(environment) }
    }

    /// Returns the truth of the condition while some facts are unknown, or else the facts that would decide it. The
    /// values in place of unknown facts are not read.
    pub(crate) fn recall(&self, environment: &Environment<'_>, gaps: &[&'static str]) -> Recalled {
        let is_read = |gap: &&&str| {
            let (name, member) = gap.split_once('.').unwrap_or((gap, ""));
            // A member may be spelled in several ways, so any occurrence of its name counts.
            self.reads(&[name]).is_some() && self.source.contains(member)
        };
        let needed: Vec<&'static str> = gaps.iter().filter(is_read).copied().collect();
        if needed.is_empty() {
            return Recalled::Known(self.evaluate(environment));
        }
        // One false conjunct makes the whole condition false.
        let is_false = |comparison: &Comparison| {
            comparison.is_known(environment, gaps)
                && comparison.holds(environment) == Some(Ok(false))
        };
        if self.comparisons.iter().any(is_false) {
            return Recalled::Known(Ok(false));
        }
        Recalled::Needs(needed)
    }

    /// Evaluates the condition with CEL, without the fast comparisons.
    pub(super) fn run(&self, environment: &Environment<'_>) -> Result<bool, ConditionError> {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(environment);
        if !self.patterns.is_empty() {
            let patterns = Arc::clone(&self.patterns);
            let matches = move |This(text): This<Arc<String>>, pattern: Arc<String>| {
                let compiled = patterns.iter().find(|(known, _)| *known == *pattern);
                compiled.is_some_and(|(_, compiled)| compiled.is_match(&text))
            };
            if context.add_function("matches", matches).is_err() {
                return Err(ConditionError::Other);
            }
        }
        self.result(&context, |name| environment.missing(name))
    }

    fn result(
        &self,
        context: &Context<'_, '_>,
        missing: impl Fn(&str) -> ConditionError,
    ) -> Result<bool, ConditionError> {
        match Value::resolve(&self.expression, context) {
            Ok(Value::Bool(truth)) => Ok(truth),
            Ok(_) => Err(ConditionError::NotBoolean),
            Err(error) => Err(self.explain(&error, missing)),
        }
    }

    /// Returns the error without the values that CEL names.
    fn explain(
        &self,
        error: &ExecutionError,
        missing: impl Fn(&str) -> ConditionError,
    ) -> ConditionError {
        match error {
            ExecutionError::NoSuchKey(name) if self.source.contains(name.as_str()) => {
                ConditionError::Absent(name.to_string())
            }
            ExecutionError::NoSuchKey(_) => ConditionError::AbsentMember,
            ExecutionError::UndeclaredReference(name) => missing(name),
            ExecutionError::NoSuchOverload(overload) => {
                ConditionError::WrongType(operator(overload.function()))
            }
            ExecutionError::ValuesNotComparable(..)
            | ExecutionError::UnexpectedType { .. }
            | ExecutionError::UnsupportedTargetType { .. }
            | ExecutionError::UnsupportedBinaryOperator(..)
            | ExecutionError::UnsupportedIndex(..)
            | ExecutionError::UnsupportedKeyType(_)
            | ExecutionError::NotSupportedAsMethod { .. } => ConditionError::wrong_comparison(),
            ExecutionError::DivisionByZero(_)
            | ExecutionError::RemainderByZero(_)
            | ExecutionError::Overflow(..)
            | ExecutionError::IndexOutOfBounds(_) => ConditionError::OutOfRange,
            _ => ConditionError::Other,
        }
    }
}

/// Returns an operator as it is written.
fn operator(name: &str) -> String {
    format!("`{}`", name.trim_matches(['_', '@']))
}

/// Returns each syntax error at its byte; the parser counts lines and, in them, characters.
fn syntax(source: &str, errors: ParseErrors) -> Vec<Remark> {
    // One error often makes the parser find others after it, so only the first is reported.
    let first = errors.errors.into_iter().next();
    let remark = |error: ParseError| {
        let (line, column) = error.pos;
        let line = usize::try_from(line - 1).unwrap_or(0);
        let column = usize::try_from(column - 1).unwrap_or(0);
        let start: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
        let within = source
            .get(start..)
            .and_then(|rest| rest.char_indices().nth(column));
        let at = within.map_or(source.len(), |(at, _)| start + at);
        let help = if is_assignment(source, at) {
            "did you mean `==`?"
        } else {
            "conditions are written in CEL, such as `arguments.environment == \"production\"`"
        };
        Remark {
            at,
            code: "invalid-condition",
            message: format!("this is not a condition: {}", first_line(&error.msg)),
            help: help.to_owned(),
        }
    };
    first.map(remark).into_iter().collect()
}

/// Returns `true` if a single `=` is at this byte, as in an assignment.
fn is_assignment(source: &str, at: usize) -> bool {
    let (before, rest) = source.split_at_checked(at).unwrap_or((source, ""));
    rest.starts_with('=') && !rest.starts_with("==") && !before.ends_with(['=', '!', '<', '>'])
}

fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let plain: String = line.chars().filter(|c| !c.is_control()).take(160).collect();
    plain.trim().to_owned()
}
