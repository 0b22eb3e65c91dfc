//! The state of an answer: the value and the errors of each field, and the current stage.

use mcp_elicit_core::answer::{Draft, DraftValue, Outcome};
use mcp_elicit_core::secrecy::{self, Confidence};

use super::{
    AnswerEvent, AnswerStage, EventEffect, FieldView, FrontendError, QuestionView, Submission,
    Warning, validation, warnings,
};

/// The value of one field, and its errors.
#[derive(Clone, Debug)]
struct FieldState {
    typed: DraftValue,
    errors: Vec<String>,
    /// `true` if the person changed it.
    touched: bool,
    /// `true` if the person tried to continue with it.
    tried: bool,
}

/// The offer to decline every later question of the server too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FromNowOn {
    NotOffered,
    Offered,
    Chosen,
}

/// The state of an answer to one question, before it is submitted.
#[derive(Debug)]
pub struct AnswerState {
    question: QuestionView,
    fields: Vec<FieldView>,
    entries: Vec<FieldState>,
    warnings: Vec<Warning>,
    allows_credentials: bool,
    from_now_on: FromNowOn,
    stage: AnswerStage,
    /// `true` if the review has been reached, so that correcting a field leads back to it.
    reviewed: bool,
}

/// Marks the fields that certainly ask for a credential.
fn hide_secrets(question: &QuestionView, fields: &mut [FieldView]) {
    let Some(form) = question.as_form() else {
        return;
    };
    let suspicions = secrecy::inspect(form, question.raw_message());
    for field in fields {
        field.is_secret = suspicions.iter().any(|suspicion| {
            suspicion.level() == Confidence::Certain && suspicion.field() == Some(&*field.name)
        });
    }
}

impl AnswerState {
    /// Creates a state with every field at its default.
    pub fn new(question: QuestionView) -> Self {
        let mut fields: Vec<_> = question
            .as_form()
            .map(FieldView::of_form)
            .unwrap_or_default();
        hide_secrets(&question, &mut fields);
        let entries = fields
            .iter()
            .map(|field| FieldState {
                typed: field.default.clone(),
                errors: Vec::new(),
                touched: false,
                tried: false,
            })
            .collect();
        let warnings = warnings(&question);
        let mut state = Self {
            question,
            fields,
            entries,
            warnings,
            allows_credentials: false,
            from_now_on: FromNowOn::NotOffered,
            stage: AnswerStage::Confirm,
            reviewed: false,
        };
        for index in 0..state.fields.len() {
            state.check(index);
        }
        state.stage = if state.must_allow_credentials() {
            AnswerStage::Warnings
        } else {
            state.first_stage()
        };
        state
    }

    /// Offers to decline every later question too; for callers that can enforce it.
    #[must_use]
    pub fn offering_from_now_on(mut self) -> Self {
        self.from_now_on = FromNowOn::Offered;
        self
    }

    /// Returns `true` if declining every later question is offered.
    pub fn offers_from_now_on(&self) -> bool {
        self.from_now_on != FromNowOn::NotOffered
    }

    /// Returns the outcome together with the person's further choices.
    pub fn submission(&self, outcome: Outcome) -> Submission {
        Submission {
            outcome,
            allows_credentials: self.allows_credentials,
            from_now_on: self.from_now_on == FromNowOn::Chosen,
        }
    }

    /// Returns the question.
    pub fn question(&self) -> &QuestionView {
        &self.question
    }

    /// Returns the form's fields, in order; none in url mode.
    pub fn fields(&self) -> &[FieldView] {
        &self.fields
    }

    /// Returns the warnings to show.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns the current stage.
    pub fn stage(&self) -> AnswerStage {
        self.stage
    }

    /// Returns the value of the field with this index; nothing for an invalid index.
    pub fn typed(&self, index: usize) -> &DraftValue {
        self.entries
            .get(index)
            .map_or(&DraftValue::Nothing, |entry| &entry.typed)
    }

    /// Returns the errors of the field, even if they should not be shown yet.
    pub fn problems(&self, index: usize) -> &[String] {
        self.entries.get(index).map_or(&[], |entry| &entry.errors)
    }

    /// Returns the errors to show for the field: none until it was changed or tried.
    pub fn errors(&self, index: usize) -> &[String] {
        match self.entries.get(index) {
            Some(entry) if entry.touched || entry.tried => &entry.errors,
            _ => &[],
        }
    }

    /// Returns `true` if the person tried to continue with the field as it is, so that its errors are shown.
    pub fn was_tried(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.tried)
    }

    /// Returns `true` if the person changed anything, so that leaving would lose work.
    pub fn is_touched(&self) -> bool {
        self.entries.iter().any(|entry| entry.touched)
    }

    /// Returns `true` if the person must still allow credentials before anything can be sent.
    pub fn must_allow_credentials(&self) -> bool {
        !self.allows_credentials
            && self
                .warnings
                .iter()
                .any(|warning| warning.asks_for_credential)
    }

    /// Returns the value of the field with this index, in the person's words; `None` if it is empty.
    pub fn shown(&self, index: usize) -> Option<String> {
        self.fields.get(index)?.shown(self.typed(index))
    }

    /// Returns the values to send for the field with this index: options by their labels, everything else exactly as
    /// the server gets it. `None` if nothing is sent.
    pub fn sent(&self, index: usize) -> Option<Vec<String>> {
        let field = self.fields.get(index)?;
        let value = validation::value(self.question.as_form()?, field, self.typed(index))?;
        Some(field.sent(&value))
    }

    /// Returns the interpretation of the field with this index, if it differs from the typed text: `1e3` is sent as
    /// `1000`.
    pub fn understood(&self, index: usize) -> Option<String> {
        let field = self.fields.get(index)?;
        validation::understood(self.question.as_form()?, field, self.typed(index))
    }

    /// Returns the interpretation of an ambiguous number, for the field with this index.
    pub fn caveat(&self, index: usize) -> Option<String> {
        let form = self.question.as_form()?;
        form.fields().get(index)?.caveat(self.typed(index))
    }

    /// Returns the typed values, field by field, to be stored or read by the form.
    pub fn draft(&self) -> Draft {
        let mut draft = Draft::new();
        for (field, entry) in self.fields.iter().zip(&self.entries) {
            draft.set(&field.name, entry.typed.clone());
        }
        draft
    }

    /// Applies an event and returns its effect.
    pub fn handle(&mut self, event: AnswerEvent) -> EventEffect {
        match event {
            AnswerEvent::Edit(index, typed) => self.edit(index, typed),
            AnswerEvent::Next => self.next(),
            AnswerEvent::Back => self.back(),
            AnswerEvent::Goto(index)
                if index < self.fields.len() && !self.must_allow_credentials() =>
            {
                self.leave_field();
                self.stage = AnswerStage::Field(index);
            }
            AnswerEvent::Review => self.review(),
            AnswerEvent::AllowCredentials => {
                self.allows_credentials = true;
                if self.stage == AnswerStage::Warnings {
                    self.stage = self.first_stage();
                }
            }
            AnswerEvent::Accept => return self.accept(),
            AnswerEvent::Decline => return EventEffect::Done(Outcome::Decline),
            AnswerEvent::DeclineFromNowOn => {
                if self.offers_from_now_on() {
                    self.from_now_on = FromNowOn::Chosen;
                }
                return EventEffect::Done(Outcome::Decline);
            }
            AnswerEvent::Cancel => return EventEffect::Done(Outcome::Cancel),
            AnswerEvent::Time(now) if self.question.is_over(now) => {
                return EventEffect::Over(FrontendError::Expired);
            }
            AnswerEvent::Goto(_) | AnswerEvent::Time(_) => {}
            AnswerEvent::Withdrawn(why) => {
                return EventEffect::Over(FrontendError::Withdrawn { why });
            }
            AnswerEvent::Interrupt => return EventEffect::Over(FrontendError::Interrupted),
            AnswerEvent::End => {
                return EventEffect::Over(FrontendError::EndOfInput {
                    field: self.field_name(),
                });
            }
        }
        EventEffect::Show
    }

    /// Returns the name of the current field.
    pub fn field_name(&self) -> Option<String> {
        match self.stage {
            AnswerStage::Field(index) => self.fields.get(index).map(|field| field.name.clone()),
            _ => None,
        }
    }

    fn first_stage(&self) -> AnswerStage {
        if self.fields.is_empty() {
            AnswerStage::Confirm
        } else {
            AnswerStage::Field(0)
        }
    }

    fn edit(&mut self, index: usize, typed: DraftValue) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        if entry.typed != typed {
            entry.typed = typed;
            entry.touched = true;
            self.check(index);
        }
    }

    fn check(&mut self, index: usize) {
        let (Some(form), Some(field), Some(entry)) = (
            self.question.as_form(),
            self.fields.get(index),
            self.entries.get_mut(index),
        ) else {
            return;
        };
        entry.errors = validation::problems(form, field, &entry.typed);
    }

    /// Marks a field that was changed and left as tried.
    fn leave_field(&mut self) {
        if let AnswerStage::Field(index) = self.stage
            && let Some(entry) = self.entries.get_mut(index)
        {
            entry.tried |= entry.touched;
        }
    }

    fn next(&mut self) {
        match self.stage {
            AnswerStage::Field(index) => {
                if let Some(entry) = self.entries.get_mut(index) {
                    entry.tried = true;
                    if entry.errors.is_empty() {
                        self.go_on_from(index);
                    }
                }
            }
            AnswerStage::Warnings | AnswerStage::Review | AnswerStage::Confirm => {}
        }
    }

    fn go_on_from(&mut self, index: usize) {
        if self.reviewed || index + 1 == self.fields.len() {
            self.review();
        } else {
            self.stage = AnswerStage::Field(index + 1);
        }
    }

    fn back(&mut self) {
        self.stage = match self.stage {
            AnswerStage::Field(index) => AnswerStage::Field(index.saturating_sub(1)),
            AnswerStage::Review => AnswerStage::Field(self.fields.len().saturating_sub(1)),
            stage @ (AnswerStage::Warnings | AnswerStage::Confirm) => stage,
        };
    }

    /// Goes to the first invalid field, or to the review if there is none.
    fn review(&mut self) {
        if self.fields.is_empty() || self.must_allow_credentials() {
            return;
        }
        let wrong = self
            .entries
            .iter()
            .position(|entry| !entry.errors.is_empty());
        if let Some(index) = wrong {
            for entry in &mut self.entries {
                entry.tried = true;
            }
            self.stage = AnswerStage::Field(index);
        } else {
            self.reviewed = true;
            self.stage = AnswerStage::Review;
        }
    }

    fn accept(&mut self) -> EventEffect {
        if self.must_allow_credentials() {
            self.stage = AnswerStage::Warnings;
            return EventEffect::Show;
        }
        let Some(form) = self.question.as_form() else {
            return EventEffect::Done(Outcome::Visit);
        };
        match validation::answers(form, &self.fields, &self.draft()) {
            Ok(answers) => EventEffect::Done(Outcome::Accept(answers)),
            Err(wrong) => {
                self.refuse(&wrong);
                EventEffect::Show
            }
        }
    }

    /// Adds every error to its field and goes to the first.
    fn refuse(&mut self, wrong: &[(usize, String)]) {
        for (index, entry) in self.entries.iter_mut().enumerate() {
            entry.tried = true;
            entry.errors = wrong
                .iter()
                .filter(|(at, _)| *at == index)
                .map(|(_, message)| message.clone())
                .collect();
        }
        if let Some(index) = self
            .entries
            .iter()
            .position(|entry| !entry.errors.is_empty())
        {
            self.stage = AnswerStage::Field(index);
        }
    }
}

#[cfg(test)]
mod tests;
