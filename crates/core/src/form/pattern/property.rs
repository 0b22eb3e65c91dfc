//! The Unicode properties that ECMA-262 names (tables 65 to 67): the regex crate accepts more names, in more spellings.

/// The general categories, short and long.
const CATEGORIES: &str = "C Cc Cf Cn Co L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs \
    Other Control cntrl Format Unassigned Private_Use Letter Cased_Letter Lowercase_Letter Modifier_Letter Other_Letter \
    Titlecase_Letter Uppercase_Letter Mark Combining_Mark Spacing_Mark Enclosing_Mark Nonspacing_Mark Number Decimal_Number digit \
    Letter_Number Other_Number Punctuation punct Connector_Punctuation Dash_Punctuation Close_Punctuation Final_Punctuation \
    Initial_Punctuation Other_Punctuation Open_Punctuation Symbol Currency_Symbol Modifier_Symbol Math_Symbol Other_Symbol \
    Separator Line_Separator Paragraph_Separator Space_Separator";

/// The binary properties, long and short.
const BINARY: &str = "ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Any Assigned Bidi_Control Bidi_C Bidi_Mirrored Bidi_M \
    Case_Ignorable CI Cased Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM Changes_When_Lowercased CWL \
    Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash \
    Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp Emoji_Modifier EMod \
    Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic ExtPict Extender Ext Grapheme_Base Gr_Base \
    Grapheme_Extend Gr_Ext Hex_Digit Hex IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS \
    Ideographic Ideo Join_Control Join_C Logical_Order_Exception LOE Lowercase Lower Math Noncharacter_Code_Point NChar \
    Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical Regional_Indicator RI Sentence_Terminal STerm \
    Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo Uppercase Upper Variation_Selector VS White_Space space \
    XID_Continue XIDC XID_Start XIDS";

/// Returns the property in the regex crate's syntax, valid inside and outside a class. `None` if ECMA-262 does not have
/// the name.
pub(super) fn spelling(name: &str, negated: bool) -> Option<String> {
    let among = |list: &str, name: &str| list.split_ascii_whitespace().any(|known| known == name);
    let known = match name.split_once('=') {
        Some(("General_Category" | "gc", "Cs" | "Surrogate")) => {
            return Some(surrogates(negated).to_owned());
        }
        Some(("General_Category" | "gc", category)) => among(CATEGORIES, category),
        Some(("Script" | "sc" | "Script_Extensions" | "scx", script)) => is_name(script),
        Some(_) => false,
        None if matches!(name, "Cs" | "Surrogate") => return Some(surrogates(negated).to_owned()),
        None => among(CATEGORIES, name) || among(BINARY, name),
    };
    let letter = if negated { 'P' } else { 'p' };
    known.then(|| format!(r"\{letter}{{{name}}}"))
}

/// Returns an expression for surrogates, which a Rust text never contains.
const fn surrogates(negated: bool) -> &'static str {
    if negated { r"[\s\S]" } else { r"[^\s\S]" }
}

/// Returns `true` if a script is spelled as in Unicode: `Old_Italic`, never `old italic`. The regex crate knows the
/// existing ones.
fn is_name(script: &str) -> bool {
    script.split('_').all(|word| {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.bytes().all(|b| b.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::{BINARY, CATEGORIES, spelling};

    #[test]
    fn the_engine_knows_every_name() {
        for name in CATEGORIES
            .split_ascii_whitespace()
            .chain(BINARY.split_ascii_whitespace())
        {
            let spelled = spelling(name, false).unwrap();
            assert!(regex::Regex::new(&spelled).is_ok(), "{name}");
        }
        for name in [
            "gc=Lu",
            "Script=Greek",
            "sc=Grek",
            "scx=Old_Italic",
            "Surrogate",
            "gc=Cs",
        ] {
            for negated in [false, true] {
                let spelled = spelling(name, negated).unwrap();
                assert!(regex::Regex::new(&spelled).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn loose_names_are_refused() {
        for name in [
            "l",
            "greek",
            "Greek",
            "letter",
            "Script=greek",
            "sc=OLD_ITALIC_",
            "Block=Latin",
            "=L",
        ] {
            assert_eq!(spelling(name, false), None, "{name}");
        }
    }
}
