//! The master's side of the workers: starts the processes, exchanges messages, and notices when one ends.

use super::wire::{Message, receive, send};
use super::worker::master_socket;
use jindou::{Error, Result};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Worker processes and the sockets to them. The processes end when this value is dropped.
pub struct WorkerProcesses {
    children: Vec<Child>,
    sockets: Vec<UnixStream>,
    /// Folder of the sockets; removed on drop.
    _folder: TempDir,
}

impl WorkerProcesses {
    /// Starts `workers` processes of this same program.
    pub fn start(workers: u32) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("jindou-parallel-")
            .tempdir()
            .map_err(|e| Error::io(std::env::temp_dir(), e))?;
        let place = master_socket(folder.path());
        let listener = UnixListener::bind(&place).map_err(|e| Error::io(&place, e))?;
        listener
            .set_nonblocking(true)
            .map_err(|e| Error::io(&place, e))?;
        let program =
            std::env::current_exe().map_err(|e| Error::io(Path::new("/proc/self/exe"), e))?;
        let mut processes = Self {
            children: vec![],
            sockets: vec![],
            _folder: folder,
        };
        for number in 0..workers {
            let child = Command::new(&program)
                .args(["parallel-worker", "--sockets"])
                .arg(processes._folder.path())
                .args(["--number", &number.to_string()])
                .args(["--workers", &workers.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .map_err(|e| Error::io(&program, e))?;
            processes.children.push(child);
        }
        let mut arrived: Vec<Option<UnixStream>> = (0..workers).map(|_| None).collect();
        let until = Instant::now() + Duration::from_secs(60);
        while arrived.iter().any(Option::is_none) {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    stream
                        .set_nonblocking(false)
                        .map_err(|e| Error::io(&place, e))?;
                    if let Message::Hello { worker, .. } = receive(&mut stream)?
                        && let Some(free) = arrived.get_mut(worker as usize)
                    {
                        *free = Some(stream);
                    }
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                    for number in 0..processes.children.len() {
                        if let Ok(Some(_)) = processes.children[number].try_wait() {
                            return Err(processes.ended(number));
                        }
                    }
                    if Instant::now() > until {
                        return Err(Error::external(
                            "the worker processes did not start within a minute",
                        ));
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(e) => return Err(Error::io(&place, e)),
            }
        }
        processes.sockets = arrived.into_iter().flatten().collect();
        Ok(processes)
    }

    /// Number of workers.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// The error for a worker that does not answer.
    fn ended(&mut self, worker: usize) -> Error {
        let child = &mut self.children[worker];
        // The socket closes shortly before the process ends, so wait for the exit status.
        let until = Instant::now() + Duration::from_secs(2);
        let how = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status.to_string(),
                _ if Instant::now() > until => break "it does not answer".into(),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        Error::external(format!(
            "worker {worker} (process {}) ended before its work was done: {how}; nothing is reported",
            child.id()
        ))
    }

    /// Sends a message to one worker.
    pub fn tell(&mut self, worker: usize, message: &Message) -> Result<()> {
        match send(&mut self.sockets[worker], message) {
            Err(Error::SinkClosed) => Err(self.ended(worker)),
            r => r,
        }
    }

    /// Sends the same message to all workers.
    pub fn tell_all(&mut self, message: &Message) -> Result<()> {
        (0..self.len()).try_for_each(|w| self.tell(w, message))
    }

    /// Waits for a message of one worker.
    pub fn hear(&mut self, worker: usize) -> Result<Message> {
        match receive(&mut self.sockets[worker]) {
            Err(Error::SinkClosed) => Err(self.ended(worker)),
            Ok(Message::Failed(why)) => Err(Error::external(format!("worker {worker}: {why}"))),
            r => r,
        }
    }

    /// Waits for a message of any worker, and returns its number with the message.
    pub fn hear_any(&mut self) -> Result<(usize, Message)> {
        if self.len() == 1 {
            return Ok((0, self.hear(0)?));
        }
        let mut waiting: Vec<libc::pollfd> = self
            .sockets
            .iter()
            .map(|s| libc::pollfd {
                fd: s.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            })
            .collect();
        loop {
            // SAFETY: pointer and length are those of a vector that lives during the call.
            let n = unsafe { libc::poll(waiting.as_mut_ptr(), waiting.len() as libc::nfds_t, -1) };
            if n < 0 {
                let e = std::io::Error::last_os_error();
                if e.kind() == std::io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(Error::io("<sockets of the workers>", e));
            }
            if let Some(worker) = waiting.iter().position(|p| p.revents != 0) {
                return Ok((worker, self.hear(worker)?));
            }
        }
    }

    /// Tells each worker to open a store, and waits until all have done so.
    pub fn open(&mut self, stores: impl Iterator<Item = (String, String)>) -> Result<()> {
        for (worker, (store, ids)) in stores.take(self.len()).enumerate() {
            self.tell(worker, &Message::Open { store, ids })?;
        }
        for worker in 0..self.len() {
            match self.hear(worker)? {
                Message::Opened => {}
                m => return Err(unexpected(worker, &m)),
            }
        }
        Ok(())
    }
}

/// The error for a message that the protocol does not allow here.
pub fn unexpected(worker: usize, message: &Message) -> Error {
    Error::Internal(format!("worker {worker} said {message:?}"))
}

impl Drop for WorkerProcesses {
    fn drop(&mut self) {
        for socket in &mut self.sockets {
            let _ = send(socket, &Message::Quit);
        }
        self.sockets.clear();
        let until = Instant::now() + Duration::from_secs(2);
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) {
                if Instant::now() > until {
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
