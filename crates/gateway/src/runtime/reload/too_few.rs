//! Open questions that too few people can answer after a reload. They stay open, without invented votes, until the file
//! names more people, an escalation, or their timeout.

use mcp_elicit_policy::quorum::Membership;
use mcp_elicit_policy::{People, Rules};
use mcp_elicit_record::Record;
use mcp_elicit_record::store::{Filter, Page};
use mcp_elicit_record::team::Team;

/// The most open questions that are checked.
const MOST: usize = 10_000;

/// The people in the file, from the view of one question's caller.
struct InFile<'a> {
    people: &'a People,
    caller: Option<&'a str>,
}

impl Membership for InFile<'_> {
    fn is_member(&self, group: &str, person: &str) -> bool {
        self.people.is_member(group, person, &[])
    }

    fn is_caller(&self, person: &str) -> bool {
        self.caller == Some(person)
    }

    fn members(&self, group: &str) -> Option<Vec<String>> {
        self.people.all_members(group)
    }
}

/// Returns the number of people who can answer, if it is smaller than the number who must confirm.
fn too_few(team: &Team, people: &People) -> Option<usize> {
    let people = InFile {
        people,
        caller: team.caller.person.as_deref(),
    };
    let quorum = team.quorum();
    let need = usize::from(quorum.need().get());
    quorum.people_left(&people).filter(|left| *left < need)
}

/// Warns of each question that too few people can answer.
pub(super) async fn warn(record: &Record, rules: &Rules) {
    let open = record.list(Filter::Open, Page::first(MOST)).await;
    let open = open.unwrap_or_else(|fault| {
        tracing::error!(%fault, "the open questions cannot be read after the rules were");
        Vec::new()
    });
    for row in &open {
        let team = row.team.as_deref();
        let short = team.and_then(|team| Some((team, too_few(team, rules.people())?)));
        if let Some((team, left)) = short {
            tracing::warn!(
                question = %row.id,
                rule = %team.rule,
                left,
                need = team.quorum().need(),
                "fewer people can answer a question than must agree: it waits until the file names more, for an escalation or its time-out"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_elicit_policy::Rules;
    use mcp_elicit_policy::rules::Decision;
    use mcp_elicit_record::team::{Team, TeamCaller};

    use super::too_few;

    const PEOPLE: &str = r#"
[people.ada]
subject = "ada"
[people.bob]
subject = "bob"
[people.cy]
subject = "cy"
[groups]
"#;
    const RULE: &str = "[[rules]]\nname = \"two\"\nask = { group = \"ops\", need = 2 }\n";

    #[test]
    fn a_question_that_too_few_can_answer_after_a_change_of_the_file_is_found() {
        let file = |ops: &str| Rules::parse(&format!("{PEOPLE}ops = {ops}\n{RULE}")).unwrap();
        let before = file(r#"["ada", "bob", "cy"]"#);
        let Decision::Ask(plan) = before.rules()[0].decision() else {
            panic!("the rule asks")
        };
        let caller = TeamCaller::default();
        let asked = before.people().named(&plan.ask.to);
        let team = Team::new(
            "two",
            "r",
            caller,
            plan,
            asked,
            Duration::from_secs(60 * 60),
        );
        assert_eq!(too_few(&team, before.people()), None);
        let two = file(r#"["ada", "bob"]"#);
        assert_eq!(too_few(&team, two.people()), None);
        // A file with one member and this rule is invalid; without the rule it is valid.
        let one = Rules::parse(&format!("{PEOPLE}ops = [\"bob\"]\n")).unwrap();
        assert_eq!(too_few(&team, one.people()), Some(1));
        // The file does not list the members by a claim.
        let claim = file(r#"{ claim = "ops" }"#);
        assert_eq!(too_few(&team, claim.people()), None);
    }
}
