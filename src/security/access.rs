//! What a request touches, item by item, and what of it is allowed.

use super::session::Session;

/// Something that rights are given on. Source: Kafka's `ResourceType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource<'a> {
    Topic(&'a str),
    Group(&'a str),
    Cluster,
    TransactionalId(&'a str),
}

/// What is done to it. Source: Kafka's `AclOperation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    Create,
    Delete,
    Alter,
    Describe,
    ClusterAction,
    DescribeConfigs,
    AlterConfigs,
    IdempotentWrite,
}

/// What a request needs: an item per thing that it is answered for, in the request's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access<'a> {
    pub items: Vec<(Resource<'a>, Operation)>,
}

impl<'a> Access<'a> {
    /// Open to everyone: ApiVersions.
    pub fn none() -> Self {
        Self::default()
    }

    pub fn one(resource: Resource<'a>, operation: Operation) -> Self {
        Self { items: vec![(resource, operation)] }
    }

    pub fn each(resources: impl IntoIterator<Item = Resource<'a>>, operation: Operation) -> Self {
        Self { items: resources.into_iter().map(|resource| (resource, operation)).collect() }
    }
}

/// The verdict on an [`Access`], by the position of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    All,
    /// A bit per item, from the lowest of the first word on.
    Some(Vec<u64>),
}

impl Allowed {
    pub fn has(&self, item: usize) -> bool {
        match self {
            Self::All => true,
            Self::Some(words) => {
                words.get(item / 64).is_some_and(|word| word >> (item % 64) & 1 == 1)
            }
        }
    }

    pub fn has_all(&self, items: usize) -> bool {
        (0..items).all(|item| self.has(item))
    }
}

impl FromIterator<bool> for Allowed {
    fn from_iter<I: IntoIterator<Item = bool>>(items: I) -> Self {
        let mut words = Vec::new();
        for (item, is_allowed) in items.into_iter().enumerate() {
            if item % 64 == 0 {
                words.push(0);
            }
            words[item / 64] |= u64::from(is_allowed) << (item % 64);
        }
        Self::Some(words)
    }
}

/// Says what a session may do.
#[derive(Debug, Clone, Default)]
pub enum Authorizer {
    /// `authorizer.class.name` is not set: everyone may do everything.
    #[default]
    Absent,
}

impl Authorizer {
    /// - `access`: only called when there are rules to ask, so that a request costs nothing else.
    pub fn judge<'a>(&self, _: &Session, _access: impl FnOnce() -> Access<'a>) -> Allowed {
        match self {
            Self::Absent => Allowed::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_a_bit_per_item() {
        let allowed: Allowed = (0..130).map(|item| item % 3 == 0).collect();
        for item in 0..130 {
            assert_eq!(allowed.has(item), item % 3 == 0, "{item}");
        }
        assert!(!allowed.has(130) && !allowed.has_all(2) && allowed.has_all(1));
        assert!(Allowed::All.has_all(1_000));
    }

    #[test]
    fn without_an_authorizer_all_is_allowed_and_nothing_is_asked() {
        let session = Session::anonymous("PLAINTEXT");
        let verdict = Authorizer::Absent.judge(&session, || panic!("asked"));
        assert_eq!(verdict, Allowed::All);
    }
}
