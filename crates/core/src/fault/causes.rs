//! An error and its sources, for any error of `std`: their types for programs, their texts for people.

use std::error::Error;
use std::iter::successors;

/// Returns an iterator over an error and its sources, the deepest last.
///
/// ```
/// use std::io;
///
/// let error = io::Error::other(io::Error::from(io::ErrorKind::TimedOut));
/// let mut all = mcp_elicit_core::fault::chain(&error);
/// assert!(all.all(|error| error.is::<io::Error>()));
/// ```
pub fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

/// Returns the texts of an error and of its sources, the deepest last. Many errors repeat their source's text in their
/// own, so a text that is part of an earlier one is omitted.
pub fn causes(error: &dyn Error) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    for cause in error.source().into_iter().flat_map(chain) {
        let text = cause.to_string();
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
    }
    texts
}

/// Returns an error and its [`causes`] as one line.
pub fn with_causes(error: &dyn Error) -> String {
    causes(error).join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        below: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Option<Box<Layer>> {
        let (text, below) = texts.split_first()?;
        let below = layers(below);
        Some(Box::new(Layer { text, below }))
    }

    #[test]
    fn a_text_that_an_earlier_one_repeats_is_left_out() {
        let error = layers(&["no page", "connect: refused", "refused", "os error 111"]).unwrap();
        assert_eq!(
            with_causes(&*error),
            "no page: connect: refused: os error 111"
        );
        assert_eq!(chain(&*error).count(), 4);
        assert_eq!(causes(&*layers(&["alone"]).unwrap()), ["alone"]);
    }
}
