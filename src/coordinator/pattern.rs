//! Regular expressions that clients send: RE2's syntax, as the `regex` crate speaks it.

use regex::{Regex, RegexBuilder};

/// Groups within groups that an expression may have, as RE2's own implementations limit them.
const DEPTH_MAX: u32 = 1000;

/// An expression stands for the names that it matches as a whole.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub(super) fn compile(regex: &str) -> Result<Regex, String> {
    let build = |text: &str, depth| RegexBuilder::new(text).nest_limit(depth).build();
    let whole = format!(r"\A(?:{regex})\z");
    let compiled = build(regex, DEPTH_MAX).and_then(|_| build(&whole, DEPTH_MAX + 2));
    compiled.map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default();
        why.strip_prefix("error: ").unwrap_or(why).to_owned()
    })
}
