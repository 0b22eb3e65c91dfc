//! The check of a condition: its names, types and limits, over the tree as written, before macros are expanded.

use std::collections::BTreeSet;

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators};
use regex::{Regex, RegexBuilder};

use super::arguments::MAX_ELEMENTS;
use super::environment::VARIABLES;
use super::prefixes::Prefixes;
use super::types::{FUNCTIONS, MemberType, Type, variable};
use super::{Remark, Required, domains};
use crate::defect::nearest;

/// The most nodes of a condition.
const MAX_NODES: usize = 200;
/// The longest pattern of `matches`, in bytes.
const MAX_PATTERN: usize = 256;

/// The findings about one condition.
pub(super) struct CheckedCondition {
    pub(super) defects: Vec<Remark>,
    pub(super) warnings: Vec<Remark>,
    /// The variables read, each with the byte of its first occurrence.
    pub(super) variables: Vec<(&'static str, usize)>,
    /// The patterns of `matches`, each with its text.
    pub(super) patterns: Vec<(String, Regex)>,
    /// The texts that it requires.
    pub(super) required: Vec<Required>,
}

/// Checks a condition, in which `has` and other macros must not be expanded.
pub(super) fn check(expression: &IdedExpr, source: &SourceInfo) -> CheckedCondition {
    let mut walk = ConditionWalk {
        source,
        locals: Vec::new(),
        in_macro: false,
        nodes: 0,
        read: BTreeSet::new(),
        tested: BTreeSet::new(),
        prefixes: Prefixes::default(),
        checked: CheckedCondition {
            defects: Vec::new(),
            warnings: Vec::new(),
            variables: Vec::new(),
            patterns: Vec::new(),
            required: Vec::new(),
        },
    };
    let found = walk.type_of(expression);
    if !found.is(&Type::Bool) {
        let message = format!("a condition is true or false; this is {}", found.words());
        walk.defect(
            expression,
            "not-boolean",
            message,
            "compare it with something",
        );
    }
    if walk.nodes > MAX_NODES {
        let message = format!("the condition has more than {MAX_NODES} parts");
        walk.defect(
            expression,
            "condition-too-large",
            message,
            "write several rules",
        );
    }
    let untested = walk
        .read
        .iter()
        .find(|(path, _)| !walk.tested.contains(path));
    if let Some((path, at)) = untested {
        let remark = Remark {
            at: *at,
            code: "absent-argument",
            message: format!("a call without `{path}` makes this condition an error"),
            help: format!("write `has({path}) && ..`, or say with `on-error` which way it goes"),
        };
        walk.checked.warnings.push(remark);
    }
    let prefixes = std::mem::take(&mut walk.prefixes);
    walk.checked.warnings.extend(prefixes.warning());
    walk.checked.required = domains::required(expression, |part| walk.at(part));
    walk.checked
}

struct ConditionWalk<'s> {
    source: &'s SourceInfo,
    locals: Vec<(String, Type)>,
    in_macro: bool,
    nodes: usize,
    /// The paths below `arguments` that are read, and those that are tested with `has` or `in`.
    read: BTreeSet<(String, usize)>,
    tested: BTreeSet<String>,
    prefixes: Prefixes,
    checked: CheckedCondition,
}

impl ConditionWalk<'_> {
    fn at(&self, expression: &IdedExpr) -> usize {
        let start = self
            .source
            .offset_for(expression.id)
            .map_or(0, |(start, _)| start as usize);
        // The position of a selection is its dot.
        match &expression.expr {
            Expr::Select(_) => start + 1,
            _ => start,
        }
    }

    fn defect(
        &mut self,
        expression: &IdedExpr,
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let at = self.at(expression);
        self.checked.defects.push(Remark {
            at,
            code,
            message: message.into(),
            help: help.into(),
        });
    }

    /// Returns the type of an expression; after a defect, any.
    fn type_of(&mut self, expression: &IdedExpr) -> Type {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Type::Any;
        }
        match &expression.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::String(_) => Type::Text,
                LiteralValue::Null => Type::Null,
                LiteralValue::Bytes(_) | LiteralValue::UInt(_) => {
                    self.unsupported(expression, "bytes and unsigned numbers");
                    Type::Any
                }
            },
            Expr::Ident(name) => self.ident(expression, name),
            Expr::Select(select) => {
                let operand = self.type_of(&select.operand);
                self.note_path(expression);
                self.member(expression, &operand, &select.field)
            }
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => {
                let mut items = Type::Any;
                for (number, element) in list.elements.iter().enumerate() {
                    let found = self.type_of(element);
                    items = match (number, items == found) {
                        (0, _) | (_, true) => found,
                        _ => Type::Any,
                    };
                }
                Type::List(Box::new(items))
            }
            Expr::Map(_) | Expr::Struct(_) | Expr::Comprehension(_) | Expr::Unspecified => {
                self.unsupported(expression, "maps and messages");
                Type::Any
            }
        }
    }

    fn unsupported(&mut self, expression: &IdedExpr, what: &str) {
        self.defect(
            expression,
            "unsupported",
            format!("conditions have no {what}"),
            "",
        );
    }

    fn ident(&mut self, expression: &IdedExpr, name: &str) -> Type {
        if let Some((_, found)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return found.clone();
        }
        if let Some(found) = variable(name) {
            let at = self.at(expression);
            if let Some(known) = VARIABLES.iter().find(|known| **known == name)
                && !self.checked.variables.iter().any(|(read, _)| read == known)
            {
                self.checked.variables.push((known, at));
            }
            return found;
        }
        let help = match nearest(name, VARIABLES) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", VARIABLES.join(", ")),
        };
        self.defect(
            expression,
            "unknown-variable",
            format!("no variable is named `{name}`"),
            help,
        );
        Type::Any
    }

    fn member(&mut self, expression: &IdedExpr, operand: &Type, field: &str) -> Type {
        match operand {
            Type::Any => Type::Any,
            Type::Map(values) => (**values).clone(),
            Type::Record(record) => {
                if let Some((_, member)) = record.members.iter().find(|(name, _)| *name == field) {
                    return match member {
                        MemberType::Bool => Type::Bool,
                        MemberType::Int => Type::Int,
                        MemberType::Text => Type::Text,
                    };
                }
                let names = record.members.iter().map(|(name, _)| *name);
                let help = match nearest(field, names.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known: {}", names.collect::<Vec<_>>().join(", ")),
                };
                self.defect(
                    expression,
                    "unknown-member",
                    format!("{} has no member `{field}`", operand.words()),
                    help,
                );
                Type::Any
            }
            other => {
                self.defect(
                    expression,
                    "wrong-type",
                    format!("{} has no members", other.words()),
                    "",
                );
                Type::Any
            }
        }
    }

    /// Records a path below `arguments`, unless the first name is a local.
    fn note_path(&mut self, expression: &IdedExpr) {
        if let Some(path) = self.argument_path(expression) {
            let at = self.at(expression);
            self.read.insert((path, at));
        }
    }

    fn argument_path(&self, expression: &IdedExpr) -> Option<String> {
        match &expression.expr {
            Expr::Ident(name) => {
                let is_local = self.locals.iter().any(|(local, _)| local == name);
                (name == "arguments" && !is_local).then(|| name.clone())
            }
            Expr::Select(select) => {
                let before = self.argument_path(&select.operand)?;
                Some(format!("{before}.{}", select.field))
            }
            _ => None,
        }
    }

    fn expect(&mut self, expression: &IdedExpr, expected: &Type) {
        let found = self.type_of(expression);
        if !found.is(expected) {
            let message = format!(
                "{} is needed here; this is {}",
                expected.words(),
                found.words()
            );
            self.defect(expression, "wrong-type", message, "");
        }
    }

    /// Returns the name of a compared text that comes from a call: an argument, or an element of one.
    fn compared_path(&self, expression: &IdedExpr) -> Option<String> {
        match &expression.expr {
            Expr::Ident(name) => {
                let is_local = self.locals.iter().any(|(local, _)| local == name);
                is_local.then(|| name.clone())
            }
            _ => self.argument_path(expression),
        }
    }

    /// Notes a text that is compared with a pattern.
    fn note_prefix(&mut self, expression: &IdedExpr, text: &IdedExpr, pattern: &IdedExpr) {
        let (Some(path), Some(pattern)) = (self.compared_path(text), text_of(pattern)) else {
            return;
        };
        let at = self.at(expression);
        let compiled = self.checked.patterns.last();
        if let Some((_, compiled)) = compiled.filter(|(known, _)| known == pattern) {
            self.prefixes.matches(path, pattern, compiled, at);
        }
    }

    /// Returns the type of a call. Operators are calls, too, with names that no function has.
    fn call(&mut self, expression: &IdedExpr, call: &CallExpr) -> Type {
        for never in domains::never_holds(call) {
            self.defect(never.literal, "never-matches", never.message, never.help);
        }
        if call.target.is_some() {
            return self.function(expression, call);
        }
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, sides) => self.logical(sides),
            (operators::LOGICAL_NOT, [one]) => self.logical(std::slice::from_ref(one)),
            (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => {
                self.equality(expression, left, right)
            }
            (
                operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                [left, right],
            ) => self.ordering(expression, left, right),
            (operators::ADD, [left, right]) => self.addition(expression, left, right),
            (
                operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO,
                [left, right],
            ) => {
                let (a, b) = (self.number(left), self.number(right));
                if a == Type::Any { b } else { a }
            }
            (operators::NEGATE, [one]) => self.number(one),
            (operators::CONDITIONAL, [condition, yes, no]) => {
                self.expect(condition, &Type::Bool);
                let (a, b) = (self.type_of(yes), self.type_of(no));
                if a == b { a } else { Type::Any }
            }
            (operators::IN, [item, container]) => self.membership(item, container),
            (operators::INDEX, [operand, index]) => self.element(operand, index),
            _ => self.function(expression, call),
        }
    }

    fn logical(&mut self, sides: &[IdedExpr]) -> Type {
        for side in sides {
            self.expect(side, &Type::Bool);
        }
        Type::Bool
    }

    fn equality(&mut self, expression: &IdedExpr, left: &IdedExpr, right: &IdedExpr) -> Type {
        let (a, b) = (self.type_of(left), self.type_of(right));
        if !a.may_equal(&b) {
            let message = format!("{} is never equal to {}", a.words(), b.words());
            self.defect(expression, "wrong-type", message, "");
        }
        Type::Bool
    }

    fn ordering(&mut self, expression: &IdedExpr, left: &IdedExpr, right: &IdedExpr) -> Type {
        let (a, b) = (self.type_of(left), self.type_of(right));
        let has_order = |found: &Type| {
            matches!(
                found,
                Type::Int | Type::Double | Type::Text | Type::Bool | Type::Any
            )
        };
        if !a.may_equal(&b) || !has_order(&a) || !has_order(&b) {
            let message = format!("{} and {} have no order", a.words(), b.words());
            self.defect(expression, "wrong-type", message, "");
        }
        Type::Bool
    }

    fn addition(&mut self, expression: &IdedExpr, left: &IdedExpr, right: &IdedExpr) -> Type {
        let (a, b) = (self.type_of(left), self.type_of(right));
        let can_add = |found: &Type| {
            matches!(
                found,
                Type::Int | Type::Double | Type::Text | Type::List(_) | Type::Any
            )
        };
        if !a.may_equal(&b) || !can_add(&a) || !can_add(&b) {
            let message = format!("{} and {} cannot be added", a.words(), b.words());
            self.defect(expression, "wrong-type", message, "");
        }
        if a == Type::Any { b } else { a }
    }

    /// Returns the type of an operand that must be a number.
    fn number(&mut self, operand: &IdedExpr) -> Type {
        let found = self.type_of(operand);
        if !matches!(found, Type::Int | Type::Double | Type::Any) {
            let message = format!("a number is needed here; this is {}", found.words());
            self.defect(operand, "wrong-type", message, "");
        }
        found
    }

    /// Checks `item in container`, which also tests that a member of the arguments is there.
    fn membership(&mut self, item: &IdedExpr, container: &IdedExpr) -> Type {
        if let (Expr::Literal(LiteralValue::String(name)), Some(path)) =
            (&item.expr, self.argument_path(container))
        {
            self.tested.insert(format!("{path}.{}", name.inner()));
        }
        let item_type = self.type_of(item);
        let found = match self.type_of(container) {
            Type::List(items) => *items,
            Type::Map(_) => Type::Text,
            Type::Any => Type::Any,
            other => {
                let message = format!("a list or a map is needed here; this is {}", other.words());
                self.defect(container, "wrong-type", message, "");
                Type::Any
            }
        };
        if !item_type.may_equal(&found) {
            let message = format!(
                "{} is never in a list of {}",
                item_type.words(),
                found.words()
            );
            self.defect(item, "wrong-type", message, "");
        }
        Type::Bool
    }

    /// Returns the type of `operand[index]`.
    fn element(&mut self, operand: &IdedExpr, index: &IdedExpr) -> Type {
        match self.type_of(operand) {
            Type::List(items) => {
                self.expect(index, &Type::Int);
                *items
            }
            Type::Map(values) => {
                self.expect(index, &Type::Text);
                *values
            }
            Type::Any => {
                self.type_of(index);
                Type::Any
            }
            other => {
                let message = format!("{} has no elements", other.words());
                self.defect(operand, "wrong-type", message, "");
                Type::Any
            }
        }
    }

    /// Returns the type of a call of a function or macro by its name.
    fn function(&mut self, expression: &IdedExpr, call: &CallExpr) -> Type {
        let arguments = call.args.as_slice();
        match (call.func_name.as_str(), call.target.as_deref(), arguments) {
            ("has", None, [one]) => self.presence_test(one),
            ("all" | "exists" | "exists_one", Some(range), [name, condition]) => {
                self.each(expression, range, name, condition)
            }
            ("size", Some(one), []) | ("size", None, [one]) => self.size(one),
            ("contains" | "startsWith" | "endsWith", Some(text), [part]) => {
                self.part_of_text(expression, &call.func_name, text, part)
            }
            ("matches", Some(text), [pattern]) | ("matches", None, [text, pattern]) => {
                self.expect(text, &Type::Text);
                self.nodes += 1;
                // The prefixes read the pattern that is compiled here.
                self.pattern(pattern);
                self.note_prefix(expression, text, pattern);
                Type::Bool
            }
            ("int", None, [one]) => self.converted(one, Type::Int),
            ("double", None, [one]) => self.converted(one, Type::Double),
            ("string", None, [one]) => self.converted(one, Type::Text),
            (name, _, _) if FUNCTIONS.contains(&name) => self.wrong_arguments(expression, call),
            _ => self.unknown_function(expression, call),
        }
    }

    /// Checks `has(one)`. A member that is tested is not read, so a call without it makes no error.
    fn presence_test(&mut self, one: &IdedExpr) -> Type {
        let Expr::Select(select) = &one.expr else {
            self.defect(
                one,
                "wrong-type",
                "`has` takes a member, such as `has(arguments.name)`",
                "",
            );
            return Type::Bool;
        };
        self.nodes += 1;
        if let Some(path) = self.argument_path(one) {
            self.tested.insert(path);
        }
        let operand = self.type_of(&select.operand);
        self.member(one, &operand, &select.field);
        Type::Bool
    }

    fn size(&mut self, one: &IdedExpr) -> Type {
        let found = self.type_of(one);
        if !matches!(found, Type::Text | Type::List(_) | Type::Map(_) | Type::Any) {
            self.defect(
                one,
                "wrong-type",
                format!("{} has no size", found.words()),
                "",
            );
        }
        Type::Int
    }

    fn part_of_text(
        &mut self,
        expression: &IdedExpr,
        function: &str,
        text: &IdedExpr,
        part: &IdedExpr,
    ) -> Type {
        self.expect(text, &Type::Text);
        self.expect(part, &Type::Text);
        if let (Some(path), Some(part)) = (self.compared_path(text), text_of(part)) {
            match function {
                "contains" => self.prefixes.contains(path, part),
                "startsWith" => self.prefixes.starts_with(path, part, self.at(expression)),
                _ => {}
            }
        }
        Type::Bool
    }

    fn converted(&mut self, one: &IdedExpr, to: Type) -> Type {
        self.type_of(one);
        to
    }

    fn unknown_function(&mut self, expression: &IdedExpr, call: &CallExpr) -> Type {
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            self.type_of(target);
        }
        // `map` and `filter` of CEL bind names in their arguments.
        if !matches!(name, "map" | "filter") {
            for argument in &call.args {
                self.type_of(argument);
            }
        }
        let help = match nearest(name, FUNCTIONS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", FUNCTIONS.join(", ")),
        };
        self.defect(
            expression,
            "unknown-function",
            format!("no function is named `{name}`"),
            help,
        );
        Type::Any
    }

    fn wrong_arguments(&mut self, expression: &IdedExpr, call: &CallExpr) -> Type {
        let help = match call.func_name.as_str() {
            "has" => "write `has(arguments.name)`",
            "all" | "exists" | "exists_one" => "write `list.exists(item, condition)`",
            "size" => "write `size(list)` or `list.size()`",
            "matches" => "write `text.matches(\"pattern\")`",
            "contains" | "startsWith" | "endsWith" => "write `text.startsWith(\"part\")`",
            _ => "it takes one value",
        };
        self.defect(
            expression,
            "wrong-arguments",
            format!("`{}` is called in another way", call.func_name),
            help,
        );
        Type::Any
    }

    fn each(
        &mut self,
        expression: &IdedExpr,
        range: &IdedExpr,
        name: &IdedExpr,
        condition: &IdedExpr,
    ) -> Type {
        if self.in_macro {
            let help = "write the inner condition as a rule of its own";
            self.defect(
                expression,
                "nested-loop",
                "`all`, `exists` and `exists_one` cannot be nested",
                help,
            );
            return Type::Bool;
        }
        let items = match self.type_of(range) {
            Type::List(items) => *items,
            Type::Map(_) => Type::Text,
            Type::Any => Type::Any,
            other => {
                let message = format!("a list or a map is needed here; this is {}", other.words());
                self.defect(
                    range,
                    "wrong-type",
                    message,
                    format!("lists have at most {MAX_ELEMENTS} elements"),
                );
                Type::Any
            }
        };
        let Expr::Ident(local) = &name.expr else {
            self.defect(
                name,
                "wrong-arguments",
                "the first part names the element, such as `item`",
                "",
            );
            return Type::Bool;
        };
        if VARIABLES.contains(&local.as_str()) {
            let message = format!("`{local}` is a variable already");
            self.defect(
                name,
                "wrong-arguments",
                message,
                "name the element otherwise",
            );
        }
        self.nodes += 1;
        self.in_macro = true;
        self.locals.push((local.clone(), items));
        self.expect(condition, &Type::Bool);
        self.locals.pop();
        self.in_macro = false;
        Type::Bool
    }

    fn pattern(&mut self, pattern: &IdedExpr) {
        let Expr::Literal(LiteralValue::String(text)) = &pattern.expr else {
            let message = "the pattern of `matches` is written in the rule";
            self.defect(
                pattern,
                "wrong-arguments",
                message,
                "a value of the call cannot be a pattern",
            );
            return;
        };
        let text = text.inner();
        if text.len() > MAX_PATTERN {
            let message = format!(
                "the pattern has {} bytes; at most {MAX_PATTERN} are allowed",
                text.len()
            );
            self.defect(pattern, "invalid-pattern", message, "");
            return;
        }
        match RegexBuilder::new(text).size_limit(1 << 18).build() {
            Ok(compiled) => self.checked.patterns.push((text.to_owned(), compiled)),
            Err(_) => self.defect(
                pattern,
                "invalid-pattern",
                "this is not a regular expression, or too large a one",
                "",
            ),
        }
    }
}

/// Returns the text of a literal.
fn text_of(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}
