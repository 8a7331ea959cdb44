//! Permits that bound how much each client does at once, independently of other clients.

use super::error::ApiError;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Semaphores of clients, with `each` permits per client.
#[derive(Debug)]
pub(super) struct ClientPermits {
    each: usize,
    clients: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl ClientPermits {
    pub(super) fn new(each: usize) -> Self {
        Self { each, clients: Mutex::default() }
    }

    /// Waits until the client has a free permit.
    ///
    /// # Errors
    /// [`ApiError::Defect`] when the semaphore is closed.
    pub(super) async fn acquire(&self, client: &str) -> Result<ClientPermit, ApiError> {
        // `of` releases the lock of the map before the wait, so that other clients get their permits.
        let semaphore = self.of(client);
        let permit = Arc::clone(&semaphore).acquire_owned().await;
        let permit = permit.map_err(|error| ApiError::Defect(error.to_string()))?;
        Ok(ClientPermit { _permit: permit, _semaphore: semaphore })
    }

    fn of(&self, client: &str) -> Arc<Semaphore> {
        let mut clients = self.clients.lock();
        // Names come from clients. Without this removal, the map would grow with every name.
        clients.retain(|_, semaphore| semaphore.strong_count() > 0);
        if let Some(semaphore) = clients.get(client).and_then(Weak::upgrade) {
            return semaphore;
        }
        let semaphore = Arc::new(Semaphore::new(self.each));
        clients.insert(client.to_owned(), Arc::downgrade(&semaphore));
        semaphore
    }
}

/// Permit of a client, returned on drop.
#[derive(Debug)]
pub(super) struct ClientPermit {
    _permit: OwnedSemaphorePermit,
    // The map holds only a weak reference: a client without permits is removed from it.
    _semaphore: Arc<Semaphore>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[actix_web::test]
    async fn client_with_all_of_its_shares_waits_alone() {
        let shares = ClientPermits::new(2);
        let take = async |client: &str| timeout(Duration::ZERO, shares.acquire(client)).await.ok();
        let held = [take("one").await, take("one").await];
        assert!(held.iter().all(|taken| matches!(taken, Some(Ok(_)))));
        assert!(take("one").await.is_none() && take("other").await.is_some());
        drop(held);
        assert!(take("one").await.is_some());
        assert_eq!(shares.clients.lock().len(), 1, "clients that have left are forgotten");
    }
}
