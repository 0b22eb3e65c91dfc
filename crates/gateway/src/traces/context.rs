//! The identity of a span, and its `traceparent` (W3C Trace Context).

use data_encoding::HEXLOWER;
use mcp_elicit_relay::is_trace_parent;
use sha2::{Digest as _, Sha256};

/// The bit of a span whose trace is recorded.
const SAMPLED: u8 = 1;

/// The identity of a span that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanContext {
    trace: [u8; 16],
    span: [u8; 8],
}

impl SpanContext {
    /// Creates the first span of a new trace; `None` if the system has no random numbers.
    pub(super) fn root() -> Option<Self> {
        let (trace, span) = (random()?, random()?);
        Some(Self { trace, span })
    }

    /// Creates a span of the same trace.
    pub(super) fn child(self) -> Option<Self> {
        let span = random()?;
        Some(Self { span, ..self })
    }

    /// Returns the span of the question with this id, asked in this one: the same in every process.
    pub(super) fn question(self, id: &str) -> Self {
        let digest = Sha256::new()
            .chain_update("question span")
            .chain_update(id)
            .finalize();
        let mut span = [0; 8];
        span.copy_from_slice(&digest[..8]);
        Self { span, ..self }
    }

    /// Reads a `traceparent`, with `true` if its trace is recorded; `None` if it is not valid.
    pub(super) fn read(text: &str) -> Option<(Self, bool)> {
        if !is_trace_parent(text) || text.starts_with("ff") {
            return None;
        }
        let bytes = |text: &str| HEXLOWER.decode(text.as_bytes()).ok();
        let mut parts = text.split('-').skip(1);
        let trace: [u8; 16] = bytes(parts.next()?)?.try_into().ok()?;
        let span: [u8; 8] = bytes(parts.next()?)?.try_into().ok()?;
        let flags = *bytes(parts.next()?)?.first()?;
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some((Self { trace, span }, flags & SAMPLED != 0))
    }

    /// Returns the `traceparent` of requests that are made in this span.
    pub(super) fn to_trace_parent(self) -> String {
        let hex = |bytes: &[u8]| HEXLOWER.encode(bytes);
        format!("00-{}-{}-{SAMPLED:02x}", hex(&self.trace), hex(&self.span))
    }

    pub(super) const fn trace_id(self) -> [u8; 16] {
        self.trace
    }

    pub(super) const fn span_id(self) -> [u8; 8] {
        self.span
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a shell: ids of spans are chosen where the spans begin"
)]
fn random<const BYTES: usize>() -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_trace_parent_is_read_and_written() {
        let (context, sampled) = SpanContext::read(TEXT).unwrap();
        assert!(sampled);
        assert_eq!(context.to_trace_parent(), TEXT);
        let (same, sampled) = SpanContext::read(&TEXT.replace("-01", "-02")).unwrap();
        assert!(!sampled && same == context);
        for wrong in [
            "",
            &TEXT[1..],
            &TEXT.replace("00-0", "ff-0"),
            &TEXT.to_uppercase(),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert_eq!(SpanContext::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_span_of_a_question_follows_from_its_id() {
        let (context, _) = SpanContext::read(TEXT).unwrap();
        let question = context.question("q");
        assert_eq!(question, context.child().unwrap().question("q"));
        assert_ne!(question, context.question("r"));
        assert_eq!(question.trace_id(), context.trace_id());
    }
}
