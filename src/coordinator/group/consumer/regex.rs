//! Subscriptions by regular expression: checked when they come, resolved aside, since a cluster may
//! have many topics.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::state::ResolvedRegex;
use super::types::ConsumerFault;
use crate::common::TopicName;
use crate::coordinator::pattern::compile;
use crate::metadata::Image;

/// # Errors
/// [`ConsumerFault::InvalidRegex`].
pub fn check(regex: &str) -> Result<(), ConsumerFault> {
    let invalid = |why| ConsumerFault::InvalidRegex { regex: regex.to_owned(), why };
    compile(regex).map(drop).map_err(invalid)
}

/// The topics that each of `regexes` stands for in `image`; none for one that is invalid.
pub fn resolve(
    regexes: &[Arc<str>],
    image: &Image,
    now_ms: i64,
) -> Vec<(Arc<str>, Arc<ResolvedRegex>)> {
    let of = |regex: &Arc<str>| {
        let topics: BTreeSet<TopicName> = match compile(regex) {
            Ok(compiled) => {
                let names = image.topics().names();
                names.filter(|name| compiled.is_match(name)).cloned().collect()
            }
            Err(_) => BTreeSet::new(),
        };
        let resolved = ResolvedRegex { topics, version: image.end_offset, timestamp_ms: now_ms };
        (regex.clone(), Arc::new(resolved))
    };
    regexes.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_must_match_the_whole_name() {
        #[rustfmt::skip]
        let table = [
            ("a|b",      "a",   true),
            ("a|b",      "ab",  false),
            ("foo.*",    "foo", true),
            ("foo.*",    "xfoo", false),
            ("^foo-\\d$", "foo-1", true),
            ("(?i)FOO",  "foo", true),
        ];
        for (regex, name, matches) in table {
            assert_eq!(compile(regex).unwrap().is_match(name), matches, "{regex} {name}");
        }
        assert_eq!(
            check("[").unwrap_err().to_string(),
            "SubscribedTopicRegex `[` is not a valid regular expression: unclosed character class."
        );
        assert!(check("a)|(b").is_err(), "brackets of its own");
    }

    #[test]
    fn groups_may_stand_in_each_other_a_thousand_deep() {
        let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert!(compile(&nested(1000)).unwrap().is_match("a"));
        let told = check(&nested(1001)).unwrap_err().to_string();
        assert!(
            told.ends_with("exceed the maximum number of nested parentheses/brackets (1000)."),
            "{}",
            &told[2000..]
        );
    }
}
