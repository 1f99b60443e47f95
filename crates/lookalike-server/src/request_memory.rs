//! The memory that requests in progress may take, all together.
//!
//! A body takes as much as has come of it, and no more for what its header declares. When it is whole, the request takes what its
//! work and its answer may need. The two draw on budgets of their own, so that no body which is still to come waits for one that is
//! being worked on while this one waits for it; and small requests have their own part of each, so that large ones cannot shut them
//! out. Of the budgets of bodies nobody gets more than half: senders decide how long these are held.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

use crate::client::BodySender;
use crate::problem::ProblemDetails;
use crate::sync::lock;

const UNIT: usize = 1024;
/// Bodies and requests that take at most so much are small.
pub(crate) const SMALL: usize = 256 << 10;
/// Sixteenths of all memory: small bodies, large bodies, small work; the rest is for large work.
const SIXTEENTHS: [usize; 3] = [1, 4, 1];
/// Delay before a client at its limit is checked again.
const PAUSE: Duration = Duration::from_millis(20);

/// Memory for requests.
#[derive(Debug)]
pub(crate) struct RequestMemory {
    small_bodies: Arc<BodyBudget>,
    large_bodies: Arc<BodyBudget>,
    small_work: MemoryBudget,
    large_work: MemoryBudget,
    queue_timeout: Duration,
}

/// A number of units that are taken and given back.
#[derive(Debug)]
struct MemoryBudget {
    units: Arc<Semaphore>,
    all: usize,
}

/// Memory for bodies that are still to come, with a share that nobody exceeds.
#[derive(Debug)]
struct BodyBudget {
    budget: MemoryBudget,
    most: usize,
    clients: Mutex<HashMap<BodySender, usize>>,
    queue_timeout: Duration,
}

/// Memory of a request for its work and its answer; returned when dropped.
#[derive(Debug)]
pub(crate) struct WorkPermit(OwnedSemaphorePermit);

/// Memory of an incomplete body; returned when dropped.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    client: BodySender,
    budget: Arc<BodyBudget>,
    permit: Option<OwnedSemaphorePermit>,
    units: usize,
}

fn busy() -> ProblemDetails {
    ProblemDetails::busy(
        "memory",
        "requests in progress take all the memory there is for them",
    )
}

impl MemoryBudget {
    fn new(units: usize) -> Self {
        let all = units.clamp(1, u32::MAX as usize);
        Self {
            units: Arc::new(Semaphore::new(all)),
            all,
        }
    }

    /// Takes so many units, waiting for others to give theirs back.
    async fn take(
        &self,
        units: usize,
        queue_timeout: Duration,
    ) -> Result<OwnedSemaphorePermit, ProblemDetails> {
        // For more than there is the semaphore would wait in vain.
        let units = units.clamp(1, self.all) as u32;
        // Mostly there is enough, and no timer is needed.
        if let Ok(permit) = Arc::clone(&self.units).try_acquire_many_owned(units) {
            return Ok(permit);
        }
        // It serves in order: many small requests do not pass a large one for ever.
        let permit = Arc::clone(&self.units).acquire_many_owned(units);
        match tokio::time::timeout(queue_timeout, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(busy()),
        }
    }

    fn taken(&self) -> usize {
        self.all - self.units.available_permits()
    }
}

impl BodyBudget {
    fn clients(&self) -> MutexGuard<'_, HashMap<BodySender, usize>> {
        lock(&self.clients)
    }

    /// Counts units for a client, if these are not too many.
    fn try_count(&self, client: &BodySender, units: usize) -> bool {
        let mut clients = self.clients();
        let taken = clients.get(client).copied().unwrap_or_default();
        let fits = taken + units <= self.most;
        if fits {
            clients.insert(client.clone(), taken + units);
        }
        fits
    }

    async fn count(&self, client: &BodySender, units: usize) -> Result<(), ProblemDetails> {
        // Polled, not notified: a client at its limit is its own cause, and costs others no wake-ups.
        let end = Instant::now() + self.queue_timeout;
        while !self.try_count(client, units) {
            if Instant::now() >= end {
                return Err(ProblemDetails::busy(
                    "client-memory",
                    "bodies that this client sends take all the memory that one client may have",
                ));
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    fn uncount(&self, client: &BodySender, units: usize) {
        let mut clients = self.clients();
        if let Some(taken) = clients.get_mut(client) {
            *taken -= units.min(*taken);
            // The map is no larger than the clients that send.
            if *taken == 0 {
                clients.remove(client);
            }
        }
    }
}

impl BodyPermit {
    /// Takes as much as `bytes` need, waiting for others to give theirs back. A body that needs more than one client may have, takes
    /// all of that.
    pub(crate) async fn grow_to(&mut self, bytes: usize) -> Result<(), ProblemDetails> {
        let wanted = bytes.div_ceil(UNIT).min(self.budget.most);
        let more = wanted.saturating_sub(self.units);
        if more == 0 {
            return Ok(());
        }
        // The client's share first: one beyond it would stand in the queue of all before others.
        self.budget.count(&self.client, more).await?;
        // What is counted is given back, also by a request that is cut off while it waits.
        self.units += more;
        let permit = self
            .budget
            .budget
            .take(more, self.budget.queue_timeout)
            .await?;
        match &mut self.permit {
            Some(all) => all.merge(permit),
            None => self.permit = Some(permit),
        }
        Ok(())
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.budget.uncount(&self.client, self.units);
    }
}

impl WorkPermit {
    /// Gives back what is beyond so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        // The answer may wait for a slow reader; the work's memory is free by then.
        let units = bytes.div_ceil(UNIT).max(1);
        let beyond = self.0.num_permits().saturating_sub(units);
        drop(self.0.split(beyond));
    }
}

impl RequestMemory {
    /// Of so many bytes; `largest` is the largest body, of which one is always let in.
    pub(crate) fn new(bytes: usize, largest: usize, queue_timeout: Duration) -> Self {
        let all = (bytes / UNIT).max(1);
        // Four budgets that nobody holds two of at once, except a body while its work waits: the order body,
        // work is the same for all.
        let parts = SIXTEENTHS.map(|part| all * part / 16);
        let bodies = |units: usize, largest: usize| {
            let budget = MemoryBudget::new(units);
            Arc::new(BodyBudget {
                most: (budget.all / 2).max(largest.div_ceil(UNIT)).min(budget.all),
                budget,
                clients: Mutex::default(),
                queue_timeout,
            })
        };
        Self {
            small_bodies: bodies(parts[0], SMALL),
            large_bodies: bodies(parts[1], largest),
            small_work: MemoryBudget::new(parts[2]),
            large_work: MemoryBudget::new(all - parts.iter().sum::<usize>()),
            queue_timeout,
        }
    }

    /// Nothing yet, for a body of at most so many bytes.
    pub(crate) fn body(&self, client: BodySender, at_most: usize) -> BodyPermit {
        let is_small = at_most <= SMALL;
        let budget = if is_small {
            &self.small_bodies
        } else {
            &self.large_bodies
        };
        BodyPermit {
            client,
            budget: Arc::clone(budget),
            permit: None,
            units: 0,
        }
    }

    /// Takes what work needs, waiting for others to give theirs back. What needs more than there is for all, takes all of it and is
    /// done alone.
    pub(crate) async fn work(&self, bytes: usize) -> Result<WorkPermit, ProblemDetails> {
        let budget = if bytes <= SMALL {
            &self.small_work
        } else {
            &self.large_work
        };
        let permit = budget
            .take(bytes.div_ceil(UNIT), self.queue_timeout)
            .await?;
        Ok(WorkPermit(permit))
    }

    /// Bytes that are taken.
    pub(crate) fn taken(&self) -> usize {
        let bodies = [&self.small_bodies, &self.large_bodies].map(|bodies| bodies.budget.taken());
        let work = [&self.small_work, &self.large_work].map(MemoryBudget::taken);
        bodies.iter().chain(&work).sum::<usize>() * UNIT
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const MIB: usize = 1 << 20;
    const PATIENCE: Duration = Duration::from_millis(5);

    fn client(number: u8) -> BodySender {
        BodySender::Address(Some(IpAddr::from([127, 0, 0, number])))
    }

    #[tokio::test]
    async fn work_never_takes_more_than_there_is_and_small_work_has_its_own() {
        let memory = RequestMemory::new(16 * MIB, MIB, PATIENCE);
        let mut first = memory.work(6 * MIB).await.expect("there is enough");
        assert_eq!(memory.taken(), 6 * MIB);
        let refused = memory.work(5 * MIB).await.expect_err("too much");
        assert_eq!((refused.status.as_u16(), refused.code), (503, "memory"));
        let small = memory.work(SMALL).await.expect("a part of its own");
        first.shrink_to(100);
        assert_eq!(memory.taken(), SMALL + UNIT);
        drop((first, small));
        let all = memory.work(usize::MAX).await.expect("all, alone");
        assert_eq!(memory.taken(), 10 * MIB);
        drop(all);
        assert_eq!(memory.taken(), 0);
    }

    #[tokio::test]
    async fn a_body_takes_what_came_and_a_client_no_more_than_half() {
        let memory = RequestMemory::new(32 * MIB, 2 * MIB, PATIENCE);
        let mut bodies: Vec<BodyPermit> =
            (0..100).map(|_| memory.body(client(1), 2 * MIB)).collect();
        assert_eq!(memory.taken(), 0, "what is declared takes nothing");
        for body in &mut bodies[..4] {
            body.grow_to(MIB).await.expect("there is enough");
        }
        let refused = bodies[4].grow_to(1).await.expect_err("half of it is taken");
        assert_eq!(refused.code, "client-memory");
        let mut other = memory.body(client(2), 2 * MIB);
        other.grow_to(2 * MIB).await.expect("the other half");
        let mut small = memory.body(client(1), 1000);
        small.grow_to(1000).await.expect("a part of its own");
        drop((bodies, other, small));
        assert_eq!(memory.taken(), 0);
        assert!(memory.large_bodies.clients().is_empty());
    }

    #[tokio::test]
    async fn a_body_that_waits_in_vain_leaves_nothing_counted() {
        let memory = RequestMemory::new(16 * MIB, 4 * MIB, PATIENCE);
        let mut first = memory.body(client(1), 4 * MIB);
        first.grow_to(4 * MIB).await.expect("there is enough");
        let mut second = memory.body(client(2), 4 * MIB);
        assert_eq!(
            second.grow_to(UNIT).await.expect_err("none is left").code,
            "memory"
        );
        drop((first, second));
        assert!(memory.large_bodies.clients().is_empty());
        assert_eq!(memory.taken(), 0);
    }
}
