//! Members of the directory, and the member whose shard has a key: rendezvous hashing (Thaler and Ravishankar, 1998).
//!
//! The shard of a key is at the member with the highest score. A member that joins takes over only the keys where its
//! score is the highest, and the keys of one that leaves spread over all others. In a large cluster only some members have
//! shards, so that each worker has a connection to all of them.

use super::message::{Member, MemberId, NodeDigest};
use pleach_regions::TaskKey;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Maximum number of members with a shard: those with the smallest ids, which are random. A worker accepts and opens 128
/// connections of each direction.
const MAX_SHARDS: usize = 64;

/// The members known to a worker.
#[derive(Debug, Default)]
pub(super) struct Members {
    all: BTreeMap<MemberId, (SocketAddr, NodeDigest)>,
}

/// Scores a member for a key. Task keys are uniform, so a few of their bits suffice (finalizer of SplitMix64).
fn score(member: MemberId, key: &TaskKey) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&key.0[..8]);
    let mut z = member.0.wrapping_add(u64::from_le_bytes(first)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Members {
    /// Adds a member. Returns whether it is new.
    pub(super) fn add(&mut self, member: Member) -> bool {
        self.all.insert(member.id, (member.address, member.node)).is_none()
    }

    /// Removes a member. Returns whether it was one.
    pub(super) fn remove(&mut self, member: MemberId) -> bool {
        self.all.remove(&member).is_some()
    }

    pub(super) fn address(&self, member: MemberId) -> Option<SocketAddr> {
        Some(self.all.get(&member)?.0)
    }

    pub(super) fn get(&self, id: MemberId) -> Option<Member> {
        let (address, node) = *self.all.get(&id)?;
        Some(Member { id, address, node })
    }

    /// Returns the node of a member.
    pub(super) fn node(&self, member: MemberId) -> Option<NodeDigest> {
        Some(self.all.get(&member)?.1)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = MemberId> {
        self.all.keys().copied()
    }

    /// Returns the member at an address.
    pub(super) fn at(&self, address: SocketAddr) -> Option<MemberId> {
        self.all.iter().find(|(_, known)| known.0 == address).map(|(id, _)| *id)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the member with the shard of a key: `me` if there is no other.
    pub(super) fn owner(&self, key: &TaskKey, me: MemberId) -> MemberId {
        self.shards().max_by_key(|member| (score(*member, key), *member)).unwrap_or(me)
    }

    /// Returns the members with a shard.
    pub(super) fn shards(&self) -> impl Iterator<Item = MemberId> {
        self.ids().take(MAX_SHARDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(ids: impl IntoIterator<Item = u64>) -> Members {
        let mut members = Members::default();
        for id in ids {
            let (address, node) = (SocketAddr::from(([127, 0, 0, 1], 9)), NodeDigest::of("w"));
            members.add(Member { id: MemberId(id), address, node });
        }
        members
    }

    fn key(number: u32) -> TaskKey {
        TaskKey(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    #[test]
    fn shards_are_even_and_a_join_moves_only_keys_to_the_newcomer() {
        let (before, after) = (members(0..8), members(0..9));
        let mut counts = BTreeMap::new();
        let mut moved = 0;
        for number in 0..9000 {
            let (old, new) =
                (before.owner(&key(number), MemberId(0)), after.owner(&key(number), MemberId(0)));
            *counts.entry(new).or_insert(0) += 1;
            if old != new {
                assert_eq!(new, MemberId(8));
                moved += 1;
            }
        }
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert!((850..1150).contains(&moved), "{moved}");
    }

    #[test]
    fn large_cluster_has_64_shards() {
        let members = members(0..1000);
        let owners: std::collections::BTreeSet<MemberId> =
            (0..9000).map(|number| members.owner(&key(number), MemberId(7))).collect();
        assert!(owners.into_iter().eq((0..64).map(MemberId)));
    }
}
