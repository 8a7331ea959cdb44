//! Link to a process: a socket pair that keeps packet boundaries and passes file descriptors.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// 64 KiB: maximum length of a packet. Regions travel as descriptors.
const PACKET_BYTES: usize = 64 * 1024;

/// Maximum descriptors of a packet. Operations have a few ports.
pub(crate) const MAX_DESCRIPTORS: usize = 64;

/// One end of a link.
#[derive(Debug)]
pub(crate) struct Link {
    socket: OwnedFd,
}

impl Link {
    /// Creates a link. Returns the end of this process and that of the other one.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (own, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self { socket: own }, other))
    }

    /// Sends a packet with descriptors.
    ///
    /// # Errors
    /// Returns the system's error, or [`ErrorKind::InvalidInput`] for a packet that is too long.
    pub(crate) fn send(&self, packet: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if packet.len() > PACKET_BYTES || descriptors.len() > MAX_DESCRIPTORS {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        sendmsg(&self.socket, &[IoSlice::new(packet)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits until a packet has arrived or the other end has closed. Returns `false` after `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Receives a packet. `None` if the other end has closed.
    ///
    /// # Errors
    /// Returns the system's error, or [`ErrorKind::InvalidData`] for a packet that is too long.
    pub(crate) fn receive(&self) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        let mut packet = vec![0; PACKET_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut packet)];
        let received = match recvmsg(&self.socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            received => received?,
        };
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(ErrorKind::InvalidData.into());
        }
        if received.bytes == 0 {
            return Ok(None);
        }
        packet.truncate(received.bytes);
        Ok(Some((packet, descriptors)))
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn packets_keep_boundaries_and_carry_descriptors() {
        let (own, other) = Link::pair().unwrap();
        let other = Link { socket: other };
        let (mut reader, writer) = io::pipe().unwrap();
        own.send(b"first", &[writer.as_fd()]).unwrap();
        own.send(b"second", &[]).unwrap();
        drop(writer);
        let (packet, descriptors) = other.receive().unwrap().unwrap();
        assert_eq!((packet.as_slice(), descriptors.len()), (&b"first"[..], 1));
        std::fs::File::from(descriptors.into_iter().next().unwrap()).write_all(b"x").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        assert_eq!(other.receive().unwrap().unwrap().0, b"second");
        assert!(!other.wait(Duration::from_millis(1)).unwrap());
        assert!(own.send(&vec![0; PACKET_BYTES + 1], &[]).is_err());
        drop(own);
        assert!(other.wait(Duration::from_secs(1)).unwrap() && other.receive().unwrap().is_none());
    }
}
