package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// settled is how long a process must have lived for the next start not to wait longer than the first. A fault before that
// counts as one of opening the store: Badger meets some damage only when it compacts, just after.
const settled = 10 * time.Second

// child is one life of the process.
type child struct {
	cmd    *exec.Cmd
	conn   net.Conn
	tail   *tail         // of what it wrote
	done   chan struct{} // closed when it has ended and err is set
	err    error
	killed string // why it was killed by us; "" = it was not
}

// Run keeps the process running until ctx ends, then has it close the store and waits for its end. It returns nil; a
// process that can't be started is told in the log and started again.
func (c *Client) Run(ctx context.Context) error {
	wait, crashes, aside := c.cfg.FirstWait, 0, 0
	for {
		began := time.Now()
		opening, err := c.live(ctx, crashes)
		if ctx.Err() != nil {
			c.set(nil, 0, "closed")
			return nil
		}
		if n := c.asideBefore(); n != aside { // so it was another store that fell, from its beginning
			crashes, aside = 0, n
		}
		crashed, _ := errors.AsType[*crashError](err)
		switch {
		case crashed != nil && crashed.fault && (opening || time.Since(began) < settled):
			if c.cfg.Excused == nil || !c.cfg.Excused() {
				crashes++
			}
		case !opening:
			crashes = 0
		}
		if time.Since(began) > settled {
			wait = c.cfg.FirstWait
		}
		pause := wait/2 + rand.N(wait/2+1)
		wait = min(2*wait, c.cfg.LastWait)
		c.set(nil, 0, "its process ended: "+err.Error())
		attributes := []any{"reason", err.Error(), "opening", opening, "crashes", crashes, "again_in", pause.Round(time.Millisecond).String()}
		if crashed != nil && crashed.trace != "" {
			attributes = append(attributes, "trace", crashed.trace)
		}
		c.log.Error("the store's process ended, memory is unavailable", attributes...)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			c.set(nil, 0, "closed")
			return nil
		}
		c.mu.Lock()
		c.restarts++
		c.mu.Unlock()
	}
}

// asideBefore is how many stores the process that has ended knew to be set aside.
func (c *Client) asideBefore() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.last.Aside)
}

// live is one life of the process. It says whether the process ended while it was opening the store.
func (c *Client) live(ctx context.Context, crashes int) (opening bool, err error) {
	ch, err := c.start()
	if err != nil {
		return false, err
	}
	pid := ch.cmd.Process.Pid
	boot, err := c.cfg.Boot(crashes)
	if err == nil {
		_ = ch.conn.SetDeadline(time.Now().Add(handshakeTimeout))
		err = writeMessage(ch.conn, kindBoot, boot)
	}
	var l *link
	if err == nil {
		l, err = newLink(ch.conn, c.cfg.Build, &c.free)
	}
	if err != nil {
		ch.kill("it does not answer")
		_ = ch.conn.Close()
		<-ch.done
		return true, errors.Join(err, ch.cause())
	}
	c.set(l, pid, "")
	defer c.set(nil, 0, "its process has ended")
	c.watch(ctx, l, ch)
	if ctx.Err() != nil && ch.killed == "" {
		patience := c.cfg.Stop
		if _, down := l.state(); down != nil {
			patience = min(patience, c.cfg.Hang) // it may be stopped, or hang
		}
		l.close()
		select {
		case <-ch.done:
		case <-time.After(patience):
			c.log.Error("the store's process does not end: killing it", "pid", pid, "after", patience.String())
			ch.kill("it did not end")
		}
	}
	// The socket goes first, so that what the process had to say is read.
	select {
	case <-l.stopped:
	case <-time.After(time.Second):
	}
	<-ch.done
	l.end(nil)
	<-l.stopped
	told, _ := l.state()
	return told.PID == 0 || told.Opening, ch.cause()
}

// openPing is how often the process is asked while its store is not open.
const openPing = 20 * time.Millisecond

// watch returns when the process has ended, or is to.
func (c *Client) watch(ctx context.Context, l *link, ch *child) {
	suspected := false
	for {
		every := c.cfg.Ping
		if told, _ := l.state(); !told.Open {
			every = min(every, openPing)
		}
		if suspected {
			every = min(every, c.cfg.Suspect/4)
		}
		wait := min(every, c.cfg.Suspect/2)
		before := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-ch.done:
			return
		case <-l.stopped: // it hung up: so it ends, or is to
			select {
			case <-ch.done:
			case <-time.After(c.cfg.Hang):
				ch.kill("it closed its socket")
			}
			return
		case <-time.After(wait):
		}
		if late := time.Since(before) - wait; late > c.cfg.Suspect { // this process was stopped, and the other one with it, for all it knows
			l.stoodStill(late)
		}
		silent, oldest := l.ping(time.Now())
		switch {
		case silent > c.cfg.Hang:
			ch.kill(fmt.Sprintf("it was silent for %s", silent.Round(time.Millisecond)))
			return
		case oldest > c.cfg.Stuck:
			ch.kill(fmt.Sprintf("a call took longer than %s", c.cfg.Stuck))
			return
		case silent > c.cfg.Suspect && !suspected:
			suspected = true
			l.fail(unavailable("its process does not answer"))
			c.log.Warn("the store's process does not answer, memory is unavailable", "pid", ch.cmd.Process.Pid, "silent", silent.Round(time.Millisecond).String())
		case silent == 0 && suspected:
			suspected = false
			l.recover()
			c.log.Info("the store's process answers again", "pid", ch.cmd.Process.Pid)
		}
	}
}

// start starts a process with one end of a new socket.
func (c *Client) start() (*child, error) {
	cmd, err := c.cfg.Command()
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	defer theirs.Close()
	logs, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, out, out
	setAttributes(cmd)
	ch := &child{cmd: cmd, conn: ours, tail: newTail(c.log), done: make(chan struct{})}
	read := make(chan struct{})
	go func() { defer close(read); ch.tail.follow(logs); _ = logs.Close() }()
	started := make(chan error, 1)
	go func() {
		// The kernel kills a child when the thread that started it ends, so this one is kept for it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_ = out.Close()
		started <- err
		if err == nil {
			ch.err = cmd.Wait()
			<-read
			close(ch.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start store: %w", err), ours.Close())
	}
	c.log.Debug("the store's process is started", "pid", cmd.Process.Pid)
	return ch, nil
}

func (ch *child) kill(why string) {
	ch.killed = why
	_ = ch.cmd.Process.Kill() // it may have ended
}

// crashError is an end that nobody asked for.
type crashError struct {
	text  string
	trace string
	// fault says that it fell over something in its own hands: a panic, a bus error. A process that was killed from outside, or found no
	// memory or no threads, says nothing of its files.
	fault bool
}

func (e *crashError) Error() string { return e.text }

func (ch *child) cause() error {
	if ch.killed != "" {
		return &crashError{text: "killed, because " + ch.killed}
	}
	text := "exited"
	if ch.err != nil {
		text = ch.err.Error()
	}
	last, fault := ch.tail.crash()
	if bySignal := faultSignal(ch.cmd.ProcessState); bySignal {
		fault = true
	}
	return &crashError{text: text, trace: last, fault: fault && !ch.tail.starved()}
}
