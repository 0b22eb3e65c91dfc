//! The table of actions by role, for pages, API and channels.

use std::fmt;

/// The relations of a person to one question. A person may have several, and each adds its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "roles add up, so each is a fact of its own"
)]
pub struct Standing {
    /// The question belongs to a call of this person.
    pub is_caller: bool,
    /// The person may answer some questions.
    pub is_answerer: bool,
    /// This question is addressed to the person, to one of their groups or claims, or was delegated to them.
    pub is_addressed: bool,
    /// The person is an auditor.
    pub is_auditor: bool,
    /// The person is an administrator, as the owner of the state folder always is.
    pub is_admin: bool,
}

impl Standing {
    /// No relation.
    pub const NONE: Self = Self {
        is_caller: false,
        is_answerer: false,
        is_addressed: false,
        is_auditor: false,
        is_admin: false,
    };
}

/// An action that a person may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessAction {
    /// See the history of the questions of own calls, and the people who are asked.
    SeeOwnHistory,
    /// See a question, its arguments and its comments.
    SeeQuestion,
    /// See answers that were entered, before the question is complete.
    SeeEntered,
    /// Fill, confirm, decline, claim or delegate.
    Act,
    /// Comment.
    Comment,
    /// List the subjects of all questions, without their contents.
    ListAll,
    /// Read the audit.
    Audit,
    /// List the sessions and keys of others.
    ListSessions,
    /// End the sessions and revoke the keys of others.
    EndSessions,
    /// End an approval that applies for a while, before its time.
    EndGrant,
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No role at all.
    None,
    /// The caller's person.
    Caller,
    /// An answerer to whom the question is addressed.
    Addressed,
    /// An answerer of other questions.
    OtherAnswerer,
    /// An auditor.
    Auditor,
    /// An administrator.
    Admin,
}

/// The columns, in the order of the table.
pub const ROLES: [Role; 6] = [
    Role::None,
    Role::Caller,
    Role::Addressed,
    Role::OtherAnswerer,
    Role::Auditor,
    Role::Admin,
];

/// A cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessCell {
    /// No.
    No,
    /// Yes.
    Yes,
    /// For the questions of own calls; without the edited arguments of approvals.
    Own,
    /// Only a question that is also addressed to this person.
    IfAddressed,
}

use AccessCell::{IfAddressed, No, Own, Yes};

/// The table: for each action one cell for each of [`ROLES`].
pub const TABLE: [(AccessAction, [AccessCell; 6]); 10] = [
    //                       none caller       addressed other auditor admin
    (AccessAction::SeeOwnHistory, [No, Yes, No, No, No, No]),
    (AccessAction::SeeQuestion, [No, Own, Yes, No, No, No]),
    (AccessAction::SeeEntered, [No, No, Yes, No, No, No]),
    (AccessAction::Act, [No, IfAddressed, Yes, No, No, No]),
    (AccessAction::Comment, [No, Own, Yes, No, No, No]),
    (AccessAction::ListAll, [No, No, No, No, Yes, Yes]),
    (AccessAction::Audit, [No, No, No, No, Yes, Yes]),
    (AccessAction::ListSessions, [No, No, No, No, Yes, Yes]),
    (AccessAction::EndSessions, [No, No, No, No, No, Yes]),
    (AccessAction::EndGrant, [No, No, Yes, No, No, Yes]),
];

/// The error of a person who may not do this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no role of this person allows it")]
pub struct NotPermitted;

/// The permission to act, with the role that grants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The role.
    pub role: Role,
    /// `true` if the edited arguments of approvals stay hidden.
    pub hides_edited: bool,
}

/// Returns the permission of a person of this standing, or an error. Rules may forbid more, such as `not-caller` and
/// `reauth`.
pub fn may(standing: Standing, action: AccessAction) -> Result<Permission, NotPermitted> {
    let roles = [
        (Role::None, true),
        (Role::Caller, standing.is_caller),
        (Role::Addressed, standing.is_addressed),
        (
            Role::OtherAnswerer,
            standing.is_answerer && !standing.is_addressed,
        ),
        (Role::Auditor, standing.is_auditor),
        (Role::Admin, standing.is_admin),
    ];
    let cells = TABLE
        .iter()
        .find(|(known, _)| *known == action)
        .map(|(_, cells)| cells);
    let cells = cells.ok_or(NotPermitted)?;
    let given = roles
        .into_iter()
        .zip(cells)
        .filter(|((_, has), _)| *has)
        .filter_map(|((role, _), cell)| {
            let is_allowed = match cell {
                No => false,
                Yes | Own => true,
                IfAddressed => standing.is_addressed,
            };
            is_allowed.then_some(Permission {
                role,
                hides_edited: *cell == Own,
            })
        });
    // Roles add up: the one that hides least counts.
    given
        .min_by_key(|permission| permission.hides_edited)
        .ok_or(NotPermitted)
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Caller => "caller",
            Self::Addressed | Self::OtherAnswerer => "answerer",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(role: Role) -> Standing {
        let mut standing = Standing::NONE;
        match role {
            Role::None => {}
            Role::Caller => standing.is_caller = true,
            Role::Addressed => (standing.is_answerer, standing.is_addressed) = (true, true),
            Role::OtherAnswerer => standing.is_answerer = true,
            Role::Auditor => standing.is_auditor = true,
            Role::Admin => standing.is_admin = true,
        }
        standing
    }

    /// The table again, as in the documentation, so that an error in either is detected.
    const EXPECTED: &str = "
        SeeOwnHistory   - y - - - -
        SeeQuestion    - o y - - -
        SeeEntered     - - y - - -
        Act            - a y - - -
        Comment        - o y - - -
        ListAll        - - - - y y
        Audit          - - - - y y
        ListSessions   - - - - y y
        EndSessions    - - - - - y
        EndGrant       - - y - - y";

    #[test]
    fn every_cell_holds() {
        let lines = EXPECTED.lines().skip(1);
        let mut cells = 0;
        for ((action, _), line) in TABLE.iter().zip(lines) {
            let mut words = line.split_whitespace();
            assert_eq!(words.next(), Some(format!("{action:?}").as_str()));
            for (role, expected) in ROLES.into_iter().zip(words) {
                let alone = may(standing(role), *action);
                let addressed = may(
                    Standing {
                        is_addressed: true,
                        ..standing(role)
                    },
                    *action,
                );
                match expected {
                    "-" => assert_eq!(alone, Err(NotPermitted), "{action:?} {role}"),
                    "y" => assert_eq!(
                        alone,
                        Ok(Permission {
                            role,
                            hides_edited: false
                        }),
                        "{action:?} {role}"
                    ),
                    "o" => assert_eq!(
                        alone,
                        Ok(Permission {
                            role,
                            hides_edited: true
                        }),
                        "{action:?} {role}"
                    ),
                    "a" => assert!(alone.is_err() && addressed.is_ok(), "{action:?} {role}"),
                    other => panic!("{other}"),
                }
                cells += 1;
            }
        }
        assert_eq!(cells, 60);
    }

    #[test]
    fn an_administrator_never_answers_by_that_role() {
        for action in [
            AccessAction::Act,
            AccessAction::SeeQuestion,
            AccessAction::SeeEntered,
            AccessAction::Comment,
        ] {
            let admin = Standing {
                is_admin: true,
                is_auditor: true,
                is_answerer: true,
                ..Standing::NONE
            };
            assert_eq!(may(admin, action), Err(NotPermitted), "{action:?}");
        }
    }

    #[test]
    fn roles_add_up() {
        let both = Standing {
            is_caller: true,
            is_addressed: true,
            is_answerer: true,
            ..Standing::NONE
        };
        assert_eq!(
            may(both, AccessAction::SeeQuestion),
            Ok(Permission {
                role: Role::Addressed,
                hides_edited: false
            })
        );
        assert!(may(both, AccessAction::SeeOwnHistory).is_ok());
    }
}
