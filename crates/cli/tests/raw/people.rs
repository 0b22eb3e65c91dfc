//! People in the configuration of a gateway.

/// Two people whom a proxy names, one of them an administrator, and their group: part of a configuration.
pub(crate) const ADA_AND_BOB: &str = r#"
[people.ada]
subject = "ada"
[people.bob]
subject = "bob"
[groups]
ops = ["ada", "bob"]
[roles]
admin = ["person:bob"]
"#;
