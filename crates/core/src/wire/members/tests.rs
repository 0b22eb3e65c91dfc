use super::*;

fn raw_json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn members_keep_order_and_bytes() {
    let object =
        raw_json(r#"{ "b" : 1.0 , "\u0061": 12345678901234567890,"c":[1e-7 , {"x":null}] }"#);
    let members = Members::read(&object, "test").unwrap();
    let seen: Vec<_> = members
        .iter()
        .map(|(key, value)| (key, value.get()))
        .collect();
    assert_eq!(
        seen,
        [
            ("b", "1.0"),
            ("a", "12345678901234567890"),
            ("c", r#"[1e-7 , {"x":null}]"#)
        ]
    );
    assert_eq!(member(&object, "a").unwrap().get(), "12345678901234567890");
    assert!(member(&object, "z").is_none());
    assert!(member(&raw_json("[1]"), "a").is_none());
}

#[test]
fn several_members_are_those_that_are_found_one_by_one() {
    for text in [
        r#"{ "b" : 1.0 , "\u0061": {"b":2},"c":[1e-7 , {"x":null}], "b":"x\"}" }"#,
        r#" {"a":{"a":1},"b":null}"#,
        "{}",
        "[1]",
        "7",
    ] {
        let object = raw_json(text);
        let names = ["a", "b", "z"];
        let one_by_one = names.map(|name| member(&object, name).map(RawValue::get));
        let found = several(&object, names).map(|value| value.map(RawValue::get));
        assert_eq!(found, one_by_one, "{text}");
    }
}

/// A half of a surrogate pair is valid in JSON, and no text: readers replace it, drop it or refuse the object.
#[test]
fn nothing_is_found_where_a_name_cannot_be_read() {
    let object = raw_json(r#"{"a":1,"\ud800":2,"b":3}"#);
    assert!(member(&object, "a").is_none());
    assert!(several(&object, ["a", "b"]).iter().all(Option::is_none));
    assert!(only_member(&object, "a", "test").unwrap().is_none());
    // As the value of another member it hides nothing.
    let object = raw_json(r#"{"a":1,"b":"\ud800"}"#);
    assert_eq!(member(&object, "a").unwrap().get(), "1");
    assert!(text(member(&object, "b").unwrap()).is_none());
}

#[test]
fn a_duplicate_member_is_a_defect_however_spelled() {
    let duplicate = raw_json(r#"{"method":1,"m\u0065thod":2}"#);
    assert_eq!(
        Members::read(&duplicate, "test").unwrap_err(),
        WireError::Duplicate { location: "test" }
    );
    let many: Vec<String> = (0..40).map(|n| format!("\"k{n}\":0,")).collect();
    let many = many.concat();
    let many = raw_json(&format!("{{{many}\"k7\":1}}"));
    assert_eq!(
        Members::read(&many, "test").unwrap_err(),
        WireError::Duplicate { location: "test" }
    );
}

#[test]
fn of_a_duplicate_member_the_last_counts_or_none() {
    let duplicate = raw_json(r#"{"a":1,"b":2,"\u0061":3}"#);
    assert_eq!(member(&duplicate, "a").unwrap().get(), "3");
    assert_eq!(
        only_member(&duplicate, "a", "test").unwrap_err(),
        WireError::Duplicate { location: "test" }
    );
    assert_eq!(
        only_member(&duplicate, "b", "test").unwrap().unwrap().get(),
        "2"
    );
    assert!(only_member(&duplicate, "z", "test").unwrap().is_none());
}

#[test]
fn one_member_changes_and_the_rest_stays() {
    let object = raw_json("{ \"a\" : 1 ,\n \"b\": [2 ,3], \"c\":4 }");
    let members = Members::read(&object, "test").unwrap();
    let nine = raw_json("9");
    assert_eq!(
        members.with("b", Some(&nine)).get(),
        "{ \"a\" : 1 ,\n \"b\": 9, \"c\":4 }"
    );
    assert_eq!(
        members.with("d", Some(&nine)).get(),
        "{ \"a\" : 1 ,\n \"b\": [2 ,3], \"c\":4,\"d\":9 }"
    );
    assert_eq!(
        members.with("a", None).get(),
        "{\n \"b\": [2 ,3], \"c\":4 }"
    );
    assert_eq!(members.with("b", None).get(), "{ \"a\" : 1, \"c\":4 }");
    assert_eq!(
        members.with("c", None).get(),
        "{ \"a\" : 1 ,\n \"b\": [2 ,3] }"
    );
    assert_eq!(members.with("z", None).get(), object.get());
}

#[test]
fn empty_and_single_objects_change_too() {
    let one = raw_json("1");
    for (before, name, value, after) in [
        ("{}", "a", Some(&one), "{\"a\":1}"),
        ("{ }", "a", Some(&one), "{\"a\":1 }"),
        ("{ \"a\":2 }", "a", None, "{ }"),
    ] {
        let object = raw_json(before);
        let members = Members::read(&object, "test").unwrap();
        assert_eq!(members.with(name, value.map(|v| &**v)).get(), after);
    }
}

#[test]
fn text_is_decoded_and_null_is_absent() {
    let object = raw_json(r#"{"a":"x\ny","b":null,"c":3,"d":"\ud800"}"#);
    let members = Members::read(&object, "test").unwrap();
    assert_eq!(members.text("a").unwrap().as_deref(), Some("x\ny"));
    assert_eq!(members.text("b").unwrap(), None);
    assert!(members.need_text("b").is_err());
    assert_eq!(
        members.text("c"),
        Err(WireError::Type {
            member: "c",
            expected: "a string"
        })
    );
    // Half a surrogate pair is JSON, but no text.
    assert!(members.text("d").is_err());
    assert_eq!(
        members.need("e").unwrap_err(),
        WireError::Missing { member: "e" }
    );
}
