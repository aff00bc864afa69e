//! Java's string hash: which partition of a coordinator's topic keeps an id, and the order in which
//! Kafka counts equal votes.

/// `String.hashCode()`: over UTF-16 units, wrapping.
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The partition of a coordinator's topic that keeps the group or transactional id; `partitions` ≥ 1.
/// The absolute value of the hash is taken, 0 where there is none (C054).
pub fn partition_for(id: &str, partitions: i32) -> i32 {
    java_hash(id).checked_abs().unwrap_or(0) % partitions.max(1)
}

/// Where a small `HashMap` of Java (16 buckets) keeps `key`: its iteration order.
pub fn java_bucket(key: &str) -> i32 {
    let hash = java_hash(key);
    (hash ^ (hash as u32 >> 16) as i32) & 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_java_s_and_its_absolute_value_counts() {
        #[rustfmt::skip]
        let table = [
            ("",                   0,              0),
            ("g",                  103,            3),
            ("my-group",           -1_906_497_762, 12),
            ("polygenelubricants", i32::MIN,       0),
            ("é😀",                1_996_812,      12),
        ];
        for (text, hash, partition) in table {
            assert_eq!(java_hash(text), hash, "{text}");
            assert_eq!(partition_for(text, 50), partition, "{text}");
        }
    }

    #[test]
    fn keys_stand_in_the_order_in_which_java_walks_them() {
        let mut names = ["roundrobin", "range", "cooperative-sticky", "sticky"];
        names.sort_by_key(|name| java_bucket(name));
        assert_eq!(names, ["sticky", "range", "roundrobin", "cooperative-sticky"]);
    }
}
