//! `==`, `!=` and `in` between values of one type. CEL itself calls values of different types unequal, so that a rule
//! about `"production"` would not match `["production"]`; here that is an error, which restricts. So is a map in place
//! of a list: CEL would search its names, and not its values.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, DYN_TYPE, Kind};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError};

/// The functions that replace the operators; no condition can name them.
const SAME: &str = "@same";
const IS_NULL: &str = "@is_null";
const IN_WRITTEN: &str = "@in_written";
const IN_LIST: &str = "@in_list";
const IN_MAP: &str = "@in_map";
const LIST: &str = "@list";

/// The variables that are maps, whose names are searched.
const MAPS: [&str; 2] = ["arguments", "fields"];

/// Adds the functions to an environment.
pub(super) fn add_to(env: &mut Env) {
    let two = || vec![DYN_TYPE, DYN_TYPE];
    let added = [
        env.add_overload(SAME, SAME, two(), |args| truth(same_of(&args))),
        env.add_overload(IS_NULL, IS_NULL, vec![DYN_TYPE], |args| {
            truth(is_null_of(&args))
        }),
        env.add_overload(IN_WRITTEN, IN_WRITTEN, two(), |args| {
            truth(in_written_of(&args))
        }),
        env.add_overload(IN_LIST, IN_LIST, two(), |args| truth(in_list_of(&args))),
        env.add_overload(IN_MAP, IN_MAP, two(), |args| truth(in_map_of(&args))),
        env.add_overload(LIST, LIST, vec![DYN_TYPE], list_of),
    ];
    debug_assert!(
        added.iter().all(Result::is_ok),
        "no other function has such a name"
    );
}

/// Replaces `==`, `!=` and `in`, and wraps the iterated value of macros, in the whole of a condition.
pub(super) fn put_into(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Call(call) => {
            call.target.as_deref_mut().into_iter().for_each(put_into);
            call.args.iter_mut().for_each(put_into);
            let is_unequal = call.func_name == operators::NOT_EQUALS;
            replace(call);
            if is_unequal {
                let equal = IdedExpr {
                    id: expression.id,
                    expr: Expr::Call(std::mem::take(call)),
                };
                *call = CallExpr {
                    func_name: operators::LOGICAL_NOT.to_owned(),
                    target: None,
                    args: vec![equal],
                };
            }
        }
        Expr::Comprehension(each) => {
            for part in [
                &mut each.iter_range,
                &mut each.accu_init,
                &mut each.loop_cond,
                &mut each.loop_step,
                &mut each.result,
            ] {
                put_into(part);
            }
            if !is_map_variable(&each.iter_range) {
                let range = IdedExpr {
                    id: each.iter_range.id,
                    expr: std::mem::take(&mut each.iter_range.expr),
                };
                each.iter_range.expr = Expr::Call(CallExpr {
                    func_name: LIST.to_owned(),
                    target: None,
                    args: vec![range],
                });
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(put_into),
        Expr::Select(select) => put_into(&mut select.operand),
        // The check rejects maps and messages.
        Expr::Map(_) | Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn replace(call: &mut CallExpr) {
    if call.target.is_some() {
        return;
    }
    let [left, right] = call.args.as_slice() else {
        return;
    };
    let function = match call.func_name.as_str() {
        operators::EQUALS | operators::NOT_EQUALS => match (is_null(left), is_null(right)) {
            (false, true) => {
                call.args.pop();
                IS_NULL
            }
            (true, _) => {
                call.args.remove(0);
                IS_NULL
            }
            (false, false) => SAME,
        },
        operators::IN => match &right.expr {
            Expr::List(list)
                if list
                    .elements
                    .iter()
                    .all(|element| matches!(element.expr, Expr::Literal(_))) =>
            {
                IN_WRITTEN
            }
            _ if is_map_variable(right) => IN_MAP,
            _ => IN_LIST,
        },
        _ => return,
    };
    function.clone_into(&mut call.func_name);
}

fn is_map_variable(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if MAPS.contains(&name.as_str()))
}

fn is_null(expression: &IdedExpr) -> bool {
    matches!(expression.expr, Expr::Literal(LiteralValue::Null))
}

fn truth<'b, 'v>(held: Result<bool, ExecutionError>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    held.map(|held| CowVal::owned(CelBool::from(held)))
}

/// Returns the error for two values without a common type. It contains neither, since errors are shown.
fn other_types() -> ExecutionError {
    ExecutionError::UnexpectedType {
        got: "a value of another type".to_owned(),
        want: "two values of one type".to_owned(),
    }
}

/// The distinguished types: all numbers are one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Null,
    Bool,
    Number,
    Text,
    List,
    Map,
}

impl Sort {
    /// Returns the type of a value; `None` for an unreadable one.
    fn of(value: &dyn Val) -> Option<Self> {
        Some(match value.get_type().kind() {
            Kind::NullType => Self::Null,
            Kind::Boolean => Self::Bool,
            Kind::Int | Kind::UInt | Kind::Double => Self::Number,
            Kind::String => Self::Text,
            Kind::List => Self::List,
            Kind::Map => Self::Map,
            _ => return None,
        })
    }
}

fn same_of(args: &[CowVal<'_, '_>]) -> Result<bool, ExecutionError> {
    match args {
        [left, right] => same(left.as_ref(), right.as_ref()),
        _ => Err(other_types()),
    }
}

fn is_null_of(args: &[CowVal<'_, '_>]) -> Result<bool, ExecutionError> {
    match args {
        [one] => Sort::of(one.as_ref())
            .map(|sort| sort == Sort::Null)
            .ok_or_else(other_types),
        _ => Err(other_types()),
    }
}

/// Returns `true` if two values of one type are equal. In lists and maps each element is compared, so that a different
/// type is an error anywhere.
fn same(left: &dyn Val, right: &dyn Val) -> Result<bool, ExecutionError> {
    let sort = Sort::of(left).ok_or_else(other_types)?;
    if Sort::of(right) != Some(sort) {
        return Err(other_types());
    }
    match sort {
        Sort::Null | Sort::Bool | Sort::Text => Ok(left.equals(right)),
        Sort::Number => Ok(same_number(left, right)),
        Sort::List => match (left.downcast_ref(), right.downcast_ref()) {
            (Some(left), Some(right)) => same_list(left, right),
            _ => Err(other_types()),
        },
        Sort::Map => match (left.downcast_ref(), right.downcast_ref()) {
            (Some(left), Some(right)) => same_map(left, right),
            _ => Err(other_types()),
        },
    }
}

fn same_list(left: &CelList<'_>, right: &CelList<'_>) -> Result<bool, ExecutionError> {
    let (left, right) = (left.inner(), right.inner());
    if left.len() != right.len() {
        return Ok(false);
    }
    let mut is_same = true;
    for (left, right) in left.iter().zip(right) {
        is_same &= same(left.as_ref(), right.as_ref())?;
    }
    Ok(is_same)
}

fn same_map(left: &CelMap<'_>, right: &CelMap<'_>) -> Result<bool, ExecutionError> {
    let (left, right) = (left.inner(), right.inner());
    let mut is_same = left.len() == right.len();
    for (name, left) in left {
        match right.get(name) {
            Some(right) => is_same &= same(left.as_ref(), right.as_ref())?,
            None => is_same = false,
        }
    }
    Ok(is_same)
}

/// Compares numbers without rounding either.
fn same_number(left: &dyn Val, right: &dyn Val) -> bool {
    let whole = |value: &dyn Val| value.downcast_ref::<CelInt>().map(|whole| *whole.inner());
    let double = |value: &dyn Val| {
        value
            .downcast_ref::<CelDouble>()
            .map(|double| *double.inner())
    };
    match (whole(left), double(right), double(left), whole(right)) {
        (Some(whole), Some(double), ..) | (_, _, Some(double), Some(whole)) => {
            // Rust writes the exact digits of an integral double.
            double.fract() == 0.0 && format!("{:.0}", double + 0.0) == whole.to_string()
        }
        _ => left.equals(right),
    }
}

/// Returns `true` if a value is in a list of literals. The literals declare the expected types, so the value is
/// compared with those of its own type; `null` among them means that it may be absent.
fn in_written_of(args: &[CowVal<'_, '_>]) -> Result<bool, ExecutionError> {
    let [item, list] = args else {
        return Err(other_types());
    };
    let (item, sort) = (item.as_ref(), Sort::of(item.as_ref()));
    let list: Option<&CelList<'_>> = list.downcast_ref();
    let (Some(list), Some(sort)) = (list, sort) else {
        return Err(other_types());
    };
    let mut is_expected = list
        .inner()
        .iter()
        .all(|element| is_null_value(element.as_ref()));
    for element in list.inner() {
        if Sort::of(element.as_ref()) == Some(sort) {
            is_expected = true;
            if same(item, element.as_ref())? {
                return Ok(true);
            }
        }
    }
    if is_expected {
        Ok(false)
    } else {
        Err(other_types())
    }
}

fn is_null_value(value: &dyn Val) -> bool {
    Sort::of(value) == Some(Sort::Null)
}

/// Returns `true` if a value is in a list. Otherwise, each element must have its type.
fn in_list_of(args: &[CowVal<'_, '_>]) -> Result<bool, ExecutionError> {
    let [item, list] = args else {
        return Err(other_types());
    };
    let (item, list) = (item.as_ref(), list.downcast_ref::<CelList<'_>>());
    let (Some(list), Some(_)) = (list, Sort::of(item)) else {
        return Err(other_types());
    };
    let mut result = Ok(false);
    for element in list.inner() {
        match same(item, element.as_ref()) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => result = Err(error),
        }
    }
    result
}

/// Returns `true` if a text is the name of a member of a map.
fn in_map_of(args: &[CowVal<'_, '_>]) -> Result<bool, ExecutionError> {
    let [item, map] = args else {
        return Err(other_types());
    };
    let (item, map) = (item.as_ref(), map.as_ref());
    match map.as_container() {
        Some(names) if Sort::of(map) == Some(Sort::Map) && Sort::of(item) == Some(Sort::Text) => {
            names.contains(item)
        }
        _ => Err(other_types()),
    }
}

/// Returns its argument, which must be a list.
fn list_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut args = args.into_iter();
    let one = args
        .next()
        .filter(|one| Sort::of(one.as_ref()) == Some(Sort::List));
    one.ok_or_else(other_types)
}
