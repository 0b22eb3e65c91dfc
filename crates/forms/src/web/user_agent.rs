//! The names of browsers and systems, for people who look for their own session in a list.

use std::borrow::Cow;

/// The marks of browsers that also claim to be Chrome or Safari.
const OTHERS: [&str; 5] = [
    "OPR/",
    "SamsungBrowser/",
    "Vivaldi/",
    "YaBrowser/",
    "DuckDuckGo/",
];
/// The browsers by their marks. The first match counts: Edge also claims to be Chrome, and Chrome Safari.
const BROWSERS: [(&str, &str); 8] = [
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
];
/// The systems by their marks. Android also claims to be Linux, and iOS Mac OS X.
const SYSTEMS: [(&str, &str); 6] = [
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
];

/// Returns the browser and the system of a `User-Agent`, such as `Chrome on Linux`; the header itself for any other
/// browser.
pub(super) fn browser_name(header: &str) -> Cow<'_, str> {
    let first = |marks: &[(&str, &'static str)]| {
        let mut marks = marks.iter();
        marks.find_map(|(mark, name)| header.contains(mark).then_some(*name))
    };
    let is_other = OTHERS.iter().any(|mark| header.contains(mark));
    match (first(&BROWSERS), first(&SYSTEMS)) {
        (Some(browser), Some(system)) if !is_other => format!("{browser} on {system}").into(),
        _ => header.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_browsers_have_names_and_others_stay_as_they_call_themselves() {
        let mozilla = "Mozilla/5.0 (";
        let webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";
        for (rest, name) in [
            (format!("X11; Linux x86_64) {webkit} Chrome/131.0.0.0 Safari/537.36"), "Chrome on Linux"),
            (format!("Windows NT 10.0; Win64; x64) {webkit} Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0"), "Edge on Windows"),
            ("Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0".to_owned(), "Firefox on Windows"),
            ("Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15".to_owned(), "Safari on macOS"),
            ("iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1".to_owned(), "Safari on iOS"),
            (format!("Linux; Android 10; K) {webkit} Chrome/131.0.0.0 Mobile Safari/537.36"), "Chrome on Android"),
        ] {
            assert_eq!(browser_name(&format!("{mozilla}{rest}")), name);
        }
        let opera = format!(
            "{mozilla}X11; Linux x86_64) {webkit} Chrome/130.0.0.0 Safari/537.36 OPR/115.0.0.0"
        );
        for other in [opera.as_str(), "curl/8.5.0", "unknown", ""] {
            assert_eq!(browser_name(other), other);
        }
    }
}
