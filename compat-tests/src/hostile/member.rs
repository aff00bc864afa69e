//! A member of a classic group, request by request: nothing is tried again, nothing is hidden.

use super::PATIENCE;
use crate::wire::codec::to_hex;
use crate::wire::connection::{Answer, Connection};
use crate::wire::schema::Schemas;
use serde_json::{Value, json};

/// A group and where it is.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub schemas: &'a Schemas,
    pub address: &'a str,
    pub group: &'a str,
}

impl Place<'_> {
    pub fn connect(&self) -> Result<Connection, String> {
        Connection::open(self.address, PATIENCE)
    }

    /// Has the group's coordinator made and waits until it answers.
    pub fn coordinate(&self) -> Result<(), String> {
        let mut connection = self.connect()?;
        let key = json!({ "key": self.group, "keyType": 0 });
        let member = json!({ "groupId": self.group, "memberId": "nobody", "generationId": 0 });
        for _ in 0..200 {
            connection.ask(self.schemas, "FindCoordinator", 3, &key)?;
            let answer = body(connection.ask(self.schemas, "Heartbeat", 4, &member)?)?;
            if code(&answer) == UNKNOWN_MEMBER_ID {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Err(format!("the coordinator of {} never answered", self.group))
    }
}

pub struct Member<'a> {
    place: Place<'a>,
    pub connection: Connection,
    pub id: String,
    pub generation: i64,
    /// Milliseconds a rebalance waits for the others.
    pub rebalance_timeout: i64,
    pub metadata: Vec<u8>,
    /// Before 4 a member is in the group before it has an id.
    pub join_version: i16,
}

/// The shortest that a broker allows by itself.
pub const SESSION_MS: i64 = 6000;

impl<'a> Member<'a> {
    pub fn new(place: Place<'a>) -> Result<Member<'a>, String> {
        Ok(Member {
            connection: place.connect()?,
            place,
            id: String::new(),
            generation: -1,
            rebalance_timeout: SESSION_MS,
            metadata: b"metadata".to_vec(),
            join_version: 9,
        })
    }

    /// One that has its id and is alone in its group's newest generation, or the first to join it anew.
    pub fn joined(place: Place<'a>) -> Result<Member<'a>, String> {
        let mut member = Member::named(place)?;
        member.join()?;
        Ok(member)
    }

    /// One that has been given its id and has not joined yet.
    pub fn named(place: Place<'a>) -> Result<Member<'a>, String> {
        let mut member = Member::new(place)?;
        member.send_join()?;
        let answer = member.receive()?;
        expect("the first join", code(&answer), MEMBER_ID_REQUIRED)?;
        member.id = answer["memberId"].as_str().ok_or("no member id")?.to_owned();
        Ok(member)
    }

    pub fn send_join(&mut self) -> Result<(), String> {
        let protocol = json!({ "name": "range", "metadata": to_hex(&self.metadata) });
        let body = json!({
            "groupId": self.place.group, "sessionTimeoutMs": SESSION_MS,
            "rebalanceTimeoutMs": self.rebalance_timeout, "memberId": self.id,
            "protocolType": "consumer", "protocols": [protocol],
        });
        self.connection.send(self.place.schemas, "JoinGroup", self.join_version, &body)
    }

    /// Reads the answer of a join that must have succeeded: its members, as the leader is told them.
    pub fn take_join(&mut self) -> Result<Vec<Value>, String> {
        let answer = self.receive()?;
        expect("a join", code(&answer), NONE)?;
        self.generation = answer["generationId"].as_i64().ok_or("no generation")?;
        Ok(answer["members"].as_array().cloned().unwrap_or_default())
    }

    pub fn join(&mut self) -> Result<Vec<Value>, String> {
        self.send_join()?;
        self.take_join()
    }

    /// Sends a sync that gives each of `assignments` to a member.
    pub fn send_sync(&mut self, assignments: &[(&str, Vec<u8>)]) -> Result<(), String> {
        let given = assignments.iter();
        let given = given.map(|(id, to)| json!({ "memberId": id, "assignment": to_hex(to) }));
        let body = json!({ "assignments": given.collect::<Vec<_>>() });
        let body = self.spoken(body, "generationId");
        self.connection.send(self.place.schemas, "SyncGroup", 4, &body)
    }

    pub fn sync(&mut self, assignments: &[(&str, Vec<u8>)]) -> Result<i64, String> {
        self.send_sync(assignments)?;
        Ok(code(&self.receive()?))
    }

    pub fn heartbeat(&mut self) -> Result<i64, String> {
        let body = self.spoken(json!({}), "generationId");
        Ok(code(&self.ask("Heartbeat", 4, &body)?))
    }

    /// The code of a commit of one offset, with what the member notes beside it.
    pub fn commit(&mut self, note: &str) -> Result<i64, String> {
        let partition =
            json!({ "partitionIndex": 0, "committedOffset": 0, "committedMetadata": note });
        let body = json!({ "topics": [{ "name": super::TOPIC, "partitions": [partition] }] });
        let body = self.spoken(body, "generationIdOrMemberEpoch");
        let answer = self.ask("OffsetCommit", 8, &body)?;
        Ok(code(&answer["topics"][0]["partitions"][0]))
    }

    /// What `ask` gets from a member that says it is `id` of `generation`; it is itself again afterwards.
    pub fn claiming(
        &mut self,
        id: &str,
        generation: i64,
        ask: impl FnOnce(&mut Self) -> Result<i64, String>,
    ) -> Result<i64, String> {
        let own = (std::mem::replace(&mut self.id, id.to_owned()), self.generation);
        self.generation = generation;
        let code = ask(self);
        (self.id, self.generation) = own;
        code
    }

    pub fn receive(&mut self) -> Result<Value, String> {
        body(self.connection.receive(self.place.schemas)?)
    }

    fn ask(&mut self, api: &str, version: i16, request: &Value) -> Result<Value, String> {
        body(self.connection.ask(self.place.schemas, api, version, request)?)
    }

    fn spoken(&self, mut body: Value, generation: &str) -> Value {
        body["groupId"] = json!(self.place.group);
        body["memberId"] = json!(self.id);
        body[generation] = json!(self.generation);
        body
    }
}

/// The body of an answer that must be one.
pub fn body(answer: Answer) -> Result<Value, String> {
    match answer {
        Answer::Body(body) => Ok(body),
        other => Err(format!("no answer but {other:?}")),
    }
}

pub fn code(answer: &Value) -> i64 {
    answer["errorCode"].as_i64().unwrap_or(i64::MIN)
}

pub fn expect(what: &str, got: i64, wanted: i64) -> Result<(), String> {
    if got == wanted { Ok(()) } else { Err(format!("{what}: error {got}, not {wanted}")) }
}

pub const UNKNOWN_SERVER_ERROR: i64 = -1;
pub const NONE: i64 = 0;
pub const OFFSET_METADATA_TOO_LARGE: i64 = 12;
pub const ILLEGAL_GENERATION: i64 = 22;
pub const UNKNOWN_MEMBER_ID: i64 = 25;
pub const REBALANCE_IN_PROGRESS: i64 = 27;
pub const MEMBER_ID_REQUIRED: i64 = 79;
