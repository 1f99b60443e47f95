//! The limit on the memory of all requests in progress.
//!
//! A body takes memory for the bytes that have arrived, not for the length that its header declares. When it is complete, the request takes
//! the memory that its work and its answer may need. These two come from separate budgets, so that an incomplete body never waits for a
//! request in progress that in turn waits for it. Small requests have their own part of each, so that large ones cannot crowd them out. No
//! client gets more than half of a budget for bodies, or the largest body if that is more, because senders decide how long they hold it. They
//! also decide how long they take an answer, so a client that holds half of a budget with answers gets no more of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lookalike_store::sync::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

use crate::client::RequestSender;
use crate::deadline::deadline;
use crate::problem::ProblemDetails;

// The semaphore counts permits in 32 bits, so a budget in bytes would end at 4 GiB.
const UNIT: usize = 1024;
/// Maximum size in bytes of small bodies and small requests.
pub(crate) const SMALL: usize = 256 << 10;
/// Sixteenths of the memory for small bodies, large bodies and small work; the rest is for large work.
const SIXTEENTHS: [usize; 3] = [1, 4, 1];
/// Delay before a client that is at its limit is checked again.
const PAUSE: Duration = Duration::from_millis(20);

/// The budgets of memory for requests.
#[derive(Debug)]
pub(crate) struct RequestMemory {
    small_bodies: Arc<ClientBudget>,
    large_bodies: Arc<ClientBudget>,
    small_work: Arc<ClientBudget>,
    large_work: Arc<ClientBudget>,
}

/// A number of units that are taken and returned.
#[derive(Debug)]
struct MemoryBudget {
    units: Arc<Semaphore>,
    all: usize,
}

/// Memory for incomplete bodies, or for work and answers, with a limit on what each client holds of it.
#[derive(Debug)]
struct ClientBudget {
    budget: MemoryBudget,
    most: usize,
    clients: Mutex<HashMap<RequestSender, usize>>,
    queue_timeout: Duration,
}

/// The memory of a request for its work and its answer, which is returned when the last copy is dropped.
#[derive(Clone, Debug)]
pub(crate) struct WorkPermit(Arc<Mutex<ClientPermit>>);

/// Memory that is taken for a client, which is returned when dropped.
#[derive(Debug)]
pub(crate) struct ClientPermit {
    client: RequestSender,
    budget: Arc<ClientBudget>,
    permit: Option<OwnedSemaphorePermit>,
    /// Number of units that count towards the limit of the client: all of a body, and of work those of its answer.
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

    /// Takes units, waiting until enough have been returned.
    async fn take(
        &self,
        units: usize,
        queue_timeout: Duration,
    ) -> Result<OwnedSemaphorePermit, ProblemDetails> {
        // The semaphore would wait forever for more units than exist.
        let units = units.clamp(1, self.all) as u32;
        // Usually there are enough, and no timer is needed.
        if let Ok(permit) = Arc::clone(&self.units).try_acquire_many_owned(units) {
            return Ok(permit);
        }
        // The semaphore is fair, so many small requests cannot overtake a large one forever.
        let permit = Arc::clone(&self.units).acquire_many_owned(units);
        match tokio::time::timeout(queue_timeout, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(busy()),
        }
    }

    fn in_use(&self) -> usize {
        self.all - self.units.available_permits()
    }
}

impl ClientBudget {
    fn new(budget: MemoryBudget, most: usize, queue_timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            budget,
            most,
            clients: Mutex::default(),
            queue_timeout,
        })
    }

    fn permit(self: &Arc<Self>, client: RequestSender) -> ClientPermit {
        ClientPermit {
            client,
            budget: Arc::clone(self),
            permit: None,
            units: 0,
        }
    }

    /// Counts units for a client unless that exceeds its limit.
    fn try_count(&self, client: &RequestSender, units: usize) -> bool {
        let mut clients = lock(&self.clients);
        let taken = clients.get(client).copied().unwrap_or_default();
        let fits = taken + units <= self.most;
        if fits && units > 0 {
            clients.insert(client.clone(), taken + units);
        }
        fits
    }

    async fn count(&self, client: &RequestSender, units: usize) -> Result<(), ProblemDetails> {
        // Poll instead of being notified: a client at its limit waits for itself, and this costs the others no wake-ups.
        let end = Instant::from_std(deadline(Instant::now().into_std(), self.queue_timeout));
        while !self.try_count(client, units) {
            if Instant::now() >= end {
                return Err(ProblemDetails::busy(
                    "client-memory",
                    "bodies that this client sends, or answers that it has not taken, fill all the memory that one client may have",
                ));
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    fn uncount(&self, client: &RequestSender, units: usize) {
        let mut clients = lock(&self.clients);
        if let Some(taken) = clients.get_mut(client) {
            *taken -= units.min(*taken);
            // The map only contains clients that hold something.
            if *taken == 0 {
                clients.remove(client);
            }
        }
    }
}

impl ClientPermit {
    /// Takes the memory for a body of `bytes` bytes, waiting until others return theirs. A body that needs more than a client may have
    /// takes all of its share.
    pub(crate) async fn grow_to(&mut self, bytes: usize) -> Result<(), ProblemDetails> {
        let wanted = bytes.div_ceil(UNIT).min(self.budget.most);
        let more = wanted.saturating_sub(self.units);
        if more == 0 {
            return Ok(());
        }
        // The client's share first: otherwise a client beyond its share would wait in the common queue, ahead of others.
        self.budget.count(&self.client, more).await?;
        // Units that are counted are returned on drop, even if the request is interrupted while it waits.
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

impl Drop for ClientPermit {
    fn drop(&mut self) {
        if self.units > 0 {
            self.budget.uncount(&self.client, self.units);
        }
    }
}

impl WorkPermit {
    /// Returns memory beyond the `bytes` bytes of the answer, which count towards the limit of the client until it has taken them.
    pub(crate) fn shrink_to(&self, bytes: usize) {
        // The answer may wait for a slow reader, but the memory of the work is free by then.
        let units = bytes.div_ceil(UNIT).max(1);
        let held = &mut *lock(&self.0);
        let Some(permit) = &mut held.permit else {
            return;
        };
        drop(permit.split(permit.num_permits().saturating_sub(units)));
        let units = permit.num_permits();
        held.units += units;
        *lock(&held.budget.clients)
            .entry(held.client.clone())
            .or_default() += units;
    }
}

impl RequestMemory {
    /// Creates budgets of `bytes` bytes in total. `largest` is the size of the largest body, one of which is always admitted.
    pub(crate) fn new(bytes: usize, largest: usize, queue_timeout: Duration) -> Self {
        let all = (bytes / UNIT).max(1);
        // No request holds two of the four budgets, except that of its body while it waits for that of its work. The order is the same for
        // all, so no two budgets wait for each other. Within the budget for bodies, incomplete ones may wait for each other to end, until
        // the queue timeout refuses one of them.
        let parts = SIXTEENTHS.map(|part| all * part / 16);
        let bodies = |units: usize, largest: usize| {
            let budget = MemoryBudget::new(units);
            let most = (budget.all / 2).max(largest.div_ceil(UNIT)).min(budget.all);
            ClientBudget::new(budget, most, queue_timeout)
        };
        let work = |units: usize| {
            let budget = MemoryBudget::new(units);
            let most = budget.all / 2;
            ClientBudget::new(budget, most, queue_timeout)
        };
        Self {
            small_bodies: bodies(parts[0], SMALL),
            large_bodies: bodies(parts[1], largest),
            small_work: work(parts[2]),
            large_work: work(all - parts.iter().sum::<usize>()),
        }
    }

    /// Returns an empty permit for a body of at most `at_most` bytes.
    pub(crate) fn body(&self, client: RequestSender, at_most: usize) -> ClientPermit {
        let budget = if at_most <= SMALL {
            &self.small_bodies
        } else {
            &self.large_bodies
        };
        budget.permit(client)
    }

    /// Takes the memory for work, waiting until others return theirs. Work that needs more than the whole budget takes all of it and runs
    /// alone.
    pub(crate) async fn work(
        &self,
        client: RequestSender,
        bytes: usize,
    ) -> Result<WorkPermit, ProblemDetails> {
        let budget = if bytes <= SMALL {
            &self.small_work
        } else {
            &self.large_work
        };
        let mut held = budget.permit(client);
        // Nothing yet, because the answer is mostly much smaller than the memory for its work. This waits until the client is below its limit.
        budget.count(&held.client, 0).await?;
        let units = bytes.div_ceil(UNIT);
        held.permit = Some(budget.budget.take(units, budget.queue_timeout).await?);
        Ok(WorkPermit(Arc::new(Mutex::new(held))))
    }

    /// Returns the memory in use in bytes.
    pub(crate) fn in_use(&self) -> usize {
        let bodies = [&self.small_bodies, &self.large_bodies];
        let work = [&self.small_work, &self.large_work];
        let budgets = bodies.into_iter().chain(work);
        budgets.map(|all| all.budget.in_use()).sum::<usize>() * UNIT
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const MIB: usize = 1 << 20;
    const QUEUE_TIMEOUT: Duration = Duration::from_millis(5);

    fn client(number: u8) -> RequestSender {
        RequestSender::Address(Some(IpAddr::from([127, 0, 0, number])))
    }

    #[tokio::test]
    async fn work_never_takes_more_than_there_is_and_small_work_has_its_own() {
        let memory = RequestMemory::new(16 * MIB, MIB, QUEUE_TIMEOUT);
        let work = |bytes| memory.work(client(1), bytes);
        let first = work(6 * MIB).await.expect("there is enough");
        assert_eq!(memory.in_use(), 6 * MIB);
        let refused = work(5 * MIB).await.expect_err("too much");
        assert_eq!((refused.status.as_u16(), refused.code), (503, "memory"));
        let small = work(SMALL).await.expect("a part of its own");
        first.shrink_to(100);
        assert_eq!(memory.in_use(), SMALL + UNIT);
        drop((first, small));
        let all = work(usize::MAX).await.expect("all, alone");
        assert_eq!(memory.in_use(), 10 * MIB);
        drop(all);
        assert_eq!(memory.in_use(), 0);
    }

    #[tokio::test]
    async fn one_client_that_took_no_answer_took_all_memory() {
        let memory = RequestMemory::new(16 * MIB, MIB, QUEUE_TIMEOUT);
        let work = |number, bytes| memory.work(client(number), bytes);
        let mut answers = Vec::new();
        for _ in 0..3 {
            let answer = work(1, 4 * MIB).await.expect("there is enough");
            answer.shrink_to(2 * MIB);
            answers.push(answer);
        }
        let refused = work(1, MIB).await.expect_err("six of ten are taken");
        assert_eq!(
            (refused.status.as_u16(), refused.code),
            (503, "client-memory")
        );
        let other = work(2, 4 * MIB).await.expect("the rest");
        answers.pop();
        answers.push(work(1, 2 * MIB).await.expect("one was taken"));
        drop((answers, other));
        assert!(lock(&memory.large_work.clients).is_empty());
        assert_eq!(memory.in_use(), 0);
    }

    #[tokio::test]
    async fn a_body_takes_what_came_and_a_client_no_more_than_half() {
        let memory = RequestMemory::new(32 * MIB, 2 * MIB, QUEUE_TIMEOUT);
        let mut bodies: Vec<ClientPermit> =
            (0..100).map(|_| memory.body(client(1), 2 * MIB)).collect();
        assert_eq!(memory.in_use(), 0, "what is declared takes nothing");
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
        assert_eq!(memory.in_use(), 0);
        assert!(lock(&memory.large_bodies.clients).is_empty());
    }

    #[tokio::test]
    async fn a_body_that_waits_in_vain_leaves_nothing_counted() {
        let memory = RequestMemory::new(16 * MIB, 4 * MIB, QUEUE_TIMEOUT);
        let mut first = memory.body(client(1), 4 * MIB);
        first.grow_to(4 * MIB).await.expect("there is enough");
        let mut second = memory.body(client(2), 4 * MIB);
        assert_eq!(
            second.grow_to(UNIT).await.expect_err("none is left").code,
            "memory"
        );
        drop((first, second));
        assert!(lock(&memory.large_bodies.clients).is_empty());
        assert_eq!(memory.in_use(), 0);
    }
}
